"""The rules of the house: which room may include which, as the tables of HACKING.md say.

    layering_test.py [--root DIR]

Reads "| room | may include | … |" and "| room | public headers | … |", then every #include of src/, include/normscope/,
python/ and web/wasm/. A header of include/normscope/ belongs to the room that the second table gives it.
"""
import argparse
import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]')
NAME = re.compile(r"`([^`]*)`")
# Rooms that are not folders of src/.
ELSEWHERE = {"python": "python", "web/wasm": "web/wasm"}
SUFFIXES = {".h", ".cc"}


def table(lines, title):
    """(line number, cells) of the rows of the table whose header begins with these cells."""
    for start, line in enumerate(lines):
        if cells_of(line)[:2] == title:
            break
    else:
        sys.exit("HACKING.md has no table | " + " | ".join(title) + " | … |.")
    rows = []
    for number, line in enumerate(lines[start + 2:], start + 3):
        if not line.startswith("|"):
            break
        rows.append((number, cells_of(line)))
    return rows


def cells_of(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def names_in(cell, number, wrong):
    """`a`, `b`: a list of names and nothing else; what needs words stands in the third column."""
    names = NAME.findall(cell)
    if cell != ", ".join(f"`{name}`" for name in names):
        wrong.append(f"HACKING.md:{number}: '{cell}' is not a list of names; explanations go into the third column")
    return names


class House:
    def __init__(self, root):
        self.root = root
        self.wrong = []
        lines = (root / "HACKING.md").read_text(encoding="utf-8").split("\n")
        self.allowed = self.rooms(table(lines, ["room", "may include"]))
        self.room_of_header = self.headers(table(lines, ["room", "public headers"]))

    def rooms(self, rows):
        """A row names rooms of the rows above it only: so no room can reach back."""
        allowed = {}
        for number, (room, may, *_) in rows:
            named = names_in(may, number, self.wrong)
            for before in named:
                if before not in allowed:
                    self.wrong.append(f"HACKING.md:{number}: `{before}` is not a room of a row above")
            here = names_in(room, number, self.wrong)
            for name in here:
                if name in allowed:
                    self.wrong.append(f"HACKING.md:{number}: `{name}` has two rows")
                if not self.folder(name).is_dir():
                    self.wrong.append(f"HACKING.md:{number}: `{name}` is not a room: there is no {self.folder(name)}")
            allowed.update({name: set(named) for name in here})
        for folder in sorted((self.root / "src").iterdir()):
            if folder.is_dir() and folder.name not in allowed:
                self.wrong.append(f"src/{folder.name}: a room without a row in HACKING.md")
        return allowed

    def headers(self, rows):
        room_of = {}
        for number, (room, headers, *_) in rows:
            rooms = names_in(room, number, self.wrong)
            if len(rooms) != 1 or rooms[0] not in self.allowed:
                self.wrong.append(f"HACKING.md:{number}: '{room}' is not one room of the table above")
                continue
            for header in names_in(headers, number, self.wrong):
                if header in room_of:
                    self.wrong.append(f"HACKING.md:{number}: `{header}` belongs to `{room_of[header]}` already")
                if not (self.root / "include/normscope" / header).is_file():
                    self.wrong.append(f"HACKING.md:{number}: there is no include/normscope/{header}")
                room_of[header] = rooms[0]
        for header in sorted((self.root / "include/normscope").iterdir()):
            if header.name not in room_of:
                self.wrong.append(f"include/normscope/{header.name}: a header without a room in HACKING.md")
        return room_of

    def folder(self, room):
        return self.root / ELSEWHERE.get(room, f"src/{room}")

    def files(self):
        """(file, its room, whether it is public)"""
        for header in sorted((self.root / "include/normscope").rglob("*.h")):
            yield header, self.room_of_header.get(header.name), True
        for room in self.allowed:
            for file in sorted(self.folder(room).rglob("*")):
                if file.suffix in SUFFIXES:
                    yield file, room, False

    def check(self):
        files = includes = 0
        for file, room, public in self.files():
            files += 1
            for number, line in enumerate(file.read_text(encoding="utf-8").split("\n"), 1):
                found = INCLUDE.match(line)
                if not found or room is None:
                    continue
                includes += 1
                complaint = self.complaint(found.group(1), room, public)
                if complaint:
                    self.wrong.append(f"{file.relative_to(self.root)}:{number}: includes {found.group(1)}, {complaint}")
        if files == 0 or includes == 0:
            self.wrong.append("Nothing was read: is --root the root of the project?")
        return files

    def complaint(self, included, room, public):
        """What is wrong about it; None: nothing."""
        first, _, rest = included.partition("/")
        if ".." in included.split("/"):
            return "but paths begin with a room: a file says which one it needs"
        if first == "normscope":
            other = self.room_of_header.get(rest)
            if other is None:
                return "which is no header of include/normscope with a room in HACKING.md"
        elif rest and first in self.allowed:
            other = first
            if public:
                return "a header of src/; a public header may include public headers only"
        else:
            return None  # of the system, of a package, generated, or a neighbour in the same folder
        if other == room or other in self.allowed[room]:
            return None
        may = ", ".join(name for name in self.allowed if name in self.allowed[room]) or "no other room"
        return f"which is of {other}; {room} may include {may}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    house = House(parser.parse_args().root)
    files = house.check()
    if house.wrong:
        sys.exit("\n".join(house.wrong))
    print(f"{files} files include what HACKING.md allows.")


if __name__ == "__main__":
    main()
