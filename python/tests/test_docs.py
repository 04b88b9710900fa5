"""The code of the pages runs."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("page", ["docs/python.md", "README.md", "docs/tile_language.md"])
def test_blocks_run_one_after_the_other(page, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
    assert blocks
    exec(compile("\n".join(blocks), page, "exec"), {"__name__": "page"})
