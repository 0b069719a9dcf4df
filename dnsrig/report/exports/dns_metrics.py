"""Each trial with queries as DNS metrics (`DNS-OARC/dns-metrics`), JSON lines.

Source: its ``dns-metrics.schema.json``. Times are nanoseconds, of the wall clock where they are moments. A bucket of
latencies is ``[lowest, highest, queries]``, as in its example. The schema leaves open when the clock of a latency
starts, and what becomes of queries without an answer: ``additional_info`` says both.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dnsrig
from dnsrig.runs.latency import Histogram
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial

SCHEMA_VERSION = 20240530
UNITS_PER_S = 1_000_000_000
MS = 1_000_000
"""In ns."""


def write(run: Run, out: Path) -> list[Path]:
    paths = []
    for trial in run.trials:
        if trial.load.ran:
            path = out / f"{trial.key.variant}-{trial.key.repeat}.dns-metrics.jsonl"
            lines = (json.dumps(each) for each in _objects(run, trial))
            path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
            paths.append(path)
    return paths


def _objects(run: Run, trial: Trial) -> Iterator[dict[str, Any]]:
    same = {"runid": f"{run.manifest.run} {trial.key.variant} {trial.key.repeat}"}
    load, intervals = trial.load, trial.load_intervals
    yield same | {"type": "header"} | _header(trial)
    began_ns, latencies = _realtime(trial, load.start_ns), _by_start(trial)
    for row in intervals.iter_rows(named=True):
        counts = {"queries": row["sent"], "responses": row["answered"], "timeouts": row["timeouts"]}
        offset_ns = row["start_ns"] - load.start_ns
        ends = {"since": began_ns + offset_ns, "until": began_ns + offset_ns + row["duration_ns"]}
        found = latencies.get(round(offset_ns / MS))
        latency = {"response_latency": found} if found else {}
        yield same | {"type": "stats_periodic"} | ends | counts | latency
    yield same | {"type": "stats_sum"} | _sum(trial, began_ns)


def _header(trial: Trial) -> dict[str, Any]:
    load, intervals = trial.load, trial.load_intervals
    interval_s = intervals["duration_ns"][0] / UNITS_PER_S if intervals.height else load.span_s
    imported = trial.record.spec.imported
    found: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "generator": imported.tool if imported else "dnsrig",
        "generator_version": imported.version if imported else dnsrig.__version__,
        "time_units_per_sec": UNITS_PER_S,
        "stats_interval": interval_s,
    }
    if load.timeout_ns is not None:
        found["timeout"] = load.timeout_ns / UNITS_PER_S
    return found | {
        "additional_info": {
            "latency_counts_from": imported.basis if imported else "due",
            "unanswered_in_latency": imported is None,
        }
    }


def _sum(trial: Trial, began_ns: int) -> dict[str, Any]:
    load = trial.load
    found: dict[str, Any] = {
        "since": began_ns,
        "until": began_ns + max(0, load.end_ns - load.start_ns),
        "queries": load.sent,
        "responses": load.answered,
        "timeouts": load.timeouts,
        "response_rcodes": load.rcodes,
    }
    latency = trial.latency
    if latency is not None and load.has_latencies and (total := latency.total(latency.result)).total:
        found["response_latency"] = _latency(total)
    return found


def _by_start(trial: Trial) -> dict[int, dict[str, Any]]:
    """Start of an interval in ms, from the first -> its latencies: latency.hlog tells no more digits."""
    latency = trial.latency
    if latency is None or not trial.load.has_latencies:
        return {}
    found = ((round(each.offset_s * 1000), each.histogram) for each in latency.intervals(latency.result))
    return {start: _latency(histogram) for start, histogram in found if histogram.total}


def _latency(histogram: Histogram) -> dict[str, Any]:
    return {
        "avg": round(histogram.mean_ns or 0),
        "min": histogram.min_ns,
        "max": histogram.max_ns,
        "buckets": [list(bucket) for bucket in histogram.buckets()],
    }


def _realtime(trial: Trial, monotonic_ns: int) -> int:
    """By the nearest reading of both clocks."""
    nearest = min(trial.anchors, key=lambda anchor: abs(anchor.monotonic_ns - monotonic_ns), default=None)
    return monotonic_ns if nearest is None else monotonic_ns - nearest.monotonic_ns + nearest.realtime_ns
