#!/usr/bin/env python3
"""Unpacks test data: unpack.py ARCHIVE FOLDER. Files get the current time, so that a build sees them as new."""
import pathlib
import sys
import tarfile

archive, folder = sys.argv[1:]
with tarfile.open(archive) as tar:
    for member in filter(tarfile.TarInfo.isfile, tar):
        path = pathlib.Path(folder, member.name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(tar.extractfile(member).read())
