#!/usr/bin/env python3
"""Text from a model: a stream, the likeliest tokens, many prompts together, and a second thread.

    python examples/generate.py [FOLDER]

Without a folder it takes the small model that lies next to it, and is done in a few seconds.
"""

import sys
import threading
from pathlib import Path

import heddle

STORYTELLER = Path(__file__).parents[1] / "models" / "storyteller"


def main():
    with heddle.load(sys.argv[1] if len(sys.argv) > 1 else STORYTELLER) as model:
        print(f"[{model.stats['device']}]")

        # Tokens as they come. Leaving the loop ends the answer.
        for token in model.stream("Once upon a time", max_tokens=200, temperature=0.7, seed=4):
            print(token.text, end="", flush=True)
            if token.index > 40 and token.text.endswith("."):
                break
        print("\n")

        # Other likely answers of the model, by its own probabilities.
        (token,) = model.stream("Once upon a time, there was a", max_tokens=1, logprobs=3)
        for other, logprob in token.top:
            print(f"{model.detokenize([other])!r:>12} {logprob:6.2f}")
        print()

        # Many prompts share the steps of the model.
        sums = [f"{a} + {b} =" for a, b in ((17, 25), (27, 45), (60, 31))]
        for prompt, text in zip(sums, model.generate(sums, stop="."), strict=True):
            print(prompt + text)

        # Other threads may use the model too.
        stories = {}
        threads = [
            threading.Thread(
                target=lambda seed=seed: stories.update(
                    {seed: model.generate("The fox", max_tokens=12, temperature=1.0, seed=seed)}
                )
            )
            for seed in (1, 2)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for seed, story in sorted(stories.items()):
            print(f"seed {seed}: The fox{story}")
        print(f"[{model.stats['new_tokens']} tokens in {model.stats['steps']} steps]")


if __name__ == "__main__":
    main()
