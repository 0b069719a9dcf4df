"""What `watch` would have listed of one connection over a long path: made up, nothing of it measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from dnsrig.rundir import HostSpec, LinkSpec, PathSpec
from dnsrig.runs.row_files.transfer import TCP_INFO
from dnsrig.runs.row_files.watch import SOCKETS
from dnsrig.runs.trial import Trial

MS = 1_000_000
PRIMARY, CLIENT = "198.18.0.1:53", "198.18.0.2:40000"
EVERY_MS = 200
MSS_BYTES = 1448


def bulk(trial: Trial, *, forward: PathSpec | None = None, seconds: float = 10.0, **of_sender: Any) -> Trial:
    """Let ``trial`` have brought one zone over a path of 300 ms, for so long; ``of_sender``: as in `rows`."""
    spec, phase = trial.record.spec, trial.measure
    assert phase is not None
    spec.procedure, spec.main_metric, trial.record.outcome = "bulk", "throughput_kbytes_per_s", "done"
    spec.hosts = {
        "primary": HostSpec(address="198.18.0.1", cpus=[1], server=_server(trial), role="primary", under_test=True),
        "client": HostSpec(address="198.18.0.2", cpus=[0]),
        "observer": HostSpec(address="198.18.0.3", cpus=[0]),
    }
    path = forward or PathSpec(delay_ms=150, loss_percent=10, limit_packets=100_000)
    reverse = path.model_copy(update={"loss_percent": 0.0})
    spec.links = [LinkSpec(ends=("primary", "client"), kind="tun", forward=path, reverse=reverse)]
    spec.options = {"congestion": ""}
    phase.end.monotonic_ns = phase.start.monotonic_ns + round(seconds * 1e3) * MS
    trial.__dict__["sockets"] = rows(phase.start.monotonic_ns, seconds, **of_sender)
    trial.record.instruments = {"transfer": transferred(phase.start.monotonic_ns, seconds), "link": linked()}
    trial.__dict__["tcp_info"] = looked_at(trial.sockets)
    trial.record.metrics = {}
    return trial


def _server(trial: Trial) -> Any:
    return trial.record.spec.hosts[trial.subject].server


def transferred(start_ns: int, seconds: float) -> dict[str, Any]:
    """The summary of an instrument that was cut off in the middle of its zone."""
    elapsed_ns = round(seconds * 1e9)
    done = {"done": 0, "failed": 0, "up_to_date": 0, "outcomes": {}, "attempt_outcomes": {}, "records": 0, "bytes": 0}
    times = {"start_ns": start_ns, "elapsed_ns": elapsed_ns, "first_message_ns": start_ns + 5}
    return {**done, **times, "rows_lost": 0, "busy_share": 0.1}


def looked_at(listed: pl.DataFrame) -> pl.DataFrame:
    """The receiver's rows as the instrument itself would have them."""
    ours = listed.filter(pl.col("host") == "client").with_columns(
        connection=pl.lit(0), sent_bytes=pl.lit(60), unread_bytes="receive_queue_bytes"
    )
    return ours.select(pl.col(name).cast(kind) for name, kind in TCP_INFO.schema.items())


def linked(**of_there: int) -> dict[str, Any]:
    nothing = {"packets": 10_000, "lost": 1000, "overflowed": 0}
    return {"forward": {**nothing, **of_there}, "reverse": nothing}


def rows(
    start_ns: int,
    seconds: float = 10.0,
    *,
    kb_per_s: float = 17.0,
    congestion: str = "cubic",
    cwnd: int = 4,
    rtt_ms: float = 305.0,
    min_rtt_ms: float = 300.0,
    resent_share: float = 0.1,
    limited: Mapping[str, float] | None = None,
    unread_bytes: int = 0,
    under_way: int | None = None,
    buffers: tuple[int, int] | None = None,
    **flags: bool,
) -> pl.DataFrame:
    """Both ends of one connection, from the primary's; ``limited``: share of the busy time by name, e.g.
    receive_window; ``under_way``: segments, of which nothing more is written, by default as many as the window has;
    ``buffers``: that of the sender and of the receiver, by default such as grow."""
    made = []
    for tick in range(int(seconds * 1e3) // EVERY_MS):
        at_s = tick * EVERY_MS / 1e3
        acked = round(1e3 * kb_per_s * at_s)
        segments = round(acked / MSS_BYTES * (1 + resent_share))
        both = {
            "time_ns": start_ns + tick * EVERY_MS * MS,
            "state": "established",
            "congestion": congestion,
            "mss_bytes": MSS_BYTES,
            "sacks": True,
            "timestamps": True,
            "window_scaling": True,
            **flags,
        }
        sender = {
            "host": "primary",
            "local": PRIMARY,
            "remote": CLIENT,
            "cwnd": cwnd + tick % 3 - 1,
            "unacked": cwnd if under_way is None else under_way,
            "send_buffer_bytes": buffers[0] if buffers else 87_040 * (1 + tick),
            "send_queue_bytes": MSS_BYTES * (2 * cwnd if under_way is None else under_way),
            "rtt_us": round(1e3 * rtt_ms),
            "min_rtt_us": round(1e3 * min_rtt_ms),
            "acked_bytes": acked,
            "sent_data_segments": segments,
            "retransmissions": round(segments * resent_share),
            "busy_us": round(1e6 * at_s),
            **{f"{name}_limited_us": round(1e6 * at_s * share) for name, share in (limited or {}).items()},
        }
        receiver = {
            "host": "client",
            "local": CLIENT,
            "remote": PRIMARY,
            "congestion": "bbr",
            "acked_bytes": 60,
            "received_bytes": acked,
            "receive_buffer_bytes": buffers[1] if buffers else 131_072 * (1 + tick),
            "receive_queue_bytes": unread_bytes,
            "rtt_us": 300_000,
            "min_rtt_us": 300_000,
            "cwnd": 10,
        }
        made += [_zeros() | both | sender, _zeros() | both | receiver]
    return pl.DataFrame(made, schema=SOCKETS.schema)


def _zeros() -> dict[str, Any]:
    return {name: "" if kind is pl.String else 0 for name, kind in SOCKETS.schema.items()}
