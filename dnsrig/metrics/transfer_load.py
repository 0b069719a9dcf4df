"""Counts of the instrument `transfer`: zones, records and bytes a second, connections, and failures.

They show how fast a primary sends zones, because the receiver stores nothing. Rates divide by the time from the
instrument's start to its end: the last zone's last message, or the limit of the trial. So a trial that reached its
limit has rates, too.
"""

from __future__ import annotations

from dnsrig.metrics import metric
from dnsrig.runs.trial import Trial


def is_transfer_load(trial: Trial) -> bool:
    """Whether the instrument `transfer` transferred zones until all were done or its time was over."""
    return trial.record.spec.main_metric == "zones_per_s" and bool(trial.transfer)


def per_second(trial: Trial, name: str) -> float | None:
    """A count of the instrument's summary divided by its time."""
    summary = trial.transfer
    elapsed_ns = summary.get("elapsed_ns")
    return None if not elapsed_ns or name not in summary else float(summary[name]) * 1e9 / elapsed_ns


def _count(trial: Trial, name: str) -> float | None:
    value = trial.transfer.get(name)
    return None if value is None else float(value)


def _time_ms(trial: Trial, name: str) -> float | None:
    """A time of the transfers that ended well; None without such transfers."""
    value = (trial.transfer.get("transfer_ns") or {}).get(name)
    return None if value is None or not trial.transfer.get("done") else value / 1e6


def _of_connections(trial: Trial, name: str) -> float | None:
    value = (trial.transfer.get("connections") or {}).get(name)
    return None if value is None else float(value)


@metric(title="records a second", unit="records/s", better="higher", order=16, at_limit=is_transfer_load)
def records_per_s(trial: Trial) -> float | None:
    """Records that the instrument `transfer` received, divided by its time from start to end."""
    return per_second(trial, "records")


@metric(title="data transferred a second", unit="MB/s", better="higher", order=16, at_limit=is_transfer_load)
def transferred_mb_per_s(trial: Trial) -> float | None:
    """Bytes of DNS messages that the instrument `transfer` received (10^6 to a MB; no TCP or TLS headers), divided by
    its time from start to end."""
    bytes_per_s = per_second(trial, "bytes")
    return None if bytes_per_s is None else bytes_per_s / 1e6


@metric(title="time of a transfer, median", unit="ms", better="lower", order=17, at_limit=is_transfer_load)
def transfer_p50_ms(trial: Trial) -> float | None:
    """Median over the zones transferred of the time from the query to the last message of its answer, as the instrument
    `transfer` saw it. If many are requested at once, they wait for each other, so the time depends on their number."""
    return _time_ms(trial, "p50")


@metric(title="time of a transfer, p99", unit="ms", better="lower", order=17, at_limit=is_transfer_load)
def transfer_p99_ms(trial: Trial) -> float | None:
    """Like `transfer_p50_ms`, the 99th percentile."""
    return _time_ms(trial, "p99")


@metric(title="connections made", unit="connections", better="lower", order=18, at_limit=is_transfer_load)
def connections_made(trial: Trial) -> float | None:
    """TCP connections that the instrument `transfer` established."""
    return _of_connections(trial, "established")


@metric(title="full TLS handshakes", unit="handshakes", better="lower", order=18, at_limit=is_transfer_load)
def full_handshakes(trial: Trial) -> float | None:
    """TLS handshakes of the instrument `transfer` that resumed no session."""
    return _of_connections(trial, "full_handshakes")


@metric(title="zones not transferred", unit="zones", better="lower", order=19, at_limit=is_transfer_load)
def transfer_failures(trial: Trial) -> float | None:
    """Number of zones whose last attempt by the instrument `transfer` failed: refused, broken off, wrong, or too
    late."""
    return _count(trial, "failed")


@metric(title="transfers tried again", unit="transfers", better="lower", order=19, at_limit=is_transfer_load)
def transfer_retries(trial: Trial) -> float | None:
    """Number of attempts of the instrument `transfer` after the first one, over all zones."""
    return _count(trial, "retries")


@metric(title="CPU per zone, primary", unit="µs", better="lower", order=21, at_limit=is_transfer_load)
def primary_cpu_us_per_zone(trial: Trial) -> float | None:
    """CPU time of the primary's cgroup during `measure`, to within 0.2 s at either end, divided by the zones that the
    instrument `transfer` received completely."""
    return _cpu_us_per_zone(trial, "primary")


@metric(title="CPU per zone, instrument", unit="µs", better="lower", order=21, at_limit=is_transfer_load)
def client_cpu_us_per_zone(trial: Trial) -> float | None:
    """CPU time of the instrument `transfer`, as it counts itself, divided by the zones that it received completely."""
    cpu_ns, done = trial.transfer.get("cpu_ns"), trial.transfer.get("done")
    return float(cpu_ns / done / 1e3) if is_transfer_load(trial) and cpu_ns is not None and done else None


@metric(
    title="TIME_WAIT of the instrument's host, peak",
    unit="sockets",
    better="lower",
    order=31,
    at_limit=is_transfer_load,
)
def client_time_wait_peak(trial: Trial) -> float | None:
    """Largest number of sockets in TIME_WAIT on the host of the instrument `transfer` at any sample during `measure`,
    to within 0.2 s."""
    return trial.peak("client", "sockets", "tcp_time_wait") if "client" in trial.record.spec.hosts else None


def _cpu_us_per_zone(trial: Trial, host: str) -> float | None:
    grown_us, done = trial.growth(host, "cgroup", "cpu_usage_us"), trial.transfer.get("done")
    return grown_us / done if is_transfer_load(trial) and grown_us is not None and done else None


def _meanwhile(trial: Trial) -> bool:
    """Whether zones were transferred while something else was measured."""
    return trial.record.spec.options.get("transfers", "none") != "none" and bool(trial.transfer)


@metric(title="zones transferred during the load", unit="zones/s", better="higher", order=22)
def meanwhile_zones_per_s(trial: Trial) -> float | None:
    """Zones that the instrument `transfer` received completely while the primary answered queries, divided by the
    instrument's time."""
    return per_second(trial, "done") if _meanwhile(trial) else None


@metric(title="data transferred during the load", unit="MB/s", better="higher", order=22)
def meanwhile_mb_per_s(trial: Trial) -> float | None:
    """Bytes of DNS messages (10^6 to a MB) that the instrument `transfer` received while the primary answered queries,
    divided by the instrument's time."""
    bytes_per_s = per_second(trial, "bytes") if _meanwhile(trial) else None
    return None if bytes_per_s is None else bytes_per_s / 1e6


@metric(title="busy share of the transferring instrument", unit="%", better="neither", order=92)
def meanwhile_busy_percent(trial: Trial) -> float | None:
    """Share of the time in which the busiest thread of the instrument `transfer` had work while the primary answered
    queries. On a CPU that it shares with `load`, which has priority, it can delay the transfers; the primary is then
    less busy than it could be."""
    share = trial.transfer.get("busy_share") if _meanwhile(trial) else None
    return None if share is None else 100 * float(share)
