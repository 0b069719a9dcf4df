"""What manipulation checks saw stands beside the result, in the page and at the end of a run."""

from __future__ import annotations

from pathlib import Path

import pytest
import synthetic
from rich.console import Console

from dnsrig.report import checks, terminal
from dnsrig.report.page import render
from dnsrig.rundir import Check
from dnsrig.runs.run import Run


@pytest.fixture
def run(tmp_path: Path) -> Run:
    found = Run.open(synthetic.build(tmp_path / "run"))
    for number, trial in enumerate(found.of_variant("v00")):
        seen = [80.0, 90.0, 20.0][number]
        served = Check(name="changes-served", title="changes served", verdict="passed", seen=seen, unit="%", least=50.0)
        if seen < 50:
            served.verdict, served.reason = "failed", "changes served: 20 %, and it must be at least 50 %"
        unknown = Check(name="policy", title="the policy", verdict="cannot-tell", reason="the policy: no rows", least=1)
        trial.record.checks = [served, unknown]
    return found


def test_a_line_a_variant_and_check(run: Run) -> None:
    served, policy = checks.lines(run)
    assert (served.seen, served.wanted, served.verdict) == ("20 to 90 %", "at least 50 %", "1 failed, 2 passed")
    assert (policy.seen, policy.verdict, policy.reason) == ("cannot tell", "cannot tell", "the policy: no rows")
    assert checks.summary(run) == "2 passed, 1 failed, 3 cannot tell"


def test_the_page_has_them(run: Run) -> None:
    page = render(run, [], [])
    assert 'id="checks"' in page and "20 to 90 %" in page and "must be at least 50 %" in page


def test_what_passed_in_every_repeat_is_folded_away(run: Run) -> None:
    tls = Check(name="tls", title="transfers over TLS", verdict="passed", seen=100.0, unit="%", least=100.0)
    for trial in run.trials:
        trial.record.checks.append(tls)
    page = render(run, [], [])
    in_sight, folded = page[page.index('id="checks"') :].split("<details", 1)
    assert "20 to 90 %" in in_sight and "the policy: no rows" in in_sight and "transfers over TLS" not in in_sight
    variants = len(run.manifest.variants)
    assert f"{variants} checks passed in every repeat of their variant: transfers over TLS</summary>" in folded
    assert folded.partition("</details>")[0].count("<td>transfers over TLS</td>") == variants


def test_the_terminal_has_them(run: Run) -> None:
    console = Console(width=80, record=True, file=None)
    with console.capture() as said:
        console.print(terminal.terminal_findings(run, []))
    text = " ".join(said.get().split())
    assert "manipulation checks: 2 passed, 1 failed, 3 cannot tell" in text
    assert "changes served: 20 %, and it must be at least 50 %" in text


def test_a_run_without_checks_says_nothing_of_them(tmp_path: Path) -> None:
    assert checks.summary(Run.open(synthetic.build(tmp_path / "run"))) == ""
