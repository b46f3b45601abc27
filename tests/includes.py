#!/usr/bin/env python3
"""Draws who uses whom between the files of some folders, and fails where an arrow points up: includes.py [SOURCE_ROOT]

A .c and the .h of its name are one file here. There is an arrow from a file to each that it includes and to each whose
functions it uses, which a header of another name may declare; names that a macro pastes together are not seen. Arrows
between the files of a folder must make no circle, and arrows out of a folder must end in one that it may use.

Prints a line a folder, and each circle and each arrow up as a path with what makes its arrows. `--draw FOLDER` prints the
arrows inside of a folder instead, for a person or for `dot`.
"""
import collections
import pathlib
import re
import sys

CHECKED = ["src/emu", "src/libcuda", "src/emit", "src/family", "src/cost", "src/model", "src/check", "src/gguf"]

# The folders, or files outside of them, that a folder may use, and through them what those may use.
MAY_USE = {
    "src/base": [],
    "src/format": ["src/base"],
    "src/target": ["src/base"],
    "src/ptx": ["src/base", "src/target"],
    "src/ref": ["src/base", "src/format"],
    "src/family": ["src/base", "src/format", "src/target", "src/ref"],
    "gen": ["src/family", "src/ptx"],
    "src/cost": ["src/family", "src/target"],
    "src/spec": ["src/base", "src/family", "src/cost"],
    "src/gguf": [],
    "src/model": ["src/gguf", "src/family"],
    "src/emit": ["src/base", "src/family"],
    "src/emu": ["src/base"],
    "src/emu/memory": ["src/emu"],
    "src/emu/check": ["src/emu/memory"],
    "src/emu/run": ["src/emu/check"],
    "src/emu/parse": ["src/emu/run"],
    "src/emu/launch": ["src/emu/run"],
    "src/libcuda": ["src/emu", "src/target"],
    "src/check": ["src/family", "src/emu", "src/ref"],
}

COMMENT_OR_TEXT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.DOTALL)
INCLUDE = re.compile(r'^#include "([^"]+\.h)"', re.MULTILINE)
# A definition as clang-format leaves it: its head starts a line, and '{' has a line of its own.
DEFINITION = re.compile(r"^(\w[\w *]*?)(\w+)\([^;{}]*\)\n\{$", re.MULTILINE)
# What a header does rather than declares: bodies of functions and of macros.
BODY = re.compile(r"^\{$.*?^\}$|^#define (?:[^\n]*\\\n)*[^\n]*", re.MULTILINE | re.DOTALL)


class File:
    """A .c, its .h, or both: what they include, define and name."""

    def __init__(self):
        self.includes, self.names = [], set()  # names: of all that it mentions
        self.defined, self.own = set(), set()  # functions that others see, and static ones

    def read(self, text, is_header):
        self.includes += INCLUDE.findall(text)
        code = COMMENT_OR_TEXT.sub(" ", text)
        self.names |= set(re.findall(r"\w+", " ".join(BODY.findall(code)) if is_header else code))
        for head, name in DEFINITION.findall(code):
            (self.own if "static" in head else self.defined).add(name)


def read_folder(folder):
    files = collections.defaultdict(File)
    for path in sorted(folder.rglob("*.[ch]")):
        files[path.relative_to(folder).with_suffix("").as_posix()].read(path.read_text(), path.suffix == ".h")
    return files


def place_of(root, name):
    """The folder a header is in, as MAY_USE has it, and its file there; None for one that a build makes."""
    for base in ("", "src/"):
        path = pathlib.PurePosixPath(base + name)
        if (root / path).exists():
            folder = path.parts[0] if path.parts[0] != "src" else "/".join(path.with_suffix("").parts[:2])
            return folder, path.with_suffix("").relative_to(folder).as_posix()
    return None


def reachable(start, arrows):
    seen, left = {start}, [start]
    while left:
        for to in arrows.get(left.pop(), ()):
            if to not in seen:
                seen.add(to)
                left.append(to)
    return seen


def arrows_of(root, folder, files):
    """Of each file, the files of its folder that it uses and why; and its arrows out of the folder."""
    inside = {name: {} for name in files}
    outside = []
    definer = {function: name for name, f in files.items() for function in f.defined}
    for name, f in files.items():
        for header in f.includes:
            place = place_of(root, header)
            if place and place[0] != folder:
                outside.append((name, header, place[0]))
            elif place and place[1] != name and place[1] in files:
                inside[name].setdefault(place[1], f"includes {header}")
        for function in sorted(f.names & definer.keys() - f.own):
            if definer[function] != name:
                inside[name].setdefault(definer[function], f"uses {function}")
    return inside, outside


def shortest_circle(start, arrows):
    """The files of the shortest way from a file back to itself, which there must be."""
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
    """A shortest circle in each set of files that all reach one another."""
    reach = {name: reachable(name, arrows) for name in arrows}
    left = set(arrows)
    while left:
        name = min(left)
        together = {other for other in reach[name] if name in reach[other]}
        left -= together
        if len(together) > 1:
            ways = [shortest_circle(member, arrows) for member in sorted(together)]
            yield min(ways, key=len), together


def room_of(folder, name):
    """The room of a folder that a file is in, which MAY_USE has; the folder where there are no rooms."""
    room = f"{folder}/{name}".rpartition("/")[0]
    return room if room in MAY_USE else folder


def faults_of(folder, inside, outside):
    for name, arrows in inside.items():
        for to, why in arrows.items():
            if room_of(folder, to) not in reachable(room_of(folder, name), MAY_USE):
                yield f"{folder}: {name} -> {to} ({why}): between rooms arrows run one way"
    for way, together in circles(inside):
        steps = [f"{a} -> {b} ({inside[a][b]})" for a, b in zip(way, way[1:])]
        yield f"{folder}: a circle among {len(together)} files: {', '.join(sorted(together))}\n    " + "\n    ".join(steps)
    for name, header, to in outside:
        if to not in reachable(folder, MAY_USE):
            yield f"{folder}: {name} -> {to} (includes {header}): {folder} may use {', '.join(MAY_USE[folder])}"


def draw(folder, inside):
    print(f'digraph "{folder}" {{')
    for name in sorted(inside):
        for to in sorted(inside[name]):
            print(f'    "{name}" -> "{to}"; // {inside[name][to]}')
    print("}")


def main():
    root = pathlib.Path(sys.argv[1]) if sys.argv[1:] else pathlib.Path(__file__).resolve().parent.parent
    drawn = sys.argv[3:] if sys.argv[2:3] == ["--draw"] else []
    good = True
    for folder in drawn or CHECKED:
        files = read_folder(root / folder)
        if not files:
            sys.exit(f"{folder} has no files")
        inside, outside = arrows_of(root, folder, files)
        if drawn:
            draw(folder, inside)
            continue
        faults = list(faults_of(folder, inside, outside))
        print(f"{folder}: {len(files)} files, {sum(map(len, inside.values()))} arrows, {len(faults)} faults")
        for fault in faults:
            print("  " + fault)
        good = good and not faults
    sys.exit(not good)


if __name__ == "__main__":
    main()
