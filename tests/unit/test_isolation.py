"""One metric, trap, chart or export that raises is left out and told; everything else goes on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import ModuleType

import polars as pl
import pytest
import synthetic
from command_line import status

from dnsrig.cli._exits import EXIT_INCOMPLETE
from dnsrig.comparison.summary import variant_table
from dnsrig.experiment import trial as executed
from dnsrig.metrics import all_metrics
from dnsrig.report import export
from dnsrig.report.charts import all_charts
from dnsrig.report.exports import formats
from dnsrig.rundir import Findings, read_json
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial
from dnsrig.servers import driver as driver_of
from dnsrig.traps import all_traps

PLAN = synthetic.Plan(servers=["bind@system", "knot@system"], zones=[10], repeats=2)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return synthetic.build(tmp_path / "run", PLAN)


def raising(*_: object) -> None:
    raise ZeroDivisionError("one part of many")


def panicking(*_: object) -> None:
    raise pl.exceptions.PanicException("index out of bounds")


def command(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setenv("COLUMNS", "1000")
    monkeypatch.setenv("TERM", "xterm")
    return status(monkeypatch, *arguments)


def test_the_report_goes_on_and_names_each(
    directory: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(all_metrics(), "transfer_bytes", replace(all_metrics()["transfer_bytes"], compute=raising))
    monkeypatch.setattr(all_traps()["cpu-contention"].module, "after", panicking)
    monkeypatch.setattr(all_traps()["too-few-repeats"].module, "across", raising)
    charts = {chart.id: chart for chart in all_charts()}
    monkeypatch.setattr(charts["time-by-variant"].module, "draw", raising)
    monkeypatch.setattr(charts["resources"].module, "applies", raising)
    assert command(monkeypatch, "report", str(directory), "--full") == EXIT_INCOMPLETE
    output, page = capsys.readouterr(), (directory / "report.html").read_text()
    written = read_json(directory / "findings.json", Findings)
    assert {(failure.part, failure.name, len(failure.trials)) for failure in written.failures} == {
        ("metric", "transfer_bytes", 4),
        ("trap", "cpu-contention", 4),
        ("trap", "too-few-repeats", 0),
        ("chart", "time-by-variant", 0),
        ("chart", "resources", 0),
    }
    for failure in written.failures:
        assert "test_isolation.py, line " in failure.error
        assert f"failed: {failure.part} {failure.name}" in output.out and failure.error in output.out
        assert failure.name in page and failure.error in page
    assert "failed, and left out: chart resources, chart time-by-variant" in output.err
    verdicts = {finding.trap: finding for finding in written.findings}
    assert verdicts["cpu-contention"].verdict == verdicts["too-few-repeats"].verdict == "cannot-tell"
    assert "ZeroDivisionError: one part of many" in verdicts["too-few-repeats"].summary
    assert len(verdicts) > 10 and page.count("<svg") > 3
    summary = pl.read_parquet(directory / "summary.parquet")
    assert summary.filter(pl.col("metric") == "zones_per_s")["value"].null_count() == 0


def test_what_belongs_to_a_metric_may_fail_as_well(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its ceiling, and whether a trial at its limit counts: then it has no value, and no comparison ends."""
    broken = replace(all_metrics()["zones_per_s"], ceiling=raising, at_limit=raising)
    monkeypatch.setitem(all_metrics(), "zones_per_s", broken)
    run = Run.open(directory)
    for trial in run.trials:
        trial.record.outcome, trial.record.metrics = "timeout", {}
    assert [row.samples.measured for row in variant_table(run, "zones_per_s")] == [[], []]
    (failure,) = run.failures
    assert failure.name == "zones_per_s" and len(failure.trials) == 4


@pytest.mark.full
def test_an_export_that_fails_is_told(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(formats()["csv"], "write", raising)
    assert command(monkeypatch, "export", str(directory), "--format", "csv") == EXIT_INCOMPLETE
    assert "failed, and left out: export csv" in capsys.readouterr().err
    monkeypatch.setattr(formats()["png"].svg, "png", raising)  # type: ignore[attr-defined]
    run = Run.open(directory)
    assert export(run, "png", tmp_path / "out") == [] and len(run.failures) > 3
    assert command(monkeypatch, "export", str(directory), "--format", "parquet") == 0


def test_a_metric_of_a_package_has_its_line_told(
    tmp_path: Path, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "theirs.py").write_text("def slow(trial):\n    return 1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    theirs = __import__("theirs")
    assert isinstance(theirs, ModuleType)
    monkeypatch.setitem(all_metrics(), "slow", replace(all_metrics()["zones_per_s"], name="slow", compute=theirs.slow))
    run = Run.open(directory)
    assert run.trials[0].value("slow") is None
    (failure,) = run.failures
    assert failure.error == "ZeroDivisionError: division by zero (theirs.py, line 2)"


def test_a_finished_trial_stays_finished(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a metric nor the reading of a server's log decides whether a trial is kept."""
    monkeypatch.setitem(all_metrics(), "zones_per_s", replace(all_metrics()["zones_per_s"], compute=raising))
    trial: Trial = Run.open(directory).trials[0]
    log = trial.directory / "servers" / "secondary" / "server.log"
    log.parent.mkdir(parents=True)
    log.write_text("a line\n")
    trial.record.servers["secondary"].role = "secondary"
    monkeypatch.setattr(type(driver_of("bind")), "read_log", raising)
    monkeypatch.setattr(type(driver_of("bind")), "read_work", raising)
    executed._conclude(trial.record, trial.directory)
    again = Run.open(directory).trials[0]
    assert again.record.outcome == "done"
    assert again.record.logs["secondary"].unread.startswith("ZeroDivisionError: one part of many")
    assert {"zones.arrow", "samples.arrow", "log-secondary.arrow"} <= set(again.record.files)


def test_a_new_metric_reaches_an_old_run(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Metrics are computed when they are asked for; what an old trial.json says stands where they cannot be."""
    monkeypatch.setitem(
        all_metrics(),
        "twice",
        replace(all_metrics()["zones_seen"], name="twice", compute=lambda trial: 2.0 * trial.samples.height),
    )
    trial = Run.open(directory).trials[0]
    assert trial.value("twice") == 2 * trial.samples.height > 0
    trial.record.metrics |= {"twice": 1.0, "long_gone": 7.0, "time_per_zone_ms": 3.5}
    again = Trial(trial.directory, trial.record)
    assert again.value("twice") == 2 * trial.samples.height, "computed again, not as recorded"
    assert again.value("long_gone") == 7.0, "not known any more"
    assert again.value("time_per_zone_ms") == 3.5, "what it needs is not there"
