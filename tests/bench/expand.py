#!/usr/bin/env python3
"""Expands the loops and macros of a text: expand.py FILE.in FILE

    @for i in 0 1 2 3           repeats the lines up to @end, with {i}, {4*i+1} and so on as numbers
    @define square(x, y)        names the lines up to @end; "@square(%f0, 2)" is replaced by them, with {x} and {y}

A macro is defined before its first use, outside of loops and other macros. Both may contain loops and uses.
"""
import re
import sys


def value(text):
    return int(text) if re.fullmatch("[0-9]+", text) else text


def filled(line, values):
    """Returns a line with its {expressions} of names that have values."""
    return re.sub(r"\{([a-z][^{}% ]*|[0-9][^{}% ]*)\}", lambda found: str(eval(found[1], {}, values)), line)


def expand(lines, values, macros, out):
    at = iter(lines)
    for line in at:
        loop, macro = re.match(r"@for (\w+) in (.*)", line), re.match(r"@define (\w+)\((.*)\)", line)
        use = re.match(r"@(\w+)\((.*)\)$", line)
        if loop or macro:
            body, depth = [], 1
            while depth:
                body.append(next(at))
                depth += body[-1].startswith(("@for ", "@define ")) - (body[-1] == "@end")
            body.pop()
        if loop:
            for word in filled(loop[2], values).split():
                expand(body, {**values, loop[1]: value(word)}, macros, out)
        elif macro:
            macros[macro[1]] = (macro[2].split(", "), body)
        elif use and use[1] in macros:
            names, body = macros[use[1]]
            arguments = [value(word) for word in filled(use[2], values).split(", ")]
            expand(body, dict(zip(names, arguments, strict=True)), macros, out)
        else:
            out.append(filled(line, values))
    return out


def main(source, target):
    with open(source) as file:
        lines = file.read().split("\n")
    with open(target, "w") as file:
        file.write("\n".join(expand(lines, {}, {}, [])))


if __name__ == "__main__":
    main(*sys.argv[1:])
