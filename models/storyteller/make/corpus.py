"""The training text: stories and sums by number, made on all cores, always the same."""

import os
from collections.abc import Iterator
from multiprocessing import Pool

from grammar import Grammar
from sums import SumMaker

SUMS_PER_STORY = 3
CHUNK = 500  # stories a task

_makers: tuple[Grammar, SumMaker] | None = None


def start_worker() -> None:
    global _makers
    grammar = Grammar()
    _makers = grammar, SumMaker(grammar.lexicon)


def make_documents(start: int) -> list[str]:
    """Makes the documents of one chunk: each story is followed by its sums."""
    grammar, sums = _makers
    texts = []
    for seed in range(start, start + CHUNK):
        texts.append(grammar.story(seed))
        texts += [sums.document(SUMS_PER_STORY * seed + i) for i in range(SUMS_PER_STORY)]
    return texts


def documents(stories: int) -> Iterator[list[str]]:
    """Yields chunks of documents, in order."""
    with Pool(os.cpu_count(), initializer=start_worker) as pool:
        yield from pool.imap(make_documents, range(0, stories, CHUNK))
