#!/usr/bin/env python3
"""Checks what is read: top pages are short, links lead somewhere, the changelog is open, and no file names a
path of the machine it was written on."""

import os
import pathlib
import re

import measure

PAGE_LINES = {"README.md": 150, "ARCHITECTURE.md": 150, "CONTRIBUTING.md": 150}
TEXT = (*measure.CPP, ".py", ".md", ".txt", ".cmake", ".toml", ".json", "setup", "run")
MACHINE_PATH = re.compile(r"(?<![\w.$}/])/(home|root|work|Users)/\w+")
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)[^)]*\)")


def violations(root):
    wrong = []
    for page, limit in PAGE_LINES.items():
        path = pathlib.Path(root, page)
        if not path.exists():
            wrong.append(f"{page} is missing")
        elif measure.line_count(path.read_text()) > limit:
            wrong.append(f"{page}: {measure.line_count(path.read_text())} lines; the limit is {limit}")
    pages = sorted(p.name for p in pathlib.Path(root).glob("*.md")) + measure.files(
        root, (".md",), (*measure.FOLDERS, "docs")
    )
    for page in pages:
        for target in LINK.findall(re.sub(r"```.*?```", "", measure.read(root, page), flags=re.S)):
            if "://" not in target and not os.path.exists(os.path.join(root, os.path.dirname(page), target)):
                wrong.append(f"{page}: the link to {target} leads nowhere")
    for path in measure.files(root, TEXT):
        for number, line in enumerate(measure.read(root, path).split("\n"), 1):
            if MACHINE_PATH.search(line):
                wrong.append(
                    f"{path}:{number}: {MACHINE_PATH.search(line).group(0)} is a path of one machine"
                )
    log = pathlib.Path(root, "CHANGELOG.md")
    if not log.exists() or "## Unreleased" not in log.read_text():
        wrong.append("CHANGELOG.md has no section '## Unreleased'")
    return wrong, f"{len(pages)} pages"


if __name__ == "__main__":
    measure.run("prose", violations)
