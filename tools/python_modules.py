"""The modules of python/heddle, and which of them each imports, at once or inside of a function.

`from heddle import _heddle` is the compiled module, and no edge. A name that `heddle` itself exports, as in
`heddle.Error`, is an edge to the package; `heddle.ops.add` is one to heddle.ops.

"""

import ast
import collections
import os

import measure

FOLDER = "python"
PACKAGE = "heddle"
COMPILED = "heddle._heddle"
IMPORTERS = {"import_module", "__import__"}

Import = collections.namedtuple("Import", "line target")


def modules(root):
    """{name: path} of all modules; a package has the name of its folder."""
    found = {}
    for path in measure.files(root, (".py",), (f"{FOLDER}/{PACKAGE}",)):
        name = os.path.splitext(os.path.relpath(path, FOLDER))[0].replace(os.sep, ".")
        found[name.removesuffix(".__init__")] = path
    return found


def _dotted(node):
    """ "heddle.ops.add" of an expression; "" where it is no chain of names."""
    names = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(names)]) if isinstance(node, ast.Name) else ""


def _nodes(node):
    """A node and those in it; of a chain of names, `a.b.c`, the whole one alone."""
    yield node
    if not (isinstance(node, ast.Attribute) and _dotted(node)):
        for child in ast.iter_child_nodes(node):
            yield from _nodes(child)


def _names(tree, package):
    """(line, dotted name) of what a module imports, and of what it takes from `heddle` once that is bound."""
    nodes = list(_nodes(tree))
    plain = [alias for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    is_bound = any(alias.name.split(".")[0] == PACKAGE and not alias.asname for alias in plain)
    for node in nodes:
        if isinstance(node, ast.Import):
            named = [alias.name for alias in node.names if "." in alias.name or alias.asname]
            yield from ((node.lineno, name) for name in named)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: package.count(".") + 2 - node.level] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Call) and _dotted(node.func).rpartition(".")[2] in IMPORTERS:
            text = node.args[0] if node.args else None
            if isinstance(text, ast.Constant) and isinstance(text.value, str):
                yield node.lineno, text.value
        elif isinstance(node, ast.Attribute) and is_bound:
            yield node.lineno, _dotted(node)


def imports(root):
    """{module: its imports of other modules of the package, by line}"""
    known = modules(root)
    found = {}
    for name, path in sorted(known.items()):
        package = name if path.endswith("__init__.py") else name.rpartition(".")[0]
        targets = set()
        for line, target in _names(ast.parse(measure.read(root, path)), package):
            if target.split(".")[0] == PACKAGE and not f"{target}.".startswith(f"{COMPILED}."):
                while target not in known:
                    target = target.rpartition(".")[0]
                targets.add(Import(line, target))
        found[name] = sorted(each for each in targets if each.target != name)
    return found


def room(module, path):
    """The folder that a module belongs to: heddle.own of heddle.own.op. A module at the top and a command,
    `__main__`, are rooms of their own."""
    folder, _, last = module.rpartition(".")
    alone = path.endswith("__init__.py") or folder in ("", PACKAGE) or last == "__main__"
    return module if alone else folder
