"""The chart of carriers, on runs of which every number is known."""

from __future__ import annotations

from pathlib import Path

import pytest
import synthetic
from html_facts import read

from dnsrig.analysis.read import Run
from dnsrig.report import svg
from dnsrig.report.charts import all_charts, carriers
from dnsrig.rundir import LinkSpec, PathSpec

TIMES_S = {"axfr": 20.0, "replica": 4.0, "remote+tls": 30.0, "pipelined": 2.0}
WAY = PathSpec(rate_mbit=20, delay_ms=125, jitter_ms=50, loss_percent=0.1, limit_packets=5000)
CASES = {"many": ("tiny-zones", 2_000), "very many": ("tiny-zones", 100_000)}


@pytest.fixture
def far(tmp_path: Path) -> Run:
    """Four carriers × two sizes × two algorithms × two repeats over S3's link; bbr takes half as long, the second repeat a tenth longer."""
    axes = {"carrier": list(TIMES_S), "case": list(CASES), "congestion": ["cubic", "bbr"]}
    plan = synthetic.Plan(servers=["knot@forky"], zones=[100], repeats=2, extra_axes=axes, baseline={}, samples=False)
    run = Run.open(synthetic.build(tmp_path / "run", plan))
    run.manifest.experiment = run.manifest.procedure = "long-distance"
    for trial in run.trials:
        spec = trial.record.spec
        chosen = spec.variant.parameters
        carrier, _, tls = str(chosen["carrier"]).partition("+")
        kind, zones = CASES[str(chosen["case"])]
        spec.procedure, spec.options = "carriers", {"carrier": carrier}
        spec.transfer.transport = "xot" if tls else "tcp"
        spec.dataset.kind, spec.dataset.zones = kind, zones
        spec.links = [LinkSpec(ends=("primary", "secondary"), kind="tun", there=WAY, back=WAY)]
        time_s = TIMES_S[str(chosen["carrier"])] / (2 if chosen["congestion"] == "bbr" else 1) * (1 + spec.repeat / 10)
        trial.record.metrics["transfer_time_s"] = time_s
        run.manifest.specs[spec.variant.id] = spec
    return run


def only_many(run: Run) -> Run:
    run.manifest.variants = [v for v in run.manifest.variants if v.parameters["case"] == "many"]
    return run


def panel(run: Run, case: str) -> tuple[list[carriers.Row], list[carriers.Row], list[carriers.Row]]:
    return carriers._rows(run, [v for v in run.manifest.variants if v.parameters["case"] == case])


def of(rows: list[carriers.Row], **wanted: str) -> list[float]:
    return [float(str(r["value"])) for r in rows if all(r[name] == value for name, value in wanted.items())]


def test_it_applies_where_carriers_vary(far: Run, run: Run) -> None:
    chart = next(chart for chart in all_charts() if chart.id == "carriers")
    assert chart.applies(far) and not chart.applies(run)


def test_measured_extrapolated_and_published_are_three_things(far: Run) -> None:
    points, spans, leads = panel(only_many(far), "many")
    assert of(points, row="axfr", kind="one repeat") == pytest.approx([22, 24, 11, 12])
    assert of(points, row="axfr", kind=carriers.PUBLISHED) == [1259]
    assert of(points, row="axfr", kind=carriers.EXTRAPOLATED) == pytest.approx([23 * 50, 11.5 * 50])
    assert of(points, row="remote+tls", kind=carriers.PUBLISHED) == [1869]
    assert len(of(points, row="pipelined")) == 4, "which was not published"
    assert max(float(str(span["high"])) for span in spans) == pytest.approx(36), "no extrapolation is in a bar"
    assert {lead["row"] for lead in leads} == {"axfr", "replica", "remote+tls"}


def test_nothing_is_extrapolated_that_was_measured(far: Run) -> None:
    far.manifest.variants = [
        v for v in far.manifest.variants if v.parameters["case"] == "many" or v.parameters["carrier"] == "replica"
    ]
    points, _, leads = panel(far, "very many")
    assert not of(points, kind=carriers.EXTRAPOLATED) and not leads
    assert of(points, row="replica", kind=carriers.PUBLISHED) == [30]
    points, _, leads = panel(far, "many")
    assert {lead["row"] for lead in leads} == {"axfr", "remote+tls"}, "replica has its whole size in the other panel"


def test_over_another_link_or_with_other_servers_nothing_published_stands_beside(far: Run) -> None:
    for spec in far.manifest.specs.values():
        if spec.variant.parameters["carrier"] == "axfr":
            spec.links = [spec.links[0].model_copy(update={"there": WAY.model_copy(update={"rate_mbit": 50})})]
        server = spec.hosts["secondary"].server
        if spec.variant.parameters["carrier"] == "replica" and server is not None:
            server.kind = "powerdns"
    points, _, _ = panel(only_many(far), "many")
    assert {point["row"] for point in points if point["kind"] in (carriers.PUBLISHED, carriers.EXTRAPOLATED)} == {
        "remote+tls"
    }


def test_what_hit_its_limit_is_a_bound_and_not_extrapolated(far: Run) -> None:
    for trial in far.trials:
        if trial.record.spec.variant.parameters["carrier"] == "axfr":
            trial.record.outcome = "timeout"
    points, _, _ = panel(only_many(far), "many")
    assert set(of(points, row="axfr", kind="≥: at its limit")) == {60.0}
    assert not of(points, row="axfr", kind=carriers.EXTRAPOLATED)


def test_what_is_invalid_is_in_no_bar_and_what_failed_has_no_mark(far: Run) -> None:
    for trial in far.trials:
        carrier = trial.record.spec.variant.parameters["carrier"]
        trial.record.outcome = {"axfr": "invalid", "replica": "server-failed"}.get(str(carrier), trial.record.outcome)  # type: ignore[assignment]
    points, spans, _ = panel(far, "many")
    assert len(of(points, row="axfr", kind="invalid")) == 4
    assert {span["row"] for span in spans} == {"remote+tls", "pipelined"}
    assert not of(points, row="replica", kind="one repeat")


def test_all_of_it_is_drawn(far: Run) -> None:
    far.manifest.variants = [
        v for v in far.manifest.variants if v.parameters["case"] == "many" or v.parameters["carrier"] == "replica"
    ]
    (drawing,) = carriers.draw(far)
    found = read(svg.render(drawing.chart))
    for word in (*TIMES_S, *CASES, "cubic", "bbr", carriers.PUBLISHED, carriers.EXTRAPOLATED):
        assert word in found.text
    assert "NaN" not in " ".join(found.values("d"))
    assert "S3 published" in carriers.caption(far)
