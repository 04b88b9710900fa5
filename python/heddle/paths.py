"""Which way a call takes, and which one it took."""

from dataclasses import dataclass

from heddle import _heddle
from heddle.errors import named


@dataclass(frozen=True)
class Path:
    """The path of a call. `device`: "cpu", or "cuda:0". `copies`: inputs that did not lie as rows and were
    copied first. `body`: the code that ran, "matmul_kernel.sm90" for a whole kernel, with the name of one
    that is not the file's first; `why_no_kernel`: why the op's whole kernel did not."""

    op: str
    backend: str
    device: str
    copies: int
    threads: int
    body: str = ""
    why_no_kernel: str = ""
    tuned: str = ""  # "tuned: config columns=64,rows=64 of 2"; empty: the op's default configuration
    gradient: str = ""  # "node": torch has a node in C++ for it; "python"; empty: no input required one

    @property
    def reason(self) -> str:
        if self.backend == "reference":
            return f'heddle.set_backend("{self.op}", "reference") was called, or backend="reference" given'
        return self.tuned or "kernels are the default"


@named
def set_backend(op: str, backend: str) -> None:
    """Makes calls of an op run its "kernel" (the default) or its fp64 "reference", in all threads."""
    _heddle.set_backend(op, backend)


@named
def last_path() -> Path | None:
    """The path of this thread's last call; None before the first one."""
    made = _heddle.last_path()
    return Path(**made) if made else None
