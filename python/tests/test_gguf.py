"""A GGUF file alone is a model: weights with gguf-py's bits, configuration, tokenizer and template."""

import json
import struct
import subprocess
import sys
import warnings
from pathlib import Path

import numpy
import pytest
import tokenizers
import torch
import transformers
from safetensors.torch import save_file

import gguf_files
import heddle

GOLDENS = Path(__file__).parents[2] / "tests" / "goldens" / "tokenizer"
OPTIONS = {"device": "cpu", "threads": 1, "max_context": 64}
IDS = [3, 17, 5, 99, 42, 7]
SIZES = {
    "vocab_size": 128, "hidden_size": 256, "intermediate_size": 256, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64, "max_position_embeddings": 128,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "tie_word_embeddings": False,
}  # fmt: skip
GEMMA = {"query_pre_attn_scalar": 64, "tie_word_embeddings": True, "sliding_window": 4}
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 256}
# Class of the configuration, its changes, keys of the file that do not follow from it, and if transformers'
# own reader of GGUF takes all of its keys.
FAMILIES = {
    "llama": ("Llama", {}, {}, True),
    "mixtral": ("Mixtral", {"num_local_experts": 4, "num_experts_per_tok": 2}, {}, False),
    "mistral": ("Mistral", {"sliding_window": 4}, {}, False),
    "qwen2": ("Qwen2", {}, {}, True),
    "qwen2moe": ("Qwen2Moe", {**EXPERTS, "shared_expert_intermediate_size": 256},
                 {"expert_shared_feed_forward_length": 256}, False),
    "qwen3": ("Qwen3", {"tie_word_embeddings": True}, {}, False),
    "qwen3moe": ("Qwen3Moe", {**EXPERTS, "norm_topk_prob": True}, {}, False),
    "gemma": ("Gemma", {"tie_word_embeddings": True}, {}, False),
    "gemma2": ("Gemma2", GEMMA, {}, False),
    "gemma3": ("Gemma3Text", GEMMA, {}, False),
    "phi3": ("Phi3", {"sliding_window": 4}, {}, False),
    "granite": ("Granite", {}, {}, False),
    "olmo2": ("Olmo2", {}, {}, False),
    "smollm3": ("SmolLM3", {}, {}, False),
}  # fmt: skip


def tiny(name, **changes):
    config = getattr(transformers, FAMILIES[name][0] + "Config")(**{**SIZES, **FAMILIES[name][1], **changes})
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = transformers.AutoModelForCausalLM.from_config(config)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.1) if parameter.dim() == 1 else parameter.mul_(
                    4
                )
    return model.float().eval()


def write(path, name, model=None, **options):
    architecture = "llama" if name in ("mixtral", "mistral") else name
    norms = {"gemma2": "gemma2", "gemma3": "gemma2", "olmo2": "olmo2"}.get(name, "llama")
    return gguf_files.write(
        path, model or tiny(name), architecture, norms=norms, ints=FAMILIES[name][2], **options
    )


def logits(path, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with heddle.load(path, **{**OPTIONS, **options}) as model:
            return model.logits(IDS)


def of_folder(model, values, folder, **options):
    """The logits of a folder with these values."""
    model.config.save_pretrained(folder)
    save_file({name: tensor.contiguous() for name, tensor in values.items()}, folder / "model.safetensors")
    return logits(folder, **options)


@pytest.mark.parametrize("kind", ["F32", "F16", "BF16", *gguf_files.BLOCKS])
def test_weights_of_each_type_have_the_bits_of_gguf_py(kind, tmp_path):
    model = tiny("llama")
    values = write(tmp_path / "m.gguf", "llama", model, kind_of=lambda _: kind)
    (tmp_path / "m").mkdir()
    assert numpy.array_equal(logits(tmp_path / "m.gguf"), of_folder(model, values, tmp_path / "m"))


def test_types_are_mixed_in_a_file_and_q4_0_may_stay_codes(tmp_path):
    model = tiny("llama")
    kinds = {"attn_q": "Q4_0", "attn_k": "Q4_0", "attn_v": "Q6_K", "ffn_down": "Q5_K", "token_embd": "F16"}

    def kind_of(name):
        return next((kind for part, kind in kinds.items() if part in name), "Q4_0")

    values = write(tmp_path / "m.gguf", "llama", model, kind_of=kind_of)
    (tmp_path / "m").mkdir()
    wanted = of_folder(model, values, tmp_path / "m")
    assert numpy.array_equal(logits(tmp_path / "m.gguf"), wanted)
    write(tmp_path / "all.gguf", "llama", model, kind_of=lambda _: "Q4_0")
    floats = logits(tmp_path / "all.gguf")
    assert numpy.array_equal(logits(tmp_path / "all.gguf", weights="codes"), floats)


@pytest.mark.parametrize("name", FAMILIES)
def test_families_agree_with_transformers(name, tmp_path):
    model = tiny(name)
    if name == "granite":
        model = tiny(
            name,
            attention_multiplier=0.5,
            embedding_multiplier=3.0,
            residual_multiplier=0.25,
            logits_scaling=2.0,
        )
    with torch.no_grad():
        wanted = model(torch.tensor([IDS])).logits[0].numpy()
    floats = {}
    if name == "granite":
        floats = {"attention.scale": 0.5, "embedding_scale": 3.0, "residual_scale": 0.25, "logit_scale": 2.0}
    write(tmp_path / "m.gguf", name, model, floats=floats)
    got = logits(tmp_path / "m.gguf")
    assert numpy.abs(got - wanted).max() < 2e-4 * numpy.abs(wanted).max()
    if FAMILIES[name][3]:
        read = transformers.AutoModelForCausalLM.from_pretrained(
            tmp_path, gguf_file="m.gguf", dtype=torch.float32
        )
        with torch.no_grad():
            theirs = read(torch.tensor([IDS])).logits[0].numpy()
        assert numpy.abs(got - theirs).max() < 2e-4 * numpy.abs(theirs).max()


def test_factors_of_frequencies_are_those_of_llama3(tmp_path):
    rope = {
        "rope_type": "llama3", "rope_theta": 10000.0, "original_max_position_embeddings": 64,
        "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    }  # fmt: skip
    model = tiny("llama", rope_parameters=rope)
    plain = 1.0 / 10000.0 ** (torch.arange(0, 64, 2).double() / 64)
    factors = (plain / model.model.rotary_emb.inv_freq.double()).float().numpy()
    assert abs(factors.max() - 8) < 1e-5
    write(tmp_path / "m.gguf", "llama", model, tensors={"rope_freqs.weight": factors})
    with torch.no_grad():
        wanted = model(torch.tensor([IDS])).logits[0].numpy()
    assert numpy.abs(logits(tmp_path / "m.gguf") - wanted).max() < 2e-4 * numpy.abs(wanted).max()
    write(tmp_path / "without.gguf", "llama", model)
    assert numpy.abs(logits(tmp_path / "without.gguf") - wanted).max() > 1e-3


def test_a_model_may_lie_in_several_files(tmp_path):
    model = tiny("llama")
    write(tmp_path / "m.gguf", "llama", model, kind_of=lambda _: "Q5_1")
    write(tmp_path / "part.gguf", "llama", model, kind_of=lambda _: "Q5_1", split_max_tensors=9)
    parts = sorted(tmp_path.glob("part-*.gguf"))
    assert len(parts) == 3
    wanted = logits(tmp_path / "m.gguf")
    for part in parts:
        assert numpy.array_equal(logits(part), wanted)
    parts[1].rename(tmp_path / "away")
    with pytest.raises(
        heddle.FileError, match=r"part-00002-of-00003.gguf\] is missing; the model is in 3 files"
    ):
        logits(parts[0])


TEXTS = [
    "The loom isn't 12345 threads wide.",
    " Two  spaces,\n\n\tand tabs  \r\n",
    "naïve — 織機 ½ ǅ",
    "a<|eot|>b",
    "",
    "x" * 40,
]


def metadata_of(tokenizer, kind, **keys):
    """Writes the vocabulary of a tokenizer.json, as a converter of llama.cpp does."""
    ids = dict(tokenizer["model"]["vocab"])
    added = {token["id"]: token for token in tokenizer["added_tokens"]}
    ids.update((token["content"], number) for number, token in added.items())
    tokens = [f"[PAD{i}]" for i in range(max(ids.values()) + 1)]
    types = [5] * len(tokens)
    for token, number in ids.items():
        tokens[number], types[number] = token, 6 if len(token) == 6 and token.startswith("<0x") else 1
    for number, token in added.items():
        types[number] = 3 if token["special"] else 4

    def words(writer, vocab):
        assert vocab == len(tokens)
        writer.add_tokenizer_model(kind)
        writer.add_token_list(tokens)
        writer.add_token_types(types)
        if kind == "llama":
            merges = [
                pair if isinstance(pair, list) else pair.split(" ") for pair in tokenizer["model"]["merges"]
            ]
            rank = {"".join(pair): number for number, pair in reversed(list(enumerate(merges)))}
            writer.add_token_scores([float(-rank.get(token, len(tokens))) for token in tokens])
        else:
            writer.add_token_merges(
                [m if isinstance(m, str) else " ".join(m) for m in tokenizer["model"]["merges"]]
            )
        for key, value in keys.items():
            add = {str: writer.add_string, bool: writer.add_bool, int: writer.add_uint32}[type(value)]
            add("tokenizer.chat_template" if key == "chat_template" else f"tokenizer.ggml.{key}", value)

    return words, len(tokens)


def with_words(path, words, vocab):
    """A model of so many tokens."""
    write(path, "llama", tiny("llama", vocab_size=vocab, hidden_size=64, num_hidden_layers=1), words=words)
    return heddle.load(path, **OPTIONS)


VOCABULARIES = (
    ("llama3", "gpt2", {"pre": "llama-bpe"}),
    ("qwen", "gpt2", {"pre": "qwen2"}),
    ("gpt2", "gpt2", {"pre": "gpt-2"}),
    ("llama2", "llama", {"bos_token_id": 1, "eos_token_id": 2, "unknown_token_id": 0}),
)


@pytest.mark.parametrize(("name", "kind", "keys"), VOCABULARIES)
def test_vocabularies_encode_as_their_tokenizer_json(name, kind, keys, tmp_path):
    file = GOLDENS / name / "tokenizer.json"
    theirs = tokenizers.Tokenizer.from_file(str(file))
    with with_words(tmp_path / "m.gguf", *metadata_of(json.loads(file.read_text()), kind, **keys)) as ours:
        for text in TEXTS:
            ids = theirs.encode(text, add_special_tokens=False).ids
            assert ours.tokenize(text, special=False) == ids, text
            assert ours.detokenize(ids) == theirs.decode(ids, skip_special_tokens=False)


def test_special_tokens_and_the_template_are_in_the_metadata(tmp_path):
    tokenizer = json.loads((GOLDENS / "llama2" / "tokenizer.json").read_text())
    template = "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"
    keys = {"bos_token_id": 1, "eos_token_id": 2, "unknown_token_id": 0, "chat_template": template}
    with with_words(tmp_path / "m.gguf", *metadata_of(tokenizer, "llama", **keys)) as model:
        assert (
            model.tokenize("a")[0] == 1
        )  # llama.cpp begins such texts with it, unless the file says otherwise
        assert model.tokenize("a", special=False)[0] != 1
        assert model.chat([{"role": "user", "content": "a"}], max_tokens=4) is not None
        assert model.generate("a", max_tokens=4) is not None
    with with_words(
        tmp_path / "n.gguf", *metadata_of(tokenizer, "llama", **{**keys, "add_bos_token": False})
    ) as model:
        assert model.tokenize("a") == model.tokenize("a", special=False)


def test_the_command_line_takes_the_file(tmp_path):
    write(tmp_path / "m.gguf", "llama", kind_of=lambda _: "Q4_K")
    command = [sys.executable, "-m", "heddle"]
    made = subprocess.run(
        [*command, "generate", tmp_path / "m.gguf", "--prompt", "the", "--max-tokens", "4"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    assert "Q4_K has no code in memory" in made.stderr
    made = subprocess.run(
        [*command, "inspect", tmp_path / "m.gguf"], capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr
    assert "llama: 2 layers" in made.stdout


def patched(path, change):
    content = bytearray(path.read_bytes())
    change(content)
    path.write_bytes(content)


def put(content, before, form, *values):
    """Puts numbers after the only occurrence of a text."""
    assert content.count(before) == 1
    struct.pack_into(form, content, content.index(before) + len(before), *values)


WRONG = {
    "cut": (
        lambda c: c.__delitem__(slice(len(c) - 100, None)),
        r"tensor .* lies at byte .*was it cut short",
    ),
    "cut_in_the_header": (lambda c: c.__delitem__(slice(60, None)), r"ends at byte 60"),
    "magic": (lambda c: c.__setitem__(slice(0, 4), b"GGML"), r"does not begin with GGUF"),
    "version": (lambda c: struct.pack_into("<I", c, 4, 9), r"version 9"),
    "order": (lambda c: struct.pack_into(">I", c, 4, 3), r"big-endian"),
    "tensors": (lambda c: struct.pack_into("<Q", c, 8, 2**60), r"ends at byte"),
    "values": (lambda c: struct.pack_into("<Q", c, 16, 2**60), r"of the type|ends at byte"),
    "type": (
        lambda c: put(c, b"blk.0.attn_q.weight", "<IQQI", 2, 256, 256, 34),
        r"blk.0.attn_q.weight. is in TQ1_0",
    ),
    "unknown_type": (
        lambda c: put(c, b"blk.0.attn_q.weight", "<IQQI", 2, 256, 256, 77),
        r"the unknown type 77",
    ),
    "dimensions": (
        lambda c: put(c, b"blk.0.attn_q.weight", "<I", 9),
        r"blk.0.attn_q.weight. has 9 dimensions",
    ),
    "blocks": (
        lambda c: put(c, b"blk.0.attn_q.weight", "<IQQ", 2, 255, 256),
        r"rows of 255 elements; in Q4_K",
    ),
    "overflow": (lambda c: put(c, b"blk.0.attn_q.weight", "<IQQ", 2, 2**40, 2**40), r"size overflows"),
    "offset": (
        lambda c: put(c, b"blk.0.attn_q.weight", "<IQQIQ", 2, 256, 256, 12, 2**63),
        r"lies at byte .* \+ 92",
    ),
    "alignment": (
        lambda c: put(c, b"blk.0.attn_q.weight", "<IQQIQ", 2, 256, 256, 12, 7),
        r"must be a multiple of 32",
    ),
    "list": (lambda c: put(c, b"tokenizer.ggml.tokens", "<IIQ", 9, 8, 2**62), r"ends at byte"),
    "kind": (lambda c: put(c, b"tokenizer.ggml.model", "<IQ4s", 8, 4, b"bert"), r"reads gpt2 and llama"),
    "words": (
        lambda c: put(c, b"tokenizer.ggml.pre", "<IQ5s", 8, 5, b"qwenX"),
        r"tokenizer.ggml.pre is .qwenX",
    ),
    "architecture": (
        lambda c: put(c, b"general.architecture", "<IQ5s", 8, 5, b"mamba"),
        r"is .mamba., .* it reads llama",
    ),
    "heads": (
        lambda c: put(c, b"llama.attention.head_count\x04\0\0\0", "<I", 5),
        r"num_key_value_heads = 2: must divide",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_file_that_is_wrong_is_one_line(case, tmp_path):
    change, says = WRONG[case]
    write(tmp_path / "m.gguf", "llama", kind_of=lambda _: "Q4_K")
    patched(tmp_path / "m.gguf", change)
    with pytest.raises(heddle.Error, match=says) as raised:
        heddle.load(tmp_path / "m.gguf", **OPTIONS)
    assert str(raised.value).startswith("[")
    assert "m.gguf" in str(raised.value)
    assert "\n" not in str(raised.value)
