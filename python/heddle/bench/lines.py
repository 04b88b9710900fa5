"""The text of a file of results: a row is one line, so that a row that changes is a line that changes."""

import json


def text_of(value, depth=2):
    """JSON of a value. Its outer `depth` levels have a line for each entry, which holds all within."""
    if depth == 0 or not value or not isinstance(value, dict | list):
        return json.dumps(value)
    if isinstance(value, list):
        entries = [text_of(entry, depth - 1) for entry in value]
    else:
        entries = [f"{json.dumps(key)}: {text_of(entry, depth - 1)}" for key, entry in value.items()]
    begin, end = "[]" if isinstance(value, list) else "{}"
    lines = ",\n".join(entries).replace("\n", "\n ")
    return f"{begin}\n {lines}\n{end}"
