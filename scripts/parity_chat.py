"""Compares `heddle template` with transformers' apply_chat_template on random conversations.

Without MODEL_DIR: the templates of tests/goldens/chat, and small ones that show every construct, filter, test
and method of Jinja; else those of the models. A small template may be refused as not supported, but only by
heddle alone; a difference and a text where transformers refuses are errors.

Exercises: heddle/base heddle/text apps/heddle

usage: parity_chat.py [--heddle build/release/heddle] [--count 100] [--part 5] [--seed 1]
                      [MODEL_DIR...]
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts/goldens"))
from constructs import CONSTRUCTS  # noqa: E402
from make_chats import SPECIAL_TOKENS, construct_request, reference, templates, tokenizer  # noqa: E402
from odd_constructs import has_address, made_by_rule, named  # noqa: E402
from random_chat import RandomChat  # noqa: E402
from transformers import AutoTokenizer, PreTrainedTokenizerBase  # noqa: E402


def heddle(program: str, model: Path, requests: list[dict]) -> list[dict]:
    """The answer of `heddle template` to each request: {"text"} or {"error"}."""
    lines = "".join(json.dumps(request) + "\n" for request in requests)
    command = [program, "template", str(model), "--json-lines"]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr}")
    return [json.loads(line) for line in done.stdout.split("\n") if line]


def compare(program: str, model: Path, theirs: PreTrainedTokenizerBase, options: argparse.Namespace) -> int:
    """The number of conversations that are not equal, after the first few were shown."""
    chats = RandomChat(options.seed)
    # The day may change while this runs, so it is set. A request that both refuse does not count.
    requests, want = [], []
    written = 0
    while written < options.count and len(requests) < 20 * options.count:
        request = chats.draw()
        request["extra"].setdefault("date_string", "09 Mar 2025")
        requests.append(request)
        want.append(reference(theirs, None, request))
        written += want[-1] is not None
    got = heddle(program, model, requests)
    if len(got) != len(requests):
        sys.exit(f"{model.name}: {len(got)} answers to {len(requests)} lines")
    wrong = [i for i in range(len(requests)) if got[i].get("text") != want[i]]
    for i in wrong[:3]:
        print(f"{model.name}: {json.dumps(requests[i])}\n  want {want[i]!r}\n  got  {got[i]!r}")
    refused = len(requests) - written
    print(f"{model.name}: {written} conversations written, {refused} refused: {len(wrong)} differ")
    if written < options.count:
        print(f"{model.name}: too few conversations that the template takes")
        return len(wrong) + 1
    return len(wrong)


def compare_constructs(program: str, model: Path, options: argparse.Namespace) -> int:
    """The number of small templates that differ, after they were shown. The seed chooses the part of those
    that rules make."""
    theirs, request = tokenizer(), construct_request()
    made = list(made_by_rule())[options.seed % options.part :: options.part]
    every = dict.fromkeys([*CONSTRUCTS, *named(), *made])
    every = [template for template in every if "strftime_now" not in template]  # the goldens set the clock
    want = [reference(theirs, template, request) for template in every]
    got = heddle(program, model, [{**request, "chat_template": template} for template in every])
    wrong = refused = 0
    for template, theirs_text, ours in zip(every, want, got, strict=True):
        text = ours.get("text")
        if text == theirs_text or has_address(theirs_text):
            continue
        if text is None:
            refused += 1
            continue
        wrong += 1
        print(f"{template}\n  want {theirs_text!r}\n  got  {text!r}")
    print(f"constructs: {len(every)} templates, {refused} not supported, {wrong} differ")
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--heddle", default=str(ROOT / "build/release/heddle"))
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--part", type=int, default=5, metavar="N", help="one of N templates made by rules; 1: all"
    )
    parser.add_argument("models", nargs="*", type=Path)
    options = parser.parse_args()
    wrong = 0
    for model in options.models:
        wrong += compare(options.heddle, model, AutoTokenizer.from_pretrained(str(model)), options)
    with tempfile.TemporaryDirectory() as folder:
        for name, text in {} if options.models else templates().items():
            model = Path(folder, name)
            model.mkdir()
            config = {**SPECIAL_TOKENS, "chat_template": text}
            (model / "tokenizer_config.json").write_text(json.dumps(config))
            theirs = tokenizer()
            theirs.chat_template = text
            wrong += compare(options.heddle, model, theirs, options)
        if not options.models:
            wrong += compare_constructs(options.heddle, model, options)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
