#!/usr/bin/env python3
"""Remembers what has passed a check, so that it is done again only where something has changed.

tools/passed/KIND has a line for each: a name, and a digest of all that the result follows from. Digests are
of contents alone, without // comments: they are the same on every machine, in every clone and build folder.

  tidy    a source with what it includes, at any depth; the rules of clang-tidy, its version
  device  an op: what the compiler of the GPU reads for it, with options and versions; the checks of its code
  parity  a script of scripts/parity_*.py, with what it says that it exercises, and packages

    python3 tools/passed.py open KIND [NAME ... | --all] [--most N]
    python3 tools/passed.py add KIND [NAME ...]

`open` prints the lines of NAMEs, or of all that has not passed as it is now. `add` records the lines that it
reads from standard input, or those of NAMEs; it removes the lines of what is not so any more. With --most,
what differs from the commit that last recorded something comes first; the commit's name orders the rest.
"""

import argparse
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

import measure

DIGITS = 16
TOKEN = re.compile(
    r'R"([^(\s]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Fa-f])\'(?:\\.|[^\'\\\n])\'|/\*.*?\*/|//[^\n]*',
    re.S,
)
FOR_TOOLS = re.compile(r"NOLINT|on purpose: |Known: ")
TEST = re.compile(r"_(test|fuzz)\.cpp$")
# Texts that only a build writes, and most sources that parse a body for each SIMD target: every body is in a
# unit of scalar_bodies, too, and those that stay use all that a SIMD block has.
NOT_TIDIED = re.compile(r"generated/(\w+_sources|own_headers|version|simd_bodies/(?!attention|linear))")
DEVICE_CHECKS = (
    "scripts/check_kernels.py",
    "heddle/backend/cuda/program/body_check.cpp",  # has the budgets
)
DEVICE_CODE = (["--arch", "sm_90a"], ["--arch", "sm_80,sm_89,sm_100a,sm_120", "--unoptimised"])
# Models on a CPU run no code for GPUs and read no cases of ops.
NOT_ON_CPU = re.compile(r"heddle/backend/cuda/|\.sm\d+\w*\.cuh$|_cases\.cpp$")
PARITY_BASE = ("scripts/parity", "scripts/goldens", "tests/goldens", "models", "cmake/flags.cmake")


def digest_of(parts):
    made = hashlib.sha256()
    for part in parts:
        part = part.encode(errors="replace") if isinstance(part, str) else part
        made.update(b"%d:" % len(part) + part)
    return made.hexdigest()[:DIGITS]


def code_of(text):
    """A source without // comments and blank lines; comments that speak to a tool stay."""

    def kept(match):
        token = match.group(0)
        return "" if token.startswith("//") and not FOR_TOOLS.search(token) else token

    lines = (line.rstrip() for line in TOKEN.sub(kept, text).split("\n"))
    return "\n".join(line for line in lines if line)


class Tree:
    """The files of a tree by their paths from its root. A build writes sources to the folder `generated`."""

    def __init__(self, root, generated="build/dev/generated"):
        self.root, self.generated, self.known = pathlib.Path(root), generated, {}

    def content(self, path):
        text = (self.root / path).read_bytes()
        return code_of(text.decode(errors="replace")) if path.endswith((*measure.CPP, ".inc")) else text

    def place(self, include):
        """The path of an included file; "" where it is none of the tree."""
        places = (include, f"{self.generated}/{include}")
        return next((path for path in places if (self.root / path).is_file()), "")

    def file(self, path):
        """The digest of a file's own content, and the files that it includes."""
        if path not in self.known:
            text = self.content(path)
            found = [self.place(each.target) for each in measure.includes(text)]
            self.known[path] = digest_of([self.name(path), text]), [each for each in found if each]
        return self.known[path]

    def name(self, path):
        return path.replace(self.generated, "generated", 1)

    def reached(self, path):
        """The digests of a file and of all that it includes."""
        seen, new = {path}, [path]
        while new:
            for include in self.file(new.pop())[1]:
                if include not in seen:
                    seen.add(include)
                    new.append(include)
        return sorted(self.file(each)[0] for each in seen)

    def pins(self, *packages):
        """The lines of requirements.txt for these packages."""
        lines = (self.root / "requirements.txt").read_text().splitlines()
        return [line for line in lines if line.split("==")[0] in packages]


def built(tree, path, by):
    if not (tree.root / path).is_file():
        sys.exit(f"passed: {path} is not there; {by} makes it")
    return tree.root / path


def tidy(root):
    tree = Tree(root)
    commands = json.loads(built(tree, "build/dev/compile_commands.json", "scripts/tidy").read_text())
    paths = {os.path.relpath(each["file"], tree.root) for each in commands}
    return tidy_digests(tree, (path for path in paths if not NOT_TIDIED.search(path)))


def tidy_digests(tree, paths):
    common = [*tree.pins("clang-tidy"), tree.content("cmake/flags.cmake")]

    def rules(path):
        folders = pathlib.PurePath(path).parents
        files = (str(folder / ".clang-tidy") for folder in folders)
        return [tree.content(each) for each in files if (tree.root / each).is_file()]

    return {tree.name(path): digest_of([*common, *rules(path), *tree.reached(path)]) for path in paths}


def device(root):
    """heddle says what the compiler reads for each op: build it first."""
    tree, codes = Tree(root), {}
    for options in DEVICE_CODE:
        program = built(tree, "build/release/heddle", "make check-device")
        command = [program, "check", *options, "--names", "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"passed: {' '.join(map(str, command))}: {done.stderr.strip()}")
        for row in json.loads(done.stdout):
            codes.setdefault(row["made_for"], set()).add(row["code_name"])
    common = tree.pins("nvidia-cuda-nvrtc", "nvidia-cuda-nvdisasm") + [tree.content(p) for p in DEVICE_CHECKS]
    return {op: digest_of([*common, *sorted(names)]) for op, names in codes.items()}


def folder_files(root, place):
    """The files below a path, or the path itself, from the root."""
    if (pathlib.Path(root) / place).is_file():
        return [place]
    return measure.files(root, ("",), (place,))


def model_ops(tree):
    """The folders of ops that models have, or that the engine adds to them. Models exercise no other."""
    sources = measure.files(tree.root, measure.CPP, ("heddle/model", "heddle/engine"))
    texts = "\n".join(measure.read(tree.root, path) for path in sources if not TEST.search(path))
    named = set(re.findall(r'"(\w+)"', texts))
    found = set(re.findall(r'"heddle/ops/(\w+)/', texts))
    for body in measure.files(tree.root, (".cuh",), ("heddle/ops",)):
        if pathlib.PurePath(body).stem in named:
            found.add(body.split("/")[2])
    return found


def parity(root):
    tree = Tree(root)
    ops = model_ops(tree)
    scripts = [path for path in measure.files(root, (".py",), ("scripts",)) if "scripts/parity_" in path]
    return {path: parity_digest(tree, path, ops) for path in scripts}


def modules_of(tree, path):
    """The script and the modules next to it that it imports, at any depth."""
    found, new = {path}, [path]
    while new:
        for name in re.findall(r"^(?:from|import) (\w+)", measure.read(tree.root, new.pop()), re.M):
            module = f"scripts/{name}.py"
            if module not in found and (tree.root / module).is_file():
                found.add(module)
                new.append(module)
    return found


def parity_digest(tree, script, ops):
    said = re.search(r"^Exercises: (.*)$", measure.read(tree.root, script), re.M)
    paths = modules_of(tree, script) | {"requirements.txt"}
    for place in (*PARITY_BASE, *(said.group(1).split() if said else ("apps/heddle", "heddle"))):
        paths.update(path for path in folder_files(tree.root, place) if "/make/" not in path)

    def is_exercised(path):
        if TEST.search(path) or (not said and NOT_ON_CPU.search(path)):
            return False
        return said or not path.startswith("heddle/ops/") or path.split("/")[2] in ops

    return digest_of(
        part for path in sorted(paths) if is_exercised(path) for part in (path, tree.content(path))
    )


KINDS = {"tidy": tidy, "device": device, "parity": parity}


def file_of(root, kind):
    return pathlib.Path(root, "tools/passed", kind)


def recorded(root, kind):
    """Pairs (name, digest). Other lines, such as marks of a merge, count for nothing."""
    file = file_of(root, kind)
    lines = file.read_text().splitlines() if file.exists() else []
    return {pair for pair in (tuple(line.split()) for line in lines) if len(pair) == 2}


def add(root, kind, now, pairs):
    """Records pairs (name, digest); of others those stay that are as `now` has them."""
    kept = {pair for pair in recorded(root, kind) if now.get(pair[0]) == pair[1]} | set(pairs)
    file = file_of(root, kind)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"{name} {digest}\n" for name, digest in sorted(kept)))


def git(root, *arguments):
    done = subprocess.run(["git", "-C", root, *arguments], capture_output=True, text=True, check=False)
    return done.stdout.split() if done.returncode == 0 else []


def first(root, kind, names, most):
    """At most so many of the names: those that changed themselves, then some of the others."""
    if not most or len(names) <= most:
        return names
    since = git(root, "log", "-1", "--format=%H", "--", f"tools/passed/{kind}")
    changed = set(git(root, "diff", "--name-only", *since)) | set(
        git(root, "ls-files", "--others", "--exclude-standard")
    )
    bodies = {pathlib.PurePath(path).name.split(".")[0].removesuffix("_kernel") for path in changed}
    commit = "".join(git(root, "rev-parse", "HEAD"))
    order = sorted(names, key=lambda name: (not {name} & (changed | bodies), digest_of([commit, name])))
    return order[:most]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("action", choices=("open", "add"))
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--all", action="store_true", help="with open: what has passed, too")
    parser.add_argument("--most", type=int, default=0, help="with open: so many lines at most")
    options = parser.parse_args()
    root = pathlib.Path(__file__).resolve().parents[1]
    now = KINDS[options.kind](root)
    if unknown := set(options.names) - set(now):
        parser.error(f"{options.kind} has no {', '.join(sorted(unknown))}")
    if options.action == "add":
        lines = [] if options.names else sys.stdin.read().splitlines()
        pairs = [tuple(line.split()) for line in lines] + [(name, now[name]) for name in options.names]
        add(root, options.kind, now, pairs)
        return
    wanted = now.items() if options.all else now.items() - recorded(root, options.kind)
    names = sorted(options.names or (name for name, _ in wanted))
    chosen = first(root, options.kind, names, options.most)
    if len(chosen) < len(names):
        print(f"{options.kind}: {len(chosen)} of {len(names)} that have not passed", file=sys.stderr)
    sys.stdout.writelines(f"{name} {now[name]}\n" for name in chosen)


if __name__ == "__main__":
    main()
