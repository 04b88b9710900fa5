#!/usr/bin/env python3
"""Answers many prompts on many machines: Ray Data spreads them over processes that hold a model each.

    python examples/ray_batch.py PROMPTS RESULTS.jsonl [--model FOLDER] [--workers 2] [--gpus 1]

PROMPTS is a .jsonl file ({"prompt": "The loom"} a line) or a folder of texts (*.txt, a prompt each). RESULTS
has a line for each, in the same order. It needs `pip install "ray[data]"`. Where RAY_ADDRESS names a cluster,
its machines need heddle, and the model under the same path.

A worker that is lost, with its machine or alone, is replaced, and its batch is answered again: the same batch
gets the same answers. To answer prompts fast, give a worker many at a time (--batch).
"""

import argparse
import json
import os
from pathlib import Path

STORYTELLER = Path(__file__).resolve().parents[1] / "models" / "storyteller"


class Answerer:
    """A process of Ray's, or this one, with a model."""

    def __init__(self, model, options, settings):
        import heddle

        self.model, self.settings = heddle.load(model, **options), settings

    def __call__(self, batch):
        """A batch with its answers. `worker` says which process gave them."""
        texts = self.model.generate(list(batch["prompt"]), **self.settings)
        return {**batch, "text": texts, "worker": os.getpid()}


def read_prompts(path):
    """{"name": ..., "prompt": ...} for each prompt of a .jsonl file or a folder."""
    if path.is_dir():
        files = sorted(path.glob("*.txt"))
        rows = [{"name": file.name, "prompt": file.read_text()} for file in files]
    else:
        lines = path.read_text().splitlines()
        rows = [
            {"name": str(number), "prompt": json.loads(line)["prompt"]}
            for number, line in enumerate(lines, 1)
            if line.strip()
        ]
    if not rows:
        raise SystemExit(f"{path} has no prompts: no *.txt in a folder, or no lines in a file")
    return rows


def batches_of(rows, size):
    """Batches {"name": [...], "prompt": [...]} of at most `size` rows."""
    parts = [rows[begin : begin + size] for begin in range(0, len(rows), size)]
    return [{key: [row[key] for row in part] for key in ("name", "prompt")} for part in parts]


def answer(rows, model, *, workers=2, batch=32, gpus=0, cpus=1, settings=None):
    """Yields {"name", "prompt", "text", "worker"} for each of `rows`, in their order."""
    import ray.data

    context = ray.data.DataContext.get_current()
    context.execution_options.preserve_order = True
    context.enable_progress_bars = False
    batches = batches_of(rows, batch)
    options = {"device": "cuda"} if gpus else {"device": "cpu", "threads": cpus}
    # A block for each batch, so that workers share the batches and lose few. Ray starts a worker again, and
    # repeats a batch, as often as it must.
    answered = ray.data.from_items(batches, override_num_blocks=len(batches)).map(
        Answerer,
        fn_constructor_args=(str(model), options, settings or {}),
        compute=ray.data.ActorPoolStrategy(size=workers, max_tasks_in_flight_per_actor=2),
        num_gpus=gpus,
        num_cpus=cpus,
    )
    for done in answered.iter_rows():
        for name, prompt, text in zip(done["name"], done["prompt"], done["text"], strict=True):
            yield {"name": name, "prompt": prompt, "text": text, "worker": done["worker"]}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("prompts", type=Path)
    parser.add_argument("results", type=Path)
    parser.add_argument("--model", default=STORYTELLER)
    parser.add_argument("--workers", type=int, default=2, help="processes, on all machines together")
    parser.add_argument("--batch", type=int, default=32, help="prompts that a worker answers together")
    parser.add_argument("--gpus", type=float, default=0, help="of each worker")
    parser.add_argument("--cpus", type=int, default=1, help="of each worker")
    parser.add_argument("--max-tokens", type=int, default=64)
    parser.add_argument("--temperature", type=float, default=0)
    given = parser.parse_args()
    settings = {"max_tokens": given.max_tokens, "temperature": given.temperature}
    rows = read_prompts(given.prompts)
    with given.results.open("w") as results:
        for row in answer(
            rows, given.model, workers=given.workers, batch=given.batch,
            gpus=given.gpus, cpus=given.cpus, settings=settings,
        ):  # fmt: skip
            results.write(json.dumps(row, ensure_ascii=False) + "\n")
    print(f"{len(rows)} answers in {given.results}")


if __name__ == "__main__":
    main()
