"""The chart of carriers, on runs of which every number is known."""

from __future__ import annotations

from pathlib import Path

import pytest
import synthetic
from drawn import as_it_was
from html_facts import read

from dnsrig.report import svg
from dnsrig.report.charts import _split, metric_by_axis
from dnsrig.report.charts._by_axis import Reference
from dnsrig.rundir import LinkSpec, PathSpec
from dnsrig.runs.run import Run

(CARRIERS,) = (chart for chart in metric_by_axis.CHARTS if chart.id == "replication")
PUBLISHED = "published: S3"
TIMES_S = {"axfr": 20.0, "replica": 4.0, "remote+tls": 30.0, "pipelined": 2.0}
WAY = PathSpec(rate_mbit=20, delay_ms=125, jitter_ms=50, loss_percent=0.1, limit_packets=5000)
CASES = {"many": ("tiny-zones", 2_000), "very many": ("tiny-zones", 100_000)}


@pytest.fixture
def far(tmp_path: Path) -> Run:
    """Four carriers × two sizes × two algorithms × two repeats over S3's link; bbr takes half as long, the second
    repeat a tenth longer."""
    axes = {"carrier": list(TIMES_S), "case": list(CASES), "congestion": ["cubic", "bbr"]}
    plan = synthetic.Plan(servers=["knot@forky"], zones=[100], repeats=2, extra_axes=axes, baseline={}, samples=False)
    run = Run.open(synthetic.build(tmp_path / "run", plan))
    run.manifest.experiment = run.manifest.procedure = "long-distance"
    for trial in run.trials:
        spec = trial.record.spec
        chosen = spec.variant.parameters
        carrier, _, tls = str(chosen["carrier"]).partition("+")
        kind, zones = CASES[str(chosen["case"])]
        spec.procedure, spec.options = "replication", {"carrier": carrier}
        spec.transfer.transport = "xot" if tls else "tcp"
        spec.dataset.kind, spec.dataset.zones = kind, zones
        spec.links = [LinkSpec(ends=("primary", "secondary"), kind="tun", forward=WAY, reverse=WAY)]
        time_s = TIMES_S[str(chosen["carrier"])] / (2 if chosen["congestion"] == "bbr" else 1) * (1 + spec.repeat / 10)
        trial.record.metrics["transfer_time_s"] = time_s
        run.manifest.specs[spec.variant.id] = spec
    return run


def only_many(run: Run) -> Run:
    run.manifest.variants = [v for v in run.manifest.variants if v.parameters["case"] == "many"]
    return run


def measured(run: Run, case: str = _split.ONLY, **wanted: str) -> list[float]:
    """In the panel of a case: the values drawn of what is as ``wanted``."""
    return CARRIERS.marks(run).filter(panel=case, **wanted)["value"].to_list()


def beside(run: Run, case: str = _split.ONLY) -> tuple[dict[str, float | None], list[Reference]]:
    """In the panel of a case: what was published, by carrier; and what is extrapolated."""
    found = [each for each in CARRIERS.beside(CARRIERS, run, CARRIERS.marks(run)) if each.panel == case]
    published = {str(each.place): each.value for each in found if each.group == PUBLISHED}
    return published, [each for each in found if each.origin is not None]


def test_it_applies_where_carriers_vary(far: Run, run: Run) -> None:
    assert CARRIERS.applies(far) and not CARRIERS.applies(run)


def test_measured_extrapolated_and_published_are_three_things(far: Run) -> None:
    run, case = only_many(far), "many"
    assert measured(run, case, place="axfr") == pytest.approx([22, 24, 11, 12])
    published, extrapolated = beside(run, case)
    assert published == {"axfr": 1259, "replica": 30, "remote+tls": 1869}
    assert [each.value for each in extrapolated if each.place == "axfr"] == pytest.approx([23 * 50, 11.5 * 50])
    assert len(measured(run, case, place="pipelined")) == 4, "which was not published"
    assert {each.place for each in extrapolated} == {"axfr", "replica", "remote+tls"}


def test_the_legend_explains_an_open_square_where_there_is_one(far: Run) -> None:
    shown = read(svg.render(CARRIERS.draw(only_many(far), [])[0].chart)).text
    assert "published: S3 (□: for its size)" in shown and "cubic (" not in shown


def test_nothing_is_extrapolated_that_was_measured(far: Run) -> None:
    far.manifest.variants = [
        v for v in far.manifest.variants if v.parameters["case"] == "many" or v.parameters["carrier"] == "replica"
    ]
    assert beside(far, "very many") == ({"replica": 30}, [])
    assert {each.place for each in beside(far, "many")[1]} == {"axfr", "remote+tls"}, "replica has its whole size"


def test_over_another_link_or_with_other_servers_nothing_published_stands_beside(far: Run) -> None:
    for spec in far.manifest.specs.values():
        if spec.variant.parameters["carrier"] == "axfr":
            spec.links = [spec.links[0].model_copy(update={"forward": WAY.model_copy(update={"rate_mbit": 50})})]
        server = spec.hosts["secondary"].server
        if spec.variant.parameters["carrier"] == "replica" and server is not None:
            server.kind = "powerdns"
    published, extrapolated = beside(only_many(far), "many")
    assert set(published) == {each.place for each in extrapolated} == {"remote+tls"}


def test_what_hit_its_limit_is_a_bound_and_not_extrapolated(far: Run) -> None:
    for trial in far.trials:
        if trial.record.spec.variant.parameters["carrier"] == "axfr":
            trial.record.outcome = "timeout"
    marks = CARRIERS.marks(only_many(far)).filter(place="axfr")
    assert set(marks["value"]) == {60.0} and marks["at_least"].all() and marks["counts"].all()
    assert "axfr" not in {each.place for each in beside(far, "many")[1]}


def test_what_is_invalid_is_in_no_bar_and_what_failed_has_no_mark(far: Run) -> None:
    for trial in far.trials:
        carrier = trial.record.spec.variant.parameters["carrier"]
        trial.record.outcome = {"axfr": "invalid", "replica": "server-failed"}.get(str(carrier), trial.record.outcome)  # type: ignore[assignment]
    marks = CARRIERS.marks(far)
    assert marks.filter(panel="many", place="axfr", outcome="invalid").height == 4
    assert set(marks.filter("counts")["place"]) == {"remote+tls", "pipelined"}
    assert not measured(far, "many", place="replica")


def test_all_of_it_is_drawn(far: Run) -> None:
    far.manifest.variants = [
        v for v in far.manifest.variants if v.parameters["case"] == "many" or v.parameters["carrier"] == "replica"
    ]
    (drawing,) = CARRIERS.draw(far, [])
    found = read(svg.render(drawing.chart))
    for word in (*TIMES_S, *CASES, "cubic", "bbr", PUBLISHED):
        assert word in found.text
    assert "NaN" not in " ".join(found.values("d"))
    assert "S3 published" in CARRIERS.caption(far)


def test_the_chart_is_as_it_was(far: Run) -> None:
    assert as_it_was("drawn/replication", far, "replication")
