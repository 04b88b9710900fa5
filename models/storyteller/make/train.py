"""Trains the storyteller from nothing and writes a checkpoint as save_pretrained does.

    python train.py ..            about six minutes on an H200
    python train.py /tmp/story --stories 1000 --steps 20 --rows 2      a trial on a CPU

tokenizer.json must be there already (train_tokenizer.py). Documents are packed into rows and never cut; a
token sees only its own document. Weights are rounded to bf16 at the end; check.py measures what was written.
"""

import argparse
import json
import math
import os
import time
from multiprocessing import Pool
from pathlib import Path

import numpy as np
import torch
from corpus import CHUNK, make_documents, start_worker
from model import Shape, Storyteller
from tokenizers import Tokenizer
from torch.nn import functional
from torch.nn.attention.flex_attention import create_block_mask
from train_tokenizer import BEGIN, END
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM

ROW = 2048  # tokens a row: about five stories and their sums
WARM_UP = 20  # steps before the clock starts
PADDING = -1  # the start of padding, so that it belongs to no document

_tokenizer: Tokenizer | None = None


def start_packer(path: str) -> None:
    global _tokenizer
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    _tokenizer = Tokenizer.from_file(path)
    start_worker()


def pack(start: int) -> tuple[np.ndarray, np.ndarray]:
    """Makes one chunk's rows: tokens, and for each token where its document starts in the row."""
    end = _tokenizer.token_to_id(END)
    rows, starts = [], []
    row, row_starts = [], []
    for encoding in _tokenizer.encode_batch(make_documents(start)):
        ids = [*encoding.ids, end]
        if len(row) + len(ids) > ROW:
            rows.append(row + [end] * (ROW - len(row)))
            starts.append(row_starts + [PADDING] * (ROW - len(row)))
            row, row_starts = [], []
        row_starts += [len(row)] * len(ids)
        row += ids
    return np.array(rows, np.int16), np.array(starts, np.int16)


def load_rows(tokenizer: Path, stories: int, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    with Pool(os.cpu_count(), initializer=start_packer, initargs=(str(tokenizer),)) as pool:
        chunks = pool.map(pack, range(0, stories, CHUNK), chunksize=1)
    rows, starts = (torch.from_numpy(np.concatenate(part)).to(device) for part in zip(*chunks, strict=True))
    return rows, starts


def document_mask(starts: torch.Tensor):
    """Causal within a document: block-sparse for flex attention on a GPU, dense elsewhere."""
    batch, row = starts.shape
    if starts.is_cuda:

        def visible(b, _, q, k):
            return (q >= k) & (starts[b, q] == starts[b, k])

        return _block_mask(visible, batch, None, row, row, device=starts.device)
    causal = torch.ones(row, row, dtype=torch.bool, device=starts.device).tril()
    return (causal & (starts[:, :, None] == starts[:, None, :]))[:, None]


_block_mask = torch.compile(create_block_mask)


def loss_of(model, rows, starts, mask) -> torch.Tensor:
    tokens = rows.int()
    places = torch.arange(ROW, device=rows.device)
    positions = places - starts.clamp(min=0)
    same = (starts[:, 1:] == starts[:, :-1]) & (starts[:, 1:] != PADDING)
    target = torch.where(same, tokens[:, 1:], -100).long()
    with torch.autocast(rows.device.type, torch.bfloat16):
        logits = model(tokens, positions, mask)[:, :-1]
    return functional.cross_entropy(logits.float().flatten(0, 1), target.flatten(), ignore_index=-100)


def rate(step: int, steps: int) -> float:
    """Warm up over 2 % of the steps, then fall to nothing in a straight line."""
    warm = max(1, steps // 50)
    return min((step + 1) / warm, (steps - step) / (steps - warm))


def train(model: Storyteller, rows, starts, args) -> None:
    matrices = [p for p in model.parameters() if p.dim() == 2]
    vectors = [p for p in model.parameters() if p.dim() != 2]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=args.rate, betas=(0.9, 0.95), fused=rows.is_cuda)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: rate(step, args.steps))
    loss_fn = torch.compile(loss_of) if rows.is_cuda else loss_of
    order = torch.Generator().manual_seed(args.seed)
    queue = torch.empty(0, dtype=torch.long)
    began = time.time()
    for step in range(args.steps):
        if len(queue) < args.rows:
            queue = torch.cat((queue, torch.randperm(len(rows), generator=order)))
        batch, queue = queue[: args.rows].to(rows.device), queue[args.rows :]
        loss = loss_fn(model, rows[batch], starts[batch], document_mask(starts[batch]))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        if step == WARM_UP:
            began = time.time()  # compilation is over
        if step % args.report == 0 or step == args.steps - 1:
            value = loss.item()
            tokens = max(0, step - WARM_UP) * args.rows * ROW
            speed = tokens / (time.time() - began) / 1e6
            print(f"step {step:6d}  loss {value:.4f}  {speed:.2f} M tokens/s", flush=True)
            if not math.isfinite(value):
                raise FloatingPointError(f"[train] loss {value} at step {step}; a lower --rate may help")


def save(model: Storyteller, tokenizer: Tokenizer, out: Path) -> None:
    shape = model.shape
    begin, end = tokenizer.token_to_id(BEGIN), tokenizer.token_to_id(END)
    config = LlamaConfig(
        vocab_size=shape.vocabulary,
        hidden_size=shape.hidden,
        intermediate_size=shape.inner,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        head_dim=shape.head_dim,
        max_position_embeddings=shape.context,
        rms_norm_eps=shape.epsilon,
        rope_parameters={"rope_type": "default", "rope_theta": shape.theta},
        tie_word_embeddings=True,
        bos_token_id=begin,
        eos_token_id=end,
    )
    trained = LlamaForCausalLM(config)
    missing, unexpected = trained.load_state_dict(model.state_dict(), strict=False)
    if unexpected or missing != ["lm_head.weight"]:
        raise ValueError(
            f"[train] names differ from transformers: missing {missing}, unexpected {unexpected}"
        )
    trained.tie_weights()
    trained.to(torch.bfloat16)
    trained.generation_config = GenerationConfig(bos_token_id=begin, eos_token_id=end)
    trained.save_pretrained(out)
    about = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": BEGIN,
        "eos_token": END,
        "model_max_length": shape.context,
        "clean_up_tokenization_spaces": False,
    }
    (out / "tokenizer_config.json").write_text(json.dumps(about, indent=2) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description="Trains the storyteller.")
    parser.add_argument("out", type=Path, help="holds tokenizer.json, receives the checkpoint")
    parser.add_argument("--stories", type=int, default=400_000)
    parser.add_argument("--steps", type=int, default=8500)
    parser.add_argument("--rows", type=int, default=64, help=f"rows of {ROW} tokens a step")
    parser.add_argument("--rate", type=float, default=3e-3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--report", type=int, default=250, help="steps between lines")
    args = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(args.seed)
    torch.set_float32_matmul_precision("high")
    began = time.time()
    tokenizer = Tokenizer.from_file(str(args.out / "tokenizer.json"))
    rows, starts = load_rows(args.out / "tokenizer.json", args.stories, device)
    print(
        f"{rows.numel() / 1e6:.1f} M tokens in {len(rows)} rows, made in {time.time() - began:.0f} s",
        flush=True,
    )
    model = Storyteller(Shape(vocabulary=tokenizer.get_vocab_size())).to(device)
    print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.2f} M parameters on {device}", flush=True)
    train(model, rows, starts, args)
    save(model.cpu(), tokenizer, args.out)
    print(f"written to {args.out} after {time.time() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
