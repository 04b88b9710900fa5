"""Measures a checkpoint through transformers, in fp32 from the bf16 file, and writes what tests expect.

python check.py ../../models/storyteller                      sums, stories
python check.py ../../models/storyteller --write              also expected.json
"""

import argparse
import json
import random
import re
from collections import Counter, defaultdict
from pathlib import Path

import torch
from grammar import Grammar
from sums import TABLES, Sum, SumMaker
from tokenizers import Tokenizer
from train_tokenizer import BEGIN, END
from transformers import LlamaForCausalLM

UNSEEN = 1_000_000_000  # seeds from here on belong to no training text
STORY_TOKENS = 120  # length of the stories in expected.json
STORIES, SUMS = 3, 240  # how many of each expected.json holds
PROMPTS = ["Once upon a time", "Story: The brave fox", "Story: Mila and the lost lantern"]
WORD = re.compile(r"\b[a-z']+")
NAME = re.compile(r"\b[A-Z][a-z]+")
LONGEST_ANSWER = 8  # tokens, the end included


class Teller:
    def __init__(self, folder: Path):
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.model = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32).to(self.device).eval()
        self.end = self.tokenizer.token_to_id(END)

    def ids(self, text: str) -> list[int]:
        return self.tokenizer.encode(text).ids

    def text(self, ids: list[int]) -> str:
        return self.tokenizer.decode(ids)

    @torch.inference_mode()
    def generate(self, prompts: list[list[int]], limit: int, temperature: float = 0.0):
        """Continues prompts of one length; returns ids up to the end and each row's least top-two margin."""
        tokens = torch.tensor(prompts, device=self.device)
        out = [[] for _ in prompts]
        margins = [float("inf")] * len(prompts)
        alive = [True] * len(prompts)
        cache = None
        for _ in range(limit):
            result = self.model(tokens, past_key_values=cache, use_cache=True)
            cache, logits = result.past_key_values, result.logits[:, -1].float()
            top = logits.topk(2).values
            if temperature:
                tokens = torch.multinomial((logits / temperature).softmax(-1), 1)
            else:
                tokens = logits.argmax(-1, keepdim=True)
            for row, (token, (best, next_best)) in enumerate(
                zip(tokens[:, 0].tolist(), top.tolist(), strict=True)
            ):
                if alive[row]:
                    margins[row] = min(margins[row], best - next_best)
                    out[row].append(token)
                    alive[row] = token != self.end
            if not any(alive):
                break
        return out, margins

    def answers(self, prompts: list[str]) -> list[str]:
        """Greedy answers; prompts of one length are answered together."""
        groups = defaultdict(list)
        for index, prompt in enumerate(prompts):
            groups[len(self.ids(prompt))].append(index)
        out = [""] * len(prompts)
        for group in groups.values():
            rows, _ = self.generate([self.ids(prompts[i]) for i in group], LONGEST_ANSWER)
            for index, row in zip(group, rows, strict=True):
                ended = row[-1] == self.end
                out[index] = self.text(row[:-1]) if ended else f"{self.text(row)} (no end)"
        return out


def held_out_sums(maker: SumMaker, sign: str, count: int) -> list[tuple[str, Sum]]:
    """Distinct prompts with a sign; "?" stands for word problems."""
    rng = random.Random(f"check {sign}")
    found: dict[str, Sum] = {}
    while len(found) < count:
        prompt, value = maker.make(rng, held_out=True, words=sign == "?")
        if sign in ("?", value.sign):
            found[prompt] = value
    return list(found.items())


def check_sums(teller: Teller, maker: SumMaker, count: int) -> float:
    """Prints the share of right answers of each kind and returns the least."""
    kinds = {
        "additions, held out": held_out_sums(maker, "+", count),
        "subtractions, held out": held_out_sums(maker, "-", count),
        "word problems, held out": held_out_sums(maker, "?", count),
        "tables to 12 x 12": [
            (s.prompt, s) for s in (Sum(a, "x", b) for a in range(TABLES) for b in range(TABLES))
        ],
    }
    shares = []
    for name, sums in kinds.items():
        answers = teller.answers([prompt for prompt, _ in sums])
        wrong = [
            (prompt, answer)
            for (prompt, value), answer in zip(sums, answers, strict=True)
            if answer != f" {value.answer}."
        ]
        shares.append(1 - len(wrong) / len(sums))
        print(
            f"{name}: {len(sums) - len(wrong)} of {len(sums)} right ({100 * shares[-1]:.2f} %)  {wrong[:3]}"
        )
    return min(shares)


@torch.inference_mode()
def check_loss(teller: Teller, grammar: Grammar, count: int) -> None:
    total, tokens = 0.0, 0
    for seed in range(UNSEEN, UNSEEN + count):
        ids = torch.tensor([[*teller.ids(grammar.story(seed)), teller.end]], device=teller.device)
        total += teller.model(ids, labels=ids).loss.item() * (ids.shape[1] - 1)
        tokens += ids.shape[1] - 1
    print(f"loss on {count} unseen stories: {total / tokens:.4f} a token")


def check_stories(teller: Teller, grammar: Grammar, count: int) -> None:
    """Sampled stories: do they end, are their words words, do they keep to their characters?"""
    lists = grammar.lexicon.lists
    names = {*lists["girls"], *lists["boys"], *lists["animal names"]} - {*lists["surnames"]}
    known = {word for seed in range(UNSEEN, UNSEEN + 5000) for word in WORD.findall(grammar.story(seed))}
    torch.manual_seed(0)
    rows, _ = teller.generate([teller.ids("Once upon a time,")] * count, 600, temperature=0.8)
    ended = sum(row[-1] == teller.end for row in rows)
    texts = ["Once upon a time," + teller.text(row) for row in rows]
    words = [word for text in texts for word in WORD.findall(text)]
    strange = Counter(word for word in words if word not in known)
    crowd = sum(len(names & {*NAME.findall(text)}) > 2 for text in texts)
    kept = sum(text.count(NAME.search(text, 4)[0]) >= 4 for text in texts)
    print(f"{count} sampled stories: {ended} end, {kept} keep the hero's name, {crowd} name too many heroes,")
    print(f"{sum(strange.values())} of {len(words)} words are unknown: {strange.most_common(8)}")


def check_any_name(teller: Teller, grammar: Grammar, count: int) -> None:
    """Greedy stories about invented names: is the name of the prompt the name of the story?"""
    rng = random.Random("check names")

    def pick(options):
        return options[int(rng.random() * len(options))]

    names = [grammar.lexicon.invent(pick) for _ in range(count)]
    kept = 0
    for name in names:
        prompt = f"Once upon a time, there was a little fox named {name} who"
        rows, _ = teller.generate([teller.ids(prompt)], 200)
        kept += teller.text(rows[0]).count(name) >= 3
    print(f"{kept} of {count} greedy stories keep an invented name")


def widest(teller: Teller, grammar: Grammar) -> list[dict]:
    """The greedy stories, of many titles, with the widest least margin: rounding turns no token there."""
    titles = {"Once upon a time"}
    for seed in range(UNSEEN, UNSEEN + 1200):
        story = grammar.story(seed)
        if story.startswith("Story: "):
            titles.add(story.split("\n")[0])
    groups = defaultdict(list)
    for title in sorted(titles):
        groups[len(teller.ids(title))].append(title)
    found = []
    for group in groups.values():
        rows, margins = teller.generate([teller.ids(title) for title in group], STORY_TOKENS)
        found += zip(margins, group, rows, strict=True)
    first = next(entry for entry in found if entry[1] == "Once upon a time")
    best = sorted((entry for entry in found if entry is not first), key=lambda entry: -entry[0])
    chosen = [entry for entry in best if len(entry[2]) == STORY_TOKENS][:STORIES]
    return [
        {
            "prompt": title,
            "prompt_ids": teller.ids(title),
            "ids": row,
            "text": teller.text(row),
            "least_margin": round(margin, 4),
        }
        for margin, title, row in [*chosen, first]
    ]


def write_expected(teller: Teller, grammar: Grammar, maker: SumMaker, path: Path) -> None:
    third = SUMS // 3
    sums = [entry for sign in "+-?" for entry in held_out_sums(maker, sign, third)]
    expected = {
        "about": "Stories: greedy, by transformers, in fp32 of the bf16 weights. Answers: computed.",
        "begin": BEGIN,
        "end": END,
        "sums": [{"prompt": prompt, "answer": f" {value.answer}."} for prompt, value in sums],
        "stories": widest(teller, grammar),
    }
    path.write_text(json.dumps(expected, indent=1) + "\n")
    print(f"{path}: margins {[story['least_margin'] for story in expected['stories']]}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures the storyteller.")
    parser.add_argument("model", type=Path)
    parser.add_argument("--count", type=int, default=1500, help="held-out sums of each kind")
    parser.add_argument("--tell", type=int, default=4, help="sampled stories to print")
    parser.add_argument("--write", action="store_true", help="write expected.json beside the model")
    args = parser.parse_args()
    teller, grammar = Teller(args.model), Grammar()
    maker = SumMaker(grammar.lexicon)
    least = check_sums(teller, maker, args.count)
    check_loss(teller, grammar, 100)
    check_stories(teller, grammar, 100)
    check_any_name(teller, grammar, 40)
    for index, prompt in enumerate(
        ["Once upon a time", "Story: The brave fox", "Story: Mila and the lost lantern"]
    ):
        rows, margins = teller.generate([teller.ids(prompt)], 600)
        print(f"\n--- greedy {index}, least margin {margins[0]:.3f}\n{prompt}{teller.text(rows[0])}")
    torch.manual_seed(1)
    for row in teller.generate([teller.ids("Story:")] * args.tell, 600, temperature=0.8)[0]:
        print(f"\n--- sampled at 0.8\nStory:{teller.text(row)}")
    if args.write:
        write_expected(teller, grammar, maker, args.model / "expected.json")
    if least < 0.99:
        raise SystemExit(f"[check] only {100 * least:.2f} % of a kind of sums are right; 99 % are wanted")


if __name__ == "__main__":
    main()
