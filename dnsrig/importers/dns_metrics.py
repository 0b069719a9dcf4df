"""`DNS-OARC/dns-metrics`: JSON objects ``header``, ``event``, ``stats_periodic`` and ``stats_sum``, which the field
converges on, and the dialects of it that tools write.

Source: its ``dns-metrics.schema.json``. The dialects: kxdpgun of Knot DNS (``src/utils/kxdpgun/stats.c``, schema
20240530; an array of objects up to 3.4, lines later) has nanoseconds and no latency, and spells ``packets_recieved``;
DNS Shotgun (branch ``common_stream_data_format``, ``replay/dnssim/src/output/dnssim.c``) has milliseconds, by
``time_units_per_sec``, and latencies in buckets whose bounds are in the header: ``counts`` is one longer, and its last
are those from the last bound on. A query without an answer has the timeout as its latency there, and is in whichever
bucket contains it (``dnssim/common.c``, `_output_dnssim_close_request`).

When the clock of a tool starts, the format does not say: for kxdpgun, Shotgun and dnsperf their sources do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from dnsrig import foreign
from dnsrig.importers import (
    MS,
    Asked,
    Bucket,
    NotUnderstood,
    Result,
    S,
    Stretch,
    ends,
    number,
    of_all,
    seconds,
    unanswered,
)
from dnsrig.rundir import DNSRIG_LOAD, ClockBasis
from dnsrig.runs.load_result import Figures

FILES = "JSON lines of any tool that writes the format"
KNOWN: dict[str, ClockBasis] = {"kxdpgun": "sending", "shotgun": "sending", "dnsperf": "sending", "dnsrig": "due"}
"""Generators, and when their clock starts."""
BASES: dict[Any, ClockBasis] = {"due": "due", "sending": "sending"}
"""Words in the export of dnsrig for when its clock starts."""
OBJECT = ("runid", "subid", "threadid", "type")
HEADER = (
    *OBJECT,
    *("schema_version", "generator", "generator_version", "generator_params", "time_units_per_sec", "stats_interval"),
    *("timeout", "latency_bucket_boundaries", "additional_info"),
)
STATISTICS = (
    *OBJECT,
    *("since", "until", "queries", "ongoing", "responses", "timeouts", "interrupted", "unexpected", "discarded"),
    *("response_rcodes", "response_latency", "conn_active", "conn_info"),
)
LATENCY = ("avg", "min", "max", "stddev", "buckets", "counts")
FIELDS = {"header": HEADER, "stats_periodic": STATISTICS, "stats_sum": STATISTICS}
LEFT_OUT = ("event", "thread_summary")
"""Types of objects without a figure that their sums do not have."""
COUNTED_APART = {
    "interrupted": "were interrupted",
    "unexpected": "were not expected",
    "discarded": "were discarded, and not sent",
}
"""What the sums count beside queries and responses."""
NO_DISTRIBUTION = "There is no distribution of latency."
SPECIFIED_UNITS = S
"""A second of the schema's own times."""


def read(data: bytes, asked: Asked) -> Result:
    told = list(foreign.json_objects(data.decode(errors="replace")))
    header = next((each for each in told if each.get("type") == "header"), None)
    sums = [each for each in told if each.get("type") == "stats_sum"]
    if header is None or not sums:
        raise ValueError("it has no `header` and `stats_sum` of DNS metrics")
    generator, info = str(header["generator"]), header.get("additional_info") or {}
    basis = asked.basis or BASES.get(info.get("latency_counts_from")) or KNOWN.get(generator)
    if basis is None:
        raise ValueError(f"when {generator[:40]!r} starts its clock is not known: add --counted-from")
    units = number(header.get("time_units_per_sec", SPECIFIED_UNITS)) or SPECIFIED_UNITS
    reader = _Reader(basis, S // units or 1, header, asked.timeout_ns)
    found = reader.result([each for each in told if each.get("type") == "stats_periodic"], sums)
    return replace(found, missing=[*found.missing, *_not_understood(told)])


def _not_understood(told: Iterable[dict[str, Any]]) -> list[str]:
    unknown = NotUnderstood("field")
    for each in told:
        kind = each.get("type")
        if kind in FIELDS:
            unknown.fields(each, FIELDS[kind], f"{kind}.")
            unknown.fields(_latency(each), LATENCY, f"{kind}.response_latency.")
        elif kind not in LEFT_OUT:
            unknown.add(f"type {kind}")
    return unknown.sentences


class _Reader:
    """Reads one file: its units, and where its buckets lie."""

    def __init__(self, basis: ClockBasis, unit_ns: int, header: dict[str, Any], timeout_ns: int | None) -> None:
        """``timeout_ns``: the user's value, for a header without one."""
        self.basis, self.unit_ns, self.header = basis, unit_ns, header
        self.edges = [0, *(int(edge) for edge in header.get("latency_bucket_boundaries", []))]
        """The lower end of each bucket, in the file's units."""
        self.timeout_ns = self._timeout_ns() or timeout_ns

    def result(self, periodic: Sequence[Any], sums: Sequence[Any]) -> Result:
        """The result of all threads: each has a sum, and all count."""
        begun = min(number(each["since"]) for each in sums) * self.unit_ns
        ended = max(number(each["until"]) for each in sums) * self.unit_ns
        sent, answered = (sum(number(each.get(name, 0)) for each in sums) for name in ("queries", "responses"))
        whole = [each for each in sums if self._buckets(each)]
        # Periods have distributions of their own where the sum has one.
        parts = periodic if periodic and all(self._buckets(each) or not whole for each in periodic) else sums
        rcodes: dict[str, int] = {}
        for name, count in (pair for each in sums for pair in each.get("response_rcodes", {}).items()):
            rcodes[str(name)] = rcodes.get(str(name), 0) + number(count)
        return Result(
            version=str(self.header.get("generator_version", "")),
            tool=self._tool(),
            basis=self.basis,
            command=" ".join(map(str, self.header.get("generator_params", []))),
            resolution_ns=self.unit_ns if whole or any("avg" in _latency(each) for each in sums) else None,
            started_ns=begun,
            duration_s=max(0, ended - begun) / S,
            model="stream" if self.header["generator"] == "shotgun" else "rate",
            sent=sent,
            answered=answered,
            timeouts=max(0, sent - answered),
            rcodes=rcodes,
            timeout_ns=self.timeout_ns,
            told=self._told(sums, sent, answered),
            stretches=self._stretches(parts, begun, sent),
            missing=[*([] if whole else [NO_DISTRIBUTION]), *_counted_apart(sums)],
        )

    def _tool(self) -> str:
        """An export of dnsrig has what its own `load` measured."""
        generator = str(self.header["generator"])
        return DNSRIG_LOAD if generator == "dnsrig" else generator[:60]

    def _timeout_ns(self) -> int | None:
        """The schema says seconds, with a fraction; its example and Shotgun have whole numbers of the file's unit."""
        timeout = self.header.get("timeout")
        if timeout is None:
            return None
        in_units = number(timeout) * self.unit_ns
        whole = isinstance(timeout, int) and (in_units >= MS or self.header["generator"] == "shotgun")
        return in_units if whole else seconds(timeout)

    def _stretches(self, parts: Sequence[Any], begun_ns: int, sent: int) -> list[Stretch]:
        """Queries that are in no bucket of any part had no answer; of which part they are is not known."""
        buckets = [self._buckets(part) for part in parts]
        counted = sum(bucket.queries for of_part in buckets for bucket in of_part)
        if counted:
            buckets[-1] += unanswered(max(0, sent - counted), self.timeout_ns)
        return [self._stretch(part, begun_ns, found) for part, found in zip(parts, buckets, strict=True)]

    def _stretch(self, told: Any, begun_ns: int, buckets: list[Bucket]) -> Stretch:
        since, until = (number(told[name]) * self.unit_ns for name in ("since", "until"))
        sent, answered = number(told.get("queries", 0)), number(told.get("responses", 0))
        timeouts = number(told.get("timeouts", 0))
        tags = ends(self.basis, buckets)
        return Stretch((since - begun_ns) / S, max(0, until - since) / S, sent, answered, timeouts, tags)

    def _buckets(self, told: Any) -> list[Bucket]:
        latency = _latency(told)
        if counts := latency.get("counts"):
            if len(counts) != len(self.edges):
                raise ValueError(f"{len(counts)} counts, where the header's bounds want {len(self.edges)}")
            lost = max(0, number(told.get("queries", 0)) - number(told.get("responses", 0)))
            return self._between_edges([number(count) for count in counts], lost)
        return [
            Bucket(number(low) * self.unit_ns, number(high) * self.unit_ns, number(count))
            for low, high, count in latency.get("buckets", [])
        ]

    def _between_edges(self, counts: Sequence[int], lost: int) -> list[Bucket]:
        """``lost`` of the queries have the timeout as their latency, and none has more."""
        lows_ns = [edge * self.unit_ns for edge in self.edges]
        if self.timeout_ns is None and counts[-1]:
            raise ValueError("the end of its last bucket is not in the file: add --timeout, e.g. --timeout 5s")
        timeout_ns = lows_ns[-1] if self.timeout_ns is None else self.timeout_ns
        with_timeout = max(index for index, low_ns in enumerate(lows_ns) if low_ns <= timeout_ns)
        found = []
        for index, (low_ns, count) in enumerate(zip(lows_ns, counts, strict=True)):
            high_ns = lows_ns[index + 1] if index + 1 < len(lows_ns) else max(low_ns, timeout_ns)
            if index == with_timeout:
                given_up = min(lost, count)
                found += unanswered(given_up, timeout_ns)
                found.append(Bucket(low_ns, min(high_ns, timeout_ns), count - given_up))
            else:
                found.append(Bucket(low_ns, high_ns, count))
        return found

    def _told(self, sums: Sequence[Any], sent: int, answered: int) -> Figures:
        if len(sums) != 1:
            return {}
        latency = _latency(sums[0])
        names = {"mean": "avg", "min": "min", "max": "max"}
        told: Figures = {name: float(latency[key]) * self.unit_ns for name, key in names.items() if key in latency}
        if (self.header.get("additional_info") or {}).get("unanswered_in_latency"):
            return told
        return of_all(told, answered, max(0, sent - answered), self.timeout_ns)


def _counted_apart(sums: Sequence[Any]) -> list[str]:
    counts = {name: sum(number(each.get(name, 0)) for each in sums) for name in COUNTED_APART}
    return [f"{counts[name]:,} queries or responses {what}." for name, what in COUNTED_APART.items() if counts[name]]


def _latency(told: Any) -> dict[str, Any]:
    found: dict[str, Any] = told.get("response_latency", {})
    return found
