"""The layers of a model that are stored in codes, which have one format, and how config.json says so."""

import fnmatch
import re

from torch import nn

from heddle.errors import InvalidArgument, Unsupported

# Outputs, and routers of experts: they are small, and errors in them cost most.
SKIP = ("lm_head", "*.gate", "*router*", "*shared_expert_gate")
# Projections that engines multiply as one matrix, so that they have one format.
TOGETHER = (("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj"), ("w1", "w3"))
_EXPERT = re.compile(r"\.experts\.\d+\.[\w.]+$")


def is_skipped(name, skip):
    """True if a pattern of `skip`, with * and ? for others, is the layer's name, or its end after a dot."""
    return any(fnmatch.fnmatchcase(name, form) for each in skip for form in (each, "*." + each))


def linear_names(model, skip=SKIP, kinds=(nn.Linear,), caller="quantize"):
    """The names of the model's layers of these very classes that are not skipped."""
    unused = [each for each in skip if each not in SKIP]
    names = []
    for name, module in model.named_modules():
        if type(module) not in kinds:
            continue
        unused = [each for each in unused if not is_skipped(name, [each])]
        if not is_skipped(name, skip):
            names.append(name)
    if unused:
        raise InvalidArgument(f"[{caller}] --skip {unused[0]} is no layer's name, nor the end of one")
    if not names:
        there = sorted({type(module).__name__ for module in model.modules() if hasattr(module, "weight")})
        raise Unsupported(
            f"[{caller}] {type(model).__name__} has no layer to quantise or prune: only torch.nn.Linear is"
            f" one, and it has {', '.join(there) or 'no weights'}"
        )
    return names


def is_expert(name):
    """True for a layer of a mixture whose experts lie in a file one by one."""
    return bool(_EXPERT.search(name))


def units(names):
    """Lists of names that have one format: q, k and v of a layer, gate and up, the experts of a layer."""
    made = {}
    for name in names:
        path, _, last = name.rpartition(".")
        fellows = next((each for each in TOGETHER if last in each), (last,))
        if is_expert(name):
            path, fellows = path.split(".experts.")[0] + ".experts", ("",)
        made.setdefault((path, fellows[0]), []).append(name)
    return list(made.values())


def _targets(names, all_names):
    """Regular expressions that name these layers and no others."""
    ends = {}
    for name in names:
        ends.setdefault(name.rpartition(".")[2], []).append(name)
    made = []
    for end, mine in sorted(ends.items()):
        if len(mine) == sum(name.rpartition(".")[2] == end for name in all_names):
            made.append(rf"re:.*\.{end}$")
        else:
            made += [f"re:^{re.escape(name)}$" for name in mine]
    return made


def quantization_config(formats, left):
    """The quantization_config of layers with formats {name: Format}; `left`: names of other Linear layers."""
    kinds = {}
    for name, format in formats.items():
        kinds.setdefault(format, []).append(name)
    groups = {
        f"group_{number}": {
            "targets": ["Linear"] if len(kinds) == 1 else _targets(names, [*formats, *left]),
            "weights": format.scheme(),
            "input_activations": None,
            "output_activations": None,
            "format": format.stored,
        }
        for number, (format, names) in enumerate(kinds.items())
    }
    stored = {format.stored for format in kinds}
    return {
        "quant_method": "compressed-tensors",
        "format": stored.pop() if len(stored) == 1 else "mixed-precision",
        "quantization_status": "compressed",
        "config_groups": groups,
        "ignore": sorted(left),
    }
