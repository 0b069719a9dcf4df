"""Trials of a replay: the stream, what `replay prepare` and `describe` said of it, and what `replay play` counted."""

from __future__ import annotations

from typing import Any

import polars as pl

from dnsrig.rundir import StreamSpec
from dnsrig.runs.row_files import load
from dnsrig.runs.trial import Trial

MS = 1_000_000
LAG = {"p50": 5_000, "p99": 60_000, "p99_9": 100_000, "max": 900_000}
OPTIONS = {"retransmissions": "as-captured", "ports": 256, "threads": 1, "port": "fresh"}
DATAGRAMS = dict.fromkeys(("udp", "tcp_segments", "tcp_answers", "cut"), 0)
MESSAGES = dict.fromkeys(("udp", "records", "answers", "kept", "from_servers", "truncated", "tcp"), 0)
TRAPS = (
    "queries-sent-late",
    "incomplete-capture",
    "both-sides-captured",
    "heavy-clients",
    "nat-client",
    "replayed-retransmissions",
    "few-source-ports",
    "client-rate-limit",
    "downsampled-clients",
)


def put(trial: Trial) -> None:
    """A replay of 1,000 clients with ten queries each, on which everything is in order."""
    spec = trial.record.spec
    spec.stream = StreamSpec(kind="capture", key="s", queries=10_000, clients=1_000, span_s=10)
    spec.options |= OPTIONS
    trial.record.instruments["stream"] = {
        "made": {"ledger": accounting(), "captures": [{"path": "a.pcap"}]},
        "holds": {
            "stream": {"queries": 10_000, "clients": 1_000},
            "clients": {"median": 10, "largest": 10, "heaviest_1_percent": 100, "heaviest_10_percent": 1_000},
            "heaviest": [{"queries": 10, "questions": 9}] * 10,
            "distinct_questions": 1_000,
            "retransmissions": 50,
            "recursion_desired": 10_000,
            "hit_ratios": [ratio(0.5, 0.899), ratio(1, 0.9)],
        },
    }
    replayed(trial)
    clients(trial, [(10, 0, 0)] * 1_000)


def accounting(udp: int = 20_000, answers: int = 10_000, **more: int) -> dict[str, dict[str, int]]:
    """Of so many messages over UDP, and of segments and fragments that are as they should be, but for ``more``."""
    return {
        "datagrams": DATAGRAMS | {"udp": udp, "cut": more.get("cut", 0), "tcp_segments": 1_000},
        "messages": MESSAGES
        | {"udp": udp, "answers": answers, "kept": udp - answers}
        | {name: more.get(name, 0) for name in ("records", "from_servers", "truncated", "tcp")},
        "tcp_segments": {"behind_hole": more.get("behind_hole", 0)},
        "fragments": {"malformed": 0, "incomplete": more.get("incomplete", 0), "read": 0},
    }


def ratio(share: float, middle: float) -> dict[str, float]:
    return {"share": share, "lowest": middle - 0.01, "middle": middle, "highest": middle + 0.01}


def replayed(trial: Trial, lag: dict[str, int] | None = None, **more: Any) -> None:
    said = {"model": "stream", "start_ns": 0, "end_ns": 10_000 * MS, "sending_ns": 10_000 * MS}
    counts = {"due": 10_000, "sent": 10_000, "answered": 10_000}
    trial.record.instruments["load"] = said | counts | {"lag_ns": LAG | (lag or {})} | more


def clients(trial: Trial, counts: list[tuple[int, int, int]]) -> None:
    """One row each: answered, unanswered, truncated."""
    zeros = dict.fromkeys(load.REPLAYED_CLIENTS.schema, [0] * len(counts))
    answered, unanswered, truncated = (list(column) for column in zip(*counts))
    columns = zeros | {"answered": answered, "unanswered": unanswered, "truncated": truncated}
    schema = dict(load.REPLAYED_CLIENTS.schema)
    rows = pl.DataFrame(columns | {"client": list(range(len(counts)))}, schema=schema)
    rows.write_ipc_stream(trial.directory / "clients.arrow")
