#!/usr/bin/env python3
"""Runs the starter server on a small model of random weights, with many requests at once.

    run_server.py PTXGEN LIBCUDA_FOLDER SOURCE

Requests have random lengths; some are cancelled, too long, or not JSON. Each must be answered, with the text that it has
alone; with precision = f32 all steps round alike. The cache has too few pages for all, so that requests are preempted, and all pages must be unused at the end.
SEED=N sets the seed. PTXGEN_TEST_TIER=full runs 200 requests, 32 at a time, instead of 24, 12 at a time.
"""
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "engine"))
from run_small import utf8proc  # noqa: E402

ROOM, PAGE, SEQUENCES, FIRST_PIECE, VOCAB = 64, 16, 16, 259, 299
COUNT, AT_ONCE = (200, 32) if os.environ.get("PTXGEN_TEST_TIER") == "full" else (24, 12)
MALFORMED = ["", "nonsense", "[1, 2]", '{"id": 1', "7", '{"cancel": "unknown"}', '{"id": 1, "id": 2, "prompt": [1]}', "\u00ff"]
WRONG = [({"prompt": []}, "the prompt has no tokens"), ({}, "prompt is neither text nor a list of tokens"),
         ({"prompt": [1, VOCAB + 100]}, "item 1 of the prompt is not a token"),
         ({"prompt": [1], "temperature": -1}, "temperature is not a number from 0 to 1000000"),
         ({"prompt": [1], "top_k": 0.5}, "top_k is not a whole number"),
         ({"prompt": [1], "top_p": "1"}, "top_p is not a number from 0 to 1"),
         ({"prompt": [1], "tokens": 3}, "unknown key tokens"),
         ({"prompt": [1] * (ROOM + 1)}, "the prompt has 65 tokens, but a sequence has room for 64")]


class Tools:
    """The server, and the result so far."""

    def __init__(self, ptxgen, libcuda, source):
        self.ptxgen, self.libcuda = os.path.abspath(ptxgen), os.path.abspath(libcuda)
        self.work = tempfile.TemporaryDirectory(prefix="ptxgen_server_")
        self.failed = False
        self.model, folder = self.path("model.gguf"), self.path("server")
        self.do([sys.executable, os.path.join(source, "tests", "models", "make_small.py"), "--layers", "1", self.model])
        self.do([self.ptxgen, "-q", "--init", "server", "--out", folder, "--from-gguf", self.model])
        spec = os.path.join(folder, "model.ini")
        with open(spec) as file:
            text = file.read()
        self.judge("the server's spec:\n" + text, "page         = 64 " in text and "sequences    = 16 " in text)
        with open(spec, "w") as file:
            file.write(text.replace("page         = 64", "precision    = f32\npage         = %d" % PAGE))
        self.do([self.ptxgen, "-q", "--spec", spec, "--out", folder])
        sources = sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".c"))
        self.program = self.path("program")
        self.do(["cc", "-O0", "-I" + folder, "-o", self.program, *sources, "-ljansson", "-lpcre2-8", *utf8proc(), "-ldl"])

    def path(self, name):
        return os.path.join(self.work.name, name)

    def do(self, command):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit("FAILED: %s\n%s%s" % (" ".join(command), done.stdout, done.stderr))

    def judge(self, what, right):
        self.failed |= not right
        if not right:
            print("FAILED: " + what)

    def start(self, *options):
        return subprocess.Popen([self.program, self.model, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, env=dict(os.environ, LD_LIBRARY_PATH=self.libcuda,
                                                                 PTXGEN_CUDA_LEAKS="1"))

    def end(self, process):
        """Waits for a server, which must have given back all pages and memory. Returns the numbers that it prints."""
        said = process.communicate(timeout=300)[1].decode()
        numbers = [line for line in said.splitlines() if " answers, " in line]
        words = numbers[0].replace(":", "").replace(",", "").split() if numbers else []
        self.judge("a clean end: status %d, %s" % (process.returncode, said),
                   process.returncode == 0 and len(words) == 17 and words[14] == words[16] and
                   "not freed: 0 bytes" in said and "warning" not in said)
        return numbers[0] if numbers else ""

    def alone(self, request):
        """Returns the text of a request in a server of its own, and its last answer."""
        answers = [json.loads(line) for line in self.all_answers([request])]
        return "".join(answer.get("text", "") for answer in answers), answers[-1]

    def all_answers(self, requests, *options):
        process = self.start(*options)
        process.stdin.write("".join(json.dumps(request) + "\n" for request in requests).encode())
        process.stdin.close()
        process.stdin = None
        lines = process.stdout.read().decode().splitlines()
        self.end(process)
        return lines


def random_requests(chance):
    requests = []
    for number in range(COUNT):
        prompt = [1] + [chance.randrange(FIRST_PIECE, VOCAB) for _ in range(chance.randrange(1, 40))]
        if requests and chance.randrange(2): # a prompt that begins like another one
            prompt = chance.choice(requests)["prompt"][:chance.randrange(2, 40)] + prompt[1:20]
        requests.append({"id": [number, None], "prompt": prompt[:ROOM], "max_tokens": chance.randrange(1, 24)})
        if chance.randrange(2):
            requests[-1].update(temperature=2, top_k=0, top_p=1, min_p=0, seed=chance.randrange(1000))
    return requests


class Dialog:
    """Answers of a server by id: texts and ends; lines that are no requests."""

    def __init__(self):
        self.texts, self.ends, self.errors = {}, {}, []

    def read(self, tools, line):
        """Returns the number of a request that has ended, or that got its first text."""
        answer = json.loads(line)
        if "id" not in answer:
            self.errors.append(answer["error"])
            return None, None
        number = answer["id"][0]
        tools.judge("an answer after the end of request %d" % number, number not in self.ends)
        if "done" in answer:
            self.ends[number] = answer
            return number, None
        is_first = number not in self.texts
        self.texts[number] = self.texts.get(number, "") + answer["text"]
        return None, number if is_first else None


def check_company(tools, chance):
    requests = random_requests(chance)
    wrong = [dict(what, id=[COUNT + i]) for i, (what, _) in enumerate(WRONG)]
    cancelled = set(chance.sample(range(COUNT), COUNT // 8))
    lines = [json.dumps(request) for request in requests + wrong] + MALFORMED
    chance.shuffle(lines)
    process, dialog, running = tools.start("--pages", "20"), Dialog(), 0
    start = time.monotonic()

    def send(line):
        process.stdin.write((line + "\n").encode("latin1"))
        process.stdin.flush()

    while lines or running:
        while lines and running < AT_ONCE:
            line = lines.pop()
            running += line not in MALFORMED
            send(line)
        if not running:
            break
        ended, begun = dialog.read(tools, process.stdout.readline())
        running -= ended is not None
        if begun in cancelled:
            send(json.dumps({"cancel": [begun, None]}))
    process.stdin.close()
    process.stdin = None
    for line in process.stdout:
        dialog.read(tools, line)
    numbers = tools.end(process)
    print("%d requests, %d at a time, in %.1f s: %s" % (COUNT, AT_ONCE, time.monotonic() - start, numbers))
    late = sum(error == "no request has the id to cancel" for error in dialog.errors) - 1 # a request may end before
    tools.judge("errors of lines: %s" % dialog.errors, len(dialog.errors) - late == len(MALFORMED))
    tools.judge("requests are preempted and share tokens", " 0 preemptions" not in numbers and " 0 tokens s" not in numbers)
    for request, (_, why) in zip(wrong, WRONG):
        end = dialog.ends.get(request["id"][0], {})
        tools.judge("%s: %s" % (why, end), end.get("done") == "error" and why in end["error"])
    for number, request in enumerate(requests):
        text, end = tools.alone(request)
        found, found_end = dialog.texts.get(number, ""), dialog.ends.get(number, {})
        if found_end.get("done") == "cancelled":
            begun = found.rstrip("\ufffd") # an incomplete character
            tools.judge("the beginning of request %d" % number, number in cancelled and text.startswith(begun))
        else:
            tools.judge("request %d: %s, %s; alone %s, %s" % (number, found, found_end, text, end),
                        (found, found_end) == (text, end))


def check_limits(tools):
    requests = [{"id": [number], "prompt": [1, FIRST_PIECE + number], "max_tokens": 2} for number in range(8)]
    dialog = Dialog()
    for line in tools.all_answers(requests, "--queue", "2"):
        dialog.read(tools, line)
    full = sum("queue is full" in end.get("error", "") for end in dialog.ends.values())
    tools.judge("a queue of 2: %s" % dialog.ends, len(dialog.ends) == 8 and full == 6)
    answers = tools.all_answers([{"prompt": "x" * (2 << 20)}, {"prompt": "the", "max_tokens": 1}])
    tools.judge("a line that is too long: %s" % answers, "longer than 1 MiB" in answers[0] and
                json.loads(answers[-1]) == {"id": None, "done": "length", "tokens": 1})


def check_socket(tools):
    """Two clients of a socket: one leaves, and SIGTERM cancels the other one's request."""
    path = tools.path("socket")
    process = tools.start("--socket", path, "--temp", "2")
    while not os.path.exists(path) and process.poll() is None:
        time.sleep(0.02)
    clients = []
    for number in range(2):
        clients.append(socket.socket(socket.AF_UNIX))
        clients[-1].connect(path)
        clients[-1].sendall(json.dumps({"id": [number], "prompt": "the", "max_tokens": 0}).encode() + b"\n")
    files = [client.makefile() for client in clients]
    texts = [json.loads(file.readline()) for file in files]
    tools.judge("texts of two clients: %s" % texts, [answer["id"] for answer in texts] == [[0], [1]])
    files[0].close()
    clients[0].close()
    files[1].readline()
    process.send_signal(signal.SIGTERM)
    answers = [json.loads(line) for line in files[1]]
    tools.judge("SIGTERM: %s" % answers, answers[-1].get("done") == "cancelled")
    tools.end(process)
    tools.judge("the socket is still there", not os.path.exists(path))


def main():
    seed = int(os.environ.get("SEED", "1"))
    tools = Tools(*sys.argv[1:4])
    check_company(tools, random.Random(seed))
    check_limits(tools)
    check_socket(tools)
    if tools.failed:
        print("the seed is %d" % seed)
    sys.exit(tools.failed)


if __name__ == "__main__":
    main()
