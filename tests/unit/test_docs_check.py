"""docs/check.py finds each kind of fault in pages and sentences, and nothing in what is right."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs"))

import check  # type: ignore[import-not-found]  # noqa: E402

OTHER = "# Other page\n\n## `dnsrig load`: a rate, or more?\n\n## Twice\n\n## Twice\n"


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("[a](other.md) [b](other.md#twice-1) [c](https://example.com/x#y) [d](mailto:a@example.com)", 0),
        ("[a](other.md#dnsrig-load-a-rate-or-more)", 0),
        ("[a](#here)\n\n## Here", 0),
        ("```sh\n[a](missing.md)\n```", 0),
        ("[a](missing.md)", 1),
        ("[a](other.md#nowhere)", 1),
        ("[a](other.md#twice-2)", 1),
        ("[a\nb](other.md#once)", 1),
        ("![picture](missing.png)", 1),
    ],
)
def test_a_broken_link_is_found(tmp_path: Path, text: str, faults: int) -> None:
    (tmp_path / "other.md").write_text(OTHER)
    page = tmp_path / "page.md"
    page.write_text(text)
    assert len(list(check.broken_links([page]))) == faults


def test_a_page_three_links_away_is_found(tmp_path: Path) -> None:
    pages = [tmp_path / f"{name}.md" for name in ("first", "second", "third", "fourth", "alone")]
    for page, following in zip(pages, [*pages[1:4], None, None], strict=True):
        page.write_text(f"[next]({following.name})" if following else "The end.")
    assert [fault.split(":")[0] for fault in check.far_pages(pages[0], pages)] == [str(pages[3]), str(pages[4])]


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("The trap is described here.", 0),
        ("There is no more room. The peer held its lease.", 0),
        ("What it costs is told here.", 1),
        ("The run is held against the other.", 1),
        ("So it answers no more.", 1),
    ],
)
def test_a_turn_of_phrase_is_found(tmp_path: Path, text: str, faults: int) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"A line.\n{text}\n")
    assert len(list(check.turns(page))) == faults
