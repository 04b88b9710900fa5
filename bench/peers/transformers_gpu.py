"""Times transformers on one GPU: a greedy decode step at given positions, and prefill.

    python3 bench/peers/transformers_gpu.py MODEL [--positions 512,0,4096] [--prefill 512,2048] [--rounds 5]

bf16. Decode has a static cache as long as the position asks; the step, from a token to the next, is compiled
and replayed as one CUDA graph, or compiled by the mode that makes its own. Prefill is one pass with logits
for the last token, eager and compiled, each also as a CUDA graph. The fastest is reported, all are named.
What runs must give the logits of the same model run eagerly, within ERROR; otherwise it gets no speed.
MODEL without weights gets random ones.

Needs transformers, 5.17 or later: older static caches keep no count on the device, which a graph needs.
"""

from functools import cached_property, partial

import harness
import torch
from harness import Bench, Variant, Work

try:
    import transformers
except ImportError as error:
    raise SystemExit(
        f"transformers_gpu.py: {error}; it is made of Python alone: pip download transformers, tokenizers,"
        " safetensors, huggingface_hub where there is a network, and carry the wheels"
    ) from None
from transformers import AutoConfig, AutoModelForCausalLM, StaticCache

# relative to the logits' rms; bf16 rounds at other places once it is compiled. Wrong logits differ by about
# 1.4
ERROR = 0.1
CACHE_STEP = 64

AUTOTUNE = {"max_autotune": True, "coordinate_descent_tuning": True}
DECODES = [
    Variant("compiled+graph", {}),
    Variant("autotune+graph", AUTOTUNE),
    Variant("reduce-overhead", {"triton.cudagraphs": True}, captured=False),
    Variant("eager+graph"),
]
PREFILLS = [
    Variant("eager", captured=False),
    Variant("eager+graph"),
    Variant("compiled", {}, captured=False),
    Variant("compiled+graph", {}),
    Variant("autotune+graph", {"max_autotune": True}),
]


class Decode:
    """One greedy token: reads `token` at `position`, writes the next and moves on."""

    def __init__(self, model, tokens, position, steps):
        self.model = model
        length = -(-(position + steps + harness.WARM_UP) // CACHE_STEP) * CACHE_STEP
        self.cache = StaticCache(config=model.config, max_cache_len=length)
        # The first pass makes the tensors; where none shall be held, its token is forgotten.
        model(tokens[None, : max(position, 1)], past_key_values=self.cache, logits_to_keep=1)
        if not all(hasattr(layer, "cumulative_length") for layer in self.cache.layers):
            raise RuntimeError(f"the static cache of transformers {transformers.__version__} has no count")
        self.token, self.position = tokens[:1].clone(), tokens[:1].clone()
        for tensor in (self.token, self.position):
            torch._dynamo.mark_static_address(tensor)
        self.begin, self.first = position, tokens[position : position + 1].clone()

    def start(self):
        self.token.copy_(self.first)
        self.position.fill_(self.begin)
        for layer in self.cache.layers:
            layer.cumulative_length.fill_(self.begin)

    def step(self):
        logits = self.model(
            self.token[None], past_key_values=self.cache, position_ids=self.position[None], use_cache=True
        ).logits[0, -1]
        self.token.copy_(logits.argmax(-1, keepdim=True))
        self.position.add_(1)
        return logits


class Peer:
    def __init__(self, arguments):
        self.arguments, device = arguments, arguments.device
        if any(arguments.model.glob("*.safetensors")):
            model = AutoModelForCausalLM.from_pretrained(arguments.model, dtype=torch.bfloat16).to(device)
        else:
            config = AutoConfig.from_pretrained(arguments.model)
            with torch.device(device):
                model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
        self.model = model.eval()
        generator = torch.Generator().manual_seed(1)
        count = max(arguments.positions + arguments.prefill) + 1
        tokens = torch.randint(0, self.model.config.vocab_size, (count,), generator=generator)
        self.tokens = tokens.to(device)

    @cached_property
    def limit(self):
        return self.model.config.max_position_embeddings

    def require_near(self, logits, expected):
        error = harness.relative_error(logits, expected)
        if not error <= ERROR:
            raise RuntimeError(f"wrong logits: error {error:.2e} of their rms, allowed {ERROR}")

    @torch.no_grad()
    def decode(self, position, variant):
        steps = self.arguments.steps
        if position + steps > self.limit:
            raise ValueError(f"position {position} and {steps} tokens; the model has {self.limit} positions")
        decode = Decode(self.model, self.tokens, position, steps)
        decode.start()
        expected = decode.step().clone()
        decode.start()
        run = harness.prepare(decode.step, variant, fullgraph=False)
        decode.start()
        self.require_near(run().clone(), expected)
        if int(decode.position) != position + 1:
            raise RuntimeError(f"the step went from position {position} to {int(decode.position)}")

        @torch.no_grad()
        def tokens():
            for _ in range(steps):
                run()

        def measure():
            decode.start()
            return harness.milliseconds(tokens) / steps

        return measure

    @torch.no_grad()
    def prefill(self, count, variant):
        tokens = self.tokens[None, :count]

        @torch.no_grad()
        def prefill():
            return self.model(tokens, use_cache=True, logits_to_keep=1).logits

        expected = prefill()
        run = harness.prepare(prefill, variant, fullgraph=False)
        self.require_near(run(), expected)
        return partial(harness.milliseconds, run)


def main():
    parser = harness.argument_parser(__doc__, DECODES + PREFILLS)
    parser.add_argument("--prefill", type=harness.numbers, default=[512, 2048], metavar="N,...")
    arguments = parser.parse_args()
    decodes, prefills = (harness.chosen(variants, arguments) for variants in (DECODES, PREFILLS))
    harness.set_up(arguments)
    bench = Bench(arguments, f"transformers {transformers.__version__} torch {torch.__version__}")
    peer = Peer(arguments)
    works = [
        *(
            Work(f"decode at position {p}", "decode", decodes, partial(peer.decode, p))
            for p in arguments.positions
        ),
        *(
            Work(f"prefill of {n} tokens", "prefill", prefills, partial(peer.prefill, n))
            for n in arguments.prefill
        ),
    ]
    bench.run(works)


if __name__ == "__main__":
    main()
