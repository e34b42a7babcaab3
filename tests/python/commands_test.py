"""Every documented command, asked from Python, gives the program's JSON, bit for bit but for times: the calls that the docs test
holds against the schemas, and every call that the commands of README.md and docs/ make, in pipes and loops, too."""
import contextlib
import os
import pathlib
import re
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
# What only the program has: what it prints, and where, with a value or without.
PRINTED = {"--json": 0, "--quiet": 0, "--csv": 1, "--edges": 1}
# In the place of the program: notes with what it is called, and calls it.
NOTES = """#!/bin/sh
cat > "$NOTED.input"
printf '%s\\0' "$#" "$@" >> "$NOTED"
exec "{program}" "$@" < "$NOTED.input"
"""


def question_of(words):
    """("train.lm", the words after it); None: it is no question."""
    known = {name for name, _, _ in normscope._core.questions()}
    for count in (2, 1):
        name = ".".join(words[:count])
        if name in known:
            return name, words[count:]
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


def unprinted(words):
    """Without the options of PRINTED."""
    kept, skip = [], 0
    for word in words:
        if skip:
            skip -= 1
        elif word.partition("=")[0] in PRINTED:
            skip = 0 if "=" in word else PRINTED[word]
        else:
            kept.append(word)
    return kept


def elsewhere(words, suffix):
    """The same call with another run directory."""
    return [word + suffix if before == "--out" else word for before, word in zip(["", *words], words)]


@contextlib.contextmanager
def standard_input(path):
    before = os.dup(0)
    with open(path, "rb") as file:
        os.dup2(file.fileno(), 0)
    try:
        yield
    finally:
        os.dup2(before, 0)
        os.close(before)


def timeless(text):
    return TIMES.sub(r'"\1":0', text.strip())


class Commands(unittest.TestCase):
    def setUp(self):
        self.home, self.before = tempfile.TemporaryDirectory(), os.getcwd()
        os.chdir(self.home.name)
        tools = pathlib.Path("tools").resolve()
        tools.mkdir()
        # No link: an interpreter of a virtual environment finds its packages by where it lies.
        for name, script in (("normscope", NOTES.format(program=PROGRAM)), ("python3", f'#!/bin/sh\nexec "{sys.executable}" -B "$@"\n')):
            tools.joinpath(name).write_text(script)
            tools.joinpath(name).chmod(0o755)
        self.noted = pathlib.Path("noted").resolve()
        self.environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "NO_COLOR": "1", "NOTED": str(self.noted)}
        self.compared = 0

    def tearDown(self):
        os.chdir(self.before)
        self.home.cleanup()

    def compare(self, words, code=0, given=os.devnull, again=""):
        """Asks the program and Python the same. words: after the program's name; code: None: whatever it ends with; given: a file, what
        it reads from standard input; again: what its directory is called beside the one of an earlier call."""
        name, rest = question_of(words)
        rest = unprinted(rest)
        command = words[:len(name.split("."))]
        if name in normscope._questions._KEPT and not {"--out", "--resume"} & set(rest):  # they have a directory from Python
            rest = [*rest, "--out", f"kept-{self.compared}"]
        told = " ".join(words)
        with open(given, "rb") as file:
            done = subprocess.run([PROGRAM, *command, *elsewhere(rest, again), "--json", "--quiet"], stdin=file,
                                  capture_output=True, text=True, env=self.environment, timeout=300)
        self.assertIn(done.returncode, (code,) if code is not None else (0, 2), f"{told}\n{done.stderr}")
        with standard_input(given):
            if done.returncode == 2:
                with self.assertRaises((ValueError, TypeError), msg=told):
                    self.asked(name, rest)
            else:
                printed = done.stdout if done.returncode == 0 else done.stdout.split("\n")[0]  # then a sentence
                self.assertEqual(timeless(self.asked(name, rest).to_json()), timeless(printed), told)
        self.compared += 1

    def asked(self, name, rest):
        ask = normscope
        for part in name.split("."):
            ask = getattr(ask, part)
        return ask(**keywords_of(name, elsewhere(rest, ".python")))

    def calls(self, command):
        """Runs a command of a page as the docs test does; the calls of the program that it made."""
        self.noted.unlink(missing_ok=True)
        subprocess.run(["bash", "-c", command], stdin=subprocess.DEVNULL, capture_output=True, env=self.environment, timeout=300)
        words = self.noted.read_text(encoding="utf-8").split("\0") if self.noted.exists() else []
        while len(words) > 1:
            count = int(words[0])
            yield words[1:1 + count]
            words = words[1 + count:]

    def test_the_calls_that_print_every_field(self):
        subprocess.run([sys.executable, "-c", documented.INPUTS], check=True)
        calls = [(command.split(), *((call, 0) if isinstance(call, str) else call))
                 for command, _, calls in documented.SCHEMAS for call in calls]
        for command, call, code in calls:
            with self.subTest(f"{command} {call}"):
                self.compare([*command, *call.split()], code)
        self.assertEqual(self.compared, len(calls))
        known = {name for name, _, _ in normscope._core.questions()}
        self.assertEqual({question_of([*command, *call.split()])[0] for command, call, _ in calls}, known)

    def test_the_commands_of_the_pages(self):
        """Every command that asks a question makes a call, and every call of a question is compared."""
        known = "|".join(name.replace(".", " ") for name, _, _ in normscope._core.questions())
        asks, asked = re.compile(rf"\bnormscope ({known})\b(?!.*--help)"), set()
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
                    calls = [words for words in self.calls(command) if question_of(words) and "--help" not in words]
                    with self.subTest(f"{page.name}:{line}: {command}"):
                        self.assertEqual(bool(calls), bool(asks.search(command)), calls)
                        for words in calls:
                            asked.add(question_of(words)[0])
                            self.compare(words, None, f"{self.noted}.input", ".again")
        # What the pages show of this needs models that are fetched.
        self.assertEqual({name for name, _, _ in normscope._core.questions()} - asked, {"ablate"})


if __name__ == "__main__":
    if not PROGRAM:
        sys.exit("NORMSCOPE_PROGRAM must name the program to compare with.")
    unittest.main()
