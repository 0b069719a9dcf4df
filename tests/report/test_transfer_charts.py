"""The charts of transfers, on runs of which every number is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import synthetic
from drawn import as_it_was, words_as_they_were
from html_facts import read
from transfer_data import TransferPlan, build
from transfer_rows import Transfer, limited, pipelined, put, reused, zone
from trial_data import clean_trial

from dnsrig import report
from dnsrig.report import svg
from dnsrig.report.charts import _look, all_charts, metric_by_axis, percentiles, time_series
from dnsrig.report.charts import transfer_waterfall as waterfall
from dnsrig.rundir import Finding, Manifest, TrialRecord, read_json, write_json
from dnsrig.runs.run import Run
from dnsrig.runs.transfers import number
from dnsrig.runs.trial import Trial

NSD, POWERDNS = "nsd@system", "powerdns@system"
(BY_POLICY,) = (chart for chart in metric_by_axis.CHARTS if chart.id == "zones-by-policy")
(TCP,) = (chart for chart in time_series.CHARTS if chart.id == "tcp-over-time")
IDS = ("zones-by-policy", "transfer-waterfall", "tcp-over-time", "arrival-at-secondaries")
PLAN = TransferPlan(outcomes={(POWERDNS, "reused", "tcp"): "timeout", (NSD, "one", "xot"): "invalid"}, tcp_info_s=2)


@pytest.fixture(scope="module")
def pulled(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return Run.open(build(tmp_path_factory.mktemp("pulled") / "run", PLAN))


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    return clean_trial(tmp_path / "run", synthetic.Plan(servers=["knot@system"], repeats=1))


def drawn(module: Any, run: Run) -> str:
    drawings = module.explain(run, []) if hasattr(module, "explain") else module.draw(run, [])
    return "".join(svg.render(drawing.chart) for drawing in drawings)


def test_each_applies_only_where_there_is_something_to_draw(pulled: Run, run: Run, tmp_path: Path) -> None:
    charts = [next(chart for chart in all_charts() if chart.id == id_) for id_ in IDS]
    assert [chart.applies(pulled) for chart in charts] == [True, True, True, False]
    assert not any(chart.applies(run) for chart in charts), "nothing of the instrument's"
    short = Run.open(build(tmp_path / "run", TransferPlan(servers=[NSD], repeats=1, policies=["one"])))
    assert [chart.applies(short) for chart in charts] == [False, True, False, False]


def test_a_panel_a_server_and_a_colour_a_transport(pulled: Run) -> None:
    picture = read(drawn(BY_POLICY, pulled))
    for word in (NSD, POWERDNS, "one", "reused", "pipelined", "tcp", "xot", "log scale"):
        assert word in picture.text
    used = {value for _, name, value in picture.attributes if name in ("fill", "stroke")}
    assert {_look.COLOURS[0], _look.COLOURS[1]} <= used


def test_each_repeat_is_a_mark_and_what_is_invalid_does_not_count(pulled: Run) -> None:
    rows = BY_POLICY.marks(pulled).to_dicts()
    assert len(rows) == 2 * 3 * 2 * 3
    assert {row["outcome"] for row in rows if row["panel"] == NSD} == {"done", "invalid"}
    assert {row["outcome"] for row in rows if row["panel"] == POWERDNS} == {"done", "timeout"}
    slow = [row for row in rows if row["panel"] == POWERDNS and row["place"] == "reused"]
    assert all(20 < float(str(row["value"])) < 25 for row in slow), "42 ms a zone"


def test_a_waterfall_has_the_times_of_the_rows(trial: Trial) -> None:
    put(
        trial,
        [
            Transfer(zone(0), 0, 1, 3, outcome="cut"),
            Transfer(zone(0), 10, 11, 12, attempt=2),
            Transfer(zone(1), 5, None, None),
        ],
    )
    rows = waterfall.lines(trial, waterfall.sampled(trial))
    assert rows.select("line", "asked", "first", "last").rows() == [(0, 0, 1, 3), (0, 10, 11, 12), (1, 5, None, 5)]
    assert waterfall.first(trial).is_empty(), "the whole shows them"


def test_of_many_zones_some_are_drawn_evenly_and_the_first_all(trial: Trial) -> None:
    put(trial, reused(1000))
    sampled = waterfall.sampled(trial)
    assert waterfall.MOST_LINES / 2 < sampled.height <= waterfall.MOST_LINES
    assert sampled["zone"][0] == zone(0) and sampled["zone"][1] == zone(7)
    assert waterfall.first(trial)["zone"].to_list() == [zone(n) for n in range(waterfall.FIRST_ZONES)]


@pytest.mark.parametrize(
    "made",
    [
        limited(300, window=100, at_a_time=10),
        pipelined([8_000_000, *[300] * 300]),
        [Transfer(zone(0), 0, None, None, outcome="no-connection", connection=(1 << 32) - 1)],
        [Transfer(zone(n), n, n, n, connection=n % 3, outcome="timed-out") for n in range(50)],
        # Again and again, as beside queries: more attempts than a chart may have rows.
        [Transfer(zone(n % 100), n, n, n + 1) for n in range(8_000)],
        [Transfer(zone(0), n, n, n + 1) for n in range(6_000)],
    ],
)
def test_any_rows_can_be_drawn(trial: Trial, made: list[Transfer]) -> None:
    put(trial, made)
    picture = read(svg.render(_look.stack(waterfall._panels(trial))))
    assert "the instrument began" in picture.text and "NaN" not in " ".join(picture.values("d"))


def test_colours_are_connections_where_there_are_a_few(trial: Trial) -> None:
    put(trial, [Transfer(zone(n), n, n, n + 1, connection=n % 3) for n in range(30)])
    assert "connection 2" in read(svg.render(_look.stack(waterfall._panels(trial)))).text
    put(trial, limited(60, window=30, at_a_time=10))
    assert "servfail" in read(svg.render(_look.stack(waterfall._panels(trial)))).text


def test_where_a_trap_found_something_is_drawn_first(pulled: Run) -> None:
    nsd = next(
        v
        for v in pulled.manifest.variants
        if v.parameters == {"server": NSD, "zones": 100, "policy": "pipelined", "transport": "tcp"}
    )
    found = [
        Finding(trap="transfer-limit", verdict="found", variant=nsd.id, repeat=repeat, summary="")
        for repeat in (1, 2, 3)
    ]
    with_it, without = waterfall.explain(pulled, found), waterfall.explain(pulled, [])
    assert with_it[0].group == nsd.label and with_it[0].open and "Found: transfer-limit" in with_it[0].title
    assert without[0].group != nsd.label, "else the slowest"
    assert len(with_it) == waterfall.MOST_TRIALS


def test_tcp_over_time_shows_rates_of_what_was_received(pulled: Run) -> None:
    trial = next(t for t in pulled.trials if t.record.spec.variant.parameters["policy"] == "pipelined")
    rows = time_series.receiver(trial)
    assert rows["received_mb_per_s"].drop_nulls().is_between(0.9, 5.1).all(), (
        "0.5 to 2.5 of 0.2 MB in each tenth of a second"
    )
    assert set(rows["line"]) == {"connection 0"}
    text = read(drawn(TCP, pulled)).text
    assert "Received, MB/s" in text and "Retransmissions" not in text, "there were none"


def test_of_very_many_connections_some_are_drawn(pulled: Run) -> None:
    trial = next(t for t in pulled.trials if t.record.spec.variant.parameters["policy"] == "one")
    assert time_series.receiver(trial)["line"].n_unique() == time_series.MOST_CONNECTIONS


def test_what_outside_calls_itself_cannot_act(tmp_path: Path) -> None:
    """Zones and outcomes come from files; the page holds neither markup nor marks that turn writing round."""
    evil = "<script>alert(1)</script>\u202e{number:06}."
    plan = TransferPlan(
        servers=[POWERDNS], policies=["one", "reused"], transports=["tcp"], repeats=1, zones=60, zone_name=evil
    )
    directory = build(tmp_path / "run", plan)
    page = report.write_report(directory).path.read_text(encoding="utf-8")
    facts = read(page)
    assert facts.unclosed == [] and "\u202e" not in page and "alert(1)</script>" not in page
    assert "section-transfer-waterfall" in facts.values("id") and "delayed-ack" in facts.text


@pytest.mark.full
def test_a_large_run_makes_a_page_that_can_be_mailed(tmp_path: Path) -> None:
    plan = TransferPlan(servers=[NSD, POWERDNS], repeats=2, zones=2000, tcp_info_s=1)
    run = Run.open(build(tmp_path / "run", plan))
    assert sum(len(drawn(module, run)) for module in (BY_POLICY, waterfall, TCP)) < 1_000_000


def test_arrival_at_secondaries(tmp_path: Path) -> None:
    """Ten secondaries, one after another in steps of 10 ms."""
    directory = build(tmp_path / "run", TransferPlan(servers=[NSD], policies=["one"], transports=["tcp"], repeats=1))
    manifest = read_json(directory / "manifest.json", Manifest)
    manifest.procedure = "fan-out"
    write_json(directory / "manifest.json", manifest)
    (folder,) = [path.parent for path in directory.glob("trials/*/*/trial.json")]
    record = read_json(folder / "trial.json", TrialRecord)
    record.spec.procedure, record.spec.main_metric, record.spec.options = "fan-out", "last_done_s", {"secondaries": 10}
    record.spec.dataset.zones = 1
    write_json(folder / "trial.json", record)
    run = Run.open(directory)
    (trial,) = run.trials
    assert trial.measure is not None
    made = [Transfer(zone(0), 1, 2 + 10 * n, 5 + 10 * n, secondary=n, connection=n) for n in range(10)]
    put(trial, made, secondaries=10)
    trial.measure.start.monotonic_ns = int(number(trial.transfers["asked_ns"].min())) - 5
    assert percentiles.at_secondaries(trial).points() == [(10 * (n + 1), 4 + 10 * n) for n in range(10)]
    assert as_it_was("drawn/arrival", run, "arrival-at-secondaries")


def test_the_charts_are_as_they_were(pulled: Run) -> None:
    variant = pulled.manifest.variants[-1].id
    found = [Finding(trap="transfer-limit", verdict="found", variant=variant, repeat=n, summary="") for n in (1, 2, 3)]
    assert as_it_was("drawn/transfers", pulled, *IDS[:3], findings=found)


@pytest.mark.parametrize(("zones", "drawn"), [(150, 150), (151, 76), (300, 150), (301, 101)])
def test_up_to_150_zones_are_drawn(trial: Trial, zones: int, drawn: int) -> None:
    put(trial, reused(zones))
    assert waterfall.sampled(trial).height == drawn
    assert waterfall._y_title(trial) == ("zones" if zones == drawn else f"{drawn} of {zones} zones")


@pytest.mark.parametrize(("zones", "drawn"), [(40, 0), (41, 40)])
def test_the_beginning_is_drawn_again_if_there_is_more(trial: Trial, zones: int, drawn: int) -> None:
    put(trial, reused(zones))
    assert waterfall.first(trial).height == drawn


def test_of_endless_attempts_the_first_3000_are_drawn(trial: Trial) -> None:
    put(trial, [Transfer(zone(0), n, n, n + 1) for n in range(3_002)])
    rows = waterfall.lines(trial, waterfall.sampled(trial))
    assert (rows.height, rows["asked"][-1]) == (3_000, 2_999)


def test_a_short_transfer_is_as_long_as_can_be_seen(trial: Trial) -> None:
    """560 pixels show 0 to 1,000 ms: 1.6 of them are 2.857 ms."""
    put(trial, [Transfer(zone(0), 0, 100, 101), Transfer(zone(1), 0, 200, 210), Transfer(zone(2), 0, 500, 5_000)])
    rows = waterfall._fitted(waterfall.lines(trial, waterfall.sampled(trial)), (0.0, 1_000.0))
    assert rows["shown"].to_list() == pytest.approx([102.857, 210, 1_000], abs=0.001)
    assert rows["waited"].to_list() == pytest.approx([100, 200, 500])


@pytest.mark.parametrize(
    ("connections", "colours"),
    [
        (1, ["done"]),
        (2, ["connection 0", "connection 1"]),
        (6, [f"connection {n}" for n in range(6)]),
        (7, ["done"]),
    ],
)
def test_up_to_six_connections_have_a_colour_each(trial: Trial, connections: int, colours: list[str]) -> None:
    put(trial, [Transfer(zone(n), n, n, n + 1, connection=n) for n in range(connections)])
    assert sorted(set(waterfall.lines(trial, waterfall.sampled(trial))["colour"])) == colours


def test_arrivals_are_thinned_and_keep_their_ends() -> None:
    def of(arrived: int, count: int) -> list[tuple[float, float]]:
        return percentiles.Arrivals([float(n + 1) for n in range(arrived)], count).points()

    assert of(0, 4) == []
    assert of(2, 4) == [(25, 1), (50, 2)]
    assert of(60, 60)[58:] == [(100 * 59 / 60, 59), (100, 60)] and len(of(60, 60)) == 60
    assert [time for _, time in of(61, 61)] == [1, *range(2, 61, 2), 61]
    assert of(121, 242)[-1] == (50, 121)


def test_the_words_are_as_they_were(pulled: Run) -> None:
    assert words_as_they_were("drawn/transfers", pulled)


def test_the_legend_begins_with_what_is_done_and_goes_on_by_length(trial: Trial) -> None:
    outcomes = ("timed-out", "cut", "done")
    put(trial, [Transfer(zone(n), n, n, n + 1, outcome=outcome) for n, outcome in enumerate(outcomes)])
    layers = waterfall._panels(trial)[0].to_dict(validate=False)["layer"]
    assert layers[1]["encoding"]["color"]["scale"]["domain"] == ["done", "cut", "timed-out"]
