"""Writes tests/goldens/tokenizer/folders.jsonl: what AutoTokenizer makes of folders with various files.

Each line has the golden tokenizer that lies there (or a tokenizer.model in base64), the other files, and
the ids of some texts. It needs transformers 5.24: earlier ones lose the dummy prefix of a tokenizer.model.
"""

import base64
import json
import random
import tempfile
from pathlib import Path

from other_tokenizers import charsmap
from transformers import AutoTokenizer, convert_slow_tokenizer
from transformers.utils import sentencepiece_model_pb2_new as model_pb2

FOLDER = Path(__file__).resolve().parents[2] / "tests/goldens/tokenizer"
TEXTS = [
    "héllo 1234 你好 <x>",
    " the loom <x> lifts<y>  it's\n",
    "<s>ab</s> \ufb01ne",
    "<mask> Ann <mask> isn't",
    "▁q's <y>  q's(.x)  ",
    "",
]
LLAMA = {"tokenizer_class": "LlamaTokenizer", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
FAST = {"tokenizer_class": "PreTrainedTokenizerFast"}
TYPE = {"__type": "AddedToken"}


def token(content: str, **flags: bool) -> dict:
    off = {"lstrip": False, "normalized": False, "rstrip": False, "single_word": False, "special": True}
    return {"content": content} | off | flags


def case(base: str, config: dict | None, model_type: str = "llama", **files: dict) -> dict:
    named = {f"{name}.json": value for name, value in files.items()}
    if config is not None:
        named["tokenizer_config.json"] = config
    return {"base": base, "files": {"config.json": {"model_type": model_type}} | named}


def piece_model(unigram: bool, normalizer: dict) -> str:
    """A tokenizer.model of the golden llama2 or xlmr, with user-defined pieces, in base64.

    The scores of BPE's pieces are drawn where `normalizer` has a "scores" that seeds them.
    """
    model = model_pb2.ModelProto()
    file = json.loads(
        (FOLDER / ("xlmr" if unigram else "llama2") / "tokenizer.json").read_text(encoding="utf-8")
    )
    vocab = file["model"]["vocab"]
    pieces = vocab if unigram else [(text, -float(vocab[text])) for text in sorted(vocab, key=vocab.get)]
    draw = random.Random(normalizer["scores"]) if "scores" in normalizer else None
    for text, score in [*pieces, ("<y>", 0.0), ("▁q's", 0.0), ("(.x)", 0.0)]:
        if draw:
            score = -draw.random()
        kinds = {"<unk>": 2, "<s>": 3, "</s>": 3, "<y>": 4, "▁q's": 4, "(.x)": 4}
        kind = 6 if text.startswith("<0x") else kinds.get(text, 1)
        model.pieces.add(piece=text, score=score, type=kind)
    spec = model.trainer_spec
    spec.model_type, spec.byte_fallback = 1 if unigram else 2, not unigram
    number = {piece[0]: id_ for id_, piece in enumerate(pieces)}
    spec.unk_id, spec.bos_id, spec.eos_id = number["<unk>"], number["<s>"], number["</s>"]
    if unigram:
        model.normalizer_spec.precompiled_charsmap = charsmap()
    for name, value in normalizer.items():
        if name != "scores":
            setattr(model.normalizer_spec, name, value)
    return base64.b64encode(model.SerializeToString()).decode()


RENAMED = {
    "added_tokens_decoder": {"9": token("<x>"), "400": token("<mask>", normalized=True), "1": token("</s>")}
}
# The kind of model, how it normalizes, tokenizer_config.json and the model type.
MODELS = [
    ("bpe", {}, FAST | {"additional_special_tokens": []}, "mistral"),
    (
        "bpe",
        {},
        FAST | {"extra_special_tokens": {"image_token": "<x>"}, "additional_special_tokens": ["<z>"]},
        "mistral",
    ),
    ("bpe", {}, {"tokenizer_class": "LlamaTokenizer", "add_bos_token": True}, "llama"),
    (
        "bpe",
        {},
        {"tokenizer_class": "LlamaTokenizer", "add_eos_token": True, "legacy": True, "eos_token": "<y>"},
        "llama",
    ),
    ("bpe", {"scores": 1}, FAST | {"add_bos_token": True}, "llama"),
    ("bpe", {}, {"tokenizer_class": "GemmaTokenizer", "add_bos_token": True, "bos_token": "<s>"}, "gemma"),
    ("bpe", {"remove_extra_whitespaces": False}, LLAMA | {"add_bos_token": True}, "mistral"),
    ("bpe", {"scores": 2}, LLAMA | {"legacy": False} | RENAMED, "mistral"),
    ("bpe", {"remove_extra_whitespaces": False}, FAST | RENAMED, "mistral"),
    ("bpe", {"add_dummy_prefix": False}, FAST | {"add_eos_token": True}, "phi3"),
    ("bpe", {"escape_whitespaces": False}, FAST, "phi3"),
    ("unigram", {}, None, "llama"),
    ("unigram", {}, FAST | {"add_eos_token": True} | RENAMED, "llama"),
    ("unigram", {"add_dummy_prefix": False, "remove_extra_whitespaces": False}, FAST, "mistral"),
]

# Folders with vocab.json and merges.txt, or vocab.txt, made of the golden tokenizer.
SPLIT = [
    case("gpt2", {"tokenizer_class": "GPT2Tokenizer", "add_bos_token": True, "bos_token": "<x>"}, "gpt2"),
    case("gpt2", {"tokenizer_class": "GPTNeoXTokenizer", "add_eos_token": True}, "gpt_neox"),
    case("qwen", None, "qwen2", added_tokens={"<x>": 600, "<y>": 601}),
    case("gpt2", {"tokenizer_class": "CohereTokenizer", "add_eos_token": True}, "cohere"),
    case("gpt2", {"tokenizer_class": "RobertaTokenizer"}, "roberta"),
    case("bert", {"tokenizer_class": "BertTokenizer"}, "bert"),
]  # fmt: skip

CASES = [
    case("llama2", None),
    case("llama2", LLAMA),
    *(case("llama2", LLAMA | {"add_prefix_space": on}) for on in (False, True)),
    *(case("llama2", LLAMA | {"add_prefix_space": on, "legacy": True}) for on in (False, True)),
    case("llama2", LLAMA | {"add_bos_token": False, "add_eos_token": True}),
    case("llama2", FAST | {"add_bos_token": False, "add_eos_token": True, "add_prefix_space": False}),
    case("gpt2", LLAMA),
    case("gpt2", FAST, added_tokens={"<x>": 701, "<y>": 702}),
    case("gpt2", FAST | {"bos_token": "<x>"}, added_tokens={"<x>": 999, "<y>": 5}),
    case("gpt2", FAST, special_tokens_map={"bos_token": "<s>", "eos_token": token("</s>", lstrip=True)}),
    case("gpt2", FAST | {"bos_token": "<y>"}, special_tokens_map={"bos_token": "<x>"}),
    case("gpt2", FAST | {"bos_token": "<y>", "added_tokens_decoder": {"701": token("<x>", lstrip=True)}},
         special_tokens_map={"bos_token": "</s>"}, added_tokens={"<mask>": 701}),
    case("gpt2", FAST | {"added_tokens_decoder": {"703": token("<x>"), "702": token("<y>", special=False)}}),
    case("gpt2", FAST | {"additional_special_tokens": ["<x>", "<mask>"]}),
    case("gpt2", FAST | {"extra_special_tokens": ["<y>"], "additional_special_tokens": ["<x>"]}),
    case("gpt2", FAST | {"image_token": "<x>", "pad_token": "<y>"}),
    case("gpt2", FAST | {"extra_special_tokens": {"image_token": "<x>", "boi": token("<y>") | TYPE}}),
    case("gpt2", FAST | {"extra_special_tokens": {"bos_token": "<y>"}, "additional_special_tokens": ["<x>"]}),
    case("gpt2", FAST | {"image_token": "<mask>", "extra_special_tokens": {"image_token": "<x>"}},
         special_tokens_map={"image_token": "<y>"}),
    case("gpt2", FAST | {"model_specific_special_tokens": {"image_token": "<x>"}}),
    case("gpt2", FAST | {"bos_token": "<s>", "split_special_tokens": True,
                         "added_tokens_decoder": {"701": token("<x>"), "702": token("<y>", special=False)}}),
    case("gpt2", {"tokenizer_class": "GPT2Tokenizer", "add_prefix_space": True}, "gpt2"),
    case("gpt2", None, "gpt2"),
    case("llama3", {"tokenizer_class": "GPTNeoXTokenizerFast"}, "gpt_neox"),
    case("llama3", {"tokenizer_class": "CohereTokenizer"}, "cohere"),
    case("llama3", None, "qwen2"),
    case("llama3", LLAMA, "qwen2"),
    case("llama3", FAST, "qwen3"),
    case("qwen", {"tokenizer_class": "Qwen2Tokenizer", "add_prefix_space": True}, "qwen3"),
    case("llama2", LLAMA, "mistral"),
    case("llama2", LLAMA, "phi3"),
    case("gemma", {"tokenizer_class": "GemmaTokenizer", "bos_token": "<s>", "eos_token": "</s>"}, "gemma"),
    case("bert", {"tokenizer_class": "BertTokenizer", "do_lower_case": False}, "bert"),
    case("bert", {"tokenizer_class": "BertTokenizer", "strip_accents": False}, "bert"),
    case("xlmr", {"tokenizer_class": "XLMRobertaTokenizer"}, "xlm-roberta"),
    case("gpt2", {"tokenizer_class": "RobertaTokenizer", "cls_token": "<x>", "sep_token": "<y>"}, "roberta"),
    case("t5", {"tokenizer_class": "PreTrainedTokenizerFast"}, "t5"),
]  # fmt: skip


def write_split(base: str, folder: Path) -> None:
    model = json.loads((FOLDER / base / "tokenizer.json").read_text(encoding="utf-8"))["model"]
    vocab = model["vocab"]
    if "merges" not in model:
        lines = sorted(vocab, key=vocab.get)
        (folder / "vocab.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
        return
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"]]
    (folder / "vocab.json").write_text(json.dumps(vocab))
    (folder / "merges.txt").write_text("\n".join(["#version: 0.2", *merges, ""]), encoding="utf-8")


def main() -> None:
    # The package sentencepiece is not needed to read a model, but asked for.
    convert_slow_tokenizer.requires_backends = lambda *_: None
    convert_slow_tokenizer.import_protobuf = lambda *_: model_pb2
    lines = []
    rows = [(row, None) for row in CASES]
    rows += [(case(kind, *more), normalizer) for kind, normalizer, *more in MODELS]
    rows += [(row | {"split": True}, None) for row in SPLIT]
    for row, normalizer in rows:
        with tempfile.TemporaryDirectory() as folder:
            if normalizer is not None:
                row["model"] = piece_model(row["base"] == "unigram", normalizer)
                Path(folder, "tokenizer.model").write_bytes(base64.b64decode(row["model"]))
            elif "split" in row:
                write_split(row["base"], Path(folder))
            else:
                text = (FOLDER / row["base"] / "tokenizer.json").read_text(encoding="utf-8")
                Path(folder, "tokenizer.json").write_text(text, encoding="utf-8")
            for name, value in row["files"].items():
                Path(folder, name).write_text(json.dumps(value))
            tokenizer = AutoTokenizer.from_pretrained(folder)
            row["special_tokens"] = {name: str(value) for name, value in tokenizer.special_tokens_map.items()}
            row["texts"] = [{"text": text, "ids": tokenizer(text)["input_ids"]} for text in TEXTS]
            for item in row["texts"]:
                item["decoded"] = tokenizer.decode(item["ids"])
            lines.append(json.dumps(row))
    (FOLDER / "folders.jsonl").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
