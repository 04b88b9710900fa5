"""model.generate by heddle's engine: the whole model is one program, on the weights as they are now.

The engine packs the weights where they lie: once, and again when they change. A call that the engine cannot
answer as transformers would runs transformers' own generate instead.
"""

import contextlib
import functools
import os
import threading
import weakref

import torch
from torch.nn.modules import module as _modules

from heddle.errors import Error, InvalidArgument
from heddle.model import _records, config_with_class, load, terms
from heddle.patching import classes, content, fits
from heddle.patching.blueprint import Blueprint, buffers
from heddle.patching.kinds import Kind

# Settings that both have under the same name and with the same meaning.
_SETTINGS = (
    "repetition_penalty",
    "no_repeat_ngram_size",
    "min_new_tokens",
    "suppress_tokens",
    "begin_suppress_tokens",
    "bad_words_ids",
)
# These look at the tokens so far. In transformers padding is among them.
_COUNTING = ("repetition_penalty", "no_repeat_ngram_size", "bad_words_ids")
_SAMPLING = ("temperature", "top_k", "top_p", "min_p", "typical_p", "epsilon_cutoff", "eta_cutoff")
# These do not change which tokens follow, or are read by name below.
_READ = {
    *_SETTINGS,
    *_SAMPLING,
    "do_sample",
    "max_new_tokens",
    "max_length",
    "eos_token_id",
    "bos_token_id",
    "pad_token_id",
    "use_cache",
    "cache_implementation",
    "transformers_version",
    "disable_compile",
    "_from_model_config",
}


class RefusalError(Exception):
    """transformers' generate runs instead; the text says why."""


def _weights(root):
    """Everything that a state dict has. Tied weights are there under both names."""
    tensors = root.state_dict(keep_vars=True)
    for name, each in tensors.items():
        if type(each) not in fits.PLAIN or each.layout is not torch.strided:
            raise RefusalError(f"{name} is a {type(each).__name__}, not a plain tensor")
    return tensors


def _identity(root, tensors):
    """Returns all that makes an engine but numbers: names and types of weights, the config, the process."""
    facts = tuple((name, each.dtype, each.shape) for name, each in tensors.items())
    places = {}
    ties = tuple(places.setdefault(_place(each), name) for name, each in tensors.items())
    config = root.config.to_json_string()
    return _device(tensors), facts, ties, config, torch.get_num_threads(), os.getpid()


def _place(tensor):
    return tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype


def _numbers(tensors):
    """A digest of what the tensors hold, each memory once."""
    return content.digest({_place(each): each for each in tensors.values()}.values())


def _device(tensors):
    devices = {tensor.device for tensor in tensors.values()}
    if len(devices) != 1:
        raise RefusalError(f"weights are on {len(devices)} devices")
    (device,) = devices
    if device.type not in ("cpu", "cuda"):
        raise RefusalError(f"weights are on {device}")
    return str(device)


class _Engine:
    """heddle's model of a transformers model's weights, or why there is none."""

    def __init__(self, root, tensors, identity, numbers):
        self.identity, self.numbers = identity, numbers
        self.model, self.reason = None, ""
        self.users = 0  # threads with answers that have not ended
        device = _device(tensors)
        threads = {"threads": torch.get_num_threads()} if device == "cpu" else {}
        # Each call says where it ends. A model that names no end has none here.
        config = config_with_class(root, eos_token_id=None)
        try:
            self.model = load(tensors=_once(tensors), model_config=config, device=device, **threads)
        except Error as error:
            self.reason = f"heddle does not load it: {str(error).splitlines()[0]}"

    def update(self, tensors, numbers):
        """Takes new numbers of the same weights. False: it cannot, and is of no use any more."""
        if self.users or self.reason:
            return False
        try:
            self.model.update_weights(_once(tensors))
        except Error:
            return False
        self.numbers = numbers
        return True

    def close(self):
        if self.model:
            self.model.close()


def _once(tensors):
    """Without second names: a tied head is the embedding."""
    kept = {}
    for name, tensor in tensors.items():
        kept.setdefault(_place(tensor), (name, tensor.detach()))
    return dict(kept.values())


# Kept by model, outside of it, so that copies and pickles of a model have no engine.
_ENGINES = weakref.WeakKeyDictionary()
_BLUEPRINTS = weakref.WeakKeyDictionary()  # with the config that each is of
_LOCK = threading.Lock()  # guards both


def _blueprint(root):
    config = root.config.to_json_string()
    known, made = _BLUEPRINTS.get(root, (None, None))
    if known != config:
        try:
            made = Blueprint(root)
        except Exception as error:
            raise RefusalError(f"its class cannot be made of its config: {error}") from None
        _BLUEPRINTS[root] = config, made
    return made


@contextlib.contextmanager
def _engine(root):
    """The engine that has what the model has now, for the time of an answer."""
    with _LOCK:
        blueprint = _blueprint(root)
        if change := blueprint.change(root):
            raise RefusalError(change)
        tensors = _weights(root)
        identity = _identity(root, tensors)
        numbers = _numbers({**tensors, **buffers(root)})
        engine = _ENGINES.get(root)
        if engine is None or (engine.identity, engine.numbers) != (identity, numbers):
            if change := blueprint.change_of_buffers(root):
                _ENGINES.pop(root, None)
                raise RefusalError(change)
            if engine is None or engine.identity != identity or not engine.update(tensors, numbers):
                _ENGINES.pop(root, None)  # it is closed when no other thread has answers of it
                engine = None
                engine = _ENGINES[root] = _Engine(root, tensors, identity, numbers)
        if engine.reason:
            raise RefusalError(engine.reason)
        engine.users += 1
    try:
        yield engine.model
    finally:
        with _LOCK:
            engine.users -= 1


def release(root):
    """Frees the engine of a model."""
    _BLUEPRINTS.pop(root, None)
    engine = _ENGINES.pop(root, None)
    if engine:
        engine.close()


def _check_watchers(root):
    """A call of the engine is none of torch's modules and operations."""
    if root.training:
        raise RefusalError("the model is in training mode")
    if _modules._global_forward_hooks or _modules._global_forward_pre_hooks:
        raise RefusalError("torch has a hook for the modules of all models")


def _prompts(inputs, mask, pad):
    """The tokens of each row without its left padding."""
    if not isinstance(inputs, torch.Tensor) or inputs.dim() != 2 or inputs.numel() == 0:
        raise RefusalError("the prompt is not a tensor of tokens [batch, length]")
    if mask is None:
        if pad is not None and (inputs == pad).any():
            raise RefusalError("the prompt has the padding token, and there is no attention mask")
        return inputs.tolist()
    if not isinstance(mask, torch.Tensor) or mask.shape != inputs.shape:
        raise RefusalError("the attention mask is not one of the prompt's tokens")
    mask = mask != 0
    if (mask[:, 1:] < mask[:, :-1]).any() or not mask[:, -1].all():
        raise RefusalError("the attention mask is not one of left padding")
    return [row[seen].tolist() for row, seen in zip(inputs, mask, strict=True)]


def _settings(config, length, given):
    """heddle's settings of a call: max_tokens and how tokens are chosen."""
    # transformers 5 keeps None for what was not given, and has the defaults in a table.
    table = getattr(config, "_get_default_generation_params", None)
    defaults = table() if table else type(config)().to_dict()
    for name, value in config.to_dict().items():
        if name not in _READ and value is not None and value is not False and value != defaults.get(name):
            raise RefusalError(f"{name} is {value!r}")
    if config.cache_implementation not in (None, "dynamic", "static"):
        raise RefusalError(f"cache_implementation is {config.cache_implementation!r}")
    if config.max_new_tokens is not None:
        count = config.max_new_tokens
    elif "max_length" in given:
        count = config.max_length - length
    else:
        raise RefusalError("neither max_new_tokens nor max_length is given")
    if count < 1:
        raise RefusalError(f"{count} new tokens are asked for")
    made = {"max_tokens": count, "temperature": 0.0}
    for name in (*_SETTINGS, *(_SAMPLING if config.do_sample else ())):
        value = getattr(config, name, None)
        if value is not None and (name in _SAMPLING or value != defaults.get(name)):
            made[name] = value
    if config.do_sample:
        made["seed"] = int(torch.randint(1 << 62, (), device="cpu"))  # as torch.manual_seed has it
    ends = [] if config.eos_token_id is None else config.eos_token_id
    ends = ends.tolist() if isinstance(ends, torch.Tensor) else ends
    ends = [ends] if isinstance(ends, int) else list(ends)
    if ends:
        made["eos_token_id"] = ends
    return made, ends


def _tokens(engine, prompts, settings):
    """The new tokens of each prompt."""
    most = max(map(len, prompts)) + settings["max_tokens"]
    if most > engine.stats["max_context"]:
        raise RefusalError(
            f"prompt and answer may have {most} tokens; the engine holds {engine.stats['max_context']}"
        )
    try:
        answers = engine._made.start(prompts, settings, terms("generate"), "generate")
    except InvalidArgument as error:
        raise RefusalError(str(error).splitlines()[0]) from None
    return [[token.id for token in _records(answer)] for answer in answers]


def _answer(root, inputs, generation_config, keywords):
    """The tokens of all rows, as transformers returns them; raises RefusalError."""
    for name in ("logits_processor", "stopping_criteria"):
        if name in keywords and len(keywords[name] or ()) == 0:
            keywords.pop(name)
    keywords = {
        name: value for name, value in keywords.items() if value is not None or name == "eos_token_id"
    }
    for name in _ARGUMENTS:
        if keywords.get(name):
            raise RefusalError(f"{name} is given")
        keywords.pop(name, None)
    _check_watchers(root)
    given = {*keywords, *(generation_config.to_diff_dict() if generation_config is not None else ())}
    config, rest = root._prepare_generation_config(generation_config, **keywords)
    inputs = rest.pop("input_ids", None) if inputs is None else inputs
    mask = rest.pop("attention_mask", None)
    rest.pop("use_cache", None)
    for name, value in rest.items():
        if value is not None and value is not False:
            raise RefusalError(f"{name} is given")
    prompts = _prompts(inputs, mask, config.pad_token_id)
    settings, ends = _settings(config, inputs.shape[1], given)
    if any(len(prompt) != inputs.shape[1] for prompt in prompts):
        for name in _COUNTING:
            if name in settings:
                raise RefusalError(f"{name} counts padding too in transformers")
    pad = config.pad_token_id if config.pad_token_id is not None else (ends[0] if ends else 0)
    with _engine(root) as engine:
        made = _tokens(engine, prompts, settings)
    longest = max(map(len, made))
    rows = torch.tensor(
        [row + [pad] * (longest - len(row)) for row in made], dtype=inputs.dtype, device="cpu"
    )
    return torch.cat([inputs, rows.to(inputs.device)], dim=1)


_ARGUMENTS = (
    "logits_processor",
    "stopping_criteria",
    "prefix_allowed_tokens_fn",
    "synced_gpus",
    "assistant_model",
    "streamer",
    "negative_prompt_ids",
    "negative_prompt_attention_mask",
    "custom_generate",
)


class Generate(Kind):
    """A model whose generate asks the engine first."""

    method = "generate"
    otherwise = "transformers"

    def members(self, original):
        own = original.generate

        @functools.wraps(own)
        def generate(self, inputs=None, generation_config=None, *more, **keywords):
            calls = self.__dict__.get(classes.CALLS)
            if calls is None or original.generate is not own:
                return original.generate(self, inputs, generation_config, *more, **keywords)
            try:
                made = _answer(
                    self, inputs, generation_config, {**dict(zip(_ARGUMENTS, more, strict=False)), **keywords}
                )
            except RefusalError as refused:
                reason = str(refused)
                calls[reason] = calls.get(reason, 0) + 1
                return own(self, inputs, generation_config, *more, **keywords)
            calls[""] = calls.get("", 0) + 1
            return made

        return {"generate": generate}

    def after_take_off(self, module, root):
        release(module)


GENERATE = classes.register(
    Generate("generate", "generate", "heddle engine", least=0, least_training=0, training_dtypes=())
)
