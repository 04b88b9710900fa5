"""A model of transformers without weights: which layers it has, and how its inputs reach them."""

import contextlib

import torch
from torch import nn

from heddle.errors import FileError, Unsupported


@contextlib.contextmanager
def _parameters_on_meta():
    """Parameters that modules get have no memory; buffers, such as frequencies, have their values."""
    register = nn.Module.register_parameter

    def on_meta(self, name, parameter):
        register(self, name, parameter)
        if parameter is not None:
            made = nn.Parameter(parameter.to("meta"), requires_grad=False)
            self._parameters[name] = made

    nn.Module.register_parameter = on_meta
    try:
        yield
    finally:
        nn.Module.register_parameter = register


def skeleton(folder):
    """The model that a folder's config.json describes, its parameters without memory. Needs transformers."""
    import transformers

    try:
        config = transformers.AutoConfig.from_pretrained(folder.path)
        with _parameters_on_meta(), torch.no_grad():
            model = transformers.AutoModelForCausalLM.from_config(config)
    except (ValueError, KeyError, OSError) as error:
        raise FileError(f"[{folder.path}] transformers makes no model of config.json: {error}") from error
    return model.eval().requires_grad_(False)


def fill(module, prefix, folder):
    """Gives a module its weights from the folder."""
    wanted = [name for name, each in module.named_parameters() if each.is_meta]
    missing = [name for name in wanted if f"{prefix}.{name}" not in folder]
    if missing:
        raise Unsupported(
            f"[{folder.path}] has no tensor {prefix}.{missing[0]}, which transformers' class has: its layers"
            " are stored in another form; take --method rtn"
        )
    state = {name: folder.tensor(f"{prefix}.{name}") for name in wanted}
    module.load_state_dict(state, strict=False, assign=True)
    return state


def empty(module):
    """Takes a module's weights away again."""
    for each in module.modules():
        for name, parameter in each._parameters.items():
            if parameter is not None:
                each._parameters[name] = nn.Parameter(parameter.to("meta"), requires_grad=False)


def decoder_layers(model):
    """(name, list of layers) of the model's text decoder."""
    count = getattr(model.config.get_text_config(), "num_hidden_layers", None)
    for name, module in model.named_modules():
        if isinstance(module, nn.ModuleList) and len(module) == count:
            return name, module
    raise Unsupported(
        f"[quantize] {type(model).__name__} has no list of {count} decoder layers; take --method rtn"
    )
