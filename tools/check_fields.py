#!/usr/bin/env python3
"""Checks that something reads every field of a header's struct: its name occurs somewhere in the tree other
than in a declaration, a plain assignment or a designated initialiser. If something else has the same name,
the field counts as read."""

import re

import measure

HEADERS_OF = ("heddle", "apps")  # readers may be anywhere
LAYOUT = re.compile(r"reserved\d*|magic|version")  # these keep the rest of a layout in its place
# Not the "class" of a template's parameters.
STRUCT = re.compile(r"(?<![<,])(?<![<,]\s)\b(?:struct|class|union)\b[^;{}()=]*(?:\([^()]*\)[^;{}()=]*)?\{")
NO_FIELD = re.compile(
    r"(using|typedef|friend|static|template|enum|struct|class|union|constexpr|inline|virtual|explicit|return"
    r"|static_assert|namespace|extern)\b"
)
LABEL = re.compile(r"^\s*(public|private|protected)\s*:(?!:)")
POINTER = re.compile(r"\(\s*\*\s*(?:const\s+)?(\w+)\s*\)")
# Matches x.name = 1, x->name = 1 and {.name = 1}.
WRITTEN = re.compile(r"(?:\.|->)\s*(\w+)\s*=(?!=)")
WORD = re.compile(r"\b[A-Za-z_]\w*\b")


def _end(text, at):
    """The position of the brace that closes the one at `at`."""
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] == "{") - (text[i] == "}")
        if depth == 0:
            return i
    return len(text)


def _members(text, at):
    """(position, text) of each declaration between the braces that open at `at`; bodies are left out."""
    end, begin, i = _end(text, at), at + 1, at + 1
    said = ""
    while i < end:
        if text[i] == "{":
            i = _end(text, i)
            if re.match(r"\}\s*[;,]", text[i:]):
                said += "{}"
            else:
                said, begin = "", i + 1
        elif text[i] == ";":
            yield begin, said
            said, begin = "", i + 1
        else:
            said += text[i]
        i += 1


def _names(member):
    """The names of the fields that a declaration makes; none if it declares something else."""
    member = LABEL.sub("", member.strip()).strip()
    member = re.sub(r"alignas\s*\([^)]*\)|\[\[.*?\]\]", "", member).strip()
    if NO_FIELD.match(member):
        return []
    pointer = POINTER.search(member)
    if pointer:
        return [pointer.group(1)]
    while re.search(r"<[^<>=]*>", member):
        member = re.sub(r"<[^<>=]*>", " ", member)
    member = re.sub(r"=(?:[^,(){}]|\([^()]*(?:\([^()]*\)[^()]*)*\)|\{\})*", "", member)
    if "(" in member or "operator" in member:
        return []
    first, *more = [re.sub(r"[\[{:].*", "", part, flags=re.S).strip() for part in _split(member)]
    found = re.match(r"^(?:[\w\s*&]|::)*[\s*&](\w+)$", first)
    return [found.group(1), *(re.sub(r"^[\s*&]+", "", n) for n in more)] if found else []


def _split(member):
    """Splits declarators. The colons of the type itself are not bit-fields."""
    return re.sub(r"\b(\w+)::", "", member).split(",")


def fields(path, text):
    """(line, name) of each field of the structs in a header."""
    text = measure.strip(text)
    for match in STRUCT.finditer(text):
        if re.search(r"\benum\s+$", text[: match.start()]):
            continue
        for at, member in _members(text, match.end() - 1):
            for name in _names(member):
                where = re.compile(rf"\b{name}\b").search(text, at)
                yield text.count("\n", 0, where.start() if where else at) + 1, name


def reads(root):
    """Counts how often each word occurs where it may be read."""
    counts = {}
    for path in measure.files(root, measure.CPP):
        text = measure.strip(measure.read(root, path))
        for word in WORD.findall(WRITTEN.sub(" ", text)):
            counts[word] = counts.get(word, 0) + 1
    return counts


def violations(root):
    found = [
        (path, line, name)
        for path in measure.files(root, measure.HEADERS, HEADERS_OF)
        for line, name in fields(path, measure.read(root, path))
    ]
    declared = {}
    for _, _, name in found:
        declared[name] = declared.get(name, 0) + 1
    counts = reads(root)
    wrong = [
        f"{path}:{line}: nothing reads {name}"
        for path, line, name in found
        if counts.get(name, 0) <= declared[name] and not LAYOUT.fullmatch(name)
    ]
    return wrong, f"{len(found)} fields"


if __name__ == "__main__":
    measure.run("fields", violations)
