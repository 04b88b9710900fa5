"""Ops as a command line names them: rms_norm, and those of one's own: my_file.py:MyOp, my_file.py,
package.module:MyOp."""

import hashlib
import importlib
import importlib.util
import sys
import traceback
from pathlib import Path

from heddle import ops
from heddle.commands.command_line import op_named
from heddle.errors import InvalidArgument
from heddle.own.folder import load_ops
from heddle.own.op import Op, _made, own_of


def is_own(word):
    """Says whether a word names ops of a file, a folder or a module."""
    place, colon, name = word.rpartition(":")
    return word.endswith(".py") or bool(colon and place and name.isidentifier())


def ops_named(tool, names):
    """The registry's names of the ops of a command line; `all` is every op of heddle that can be called.
    Raises InvalidArgument for a name that is none."""
    if list(names) == ["all"]:
        return [name for name in ops.NAMES if ops.info(name).callable]
    made = []
    for name in names:
        if name in ops.NAMES:
            made.append(name)
        elif is_own(name):
            made += [_made(cls).name for cls in classes_named(tool, name)]
        elif own_of(name) is not None:
            made.append(name)
        else:
            op_named(tool, name, ops.NAMES)
    return made


def classes_named(tool, word):
    """The classes of heddle.Op that the word names."""
    place, name = (word, "") if word.endswith(".py") else word.rsplit(":", 1)
    known = load_ops(place) if Path(place).is_dir() else _declared_in(_module(tool, place))
    if not known:
        raise InvalidArgument(f"[{tool}] {place} declares no op; must have a class of heddle.Op")
    if not name:
        return list(known.values())
    if name not in known:
        raise InvalidArgument(f"[{tool}] {place} has no op {name}; it has {', '.join(known)}")
    return [known[name]]


def _declared_in(module):
    own = {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, Op)
    }
    return {name: cls for name, cls in own.items() if cls.writes and cls.__module__ == module.__name__}


def _module(tool, place):
    """The module of a file or of a name. Its folder is where it looks for others, as with `python
    my_file.py`."""
    path = Path(place)
    if not place.endswith(".py"):
        sys.path.insert(0, "")
    elif not path.exists():
        raise InvalidArgument(f"[{tool}] there is no file {place}")
    else:
        sys.path.insert(0, str(path.resolve().parent))
    try:
        return _of_file(path.resolve()) if place.endswith(".py") else importlib.import_module(place)
    except Exception as error:  # foreign code may fail in any way
        frames = [
            each for each in traceback.extract_tb(error.__traceback__) if each.filename == str(path.resolve())
        ]
        where = f"{place}:{frames[-1].lineno}" if frames else place
        raise InvalidArgument(
            f"[{tool}] {where} cannot be imported: {type(error).__name__}: {error}"
        ) from error


def _of_file(path):
    name = f"heddle_file_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
