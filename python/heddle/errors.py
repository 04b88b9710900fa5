"""The exceptions of heddle. A message names the op, the argument, its value, and what would be right."""

import re


class Error(Exception):
    """All that heddle raises."""


class InvalidArgument(Error, ValueError):
    """An argument of the caller is wrong."""


class Unsupported(Error, RuntimeError):
    """The arguments make sense, but this build or this machine cannot do it."""


class CompilerMissing(Unsupported):
    """A body is to be compiled, and no compiler was found."""


class CompileError(Error):
    """A body did not compile. `log` has the compiler's messages, `line` the line of the first error."""

    def __init__(self, message, log="", line=None):
        super().__init__(message)
        self.log = log or message
        self.line = line


class DeviceError(Error, RuntimeError):
    """A run on a device failed."""


# As g++ and clang write it, "x.py:7:3: error: ...", and NVIDIA's compiler, "x.py(7): error: ...".
ERROR = re.compile(
    r"^(.+?)(?::(\d+):(?:\d+:)?|\((\d+)\):) (?:fatal |catastrophic )?error:? (.*)$", re.MULTILINE
)


def first_error(log, file=None):
    """(file, line, message) of the first error in a compiler's log, in `file` if one is there; or None."""
    found = [(where, int(a or b), what) for where, a, b, what in ERROR.findall(log)]
    mine = [each for each in found if each[0] == file] if file else []
    mine = mine or [each for each in found if not each[0].startswith("heddle")] or found
    return mine[0] if mine else None


def compile_error(message):
    """A device program did not compile: `message` is "[op] does not compile for ...:", and the log."""
    heading, _, log = message.partition("\n")
    found = first_error(log)
    if found is None:
        return CompileError(message, message)
    file, line, what = found
    return CompileError(f"{heading.split(' with ')[0]}: {file}:{line}: {what}", message, line)
