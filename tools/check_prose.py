#!/usr/bin/env python3
"""Checks prose: top pages are short, links lead somewhere, the changelog is open, no file names a path of the
machine that it was written on, and comments and pages are sentences in plain words."""

import io
import os
import pathlib
import re
import tokenize

import measure

PAGE_LINES = {"README.md": 150, "ARCHITECTURE.md": 150, "CONTRIBUTING.md": 150}
TEXT = (*measure.CPP, ".py", ".md", ".txt", ".cmake", ".toml", ".json", "setup", "run")
MACHINE_PATH = re.compile(r"(?<![\w.$}/])/(home|root|work|Users)/\w+")
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)[^)]*\)")

# A comment or a paragraph that begins so is a noun clause in place of a sentence.
CLAUSE = re.compile(r"(Of|What|Whether|Why|How|Until|Those|That of|The same|Nor|Whom?|Whose)\b")
FRAGMENT = re.compile(r"(of|those|that of|the same)\b")  # for a comment at the end of a line
# Words of place that stood for time, and for "besides". They are places after some verbs; names are quoted.
PLACE = re.compile(r"\b(behind|ahead of(?! time\b)|beside)\b", re.I)
PLACED = re.compile(r"(\b(look|see|lie|stand|sit)s? |[-`*\"])$", re.I)
PLAIN_WORD = {"behind": "after", "ahead of": "before", "beside": "next to, or besides"}
# "who" is a person, and these are not.
CODE_WHO = re.compile(
    r"\b(op|tile|call|worker|kernel|warp|thread|loader|executor|node|program|reader)s?,? who\b"
)
NO_PROSE = re.compile(
    r"\s*(#|\||!?\[[^\]]*\]\([^)]*\)\s*$|<)"
)  # headings, tables, links and tags by themselves
ITEM = re.compile(r"\s*([-*]|\d+\.)\s+(?=\S)|\s*$")  # where a paragraph ends and another one may begin
CPP_TOKEN = re.compile(
    r'R"([^(\s]*)\((.*?)\)\1"|//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Fa-f])\'(?:\\.|[^\'\\\n])\'',
    re.S,
)


def comments(path, text):
    """Blocks of comment lines, and docstrings, in order."""
    found = []  # (line, column, text, alone)
    if path.endswith(".py"):
        docstring = True
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            alone = not token.line[: token.start[1]].strip()
            if token.type == tokenize.COMMENT:
                found.append((*token.start, token.string.lstrip("#! "), alone))
            elif token.type == tokenize.STRING and alone and docstring:
                found.append((*token.start, " ".join(token.string.strip('r"').split()), alone))
            if token.type not in (tokenize.NL, tokenize.COMMENT):
                docstring = token.type in (tokenize.INDENT, tokenize.NEWLINE)
    else:
        for match in CPP_TOKEN.finditer(text):
            if match.group(0).startswith("//"):
                begin = text.rfind("\n", 0, match.start()) + 1
                line, column = text.count("\n", 0, begin) + 1, match.start() - begin
                alone = not text[begin : match.start()].strip()
                found.append((line, column, match.group(0).lstrip("/ "), alone))
    blocks = []
    for line, column, words, alone in found:
        last = blocks[-1] if blocks else None
        if last and alone and line == last["end"] + 1 and column == last["column"]:
            last["end"], last["text"] = line, last["text"] + " " + words
        else:
            blocks.append({"line": line, "end": line, "column": column, "text": words, "alone": alone})
    return blocks


def paragraphs(page):
    """Paragraphs and items of a list, in order; no headings, tables and code."""
    blocks, is_open, is_code = [], False, False
    for line, words in enumerate(page.split("\n"), 1):
        is_fence = words.lstrip().startswith("```")
        is_code ^= is_fence
        if is_code or is_fence or NO_PROSE.match(words):
            is_open = False
            continue
        item = ITEM.match(words)
        is_open &= not item
        words = words[item.end() if item else 0 :].strip()
        if is_open:
            blocks[-1]["text"] += " " + words
        elif words:
            blocks.append({"line": line, "text": words, "alone": True})
            is_open = True
    return blocks


def clumsy(blocks, kind):
    """(line, message) of each comment or paragraph that is not plain."""
    for block in blocks:
        words = block["text"]
        begin = CLAUSE.match(words) or (not block["alone"] and FRAGMENT.match(words))
        if begin:
            yield block["line"], f'a {kind} begins with "{begin.group(0)}"; write a sentence, verb first'
        for match in PLACE.finditer(words):
            if not PLACED.search(words[: match.start()]):
                word = match.group(0)
                yield block["line"], f'"{word}" is not a place here; write: {PLAIN_WORD[word.lower()]}'
        if CODE_WHO.search(words):
            yield block["line"], f'"{CODE_WHO.search(words).group(0)}": who is a person; write: that'


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
        text = measure.read(root, page)
        wrong += [f"{page}:{number}: {what}" for number, what in clumsy(paragraphs(text), "paragraph")]
        for target in LINK.findall(re.sub(r"```.*?```", "", text, flags=re.S)):
            if "://" not in target and not os.path.exists(os.path.join(root, os.path.dirname(page), target)):
                wrong.append(f"{page}: the link to {target} leads nowhere")
    for path in measure.files(root, TEXT):
        for number, line in enumerate(measure.read(root, path).split("\n"), 1):
            if MACHINE_PATH.search(line):
                wrong.append(
                    f"{path}:{number}: {MACHINE_PATH.search(line).group(0)} is a path of one machine"
                )
        if path.endswith((*measure.CPP, ".py")):
            blocks = comments(path, measure.read(root, path))
            wrong += [f"{path}:{number}: {what}" for number, what in clumsy(blocks, "comment")]
    log = pathlib.Path(root, "CHANGELOG.md")
    if not log.exists() or "## Unreleased" not in log.read_text():
        wrong.append("CHANGELOG.md has no section '## Unreleased'")
    return wrong, f"{len(pages)} pages"


if __name__ == "__main__":
    measure.run("prose", violations)
