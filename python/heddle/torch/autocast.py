"""torch.autocast: which dtype the inputs of an op get.

Products get autocast's dtype, on every device. Norms, softmax and sums get float32 on a GPU; on a CPU torch
leaves them alone. All other ops follow their inputs, as torch's do. A call with out= is not converted.
"""

import torch

KEYS = {"cpu": "AutocastCPU", "cuda": "AutocastCUDA"}  # torch's names of devices, and its dispatch keys
_FLOATS = (torch.float32, torch.float16, torch.bfloat16)


def caster(info):
    """A function that makes inputs what autocast wants; None where the op has no rule.

    Inputs with scales or zero points are codes: those stay.
    """
    if not info.autocast:
        return None
    lower = info.autocast == "lower"
    values = tuple("." not in each.field for each in info.inputs)

    def cast(inputs):
        device = inputs[0].device.type
        if device not in KEYS or not (lower or device == "cuda") or not torch.is_autocast_enabled(device):
            return inputs
        dtype = torch.get_autocast_dtype(device) if lower else torch.float32
        return tuple(
            each.to(dtype) if is_value and each is not None and each.dtype in _FLOATS else each
            for each, is_value in zip(inputs, values, strict=True)
        )

    return cast


def register(library, registered):
    """Has torch's dispatcher convert the inputs of `torch.ops.heddle.<name>`."""
    info, cast, call = registered.info, registered.cast, registered.functional

    def kernel(key):
        keys = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, key))

        def converted(*inputs, **attributes):
            inputs = (*inputs, *(None for _ in range(len(info.inputs) - len(inputs))))
            inputs = cast(inputs)
            with torch._C._ExcludeDispatchKeyGuard(keys):  # for torch it is off here
                return call(*inputs, **attributes)

        return converted

    for key in KEYS.values():
        library.impl(info.name, kernel(key), key)
