#!/usr/bin/env python3
"""Checks manifests against their schema, and the schema against damaged manifests: one entry is removed, added or
changed, and the schema must refuse the result.

    schema.py SOURCE_ROOT SCHEMA MANIFEST...        with PTXGEN set

Manifests of some specs are checked, too. Implements the part of JSON Schema that the schema uses, and fails on anything
else. If jsonschema is installed, it must agree, on a seventh of the kernels, or on all in tier full.
"""
import copy
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

TYPES = {"object": dict, "array": list, "string": str, "null": type(None), "number": (int, float), "integer": int,
         "boolean": bool}
KNOWN = {"$schema", "title", "description", "$defs", "type", "required", "additionalProperties", "properties",
         "items", "minItems", "maxItems", "enum", "const", "pattern", "minimum", "$ref"}


def problems(schema, value, root, at="manifest"):
    unknown = set(schema) - KNOWN
    if unknown:
        sys.exit(f"the schema uses {unknown}, which this test does not know")
    if "$ref" in schema:
        yield from problems(root["$defs"][schema["$ref"].rpartition("/")[2]], value, root, at)
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(isinstance(value, TYPES[t]) and isinstance(value, bool) == (t == "boolean") for t in types):
        yield f"{at} is {value!r}, no {types}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{at} is {value!r}, none of {schema['enum']}"
    if "const" in schema and (value != schema["const"] or type(value) is not type(schema["const"])):
        yield f"{at} is {value!r}, not {schema['const']!r}"
    if isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        yield f"{at} is {value!r}, not {schema['pattern']}"
    if isinstance(value, (int, float)) and value < schema.get("minimum", value):
        yield f"{at} is {value}"
    if isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            yield f"{at} has {len(value)} items"
        for i, item in enumerate(value):
            yield from problems(schema.get("items", {}), item, root, f"{at}[{i}]")
    if isinstance(value, dict):
        named, rest = schema.get("properties", {}), schema.get("additionalProperties", True)
        for name in schema.get("required", []):
            if name not in value:
                yield f"{at} has no {name}"
        for name, item in value.items():
            if name in named:
                yield from problems(named[name], item, root, f"{at}.{name}")
            elif isinstance(rest, dict):
                yield from problems(rest, item, root, f"{at}.{name}")
            elif not rest:
                yield f"{at} has {name}, which the schema does not know"


def changes(value):
    """Yields the value with one entry removed, added or of another type, in every object of its kind."""
    if isinstance(value, dict):
        for name in value:
            changed = copy.copy(value)
            del changed[name]
            yield f"without {name}", changed
            for how, item in changes(value[name]):
                yield f"{name}: {how}", {**value, name: item}
        yield "with something more", {**value, "nothing_like_it": [1]}
    elif isinstance(value, list) and value:
        for how, item in changes(value[0]):
            yield f"[0]: {how}", [item] + value[1:]
    yield "another type", [[]] if not isinstance(value, list) else {"a": {}}


# Returns the paths of optional entries: objects with free keys, and optional keys.
FREE = re.compile(r"(config|bind|arguments): (without|with something more)|"
                  r"without (decoder|grid_expr|dynamic_expr|precision|chosen_by|chosen_for|chosen_with|element|bytes|align|"
                  r"target|holds|layout|same_bits)$|conventions: with something more")


def expressions(value):
    """Yields all expressions of a kernel or pipeline, with the value beside each, or None."""
    if isinstance(value, list):
        for item in value:
            yield from expressions(item)
    elif isinstance(value, dict):
        for name, item in value.items():
            if name in ("size", "dynamic_expr", "values") and value.get("kind") != "u32":
                yield item, value.get("bytes") if name == "size" else None
            elif name == "grid_expr":
                yield from ((e, None) for e in item)
            elif name not in ("config", "bind"):
                yield from expressions(item)


def unknown_names(item):
    """Returns expressions that config and the launch do not determine, or that differ from the value beside them."""
    config = {name: number for name, number in item["config"].items() if not isinstance(number, str)}
    launch = {"seq_len": 7, "sm_count": 33}
    if item["config"].get("rows") == "run_time" or "m" not in config:
        launch["m"] = 5
    if "workspace_size" in item:
        yield from (f"{item['name']}: workspace_size" for w in [item["workspace_size"]]
                    if not re.fullmatch(r"(m\*)?[0-9]+", w) or ("m" in w) == (item["workspace"] is not None))
    if item["config"].get("dims") == "dynamic":
        launch.update({name: 256 for name in "kn" if name in config}, m=config.get("m") or launch.get("m", 1))
    functions = {"min": min, "max": max, "ceil_div": lambda a, b: -(-a // b)}
    for text, said in expressions(item):
        try:
            value = eval(text.replace("/", "//"), {"__builtins__": {}}, {**config, **launch, **functions})
            if value < 0 or said not in (None, value):
                yield f"{item['name']}: {text} is {value}, not {said}"
        except NameError as error:
            yield f"{item['name']}: {text}: {error}"


def check(schema, path, failures):
    manifest = json.loads(path.read_text())
    failures += [f"{path.name}: {p}" for p in problems(schema, manifest, schema)][:10]
    failures += [f"{path.name}: {p}" for item in manifest["kernels"] + manifest["pipelines"]
                 for p in unknown_names(item)][:10]
    many = len(manifest["kernels"]) > 1000 and os.environ.get("PTXGEN_TEST_TIER") != "full"
    some = {**manifest, "kernels": manifest["kernels"][::7]} if many else manifest
    try:
        import jsonschema
        failures += [f"{path.name}: jsonschema: {e.message}" for e in
                     jsonschema.Draft202012Validator(schema).iter_errors(some)][:10]
    except ImportError:
        pass
    return manifest


def main(root, schema, manifests):
    schema = json.loads(schema.read_text())
    failures, tried = [], 0
    for path in manifests:
        manifest = check(schema, path, failures)
        if "decoder" not in manifest:
            failures.append(f"{path.name} has no decoder")
        small = {**manifest, "kernels": [], "pipelines": [], "aliases": []}
        for how, changed in changes(small):
            tried += 1
            if not FREE.search(how) and not any(problems(schema, changed, schema)):
                failures.append(f"{path.name}: the schema takes a manifest {how}")
    with tempfile.TemporaryDirectory() as folder:
        for spec in ["tests/every_family.ini", "tests/launch/alias/alias.ini", "tests/llama_8b.ini"]:
            out = pathlib.Path(folder) / pathlib.Path(spec).stem
            targets = ["--target", "sm_90"] if "every" in spec else [] # one kernel per description is enough
            subprocess.run([os.environ["PTXGEN"], "-q", "--spec", root / spec, "--out", out, *targets], check=True)
            manifest = check(schema, next(out.glob("*.json")), failures)
            kinds = {}
            for part in ["kernels", "pipelines", "aliases"]:
                for item in manifest[part]:
                    kinds.setdefault((part, tuple(item), tuple(tuple(p) for p in item.get("params", []))), item)
            for (part, *_), item in list(kinds.items())[:40]:
                for how, changed in changes(item):
                    tried += 1
                    if FREE.search(how):
                        continue
                    small = {**manifest, "kernels": [], "pipelines": [], "aliases": [], part: [changed]}
                    if not any(problems(schema, small, schema)):
                        failures.append(f"{spec}: the schema takes {part} {item['name']} {how}")
            small = {**manifest, "kernels": [], "pipelines": [], "aliases": []}
            for how, changed in changes(small):
                if not FREE.search(how) and not any(problems(schema, changed, schema)):
                    failures.append(f"{spec}: the schema takes a manifest {how}")
    if tried < 1000:
        failures.append(f"{tried} changes were tried: too few")
    print("\n".join(failures[:20]) or f"{tried} changed manifests")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main(*map(pathlib.Path, sys.argv[1:3]), [pathlib.Path(path) for path in sys.argv[3:]]))
