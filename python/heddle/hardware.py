"""The devices that heddle can use on this machine, and models made ready for them."""

import dataclasses
import re

from heddle import _heddle
from heddle.errors import InvalidArgument, Unsupported, named

TYPE_CHECKING = False  # a type checker takes it for true
if TYPE_CHECKING:
    import torch

__all__ = [
    "AMDBackend",
    "CPUBackend",
    "Device",
    "HardwareAbstractionLayer",
    "IntelBackend",
    "NVIDIABackend",
    "TPUBackend",
    "detect_available_devices",
]

FLOATS = ("float32", "bfloat16", "float16")
CODES = ("float8_e4m3fn", "float8_e5m2", "int8")


@dataclasses.dataclass(frozen=True)
class Device:
    """A device that heddle can use.

    kind: "cpu" or "cuda"; name: the processor's, as its driver or system says; place: "cpu", "cuda:0";
    capabilities: "floats" and "codes" (dtypes of matmul's operands), "executors" (which run whole models),
    "level" (the instruction set or the architecture that kernels are compiled for), "graphs";
    ceilings: measured limits, "read_bytes_per_second" of memory. It is empty where nothing was measured.
    """

    kind: str
    name: str
    place: str
    capabilities: dict
    ceilings: dict


def _cpu(said):
    rate = re.match(r"([\d.]+) GB/s", said.get("memory", ""))
    capabilities = {
        "floats": FLOATS,
        "codes": CODES,
        "executors": ("threads",),
        "level": said["simd"].split()[0],
        "graphs": False,
    }
    ceilings = {"read_bytes_per_second": float(rate[1]) * 1e9} if rate else {}
    return Device("cpu", _heddle.device_name(), "cpu", capabilities, ceilings)


def _gpu(text, compiles):
    """The GPU of a line of `heddle env`; None for one that cannot be used."""
    found = re.match(r"(cuda:\d+): (.*) \((sm_\w+)\), ", text)
    if found is None or "cannot be used" in text or not compiles:
        return None
    place, name, arch = found.groups()
    executors = ("launches", "megakernel")
    capabilities = {"floats": FLOATS, "codes": CODES, "executors": executors, "level": arch, "graphs": True}
    return Device("cuda", name, place, capabilities, {})


def _lines():
    for text in _heddle.describe_backends().values():
        for line in text.splitlines():
            name, _, rest = line.partition(" ")
            yield name, rest.strip()


def detect_available_devices() -> "list[Device]":
    """The devices that heddle can use, GPUs first. It measures how fast the CPU reads memory, which takes
    some tenths of a second."""
    lines = list(_lines())
    return [*_gpus(lines), _cpu(dict(lines))]


def _gpus(lines):
    compiles = not dict(lines).get("nvrtc", "none").startswith("none")
    gpus = [_gpu(text, compiles) for name, text in lines if name == "gpu"]
    return [gpu for gpu in gpus if gpu]


def _why_no_gpu(lines):
    said = [text for name, text in lines if name in ("gpu", "nvrtc") and "none" in text[:5]]
    return "; ".join(said) or "; ".join(text for name, text in lines if name == "gpu")


class CPUBackend:
    """Models on CPU threads."""

    kind = "cpu"

    @named
    def prepare_model(self, model: "torch.nn.Module") -> "torch.nn.Module":
        """Moves a model to this kind of device, and lets its norms, MLPs, attention and loss run in heddle.
        Returns the same model; heddle.patched(model) is the table of what runs where."""
        from heddle.patching import patch

        if not hasattr(model, "parameters"):
            raise InvalidArgument(
                f"[prepare_model] model is of type {type(model).__name__}; must be a torch.nn.Module"
            )
        model.to(self.kind)
        patch(model)
        return model


class NVIDIABackend(CPUBackend):
    """Models on a GPU of NVIDIA, from compute capability 8.0 on."""

    kind = "cuda"

    def __init__(self):
        lines = list(_lines())  # the CPU is measured each time
        if not _gpus(lines):
            raise Unsupported(f"[NVIDIABackend] there is no GPU that heddle can use: {_why_no_gpu(lines)}")


class _Missing:
    """A kind of device that heddle has no code for."""

    lacks = ""

    def __init__(self):
        raise Unsupported(
            f"[{type(self).__name__}] heddle has no backend for it: {self.lacks}. There are CPUBackend and"
            " NVIDIABackend"
        )


class AMDBackend(_Missing):
    """Refused: there is no ROCm."""

    lacks = "device code is compiled by NVRTC, and would need HIP's runtime compiler and matrix instructions"


class TPUBackend(_Missing):
    """Refused: there is no XLA."""

    lacks = "programs are tiles with shared memory and signals, and TPUs take graphs of XLA"


class IntelBackend(_Missing):
    """Refused: there is no SYCL or Level Zero. CPUs of Intel are CPUBackend's."""

    lacks = "device code is compiled by NVRTC, and would need Level Zero's compiler"


class HardwareAbstractionLayer:
    """The devices of this machine, and models made ready for the best of them."""

    def __init__(self):
        self.devices = detect_available_devices()

    @named
    def optimize_for_hardware(self, model: "torch.nn.Module") -> "torch.nn.Module":
        """As prepare_model of the first device's backend: a GPU's where there is one."""
        backend = NVIDIABackend if self.devices[0].kind == "cuda" else CPUBackend
        return backend().prepare_model(model)
