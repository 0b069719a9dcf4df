"""How long a transfer took, and how finely that is known."""

from __future__ import annotations

from dnsrig.analysis.metrics import metric
from dnsrig.analysis.read import Trial


def _exec_ns(trial: Trial) -> int | None:
    server = trial.record.servers.get("secondary")
    return server.exec_ns if server else None


def _since_exec_s(trial: Trial, key: str) -> float | None:
    start, when = _exec_ns(trial), trial.record.instruments.get("probe", {}).get(key)
    return None if start is None or when is None else (when - start) / 1e9


@metric(title="time to all zones", unit="s", better="lower", order=10)
def transfer_time_s(trial: Trial) -> float | None:
    """From exec of the cold secondary to the last zone answered with the expected serial, as seen by probe. None where
    the trial ended before that."""
    return _since_exec_s(trial, "last_seen_ns") if trial.record.outcome in ("done", "invalid") else None


@metric(title="time per zone", unit="ms", better="lower", order=11)
def time_per_zone_ms(trial: Trial) -> float | None:
    """transfer_time_s divided by the number of zones."""
    time_s = transfer_time_s(trial)
    return None if time_s is None else time_s * 1000 / trial.record.spec.dataset.zones


@metric(title="time to first answer", unit="s", better="lower", order=12)
def first_answer_s(trial: Trial) -> float | None:
    """From exec of the secondary to the first DNS message that probe received from it, whatever it said."""
    return _since_exec_s(trial, "first_answer_ns")


@metric(title="time to first zone", unit="s", better="lower", order=13)
def first_zone_s(trial: Trial) -> float | None:
    """From exec of the secondary to the first zone answered with the expected serial."""
    return _since_exec_s(trial, "first_seen_ns")


@metric(title="zones answered", unit="zones", better="higher", order=14)
def zones_seen(trial: Trial) -> float | None:
    """Zones that the secondary answered with the expected serial until the trial ended."""
    seen = trial.record.instruments.get("probe", {}).get("seen")
    return None if seen is None else float(seen)


@metric(title="zones a second", unit="zones/s", better="higher", order=15)
def zones_per_s(trial: Trial) -> float | None:
    """Zones answered divided by the time from exec of the secondary to the last of them."""
    seen, time_s = zones_seen(trial), _since_exec_s(trial, "last_seen_ns")
    return None if not seen or not time_s else seen / time_s


@metric(title="resolution of the time", unit="s", better="lower", order=90)
def probe_resolution_s(trial: Trial) -> float | None:
    """The last zone became ready within this time before it was seen: from the latest poll that still found a zone not
    ready to the last zone seen."""
    value = trial.record.instruments.get("probe", {}).get("resolution_ns")
    return None if value is None else value / 1e9


@metric(title="polls by probe", unit="queries", better="neither", order=91)
def probe_polls(trial: Trial) -> float | None:
    """SOA queries that probe sent to the secondary: its own perturbation."""
    value = trial.record.instruments.get("probe", {}).get("polls")
    return None if value is None else float(value)
