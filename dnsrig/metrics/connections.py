"""Connections of `load`: how many a second, how long a handshake takes, what becomes of early data, how much memory
each takes at the server."""

from __future__ import annotations

from dnsrig.metrics import metric
from dnsrig.runs.load_result import LoadResult
from dnsrig.runs.trial import Trial, total

FEWEST_CONNECTIONS = 100
"""With fewer connections, other memory of a server changes as much."""
MEMORY = ("memory_anonymous_bytes", "memory_kernel_bytes")


def _asks_once(trial: Trial) -> bool:
    """Whether each query has a connection of its own."""
    options = trial.record.spec.options
    return options.get("queries_per_connection") == 1 and options.get("transport") != "udp"


def _highest_tried(trial: Trial) -> float | None:
    """The highest rate of the ramp, if even that passed."""
    return trial.ramp.capacity_qps if trial.ramp.capacity_is_lower_bound else None


@metric(title="new connections a second", unit="/s", better="higher", order=10, ceiling=_highest_tried)
def handshakes_per_s(trial: Trial) -> float | None:
    """The highest rate of connections with one query each that the server held: its capacity. What a connection begins
    with is an axis of the experiment: a full handshake, a resumed session, or early data (0-RTT). “≥”: even the highest
    rate passed. None unless each query has a connection of its own."""
    return trial.ramp.capacity_qps if _asks_once(trial) else None


@metric(title="handshake, median", unit="ms", better="lower", order=18)
def handshake_p50_ms(trial: Trial) -> float | None:
    """Half of the connections were ready for queries within this time after their begin, TCP and TLS included. Early
    data leaves before. None over UDP, and for a ramp, which connects at many rates."""
    figures = trial.load.handshake_ns
    value = figures.get("p50") if figures and trial.load.has_latencies else None
    return None if value is None else value / 1e6


@metric(title="resumed handshakes", unit="%", better="neither", order=18)
def resumed_handshakes_percent(trial: Trial) -> float | None:
    """Share of the handshakes with TLS that resumed a session. A client that closes its connection with the answer to
    early data gets no new ticket, so some of its connections begin with a full handshake. None without handshakes."""
    made = trial.load.connections
    return 100 * made.resumed / made.handshakes if made.handshakes else None


def _early_percent(load: LoadResult, count: int) -> float | None:
    """``count`` in percent of the queries that left as early data."""
    sent = load.connections.early_accepted + load.connections.early_rejected
    return 100 * count / sent if sent else None


@metric(title="early data accepted", unit="%", better="higher", order=19)
def early_accepted_percent(trial: Trial) -> float | None:
    """Share of the queries sent with the first flight of a resumed session (0-RTT) that the server accepted. Whoever
    copies such a flight can have its queries answered again (RFC 8446 §8). None if no query was sent so."""
    return _early_percent(trial.load, trial.load.connections.early_accepted)


@metric(title="early data sent again", unit="%", better="lower", order=19)
def early_repeated_percent(trial: Trial) -> float | None:
    """Share of the queries sent with the first flight of a resumed session (0-RTT) that the server rejected, so that
    they were sent again after the handshake. Each counts as one query. None if no query was sent so."""
    return _early_percent(trial.load, trial.load.connections.early_rejected)


@metric(title="memory a connection", unit="B", better="lower", order=22)
def memory_a_connection_bytes(trial: Trial) -> float | None:
    """Growth of the anonymous and the kernel memory of the server under test, from the last sample before `measure` to
    the largest one in it, divided by the connections that were established in it and stay open. None with fewer than
    100 connections, over UDP, for a ramp, and if clients had to connect again. Memory that the server keeps of earlier
    connections does not count, so it needs ``warmup_s = 0`` and a rate that is given."""
    load, options = trial.load, trial.record.spec.options
    made = load.connections.established
    if not load.has_latencies or options.get("queries_per_connection") or options.get("warmup_s") or trial.ramp.ran:
        return None
    if not FEWEST_CONNECTIONS <= made <= int(options.get("clients", made)):
        return None
    grown = total(_grown_bytes(trial, name) for name in MEMORY)
    return None if grown is None else max(0.0, grown) / made


def _grown_bytes(trial: Trial, name: str) -> float | None:
    rows, peak = trial.during_measure(trial.subject, "cgroup", name), trial.peak(trial.subject, "cgroup", name)
    return None if peak is None or rows.is_empty() else peak - float(rows["value"][0])
