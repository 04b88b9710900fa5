"""The exceptions of heddle. A message names the op, the argument, its value, and what would be right."""


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
