#!/usr/bin/env python3
"""Times PyTorch for bench_gpu's table: torch_peers.py [--list | --cpu] SPEC [FAMILY]...

  linear  f16 GEMV by torch.nn.functional.linear, for stream_gemv's shapes with Q4_K weights at m = 1. It reads two bytes
          per weight, 3.56 times Q4_K's 144 bytes for 256 weights. Also the GEMMs of 256 and 512 rows of mma_gemm_f16's
          shapes, which are cuBLAS's, with TFLOPS.
  sdpa    decode attention over an f16 cache by torch.nn.functional.scaled_dot_product_attention with enable_gqa, for
          gqa_flash_decoding's shapes.

With FAMILY, only these families have peers.

Inputs are rotated beyond the L2 and timed as in bench_gpu: the calls of some iterations are one CUDA graph, so that
Python takes no part. Times are medians of its replays between events, each after another replay. Errors are parts of
2e-3 sum |w||x| or 2e-3 sum p|v|, checked on a part of each result against float64.

Prints a table like bench_gpu's, a line "FAILED NAME: reason" for each failing call, and "passed N". --list prints names
and sizes, without torch. --cpu tries the script without a GPU, in f32.

Exit status: 0 all right; 1 a wrong result or an error; 77 there is no torch with a GPU.
"""
import configparser
import importlib.util
import itertools
import math
import statistics
import sys
import timeit
from typing import Callable, NamedTuple

L2_TIMES, MOST_COPIES, MOST_LAUNCHES, BATCHES, BATCH_SECONDS = 3, 512, 1024, 31, 1e-3
COPY_RUNS, COPY_BYTES = 10, 1 << 30
SAMPLED_ROWS, TOLERANCE, PROMPT_ROWS = 128, 2e-3, (256, 512)


class Peer(NamedTuple):
    name: str
    bytes: int
    flops: int # 0: not computed
    sizes: list[tuple] # bytes of the inputs
    run: Callable  # (functional, *inputs)
    error: Callable  # (result, *inputs), relative to the sum of absolute terms


def number(text):
    """4096, 4k, 1M, 2^12"""
    base, _, exponent = text.strip().partition("^")
    scale = {"k": 2**10, "M": 2**20}.get(base[-1], 1)
    return (int(base[:-1]) * scale if scale > 1 else int(base)) ** int(exponent or 1)


def numbers(text):
    """A list of numbers and ranges: 1k, 2k..8k:2k"""
    for item in text.split(","):
        ends, _, step = item.partition(":")
        first, _, last = ends.partition("..")
        yield from range(number(first), number(last or first) + 1, number(step or "1"))


def is_plain_q4_k(section):
    return ("q4_k" in section["weights"].replace(",", " ").split()
            and 1 in numbers(section.get("m", "1")))


def linear(k, n, m=1):
    rows = sorted({*range(min(SAMPLED_ROWS, n)), *range(max(0, n - SAMPLED_ROWS), n)})

    def error(result, x, w):
        x, w = x.double(), w[rows].double()
        return ((result[:, rows].double() - x @ w.T).abs() / (x.abs() @ w.abs().T)).max().item()

    many = m > 1
    return Peer(f"linear_f16_k{k}_n{n}" + f"_m{m}" * many, 2 * (k * n + m * k + m * n),
                2 * m * k * n * many, [(m, k), (n, k)],
                lambda functional, x, w: functional.linear(x, w), error)


def attention(m, heads, kv_heads, dim, length):
    ratio, cache = heads // kv_heads, (m, kv_heads, length, dim)

    def error(result, q, k, v): # of the last sequence's last KV head
        q, k, v = q[-1, -ratio:, 0].double(), k[-1, -1].double(), v[-1, -1].double()
        p = (q @ k.T / math.sqrt(dim)).softmax(-1)
        return ((result[-1, -ratio:, 0].double() - p @ v).abs() / (p @ v.abs())).max().item()

    return Peer(f"sdpa_d{dim}_h{heads}_kv{kv_heads}_s{length}_m{m}_f16",
                2 * m * dim * 2 * (kv_heads * length + heads), 0, [(m, heads, 1, dim), cache, cache],
                lambda functional, q, k, v: functional.scaled_dot_product_attention(
                    q, k, v, enable_gqa=True), error)


def peers(path, families):
    """Yields every peer once."""
    found = {peer.name: peer for peer in peers_of_sections(path, families)}
    return found.values()


def peers_of_sections(path, families):
    spec = configparser.ConfigParser(comment_prefixes=";", inline_comment_prefixes=";")
    spec.read_file(open(path, encoding="utf-8"))
    for title in spec.sections():
        section, family = spec[title], title.split(":")[0]
        if families and family not in families:
            continue
        if family == "stream_gemv" and is_plain_q4_k(section):
            for shape in section["shape"].split(","):
                yield linear(*map(number, shape.split("x")))
        if family == "mma_gemm_f16":
            for shape in section["shape"].split(","):
                for rows in PROMPT_ROWS:
                    yield linear(*map(number, shape.split("x")), rows)
        if family == "gqa_flash_decoding" and "f16" in section["kv_type"].replace(",", " ").split():
            keys = "m", "num_heads", "num_kv_heads", "head_dim", "max_seq_len"
            for sizes in itertools.product(*(numbers(section[key]) for key in keys)):
                yield attention(*sizes)


def seconds(torch, cuda, work):
    if not cuda:
        return timeit.timeit(work, number=1)
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    work() # keeps the device busy until the host has submitted the timed work
    start.record()
    work()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1e3


def copy_speed(torch, cuda):
    size = COPY_BYTES if cuda else COPY_BYTES >> 10
    a, b = (torch.ones(size, dtype=torch.uint8, device="cuda" if cuda else "cpu") for _ in range(2))
    return 2 * size / min(seconds(torch, cuda, lambda: a.copy_(b)) for _ in range(COPY_RUNS))


def graph_of(torch, turn, turns):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(turns):
            turn()
    return graph.replay


def measure(torch, cuda, peer):
    """Returns seconds per call, the error, and True if the inputs fit the L2."""
    l2_bytes = torch.cuda.get_device_properties(0).L2_cache_size if cuda else 0
    count = min(L2_TIMES * l2_bytes // peer.bytes + 2, MOST_COPIES)
    kind = {"device": "cuda", "dtype": torch.float16} if cuda else {"dtype": torch.float32}
    copies = [[torch.randn(*size, **kind) for size in peer.sizes] for _ in range(count)]
    turn = lambda: [peer.run(torch.nn.functional, *inputs) for inputs in copies]
    error = peer.error(turn()[0], *copies[0])
    batch, turns = turn, 1
    if cuda:
        one_turn = seconds(torch, cuda, graph_of(torch, turn, 1))
        turns = max(1, min(int(BATCH_SECONDS / one_turn), MOST_LAUNCHES // count))
        batch = graph_of(torch, turn, turns)
    times = [seconds(torch, cuda, batch) / (turns * count) for _ in range(BATCHES)]
    return statistics.median(times), error, count * peer.bytes < L2_TIMES * l2_bytes


def main(option, path, *families):
    if option == "--list":
        for peer in peers(path, families):
            print(f"{peer.name} {peer.bytes / 1e6:.1f} MB")
        return 0
    cuda, right = option != "--cpu", True
    if not importlib.util.find_spec("torch"):
        return 77
    import torch
    if cuda and not torch.cuda.is_available():
        return 77
    copy, passed = copy_speed(torch, cuda), 0
    print(f"# torch {torch.__version__}, copy {copy / 1e9:.1f} GB/s; linear reads f16 weights, 3.56 times "
          "the bytes of Q4_K.\n\nPyTorch:\n\n"
          "| kernel | MB | us | GB/s | of copy % | TFLOPS | error | remark |\n"
          "|---|---|---|---|---|---|---|---|")
    for peer in peers(path, families):
        name = f"torch: {peer.name}"
        try:
            took, error, in_l2 = measure(torch, cuda, peer)
        except Exception as e: # several kinds: no memory, no such function in this torch
            print(f"| {name} | | | | | | | FAILED |\nFAILED {name}: {' '.join(str(e).split())}",
                  flush=True)
            right = False
            continue
        wrong = not error <= TOLERANCE
        right &= not wrong
        passed += not wrong
        tflops = f" {peer.flops / took / 1e12:.1f}" if peer.flops else ""
        print(f"| {name} | {peer.bytes / 1e6:.1f} | {took * 1e6:.2f} "
              f"| {peer.bytes / took / 1e9:.1f} | {100 * peer.bytes / took / copy:.1f} |{tflops} "
              f"| {error / TOLERANCE:.2f} | {'FAILED' if wrong else 'in L2' if in_l2 else ''} |",
              flush=True)
        if wrong:
            print(f"FAILED {name}: {error / TOLERANCE:.3g} times the allowed error", flush=True)
    print(f"\npassed {passed}")
    return 0 if right else 1


if __name__ == "__main__":
    arguments = sys.argv[1:]
    option = arguments.pop(0) if arguments[:1] in (["--list"], ["--cpu"]) else None
    if not arguments or arguments[0].startswith("--"):
        sys.exit("usage: torch_peers.py [--list | --cpu] SPEC [FAMILY]...")
    sys.exit(main(option, *arguments))
