"""Compares `heddle tokenize` with `tokenizers` on random Unicode strings, both ways, and times both on 10 MB.

Exercises: heddle/base heddle/text apps/heddle

Without MODEL_DIR: the tokenizers of tests/goldens and the shipped models. --random N: N tokenizers with
stages drawn at random, around models that are trained now; nothing is timed.
usage: parity_tokenizer.py [--heddle build/release/heddle] [--count 1500] [--seed 1] [--random N]
                           [MODEL_DIR...]
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tokenizers import Tokenizer

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts/goldens"))
from random_text import RandomText  # noqa: E402
from random_tokenizer import draw_tokenizer  # noqa: E402


def heddle(program: str, *arguments: str, lines: list[str]) -> list:
    """The answers of `heddle tokenize`: one JSON value per line."""
    command = [program, "tokenize", *arguments, "--json-lines"]
    done = subprocess.run(command, input="\n".join(lines) + "\n", capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr}")
    return [json.loads(line) for line in done.stdout.split("\n") if line]


def reference(model: Path) -> Tokenizer:
    tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def compare(program: str, model: Path, count: int, seed: int) -> int:
    """The number of strings that are not equal, after the first few were shown."""
    tokenizer = reference(model)
    added = [token.content for token in tokenizer.get_added_tokens_decoder().values()]
    source = RandomText(seed, added)
    texts = []
    distinct = set()
    while len(distinct) < count:
        texts.append(source.draw())
        distinct.add(texts[-1])
    want = [tokenizer.encode(text).ids for text in texts]
    got = heddle(program, str(model), lines=[json.dumps(text) for text in texts])
    back_want = [tokenizer.decode(ids, skip_special_tokens=False) for ids in want]
    back_got = heddle(program, str(model), "--decode", lines=[json.dumps(ids) for ids in want])
    if len(got) != len(texts) or len(back_got) != len(texts):
        sys.exit(f"{model.name}: {len(got)} and {len(back_got)} answers to {len(texts)} lines")
    wrong = [i for i in range(len(texts)) if got[i] != want[i] or back_got[i] != back_want[i]]
    for i in wrong[:5]:
        print(f"{model.name}: {texts[i]!r}\n  want {want[i]}\n  got  {got[i]}\n  decoded {back_got[i]!r}")
    tokens = sum(map(len, want))
    print(f"{model.name}: {count} distinct strings, {tokens} tokens: {len(wrong)} differ")
    return len(wrong)


def compare_random(options: argparse.Namespace) -> int:
    """The number of strings that are not equal with tokenizers drawn at random."""
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(options.seed, options.seed + options.random):
            model = Path(folder, f"random_{seed}")
            model.mkdir()
            draw_tokenizer(seed).save(str(model / "tokenizer.json"))
            wrong += compare(options.heddle, model, options.count, seed)
    return wrong


def children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def words_text(source: RandomText, megabytes: float) -> str:
    """Lines of words that come again, of new ones now and then, and of numbers."""
    draw = source.random
    known = [source.word() for _ in range(2000)]
    lines = []
    size = 0
    while size < megabytes * 1e6:
        fresh = "".join(draw.choices("etaoinshrdlu", k=draw.randint(3, 9)))
        line = " ".join([*draw.choices(known, k=9), fresh, f"{draw.randrange(10**6)}.\n"])
        lines.append(line)
        size += len(line.encode())
    return "".join(lines)


def speed(program: str, model: Path, seed: int, megabytes: float) -> None:
    """Encode speed on one thread, in CPU time, over text that is mostly words, as prompts are."""
    text = words_text(RandomText(seed, []), megabytes)
    size = len(text.encode())
    tokenizer = reference(model)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    start = time.process_time()
    want = tokenizer.encode_batch_fast([text])[0].ids
    theirs = time.process_time() - start
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "text.txt")
        path.write_text(text, encoding="utf-8")
        with path.open("rb") as file:
            start = children_seconds()
            out = subprocess.run(
                [program, "tokenize", str(model)], stdin=file, capture_output=True, check=True
            )
            ours = children_seconds() - start
    same = [int(token) for token in out.stdout.split()] == want
    mega = size / 1e6
    print(
        f"{model.name}: {mega:.1f} MB at MB a CPU second: heddle {mega / ours:.1f} (the whole program), "
        f"tokenizers {mega / theirs:.1f} (encode_batch_fast alone); ids {'equal' if same else 'NOT EQUAL'}"
    )
    if not same:
        sys.exit(1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--heddle", default=str(ROOT / "build/release/heddle"))
    parser.add_argument("--count", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--megabytes", type=float, default=0.2, help="of text whose encoding is timed")
    parser.add_argument("--random", type=int, default=0, metavar="N")
    parser.add_argument("models", nargs="*", type=Path)
    options = parser.parse_args()
    if options.random:
        sys.exit(1 if compare_random(options) else 0)
    shipped = [*ROOT.glob("tests/goldens/tokenizer/*/tokenizer.json"), *ROOT.glob("models/*/tokenizer.json")]
    models = options.models or sorted(path.parent for path in shipped)
    wrong = sum(compare(options.heddle, model, options.count, options.seed) for model in models)
    for model in models:
        speed(options.heddle, model, options.seed, options.megabytes)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
