"""The story generator: one document for one seed, always the same.

A story is a plot (plots/*.tale) told about a cast that fits a setting. A plot is a list of sections; each
section is told by one of its templates. Names, pronouns, things and places come from the scene, so they agree
to the end.

    python grammar.py --seed 7 --count 3        prints stories
    python grammar.py --words                   counts the distinct words of many stories
"""

import argparse
import random
import re
from collections import Counter

from cast import HERE, Cast, Lexicon
from tale import Line, Plot, read_plot, read_rules
from template import Renderer, parse

GENERAL_TITLES = [Line("", parse("the {h.trait} {h.kind}")), Line("animal", parse("{h} the {h.kind}"))]


class Grammar:
    def __init__(self):
        self.lexicon = Lexicon()
        self.rules = read_rules(HERE / "rules.txt")
        self.plots = [read_plot(path) for path in sorted((HERE / "plots").glob("*.tale"))]

    def story(self, seed: int, plot: str = "") -> str:
        """Tells the story of a seed: half begin with a "Story: title" line, one in six with a bare title."""
        rng = random.Random(seed)

        # random() is the only method whose sequence Python promises to keep for a seed.
        def pick(options):
            return options[int(rng.random() * len(options))]

        chosen = next((p for p in self.plots if p.name == plot), None) or pick(self.plots)
        cast = Cast(self.lexicon, pick)
        scene = {"s": {"where": pick(cast.setting["where"])}}
        for slot, kind in chosen.draws:
            scene[slot] = cast.draw(kind)
        renderer = Renderer(scene, self.rules, pick)
        body = _tell(chosen, renderer, cast.flags, pick)
        titles = pick((chosen.titles, chosen.titles, chosen.titles, GENERAL_TITLES))
        title = renderer.text(_choose(titles, cast.flags, pick).template)
        head = f"{title[0].upper()}{title[1:]}\n\n"
        return pick((f"Story: {head}",) * 3 + (head, "", "")) + body


def _tell(plot: Plot, renderer: Renderer, flags: set[str], pick) -> str:
    text = ""
    for section in plot.sections:
        if section.mark == "?" and pick((True, False)):
            continue
        part = renderer.text(_choose(section.lines, flags, pick).template)
        text += ("\n\n" if section.mark == "*" else " ") + part
    return text.strip()


def _choose(lines: list[Line], flags: set[str], pick) -> Line:
    return pick([line for line in lines if line.fits(flags)])


def main() -> None:
    parser = argparse.ArgumentParser(description="Prints stories of the grammar.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("--plot", default="", help="only this plot")
    parser.add_argument("--words", action="store_true", help="count distinct words instead")
    args = parser.parse_args()
    grammar = Grammar()
    stories = [grammar.story(seed, args.plot) for seed in range(args.seed, args.seed + args.count)]
    if args.words:
        words = Counter(word for story in stories for word in re.findall(r"[a-z']+", story.lower()))
        mean = sum(words.values()) / len(stories)
        print(f"{len(stories)} stories, {mean:.0f} words each, {len(words)} distinct")
    else:
        print("\n\n----\n\n".join(stories))


if __name__ == "__main__":
    main()
