"""The index of the how-tos: each page once, by its title."""

from __future__ import annotations

import re
from pathlib import Path

HOW_TO = Path(__file__).parents[2] / "docs/how-to"


def test_the_index_has_each_page_once_by_its_title() -> None:
    listed = re.findall(r"\| \[(.+?)\]\(([\w-]+\.md)\) \|$", (HOW_TO / "README.md").read_text(), re.MULTILINE)
    titles = {path.name: re.findall(r"^# (.+)", path.read_text(), re.MULTILINE)[0] for path in HOW_TO.glob("*.md")}
    del titles["README.md"]
    assert sorted((name, title) for title, name in listed) == sorted(titles.items())
    assert len(set(titles.values())) == len(titles), "titles are distinct"
