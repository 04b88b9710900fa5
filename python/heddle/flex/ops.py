"""Ops with a function of their scores: flash_attention and its gradient, compiled with what was traced."""

import threading

from heddle import _heddle
from heddle.errors import CompileError, Unsupported
from heddle.flex import text
from heddle.ops.info import info as info_of
from heddle.own.body import compile_source
from heddle.torch.register import OPS, Registered

FORWARD, BACKWARD = text.BASES
MOST_CAPTURED = 10  # a call reads 24 tensors at most, and the gradient has 14 of its own
_lock = threading.Lock()
_made = {}  # by key: the function of flash_attention with it


def compilations():
    """Counts the score_mods, with or without a mask, that this process has made ops of."""
    return len(_made)


def forms_of(captured):
    """The tensors as ops read them, and what they are compiled for: (dtype, dimensions)."""
    if len(captured) > MOST_CAPTURED:
        raise Unsupported(
            f"[flex_attention] {len(captured)} tensors are read, a mask being two; at most {MOST_CAPTURED}"
        )
    read = tuple(_readable(each) for each in captured)
    return read, tuple((each.dtype, each.dim()) for each in read)


def _readable(tensor):
    """Bodies read f32, bf16 and i32."""
    if tensor.dim() == 0:
        tensor = tensor.reshape(1)
    if tensor.dtype not in text.ELEMENTS:
        tensor = tensor.float() if tensor.is_floating_point() else tensor.int()
    return tensor.contiguous()


def op_of(score, masks, forms):
    """The function of flash_attention with that score. It compiles nothing before its first call. `masks`:
    the last two captured tensors are those of mask_cells."""
    key = text.key_of(score, masks, forms)
    with _lock:
        if key not in _made:
            backward = _add(BACKWARD, f"flex_{key}_backward", score, masks, forms, None)
            name = _add(FORWARD, f"flex_{key}", score, masks, forms, backward)
            for each in (backward, name):
                OPS[each] = Registered(info_of(each), _heddle.function(each))
            _made[key] = OPS[name].function
        return _made[key]


def _add(base, name, score, masks, forms, backward):
    captured = [
        (f"captured_{n}", ", ".join("." * rank), text.ELEMENTS[dtype][0])
        for n, (dtype, rank) in enumerate(forms)
    ]
    args = f"FlexArguments_{name}"

    def compile_body():
        source = text.host_text(base, args, header, body)
        library = compile_source(name, source, source, lambda log: CompileError(f"[{name}] {log}", log))
        _heddle.load_scored_body(name, str(library))

    layout = _heddle.add_scored_op(
        {
            "name": name,
            "base": base,
            "doc": f"{base} with a function of its scores",
            "captured": captured,
            "backward": backward,
            "compile": compile_body,
        }
    )
    header = text.header_text(base, args, forms, layout["bytes"])
    body = text.score_text(score, masks, forms, base)
    _heddle.set_scored_text(name, text.device_text(base, name, args, header, body))
    return name
