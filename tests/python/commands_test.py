"""Every documented command, asked from Python, gives the program's JSON, bit for bit but for times: the calls that the docs test
holds against the schemas, and the commands of README.md and docs/."""
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

import normscope

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "docs"))
import commands as documented  # noqa: E402

PROGRAM = os.environ.get("NORMSCOPE_PROGRAM")
TIMES = re.compile(r'"(seconds|ms_per_step|tokens_per_second)": ?(null|[0-9.e+-]+)')
# What only the program has: where it prints what.
PRINTED = {"json", "quiet", "csv", "edges"}


def question_of(words):
    """("train.lm", the words after it); None: it is no question."""
    known = {name for name, _, _ in normscope._core.questions()}
    for count in (2, 1):
        name = ".".join(words[1:1 + count])
        if name in known:
            return name, words[1 + count:]
    return None


def keywords_of(name, words):
    """The call of a function that a command line is."""
    notes = {note["keyword"]: note for note in normscope._core.options(name)}
    inputs = [note for note in notes.values() if note["input"]]
    read = {"whole": int, "number": float}
    found, position = {}, 0
    while position < len(words):
        word = words[position]
        position += 1
        if not word.startswith("--"):
            note = inputs[0]
            if note["kind"] == "list":
                found.setdefault(note["keyword"], []).append(word)
            else:
                found[inputs.pop(0)["keyword"]] = word
            continue
        option, _, value = word[2:].partition("=")
        keyword = ("in_" if option[0].isdigit() else "") + option.replace("-", "_")
        if option in PRINTED:
            continue
        note = notes.get(keyword, {"kind": {"seed": "whole", "threads": "whole", "out": "text"}.get(keyword)})
        if note["kind"] == "flag":
            found[keyword] = True
        elif note["kind"] == "list":
            values = [value] if value else []
            while position < len(words) and not words[position].startswith("--"):
                values.append(words[position])
                position += 1
            found[keyword] = found.get(keyword, []) + values
        else:
            if not value:
                value = words[position]
                position += 1
            found[keyword] = read.get(note["kind"], str)(value)
    return found


def timeless(text):
    return TIMES.sub(r'"\1":0', text.strip())


class Commands(unittest.TestCase):
    def setUp(self):
        self.home, self.before = tempfile.TemporaryDirectory(), os.getcwd()
        os.chdir(self.home.name)
        tools = pathlib.Path("tools").resolve()
        tools.mkdir()
        tools.joinpath("normscope").symlink_to(PROGRAM)
        tools.joinpath("python3").symlink_to(sys.executable)
        self.environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "NO_COLOR": "1"}
        self.compared = 0

    def tearDown(self):
        os.chdir(self.before)
        self.home.cleanup()

    def compare(self, words, code=0):
        """Runs the command for what it leaves, and asks the same from Python. code: None: whatever it ends with."""
        name, rest = question_of(words)
        if name in normscope._questions._KEPT and not {"--out", "--resume"} & set(words):  # they have a directory from Python
            rest = [*rest, "--out", f"kept-{self.compared}"]
            words = [*words, *rest[-2:]]
        done = subprocess.run([PROGRAM, *words[1:], *(flag for flag in ("--json", "--quiet") if flag not in words)],
                              capture_output=True, text=True, env=self.environment, timeout=300)
        told = " ".join(words)
        self.assertIn(done.returncode, (code,) if code is not None else (0, 2), f"{told}\n{done.stderr}")
        if done.returncode == 2:
            with self.assertRaises((ValueError, TypeError), msg=told):
                self.asked(name, rest)
        else:
            printed = done.stdout if done.returncode == 0 else done.stdout.split("\n")[0]  # then a sentence
            self.assertEqual(timeless(self.asked(name, rest).to_json()), timeless(printed), told)
        self.compared += 1

    def asked(self, name, rest):
        call = keywords_of(name, rest)
        if "resume" in call:  # the program has gone on with it to the end
            return normscope.load_run(call["resume"])
        if "out" in call:
            call["out"] += ".python"
        ask = normscope
        for part in name.split("."):
            ask = getattr(ask, part)
        return ask(**call)

    def test_the_calls_that_print_every_field(self):
        subprocess.run([sys.executable, "-c", documented.INPUTS], check=True)
        for command, _, calls in documented.SCHEMAS:
            for call in calls:
                call, code = (call, 0) if isinstance(call, str) else call
                with self.subTest(f"{command} {call}"):
                    self.compare(["normscope", *command.split(), *call.split()], code)
        self.assertGreater(self.compared, 50)

    def test_the_commands_of_the_pages(self):
        asked = set()
        for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
            folder = pathlib.Path(self.home.name, page.stem)
            folder.mkdir()
            os.chdir(folder)
            folder.joinpath("examples").symlink_to(ROOT / "examples")
            for language, start, lines in documented.blocks(page.read_text(encoding="utf-8")):
                if language == "python":
                    subprocess.run([sys.executable, "-"], input="\n".join(lines), text=True, capture_output=True, env=self.environment)
                if language != "console":
                    continue
                for line, command, _ in documented.commands(start, lines):
                    if re.search(r"# not run: \S", command):
                        continue
                    words = [] if re.search(r"[|<>;&$`]", command) else shlex.split(command, comments=True)
                    plain = words[:1] == ["normscope"] and question_of(words) and not {"--help", "--csv", "--edges"} & set(words)
                    if not plain:
                        subprocess.run(["bash", "-c", command], capture_output=True, env=self.environment, timeout=300)
                        continue
                    with self.subTest(f"{page.name}:{line}: {command}"):
                        asked.add(question_of(words)[0])
                        self.compare(words, None)
        self.assertGreater(self.compared, 20)
        self.assertGreaterEqual(len(asked), 9, asked)


if __name__ == "__main__":
    if not PROGRAM:
        sys.exit("NORMSCOPE_PROGRAM must name the program to compare with.")
    unittest.main()
