#!/usr/bin/env python3
"""Runs each block of the manual pages as it is printed: manual.py SOURCE BUILD, with PTXGEN set.

- A block whose lines begin with "$" is run, command by command, with the installed ptxgen on PATH. The lines after a
  command are all that it prints. White space may differ, except after --list and --help-family. An error in them means
  that the command fails.
- A block after a line ".Pa FILE :" is that file. Build files are run.
- A block that begins with a section is a spec.
- C of ptxgen-header is compiled. What it shows of a miss is compared.

Each section of a page has a folder with a small kernels.ini. A block whose tool is missing is skipped. The output of
--man must equal that of man, and the tables must name all families, formats and keys.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

SMALL_SPEC = "[ptxgen]\nprefix = llama\n[f32_gemv]\nk = 256\nn = 1..8\n"
LAYOUTS = ("0 .. head_dim-1", "word 0", "experts in use", "name     GGUF type")  # tables, which nothing can run
BUILDS = {"meson.build": ["meson setup meson && ninja -C meson && meson/engine"],
          "CMakeLists.txt": ["cmake -G Ninja -B ninja && cmake --build ninja && ninja/engine",
                             "cmake -G 'Unix Makefiles' -B make && cmake --build make && make/engine"],
          "Makefile": ["make && make -q && ./engine"]}

source, build = sys.argv[1:3]
ptxgen = os.environ["PTXGEN"]
os.environ["PATH"] += ":/usr/local/cuda/bin"
failures, skipped, counts = [], [], {}


def fail(text):
    print("FAILED: " + text)
    failures.append(text)


def plain(text):
    """Text without white space, and with plain quotes, dashes and brackets."""
    for found, wanted in (("‘’", "'"), ("“”", '"'), ("−‐–—", "-"), ("⟨", "<"), ("⟩", ">")):
        text = re.sub("[%s]" % found, wanted, text)
    return "".join(text.split())


def run(command, folder, **options):
    """Runs a list of words, or a text in bash. Returns the process; its stdout has both streams."""
    words = ["bash", "-c", command] if isinstance(command, str) else command
    return subprocess.run(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", **options)


class Block:
    """A literal block of a page: its text, section and preceding line."""

    def __init__(self, page, section, before, lines):
        self.page, self.section, self.before = page, section, before
        self.text = "".join(re.sub(r"\\&", "", line).replace("\\e", "\\") + "\n" for line in lines)

    def commands(self):
        """Yields pairs of a command and its output."""
        for part in ("\n" + self.text).split("\n$ ")[1:]:
            command, _, output = part.partition("\n")
            yield command, output


def blocks(page, mdoc):
    section, before, lines = "", "", None
    for line in mdoc.splitlines():
        if line.startswith(".Bd"):
            lines = []
        elif line == ".Ed":
            yield Block(page, section, before, lines)
            lines = None
        elif lines is not None:
            lines.append(line)
        else:
            before = line
            section = line[4:] if line.startswith(".Sh ") else section


def install(scratch):
    """Installs into a folder and puts ptxgen on PATH. Returns true if its ptxgen.pc is relocatable."""
    root, copy = os.path.join(scratch, "installed"), os.path.join(scratch, "copy")
    staged = run(["bash", "-c", '. "$0/tests/stage.sh"; stage "$1" "$2" "$3"', source, build, root, copy], scratch)
    if staged.returncode:
        sys.exit(staged.stdout)
    folder = next(at for at, _, names in os.walk(root) if at.endswith("/bin") and "ptxgen" in names)
    prefix = os.path.dirname(folder)
    packages = os.path.join(prefix, "share", "pkgconfig")
    os.environ.pop("LD_LIBRARY_PATH", None)
    os.environ.update(PATH=folder + ":" + os.environ["PATH"], PKG_CONFIG_PATH=packages, CMAKE_PREFIX_PATH=prefix)
    with open(os.path.join(packages, "ptxgen.pc"), encoding="utf8") as file:
        return "pcfiledir" in file.read()


def missing_tool(command, can_move):
    """Returns a tool that a command needs and that is missing, or None."""
    if "pkg-config" in command and not can_move:
        return "a relocatable ptxgen.pc"
    if "ptxgen run" in command and not os.path.exists(os.path.join(build, "src/libcuda/libcuda.so.1")):
        return "libcuda"
    needs = re.findall(r"\b(meson|ninja|cmake|make|cc|pkg-config)\b", command)
    if re.search(r"--validate|--emit-ninja|checks.ninja", command):
        needs.append("ptxas")
    return next((tool for tool in needs if not shutil.which(tool)), None)


def run_commands(block, folder, can_move):
    """Runs the commands of a block. Returns the folder in which they end."""
    for command, shown in block.commands():
        missing = missing_tool(command, can_move)
        if not missing and re.search("(engine|server)/build", command) and not os.path.exists(os.path.join(folder, "model.gguf")):
            missing = "a model"
        if missing:
            skipped.append("%s: %s needs %s" % (block.page, command, missing))
            continue
        counts["commands"] = counts.get("commands", 0) + 1
        done = run(command + '\nstatus=$?\npwd >"$HERE"\nexit $status', folder,
                   env=dict(os.environ, HERE=folder + "/.here"))
        if (done.returncode != 0) != bool(re.search(r"\berror: |CUDA error", shown)):
            fail("%s: %s: status %d\n%s" % (block.page, command, done.returncode, done.stdout))
        exact = bool(re.fullmatch(r"ptxgen --(list|help-family \w+)", command))
        counts["exact outputs"] = counts.get("exact outputs", 0) + exact
        if shown and (shown != done.stdout if exact else plain(shown) != plain(done.stdout)):
            fail("%s: %s prints\n%s\nnot\n%s" % (block.page, command, done.stdout, shown))
        with open(folder + "/.here", encoding="utf8") as file:
            folder = file.read().strip()
    return folder


def run_file(block, name, folder, can_move):
    with open(os.path.join(folder, name), "w", encoding="utf8") as file:
        file.write(block.text)
    for command in BUILDS.get(name, []):
        missing = missing_tool(command + (" pkg-config" if name != "CMakeLists.txt" else ""), can_move)
        if missing:
            skipped.append("%s: %s needs %s" % (block.page, name, missing))
            continue
        done = run(command, folder)
        if done.returncode or not done.stdout.endswith("8 kernels\n"):
            fail("%s: %s: %s\n%s" % (block.page, name, command, done.stdout))
        counts["builds"] = counts.get("builds", 0) + 1


def run_spec(block, folder):
    path = os.path.join(folder, "spec.ini")
    with open(path, "w", encoding="utf8") as file:
        file.write(block.text)
    done = run([ptxgen, "--spec", path, "--print-outputs"], folder)
    if done.returncode:
        fail("%s: a spec\n%s%s" % (block.page, block.text, done.stdout))
    counts["specs"] = counts.get("specs", 0) + 1


# The program around the C of ptxgen-header.
C_BEFORE = """
static void log_error(const char *text) { puts(text); }
static void allocate(int64_t size) { (void)size; }
static int number_in_gguf(const char *name, double *number) { *number = name == NULL; return 1; }
static const void *find_in_gguf(const char *name, unsigned type, uint64_t bytes)
{
    return type < 40 && bytes > 0 ? name : NULL;
}
void example(ptxgen_stream stream, const ptxgen_deviceptr *given);
void example(ptxgen_stream stream, const ptxgen_deviceptr *given)
{
    ptxgen_deviceptr y = given[0], w = given[1], x = given[2], q = given[3], k = given[4], v = given[5], wq = given[6],
                     wk = given[7], wv = given[8], workspace = given[9];
"""
C_AFTER = """
    (void)bytes;
    (void)r;
}
int main(void)
{
    char text[256];
    ptxgen_query query = { .op = PTXGEN_GEMV, .weights = PTXGEN_Q4_K, .k = 14336, .n = 4000, .sm = 90 };
    llama_explain_miss(&query, text, sizeof text);
    puts(text);
    query.n = 4096;
    return !llama_find(&query);
}
"""


def compile_header_page(found, folder):
    """Compiles the C of ptxgen-header with the header of its spec."""
    parts = {"include": "", "global": "", "body": "", "miss": ""}
    for block in found:
        first = block.text.split("\n")[0]
        kind = ("include" if first.startswith("#") else "miss" if first.startswith("no gemv") else
                "global" if re.search(r"^(static .*\)|[ ].*\))\n\{", block.text, re.M) else "body")
        parts[kind] += block.text
    if not shutil.which("cc"):
        skipped.append("ptxgen-header: needs cc")
        return
    with open(os.path.join(folder, "example.c"), "w", encoding="utf8") as file:
        file.write("#include <dlfcn.h>\n#include <stdio.h>\n" + parts["include"] + parts["global"] + C_BEFORE +
                   parts["body"] + C_AFTER)
    done = run("ptxgen -q --spec spec.ini --out . && "
               "cc -std=c99 -D_GNU_SOURCE -Wall -Wextra example.c -o example -ldl", folder)
    if done.returncode or done.stdout:
        fail("the C of ptxgen-header\n" + done.stdout)
        return
    done = run(["./example"], folder)
    if done.returncode or plain(done.stdout) != plain(parts["miss"]):
        fail("ptxgen-header shows another miss than\n" + done.stdout)
    counts["C blocks"] = len(found)


def compare_with_man(page, mdoc, scratch):
    shown = run([ptxgen, "--man", page.split(".")[0]], scratch).stdout
    exact = False # the output of --help-family has its own width
    for line in shown.splitlines():
        exact = line.strip().startswith("$ ptxgen --help-family") or exact and line.strip() != ""
        if len(line) > 80 and not exact:
            fail("%s is wider than a terminal: %s" % (page, line))
    if not shutil.which("man"):
        return
    path = os.path.join(scratch, page)
    with open(path, "w", encoding="utf8") as file:
        file.write(mdoc)
    by_man = run("man --nh --nj -E UTF-8 -l '%s' 2>/dev/null" % path, scratch, env=dict(os.environ, MANWIDTH="80"))
    by_man = by_man.stdout.strip().split("\n")
    if len(by_man) < 3:  # a man that knows none of these options
        skipped.append(page + ": man")
        return
    ours, theirs = plain("".join(shown.splitlines()[1:])), plain("".join(by_man[1:-1]))
    if ours != theirs:
        at = len(os.path.commonprefix([ours, theirs]))
        fail("%s differs from man: %s and %s" % (page, ours[at - 20:at + 40], theirs[at - 20:at + 40]))


def check_tables(scratch):
    """Checks that the generated tables name each family, format and key of the tool."""
    def told(*words):
        return run([ptxgen, *words], scratch).stdout

    spec, formats = told("--man", "ptxgen-spec.5"), told("--man", "ptxgen-formats.7")
    families = re.findall(r"^  (\w+) ", told("--list"), re.M)
    keys = set()
    for family in families + ["ptxgen", "decoder"]:
        rows = re.split(r"\n(?:params|steps)", told("--help-family", family))[0]
        keys.update(re.findall(r"^(?:keys|    )    (\w[\w.]*)  ", rows, re.M))
    for name in families + sorted(keys):
        if not re.search(r"^\.It Ic %s$" % re.escape(name), spec, re.M):
            fail("ptxgen-spec does not describe " + name)
    with open(os.path.join(source, "src/kernel/format.def"), encoding="utf8") as file:
        for name in re.findall(r'^FORMAT\(\w+, "(\w+)"', file.read(), re.M):
            if not re.search("^%s " % name, formats, re.M):
                fail("ptxgen-formats does not list " + name)
    counts["keys"] = len(keys)
    counts["families"] = len(families)


def make_folder(path, section):
    """Makes the folder of a section's blocks, with a spec and a model."""
    os.mkdir(path)
    if not any("ptxgen --init\n" in block.text for block in section):
        with open(path + "/kernels.ini", "w", encoding="utf8") as file:
            file.write(SMALL_SPEC)
    story = os.path.join(build, "tests/engine/story.gguf")
    if os.path.exists(story):
        shutil.copy(story, path + "/model.gguf")
    return path


def run_page(page, found, scratch, can_move):
    folders, fragments, header_folder = {}, [], None
    for block in found:
        if block.section not in folders:
            path = os.path.join(scratch, "%s-%d" % (page, len(folders)))
            folders[block.section] = make_folder(path, [other for other in found if other.section == block.section])
        folder = folders[block.section]
        named = re.fullmatch(r"\.Pa (\S+) :", block.before)
        if block.text.startswith("$ "):
            folders[block.section] = run_commands(block, folder, can_move)
        elif named:
            run_file(block, named[1], folder, can_move)
        elif re.match(r"\[|; Written", block.text):
            run_spec(block, folder)
            header_folder = folder
        elif page == "ptxgen-header.3":
            fragments.append(block)
        elif not block.text.startswith(LAYOUTS):
            fail("%s: nothing runs the block\n%s" % (page, block.text))
    if fragments:
        compile_header_page(fragments, header_folder)


def main():
    with tempfile.TemporaryDirectory() as scratch:
        can_move = install(scratch)
        check_tables(scratch)
        for page in sorted(os.listdir(os.path.join(source, "templates/man"))):
            if re.search(r"\.[1-8]$", page):
                mdoc = run([ptxgen, "--man", page], scratch).stdout
                compare_with_man(page, mdoc, scratch)
                run_page(page, list(blocks(page, mdoc)), scratch, can_move)
    for line in skipped:
        print("skipped: " + line)
    print(", ".join("%d %s" % (counts[name], name) for name in sorted(counts)))
    if min(counts.get(name, 0) for name in ("commands", "specs", "families", "keys")) < 3:
        fail("too little was run")
    if not counts.get("exact outputs"):
        fail("no page shows --list or --help-family")
    return bool(failures)


sys.exit(main())
