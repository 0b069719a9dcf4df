from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from made_up import made_up_findings
from rich.console import Console, RenderableType

from dnsrig.report import terminal_findings, terminal_first, terminal_table
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
