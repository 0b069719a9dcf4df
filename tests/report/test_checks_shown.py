"""What manipulation checks saw stands beside the result, in the page and at the end of a run."""

from __future__ import annotations

from pathlib import Path

import pytest
import synthetic
from rich.console import Console

from dnsrig.report import checks, features, terminal
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


@pytest.mark.parametrize(("failed", "more"), [(5, ""), (6, ""), (7, "and 1 more: see the report")])
def test_the_terminal_has_the_first_six_that_did_not_pass(run: Run, failed: int, more: str) -> None:
    for trial in run.trials:
        of_first = trial.record.spec.variant.id == "v00"
        checks = [Check(name=f"c{n}", title="x", verdict="failed", reason=f"reason {n}.") for n in range(failed)]
        trial.record.checks = checks if of_first else []
    console = Console(width=100, record=True, file=None)
    with console.capture() as said:
        console.print(terminal.terminal_findings(run, []))
    text = said.get()
    assert text.count("reason ") == min(6, failed) and text.count(" more: ") == bool(more) and more in text
    assert "  server=bind@system zones=100: failed: reason 0." in text.splitlines()[1]


@pytest.mark.parametrize(
    ("seen", "unit", "text"),
    [
        ([97.4, 97.4], "%", "97.4 %"),
        ([0, 97.4], "%", "0 to 97.4 %"),
        ([None, 5], "zones", "5 zones"),
        ([True, True], "", "True"),
        (["tls", "tcp", "tls"], "", "tls, tcp"),
        ([None], "", "cannot tell"),
    ],
)
def test_what_was_seen_over_the_repeats(run: Run, seen: list[float | str | None], unit: str, text: str) -> None:
    found = [Check(name="c", title="x", verdict="passed", seen=each, unit=unit) for each in seen]
    assert checks.Line(run.manifest.variants[0], found).seen == text


def test_what_servers_support_has_a_column_for_each_variant_that_was_asked(run: Run) -> None:
    of_first, of_last = run.of_variant("v00"), run.of_variant("v03")
    ixfr, tls = {"name": "IXFR", "transport": "tcp"}, {"name": "XoT", "transport": "tls"}
    of_first[1].record.instruments["interrogate"] = {"features": [ixfr | {"verdict": "yes", "detail": "a delta"}]}
    of_last[0].record.instruments["interrogate"] = {"features": [tls | {"verdict": "no"}, ixfr]}
    assert features.table(run) == features.FeatureTable(
        ["bind@system 1.2.3 · 100", "knot@system 1.2.3 · 1,000"],
        [
            features.Question("IXFR", "tcp", [features.Cell("yes", "a delta"), features.Cell("–", "")]),
            features.Question("XoT", "tls", [None, features.Cell("no", "")]),
        ],
    )
    for trial in run.trials:
        trial.record.instruments.pop("interrogate", None)
    assert features.table(run) is None
