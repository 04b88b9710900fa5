"""Counters over the source tree, shared by the checks in this folder. Standard library only.

All are heuristics: no preprocessor runs, and C++ functions are found by matching braces. They are
good for sizes and shares, not for exact values.
"""

import ast
import collections
import os
import pathlib
import re
import sys

CPP = (".h", ".cuh", ".cpp")
HEADERS = (".h", ".cuh")
FOLDERS = ("heddle", "apps", "python", "tests", "bench", "examples", "scripts", "tools", "models")
SKIPPED = {"dist", "__pycache__"}
CLONE_WINDOW = 12  # lines; shorter runs repeat by chance

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.M)
CONTROL = re.compile(r"\b(if|for|while|switch|catch|do|else|try|return)\b\s*(constexpr)?\s*(\(|$)")
FUNCTION_END = re.compile(r"\)\s*(const|noexcept|override|final|mutable|&|&&|requires.*|->.*|:.*)*\s*$", re.S)
NOT_FUNCTION = re.compile(r"(namespace|enum|union|class|struct|extern \"\"|=)\b")
ATTRIBUTE = re.compile(r"__attribute__ ?\(\(.*?\)\) ?")
TEMPLATE = re.compile(r"^(template ?<.*?> ?)?")
ASSIGNMENT = re.compile(r"=\s*(\[|[\w:]*\s*\(?[^)]*$)")

Function = collections.namedtuple("Function", "path line name lines parameters")
Include = collections.namedtuple("Include", "line quoted target")


def files(root, suffixes, folders=FOLDERS):
    """Paths below the source folders of `root`, relative to it, sorted."""
    found = []
    for folder in folders:
        for here, below, names in os.walk(os.path.join(root, folder)):
            below[:] = [name for name in below if name not in SKIPPED and not name.startswith(".")]
            found += [os.path.relpath(os.path.join(here, n), root) for n in names if n.endswith(suffixes)]
    return sorted(found)


def read(root, path):
    return pathlib.Path(root, path).read_text(encoding="utf-8", errors="replace")


def line_count(text):
    return text.count("\n") + (not text.endswith("\n") and text != "")


def strip(text):
    """Drops comments, the inside of strings, and preprocessor lines; keeps line numbers."""

    def blank(match):
        return "\n" * match.group(0).count("\n")

    text = re.sub(r'R"([^(\s]*)\((.*?)\)\1"', blank, text, flags=re.S)
    tokens = r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Fa-f])\'(?:\\.|[^\'\\\n])\''
    text = re.sub(tokens, lambda m: blank(m) if m.group(0)[0] == "/" else '""', text, flags=re.S)
    return re.sub(r"^[ \t]*#(\\\n|[^\n])*", blank, text, flags=re.M)


def _head(text):
    """Reads the text before a brace: (is it a function's, its name, its number of parameters)."""
    bare = TEMPLATE.sub("", ATTRIBUTE.sub("", re.sub(r"\s+", " ", text.strip())))
    if "(" not in bare or not FUNCTION_END.search(bare) or NOT_FUNCTION.match(bare):
        return False, "", 0
    if CONTROL.match(bare) or ASSIGNMENT.search(bare):
        return False, "", 0
    name = re.search(r"([\w:~]+|operator\W+)\s*\(", bare)
    depth, parameters, inside = 0, 0, ""
    for c in bare[bare.index("(") :]:
        depth += (c in "([{<") - (c in ")]}>")
        if depth == 0:
            break
        parameters += c == "," and depth == 1
        inside += c
    macro = name and re.fullmatch("[A-Z][A-Z_]+", name.group(1))  # TEST(Suite, Case) declares no parameters
    return True, name.group(1) if name else "?", 0 if macro or not inside[1:].strip() else parameters + 1


def cpp_functions(path, text):
    text, found, stack = strip(text), [], []
    pairs = 1
    while pairs:  # `member{value}` and `= {value}` are not blocks: write them as calls
        text, pairs = re.subn(r"(?:(?<=[\w>])|(?<== ))\{([^{};]*)\}", r"(\1)", text)
    inside = last = 0
    line = 1
    for i, c in enumerate(text):
        if c == "\n":
            line += 1
        elif c == "{":
            is_function, name, parameters = _head(text[last:i]) if not inside else (False, "", 0)
            stack.append((is_function, line, name, parameters))
            inside += is_function
        elif c == "}" and stack:
            is_function, start, name, parameters = stack.pop()
            if is_function:
                inside -= 1
                found.append(Function(path, start, name, line - start + 1, parameters))
        if c in ";{}":
            last = i + 1
    return found


def python_functions(path, text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = node.end_lineno - node.lineno + 1
            yield Function(path, node.lineno, node.name, lines, len(node.args.args + node.args.kwonlyargs))


def functions(root):
    """Every function of the tree."""
    found = [f for path in files(root, CPP) for f in cpp_functions(path, read(root, path))]
    return found + [f for path in files(root, (".py",)) for f in python_functions(path, read(root, path))]


def includes(text):
    """The include directives of a file, without those in comments."""
    text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m.group(0).count("\n"), text, flags=re.S)
    return [
        Include(text.count("\n", 0, m.start(1)) + 1, m.group(1) == '"', m.group(2))
        for m in INCLUDE.finditer(text)
    ]


def _normalised(text):
    """(line number, text without blanks) of each line with code."""
    text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m.group(0).count("\n"), text, flags=re.S)
    for number, line in enumerate(text.split("\n"), 1):
        row = re.sub(r"\s+|//.*", "", line)
        if "#include" not in line and row not in ("", "{", "}", "};", "});", ",", "{}"):
            yield number, row


def clones(root, paths):
    """(share of code lines in a run of CLONE_WINDOW that occurs more than once, where the runs are)."""
    seen, total, dup = collections.defaultdict(list), 0, collections.defaultdict(set)
    for path in paths:
        rows = list(_normalised(read(root, path)))
        total += len(rows)
        for i in range(len(rows) - CLONE_WINDOW + 1):
            window = tuple(row for _, row in rows[i : i + CLONE_WINDOW])
            seen[window].append((path, i, rows[i][0]))
    runs = []
    for spots in seen.values():
        if len(spots) < 2:
            continue
        if not all(i in dup[path] for path, i, _ in spots):
            runs.append(" = ".join(f"{path}:{line}" for path, _, line in spots))
        for path, i, _ in spots:
            dup[path].update(range(i, i + CLONE_WINDOW))
    return sum(map(len, dup.values())) / max(total, 1), runs


def include_edges(root):
    """File -> the files of the tree it includes; every include is written from the root."""
    paths = set(files(root, CPP))
    return {p: [i.target for i in includes(read(root, p)) if i.target in paths] for p in sorted(paths)}


def strongly_connected(edges):
    """Sets of more than one node that reach each other (Tarjan)."""
    index, low, stack, out = {}, {}, [], []

    def visit(v):
        index[v] = low[v] = len(index)
        stack.append(v)
        for w in edges.get(v, ()):
            if w not in index:
                visit(w)
                low[v] = min(low[v], low[w])
            elif w in stack:
                low[v] = min(low[v], index[w])
        if low[v] == index[v]:
            at = stack.index(v)
            part = stack[at:]
            del stack[at:]
            if len(part) > 1:
                out.append(sorted(part))

    for v in list(edges):
        if v not in index:
            visit(v)
    return out


def run(name, violations):
    """The main function of a check: checks the tree that it lies in, or the one named; exits 1 if anything is
    wrong."""
    root = sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent
    wrong, summary = violations(root)
    for line in wrong:
        print(f"{name}: {line}")
    print(f"{name}: {summary}: {'FAIL, ' + str(len(wrong)) + ' found' if wrong else 'ok'}")
    sys.exit(1 if wrong else 0)
