#!/usr/bin/env python3
"""Lists the sources that must be looked at again: what differs from a commit, and what includes it.

    python3 tools/changed_sources.py COMMIT [--generated FOLDER]

Prints a path a line, of .cpp files, relative to the root of the tree; `all` where the commit is not in
this clone. Sources that a build generates in FOLDER, which lies in the tree, count too.
"""

import argparse
import pathlib
import subprocess
import sys

import measure


def git(root, *arguments):
    done = subprocess.run(["git", "-C", root, *arguments], capture_output=True, text=True)
    return done.stdout.splitlines() if done.returncode == 0 else None


def changed(root, commit):
    """The paths that differ from `commit`, with files that git does not know yet; None without the commit."""
    differing = git(root, "diff", "--name-only", commit, "--")
    if differing is None:
        return None
    return set(differing) | set(git(root, "ls-files", "--others", "--exclude-standard"))


def with_includers(root, paths, generated):
    """`paths` with every file that includes one of them, over any number of others."""
    includers = {}
    for name in measure.files(root, (*measure.CPP, ".inc"), (*measure.FOLDERS, generated)):
        for _, _, target in measure.includes(measure.read(root, name)):
            for include in (target, f"{generated}/{target}"):  # from the root, or generated
                includers.setdefault(include, set()).add(name)
    found, new = set(paths), list(paths)
    while new:
        for name in includers.get(new.pop(), ()):
            if name not in found:
                found.add(name)
                new.append(name)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("commit")
    parser.add_argument("--generated", default="build/dev/generated")
    options = parser.parse_args()
    root = pathlib.Path(__file__).resolve().parents[1]
    paths = changed(root, options.commit)
    if paths is None:
        print("all")
        return
    sources = with_includers(root, paths, options.generated)
    sys.stdout.writelines(f"{path}\n" for path in sorted(sources) if path.endswith(".cpp"))


if __name__ == "__main__":
    main()
