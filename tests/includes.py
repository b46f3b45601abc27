#!/usr/bin/env python3
"""Checks the dependencies between the files of src/ and gen/: includes.py [SOURCE_ROOT]

A .c file with the .h and .def of the same name counts as one file. An arrow goes from a file to each file that it
includes, and to each whose functions it uses through another header. Names that a macro pastes together are not seen.
Fails if arrows between files form a cycle, or if an arrow leaves a room for one that it may not use.

Prints one line per room, and each cycle and each forbidden arrow with the names behind it. `--draw ROOM` prints the
arrows inside a room instead, for a person or for `dot`.
"""
import collections
import pathlib
import re
import sys

# Rooms, lowest first, each with the rooms that it may use directly; what those use is allowed, too. A room is a folder,
# or one file that is lower than the rest of its folder.
MAY_USE = {
    "src/base": [],
    "src/kernel/format": ["src/base"],
    "src/kernel/grid": ["src/base"],
    "src/kernel/target": ["src/base"],
    "src/ptx": ["src/kernel/target"],
    "src/kernel": ["src/ptx", "src/kernel/format"],
    "src/ref": ["src/kernel", "src/kernel/grid"],
    "gen/common": ["src/kernel", "src/ref"],
    "gen/formats": ["gen/common", "src/kernel/grid"],
    "gen/products": ["gen/formats"],
    "gen/seeds": ["gen/products"],
    "gen/rows": ["gen/products"],
    "gen/attention": ["gen/rows"],
    "gen/experts": ["gen/products"],
    "gen/sampling": ["gen/common"],
    "gen/recurrent": ["gen/common"],
    "gen": ["gen/seeds", "gen/attention", "gen/experts", "gen/sampling", "gen/recurrent"],
    "src/cost": ["src/kernel"],
    "src/input": ["src/cost"],
    "src/emu": ["src/base"],
    "src/emu/memory": ["src/emu"],
    "src/emu/check": ["src/emu/memory"],
    "src/emu/run": ["src/emu/check"],
    "src/emu/parse": ["src/emu/run"],
    "src/emu/launch": ["src/emu/run"],
    "src/libcuda": ["src/emu/parse", "src/emu/launch", "src/kernel/target"],
    "src/libcuda/entry": ["src/libcuda"],
    "src/check": ["src/kernel", "src/emu/parse", "src/emu/launch", "src/ref"],
    "src/emit": ["src/kernel"],
    "src/model/gguf": [],
    "src/model": ["src/model/gguf", "src/cost", "src/input", "src/emit", "src/check"],
    "src/cli": ["src/model", "gen"],
}

COMMENT_OR_TEXT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.DOTALL)
INCLUDE = re.compile(r'^#include "([^"]+\.h)"', re.MULTILINE)
# A definition as clang-format leaves it: its head starts a line, and '{' has its own line.
DEFINITION = re.compile(r"^(\w[\w *]*?)(\w+)\([^;{}]*\)\n\{$", re.MULTILINE)
# The parts of a header that are no declarations: bodies of functions and macros.
BODY = re.compile(r"^\{$.*?^\}$|^#define (?:[^\n]*\\\n)*[^\n]*", re.MULTILINE | re.DOTALL)


class File:
    """A .c, its .h and its table: included files, defined and used names."""

    def __init__(self):
        self.includes, self.names = [], set() # all names in its text
        self.declared = set() # candidates for declarations in its header
        self.defined, self.own = set(), set() # external functions, static functions

    def read(self, text, is_header):
        self.includes += INCLUDE.findall(text)
        code = COMMENT_OR_TEXT.sub(" ", text)
        if is_header: # a name belongs to the header that declares it, wherever it is defined
            self.declared |= set(re.findall(r"\w+(?=\()|\bref_\w+", BODY.sub(" ", code)))
            self.names |= set(re.findall(r"\w+", " ".join(BODY.findall(code)))) - self.declared
        else:
            self.names |= set(re.findall(r"\w+", code))
        for head, name in DEFINITION.findall(code):
            (self.own if "static" in head else self.defined).add(name)


def read_files(root):
    """Returns all files of src/ and gen/, by their path without suffix."""
    files = collections.defaultdict(File)
    for folder in ("src", "gen"):
        for path in sorted((root / folder).rglob("*.*")):
            if path.suffix not in (".c", ".h") and not (path.suffix == ".def" and path.with_suffix(".c").exists()):
                continue
            name = path.relative_to(root).with_suffix("").as_posix()
            files[name].read(path.read_text(), path.suffix == ".h")
    return files


def room_of(name):
    """Returns the innermost room of a file."""
    path = pathlib.PurePosixPath(name)
    return next(str(place) for place in (path, *path.parents) if str(place) in MAY_USE)


def file_of(files, header, user):
    """Returns the file that a name in an #include means; None for a generated header."""
    beside = str(pathlib.PurePosixPath(user).parent / header)
    found = [pathlib.PurePosixPath(at).with_suffix("").as_posix() for at in ("src/" + header, header, beside)]
    return next((at for at in found if at in files), None)


def arrows_of(files):
    """Returns, for each file, the files that it uses and why."""
    arrows = {name: {} for name in files}
    definers = collections.defaultdict(set)
    for name, f in files.items():
        for function in f.defined:
            definers[function].add(name)
    definer = {function: names.pop() for function, names in definers.items() if len(names) == 1}
    for name, f in files.items():
        for header in f.includes:
            to = file_of(files, header, name)
            if to and to != name:
                arrows[name].setdefault(to, f"includes {header}")
    seen = {name: set().union(*(files[to].declared for to in reachable(name, arrows))) for name in files}
    for name, f in files.items():
        for function in sorted(f.names & definer.keys() & seen[name] - f.own):
            if definer[function] != name:
                arrows[name].setdefault(definer[function], f"uses {function}")
    return arrows


def reachable(start, arrows):
    seen, left = {start}, [start]
    while left:
        for to in arrows.get(left.pop(), ()):
            if to not in seen:
                seen.add(to)
                left.append(to)
    return seen


def shortest_circle(start, arrows):
    """Returns the files of the shortest path from a file back to itself. There must be one."""
    before, left = {}, collections.deque([start])
    while left:
        at = left.popleft()
        for to in sorted(arrows[at]):
            if to == start:
                way = [to, at]
                while way[-1] != start:
                    way.append(before[way[-1]])
                return way[::-1]
            if to not in before:
                before[to] = at
                left.append(to)
    raise AssertionError(f"{start} is in no circle")


def circles(arrows):
    """Returns a shortest cycle of each set of files that all reach one another."""
    reach = {name: reachable(name, arrows) for name in arrows}
    left = set(arrows)
    while left:
        name = min(left)
        together = {other for other in reach[name] if name in reach[other]}
        left -= together
        if len(together) > 1:
            ways = [shortest_circle(member, arrows) for member in sorted(together)]
            yield min(ways, key=len), together


def faults_of(arrows):
    for way, together in circles(arrows):
        steps = [f"{a} -> {b} ({arrows[a][b]})" for a, b in zip(way, way[1:])]
        yield f"a circle among {len(together)} files: {', '.join(sorted(together))}\n    " + "\n    ".join(steps)
    reach = {room: reachable(room, MAY_USE) for room in MAY_USE}
    for name in sorted(arrows):
        for to, why in sorted(arrows[name].items()):
            if room_of(to) not in reach[room_of(name)]:
                yield f"{name} -> {to} ({why}): {room_of(name)} may use {', '.join(MAY_USE[room_of(name)])}"


def draw(room, arrows):
    print(f'digraph "{room}" {{')
    for name in sorted(arrows):
        for to in sorted(arrows[name]):
            if room_of(name) == room == room_of(to):
                print(f'    "{name}" -> "{to}"; // {arrows[name][to]}')
    print("}")


def main():
    root = pathlib.Path(sys.argv[1]) if sys.argv[1:] else pathlib.Path(__file__).resolve().parent.parent
    files = read_files(root)
    arrows = arrows_of(files)
    if sys.argv[2:3] == ["--draw"]:
        for room in sys.argv[3:]:
            draw(room, arrows)
        return
    for room in MAY_USE:
        inside = [name for name in arrows if room_of(name) == room]
        if not inside:
            sys.exit(f"{room} has no files")
        print(f"{room}: {len(inside)} files, {sum(len(arrows[name]) for name in inside)} arrows")
    faults = list(faults_of(arrows))
    print(f"{len(files)} files, {sum(map(len, arrows.values()))} arrows, {len(faults)} faults")
    for fault in faults:
        print("  " + fault)
    sys.exit(len(faults) > 0)


if __name__ == "__main__":
    main()
