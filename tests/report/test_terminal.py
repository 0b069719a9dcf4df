from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from made_up import made_up_findings
from rich.console import Console, RenderableType

from dnsrig.report import terminal, terminal_bars, terminal_findings, terminal_first, terminal_table
from dnsrig.report.bars import Bar, Bars
from dnsrig.report.first import First
from dnsrig.report.headlines import Headline
from dnsrig.report.terminal import FirstScreen
from dnsrig.report.verdicts import Verdict, Verdicts
from dnsrig.runs.run import Run

GOLDEN = Path(__file__).parent / "golden"


def printed(renderable: RenderableType, width: int) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None, highlight=False)
    console.print(renderable)
    assert isinstance(console.file, io.StringIO)
    return "".join(f"{line.rstrip()}\n" for line in console.file.getvalue().splitlines())


@pytest.mark.parametrize("width", [60, 80, 140])
def test_the_end_of_a_run(run: Run, width: int) -> None:
    """With DNSRIG_UPDATE_GOLDEN=1 in the environment, what is printed becomes what is expected."""
    findings = made_up_findings(run)
    text = printed(terminal_table(run, findings), width) + "\n" + printed(terminal_findings(run, findings), width)
    golden = GOLDEN / f"terminal_{width}.txt"
    if os.environ.get("DNSRIG_UPDATE_GOLDEN"):
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")
    assert max(map(len, text.splitlines())) <= width
    for word in ("ports-exhausted", "server-failed", "knot@system"):
        assert word in text, "no word of the table is broken"


@pytest.mark.parametrize("width", [60, 80, 140])
def test_the_first_screen(run: Run, width: int) -> None:
    first = terminal_first(run, made_up_findings(run), "more: report.html, or `dnsrig report RUN --full`")
    text = printed(first, width)
    golden = GOLDEN / f"first_{width}.txt"
    if os.environ.get("DNSRIG_UPDATE_GOLDEN"):
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 10
    assert max(map(len, text.splitlines())) <= width


@pytest.mark.parametrize("width", [60, 80, 140])
def test_the_first_screen_has_the_remedy_of_the_worst_finding(run: Run, width: int) -> None:
    lines = [
        Headline("invalidates", "1 of 8 trials is invalid", "", "trials"),
        Headline("distorts", "All ephemeral ports are taken", "", "trap-ports", remedy="Use more addresses. " * 9),
        Headline("explains", "A limit of the server decides the result", "", "trap-limit", remedy="Raise it."),
    ]
    text = printed(FirstScreen(First("Why?", Verdicts("", [], 0), lines, 2), "more: RUN"), width).splitlines()
    assert [line.split()[0] for line in text] == ["Why?", "invalidates:", "distorts:", "remedy:", "explains:", "more:"]
    assert text[4].endswith("(+2 more)")
    assert max(map(len, text)) <= width


def test_a_long_sentence_has_its_figures_where_there_is_room(run: Run) -> None:
    sentence = Verdict(
        "BIND 9 9.20.30 and BIND 9 9.18.49: ", "no difference", f" that is larger than {'much ' * 9}", "1 s against 2 s"
    )
    alone, many = (
        printed(FirstScreen(First("Why?", Verdicts("", [sentence] * number, 0), [], 0), "more: RUN"), 60)
        for number in (1, 4)
    )
    assert "(1 s against 2 s)" in " ".join(alone.split()) and "against" not in many


def test_markup_of_others_is_only_text(run: Run) -> None:
    finding = made_up_findings(run)[-1].model_copy(update={"summary": "[red]x[/red] \x1b[31m [/]"})
    text = printed(terminal_findings(run, [finding]), 80)
    assert "[red]x[/red] \\x1b[31m [/]" in text


def screen(*shown: Verdict, more: int = 0, width: int = 60) -> list[str]:
    first = First("Why?", Verdicts("", list(shown), more), [], 0)
    return printed(FirstScreen(first, "more: RUN"), width).splitlines()


@pytest.mark.parametrize(
    ("verdicts", "more", "shown", "left"),
    [(1, 0, 1, ""), (7, 0, 7, ""), (8, 0, 6, "• 2 more"), (6, 1, 6, "• 1 more"), (7, 1, 6, "• 2 more")],
)
def test_the_first_screen_has_ten_lines_at_most(verdicts: int, more: int, shown: int, left: str) -> None:
    """Seven of them are for verdicts; those that do not fit are counted in one of these."""
    lines = screen(*(Verdict(f"sentence {number}") for number in range(verdicts)), more=more)
    told = [f"• sentence {number}" for number in range(shown)]
    assert lines == ["Why?", *told, *([left] if left else []), "No trap found anything odd.", "more: RUN"]


def test_a_verdict_without_end_is_cut() -> None:
    lines = screen(Verdict("word " * 200))
    assert len(lines) == 10 and len(lines[7]) <= 60
    assert lines[7].endswith("…") and lines[1].startswith("• word") and lines[2].startswith("  word")


def test_figures_that_just_fit_into_a_line_are_kept() -> None:
    """A line of 60 columns has room for 58 characters behind its mark."""
    fits, too_long = Verdict("a" * 50, figures="b" * 5), Verdict("a" * 50, figures="b" * 6)
    lines = screen(*[fits] * 6, too_long)
    assert lines[1:8] == [*[f"• {'a' * 50} (bbbbb)"] * 6, f"• {'a' * 50}"]


@pytest.mark.parametrize(("text", "cut"), [("abcd", "abcd"), ("abcde", "abc…"), ("ab cde", "ab…")])
def test_a_line_that_is_too_long_ends_in_an_ellipsis(text: str, cut: str) -> None:
    assert terminal._cut(text, 4) == cut


@pytest.mark.parametrize(("width", "room"), [(60, 40), (51, 40), (50, 39), (31, 20), (20, 9), (19, 8)])
def test_bars_have_the_room_that_names_and_figures_leave(width: int, room: int) -> None:
    """From 8 to 40 columns; a bar ends at the upper end of its interval."""
    found = Bars("Time", [Bar("a", "1 s", 0.5, 0.75, 1.0), Bar("bcd", "10 s", 0.25, 0.25, 0.25)])
    title, whole, quarter = printed(found, width).splitlines()
    assert title == "Time"
    drawn = "█" * round(room / 2) + "▓" * (round(0.75 * room) - round(room / 2))
    assert whole == f"  a   {drawn:░<{room}} 1 s"
    assert quarter == f"  bcd {'█' * round(room / 4):{room}} 10 s"


def test_the_longest_bar_is_the_largest_upper_end(small: Run) -> None:
    found = terminal_bars(small)
    assert found.title == "Time to all zones" and len(found.bars) == len(small.manifest.variants)
    assert max(bar.high for bar in found.bars) == 1.0
    assert [bar.name for bar in found.bars] == ["50 zones", "200 zones"]
    assert all(0 < bar.low <= bar.median <= bar.high for bar in found.bars)
