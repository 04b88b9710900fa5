"""examples/ray_batch.py on a local Ray of two workers, one of which is killed."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import heddle

TREE = Path(__file__).parents[2]
EXAMPLES = TREE / "examples"
MODEL = TREE / "models" / "storyteller"
SETTINGS = {"max_tokens": 150}
BATCH = 3

# Kills the worker that gave the first answer, while others are to come.
RUN = """
import json, os, signal, sys
from pathlib import Path
import ray, ray_batch
prompts, results, model, batch, settings = sys.argv[1:]
ray.init(num_cpus=2, include_dashboard=False, object_store_memory=80 << 20, log_to_driver=False)
rows = ray_batch.read_prompts(Path(prompts))
with open(results, "w") as out:
    for row in ray_batch.answer(rows, model, batch=int(batch), settings=json.loads(settings)):
        if out.tell() == 0:
            os.kill(row["worker"], signal.SIGKILL)
        out.write(json.dumps(row) + "\\n")
        out.flush()
"""


@pytest.fixture
def ray_batch(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import ray_batch

    return ray_batch


@pytest.mark.skipif(not importlib.util.find_spec("ray"), reason="no ray here")
def test_a_killed_worker_loses_nothing(ray_batch, tmp_path):
    prompts, results = tmp_path / "prompts.jsonl", tmp_path / "results.jsonl"
    texts = [f"Once upon a time {number}" for number in range(72)]
    prompts.write_text("".join(json.dumps({"prompt": text}) + "\n" for text in texts))
    paths = [str(EXAMPLES), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "RAY_USAGE_STATS_ENABLED": "0",
        "OMP_NUM_THREADS": "1",
    }
    arguments = [str(prompts), str(results), str(MODEL), str(BATCH), json.dumps(SETTINGS)]
    made = subprocess.run(
        [sys.executable, "-c", RUN, *arguments],
        env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    rows = [json.loads(line) for line in results.read_text().splitlines()]
    assert [row["prompt"] for row in rows] == texts
    # The killed one, another, and mostly the one in its place, which may come after the last batch has begun.
    assert len({row["worker"] for row in rows}) in (2, 3)
    with heddle.load(MODEL, device="cpu", threads=1) as model:
        batches = ray_batch.batches_of(ray_batch.read_prompts(prompts), BATCH)
        alone = [text for batch in batches for text in model.generate(batch["prompt"], **SETTINGS)]
    assert [row["text"] for row in rows] == alone


def test_prompts_of_a_file_and_of_a_folder(ray_batch, tmp_path):
    (tmp_path / "b.txt").write_text("Second")
    (tmp_path / "a.txt").write_text("First\n")
    assert ray_batch.read_prompts(tmp_path) == [
        {"name": "a.txt", "prompt": "First\n"},
        {"name": "b.txt", "prompt": "Second"},
    ]
    file = tmp_path / "c.jsonl"
    file.write_text('{"prompt": "x"}\n\n{"prompt": "y"}\n')
    assert ray_batch.read_prompts(file) == [{"name": "1", "prompt": "x"}, {"name": "3", "prompt": "y"}]
    file.write_text("")
    with pytest.raises(SystemExit, match="has no prompts"):
        ray_batch.read_prompts(file)
