"""Whole kernels of ops of one's own: the plan of a call's launches, and its text for a device program.

A class of heddle.Op has `kernel`, the text or the pathlib.Path of CUDA, and `plan`, a function that says how
a call is launched. `docs/kernels.md` writes such a kernel.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace

from heddle.errors import InvalidArgument
from heddle.own.beside import origin

FILES = ("sm80", "sm90")  # for GPUs from there on
SWIZZLES = (0, 32, 64, 128)  # bytes of a row inside which words of 16 bytes are permuted
MOST_RANK, MOST_BOX = 5, 256
BYTES = {"f32": 4, "i32": 4, "f16": 2, "bf16": 2}


@dataclass(frozen=True)
class TensorMap:
    """A tensor as bulk copies see it (sm_90): a box of it is copied at once. What lies outside reads as zero.

    tensor    the name of an argument; None: the workspace
    box       elements of each dimension, the last one's lie next to each other: at most 256 of each, and
              `swizzle` bytes of the last
    swizzle   0, 32, 64 or 128: bytes of a row inside which words of 16 bytes are permuted on chip
    shape, strides   of the tensor as the box sees it, in elements; None: as the tensor lies
    offset    bytes from the tensor's address to its element 0
    dtype     of elements; None: the tensor's
    tf32      loads round f32 to tf32
    """

    tensor: str | None
    box: Sequence[int]
    swizzle: int = 128
    shape: Sequence[int] | None = None
    strides: Sequence[int] | None = None
    offset: int = 0
    dtype: str | None = None
    tf32: bool = False


@dataclass(frozen=True)
class Launch:
    """One launch: `grid` CTAs of `threads` threads, in clusters of `cluster`, with `shared_bytes` of dynamic
    memory on chip. `name` is the struct that runs; its kThreads are `threads`. Its `run` gets the `maps`."""

    grid: int
    threads: int = 128
    cluster: int = 1
    shared_bytes: int = 0
    maps: Sequence[TensorMap] = ()
    name: str = "Kernel"


@dataclass(frozen=True)
class KernelPlan:
    """Several launches, one after the other, or one with constants.

    constants         {"rows": 64} replaces kRows of the text's KernelConfig
    workspace_bytes   memory for the call; the first `cleared_bytes` of it are zero before the first launch
    file              "sm80" or "sm90": which text runs; None: the only one
    """

    launches: Sequence[Launch]
    constants: dict[str, int] = field(default_factory=dict)
    workspace_bytes: int = 0
    cleared_bytes: int = 0
    file: str | None = None


@dataclass(frozen=True)
class PlannedTensor:
    """A tensor of a call that is planned, without memory. None stands for one that is left out."""

    dtype: str  # "f32", "f16", "bf16", "i32"
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # elements


def call_of(names, tensors, attributes, config):
    """The argument of `plan`: tensors and attributes by name, and `config`, the values of a configuration."""
    made = dict.fromkeys(names)
    made |= {
        name: PlannedTensor(dtype, tuple(sizes), tuple(strides))
        for name, (dtype, sizes, strides) in tensors.items()
    }
    return SimpleNamespace(**made, **attributes, config=dict(config))


def gpu_of(target):
    """The device, as `plan` sees it: arch (90 for compute capability 9.0), multiprocessors, shared_bytes (a
    CTA's limit), tensor_maps: whether there are bulk copies of boxes."""
    return SimpleNamespace(**target)


def planned(declaration, made, call):
    """Converts what a plan returned: launches, or a text that says why there are none."""
    if isinstance(made, str) and made:
        return made
    if isinstance(made, Launch):
        made = KernelPlan([made])
    if not isinstance(made, KernelPlan) or not made.launches:
        raise InvalidArgument(
            f"[{declaration.name}] its plan returns {made!r}; must be a heddle.Launch, a heddle.KernelPlan of"
            " some, or a text that says why the kernel does not take the call"
        )
    files = [file for file, *_ in declaration.kernels]
    file = made.file or files[0]
    if file not in files:
        raise InvalidArgument(
            f"[{declaration.name}] its plan has file={file!r}; the class has {', '.join(files)}"
        )
    return {
        "file": file,
        "constants": dict(made.constants),
        "workspace_bytes": made.workspace_bytes,
        "cleared_bytes": made.cleared_bytes,
        "launches": [_launch(declaration, each, call) for each in made.launches],
    }


def _launch(declaration, launch, call):
    for name in ("grid", "threads", "cluster"):
        if getattr(launch, name) < 1:
            raise InvalidArgument(
                f"[{declaration.name}] its plan has {name}={getattr(launch, name)}; must be positive"
            )
    if launch.grid % launch.cluster:
        raise InvalidArgument(
            f"[{declaration.name}] its plan has {launch.grid} CTAs in clusters of {launch.cluster}; must be a"
            " multiple"
        )
    return {
        "name": launch.name,
        "grid": launch.grid,
        "cluster": launch.cluster,
        "threads": launch.threads,
        "shared_bytes": launch.shared_bytes,
        "maps": [_map(declaration, each, call) for each in launch.maps],
    }


def _map(declaration, given, call):
    tensor = getattr(call, given.tensor, None) if given.tensor else None
    if given.tensor and not isinstance(tensor, PlannedTensor):
        raise InvalidArgument(
            f"[{declaration.name}] a TensorMap names {given.tensor!r}; must be a tensor of the call"
        )
    shape = given.shape or (tensor and tensor.shape)
    strides = given.strides or (tensor and tensor.strides)
    dtype = given.dtype or (tensor and tensor.dtype)
    if not shape or not strides or dtype not in BYTES or given.swizzle not in SWIZZLES:
        raise InvalidArgument(
            f"[{declaration.name}] {given!r}; must have a shape, strides and a dtype, and a swizzle of 0, 32,"
            " 64 or 128"
        )
    if not len(shape) == len(strides) == len(given.box) <= MOST_RANK or not all(
        0 < each <= MOST_BOX for each in given.box
    ):
        raise InvalidArgument(
            f"[{declaration.name}] a TensorMap of {given.tensor} has the box {list(given.box)} of"
            f" {list(shape)}; must have as many dimensions, {MOST_RANK} at most, and at most {MOST_BOX}"
            " elements of each"
        )
    return {
        "tensor": given.tensor,
        "offset": given.offset,
        "dtype": dtype,
        "rank": len(shape),
        "size": list(reversed(shape)),
        "stride": [each * BYTES[dtype] for each in reversed(strides)],
        "box": list(reversed(given.box)),
        "swizzle": SWIZZLES.index(given.swizzle),
        "tf32": given.tf32,
    }


# A whole kernel may include these. Files of backend/cuda/device want the constants of a tile body's frame,
# and NVRTC has no headers but heddle's.
MAY_INCLUDE = re.compile(
    r'"heddle/(kit/(\w+/)?\w+\.cuh|kit/arch/tensor_map\.h|tile/\w+\.h|base/types\.h|ir/tensor\.h)"'
)
INCLUDE = re.compile(r"^[ \t]*#[ \t]*(?:include[ \t]*.*|pragma[ \t]+once.*)$", re.MULTILINE)


def hoisted(text, place):
    """The includes of a text, which stand ahead of its namespace, and as many lines without them. `place`:
    the number of its first line, and its file."""
    first, _, file = place.partition(" ")
    first, file, includes = int(first), file.strip('"'), ""
    for found in INCLUDE.finditer(text):
        if "pragma" not in found[0]:
            own, line = origin(text, first + text.count("\n", 0, found.start()), first, file)
            includes += f'#line {line} "{own}"\n{found[0].strip()}\n'
    return includes, INCLUDE.sub("", text)


def include_fault(text, first):
    """(line, what is wrong) of the first include that a whole kernel cannot have; None: all can be there.
    `first`: the number of the text's first line."""
    for found in INCLUDE.finditer(text):
        _, _, what = found[0].partition("include")
        if "pragma" not in found[0] and not MAY_INCLUDE.fullmatch(what.split("//")[0].strip()):
            line = first + text.count("\n", 0, found.start())
            return line, (
                f"it includes {what.strip()}; must be heddle/kit/kernel_sm80.cuh or kernel_sm90.cuh, or"
                " another header of heddle/kit or heddle/tile, or a file that is there, next to its own"
                " (docs/kernels.md)"
            )
    return None


def guarded(kernels, otherwise):
    """The code of the kernel that a device program chooses, or `otherwise`. `kernels`: (file, text, ...)."""
    parts = (f"if defined(HEDDLE_KERNEL_{file.upper()})\n{text}" for file, text, *_ in kernels)
    return f"#{'#el'.join(parts)}#else\n{otherwise}#endif\n"
