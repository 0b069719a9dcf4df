"""`DNS-OARC/dns-metrics`: JSON objects ``header``, ``event``, ``stats_periodic`` and ``stats_sum``, which the field
converges on, and the dialects of it that tools write.

Source: its ``dns-metrics.schema.json``. The dialects: kxdpgun of Knot DNS (``src/utils/kxdpgun/stats.c``, schema
20240530; an array of objects up to 3.4, lines later) has nanoseconds and no latency, and spells ``packets_recieved``;
DNS Shotgun (branch ``common_stream_data_format``, ``replay/dnssim/src/output/dnssim.c``) has milliseconds, by
``time_units_per_sec``, and latencies in buckets whose bounds are in the header: ``counts`` is one longer, and its last
are the queries without an answer in time.

When the clock of a tool starts, the format does not say: for kxdpgun and Shotgun their sources do.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from dnsrig.importers import MOST_STRETCHES, Asked, Bucket, Result, S, Stretch, ends, number, seconds
from dnsrig.rundir import ClockBasis

FILES = "JSON lines of any tool that writes the format"
KNOWN: dict[str, ClockBasis] = {"kxdpgun": "sending", "shotgun": "sending", "dnsrig": "due"}
"""Generators, and when their clock starts."""
SPECIFIED_UNITS = S
"""A second of the schema's own times."""


def read(data: bytes, asked: Asked) -> Result:
    objects = list(_objects(data.decode(errors="replace")))
    header = next((each for each in objects if each.get("type") == "header"), None)
    sums = [each for each in objects if each.get("type") == "stats_sum"]
    if header is None or not sums:
        raise ValueError("it has no `header` and `stats_sum` of DNS metrics")
    generator = str(header["generator"])
    basis = asked.basis or KNOWN.get(generator)
    if basis is None:
        raise ValueError(f"when {generator[:40]!r} starts its clock is not known: say it with --counted-from")
    units = number(header.get("time_units_per_sec", SPECIFIED_UNITS)) or SPECIFIED_UNITS
    reader = _Reader(basis, S // units or 1, [int(edge) for edge in header.get("latency_bucket_boundaries", [])])
    return reader.result(header, [each for each in objects if each.get("type") == "stats_periodic"], sums)


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """One after the other, whether in an array, as lines, or over several lines."""
    decoder, at = json.JSONDecoder(), 0
    for _ in range(MOST_STRETCHES):
        while at < len(text) and text[at] in " \t\r\n,[]":
            at += 1
        if at == len(text):
            return
        found, at = decoder.raw_decode(text, at)
        if not isinstance(found, dict):
            raise ValueError("a value that is no object")
        yield found
    raise ValueError(f"more than {MOST_STRETCHES:,} objects")


class _Reader:
    """Of one file: its units, and where its buckets lie."""

    def __init__(self, basis: ClockBasis, unit_ns: int, edges: Sequence[int]) -> None:
        """``edges``: upper bounds of buckets, in the file's units."""
        self.basis, self.unit_ns = basis, unit_ns
        self.edges = [0, *edges]

    def result(self, header: Any, periodic: Sequence[Any], sums: Sequence[Any]) -> Result:
        """Of several threads each has a sum, and all count."""
        begun = min(number(each["since"]) for each in sums) * self.unit_ns
        ended = max(number(each["until"]) for each in sums) * self.unit_ns
        sent, answered = (sum(number(each.get(name, 0)) for each in sums) for name in ("queries", "responses"))
        whole = [each for each in sums if self._buckets(each)]
        # Periods have distributions of their own where the sum has one.
        parts = periodic if periodic and all(self._buckets(each) or not whole for each in periodic) else sums
        timeout_ns = self._timeout_ns(header)
        rcodes: dict[str, int] = {}
        for name, count in (pair for each in sums for pair in each.get("response_rcodes", {}).items()):
            rcodes[str(name)] = rcodes.get(str(name), 0) + number(count)
        return Result(
            version=str(header.get("generator_version", "")),
            basis=self.basis,
            command=" ".join(map(str, header.get("generator_params", []))),
            resolution_ns=self.unit_ns if whole or any("avg" in _latency(each) for each in sums) else None,
            started_ns=begun,
            duration_s=max(0, ended - begun) / S,
            model="stream" if header["generator"] == "shotgun" else "rate",
            sent=sent,
            answered=answered,
            timeouts=max(0, sent - answered),
            rcodes=rcodes,
            timeout_ns=timeout_ns,
            told=self._told(sums),
            stretches=[self._stretch(each, begun) for each in parts],
            missing=self._missing(bool(whole), max(0, sent - answered)),
        )

    def _missing(self, has_latencies: bool, lost: int) -> list[str]:
        if not has_latencies:
            return ["There is no distribution of latency."]
        if lost and len(self.edges) == 1:
            return [f"{lost:,} queries without an answer are not among its latencies."]
        return []

    def _timeout_ns(self, header: Any) -> int | None:
        """The schema says seconds, with a fraction; its example and Shotgun have whole numbers of the file's unit."""
        timeout = header.get("timeout")
        if timeout is None:
            return None
        return number(timeout) * self.unit_ns if isinstance(timeout, int) else seconds(timeout)

    def _stretch(self, told: Any, begun_ns: int) -> Stretch:
        since, until = (number(told[name]) * self.unit_ns for name in ("since", "until"))
        sent, answered = number(told.get("queries", 0)), number(told.get("responses", 0))
        timeouts = number(told.get("timeouts", 0))
        tags = ends(self.basis, self._buckets(told))
        return Stretch((since - begun_ns) / S, max(0, until - since) / S, sent, answered, timeouts, tags)

    def _buckets(self, told: Any) -> list[Bucket]:
        latency = _latency(told)
        if counts := latency.get("counts"):
            if len(counts) != len(self.edges):
                raise ValueError(f"{len(counts)} counts, where the header's bounds want {len(self.edges)}")
            bounds = [*pairwise(self.edges), (self.edges[-1], self.edges[-1])]
            return [
                Bucket(low * self.unit_ns, high * self.unit_ns, number(count))
                for (low, high), count in zip(bounds, counts)
            ]
        return [
            Bucket(number(low) * self.unit_ns, number(high) * self.unit_ns, number(count))
            for low, high, count in latency.get("buckets", [])
        ]

    def _told(self, sums: Sequence[Any]) -> dict[str, float | None]:
        if len(sums) != 1:
            return {}
        latency = _latency(sums[0])
        names = {"mean": "avg", "min": "min", "max": "max"}
        return {name: float(latency[key]) * self.unit_ns for name, key in names.items() if key in latency}


def _latency(told: Any) -> dict[str, Any]:
    found: dict[str, Any] = told.get("response_latency", {})
    return found
