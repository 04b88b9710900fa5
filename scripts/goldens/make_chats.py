"""Writes tests/goldens/chat: the results of transformers on random conversations with the templates in that
folder, and on small templates that show one construct each.

The templates were written for these tests. They have the constructs of the families that they are named
after, but other words.

"""

import datetime
import json
from pathlib import Path
from unittest import mock

import odd_constructs
from constructs import CONSTRUCTS, VARIABLES
from odd_constructs import has_address, made_by_rule, named
from random_chat import RandomChat
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast
from transformers.utils import chat_template_utils

ROOT = Path(__file__).resolve().parents[2]
CHAT = ROOT / "tests/goldens/chat"
SPECIAL_TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}
NOW = datetime.datetime(2025, 3, 9, 14, 5, 7)  # local time, as templates see it
CASES = 12
RULE_STEP = 16  # one in so many of the templates that a rule makes is kept; scripts/parity_chat.py has all
CONSTRUCT_VARIABLES = {**VARIABLES, **odd_constructs.VARIABLES}


class FixedClock(datetime.datetime):
    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> datetime.datetime:
        return NOW


def reference(tokenizer: PreTrainedTokenizerBase, template: str | None, request: dict) -> str | None:
    """The text that transformers writes, or None if it refuses."""
    try:
        with mock.patch.object(chat_template_utils, "datetime", FixedClock):
            return tokenizer.apply_chat_template(
                request["messages"],
                chat_template=template,
                tokenize=False,
                add_generation_prompt=request["add_generation_prompt"],
                **request["extra"],
            )
    except Exception:  # templates fail in many ways
        return None


def tokenizer() -> PreTrainedTokenizerFast:
    return PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.BPE()), **SPECIAL_TOKENS)


def construct_request() -> dict:
    """The request that every template which shows a construct is rendered with."""
    messages = [{"role": "user", "content": "hi"}]
    return {"messages": messages, "add_generation_prompt": True, "extra": CONSTRUCT_VARIABLES}


def templates() -> dict[str, str]:
    return {path.stem: path.read_text() for path in sorted(CHAT.glob("templates/*.jinja"))}


def main() -> None:
    ours = tokenizer()
    with (CHAT / "cases.jsonl").open("w") as out:
        for seed, (name, template) in enumerate(templates().items()):
            chats = RandomChat(seed)
            answered = 0
            while answered < CASES:
                request = chats.draw()
                text = reference(ours, template, request)
                # One refusal in four cases is enough.
                if text is None and answered % 4:
                    continue
                answered += 1
                out.write(json.dumps({"template": name, **request, "text": text}) + "\n")
    (CHAT / "variables.json").write_text(json.dumps(CONSTRUCT_VARIABLES) + "\n")
    with (CHAT / "constructs.jsonl").open("w") as out:
        for template in [*CONSTRUCTS, *named(), *made_by_rule()[::RULE_STEP]]:
            text = reference(ours, template, construct_request())
            if not has_address(text):
                out.write(json.dumps({"template": template, "text": text}) + "\n")


if __name__ == "__main__":
    main()
