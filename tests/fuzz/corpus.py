#!/usr/bin/env python3
"""Stores a fuzzer's inputs in a text file, one per line.

    corpus.py unpack FILE FOLDER          writes each input to its own file in FOLDER
    corpus.py pack FOLDER >FILE           writes the inputs that libFuzzer left in FOLDER as lines
    corpus.py run FILE COMMAND WORD...    runs the command; its last argument is a temporary folder of all inputs

In a line, \\n, \\t, \\\\ and \\xNN are a line feed, a tab, a backslash and any other byte that is not printable ASCII,
or a space at the end of the line. An input's name is the SHA-1 of its bytes, as in libFuzzer, or the text before a tab.
"""
import hashlib
import pathlib
import re
import subprocess
import sys
import tempfile

ESCAPES = {"\n": "\\n", "\t": "\\t", "\\": "\\\\"}
MEANINGS = {escape: meaning for meaning, escape in ESCAPES.items()}


def escaped(data):
    return re.sub(r"[^ -\[\]-~]| $", lambda c: ESCAPES.get(c[0]) or f"\\x{ord(c[0]):02x}", data.decode("latin-1"))


def meant(text):
    return re.sub(r"\\(x..|.)", lambda e: MEANINGS.get(e[0]) or chr(int(e[1][1:], 16)), text).encode("latin-1")


def unpack(file, folder):
    for line in pathlib.Path(file).read_text(encoding="ascii").splitlines():
        name, _, text = line.rpartition("\t")
        data = meant(text)
        pathlib.Path(folder, name or hashlib.sha1(data).hexdigest()).write_bytes(data)


def pack(folder):
    lines = []
    for path in pathlib.Path(folder).iterdir():
        data = path.read_bytes()
        named = path.name != hashlib.sha1(data).hexdigest()
        lines.append((path.name + "\t" if named else "") + escaped(data) + "\n")
    sys.stdout.writelines(sorted(lines))


def run(file, *command):
    with tempfile.TemporaryDirectory() as folder:
        unpack(file, folder)
        return subprocess.run([*command, folder], check=False).returncode


if __name__ == "__main__":
    sys.exit({"unpack": unpack, "pack": pack, "run": run}[sys.argv[1]](*sys.argv[2:]))
