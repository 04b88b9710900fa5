"""Finds what a C++ text opens and does not close. A compiler would name a line that nobody wrote."""

import re

# A comment, a raw text, a text, a character (not the ' of 1'000), a directive, or a bracket.
TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?\*/|(?<!\w)(?:u8|[uUL])?R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"
    |(?<!\w)'(?:\\.|[^'\\\n])+'|^[ \t]*\#(?:\\\n|[^\n])*|/\*|[{}()\[\]"]""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
PAIRS = {")": "(", "]": "[", "}": "{"}
# Conditions around files of one's own are not among them.
CONDITION = re.compile(r"#\s*(if|elif|else|endif|define)\b(?!.*HEDDLE_OWN_)")


def fault(text, first=1):
    """(line, what is wrong), or None; `first` is the text's first line. A text with conditions or macros of
    its own is the compiler's to judge."""
    opened = []
    for found in TOKEN.finditer(text):
        token, line = found[0], text.count("\n", 0, found.start()) + first
        if token.lstrip().startswith("#"):
            if CONDITION.match(token.lstrip()):
                return None
        elif token == "/*":
            return line, "this /* has no */"
        elif token == '"':
            return line, 'this " has no other one on its line'
        elif token in "([{":
            opened.append((token, line))
        elif token in PAIRS:
            if not opened:
                return line, f"this {token} closes nothing"
            begun, where = opened.pop()
            if begun != PAIRS[token]:
                return where, f"this {begun} is not closed before the {token} of line {line}"
    if opened:
        begun, line = opened[-1]
        return line, f"this {begun} is not closed"
    return None
