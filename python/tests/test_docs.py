"""The code of the pages runs."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run_page(page):
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
    assert blocks
    exec(compile("\n".join(blocks), page, "exec"), {"__name__": "page"})


@pytest.mark.parametrize(
    "page", ["docs/python.md", "docs/attention.md", "README.md", "docs/tile_language.md"]
)
def test_blocks_run_one_after_the_other(page, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    run_page(page)


def test_readme_shows_what_its_block_prints(capsys):
    run_page("README.md")
    shown = re.search(r"^print\(.*\)\n# (.*)$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert capsys.readouterr().out.splitlines() == [shown[1]]


def test_snippets_of_other_projects_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # they write traces
    run_page("docs/coming_from.md")
    assert '"traceEvents"' in (tmp_path / "trace.json").read_text()
