#!/usr/bin/env python3
"""Counts words and openings of comments that make text hard to read, in the whole project.

    words.py SOURCE [--show]      --show prints each place

CONTRIBUTING.md, "Style", has the rules. A count above its allowance fails. A count below it fails, too: lower the
allowance, so that it never rises again.
"""
import os
import re
import sys

# A comment, or a line of one, that opens with a clause instead of a verb or a noun.
OPENING = re.compile(r"(What|Whether|Of|Where|The same|Has|Such|Those|With whom)\b")
PHRASES = re.compile(r"so many|manieth|in vain|has it made|is none of|by turns|stands? (?:ahead|behind)|has finish first|"
                     r"what is (?:lost|left) of", re.I)
ALLOWED = {"openings": 0, "phrases": 0}

FOLDERS = ("src", "gen", "templates", "tests", ".ci")
FILES = ("README.md", "CONTRIBUTING.md", "NEWS.md", "bootstrap", "meson.build", "meson_options.txt")
C_LIKE = re.compile(r"\.(c|h|def|in|cu)$")
TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/|//[^\n]*', re.S)


def paths(source):
    for folder in FOLDERS:
        for root, folders, names in os.walk(os.path.join(source, folder)):
            folders[:] = [name for name in folders if name not in ("golden", "__pycache__")]
            yield from (os.path.join(root, name) for name in names)
    yield from (os.path.join(source, name) for name in FILES)


def c_comments(text):
    """Yields (line, text) of each line of each comment, without its marks."""
    for found in TOKEN.finditer(text):
        if found[0][0] == "/":
            first = text.count("\n", 0, found.start()) + 1
            for number, line in enumerate(found[0].split("\n")):
                yield first + number, re.sub(r"^\s*(/\*+|\*/|\*|//)\s*", "", line)


def hash_comments(text):
    """Yields (line, text) of comments that begin with '#', and of the lines of Python's docstrings."""
    quoted = False
    for number, line in enumerate(text.split("\n"), 1):
        found = re.match(r"""\s*(?:\.\\"|#)\s*(.*)|\s*(\"\"\"(.*))""", line)
        if quoted or found:
            yield number, line.strip() if quoted else found[3] if found[2] else found[1]
        if line.count('"""') % 2:
            quoted = not quoted


def main():
    source, show = sys.argv[1], sys.argv[2:] == ["--show"]
    places = {name: [] for name in ALLOWED}
    for path in sorted(paths(source)):
        if os.path.basename(path) == os.path.basename(__file__):
            continue
        try:
            with open(path, encoding="utf8") as file:
                text = file.read()
        except UnicodeDecodeError:
            continue
        name = os.path.relpath(path, source)
        for number, line in (c_comments if C_LIKE.search(path) else hash_comments)(text):
            if OPENING.match(line):
                places["openings"].append("%s:%d: %s" % (name, number, line))
        for number, line in enumerate(text.split("\n"), 1):
            if PHRASES.search(line):
                places["phrases"].append("%s:%d: %s" % (name, number, line.strip()))
    failed = False
    for kind, allowed in ALLOWED.items():
        count = len(places[kind])
        print("%s: %d, %d allowed%s" % (kind, count, allowed, "; lower the allowance in tests/words.py" if count < allowed else ""))
        failed = failed or count != allowed
        if show or count > allowed:
            print("\n".join(places[kind]))
    sys.exit(failed)


if __name__ == "__main__":
    main()
