"""Procedure ixfr-stream: versions of the dataset, what is refused, what summaries come to, and the chart. No server, no
clock."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from test_serving import FakeContext, with_zones
from transfer_load_data import summary
from trial_data import clean_trial

from dnsrig import datasets
from dnsrig.errors import UsageError
from dnsrig.experiment import model, trial_specs
from dnsrig.metrics import all_metrics
from dnsrig.procedures import ixfr_stream, procedure, versions
from dnsrig.report.charts import metric_by_axis
from dnsrig.rundir import TrialSpec
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial


def made(*settings: str) -> TrialSpec:
    (point,) = model.points(model.load(model.find("ixfr-stream"), "quick", ["server=knot@forky", *settings]))
    return trial_specs.provisional("ixfr-stream", point, [0, 1])


ONE = ("records_changed=100", "made_by=reload")


def test_the_next_version_differs_in_as_many_records_as_asked_for() -> None:
    values = datasets.parameters("tld", {"delegations": 100})
    by_reload = {"made_by": "reload", "records_changed": 30}
    base, following = versions(procedure("ixfr-stream"), values, by_reload)
    assert base == values and following == {**values, "serial": 2, "records_changed": 30}
    _, following = versions(procedure("ixfr-stream"), values, {**by_reload, "made_by": "updates"})
    assert following == {**values, "serial": 2}
    assert versions(procedure("transfer"), values, {}) == [values]
    assert versions(procedure("update"), values, {}) == [values, {**values, "serial": 2}]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ((*ONE, "transfer.ixfr=false"), "answers IXFR with AXFR"),
        ((*ONE, "matrix.made_by.reload.dataset.delegations=30"), "only 90 records can change"),
        (("records_changed=0", "made_by=reload"), r"options\.records_changed = 0"),
        (("records_changed=1", "made_by=updates", "matrix.made_by.updates.transfer.updates=false"), "are not allowed"),
        (("records_changed=1", "made_by=updates", "matrix.made_by.updates.dataset.zones=2"), "a dataset with one zone"),
    ],
)
def test_what_cannot_be_measured_is_refused(settings: tuple[str, ...], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        made(*settings)


def test_tiny_zones_change_in_their_serial_alone() -> None:
    spec = made(*ONE)
    spec.dataset.kind = "tiny-zones"
    with pytest.raises(UsageError, match="does not differ in a given number of records"):
        ixfr_stream.validate(spec)


class Changing(FakeContext):
    """A context whose instruments sum up as they are told to."""

    def start_transfer(self, name: str, host: str, target: str, arguments: list[str], **more: Any) -> str:
        self.done.append(f"{name} on {host}")
        self.arguments[name] = [*arguments, f"--out={more['out']}"]
        return name

    def start_probe(self, name: str, target: str, **more: Any) -> str:
        assert more["next_version"]
        return name

    def lay_out(self, name: str) -> None:
        self.done.append("lay out")

    def load(self, name: str) -> None:
        self.done.append("change")


QUIET = ("options.settle_s=0.0", "options.drain_s=0.0")


def test_order_of_a_trial(tmp_path: Path) -> None:
    told = {"probe-change": {"outcome": "done"}, "ixfr": summary(5), "axfr": summary(3)}
    context = Changing(made(*ONE, *QUIET), tmp_path, **told)
    assert ixfr_stream.measure(context).outcome == "done"  # type: ignore[arg-type]
    changed = ["setup", "ready primary", "lay out", "warmup", "change"]
    assert context.done == [*changed, "measure", "ixfr on client", "axfr on client", "drain"]
    ixfr, axfr = context.arguments["ixfr"], context.arguments["axfr"]
    assert "--ixfr=0" in ixfr and not [word for word in axfr if word.startswith("--ixfr")]
    assert {"--policy=reused", "--repeat", f"--out={tmp_path}/ixfr"} <= set(ixfr)


@pytest.mark.parametrize(("accepted", "fails"), [(100, False), (99, True)])
def test_as_many_updates_as_records(tmp_path: Path, accepted: int, fails: bool) -> None:
    (tmp_path / "zones.list").write_text("example\tzones/example.zone\n")
    change = {"due": 100, "accepted": accepted}
    told = {"change": change, "ixfr": summary(5), "axfr": summary(3)}
    spec = with_zones(made("records_changed=100", "made_by=updates", *QUIET), tmp_path)
    context = Changing(spec, tmp_path, **told)
    result = ixfr_stream.measure(context)  # type: ignore[arg-type]
    if fails:
        assert (result.outcome, result.reason) == ("timeout", "the primary made 99 of 100 changes")
        return
    assert result.outcome == "done"
    assert {"--changes-per-s=1000", "--duration-s=0.1"} <= set(context.arguments["change"])
    assert context.done[:4] == ["setup", "ready primary", "warmup", "change on primary"]


@pytest.mark.parametrize(
    ("ixfr", "outcome", "words"),
    [
        (summary(5), "done", ""),
        (summary(0, up_to_date=7, outcomes={"up-to-date": 7}), "server-failed", "IXFR says that nothing changed"),
        (summary(3, outcomes={"done": 3, "cut": 1}), "server-failed", "IXFR: 1 cut"),
        (summary(5, rows_lost=1), "invalid", "lost 1 rows"),
        (summary(5, busy_share=1.0), "done", ""),
    ],
)
def test_how_a_trial_is_concluded(ixfr: Mapping[str, Any], outcome: str, words: str) -> None:
    result = ixfr_stream.concluded({"ixfr": ixfr, "axfr": summary(3)})
    assert result.outcome == outcome and words in result.reason


def ixfr_trial(folder: Path, *, by_whole_zone: bool = False) -> Trial:
    """Ten transfers each way; IXFR takes a fifth of the time and a tenth of the bytes."""
    trial = clean_trial(folder)
    spec = trial.record.spec
    spec.procedure, spec.main_metric, spec.options = "ixfr-stream", "ixfr_time_percent", {"records_changed": 100}
    answers = {"axfr": 10, "ixfr": 0} if by_whole_zone else {"axfr": 0, "ixfr": 10}
    ixfr = summary(10, bytes=1_000, messages=10, transfer_ns={"p50": 2_000_000}, **answers)
    axfr = summary(10, bytes=10_000, messages=40, transfer_ns={"p50": 10_000_000}, axfr=10, ixfr=0)
    trial.record.instruments |= {"ixfr": ixfr, "axfr": axfr}
    trial.record.metrics = {}
    return trial


def test_metrics_are_of_one_transfer(tmp_path: Path) -> None:
    metrics = ixfr_trial(tmp_path / "run").metrics
    assert (metrics["ixfr_time_percent"], metrics["ixfr_bytes_percent"], metrics["ixfr_whole_percent"]) == (20, 10, 0)
    assert (metrics["ixfr_bytes"], metrics["axfr_bytes"]) == (100, 1_000)
    assert (metrics["ixfr_messages"], metrics["axfr_messages"]) == (1, 4)
    assert (metrics["ixfr_time_ms"], metrics["axfr_time_ms"]) == (2, 10)


def test_other_trials_have_none_of_it(tmp_path: Path) -> None:
    trial = clean_trial(tmp_path / "run")
    assert all_metrics()["ixfr_time_percent"].compute(trial) is None


def scales_of_values(spec: object) -> set[str]:
    """The scales of the channels of a Vega-Lite specification that show ``value``."""
    found: set[str] = set()
    if isinstance(spec, dict):
        if spec.get("field") == "value":
            found.add((spec.get("scale") or {}).get("type", "linear"))
        return found.union(*map(scales_of_values, spec.values()))
    return found.union(*map(scales_of_values, spec)) if isinstance(spec, list) else found


@pytest.mark.parametrize("by_whole_zone", [False, True])
def test_the_chart_marks_who_answered_by_the_whole_zone(tmp_path: Path, by_whole_zone: bool) -> None:
    trial = ixfr_trial(tmp_path / "run", by_whole_zone=by_whole_zone)
    run = Run.open(tmp_path / "run")
    variant = trial.record.spec.variant
    run.manifest.variants = [variant]
    run.manifest.specs[variant.id] = trial.record.spec
    run.__dict__["trials"] = [trial]
    found = {}
    for chart in metric_by_axis.CHARTS:
        if chart.axis == "records_changed":
            marks = chart.marks(run)
            assert set(marks.filter("apart")["way"]) == ({"IXFR"} if by_whole_zone else set())
            found |= {(chart.id, way): value for way, value in marks.select("way", "value").iter_rows()}
            (drawn,) = chart.draw(run, [])
            assert scales_of_values(drawn.chart.to_dict()) == {"linear"}, "what is saved is read off as a length"
    assert found == {
        ("ixfr-by-size", "IXFR"): 100,
        ("ixfr-by-size", "AXFR"): 1_000,
        ("ixfr-time-by-size", "IXFR"): 2,
        ("ixfr-time-by-size", "AXFR"): 10,
    }
