"""Writes what `dnsrig-engine load` leaves in a run, for tests: nothing in it was measured."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import NormalDist
from typing import Any

import polars as pl
import synthetic
from hdrh.histogram import HdrHistogram

from dnsrig.rundir import Manifest, Scalar, TrialRecord, read_json, trial_dir, write_json
from dnsrig.runs.latency import Histogram, Latency

START_S = 1_735_732_800.25
SECOND = 1_000_000_000
TIMEOUT_NS = SECOND
LAG_NS = 2_000
"""Of every query."""
POINTS = 500
"""Of the made-up law of latency; each stands for as many queries as it takes."""

Counted = dict[int, int]
"""Value in ns -> how many."""

KEYS = {"p50": 50, "p90": 90, "p99": 99, "p99_9": 99.9, "p99_99": 99.99}


@dataclass
class LoadPlan:
    """What the synthetic run of load looks like: lognormal latencies, and whatever else is asked for."""

    servers: Sequence[str] = ("bind@system", "knot@system", "echo@engine")
    repeats: int = 3
    seconds: int = 10
    rate_qps: int = 5_000
    median_us: dict[str, float] = field(
        default_factory=lambda: {"bind@system": 180.0, "knot@system": 90.0, "echo@engine": 30.0}
    )
    slow_seconds: dict[str, Sequence[int]] = field(default_factory=dict)
    """Server -> the seconds in which every tenth query takes 40 to 200 ms."""
    timeouts: dict[str, int] = field(default_factory=dict)
    """Server -> queries of each second that were never answered."""
    late_us: dict[str, int] = field(default_factory=dict)
    """Server -> how late the instrument was with each query. With any, both ends of latencies are told."""
    invalid: Sequence[str] = ()
    """Servers of which all trials are invalid."""
    extra_axes: dict[str, list[Scalar]] = field(default_factory=dict)
    ramp: bool = False
    """Of capacity: steps, and no distribution."""
    capacity_qps: dict[str, float] = field(
        default_factory=lambda: {"bind@system": 40_000.0, "knot@system": 90_000.0, "echo@engine": 200_000.0}
    )


def build(directory: Path, plan: LoadPlan | None = None) -> Path:
    """Write the run that ``plan`` describes to ``directory`` and return it."""
    plan = plan or LoadPlan()
    synthetic.build(
        directory,
        synthetic.Plan(
            servers=plan.servers, zones=[100], repeats=plan.repeats, samples=False, extra_axes=plan.extra_axes
        ),
    )
    manifest = read_json(directory / "manifest.json", Manifest)
    procedure, metric = ("capacity", "capacity_qps") if plan.ramp else ("latency", "p99_ms")
    manifest.procedure, manifest.question = procedure, "How long do answers take?"
    for spec in manifest.specs.values():
        spec.procedure, spec.main_metric = procedure, metric
    write_json(directory / "manifest.json", manifest)
    for key in manifest.order:
        _rewrite(trial_dir(directory, key.variant, key.repeat), plan)
    return directory


def _rewrite(folder: Path, plan: LoadPlan) -> None:
    record = read_json(folder / "trial.json", TrialRecord)
    record.spec.procedure, record.spec.main_metric = (
        ("capacity", "capacity_qps") if plan.ramp else ("latency", "p99_ms")
    )
    (folder / "zones.arrow").unlink()
    server = str(record.spec.variant.parameters["server"])
    noise = random.Random(f"{record.spec.variant.id}/{record.spec.repeat}")
    if plan.ramp:
        record.instruments = {"load": ramp_summary(plan.capacity_qps[server] * noise.uniform(0.95, 1.05), noise)}
    else:
        intervals = [_second(plan, server, second, noise) for second in range(plan.seconds)]
        write_hlog(folder / "latency.hlog", intervals)
        record.instruments = {"load": summary(folder / "latency.hlog", asked_qps=plan.rate_qps)}
        write_rows(folder, record.instruments["load"])
    record.metrics = {}
    if server in plan.invalid:
        record.outcome, record.reason = "invalid", "the instrument was late"
    write_json(folder / "trial.json", record)


def _second(plan: LoadPlan, server: str, second: int, noise: random.Random) -> dict[str, Counted]:
    """The counts of one second by tag."""
    law = NormalDist(math.log(plan.median_us[server] * noise.uniform(0.95, 1.05)), 0.5)
    lost = plan.timeouts.get(server, 0)
    each = max(1, (plan.rate_qps - lost) // POINTS)
    sent: Counter[int] = Counter()
    for point in range(POINTS):
        slow = second in plan.slow_seconds.get(server, ()) and point % 10 == 0
        us = 40_000 + 320 * point if slow else math.exp(law.inv_cdf((point + 0.5) / POINTS))
        sent[int(1e3 * us)] += each
    sent[int(2e7 * noise.uniform(0.1, 1))] += 1  # one a second that is far slower
    if lost:
        sent[TIMEOUT_NS] += lost
    lag_ns = 1_000 * plan.late_us[server] if server in plan.late_us else LAG_NS
    due = {value + lag_ns: count for value, count in sent.items()}
    tags = {"due": due, "sent": dict(sent), "lag": {lag_ns: sent.total()}}
    return tags | {"lower": dict(sent)} if plan.late_us else tags


def summary(hlog: Path, asked_qps: float | None = None, **changes: Any) -> dict[str, Any]:
    """The summary event that goes with a log."""
    log = Latency(hlog, TIMEOUT_NS)
    seconds = sum(interval.duration_s for interval in log.intervals("due"))
    sent, twin = log.total("due").total, log.total("sent")
    timeouts = sum(count for value, count in zip(twin.values_ns, twin.counts) if value >= TIMEOUT_NS)
    start_ns = synthetic.EXEC_NS
    return {
        "event": "summary",
        "transport": "udp",
        "model": "rate",
        "asked_qps": asked_qps,
        "outstanding": None,
        "start_ns": start_ns,
        "end_ns": start_ns + int(seconds * SECOND),
        "duration_s": seconds,
        "interval_s": 1.0,
        "timeout_ns": TIMEOUT_NS,
        "clients": 16,
        "threads": 1,
        "due": sent,
        "sent": sent,
        "unsent": 0,
        "answered": sent - timeouts,
        "timeouts": timeouts,
        "lost": {"closed": 0, "reset": 0, "refused": 0, "tls": 0},
        **dict.fromkeys(("late", "duplicates", "unexpected", "mismatched", "malformed", "truncated"), 0),
        "rcodes": {"NOERROR": sent - timeouts},
        "latency_ns": _figures(log.total("due")),
        "sent_latency_ns": _figures(twin),
        "lag_ns": _figures(log.total("lag")),
        **({"lower_latency_ns": _figures(log.total("lower"))} if "lower" in log.tags else {}),
        "busy_share": 0.31,
        "cpu_ns": 3 * SECOND,
    } | changes


def ramp_summary(capacity_qps: float, noise: random.Random) -> dict[str, Any]:
    """Doubling to beyond the capacity, then by halves; latencies grow as in a queue of one server."""
    rates = [capacity_qps * share for share in (0.06, 0.12, 0.25, 0.5, 1.1, 0.8, 0.95, 1.02, 0.98)]
    steps = []
    for number, rate in enumerate(rates):
        share = rate / capacity_qps
        for repeat in range(2):
            p50 = 60e3 / max(0.02, 1 - share) * noise.uniform(0.9, 1.1) if share < 1 else 40e6
            steps.append(
                {
                    "repeat": repeat,
                    "rate_qps": rate,
                    "sent_qps": rate,
                    "answered_qps": min(rate, capacity_qps),
                    "loss_share": max(0.0, 1 - 1 / share),
                    "p50_ns": int(p50),
                    "p99_ns": int(4 * p50),
                    "p99_9_ns": int(9 * p50) if number != 4 else TIMEOUT_NS,
                    "lag_p99_ns": 900,
                    "busy_share": 0.4,
                    "holds": share <= 1,
                }
            )
    common = {"event": "summary", "model": "ramp", "timeout_ns": TIMEOUT_NS, "transport": "udp"}
    return common | {"steps": steps, "capacity_qps": 0.98 * capacity_qps, "sent": 1, "timeouts": 0, "lost": {}}


def _figures(found: Histogram) -> dict[str, float | None]:
    ranks = {key: found.percentile(percent) for key, percent in KEYS.items()}
    return {"mean": found.mean_ns, "min": found.min_ns, **ranks, "max": found.max_ns}


def write_rows(folder: Path, load: dict[str, Any], clients: int = 16) -> None:
    """intervals.arrow and clients.arrow, with everything spread evenly."""
    seconds = int(load["duration_s"])
    starts = [load["start_ns"] + second * SECOND for second in range(seconds)]
    count = {name: [load[name] // seconds] * seconds for name in ("due", "sent", "answered", "timeouts")}
    nothing = dict.fromkeys(("lost", "late", "truncated"), [0] * seconds)
    rows = {"start_ns": starts, "duration_ns": [SECOND] * seconds, **count, **nothing}
    pl.DataFrame(rows | {"busy_ns": [SECOND // 3] * seconds}).write_ipc_stream(folder / "intervals.arrow")
    each = load["answered"] // seconds // clients
    of_clients = [(start, client, each, 0, each * 100_000, 900_000) for start in starts for client in range(clients)]
    columns = ["start_ns", "client", "answered", "unanswered", "sum_ns", "max_ns"]
    pl.DataFrame(of_clients, schema=columns, orient="row").write_ipc_stream(folder / "clients.arrow")


def kept(value: int) -> int:
    """The highest value that is counted with ``value``, as HdrHistogram defines it for three digits."""
    step = 1
    while value >= 2048 * step:
        step *= 2
    return value // step * step + step - 1


def write_hlog(path: Path, intervals: Iterable[dict[str, Counted]], duration_s: float = 1.0) -> None:
    """latency.hlog: of each interval the counts by tag."""
    lines = ["#dnsrig load", f"#[StartTime: {START_S:.3f} (seconds since epoch)]"]
    for number, by_tag in enumerate(intervals):
        start_s = number * duration_s
        lines += [f"Tag={tag},{start_s:.3f},{duration_s:.3f},{_encoded(counted)}" for tag, counted in by_tag.items()]
    path.write_text("\n".join(lines) + "\n")


def _encoded(counted: Counted) -> str:
    """The largest value, and the payload."""
    largest = max(counted, default=0)
    histogram = HdrHistogram(1, max(2, largest), 3)
    for value, count in counted.items():
        histogram.record_value(value, count)
    return f"{float(largest):.3f},{histogram.encode().decode('ascii')}"
