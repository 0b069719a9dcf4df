"""What commands print on a terminal of 80 columns: no word that is whole on a wide one is broken, and no line is
longer."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
import synthetic
from command_line import experiment, output

from dnsrig.lab import check, removal
from dnsrig.lab.disturbances import Remark

MARGINS = 2
"""Columns that stay empty beside help."""
EXAMPLE = 5 * " "
"""Indentation of examples, which are shown as they are written."""
LONG = "bind@/opt/bind-9.18.33-with-jemalloc"
EXPERIMENT = f"""{experiment("Long names", "Are they whole?", repeats=5)}
"hosts.secondary.server" = ["{LONG}", "knot@forky"]
"dataset.zones" = [100_000, 2_000_000]
[matrix.transport]
"tcp" = {{}}
"xot+tsig (resumed), or as it is" = {{ transfer.transport = "xot+tsig" }}
"""
REMARKS = [Remark("link netem", "note", f"nothing at /root/.cache/dnsrig/{LONG}", "none needed: takes it by itself")]


def runs(folder: Path) -> list[str]:
    axes = {
        "transport": ["tcp", "xot+tsig (resumed)"],
        "provisioning": ["catalog-consumer", "pregenerated"],
        "records": [2_000_000],
    }
    plan = synthetic.Plan(
        servers=[LONG, "knot@forky"], zones=[10], repeats=2, extra_axes=axes, baseline={}, samples=False
    )
    return [str(synthetic.build(folder / name, plan)) for name in ("base", "new")]


@pytest.fixture(params=["check", "compare", "run"])
def command(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(removal, "clean", lambda: ([], []))
    monkeypatch.setattr(check, "remarks", lambda: iter(REMARKS))
    if request.param == "compare":
        return ["compare", *runs(tmp_path)]
    if request.param == "run":
        (tmp_path / "long-names.toml").write_text(EXPERIMENT)
        return ["run", str(tmp_path / "long-names.toml"), "--dry-run", "--seed", "7"]
    return ["check"]


def test_no_word_is_broken(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = {}
    for width in (80, 1000):
        monkeypatch.setenv("COLUMNS", str(width))
        _, said[width], _ = output(monkeypatch, capsys, *command)
        assert max(map(len, said[width].splitlines())) <= width
    assert LONG in said[80]
    assert in_words(said[80]) <= in_words(said[1000])


@pytest.mark.parametrize("command", ["run", "history", "bisect", "compare", "plan", "servers install"])
def test_help_breaks_a_line_only_where_the_next_word_has_no_room(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    _, said, _ = output(monkeypatch, capsys, *command.split(), "--help")
    prose = ["" if line.startswith(EXAMPLE) else line.strip() for line in said.partition("╭")[0].splitlines()]
    pairs = [(line, after) for line, after in itertools.pairwise(prose) if line and after]
    assert len(pairs) > 1
    for line, after in pairs:
        assert len(line) + 1 + len(after.split()[0]) > 80 - MARGINS, line


def in_words(text: str) -> set[str]:
    """Without what stands around a value: a paragraph has ``server=x; …`` where a table has a column."""
    for mark in "─=;":
        text = text.replace(mark, " ")
    return set(text.split())
