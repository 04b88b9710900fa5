"""Times transformers on CPU: decode at a position and prefill of a prompt, as one JSON line.

    .venv/bin/python bench/peers/transformers_cpu.py MODEL [--threads 2] [--dtype bfloat16] [--position 512]

Decode is the plain loop that generate() runs: one token a step, the greedy one, with a growing cache that
starts at the position. Prefill is one forward pass over the prompt with logits for its last token only.
"""

import argparse
import json
import statistics
import time

import torch
import transformers
from transformers import AutoModelForCausalLM, DynamicCache


@torch.inference_mode()
def prefill(model, tokens):
    """Seconds for one pass over `tokens`, and the cache it leaves."""
    cache = DynamicCache(config=model.config)
    if tokens.shape[1] == 0:
        return 0.0, cache
    begin = time.perf_counter()
    model(tokens, past_key_values=cache, use_cache=True, logits_to_keep=1)
    return time.perf_counter() - begin, cache


@torch.inference_mode()
def decode(model, token, cache, steps):
    """Seconds of each step."""
    times = []
    for _ in range(steps):
        begin = time.perf_counter()
        logits = model(token, past_key_values=cache, use_cache=True).logits
        token = logits[:, -1].argmax(-1, keepdim=True)
        times.append(time.perf_counter() - begin)
    return times


def random_tokens(model, count):
    generator = torch.Generator().manual_seed(1)
    return torch.randint(0, model.config.vocab_size, (1, count), generator=generator)


def measure(model, arguments):
    prompt = random_tokens(model, arguments.prompt)
    prefill(model, prompt[:, :16])  # warm up
    prefills = [prefill(model, prompt)[0] for _ in range(arguments.repeats)]
    context = random_tokens(model, arguments.position + 1)
    _, cache = prefill(model, context[:, :-1])
    decodes = decode(model, context[:, -1:], cache, arguments.steps + 2)[2:]
    return prefills, decodes


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--position", type=int, default=512, help="tokens before the first decoded one")
    parser.add_argument("--steps", type=int, default=16, help="decode steps that count")
    parser.add_argument("--prompt", type=int, default=512, help="tokens of the prefill")
    parser.add_argument("--repeats", type=int, default=3, help="prefills that count")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    model = AutoModelForCausalLM.from_pretrained(arguments.model, dtype=arguments.dtype).eval()
    prefills, decodes = measure(model, arguments)
    result = {
        "peer": "transformers",
        "versions": {"transformers": transformers.__version__, "torch": torch.__version__},
        "model": arguments.model,
        "dtype": arguments.dtype,
        "threads": arguments.threads,
        "position": arguments.position,
        "decode_ms": round(1e3 * statistics.median(decodes), 3),
        "decode_ms_all": [round(1e3 * t, 3) for t in decodes],
        "prompt": arguments.prompt,
        "prefill_tokens_per_s": round(arguments.prompt / statistics.median(prefills), 2),
        "prefill_s_all": [round(t, 3) for t in prefills],
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
