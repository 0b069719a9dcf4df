"""Changes on a primary, and when the server under test served them: from what was made there, and what `probe follow`
saw here. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from dnsrig.runs.trial import Trial


@dataclass(frozen=True)
class Followed:
    """A change of a zone that was followed."""

    made_ns: int
    served_ns: int | None
    """When the server under test first answered so; None: not before the zone changed again, or not until the end of
    `measure`."""


def made(trial: Trial) -> int | None:
    """How many changes the primary accepted during `measure`; None where there are no rows of them."""
    phase, rows = trial.measure, trial.changes
    if phase is None or rows.is_empty():
        return None
    accepted = rows["accepted_ns"].drop_nulls()
    return int(accepted.is_between(phase.start.monotonic_ns, phase.end.monotonic_ns).sum())


def due(trial: Trial) -> float | None:
    """How many changes were due during `measure`, by the rate that was asked for."""
    phase, rows = trial.measure, trial.changes
    if phase is None or rows.is_empty():
        return None
    begin_ns = max(phase.start.monotonic_ns, int(rows["due_ns"][0]))
    return max(0.0, (phase.end.monotonic_ns - begin_ns) / 1e9) * float(trial.record.spec.options["changes_per_s"])


def followed(trial: Trial) -> list[Followed]:
    """Each change that was accepted during `measure` of a zone that was followed."""
    phase = trial.measure
    assert phase is not None
    start_ns, end_ns = phase.start.monotonic_ns, phase.end.monotonic_ns
    seen: dict[str, list[tuple[int, bool]]] = {}
    for zone, before_ns, seen_ns, served in trial.followed.select("zone", "before_ns", "seen_ns", "served").iter_rows():
        # The first row of a zone is how it was found, not that it became so.
        seen.setdefault(zone, [])
        if before_ns is not None:
            seen[zone].append((seen_ns, served))
    of_zone: dict[str, list[tuple[int, str]]] = {}
    accepted = trial.changes.drop_nulls("accepted_ns").select("zone", "accepted_ns", "kind")
    for zone, accepted_ns, kind in accepted.iter_rows():
        if zone in seen:
            of_zone.setdefault(zone, []).append((accepted_ns, kind))
    found = []
    for zone, changes in of_zone.items():
        until = [time for time, _ in changes[1:]] + [end_ns]
        for (made_ns, kind), next_ns in zip(changes, until, strict=True):
            if start_ns <= made_ns <= end_ns:
                wanted = kind != "remove"
                times = (time for time, served in seen[zone] if time > made_ns and served is wanted)
                served_ns = next(times, None)
                # What is seen after the next change may be late, but before that next one could be served.
                late = served_ns is not None and (served_ns > end_ns or (kind == "touch" and served_ns > next_ns))
                found.append(Followed(made_ns, None if late else served_ns))
    return found
