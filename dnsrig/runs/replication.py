"""What came over the link between two sites, by any carrier, and the generations of a zone that a far secondary
followed, with the bytes that each took. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from dnsrig.rundir import TrialSpec
from dnsrig.runs.trial import Trial

DATABASE, REPLICA = "database", "replica"
"""Hosts of the procedure `replication`, and the names under which it records what it saw of them."""
LAST_WORDS_SHARE, LAST_WORDS_BYTES, LAST_WORDS_SHARE_MOST = 0.001, 2_000, 0.1
"""What may be missing when all was received: a thousandth, or 2,000 bytes if that is more, but no more than a tenth: a
protocol's last words, and its signs of life, which never end."""


def far_link(spec: TrialSpec) -> tuple[str, str] | None:
    """The host at the near site and that at the far one; None where no option ``carrier`` says what brings zones from
    one to the other."""
    if "carrier" not in spec.options:
        return None
    for name, host in spec.hosts.items():
        if host.database is not None and host.database_far:
            return host.database, name
    return ("primary", spec.subject) if "primary" in spec.hosts else None


def arrived(trial: Trial) -> pl.DataFrame:
    """Bytes that had come to the far site, during `measure`: columns time_ns, bytes (since its beginning), sorted by
    time.

    As the emulated link delivered them, every 100 ms, the last of which may end after `measure`; else as the far
    interface counted them, every 200 ms. Empty without either.
    """
    empty = pl.DataFrame(schema={"time_ns": pl.Int64, "bytes": pl.Int64})
    ends, phase = far_link(trial.record.spec), trial.measure
    if ends is None or phase is None:
        return empty
    near, far = ends
    for link in trial.record.spec.links:
        if set(link.ends) == {near, far} and not (seen := trial.links().get(link.name, empty)).is_empty():
            direction = pl.col("direction") == ("forward" if link.ends[0] == near else "reverse")
            rows = seen.filter(direction, pl.col("time_ns") >= phase.start.monotonic_ns).sort("time_ns")
            # A row tells of the interval before it: what came last in `measure` is in the first row after it.
            until = pl.col("time_ns").shift(1, fill_value=phase.start.monotonic_ns) < phase.end.monotonic_ns
            nbytes = pl.col("delivered_bytes").cast(pl.Int64).cum_sum().alias("bytes")
            return rows.filter(until).select("time_ns", nbytes)
    rows = trial.during_measure(far, trial.record.spec.interface(far, near), "rx_bytes")
    return empty if rows.is_empty() else rows.select("time_ns", bytes=pl.col("value") - rows["value"][0])


def received_ns(trial: Trial) -> int | None:
    """When all bytes had come but a protocol's last words; None where nothing is known of them."""
    rows = arrived(trial)
    whole = 0 if rows.is_empty() else int(rows["bytes"][-1])
    if not whole:
        return None
    last_words = min(max(LAST_WORDS_SHARE * whole, LAST_WORDS_BYTES), LAST_WORDS_SHARE_MOST * whole)
    return int(rows.filter(pl.col("bytes") >= whole - last_words)["time_ns"][0])


INSTRUMENT = "cycle"
"""Name under which the record has what was seen of the generations."""
WHOLE_SHARE = 0.9
"""Share of the bytes of the whole zone; a transfer of more was no difference, or one that saved nothing."""


@dataclass(frozen=True)
class Generation:
    """One generation; times are CLOCK_MONOTONIC in ns, None where it was not seen until the end."""

    serial: int
    told_ns: int
    published_ns: int | None
    """When the primary first answered with it or a later one."""
    served_ns: int | None
    """When the secondary did."""
    served_serial: int | None
    """What it answered then."""

    @property
    def time_s(self) -> float | None:
        """From published to served."""
        if self.published_ns is None or self.served_ns is None:
            return None
        return (self.served_ns - self.published_ns) / 1e9

    @property
    def skipped(self) -> bool:
        """Whether the secondary went on to a later one without serving it."""
        return self.served_serial is not None and self.served_serial != self.serial


@dataclass(frozen=True)
class Arrival:
    """A new serial on the secondary, and what came from the primary since the one before."""

    serial: int
    served_ns: int
    generations: int
    """How many it brought at once."""
    nbytes: float
    share: float
    """Share of the bytes that the whole zone took before `measure`."""

    @property
    def whole(self) -> bool:
        return self.share >= WHOLE_SHARE


def of(trial: Trial) -> list[Generation]:
    """In the order in which they were made; empty where none were."""
    told = trial.record.instruments.get(INSTRUMENT, {}).get("generations", [])
    names = Generation.__dataclass_fields__
    return [Generation(**{name: each[name] for name in names}) for each in told]


def slowest_s(trial: Trial) -> tuple[float | None, bool]:
    """The time of the slowest generation, and whether all were served: if not, it is at least the time for which one
    was missing."""
    made = of(trial)
    times = [each.time_s for each in made]
    known = [time_s for time_s in times if time_s is not None]
    if trial.measure is not None:
        end_ns = trial.measure.end.monotonic_ns
        missing = [each for each in made if each.time_s is None and each.published_ns is not None]
        known += [(end_ns - (each.published_ns or end_ns)) / 1e9 for each in missing]
    return max(known, default=None), None not in times


def arrivals(trial: Trial) -> list[Arrival]:
    """Every serial that appeared on the secondary during `measure`; empty where the bytes are not known."""
    nbytes, whole, phase = _received(trial), whole_bytes(trial), trial.measure
    if phase is None or nbytes.is_empty() or not whole:
        return []
    seen: dict[int, tuple[int, int]] = {}
    for each in of(trial):
        if each.served_ns is not None and each.served_serial is not None:
            first_ns, count = seen.get(each.served_serial, (each.served_ns, 0))
            seen[each.served_serial] = (min(first_ns, each.served_ns), count + 1)
    found, before = [], _at(nbytes, phase.start.monotonic_ns)
    for serial, (served_ns, count) in sorted(seen.items(), key=lambda item: item[1][0]):
        until = _at(nbytes, served_ns)
        found.append(Arrival(serial, served_ns, count, until - before, (until - before) / whole))
        before = until
    return found


def whole_bytes(trial: Trial) -> float | None:
    """What came from the primary before `measure`, when the secondary had nothing: the whole zone; None where it is not
    known."""
    rows, phase = _received(trial), trial.measure
    if phase is None or rows.is_empty():
        return None
    return (_at(rows, phase.start.monotonic_ns) - int(rows["value"][0])) or None


def _received(trial: Trial) -> pl.DataFrame:
    """Bytes of all frames that the secondary had received from its primary, every 0.2 s: columns time_ns, value."""
    spec = trial.record.spec
    interface = spec.interface(trial.subject, spec.primaries[0]) if spec.primaries else ""
    return trial.series(trial.subject, interface, "rx_bytes")


def _at(rows: pl.DataFrame, time_ns: int) -> float:
    """A counter at a time between two samples, as if it grew evenly from one to the other."""
    before, after = rows.filter(pl.col("time_ns") <= time_ns).tail(1), rows.filter(pl.col("time_ns") > time_ns).head(1)
    if before.is_empty() or after.is_empty():
        return float((after if before.is_empty() else before)["value"][0])
    (from_ns, low), (to_ns, high) = before.row(0), after.row(0)
    return float(low + (high - low) * (time_ns - from_ns) / (to_ns - from_ns))
