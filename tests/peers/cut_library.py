#!/usr/bin/env python3
"""Makes llama.cpp's CUDA library of the npm package small enough to carry to a machine with a GPU.

    cut_library.py PACKAGE OUT.tar.xz [PTXAS]

PACKAGE is a folder with the unpacked package @node-llama-cpp/linux-x64-cuda 3.22.1 (npm pack; 143 MB). OUT gets
libllama, libggml, libggml-base, libggml-cuda and one library for the CPU, some 36 MB. Each module of libggml-cuda keeps
only its PTX for sm_90. Its version 9.1 becomes 9.0, which drivers of CUDA 13.0 accept; no module uses features of 9.1.
With PTXAS the modules in USED also get machine code for sm_90. Otherwise the driver would compile them one by one at
first use, for ten minutes. Compiling takes as long here; the folder OUT.cache keeps the result.

The layout of a fat binary is not documented. The fields in HEAD were found by looking at the package's files.
"""
import collections
import concurrent.futures
import ctypes
import hashlib
import os
import re
import struct
import subprocess
import sys
import tarfile
import tempfile

LIBRARIES = ("libllama.cuda.v0.5.0.so", "libggml.cuda.v0.5.0.so", "libggml-base.so", "libggml-cpu-haswell.so")
CUDA_LIBRARY = "libggml-cuda.so"
SM = 90
# The first kernel of each module that Llama, Qwen3 MoE and gpt-oss use with weights q4_K, q6_K, q8_0, MXFP4 and bf16.
USED = re.compile(rb"argmax_f32|add_id|k_bin_bcast|dequantize_block|cpy_f32|flash_attn_mask|k_get_rows|k_compute_batched"
                  rb"|mm_ids_helper|mul_mat_vec|moe_weighted|Z\d+norm_f32|quantize_q8_1|rope_|Z\d+scale_f32|k_set_rows"
                  rb"|get_batch_pointers|reduce_rows|topk_moe|unary_op|mul_mat_qIL9ggml_type(8|12|14|39)E"
                  rb"|mul_mat_f_idsIfLi32ELi8E|flash_attn_ext_f16ILi64ELi64ELi(1ELi8|2ELi[48]|4ELi[48]|8ELi[48]|16ELi4)E"
                  rb"|flash_attn_ext_vecILi64ELi1EL9ggml_type1E")

REGION = struct.Struct("<IHHQ") # magic, version, bytes of this head, bytes of the entries after it
MAGIC = 0xBA55ED50
HEAD = struct.Struct("<HHIQIIIIIIQQQ")
Entry = collections.namedtuple("Entry", "kind version head_bytes bytes compressed options ptx_version sm "
                               "name_at name_bytes flags zero plain_bytes")
PTX, CUBIN = 1, 2
ZSTD_FLAG = 0x8000
CUBIN_HEAD = Entry(CUBIN, 0x101, HEAD.size, 0, 0, 0, 0x10008, SM, 0, 0, ZSTD_FLAG | 0x11, 0, 0)
PTX_9_0 = 0x90000

zstd = ctypes.CDLL("libzstd.so.1")
zstd.ZSTD_compress.restype = zstd.ZSTD_decompress.restype = zstd.ZSTD_compressBound.restype = ctypes.c_size_t


def decompress(data, plain_bytes):
    plain = ctypes.create_string_buffer(plain_bytes)
    if zstd.ZSTD_decompress(plain, ctypes.c_size_t(plain_bytes), data, ctypes.c_size_t(len(data))) != plain_bytes:
        sys.exit("cut_library.py: a module is not compressed as expected")
    return plain.raw


def entry_of(head, between, plain):
    """Returns the bytes of a fat binary's entry. `between` are the bytes of its head that Entry does not name."""
    room = zstd.ZSTD_compressBound(ctypes.c_size_t(len(plain)))
    packed = ctypes.create_string_buffer(room)
    size = zstd.ZSTD_compress(packed, ctypes.c_size_t(room), plain, ctypes.c_size_t(len(plain)), 9)
    padded = (size + 7) & ~7
    head = head._replace(bytes=padded, compressed=size, plain_bytes=len(plain))
    return HEAD.pack(*head) + between + packed.raw[:size] + bytes(padded - size)


def regions(library):
    """Yields (start, bytes of the head, end) of each region of the section .nv_fatbin of an ELF file."""
    table, = struct.unpack_from("<Q", library, 0x28)
    size, count, names = struct.unpack_from("<HHH", library, 0x3A)
    sections = [struct.unpack_from("<IIQQQQIIQQ", library, table + i * size) for i in range(count)]
    text = sections[names][4]
    at, length = next((s[4], s[5]) for s in sections
                      if library[text + s[0]:].split(b"\0", 1)[0] == b".nv_fatbin")
    end = at + length
    while at < end:
        magic, _, head, room = REGION.unpack_from(library, at)
        if magic != MAGIC:
            at += 8
            continue
        yield at, head, at + head + room
        at = (at + head + room + 7) & ~7


def ptx_of(library, start, end):
    """Returns the entry of a region's PTX for SM: its head, the bytes of the head that Entry does not name, its text."""
    at = start
    while at < end:
        head = Entry(*HEAD.unpack_from(library, at))
        data = at + head.head_bytes
        if head.kind == PTX and head.sm == SM and head.flags & ZSTD_FLAG:
            text = decompress(bytes(library[data:data + (head.compressed or head.bytes)]), head.plain_bytes)
            text = re.sub(rb"(?m)^\.version 9\.1", b".version 9.0", text)
            return head._replace(ptx_version=PTX_9_0), bytes(library[at + HEAD.size:data]), text
        at = data + head.bytes
    sys.exit("cut_library.py: a module has no PTX for sm_%d" % SM)


def compile_ptx(ptxas, text, cache):
    """Returns a module's machine code, from the cache if it is there."""
    source = text.rstrip(b"\0")
    path = os.path.join(cache, hashlib.sha256(source).hexdigest() + ".cubin")
    if not os.path.exists(path):
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            with open(os.path.join(folder, "a.ptx"), "wb") as file:
                file.write(source)
            subprocess.run([ptxas, "-arch=sm_%d" % SM, "-O3", "-o", "a.cubin", "a.ptx"], cwd=folder, check=True)
            os.replace(os.path.join(folder, "a.cubin"), path)
    with open(path, "rb") as file:
        return file.read()


def cut(library, ptxas, cache):
    """Keeps each module's PTX for SM, preceded by machine code if the module is in USED."""
    found = [(at, head, end) + ptx_of(library, at + head, end) for at, head, end in regions(library)]
    first = [re.search(rb"\.entry (\w+)", text) for *_, text in found]
    used = [i for i, entry in enumerate(first) if ptxas and entry and USED.search(entry[1])]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        code = dict(zip(used, pool.map(lambda i: compile_ptx(ptxas, found[i][5], cache), used)))
    for i, (at, head, end, ptx_head, between, text) in enumerate(found):
        kept = entry_of(ptx_head, between, text)
        if i in code:
            kept = entry_of(CUBIN_HEAD, b"", code[i]) + kept
        if len(kept) > end - at - head:
            sys.exit("cut_library.py: module %d does not fit its place" % i)
        library[at + head:end] = kept + bytes(end - at - head - len(kept))
        struct.pack_into("<Q", library, at + 8, len(kept))
    return len(found), len(code)


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    package, out = sys.argv[1:3]
    ptxas = sys.argv[3] if len(sys.argv) > 3 else None
    places = {name: os.path.join(folder, name) for folder, _, names in os.walk(package) for name in names}
    missing = [name for name in LIBRARIES + (CUDA_LIBRARY,) if name not in places]
    if missing:
        sys.exit("cut_library.py: %s has no %s" % (package, ", ".join(missing)))
    with open(places[CUDA_LIBRARY], "rb") as file:
        library = bytearray(file.read())
    os.makedirs(out + ".cache", exist_ok=True)
    modules, compiled = cut(library, ptxas, out + ".cache")
    with tempfile.TemporaryDirectory() as folder, tarfile.open(out, "w:xz", preset=6) as archive:
        path = os.path.join(folder, CUDA_LIBRARY)
        with open(path, "wb") as file:
            file.write(library)
        for name in LIBRARIES:
            archive.add(places[name], "llama/" + name)
        archive.add(path, "llama/" + CUDA_LIBRARY)
    print("%s: %d modules, %d compiled, %.1f MB" % (out, modules, compiled, os.path.getsize(out) / 1e6))


if __name__ == "__main__":
    main()
