"""Models: text, logits and tokens of a folder that `save_pretrained` writes.

>>> import heddle
>>> with heddle.load("models/storyteller") as model:
...     for token in model.stream("Once upon a time", max_tokens=20):
...         print(token.text, end="", flush=True)
"""

import inspect
import json
import os
import sys
import tempfile
import time
import warnings
import weakref
from dataclasses import dataclass

from heddle import _heddle
from heddle.display import bytes_text, table
from heddle.errors import Error, InvalidArgument, named, named_class
from heddle.progress import LOGGER, teller

__all__ = ["Logits", "Model", "Token", "from_transformers", "load"]

# Parts of names that libraries put around a model's own.
_WRAPPERS = {
    "_orig_mod.": "torch.compile",
    "_fsdp_wrapped_module.": "FSDP",
    "module.": "a wrapper such as DDP",
}
_ADAPTERS = (".lora_", ".base_layer.", ".modules_to_save.")


@dataclass(slots=True)
class Token:
    """A token of an answer.

    `text` is what became certain with it: whole characters, often nothing. The texts of all tokens together
    are the answer. `reasoning` is what became certain of the reasoning, which a chat model writes before its
    answer. `logprob` and `top`, the most likely tokens as (id, logprob), are there with `logprobs=N`.
    `finish_reason` is None but for the last token: "eos", "stop", "length" or "context".
    """

    text: str
    id: int
    index: int
    logprob: float | None
    finish_reason: str | None
    top: tuple | None
    reasoning: str = ""


class Logits:
    """Logits [tokens, vocab] in f32, for whatever reads DLPack: `torch.from_dlpack`, `numpy.from_dlpack`."""

    def __init__(self, made):
        self._made = made

    @property
    def shape(self):
        return self._made.shape

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if dl_device not in (None, self.__dlpack_device__()) or copy:
            raise BufferError("these logits lie on the CPU and are not copied; copy what you make of them")
        return self._made.capsule(max_version is not None and max_version[0] >= 1)

    def __dlpack_device__(self):
        return (1, 0)


def _records(answer):
    # Letting go of the answer ends it, also where the generator is left early.
    while (made := answer.next()) is not None:
        text, token, index, logprobs, reason, reasoning = made
        logprob, top = logprobs or (None, None)
        yield Token(text, token, index, logprob, reason, top, reasoning)


def _is_one(prompt):
    """One prompt: a text, or tokens."""
    if isinstance(prompt, str) or not isinstance(prompt, list | tuple):
        return True
    many = bool(prompt) and (isinstance(prompt[0], str | list | tuple) or getattr(prompt[0], "ndim", 0) > 0)
    return bool(prompt) and not many


def terms(name, reuse=False, streams=False, priority=0, deadline=None):
    """A caller's wishes for an answer, besides its settings, as the module takes them."""
    whole = isinstance(priority, int) and not isinstance(priority, bool)
    if not whole or not -(2**31) <= priority < 2**31:
        raise InvalidArgument(f"[{name}] priority is {priority!r}; must be a whole number of 32 bits")
    if deadline is not None and not (isinstance(deadline, int | float) and 0 < deadline < 1e9):
        raise InvalidArgument(f"[{name}] deadline is {deadline!r}; must be a number of seconds above 0")
    return bool(reuse), streams, priority, deadline


def _numbers(made):
    try:
        import numpy
    except ImportError:
        return Logits(made)
    return numpy.from_dlpack(Logits(made))


@named_class
class Model:
    """A model in memory. `heddle.load` makes one.

    Any number of threads may use it. A thread of its own computes, while the interpreter runs. Ctrl-C raises
    KeyboardInterrupt, on a CPU inside a step too, and the model stays usable.

    With `reuse`, the beginning of a prompt is taken from memory where an earlier prompt left it, and calls of
    several threads share steps, which is faster. Numbers are then rounded at other places, so that another
    token may be chosen where two are almost equally likely. Without it a call runs alone, and a text depends
    on nothing else that is or was asked. Prompts of a list share steps, with the same effect.

    `priority`: calls with a higher one go first, and equal ones as they came. `deadline`: seconds from now,
    after which the answer ends with heddle.DeadlineExceeded, whether it has begun or not.
    """

    def __init__(self, made, path=""):
        self._made = made
        self._path = path
        # At the end of the process its thread stops before Python is gone.
        self._closer = weakref.finalize(self, made.close)

    def generate(self, prompt, *, reuse=None, priority=0, deadline=None, **settings):
        """The text that continues a prompt, or a list of texts for a list of prompts, computed together.

        A prompt is a text or a list of tokens. `reuse` is true for a list unless it is given. Equal prompts
        of a list get different answers where tokens are chosen at random: the second one that of `seed` + 1.
        """
        is_one = _is_one(prompt)
        reuse = not is_one if reuse is None else bool(reuse)
        asked = terms("generate", reuse, False, priority, deadline)
        answers = self._made.start([prompt] if is_one else list(prompt), settings, asked, "generate")
        texts = [answer.finish() for answer in answers]
        return texts[0] if is_one else texts

    def generate_tokens(self, prompt, *, reuse=None, priority=0, deadline=None, **settings):
        """As `generate`, the tokens (`Token`) of an answer, or a list of such lists for a list of prompts.

        It needs no tokenizer where prompts are tokens. With `logprobs=0` tokens have their log-probabilities.
        """
        is_one = _is_one(prompt)
        reuse = not is_one if reuse is None else bool(reuse)
        asked = terms("generate_tokens", reuse, False, priority, deadline)
        answers = self._made.start([prompt] if is_one else list(prompt), settings, asked, "generate_tokens")
        made = [list(_records(answer)) for answer in answers]
        return made[0] if is_one else made

    def stream(self, prompt, *, reuse=False, priority=0, deadline=None, **settings):
        """An iterator of the tokens (`Token`) that continue a prompt. It may be left at any time.

        It begins when it is read, and computes at most 16 tokens in advance.
        """
        if not _is_one(prompt) and prompt:
            raise InvalidArgument("[stream] the prompt is a list of prompts; give one, or use generate")
        asked = terms("stream", reuse, True, priority, deadline)
        return _records(*self._made.start([prompt], settings, asked, "stream"))

    def chat(
        self,
        messages,
        *,
        stream=False,
        template=None,
        variables=None,
        chat_template_kwargs=None,
        reuse=True,
        priority=0,
        deadline=None,
        **settings,
    ):
        """The answer to a conversation: a text, or with `stream` an iterator of tokens.

        What the model thinks before it answers is not in the text; tokens have it as `reasoning`.

        `messages` is a list of dicts with "role" and "content", or a text that a user says. `template` is a
        file with a chat template to use instead of the model's, `variables` what it reads besides, such as
        {"tools": [...], "enable_thinking": False}; `chat_template_kwargs` is another name for `variables`.
        """
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        file = "" if template is None else os.fspath(template)
        given = [each for each in (variables, chat_template_kwargs) if each is not None]
        if len(given) > 1:
            raise InvalidArgument("[chat] variables and chat_template_kwargs are the same; give one of them")
        variables = given[0] if given else {}
        if not isinstance(variables, dict):
            raise InvalidArgument(f"[chat] variables is of type {type(variables).__name__}; must be a dict")
        asked = terms("chat", reuse, bool(stream), priority, deadline)
        (answer,) = self._made.start_chat(messages, file, variables, settings, asked)
        return _records(answer) if stream else answer.finish()

    def logits(self, tokens):
        """Logits [tokens, vocab] after each token, in f32, as a NumPy array, or `Logits` without NumPy.

        A list of prompts, each a list of tokens, gives a list of arrays. Prompts are read in steps of many
        rows, which they share, so that a number is rounded at other places than in a step of one token.
        """
        is_one = _is_one(tokens) or len(tokens) == 0
        made = [_numbers(each) for each in self._made.logits([tokens] if is_one else list(tokens))]
        return made[0] if is_one else made

    def tokenize(self, text, *, special=True):
        """The tokens of a text, with those that the tokenizer adds unless `special` is false."""
        return self._made.tokenize(text, bool(special))

    def detokenize(self, tokens, *, skip_special=False):
        """The text of tokens."""
        return self._made.detokenize(tokens, bool(skip_special))

    def update_weights(self, tensors):
        """Replaces weights by a caller's: all, or those that `tensors` names; the others stay as they are.

        `tensors` is a state dict, or (name, tensor) pairs, with the names, shapes and dtypes that the model
        was loaded with. A tied head may be there under its own name too. They are read where they lie, on the
        CPU or a GPU, and only during this call. InvalidArgument says what is wrong with one of them, and then
        nothing has changed. Otherwise the call waits for the step that runs. Answers that have begun and not
        ended fail, those that wait for their turn use the new weights, and the keys and values of the old
        weights are dropped. Tensors on the model's GPU are packed there, without the host's memory.
        """
        pairs = _named_tensors(tensors, "update_weights")
        _wait_for_gpu(pairs)
        self._made.update_weights(pairs)

    @property
    def stats(self):
        """Returns what runs the model, its sizes, and what its steps did so far, as a dict."""
        return self._made.stats()

    def close(self):
        """Frees the model's memory. Answers that have not ended fail."""
        self._closer()

    def _facts(self):
        """Describes it in words, by name."""
        try:
            stats = self.stats
        except Error as error:
            return {"folder": self._path, "state": str(error)}
        return {
            "folder": self._path,
            "device": stats["device"],
            "vocabulary": f"{stats['vocab']:,}",
            "context": f"{stats['max_context']:,} tokens",
            "weights": bytes_text(stats["weight_bytes"]),
            "KV cache": bytes_text(stats["kv_bytes"]),
        }

    def __repr__(self):
        facts = self._facts()
        return f"<Model {facts.pop('folder')}: {', '.join(f'{name} {text}' for name, text in facts.items())}>"

    def _repr_html_(self):
        return table(self._facts().items(), caption="heddle.Model")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def _found(path):
    """The folder of a model in the cache of the hub, which its name on the hub may stand for, or the path."""
    folder, said = _heddle.find_model(os.fspath(path))
    if said:
        LOGGER.info("[load] %s", said)
    return folder


def _named_tensors(tensors, where):
    """(name, tensor) pairs of a state dict or of pairs, whose names are a model's own."""
    if not hasattr(tensors, "__iter__"):
        raise InvalidArgument(
            f"[{where}] tensors is a {type(tensors).__name__}; must be a state dict, or pairs"
        )
    pairs = list(tensors.items() if hasattr(tensors, "items") else tensors)
    for pair in pairs:
        if not isinstance(pair, tuple | list) or len(pair) != 2 or not isinstance(pair[0], str):
            raise InvalidArgument(
                f"[{where}] tensors has a {type(pair).__name__}, {str(pair)[:40]!r}; must be a state dict, "
                "or pairs of a name and a tensor"
            )
        name = pair[0]
        for part, library in _WRAPPERS.items():
            if name.startswith(part) or (part.startswith("_") and part in name):
                raise InvalidArgument(
                    f"[{where}] {name}: {library} has put {part!r} into its name; give the state dict of the "
                    "model inside"
                )
        if any(part in name for part in _ADAPTERS):
            raise InvalidArgument(
                f"[{where}] {name} is a part of an adapter (PEFT), which is not merged; give the state dict "
                "of model.merge_and_unload(), or the saved adapter's folder to heddle.load(adapter=..)"
            )
    return [(name, tensor) for name, tensor in pairs]


def _wait_for_gpu(pairs):
    """Waits for what torch still computes on the GPUs of tensors. They are read on another stream."""
    torch = sys.modules.get("torch")
    for device in {tensor.device for _, tensor in pairs if getattr(tensor, "is_cuda", False)}:
        torch.cuda.synchronize(device)


def _config_text(config):
    """The text of a config.json: of a dict, of a config of transformers, or of text."""
    if config is None or isinstance(config, str):
        return config
    if isinstance(config, dict):
        return json.dumps(config)
    if not hasattr(config, "to_json_string"):
        raise InvalidArgument(
            f"[load] model_config is a {type(config).__name__}; must be a dict, a text or a config"
        )
    return config.to_json_string()


def config_with_class(model, **changes):
    """Writes the config.json of one of transformers' models, whose weights have the dtype of the first."""
    config = json.loads(model.config.to_json_string())
    dtype = str(next(model.parameters()).dtype).removeprefix("torch.")
    return json.dumps({**config, "architectures": [type(model).__name__], "dtype": dtype, **changes})


def _open(path, parts, device, ignore_generation, progress, options, name=""):
    if isinstance(ignore_generation, str):
        ignore_generation = (ignore_generation,)
    name = name or path
    began = time.monotonic()
    made = _heddle.load_model(path, str(device), options, list(ignore_generation), teller(progress), parts)
    model = Model(made, name)
    seconds = time.monotonic() - began
    LOGGER.info("[%s] loaded in %.1f s on %s", name, seconds, made.stats()["device"])
    for note in made.stats()["notes"]:
        warnings.warn(f"[{name}] {note}", stacklevel=4)  # the caller of what is public
    return model


@named
def load(
    path=None,
    *,
    device="auto",
    tensors=None,
    model_config=None,
    adapter=None,
    ignore_generation=(),
    progress=None,
    **options,
):
    """The model of a folder, of a GGUF file, or of a name on the hub ("org/name") that is in its cache.
    Without a tokenizer there, prompts are tokens, and so are answers: `generate_tokens`, `stream`, `logits`.

    `tensors`: weights in memory to use instead of the folder's files: a state dict, or (name, tensor) pairs
    of torch, NumPy or what else has DLPack, on the CPU or a GPU, with the names of a checkpoint. They are
    read where they lie, and only during this call: the model keeps packed weights of its own, and
    `Model.update_weights` takes new ones. `model_config`: what config.json says, as a dict, its text or a
    config of transformers; with it and `tensors` the folder may be left out, or hold a tokenizer alone.
    `adapter`: a folder with a LoRA adapter of PEFT, which is merged into the weights as they are read: summed
    in f32 and rounded once to the weight's type; `update_weights` does not take the weights that it changes.
    `device` is "cpu", "cuda", "cuda:1" and so on, or "auto": a GPU where there is one that can be used.
    `ignore_generation` names settings of its generation_config.json to go on without.
    `progress`: how far loading is, and the compiling of a GPU's kernels, also in the first answer. True shows
    a line, False says nothing, and a function gets each `heddle.progress.Progress`. None is a line on a
    terminal after two seconds, and elsewhere a message of `logging.getLogger("heddle")`.
    """
    if path is None and (tensors is None or model_config is None):
        raise InvalidArgument("[load] there is no path; give one, or both tensors and model_config")
    if model_config is not None and tensors is None:
        raise InvalidArgument(
            "[load] model_config is for tensors in memory: give tensors, or edit config.json"
        )
    parts = {}
    if tensors is not None:
        parts = {"config": _config_text(model_config), "tensors": _named_tensors(tensors, "load")}
        _wait_for_gpu(parts["tensors"])
    if adapter is not None:
        parts["adapter"] = os.fspath(adapter)
    name = "" if path is None else _found(path)
    return _open(name, parts, device, ignore_generation, progress, options, name or "tensors")


@named
def from_transformers(model, *, tokenizer=None, device=None, ignore_generation=(), progress=None, **options):
    """The model of one of transformers that is in memory: its config, its weights, its generation_config.

    The weights are read where they lie, as `load` reads `tensors`. `device` is theirs unless it is given.
    `tokenizer` is a folder or a name on the hub that has one, or a tokenizer of transformers, whose files are
    written to a temporary folder; without it prompts and answers are tokens, as in `generate_tokens`. After
    training, `update_weights(model.state_dict())` brings the new weights.
    """
    inside = getattr(model, "_orig_mod", model)
    if not hasattr(inside, "state_dict") or not hasattr(inside, "config"):
        raise InvalidArgument(f"[from_transformers] a {type(inside).__name__} is no model of transformers")
    if getattr(inside, "peft_config", None) is not None:
        raise InvalidArgument(
            f"[from_transformers] the {type(inside).__name__} has adapters (PEFT), which are not merged into "
            "its weights; give model.merge_and_unload()"
        )
    for name, module in getattr(inside, "named_modules", tuple)():
        if said := getattr(type(module), "not_its_weights", ""):
            raise InvalidArgument(f"[from_transformers] {name} {said}")
    pairs = _named_tensors(inside.state_dict(), "from_transformers")
    _wait_for_gpu(pairs)
    parts = {"config": config_with_class(inside), "tensors": pairs}
    if (generation := getattr(inside, "generation_config", None)) is not None:
        parts["generation"] = generation.to_json_string()
    if device is None:
        device = str(pairs[0][1].device) if pairs else "auto"
    folder, kept = "", None
    if hasattr(tokenizer, "save_pretrained"):
        kept = tempfile.TemporaryDirectory(prefix="heddle-tokenizer-")
        tokenizer.save_pretrained(kept.name)
        folder = kept.name
    elif tokenizer is not None:
        folder = _found(tokenizer)
    made = _open(folder, parts, device, ignore_generation, progress, options, type(inside).__name__)
    if kept is not None:  # chat templates are read when they are asked for
        weakref.finalize(made, kept.cleanup)
    return made


def _tell_keywords(function, keywords):
    """Puts the keywords that a function passes on into what `help` and editors show."""
    signature = inspect.signature(function)
    own = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
    new = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name, *_ in keywords]
    function.__signature__ = signature.replace(parameters=own + new)
    lines = [f"{name} ({kind}): {text}" for name, kind, text in keywords]
    own_text = inspect.cleandoc(function.__doc__ or "")  # `python -OO` leaves docstrings out
    function.__doc__ = own_text + "\n\n" + "\n".join(lines)


for _function in (Model.generate, Model.generate_tokens, Model.stream, Model.chat):
    _tell_keywords(_function, _heddle.describe_settings())
for _function in (load, from_transformers):
    _tell_keywords(_function, _heddle.describe_options())
