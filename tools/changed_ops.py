#!/usr/bin/env python3
"""Lists the ops whose code for GPUs may differ from a commit's: their folder changed, or what it includes.

    python3 tools/changed_ops.py COMMIT [--part N]

Prints names with commas between them. Where something has changed that the code of all ops is made of or
checked by, or where the commit is not in this clone, prints all of them; with --part, one in N, which the
last commit's name chooses, and those of folders that changed.
"""

import argparse
import pathlib
import re

import changed_sources
import measure

TEST = re.compile(r"_(test|fuzz)\.cpp$")
# Writes, compiles or checks the device programs of all ops.
SHARED = re.compile(
    r"heddle/(ir|backend/cuda)/|scripts/check_kernels\.py|scripts/check_device|requirements\.txt"
)
FRAMES = re.compile(r"heddle/backend/cuda/.*\.cuh?$")
OP_FOLDER = re.compile(r"heddle/ops/\w+/")
CHAINED = re.compile(r"\.(epilogue|prologue) = true")  # the code of other ops has these in it


def ops_of(root, folder):
    """The names of the ops in a folder, as cmake/registry.cmake finds them."""
    bodies = pathlib.Path(root, folder).glob("*.cuh")
    return [body.stem for body in sorted(bodies) if body.with_suffix(".cpp").exists()]


def affected(root, paths):
    """The ops that changes of `paths` affect; None: all."""
    paths = {path for path in paths if not TEST.search(path)}
    if any(SHARED.match(path) for path in paths):
        return None
    reached = changed_sources.with_includers(root, paths, "build/dev/generated")
    if any(FRAMES.match(path) for path in reached):
        return None
    ops = []
    for folder in sorted({found.group() for path in reached if (found := OP_FOLDER.match(path))}):
        sources = pathlib.Path(root, folder).glob("*.cpp")
        if any(CHAINED.search(measure.read(root, source)) for source in sources):
            return None
        ops += ops_of(root, folder)
    return ops


def part_of_all(root, paths, part, seed):
    """The ops of folders that changed, and every `part`-th of all."""
    changed = {found.group() for path in paths or () if (found := OP_FOLDER.match(path))}
    folders = [f"heddle/ops/{each.name}/" for each in sorted(pathlib.Path(root, "heddle/ops").iterdir())]
    every = [(folder, op) for folder in folders for op in ops_of(root, folder)]
    return [op for i, (folder, op) in enumerate(every) if folder in changed or i % part == seed % part]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("commit")
    parser.add_argument("--part", type=int, default=1)
    options = parser.parse_args()
    root = pathlib.Path(__file__).resolve().parents[1]
    paths = changed_sources.changed(root, options.commit)
    ops = None if paths is None else affected(root, paths)
    if ops is None:
        seed = int(changed_sources.git(root, "rev-parse", "HEAD")[0][:8], 16)
        ops = part_of_all(root, paths, options.part, seed)
    print(",".join(ops))


if __name__ == "__main__":
    main()
