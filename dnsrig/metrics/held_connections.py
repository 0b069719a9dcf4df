"""What a held connection costs: differences, within a trial, to the time before the connections were opened.

The server's other memory and the other client's queries are the same before and after, so they are not part of the
difference. The memory of sockets belongs to the kernel and is not part of the server's own memory.
"""

from __future__ import annotations

import polars as pl

from dnsrig.metrics import metric
from dnsrig.runs import held
from dnsrig.runs.load_result import LoadResult
from dnsrig.runs.trial import Trial


def _grown_a_connection(trial: Trial, name: str) -> float | None:
    """Growth of a gauge of the cgroup of the server under test, from the last sample before the opening to the median
    during `measure`, divided by the number of open connections."""
    found, rows = held.of(trial), trial.series(trial.subject, "cgroup", name)
    if found is None or not found.kept or trial.measure is None:
        return None
    before = rows.filter(pl.col("time_ns") <= found.opening.start_ns)["value"]
    middle = trial.during_measure(trial.subject, "cgroup", name)["value"].median()
    if before.is_empty() or not isinstance(middle, int | float):
        return None
    return float(middle - before[-1]) / found.kept


@metric(title="memory of a held connection, server", unit="B", better="lower", order=10)
def held_memory_bytes(trial: Trial) -> float | None:
    """Anonymous memory of the cgroup of the server under test during `measure` (median of the samples), less that of
    the last sample before the connections were opened, divided by the number of held connections that were open (mean
    of the end of the opening and the end of the load)."""
    return _grown_a_connection(trial, "memory_anonymous_bytes")


@metric(title="memory of a held connection, kernel", unit="B", better="lower", order=11)
def held_kernel_memory_bytes(trial: Trial) -> float | None:
    """Like `held_memory_bytes`, of the kernel memory of the cgroup: the sockets of the server, and what else
    the kernel keeps for it."""
    return _grown_a_connection(trial, "memory_kernel_bytes")


@metric(title="CPU time of a held connection", unit="µs/s", better="lower", order=12)
def held_cpu_us_per_s(trial: Trial) -> float | None:
    """CPU time a second of the cgroup of the server under test during `measure`, less that during the warm-up, when
    the other client asked at the same rate alone, divided by the number of held connections that were open. It
    contains a query every ``hold_s`` on each."""
    found, warmup = held.of(trial), LoadResult.model_validate(trial.record.instruments.get("warmup", {}))
    if found is None or not found.kept or trial.measure is None or not warmup.ran:
        return None
    alone = _cpu_us_per_s(trial, warmup.start_ns, warmup.end_ns)
    meanwhile = _cpu_us_per_s(trial, trial.measure.start.monotonic_ns, trial.measure.end.monotonic_ns)
    return None if alone is None or meanwhile is None else (meanwhile - alone) / found.kept


def _cpu_us_per_s(trial: Trial, start_ns: int, end_ns: int) -> float | None:
    rows = trial.series(trial.subject, "cgroup", "cpu_usage_us").filter(pl.col("time_ns").is_between(start_ns, end_ns))
    if rows.height < 2:
        return None
    grown_us, span_ns = (int(rows[name][-1]) - int(rows[name][0]) for name in ("value", "time_ns"))
    return grown_us / (span_ns / 1e9)


@metric(title="held connections, open", unit="%", better="higher", order=13)
def held_open_percent(trial: Trial) -> float | None:
    """Share of the clients that hold a connection whose connection was open at the end of the load."""
    found = held.of(trial)
    return None if found is None else 100 * found.connections.open / found.clients


@metric(title="connections ended by the server", unit="connections", better="lower", order=14)
def connections_ended(trial: Trial) -> float | None:
    """Number of the holder's connections that the server closed, reset or refused, since the begin of the opening. A
    client whose connection ended opens another one for its next query."""
    found = held.of(trial)
    return None if found is None else float(sum(found.connections.ended.values()))


@metric(title="held connections, queries without an answer", unit="%", better="lower", order=15)
def held_unanswered_percent(trial: Trial) -> float | None:
    """Share of the holder's queries after the opening that had no answer. None if it sent none."""
    found = held.of(trial)
    return None if found is None or not found.sent else 100 * found.unanswered / found.sent


@metric(title="connecting, p99", unit="ms", better="lower", order=16)
def opening_p99_ms(trial: Trial) -> float | None:
    """99 % of the held connections were established, with TLS if there is any, within this time. Connections that were
    not established do not count."""
    found = held.of(trial)
    value = found.opening.handshake_ns.get("p99") if found and found.opening.handshake_ns else None
    return None if value is None else value / 1e6


@metric(title="memory of a held connection, instrument", unit="B", better="neither", order=93)
def holder_memory_bytes(trial: Trial) -> float | None:
    """Growth of the resident memory of the instrument that holds the connections, from before it prepared for them to
    the end of the opening, divided by the number of connections that were open then."""
    found = held.of(trial)
    return found.opening.memory_per_connection_bytes if found else None
