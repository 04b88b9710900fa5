"""The exceptions of heddle. A message names the op, the argument, its value, and what would be right."""

import functools
import re

TYPE_CHECKING = False  # a type checker takes it for true; `import heddle` is short without typing
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    F = TypeVar("F", bound=Callable[..., Any])
    C = TypeVar("C", bound=type)


class Error(Exception):
    """All that heddle raises."""


class InvalidArgument(Error, ValueError):
    """An argument of the caller is wrong."""


class Unsupported(Error, RuntimeError):
    """The arguments make sense, but this build or this machine cannot do it."""


class WrongCall(InvalidArgument, TypeError):
    """A function has no such argument, or lacks one that it must have."""


class UnknownName(InvalidArgument, AttributeError):
    """A module has nothing of that name."""


class PackageMissing(Unsupported, ImportError):
    """The request needs a package that is not installed."""


class CompilerMissing(Unsupported):
    """A body is to be compiled, and no compiler was found."""


class CompileError(Error):
    """A body did not compile. `log` has the compiler's messages, `line` the line of the first error."""

    def __init__(self, message: str, log: str = "", line: int | None = None) -> None:
        super().__init__(message)
        self.log = log or message
        self.line = line


class FileError(Error, OSError):
    """A file or folder is missing, short or malformed, or cannot be written."""


class DeviceError(Error, RuntimeError):
    """A run on a device failed."""


class DeadlineExceeded(Error, TimeoutError):
    """An answer was not complete when its deadline passed."""


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


def did_you_mean(name, known):
    """`; did you mean rms_norm?`, or nothing where no known name is like it."""
    from heddle import _heddle

    return _heddle.did_you_mean(str(name), [str(each) for each in known])


def _wrong_call(name, function, error):
    """The error of a call that Python refused, with what would be right."""
    import inspect

    signature = inspect.signature(function)
    names = [each for each in signature.parameters if each != "self"]
    plain = [signature.parameters[each].replace(annotation=inspect.Parameter.empty) for each in names]
    shown = inspect.Signature(plain)
    unknown = re.search(r"unexpected keyword argument '(\w+)'", str(error))
    if unknown:
        near = did_you_mean(unknown[1], names)
        return WrongCall(f"[{name}] has no argument {unknown[1]}{near}; must be called as {name}{shown}")
    said = str(error).partition("() ")[2] or str(error)
    return WrongCall(f"[{name}] {said}; must be called as {name}{shown}")


def named(function: "F", name: "str | None" = None) -> "F":
    """Has a function of the package refuse wrong arguments as heddle's own errors."""
    name = name or function.__name__

    @functools.wraps(function)
    def call(*arguments, **keywords):
        try:
            return function(*arguments, **keywords)
        except TypeError as error:
            # One that the call itself raised, before the function began.
            if isinstance(error, Error) or error.__traceback__.tb_next is not None:
                raise
            raise _wrong_call(name, function, error) from None

    return call  # type: ignore[return-value]


def named_class(cls: "C") -> "C":
    """Does the same for a class's constructor and its methods."""
    for member, function in list(vars(cls).items()):
        if member == "__init__":
            setattr(cls, member, named(function, cls.__name__))
        elif not member.startswith("_") and callable(function):
            setattr(cls, member, named(function))
    return cls
