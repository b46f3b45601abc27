#!/usr/bin/env python3
"""Writes a header with PROOF_HASH, a hash of the code that decides if a kernel is right.

    proof_hash.py HEADER DEPFILE CACHE SETTINGS FILE_OR_FOLDER...

SETTINGS is text that the hash includes. If the hash differs from the header's, writes the header and empties the folder
CACHE, whose results are of other code.
"""
import hashlib
import pathlib
import shutil
import sys

header, depfile, cache, settings, *roots = sys.argv[1:]
files = sorted(file for root in map(pathlib.Path, roots) for file in (root.rglob("*") if root.is_dir() else [root]))
digest = hashlib.sha256(settings.encode())
for file in files:
    digest.update(str(file).encode() + (file.read_bytes() if file.is_file() else b""))
text = "#define PROOF_HASH UINT64_C(0x%s)\n" % digest.hexdigest()[:16]
header = pathlib.Path(header)
if not header.exists() or header.read_text() != text:
    header.write_text(text)
    shutil.rmtree(cache, ignore_errors=True)
pathlib.Path(cache).mkdir(exist_ok=True)
escaped = [str(file).replace(" ", "\\ ") for file in files + [pathlib.Path(root) for root in roots]]
pathlib.Path(depfile).write_text("%s: %s\n" % (header, " ".join(escaped)))
