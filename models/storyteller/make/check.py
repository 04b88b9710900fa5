"""Measures a checkpoint through transformers, in fp32 from the bf16 file, and writes what tests expect.

python check.py ..                      sums, stories
python check.py .. --write              also expected.json
"""

import argparse
import json
import random
import re
from collections import Counter, defaultdict
from pathlib import Path

import torch
from grammar import Grammar
from sums import TABLES, Sum, SumMaker, ending
from tokenizers import Tokenizer
from train_tokenizer import END
from transformers import LlamaForCausalLM

UNSEEN = 1_000_000_000  # seeds from here on belong to no training text
SUMS = 200  # for each kind in expected.json
STORY_TOKENS = 600  # a story at most
PROMPTS = ["Once upon a time", "Story: The brave fox", "Story: Mila and the lost lantern", "The little bear"]
WORD = re.compile(r"\b[a-z']+")
NAME = re.compile(r"\b[A-Z][a-z]+")
NO_NAMES = {"He", "She", "His", "Her", "It", "Of", "One", "Everyone"}
TABLE = [Sum(a, "x", b) for a in range(TABLES) for b in range(TABLES)]
LONGEST_ANSWER = 20  # tokens, the end included


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
        """Continues prompts of one length; returns ids up to the end, and how far each second token was."""
        tokens = torch.tensor(prompts, device=self.device)
        out = [[] for _ in prompts]
        margins = [[] for _ in prompts]
        alive = [True] * len(prompts)
        cache = None
        for _ in range(limit):
            result = self.model(tokens, past_key_values=cache, use_cache=True)
            cache, logits = result.past_key_values, result.logits[:, -1].float()
            if temperature:
                tokens = torch.multinomial((logits / temperature).softmax(-1), 1)
            else:
                tokens = logits.argmax(-1, keepdim=True)
            top = logits.topk(2).values
            behind = (top[:, 0] - top[:, 1]).tolist()
            for row, token in enumerate(tokens[:, 0].tolist()):
                if alive[row]:
                    out[row].append(token)
                    margins[row].append(round(behind[row], 3))
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
        "tables to 12 x 12": [(value.prompt, value) for value in TABLE],
    }
    shares = []
    for name, sums in kinds.items():
        answers = teller.answers([prompt for prompt, _ in sums])
        wrong = [
            (prompt, answer)
            for (prompt, value), answer in zip(sums, answers, strict=True)
            if answer != ending(prompt, value)
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
    rows, _ = teller.generate([teller.ids("Once upon a time,")] * count, STORY_TOKENS, temperature=0.8)
    ended = sum(row[-1] == teller.end for row in rows)
    texts = ["Once upon a time," + teller.text(row) for row in rows]
    words = [word for text in texts for word in WORD.findall(text)]
    strange = Counter(word for word in words if word not in known)
    crowd = sum(len(names & {*NAME.findall(text)}) > 2 for text in texts)
    heroes = [next(name for name in NAME.findall(text, 4) if name not in NO_NAMES) for text in texts]
    kept = sum(text.count(hero) >= 4 for text, hero in zip(texts, heroes, strict=True))
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


def tell(teller: Teller, prompt: str) -> dict:
    rows, margins = teller.generate([teller.ids(prompt)], STORY_TOKENS)
    return {"prompt": prompt, "text": teller.text(rows[0]), "ids": rows[0], "margins": margins[0]}


def write_expected(teller: Teller, maker: SumMaker, path: Path) -> None:
    sums = [entry for sign in "+-?" for entry in held_out_sums(maker, sign, SUMS)]
    sums += [(value.prompt, value) for value in TABLE]
    parts = {
        "about": [
            "Stories: greedy, by transformers, in fp32 of the bf16 weights; margins: logits from each token "
            "to the second. Sums: held out of training, and the tables; their answers are computed."
        ],
        "stories": [tell(teller, prompt) for prompt in PROMPTS],
        "sums": [{"prompt": prompt, "answer": ending(prompt, value)} for prompt, value in sums],
    }
    lines = {name: ",\n".join(map(json.dumps, part)) for name, part in parts.items()}
    path.write_text("{" + ",\n".join(f'"{name}": [\n{part}\n]' for name, part in lines.items()) + "}\n")


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
    for prompt in PROMPTS:
        print(f"\n--- greedy\n{prompt}{tell(teller, prompt)['text']}")
    torch.manual_seed(1)
    for row in teller.generate([teller.ids("Story:")] * args.tell, STORY_TOKENS, temperature=0.8)[0]:
        print(f"\n--- sampled at 0.8\nStory:{teller.text(row)}")
    if args.write:
        write_expected(teller, maker, args.model / "expected.json")
    if least < 0.99:
        raise SystemExit(f"[check] only {100 * least:.2f} % of a kind of sums are right; 99 % are wanted")


if __name__ == "__main__":
    main()
