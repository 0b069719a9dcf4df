"""Times until a server has its zones: by transfer, from files at its start, or in a new version; and transfers in
detail."""

from __future__ import annotations

from dnsrig.metrics import metric, transfer_load
from dnsrig.runs.trial import Trial


def floor_ns(trial: Trial) -> int | None:
    """Time at which the instrument `transfer`, as secondary, had its last zone; None if a server is the secondary."""
    end_ns = trial.transfer.get("end_ns")
    return (
        int(end_ns) if end_ns is not None and trial.is_cold_start and "probe" not in trial.record.instruments else None
    )


def since_exec_s(trial: Trial, key: str) -> float | None:
    """Seconds from exec of the server under test, or of the first of several, to a moment that probe reports; None if
    it ran before `measure`."""
    when = trial.record.instruments.get("probe", {}).get(key)
    if key == "last_seen_ns":
        when = when or floor_ns(trial)
    if trial.exec_ns is None or when is None or not trial.started_in_measure:
        return None
    return float(when - trial.exec_ns) / 1e9


@metric(title="time to all zones", unit="s", better="lower", order=10)
def transfer_time_s(trial: Trial) -> float | None:
    """Time from exec of the cold secondary (or of the database that starts with it, if that is earlier) until it
    answered for the last zone with the expected serial, as seen by probe. If the instrument `transfer` is the
    secondary, which stores nothing: until the last message of the last zone. None if the trial ended before that, or if
    the server under test is not a secondary."""
    if trial.record.outcome not in ("done", "invalid") or not trial.is_cold_start:
        return None
    return since_exec_s(trial, "last_seen_ns")


@metric(title="time per zone", unit="ms", better="lower", order=11)
def time_per_zone_ms(trial: Trial) -> float | None:
    """transfer_time_s divided by the number of zones."""
    time_s = transfer_time_s(trial)
    return None if time_s is None else time_s * 1000 / trial.record.spec.dataset.zones


@metric(title="time to first answer", unit="s", better="lower", order=12)
def first_answer_s(trial: Trial) -> float | None:
    """Time from exec of the server under test to the first DNS message that probe received from it, with any
    content."""
    return since_exec_s(trial, "first_answer_ns")


@metric(title="time to first zone", unit="s", better="lower", order=13)
def first_zone_s(trial: Trial) -> float | None:
    """Time from exec of the server under test until it answered for the first zone with the expected serial."""
    return since_exec_s(trial, "first_seen_ns")


@metric(title="zones answered", unit="zones", better="higher", order=14)
def zones_seen(trial: Trial) -> float | None:
    """Number of zones that the server under test answered with the expected serial before the trial ended. If the
    instrument `transfer` is the secondary: zones that it received completely."""
    seen = trial.record.instruments.get("probe", {}).get("seen")
    if floor_ns(trial) is not None:
        seen = trial.transfer.get("done")
    return None if seen is None else float(seen)


@metric(title="zones a second", unit="zones/s", better="higher", order=15, at_limit=transfer_load.is_transfer_load)
def zones_per_s(trial: Trial) -> float | None:
    """Number of answered zones, divided by the time from exec of the server under test to the last of them. If the
    instrument `transfer` transfers the zones itself: zones that it received completely, divided by its time from start
    to end, at the last zone or at the limit."""
    if transfer_load.is_transfer_load(trial):
        return transfer_load.per_second(trial, "done")
    seen, time_s = zones_seen(trial), since_exec_s(trial, "last_seen_ns")
    return None if not seen or not time_s else seen / time_s


@metric(title="resolution of the time", unit="s", better="lower", order=90)
def probe_resolution_s(trial: Trial) -> float | None:
    """The last zone became ready within this time before it was observed: from the last poll that found a zone not
    ready until the last zone was observed."""
    value = trial.record.instruments.get("probe", {}).get("resolution_ns")
    return None if value is None else value / 1e9


@metric(title="polls by probe", unit="queries", better="neither", order=91)
def probe_polls(trial: Trial) -> float | None:
    """Number of SOA queries that probe sent to the server under test: the disturbance by the measurement."""
    value = trial.record.instruments.get("probe", {}).get("polls")
    return None if value is None else float(value)


@metric(title="time to load all zones", unit="s", better="lower", order=10)
def load_time_s(trial: Trial) -> float | None:
    """Time from exec of the primary under test until it answered for the last of its zones with the expected serial, as
    seen by probe. None if the trial ended before that, or if the server under test is not a primary."""
    if trial.record.outcome not in ("done", "invalid") or trial.subject not in trial.hosts_as("primary"):
        return None
    return since_exec_s(trial, "last_seen_ns")


@metric(title="time to start", unit="s", better="lower", order=10)
def startup_time_s(trial: Trial) -> float | None:
    """Time from exec of a server that already has its zones, in files or stored before it was stopped, until it
    answered for the last of them with the expected serial, as seen by probe. None if the trial ended before that."""
    if trial.record.spec.main_metric != "startup_time_s" or trial.record.outcome not in ("done", "invalid"):
        return None
    return since_exec_s(trial, "last_seen_ns")


@metric(title="time to the new version", unit="s", better="lower", order=10)
def update_time_s(trial: Trial) -> float | None:
    """Time from the command to load the new version of the zones until the secondary answered for the last zone with
    the new serial, as seen by probe."""
    record, phase = trial.record, trial.measure
    seen = record.instruments.get("probe", {}).get("last_seen_ns")
    if record.spec.main_metric != "update_time_s" or record.outcome not in ("done", "invalid"):
        return None
    if phase is None or seen is None:
        return None
    return (int(seen) - phase.start.monotonic_ns) / 1e9
