"""What `transfer` would have written of a primary whose behaviour is known: in virtual time, nothing of it measured."""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import polars as pl

from dnsrig.rundir import TransferSpec
from dnsrig.runs.row_files import RowFile
from dnsrig.runs.row_files.transfer import CONNECTIONS, TCP_INFO, TRANSFERS
from dnsrig.runs.trial import Trial

MS = 1_000_000
START_NS = 5_000_000_000_000
RTT_MS = 0.05
TINY_BYTES = 300


@dataclass
class Transfer:
    """One attempt; times in ms from the start, None: it never came to that."""

    zone: str
    asked_ms: float
    first_ms: float | None
    last_ms: float | None
    nbytes: int = TINY_BYTES
    messages: int = 1
    outcome: str = "done"
    connection: int = 0
    secondary: int = 0
    attempt: int = 1
    pause_ms: float = 0.0
    foreign: int = 0
    records: int | None = None

    def row(self) -> dict[str, object]:
        good = self.outcome in ("done", "up-to-date")
        records = self.records if self.records is not None else self.nbytes // 60 if good else 0
        return {
            "zone": self.zone,
            "secondary": self.secondary,
            "connection": self.connection,
            "attempt": self.attempt,
            "asked": "axfr",
            "answered": "axfr" if records else "none",
            "asked_ns": _ns(self.asked_ms),
            "first_ns": _ns(self.first_ms),
            "last_ns": _ns(self.last_ms),
            "bytes": self.nbytes,
            "messages": self.messages if self.first_ms is not None else 0,
            "records": records,
            "serial": 1 if good else 0,
            "pause_max_ns": round(self.pause_ms * MS),
            "foreign_messages": self.foreign,
            "outcome": self.outcome,
        }


@dataclass
class Connection:
    connection: int
    begun_ms: float
    established_ms: float | None
    closed_ms: float
    handshake: str = "none"
    ended: str = "ours"
    secondary: int = 0

    def row(self) -> dict[str, object]:
        times = {name.replace("_ms", "_ns"): _ns(value) for name, value in asdict(self).items() if name.endswith("_ms")}
        counts = {"asked": 1, "done": 1, "bytes": TINY_BYTES, "messages": 1}
        words = {"secondary": self.secondary, "handshake": self.handshake, "ended": self.ended}
        return {"connection": self.connection, "source": "198.18.0.9:40000"} | times | counts | words


def put(
    trial: Trial,
    made: Iterable[Transfer],
    connections: Iterable[Connection] = (),
    rtt_us: int | None = round(RTT_MS * 1000),
    **options: str | int | float | bool,
) -> Trial:
    """Let ``trial`` have transferred so."""
    trial.record.outcome = "done"
    trial.record.spec.options = options
    trial.record.spec.transfer = TransferSpec(transport="xot" if "resumption" in options else "tcp")
    trial.__dict__["transfers"] = frame([transfer.row() for transfer in made], TRANSFERS)
    trial.__dict__["connections"] = frame([connection.row() for connection in connections], CONNECTIONS)
    info = [] if rtt_us is None else [dict.fromkeys(TCP_INFO.schema, 0) | {"time_ns": START_NS, "rtt_us": rtt_us}]
    trial.__dict__["tcp_info"] = frame(info, TCP_INFO)
    return trial


def whole(trial: Trial, **of_it: int) -> Trial:
    """Let the instrument have counted all zones whole, for two secondaries, but for what ``of_it`` says."""
    dataset = trial.record.spec.dataset
    counted = {"secondaries": 2, "records": 2 * dataset.records, "done": 2 * dataset.zones, "axfr": 2 * dataset.zones}
    trial.record.instruments["transfer"] = counted | of_it
    return trial


def frame(rows: Sequence[dict[str, Any]], file: RowFile) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=file.schema)


def reused(
    count: int, each_ms: float = 0.2, *, held_ms: Sequence[float] = (0,), at_first: bool = False, seed: int = 1
) -> list[Transfer]:
    """One after another on one connection; ``held_ms``: of each in turn, before its first message or its second."""
    noise, now_ms, made = random.Random(seed), 0.0, []
    for number in range(count):
        held = held_ms[number % len(held_ms)] * noise.uniform(0.97, 1.03)
        own = each_ms * noise.uniform(0.8, 1.2)
        first = now_ms + RTT_MS + own / 2 + (held if at_first else 0)
        last = first + (0 if at_first else held) + own / 2
        made.append(
            Transfer(zone(number), now_ms, first, last, messages=3 if any(held_ms) else 1, pause_ms=last - first)
        )
        now_ms = last
    return made


def pipelined(
    nbytes: Sequence[int],
    *,
    window: int = 100,
    mb_per_s: float = 100.0,
    each_ms: float = 0.02,
    interleaved: bool = False,
    message_bytes: int = 16_384,
) -> list[Transfer]:
    """On one connection, so many outstanding at a time. In order; or what fits in one message passes what does not."""
    made: list[Transfer] = []
    free_ms = RTT_MS / 2
    small_free_ms = free_ms
    ends: list[float] = []
    for number, size in enumerate(nbytes):
        asked = 0.0 if number < window else heapq.heappop(ends)
        takes = each_ms + size / mb_per_s / 1e3
        messages = -(-size // message_bytes)
        if interleaved and messages == 1:
            begin = small_free_ms = max(small_free_ms, asked) + each_ms
            last = begin
        else:
            begin = max(free_ms, asked + RTT_MS / 2)
            last = free_ms = begin + takes
        first = begin + takes / messages if messages > 1 else last
        pause = (last - first) / max(1, messages - 1)
        made.append(Transfer(zone(number), asked, first, last, size, messages, pause_ms=pause))
        heapq.heappush(ends, last)
    return made


def limited(count: int, *, window: int, at_a_time: int, each_ms: float = 3.0, retry_ms: float = 50.0) -> list[Transfer]:
    """A primary that does so many at a time and refuses the excess; refused ones are asked for again later."""
    waiting = [(0.0, number, 1) for number in range(count)]
    running: list[float] = []
    slots = [slot / 1e3 for slot in range(window)]
    made = []
    while waiting:
        due, number, attempt = heapq.heappop(waiting)
        asked = max(due, heapq.heappop(slots))
        arrives = asked + RTT_MS / 2
        while running and running[0] <= arrives:
            heapq.heappop(running)
        refused = len(running) >= at_a_time
        last = arrives + RTT_MS / 2 + (0.01 if refused else each_ms)
        if refused:
            heapq.heappush(waiting, (last + retry_ms, number, attempt + 1))
        else:
            heapq.heappush(running, last - RTT_MS)  # it is over there before that is seen here
        outcome = "servfail" if refused else "done"
        made.append(Transfer(zone(number), asked, last, last, outcome=outcome, attempt=attempt))
        heapq.heappush(slots, last)
    return made


def zone(number: int) -> str:
    return f"z{number:06}.example."


def _ns(ms: float | None) -> int:
    return 0 if ms is None else START_NS + round(ms * MS)
