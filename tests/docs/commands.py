"""Every command in the documentation is run: README.md and docs/*.md.

    commands.py --program build/normscope --module build/python [--compiler c++] [FILE...]

In ```console blocks a line that begins with "$ " is a command, "> " continues it, and the lines below are what it
prints, standard error included. "…" stands for any text in a line, and a line that is only "…" for any lines; times
("0.0003 s") need not agree. No lines below: whatever it prints is fine. A command must succeed, unless the next one is
"echo $?" and shows the code. A trailing "# not run: reason" skips a command. The blocks of a page share a directory
that is empty at first, but for a link to examples/ where a page names it. ```python blocks are run there too, ```cpp blocks are compiled, ```json blocks must be JSON.

A picture of the program is what these commands drew: "<!-- picture docs/pictures/x.svg: run/y.svg -->" names both. Every SVG that a
page shows has such a line there. ", roughly" before the end says that some of it is rounding, which may differ from machine to machine. With NORMSCOPE_WRITE_PICTURES=1 the pictures are written anew.

Then the JSON that the program prints is held against the schemas in docs/, and their fields against the page that explains
them.
"""
import argparse
import copy
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
TIME = re.compile(r"\d+(\.\d+)?(e[-+]?\d+)? s")


def blocks(text):
    """(language, first line, lines) of every fenced block."""
    language = None
    for number, line in enumerate(text.split("\n"), 1):
        if language is None and line.startswith("```"):
            language, start, lines = line[3:].strip(), number + 1, []
        elif language is not None and line.startswith("```"):
            yield language, start, lines
            language = None
        elif language is not None:
            lines.append(line)
    if language is not None:
        yield "unclosed", start, []


def commands(start, lines):
    """(line, command, expected lines) of a console block."""
    found = []
    for number, line in enumerate(lines, start):
        if line.startswith("$ "):
            found.append((number, [line[2:]], []))
        elif found and line.startswith("> ") and not found[-1][2]:
            found[-1][1].append(line[2:])
        elif found:
            found[-1][2].append(line)
        else:
            raise ValueError(f"line {number}: a console block begins with a command ('$ …')")
    return [(number, "\n".join(command), expected) for number, command, expected in found]


def line_matches(expected, line):
    if TIME.fullmatch(expected):
        return TIME.fullmatch(line) is not None
    return re.fullmatch(".*".join(map(re.escape, expected.split("…"))), line) is not None


def matches(expected, printed):
    if not expected:
        return not printed
    if expected[0] == "…":
        return any(matches(expected[1:], printed[skip:]) for skip in range(len(printed) + 1))
    return bool(printed) and line_matches(expected[0], printed[0]) and matches(expected[1:], printed[1:])


PICTURE = re.compile(r"<!-- picture (\S+): (\S+?)(, roughly)? -->")
SMALL_PRINT = re.compile(r'<text [^>]*font-size="11.5">.*?</text>|<text [^>]*>[^<]*normscope \d[^<]*</text>')    # seed, version, commit, machine
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def same_picture(one, other, share=1.0):
    """But for the small print, and for the last digit of places. share: of the numbers that have to agree."""
    one, other = SMALL_PRINT.sub("", one), SMALL_PRINT.sub("", other)
    if NUMBER.sub("0", one) != NUMBER.sub("0", other):
        return False
    agree = [abs(float(a) - float(b)) < 0.15 for a, b in zip(NUMBER.findall(one), NUMBER.findall(other))]
    return sum(agree) >= share * len(agree)


class Page:
    def __init__(self, path, directory, environment, arguments):
        self.path, self.directory, self.environment, self.arguments = path, directory, environment, arguments
        self.failures, self.ran, self.skipped = [], 0, 0

    def fail(self, line, text):
        self.failures.append(f"{self.path.relative_to(ROOT)}:{line}: {text}")

    def execute(self, command, source=""):
        return subprocess.run(command, cwd=self.directory, env=self.environment, input=source, encoding="utf-8",
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)

    def console(self, start, lines):
        code = 0
        found = commands(start, lines)
        for position, (line, command, expected) in enumerate(found):
            if re.search(r"# not run: \S", command):
                self.skipped += 1
                continue
            done = self.execute(["bash", "-c", f"(exit {code})\n{command}"])
            code = done.returncode
            self.ran += 1
            code_is_shown = position + 1 < len(found) and found[position + 1][1] == "echo $?"
            if code != 0 and not code_is_shown:
                self.fail(line, f"'{command}' ended with {code}:\n{done.stdout}")
            elif expected and not matches(expected, done.stdout.rstrip("\n").split("\n")):
                self.fail(line, "'{}' should print\n{}\nbut prints\n{}".format(command, "\n".join(expected), done.stdout))

    def check(self, line, command, source):
        done = self.execute(command, source)
        self.ran += 1
        if done.returncode != 0:
            self.fail(line, f"this block fails:\n{done.stdout}")

    def run(self):
        for language, start, lines in blocks(self.path.read_text(encoding="utf-8")):
            source = "\n".join(lines) + "\n"
            if language == "console":
                self.console(start, lines)
            elif language == "python":
                self.check(start, ["python3", "-"], source)
            elif language == "cpp" and self.arguments.compiler:
                self.check(start, [self.arguments.compiler, "-std=c++20", "-fsyntax-only", "-I", str(ROOT / "include"),
                                   "-x", "c++", "-"], source)
            elif language == "json":
                json.loads(source)
            elif language in ("bash", "sh", "shell", "unclosed"):
                self.fail(start, f"this block is '{language}' and nobody runs it: use console")
        self.check_pictures()

    def check_pictures(self):
        text = self.path.read_text(encoding="utf-8")
        shown = {(self.path.parent / name).resolve() for name in re.findall(r"!\[[^]]*\]\(([^)]+\.svg)\)", text)}
        made = {(ROOT / kept).resolve(): (self.directory / drawn, 0.8 if roughly else 1.0)
                for kept, drawn, roughly in PICTURE.findall(text)}
        # Those of reproduction.md are of a run that takes too long to be repeated here; scripts/reproduction makes them.
        for kept in sorted(kept for kept in shown - made.keys() if not kept.name.startswith("reproduction-")):
            self.fail(1, f"nothing says which command draws {kept.relative_to(ROOT)}")
        for kept, (drawn, share) in made.items():
            name = kept.relative_to(ROOT)
            if not drawn.exists():
                self.fail(1, f"no command of this page wrote {drawn.relative_to(self.directory)}, which {name} is said to be")
            elif os.environ.get("NORMSCOPE_WRITE_PICTURES"):
                kept.write_bytes(drawn.read_bytes())
            elif not kept.exists() or not same_picture(kept.read_text(encoding="utf-8"),
                                                           drawn.read_text(encoding="utf-8"), share):
                self.fail(1, f"{name} is stale: the program draws it differently now. NORMSCOPE_WRITE_PICTURES=1 and this test, "
                             f"{pathlib.Path(__file__).relative_to(ROOT)}, write it anew")


# The part of JSON Schema (2020-12) that docs/*.schema.json use; anything else is an error, so that nothing in a schema
# goes unchecked.
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
NOTES = {"$schema", "$id", "$defs", "title", "description"}


def is_type(value, name):
    if name in ("integer", "number"):
        return isinstance(value, int if name == "integer" else (int, float)) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def violations(value, schema, root, where="$"):
    def nested(inner, rule, place=where):
        return list(violations(inner, rule, root, place))

    for keyword, rule in schema.items():
        if keyword in NOTES or keyword in ("then", "else"):
            continue
        elif keyword == "$ref":
            yield from nested(value, root["$defs"][rule.removeprefix("#/$defs/")])
        elif keyword == "type":
            names = [rule] if isinstance(rule, str) else rule
            if not any(is_type(value, name) for name in names):
                yield f"{where} is not {' or '.join(names)}: {value!r:.80}"
        elif keyword == "const":
            if value != rule:
                yield f"{where} is not {rule!r}: {value!r:.80}"
        elif keyword == "enum":
            if value not in rule:
                yield f"{where} is none of {rule}: {value!r:.80}"
        elif keyword == "required":
            yield from (f"{where}.{name} is missing" for name in rule if isinstance(value, dict) and name not in value)
        elif keyword == "properties":
            for name in rule.keys() & (value.keys() if isinstance(value, dict) else set()):
                yield from nested(value[name], rule[name], f"{where}.{name}")
        elif keyword == "additionalProperties":
            for name in value.keys() - schema.get("properties", {}).keys() if isinstance(value, dict) else ():
                if rule is False:
                    yield f"{where}.{name} is not documented"
                else:
                    yield from nested(value[name], rule, f"{where}.{name}")
        elif keyword == "items":
            for position, item in enumerate(value if isinstance(value, list) else []):
                yield from nested(item, rule, f"{where}[{position}]")
        elif keyword in ("minItems", "maxItems"):
            if isinstance(value, list) and not (len(value) >= rule if keyword == "minItems" else len(value) <= rule):
                yield f"{where} has {len(value)} entries, {keyword} is {rule}"
        elif keyword in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
            compare = {"minimum": lambda: value >= rule, "maximum": lambda: value <= rule,
                       "exclusiveMinimum": lambda: value > rule, "exclusiveMaximum": lambda: value < rule}[keyword]
            if is_type(value, "number") and not compare():
                yield f"{where} is {value}, {keyword} is {rule}"
        elif keyword == "pattern":
            if isinstance(value, str) and not re.search(rule, value):
                yield f"{where} does not match {rule}: {value!r:.80}"
        elif keyword == "allOf":
            for part in rule:
                yield from nested(value, part)
        elif keyword == "not":
            if not nested(value, rule):
                yield f"{where} must not be like {json.dumps(rule)}"
        elif keyword == "if":
            branch = "then" if not nested(value, rule) else "else"
            yield from nested(value, schema.get(branch, {}))
        else:
            raise ValueError(f"this check does not know the schema keyword '{keyword}'")


INPUTS = """
import numpy as np
np.save('square.npy', [[1., 1], [1, -1], [-1, 1], [-1, -1], [0, 0], [1, 0]])
np.save('bias.npy', [0., 0, 0, 0, 9, 0])
np.save('low.npy', [0., 0, 0, 0, -1, -1])
np.save('one.npy', np.ones((1, 2), 'float32'))
open('ids.txt', 'w').write(' '.join(str(i * 7 % 30) for i in range(40)))
np.save('same.npy', np.ones((3, 2), 'float16'))
np.save('zero.npy', np.array([[0, 0, 0], [1, 1, 1], [1, 2, 3], [3, 1, 1]], 'float32'))
np.save('batch.npy', np.random.RandomState(0).randn(3, 20, 4))
np.save('keys.npy', np.random.RandomState(0).randn(12, 3).astype('float32'))
corners = np.random.RandomState(0).randint(-2**45, 2**45, (3, 3)) * 2    # a parallelogram, its middle, and an apex
middle = (corners[0] + corners[2]) // 2
np.save('plane.npy', np.vstack([corners, corners[0] + corners[2] - corners[1], middle, [0, 0, 2**48]]).astype(float))
reviews = [f"a {'good' if i % 2 else 'bad'} film of {i % 20} {'long ' * (i % 5)}scenes\\t{i % 2}\\n" for i in range(60)]
open('reviews.tsv', 'w').write(''.join(['sentence\\tlabel\\n', *reviews]))    # each three times, some to be cut
"""
KEYS_CALLS = ["square.npy", "square.npy --exact --prefix --query-norm 3", "square.npy --summary",
              "square.npy --bias bias.npy --exact", "square.npy --bias low.npy --exact", "square.npy --noise 0.1",
              "one.npy", "same.npy --exact", "zero.npy --norm layernorm", "batch.npy --margin bound",
              "batch.npy --rank full --summary --query-norm 1", "plane.npy --exact", "square.npy --effort 0",
              "square.npy --advice", "square.npy --bias low.npy --advice", "batch.npy --heads 2 --summary", "square.npy --advice --effort 0"]
HEATMAP_CALLS = ["--n 3,8 --d 3 --draws 5", "--n 3 --d 3 --draws 1 --norm rmsnorm", "--n 4 --d 3 --norm none"]
SMALL_TASK = "--classes 5 --length 12 --margin 2 --samples 500 --batch 100 --evaluate-every 10"
MAJORITY_CALLS = [f"{SMALL_TASK} --steps 20 --norm layernorm,project:1 --seeds 3 --out majority", "--resume majority",
                  f"{SMALL_TASK} --steps 0 --heads 2 --layers 2 --mask causal --data-seed 3",
                  f"{SMALL_TASK} --steps 2 --layers 2 --placement sandwich --temperature 0.5 --keep-apart 0.3",
                  f"{SMALL_TASK} --steps 2 --uniform-attention --learned-matrix --norm rmsnorm",
                  f"{SMALL_TASK} --steps 100 --norm none,layernorm --layers 8 --learning-rate 300",  # one diverges
                  "--3d --steps 20 --stop-accuracy 0.5 --clip 1 --weight-decay 0.1"]
SMALL_TEXT = "--tokenizer bytes --context 16 --batch 4 --evaluate-every 10"
LM_CALLS = [f"--corpus grammar {SMALL_TEXT} --steps 20 --norm layernorm,project:1 --seeds 2 --out lm", "--resume lm",
            f"--corpus grammar {SMALL_TEXT} --steps 0 --held-out 0 --train-all",
            f"--text reviews.tsv {SMALL_TEXT} --steps 10 --clip 1 --weight-decay 0.1 --dropout 0",
            # A spike, and what is not finite.
            (f"--corpus grammar {SMALL_TEXT} --steps 80 --warmup 70 --learning-rate 10 --norm layernorm,none", 1)]
SMALL_REVIEWS = "--tokenizer words --length 10 --batch 4 --feed-forward 16"
SENTIMENT_CALLS = [f"--data reviews.tsv {SMALL_REVIEWS} --steps 10 --norm none,layernorm,project:1 --seeds 2 --out sentiment",
                   "--resume sentiment", f"--data reviews.tsv {SMALL_REVIEWS} --steps 0 --test reviews.tsv --test-texts 7",
                   f"--corpus grammar {SMALL_REVIEWS} --steps 4 --test-texts 20",
                   (f"--data reviews.tsv {SMALL_REVIEWS} --steps 10 --learning-rate 1e38", 1)]
PAPER_CALLS = ["--only fig1ab --seeds 1 --steps 5 --out fig1", "--resume fig1",
               "--only fig2,fig3,followups --seeds 2 --steps 5 --out fig2", f"--only fig4,table4 --seeds 1 --text-steps 1 --test-text {ROOT}/docs/theory.md --out text-parts",
               "--only wu9 --models none --budget 2m --out pieces", "--only wu9 --models none --pieces pieces/pieces.jsonl --out again"]
MASK_CALLS = ["full onesided:1 --n 4", "self --n 3"]
COLLAPSE_CALLS = ["--tokens 4 --dim 4 --layers 3", "--tokens 4 --dim 4 --layers 2 --step-size 0.5", "--tokens 4 --dim 4 --layers 2 --no-spectrum --norm unit --value orthogonal",
                  "--tokens 4 --dim 4 --layers 2 --temperature 1,4 --dropout 0,0.1 --mask self star --samples 2 --start sphere",
                  f"{ROOT}/tests/golden/models/gpt2 --ids ids.txt --init both --variant san full --tokens 6 --samples 2"]
EQUILIBRIA_CALLS = ["--starts 20 --steps 50", "--w 3,4 --tokens 3 --dim 3 --starts 20 --steps 50 --trajectory 85,200"]
GPT2, BERT = (f"{ROOT}/tests/golden/models/{name} --ids ids.txt" for name in ("gpt2", "bert"))
SCAN_CALLS = [f"{GPT2} --window 12 --samples 2", f"{BERT} --space head --layers 1 --heads 0,1 --mask causal --margin exact"]
VOCAB_CALLS = ["square.npy --exact", "square.npy --bias bias.npy --limit 3", "plane.npy --exact", "same.npy",
               "lm/models/layernorm-seed11 --limit 2", "square.npy --advice", "keys.npy --advice"]
ABLATE_CALLS = [f"{GPT2} --window 10 --samples 3 --prompts 3 --probe-length 4 --norm none,center --rescale",
                f"{BERT} --norm rmsnorm --layers 1 --drop-affine --prompts 0 --mask-token 3"]
# Command, the page that explains the fields (none: the sentences of the schema do), calls that print them all. A call that
# ends with a code other than 0, with a sentence after the JSON, has the code beside it.
SCHEMAS = [("keys", "keys-json.md", KEYS_CALLS), ("heatmap", "keys-json.md", HEATMAP_CALLS),
           ("train majority", "train-json.md", MAJORITY_CALLS), ("train lm", "train-json.md", LM_CALLS),
           ("train sentiment", "train-json.md", SENTIMENT_CALLS), ("paper", "train-json.md", PAPER_CALLS),
           ("mask", "collapse-json.md", MASK_CALLS), ("collapse", "collapse-json.md", COLLAPSE_CALLS),
           ("equilibria", "collapse-json.md", EQUILIBRIA_CALLS), ("scan", None, SCAN_CALLS), ("vocab", None, VOCAB_CALLS),
           ("ablate", None, ABLATE_CALLS)]
# What no short call prints: effort that runs out, tokens tied in some layer, tokens that leave the range of float32.
SELDOM = {"vocab": {"undecided"}, "scan": {"tied_in_some", "undecided_in_some"}, "ablate": {"failure"}}


def fields(schema):
    found = set()
    if isinstance(schema, dict):
        found |= set(schema.get("properties", {}))
        for part in schema.values():
            found |= fields(part)
    elif isinstance(schema, list):
        for part in schema:
            found |= fields(part)
    return found


def check_schemas(page):
    subprocess.run([page.arguments.python, "-c", INPUTS], cwd=page.directory, check=True)
    for command, explained_in, calls in SCHEMAS:
        page.path = ROOT / "docs" / (explained_in or "guide.md")
        text = page.path.read_text(encoding="utf-8")
        name_of_schema = f"docs/{command.replace(' ', '-')}.schema.json"
        schema = json.loads((ROOT / name_of_schema).read_text(encoding="utf-8"))
        seen = set()
        for name in sorted(fields(schema)) if explained_in else ():
            if f"`{name}`" not in text:
                page.fail(1, f"the field `{name}` of {name_of_schema} is not explained here")
        for call in calls:
            call, code = (call, 0) if isinstance(call, str) else call
            done = page.execute([page.arguments.program, *command.split(), *call.split(), "--json", "--quiet"])
            page.ran += 1
            if done.returncode != code:
                page.fail(1, f"normscope {command} {call} ended with {done.returncode}, not {code}:\n{done.stdout}")
                continue
            value = json.loads(done.stdout if code == 0 else done.stdout.split("\n")[0])
            for violation in violations(value, schema, schema):
                page.fail(1, f"normscope {command} {call} --json against {name_of_schema}: {violation}")
            seen |= names_in(value)
            check_that_damage_shows(page, value, schema)
        for name in sorted(fields(schema) - seen - SELDOM.get(command, set())):
            page.fail(1, f"no call of this test prints the field `{name}` of {name_of_schema}")


def names_in(value):
    if isinstance(value, dict):
        return set(value).union(*map(names_in, value.values()))
    return set().union(*map(names_in, value)) if isinstance(value, list) else set()


def check_that_damage_shows(page, value, schema):
    """A check that accepts anything would be worthless."""
    for name in schema["required"]:
        damaged = copy.deepcopy(value)
        del damaged[name]
        stranger = copy.deepcopy(value)
        stranger[name] = {"": 0}
        extra = {**value, "undocumented": 0}
        for wrong in (damaged, stranger, extra):
            if not list(violations(wrong, schema, schema)):
                page.fail(1, f"the schema accepts a result whose '{name}' is missing or wrong, or with a stranger in it")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--module", required=True)
    parser.add_argument("--compiler")
    parser.add_argument("files", nargs="*", type=lambda name: pathlib.Path(name).resolve())
    arguments = parser.parse_args()
    arguments.program = os.path.abspath(arguments.program)
    arguments.python = sys.executable
    pages, failures = arguments.files or [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))], []
    ran = skipped = 0
    with tempfile.TemporaryDirectory() as scratch:
        tools = pathlib.Path(scratch, "tools")
        tools.mkdir()
        tools.joinpath("normscope").symlink_to(arguments.program)
        # The system's interpreter, whatever comes first on the path here.
        tools.joinpath("python3").write_text(f'#!/bin/sh\nexec "{sys.executable}" -B "$@"\n')
        tools.joinpath("python3").chmod(0o755)
        environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "NO_COLOR": "1", "LC_ALL": "C.UTF-8",
                       "PYTHONPATH": os.path.abspath(arguments.module)}
        for number, path in enumerate([*pages, None]):
            directory = pathlib.Path(scratch, str(number))
            directory.mkdir()
            page = Page(path, directory, environment, arguments)
            if path is not None and "$ python3 examples/" in path.read_text(encoding="utf-8"):
                directory.joinpath("examples").symlink_to(ROOT / "examples")
            if path is not None:
                page.run()
            elif not arguments.files:
                check_schemas(page)
            failures += page.failures
            ran, skipped = ran + page.ran, skipped + page.skipped
    print("\n\n".join(failures + [f"{ran} commands run, {skipped} marked as not run, {len(failures)} failures"]))
    if ran < 30 and not arguments.files:
        sys.exit("So few commands cannot be all of them: the blocks were not found.")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
