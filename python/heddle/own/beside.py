"""Files of one's own that a body or a kernel includes: their text is put where the include stands."""

import hashlib
import re
from pathlib import Path

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"[^\n]*$', re.MULTILINE)
ONCE = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+once[^\n]*$", re.MULTILINE)
LINE = re.compile(r'#line (\d+) "(.*)"')


def joined(text, file, line=1, shared=False):
    """The text with that of each file that it includes by a name relative to its own file's folder, once.
    heddle's headers and what is not there stay includes. `shared`: texts of several ops may stand in one
    scope, so that a file that is included outside of all braces is guarded."""
    return _joined(text, Path(file), line, shared, set())


def _joined(text, file, line, shared, seen):
    made, at, depth = "", 0, 0
    for found in INCLUDE.finditer(text):
        path = file.parent / found[1]
        if found[1].startswith("heddle/") or not path.is_file():
            continue
        before = text[at : found.start()]
        depth += before.count("{") - before.count("}")
        line_after = line + text.count("\n", 0, found.end()) + 1
        made += before
        if path.resolve() not in seen:
            seen.add(path.resolve())
            inside = _joined(ONCE.sub("", path.read_text()), path, 1, False, seen)
            inside = f'#line 1 "{path}"\n{inside}\n'
            if shared and depth == 0:
                guard = "HEDDLE_OWN_" + hashlib.sha256(path.read_bytes()).hexdigest()[:16]
                inside = f"#ifndef {guard}\n#define {guard}\n{inside}#endif  // {guard}\n"
            made += f'{inside}#line {line_after} "{file}"'
        at = found.end()
    return made + text[at:]


def included(files):
    """The files that these include, and those that they include."""
    found, left = set(), list(files)
    while left:
        file = left.pop()
        paths = {(file.parent / name).resolve() for name in INCLUDE.findall(file.read_text())}
        left += [each for each in paths - found if each.is_file()]
        found |= paths
    return found


def placeless(text):
    """A joined text that is the same wherever its files lie."""
    return re.sub(r'^#line \d+ ".*"$', "#line", text, flags=re.MULTILINE)


def origin(text, line, first, file):
    """(file, line) where a line of a joined text stands. Its first line has the number `first`."""
    number = first
    for each in text.splitlines()[: max(line - first, 0)]:
        marker = LINE.fullmatch(each)
        number, file = (int(marker[1]), marker[2]) if marker else (number + 1, file)
    return file, number
