"""docs/sources.md: every place that it names exists.

    sources.py --program build/normscope

In the second column of its tables stand links to headings, and in backticks
    paper PART [--option …]      a part of `normscope paper`, with options of it
    figure NAME                  a figure of a part
    page #ID                     a section of the interactive page
    Suite.Name                   a test
    normscope.name               a function of the Python package
    COMMAND [--option …]         a command of the program, with options of it
    path/of/a.file
The first word of the third is one of the verdicts of its legend.
"""
import argparse
import functools
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "sources.md"
VERDICTS = ("told", "holds", "only if", "fails", "judged", "in part", "open")
LINK = re.compile(r"\[[^\]]*\]\(([^)#]+)(?:#([^)]+))?\)")
TOKEN = re.compile(r"`([^`]+)`")


def anchors(path):
    """As hosts of code make them of headings."""
    lines = path.read_text(encoding="utf-8").split("\n")
    titles = [line.lstrip("#").strip() for line in lines if re.match(r"#+ ", line)]
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@functools.cache
def sources_in(folder, pattern):
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / folder).rglob(pattern)))


@functools.cache
def tests():
    found = re.findall(r"^TEST(?:_F|_P)?\((\w+),\s*(\w+)\)", sources_in("tests", "*.cc"), re.M)
    return {f"{suite}.{name}" for suite, name in found}


class Page:
    def __init__(self, program):
        self.program, self.helps, self.wrong, self.checked = program, {}, [], 0

    def help(self, *command):
        if command not in self.helps:
            done = subprocess.run([self.program, *command, "--help"], capture_output=True, text=True)
            self.helps[command] = done.stdout if done.returncode == 0 else None
        return self.helps[command]

    def missing(self, token):
        """What of a reference does not exist; nothing if all does."""
        words = token.split()
        if words[0] == "figure":
            return None if re.search(rf'"{re.escape(words[1])}"', sources_in("src/paper", "*.cc")) else "figure"
        if words[0] == "page":
            return None if f"id: '{words[1][1:]}'" in sources_in("web/src", "*.ts") else "section of the page"
        if "/" in token:
            return None if (ROOT / token).is_file() else "file"
        if re.fullmatch(r"normscope\.\w+", token):
            exported = (ROOT / "python/normscope/__init__.py").read_text(encoding="utf-8").split("__all__")[1]
            return None if f'"{words[0].split(".")[1]}"' in exported else "function"
        if re.fullmatch(r"\w+\.\w+", token):
            return None if token in tests() else "test"
        command = [word for word in words if not word.startswith("--")]
        if command[0] == "paper" and len(command) > 1:
            if not re.search(rf"^ +{re.escape(command.pop(1))} ", self.help("paper"), re.M):
                return "part"
        text = self.help(*command)
        if text is None:
            return "command"
        for option in words:
            if option.startswith("--") and not re.search(rf"{re.escape(option)}\b(?!-)", text):
                return f"option {option}"
        return None

    def row(self, number, where, verdict):
        links, tokens = LINK.findall(where), TOKEN.findall(where)
        if not links and not tokens:
            self.wrong.append(f"line {number}: names no place")
        for file, anchor in links:
            path = PAGE.parent / file
            if not path.is_file() or (anchor and anchor not in anchors(path)):
                self.wrong.append(f"line {number}: {file}#{anchor} does not exist")
        for token in tokens:
            self.checked += 1
            what = self.missing(token)
            if what:
                self.wrong.append(f"line {number}: `{token}`: there is no such {what}")
        if not verdict.startswith(VERDICTS):
            self.wrong.append(f"line {number}: '{verdict}' begins with no verdict of the legend")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    page = Page(parser.parse_args().program)
    rows = 0
    for number, line in enumerate(PAGE.read_text(encoding="utf-8").split("\n"), 1):
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|") or len(cells) != 3 or cells[0] in ("item", "---"):
            continue
        rows += 1
        page.row(number, cells[1], cells[2])
    for known, kind in (("paper nothing", "part"), ("figure nowhere-at-all", "figure"), ("Suite.Nothing", "test"),
                        ("keys --nothing", "option --nothing"), ("nothing", "command"), ("src/nothing.cc", "file")):
        if page.missing(known) != kind:
            page.wrong.append(f"`{known}` was taken for something that exists")
    print("\n".join(page.wrong) or f"{rows} rows, {page.checked} references: all exist.")
    return 1 if page.wrong or rows < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
