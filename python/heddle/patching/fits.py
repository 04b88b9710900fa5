"""Which calls heddle takes: a reason for every call that it leaves to the module's own forward."""

import torch

import heddle.ops
from heddle.errors import Error

# A forward-mode derivative is open where this level is not negative.
_forward_ad = torch.autograd.forward_ad
_is_transformed = torch._C._are_functorch_transforms_active
PLAIN = (torch.Tensor, torch.nn.Parameter)
FLOATS = (torch.float32, torch.float16, torch.bfloat16)
_TABLES = []

IN_TRANSFORM = "torch.func and forward-mode derivatives are torch's own"
IN_AUTOCAST = "autocast chooses the dtypes of torch's own ops"
F16_ON_CPU = "torch is faster in f16 on a CPU"


def verdicts():
    """A dict of reasons, which holds until `forget`."""
    _TABLES.append({})
    return _TABLES[-1]


def forget():
    """Has what was found out about types and devices found out again."""
    for table in _TABLES:
        table.clear()


_DEVICES = verdicts()  # a device to why heddle cannot use it


def transformed():
    """A transform watches values that the tensor's memory does not have."""
    return _is_transformed() or _forward_ad._current_level >= 0


def watched(x):
    """Returns why torch itself must see the call, or ""."""
    if transformed():
        return IN_TRANSFORM
    return IN_AUTOCAST if torch.is_autocast_enabled(x.device.type) else ""


def dtype_text(dtype):
    """`bfloat16` and so on."""
    return str(dtype).removeprefix("torch.")


def _device(device):
    """Returns why heddle does not run on that device, or ""."""
    if device.type not in ("cpu", "cuda"):
        return f"heddle does not run on {device.type}"
    if device not in _DEVICES:
        try:
            with torch.no_grad():
                one = torch.ones(1, 8, dtype=torch.float32, device=device)
                heddle.ops.rms_norm(one, one[0], eps=1e-6)
            _DEVICES[device] = ""
        except Error as error:
            _DEVICES[device] = f"heddle cannot run on {device}: {str(error).splitlines()[0]}"
    return _DEVICES[device]


def tensors(*values):
    """Returns why heddle's kernels cannot take these tensors, of one device, or ""."""
    for value in values:
        if type(value) not in PLAIN:
            return f"a tensor is a {type(value).__name__}"
        if value.dtype not in FLOATS:
            return f"a tensor is {dtype_text(value.dtype)}"
        if value.layout is not torch.strided:
            return "a tensor is not strided"
    device = values[0].device
    if any(value.device != device for value in values):
        return "tensors are on several devices"
    if device.type == "cpu" and values[0].dtype == torch.float16:
        return F16_ON_CPU
    return _device(device)


def same_dtype(x, weight):
    """Returns why the result of weight * x would have another dtype than x, or ""."""
    if x.dtype == weight.dtype:
        return ""
    return f"weight is {dtype_text(weight.dtype)}, x {dtype_text(x.dtype)}: the result may be of both"
