"""The charts of a replay, on a run of which every number is known."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from drawn import as_it_was
from load_data import LoadPlan, build

from dnsrig.report import svg
from dnsrig.report.charts import asked_and_answered, clients_by_latency
from dnsrig.report.charts._over_time import MOST_POINTS
from dnsrig.runs.row_files.load import ANSWERS, CLIENTS
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial

MS = 1_000_000
(asked,) = asked_and_answered.CHARTS


@pytest.fixture
def replayed(tmp_path: Path) -> Run:
    """Forty clients, of which the last ten wait 100 ms and the others 1 ms; two queries each."""
    run = Run.open(build(tmp_path / "run", LoadPlan(servers=["knot@system"], repeats=1, seconds=1)))
    (trial,) = run.trials
    trial.record.instruments["load"] |= {"model": "stream", "start_ns": 1_000 * MS}
    rows = [
        {"start_ns": 0, "client": n, "answered": 2, "unanswered": 0, "sum_ns": 2 * wait * MS, "max_ns": wait * MS}
        for n in range(40)
        for wait in [100 if n >= 30 else 1]
    ]
    trial.__dict__["clients"] = pl.DataFrame(rows, schema=CLIENTS.schema)
    bins = [{"time_ns": (1_000 + 10 * n) * MS, "sent": 5, "answered": 5 * (n != 1), "first_ns": 0, "last_ns": 0} for n in range(4)]  # fmt: skip
    trial.__dict__["answers"] = pl.DataFrame(bins, schema=ANSWERS.schema)
    return run


def only(run: Run) -> Trial:
    (trial,) = run.trials
    return trial


def test_a_load_is_no_replay(tmp_path: Path) -> None:
    run = Run.open(build(tmp_path / "run", LoadPlan(servers=["knot@system"], repeats=1, seconds=1)))
    assert not clients_by_latency.applies(run) and not asked.applies(run)


def test_each_client_counts_once(replayed: Run) -> None:
    curve = clients_by_latency.curve(only(replayed))
    assert curve["percent"][-1] == 100 and curve["mean_ms"].is_sorted()
    assert curve.filter(pl.col("mean_ms") < 2)["percent"].max() == 75
    assert clients_by_latency.applies(replayed)
    (drawing,) = clients_by_latency.draw(replayed)
    assert "clients, %" in svg.render(drawing.chart)


def test_what_was_not_answered_yet_waits(replayed: Run) -> None:
    trial = only(replayed)
    assert asked_and_answered.waiting(trial)["value"].to_list() == [0, 5, 5, 5]
    rates = asked_and_answered.rates(trial)
    assert rates.filter(line="answers")["value"].to_list() == [500.0, 0.0, 500.0, 500.0]
    assert asked.applies(replayed)
    assert "queries sent" in svg.render(asked.draw(replayed, [])[0].chart)


def test_a_flood_is_drawn_below_the_clients(replayed: Run) -> None:
    trial = only(replayed)
    assert len(next(iter(asked_and_answered.pictures(replayed, []))).panels) == 2
    begin_ns = trial.load.start_ns + 10 * MS
    trial.record.instruments["flood"] = {"model": "rate", "start_ns": begin_ns, "end_ns": begin_ns + 20 * MS, "sent": 8}
    *_, panel = next(iter(asked_and_answered.pictures(replayed, []))).panels
    assert panel.rows["value"].to_list() == [0, 400, 0, 0] and panel.rows["time_s"].to_list()[1:3] == [0.01, 0.03]
    assert "flood" in svg.render(asked.draw(replayed, [])[0].chart)


def test_a_long_replay_is_drawn_in_wider_stretches_without_gaps(replayed: Run) -> None:
    trial = only(replayed)
    rows = {"time_ns": [1_000 * MS, 61_000 * MS - 1], "sent": [7, 9], "answered": [7, 9]}
    trial.__dict__["answers"] = pl.DataFrame(rows | {"first_ns": [0, 0], "last_ns": [0, 0]}, schema=ANSWERS.schema)
    sent = asked_and_answered.rates(trial).filter(line="queries sent")
    assert sent.height == MOST_POINTS and sent["time_s"].diff().drop_nulls().round(6).n_unique() == 1
    assert sent["value"].sum() * 0.2 == pytest.approx(16)


def test_a_flood_that_took_no_time_is_not_drawn(replayed: Run) -> None:
    trial = only(replayed)
    begin_ns = trial.load.start_ns
    trial.record.instruments["flood"] = {"model": "rate", "start_ns": begin_ns, "end_ns": begin_ns, "sent": 1}
    assert len(next(iter(asked_and_answered.pictures(replayed, []))).panels) == 2


def test_the_charts_are_as_they_were(replayed: Run) -> None:
    begin_ns = only(replayed).load.start_ns + 10 * MS
    flooded = {"model": "rate", "start_ns": begin_ns, "end_ns": begin_ns + 20 * MS, "sent": 8}
    only(replayed).record.instruments["flood"] = flooded
    assert as_it_was("drawn/replay", replayed, "asked-and-answered", "clients-by-latency")


@pytest.mark.parametrize(("clients", "drawn"), [(19, False), (20, True)])
def test_fewer_than_twenty_clients_have_no_shares(replayed: Run, clients: int, drawn: bool) -> None:
    trial = only(replayed)
    trial.__dict__["clients"] = trial.clients.head(clients)
    assert clients_by_latency.applies(replayed) is drawn
