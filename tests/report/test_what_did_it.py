"""Versions beside each other, on the page and for other programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from html_facts import read
from pair_data import measured

from dnsrig import report
from dnsrig.report import export, what_did_it

GOLDEN = Path(__file__).with_name("golden") / "pairs.json"


def test_the_page_has_a_table_of_what_each_version_costs(tmp_path: Path) -> None:
    run = measured(tmp_path / "run", answered=1_000)
    facts = read(report.write_report(run.directory).path.read_text(encoding="utf-8"))
    assert "what-did-it" in facts.values("id")
    assert "bind 9.18.9 → 9.18.10" in facts.text
    assert "voluntary context switches 1.20 [1.10..1.30] 2.40 [2.20..2.60] 200 % [±0]" in facts.text
    assert not facts.unclosed


def test_a_run_of_one_version_has_no_such_section(page: Path) -> None:
    assert "what-did-it" not in read(page.read_text(encoding="utf-8")).values("id")


def test_other_programs_get_the_same(tmp_path: Path) -> None:
    """Written once from what is asserted elsewhere; a change of it is a change of the format."""
    (path,) = export(measured(tmp_path / "run", answered=1_000), "pairs", tmp_path / "out")
    assert json.loads(path.read_text()) == json.loads(GOLDEN.read_text())


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "no such setting"), ("", ""), ("a" * 80, "a" * 80), ("a" * 81, "a" * 79 + "…")],
)
def test_a_long_default_is_cut(value: str | None, shown: str) -> None:
    assert what_did_it._default(value) == shown
