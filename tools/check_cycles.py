#!/usr/bin/env python3
"""Checks that no folders, and no files (a header with its source is one), include each other in a ring.

Modules and rooms of python/heddle import each other in no ring, either.

"""

import os

import measure
import python_modules


def units(edges):
    """The includes of headers with their sources: heddle/ir/op.h and heddle/ir/op.cpp are heddle/ir/op."""
    found = {}
    for path, targets in edges.items():
        unit = os.path.splitext(path)[0]
        found.setdefault(unit, set()).update({os.path.splitext(t)[0] for t in targets} - {unit})
    return found


def python_rings(root):
    """Rings of modules, and those of rooms that are not made of such."""
    paths = python_modules.modules(root)
    found, rooms = python_modules.imports(root), {}
    edges = {module: {each.target for each in targets} for module, targets in found.items()}
    for module, targets in edges.items():
        here = python_modules.room(module, paths[module])
        others = {python_modules.room(target, paths[target]) for target in targets}
        rooms.setdefault(here, set()).update(others - {here})
    rings = measure.strongly_connected(edges)
    return rings + [ring for ring in measure.strongly_connected(rooms) if ring not in rings]


def violations(root):
    edges = measure.include_edges(root)
    folders = {os.path.dirname(path): set() for path in edges}
    for path, targets in edges.items():
        folders[os.path.dirname(path)] |= {os.path.dirname(t) for t in targets} - {os.path.dirname(path)}
    rings = measure.strongly_connected(folders) + measure.strongly_connected(edges)
    pairs = measure.strongly_connected(units(edges))
    rings += [ring for ring in pairs if ring not in rings]
    rings += python_rings(root)
    return ["in a ring: " + ", ".join(ring) for ring in rings], f"{len(folders)} folders"


if __name__ == "__main__":
    measure.run("cycles", violations)
