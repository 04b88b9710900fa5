"""Writes tests/goldens/tokenizer/folders.jsonl: what AutoTokenizer makes of folders with various files.

Each line has the golden tokenizer that lies there (or a tokenizer.model in base64), the other files, and
the ids of some texts.
"""

import base64
import json
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
    "",
]
LLAMA = {"tokenizer_class": "LlamaTokenizer", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
FAST = {"tokenizer_class": "PreTrainedTokenizerFast"}


def token(content: str, **flags: bool) -> dict:
    off = {"lstrip": False, "normalized": False, "rstrip": False, "single_word": False, "special": True}
    return {"content": content} | off | flags


def case(base: str, config: dict | None, model_type: str = "llama", **files: dict) -> dict:
    named = {f"{name}.json": value for name, value in files.items()}
    if config is not None:
        named["tokenizer_config.json"] = config
    return {"base": base, "files": {"config.json": {"model_type": model_type}} | named}


def piece_model(unigram: bool, fallback: bool) -> str:
    """A tokenizer.model of the golden llama2 or xlmr, with a user-defined piece, in base64."""
    model = model_pb2.ModelProto()
    file = json.loads(
        (FOLDER / ("xlmr" if unigram else "llama2") / "tokenizer.json").read_text(encoding="utf-8")
    )
    vocab = file["model"]["vocab"]
    pieces = vocab if unigram else [(text, -float(vocab[text])) for text in sorted(vocab, key=vocab.get)]
    for text, score in [*pieces, ("<y>", 0.0)]:
        kinds = {"<unk>": 2, "<s>": 3, "</s>": 3, "<y>": 4}
        kind = 6 if text.startswith("<0x") else kinds.get(text, 1)
        model.pieces.add(piece=text, score=score, type=kind)
    spec = model.trainer_spec
    spec.model_type, spec.byte_fallback = 1 if unigram else 2, fallback
    number = {piece[0]: id_ for id_, piece in enumerate(pieces)}
    spec.unk_id, spec.bos_id, spec.eos_id = number["<unk>"], number["<s>"], number["</s>"]
    if unigram:
        model.normalizer_spec.precompiled_charsmap = charsmap()
    return base64.b64encode(model.SerializeToString()).decode()


MODELS = [
    ("bpe", {"tokenizer_class": "LlamaTokenizer", "add_bos_token": True}, "llama"),
    (
        "bpe",
        {"tokenizer_class": "LlamaTokenizer", "add_eos_token": True, "legacy": True, "eos_token": "<y>"},
        "llama",
    ),
    ("bpe", FAST | {"add_bos_token": True}, "llama"),
    ("bpe", {"tokenizer_class": "GemmaTokenizer", "add_bos_token": True, "bos_token": "<s>"}, "gemma"),
    ("unigram", None, "llama"),
    ("unigram", FAST | {"add_eos_token": True}, "llama"),
]

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


def main() -> None:
    # The package sentencepiece is not needed to read a model, but asked for.
    convert_slow_tokenizer.requires_backends = lambda *_: None
    convert_slow_tokenizer.import_protobuf = lambda *_: model_pb2
    lines = []
    for row in [*CASES, *(case(*model) for model in MODELS)]:
        with tempfile.TemporaryDirectory() as folder:
            if row["base"] in ("bpe", "unigram"):
                row["model"] = piece_model(row["base"] == "unigram", row["base"] == "bpe")
                Path(folder, "tokenizer.model").write_bytes(base64.b64decode(row["model"]))
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
