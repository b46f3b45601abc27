#!/usr/bin/env python3
"""Runs the starter engine on a small model of random weights, and checks its text and its error messages.

    run_small.py PTXGEN LIBCUDA_FOLDER SOURCE

The engine is made by --init engine and the compiler, without Meson.
"""
import ctypes
import os
import pty
import subprocess
import sys
import tempfile

PROMPT = "once upon a time"


def utf8proc():
    """Returns the linker's options for the library that composes text, if it is installed."""
    found = subprocess.run(["pkg-config", "--exists", "libutf8proc"]).returncode == 0
    return ["-lutf8proc"] if found else []


class Engine:
    """A model, the engine of its header, and the result so far."""

    def __init__(self, ptxgen, libcuda, source):
        self.ptxgen, self.libcuda = os.path.abspath(ptxgen), os.path.abspath(libcuda)
        self.maker = os.path.join(os.path.abspath(source), "tests", "models", "make_small.py")
        self.work = tempfile.TemporaryDirectory(prefix="ptxgen_engine_")
        self.folder = self.path("starter")
        self.failed = False
        self.model = self.make_model("model.gguf")
        self.do([self.ptxgen, "-q", "--init", "engine", "--out", self.folder, "--from-gguf", self.model])
        self.program = self.build("engine", targets="sm_80, sm_90")

    def path(self, name):
        return os.path.join(self.work.name, name)

    def do(self, command):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit("FAILED: %s\n%s%s" % (" ".join(command), done.stdout, done.stderr))

    def make_model(self, name, *options):
        self.do([sys.executable, self.maker, *options, self.path(name)])
        return self.path(name)

    def build(self, name, without=None, **changes):
        """Builds the engine from model.ini, with some keys changed or left out."""
        with open(os.path.join(self.folder, "model.ini")) as file:
            spec = "".join(line for line in file if not without or not line.startswith(without))
        for key, value in changes.items():
            spec += "%s = %s\n" % (key, value) if "\n" + key not in spec else ""
            spec = "".join("%s = %s\n" % (key, value) if line.startswith(key) else line
                           for line in spec.splitlines(keepends=True))
        with open(self.path("spec.ini"), "w") as file:
            file.write(spec)
        self.do([self.ptxgen, "-q", "--spec", self.path("spec.ini"), "--out", self.work.name])
        sources = [os.path.join(self.folder, file) for file in os.listdir(self.folder) if file.endswith(".c")]
        # Not optimized: the header is large, and the run time is the emulator's.
        self.do(["cc", "-O0", "-I" + self.work.name, "-o", self.path(name), *sorted(sources), "-lpcre2-8",
                 *utf8proc(), "-ldl"])
        return self.path(name)

    def run(self, *arguments, program=None, driver=True, **environment):
        path = self.libcuda if driver else self.path("no_driver")
        return subprocess.run([program or self.program, *arguments], capture_output=True,
                              env=dict(os.environ, LD_LIBRARY_PATH=path, **environment))

    def fail(self, what, done):
        self.failed = True
        print("FAILED: %s: status %d\n%s%s" % (what, done.returncode, done.stdout.decode(errors="replace"),
                                               done.stderr.decode(errors="replace")))

    def text(self, *options, **environment):
        """Returns the text after the prompt, which must be all of standard output, and standard error."""
        done = self.run(self.model, PROMPT, *options, **environment)
        if done.returncode or not done.stdout.startswith(PROMPT.encode()) or not done.stdout.endswith(b"\n"):
            self.fail(" ".join(options), done)
        return done.stdout[len(PROMPT):-1], done.stderr.decode()

    def judge(self, what, right):
        self.failed |= not right
        if not right:
            print("FAILED: " + what)

    def refused(self, said, *arguments, status=1, printed=b"", **how):
        """Checks that standard error contains the text, and that standard output has nothing unexpected."""
        done = self.run(*arguments, **how)
        if done.returncode != status or said not in done.stderr.decode() or done.stdout != printed:
            self.fail("'%s' is not said" % said, done)


def check_text(e):
    greedy, said = e.text("-n", "8", PTXGEN_CUDA_LEAKS="1")
    e.judge("the engine leaves memory behind: " + said, "not freed: 0 bytes" in said)
    e.judge("what it says of its work: " + said, " 64 positions, 15 launches per token\nprompt 13 tokens in " in said and
            ", 8 tokens at " in said)
    e.judge("no text", len(greedy) > 0)
    e.judge("fewer tokens begin otherwise", greedy.startswith(e.text("-n", "4")[0]))
    e.judge("the likeliest of one is another", e.text("-n", "8", "--temp", "2", "--top-k", "1")[0] == greedy)
    e.judge("without overlap the text is another", e.text("-n", "8", "--no-overlap", "1")[0] == greedy)
    e.judge("on an older GPU the text is another", e.text("-n", "8", PTXGEN_CUDA_TARGET="sm_80")[0] == greedy)
    by_chance = [e.text("-n", "8", "--temp", "2", "--top-k", "0", "--top-p", "1", "--min-p", "0", "--seed", seed)[0]
                 for seed in ("1", "1", "2")]
    e.judge("one seed, two texts", by_chance[0] == by_chance[1])
    e.judge("another seed, the same text", by_chance[0] != by_chance[2])
    e.judge("--temp changes nothing", by_chance[0] != greedy)
    was = e.make_model("only.gguf", "--only", "262")
    done = e.run(was, PROMPT, "-n", "3", "--temp", "2")
    e.judge("a suppressed token is printed", done.stdout.decode() == PROMPT + " was was was\n")
    # There are 64 positions. The prompt takes 13, and the last printed token needs none.
    all_of_it, said = e.text("-n", "0")
    e.judge("not as many tokens as there is room for: " + said, ", 52 tokens at " in said)
    e.judge("all tokens begin otherwise", all_of_it.startswith(greedy))


def check_models(e):
    """Models that differ from the header's, and files that are not GGUF or not complete."""
    def other(said, *options):
        e.refused(said, e.make_model("other.gguf", *options), PROMPT)
    other("other.gguf has 3 layers; the header was made for 2", "--layers", "3")
    other("other.gguf has 1 layers; the header was made for 2", "--layers", "1", "--further", "1")
    done = e.run(e.make_model("further.gguf", "--further", "1"), PROMPT, "-n", "8")
    e.judge("layers behind the decoder's change the text",
            not done.returncode and done.stdout == e.run(e.model, PROMPT, "-n", "8").stdout)
    # Models with the same tensors that would give wrong results.
    other("was made with llama.rope.freq_base = 500000, the header with 10000", "--key", "rope.freq_base=5e5")
    other("was made with llama.attention.layer_norm_rms_epsilon = 0.001", "--key",
          "attention.layer_norm_rms_epsilon=1e-3")
    other("was made with llama.attention.head_count = 8", "--key", "attention.head_count=8",
          "--key", "attention.head_count_kv=4", "--key", "rope.dimension_count=8")
    other("was made with llama.rope.scaling.factor = 4", "--key", "rope.scaling.factor=4.0")
    other("was made with llama.rope.scaling.type = yarn, the header with linear|none", "--key",
          'rope.scaling.type="yarn"')
    other("was made with llama.attention.scale = 0.5, the header with 0", "--key", "attention.scale=0.5")
    other("has llama.attention.sliding_window, which the header's model does not have", "--key",
          "attention.sliding_window=8")
    other("has llama.logit_scale, which the header's model does not have", "--key", "logit_scale=2.0")
    other("has no llama.attention.layer_norm_rms_epsilon; the header was made with 1e-05", "--key",
          "attention.layer_norm_rms_epsilon=")
    for tensor in "rope_freqs.weight", "blk.0.attn_q.bias", "blk.1.post_attention_norm.weight", "blk.2.attn_norm.weight":
        other("has %s, which the header's model does not have" % tensor, "--extra", tensor)
    # Defaults that are stated or left out, and other names, leave the model as it is.
    for options in ("rope.freq_base=1e4", "attention.key_length=16", "rope.scaling.type=\"linear\"",
                    "rope.scaling.type=\"none\"",
                    "attention.head_count_kv=[2, 2]", "context_length=128", "vocab_size=300",
                    "rope.scaling.attn_factor=1.0", "rope.dimension_count=", "nextn_predict_layers=", "expert_count=0"):
        done = e.run(e.make_model("same.gguf", "--key", options), PROMPT, "-n", "1")
        e.judge("the same model with %s is refused: %s" % (options, done.stderr.decode()), not done.returncode)
    done = e.run(e.make_model("other.gguf", "--key", "rope.freq_base=5e5"), PROMPT, "-n", "1", "--any-model", "1")
    if done.returncode or b"was made with llama.rope.freq_base" not in done.stderr:
        e.fail("--any-model", done)
    # Headers of a spec that contradicts the file.
    e.refused("the header's spec has rope_base = 500000, not 10000", e.model, PROMPT, program=e.build("edited", rope_base="5e5"))
    e.refused("the header's spec has llama.rope.scaling.type = 'odd' is unknown", e.model, PROMPT,
              program=e.build("odd", **{"metadata.rope.scaling.type": "odd"}))
    e.refused("cannot be compared: the header's spec has no metadata.* keys", e.model, PROMPT,
              program=e.build("bare", without="metadata."))
    other("has architecture qwen2; the header was made for llama", "--architecture", "qwen2")
    other("token_embd.weight is f32 with rows of 64; the header was made for q8_0, 300 rows of 64", "--type", "F32")
    other("tokenizer.ggml.model", "--tokenizer", "bert")
    # Control characters in a file: ESC, and U+009B as UTF-8.
    for option in "--architecture", "--tokenizer":
        for control in "\x1b[31mred\x07", "\u009b31mred\n":
            done = e.run(e.make_model("other.gguf", option, "x" + control), PROMPT)
            text = done.stderr.decode()
            if done.returncode != 1 or any(c < " " or "\x7f" <= c < "\xa0" for c in text[:-1]):
                e.fail("a control character of %s" % option, done)
    e.refused("no token sampled: a logit is not a number", e.make_model("nan.gguf", "--nan"), PROMPT, printed=PROMPT.encode())
    with open(e.model, "rb") as file:
        whole = file.read()
    for length, said in (len(whole) - 64, "output.weight"), (2000, "byte "), (0, "byte 0"):
        with open(e.path("cut.gguf"), "wb") as file:
            file.write(whole[:length])
        e.refused(said, e.path("cut.gguf"), PROMPT)
    e.refused("none.gguf: No such file", e.path("none.gguf"), PROMPT)


def check_long_and_harmful_tokens(e):
    """Tokens of any length are printed, without control characters on a terminal."""
    long = e.make_model("long.gguf", "--answer", 1500 * "a" + "Z\u00e4")
    done = e.run(long, PROMPT, "-n", "2")
    e.judge("a long token is cut", done.stdout == PROMPT.encode() + 2 * (1500 * b"a" + b"Z\xc3\xa4") + b"\n")
    harmful = e.make_model("harmful.gguf", "--answer", "\x1b[31m\u009b\u00e4\n")
    done = e.run(harmful, PROMPT, "-n", "1")
    e.judge("a file gets other bytes", done.stdout == PROMPT.encode() + b"\x1b[31m\xc2\x9b\xc3\xa4\n\n")
    leader, follower = pty.openpty()
    subprocess.run([e.program, harmful, PROMPT, "-n", "1"], stdout=follower, stderr=subprocess.DEVNULL,
                   env=dict(os.environ, LD_LIBRARY_PATH=e.libcuda))
    os.close(follower)
    shown = os.read(leader, 4096).replace(b"\r", b"")
    e.judge("a terminal gets %r" % shown, shown == PROMPT.encode() + b"?[31m??\xc3\xa4\n\n")


def check_shrinking_file(e):
    """The file is truncated while it is mapped, before the driver copies its weights."""
    model = e.make_model("shrinking.gguf")
    process = subprocess.Popen([e.program, model, PROMPT], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env=dict(os.environ, LD_LIBRARY_PATH=e.libcuda))
    mapped = False
    while not mapped and process.poll() is None:
        with open("/proc/%d/maps" % process.pid) as maps:
            mapped = model in maps.read()
    os.truncate(model, 0)
    said = process.communicate()[1].decode()
    e.judge("a truncated file: status %d, %s" % (process.returncode, said),
            process.returncode == 1 and "was truncated while it was read" in said)


def check_machine(e):
    """A missing driver, no GPU, and too little memory."""
    e.refused("NO_BINARY_FOR_GPU", e.model, PROMPT, PTXGEN_CUDA_TARGET="sm_75")
    large = e.build("large", max_seq_len=2 ** 24, kv_type="f32", sequences=4)
    e.refused("not enough GPU memory for 0.000 GiB of weights and 32.000 GiB of cache", e.model, PROMPT, program=large)
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        e.refused("ptxgen run", e.model, PROMPT, driver=False)


def check_usage(e):
    e.refused("the prompt has 103 tokens, but max_seq_len is 64: increase it", e.model, "x " * 50 + "y")
    for arguments in (), (e.model,):
        e.refused("usage: engine MODEL.gguf PROMPT", *arguments, status=2)
    e.refused("-n needs a value", e.model, PROMPT, "-n", status=2)
    e.refused("unexpected argument more", e.model, PROMPT, "more", status=2)
    for unknown in "--foo", "-x", "--seed=1":
        e.refused("unknown option " + unknown, e.model, PROMPT, unknown, "1", status=2)
    for value in "x", "", "-1", "nan", "1e10":
        e.refused("--temp %s is not a number from 0 to 1000000" % value, e.model, PROMPT, "--temp", value, status=2)
    for option in "-n", "--top-k", "--seed", "--no-overlap":
        e.refused("%s 0.5 is not a whole number from 0 to " % option, e.model, PROMPT, option, "0.5", status=2)
    for option in "--top-p", "--min-p":
        e.refused("%s 1.5 is not a number from 0 to 1" % option, e.model, PROMPT, option, "1.5", status=2)
    for arguments in ("-h",), ("--help",), (e.model, "--help"), (e.model, PROMPT, "-n", "1", "-h"):
        done = e.run(*arguments)
        if done.returncode or done.stderr or not done.stdout.startswith(b"usage: engine MODEL.gguf PROMPT"):
            e.fail("help", done)
    done = e.run(e.model, "-n", "1", "--", "-n")
    if done.returncode or not done.stdout.startswith(b"-n"):
        e.fail("a prompt that starts with '-'", done)
    done = subprocess.run("'%s' '%s' x -n 1 >/dev/full" % (e.program, e.model), shell=True, capture_output=True,
                          env=dict(os.environ, LD_LIBRARY_PATH=e.libcuda))
    if done.returncode != 1 or b"cannot write the text" not in done.stderr:
        e.fail("a full disk", done)


def main():
    e = Engine(*sys.argv[1:4])
    check_text(e)
    check_models(e)
    check_long_and_harmful_tokens(e)
    check_shrinking_file(e)
    check_machine(e)
    check_usage(e)
    sys.exit(e.failed)


if __name__ == "__main__":
    main()
