"""Writes what `dnsrig-engine transfer` leaves in a run, for tests: nothing in it was measured."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import synthetic
from transfer_rows import MS, START_NS, Connection, Transfer, frame, pipelined, reused

from dnsrig.rundir import Manifest, Outcome, Scalar, TrialRecord, read_json, trial_dir, write_json
from dnsrig.runs.row_files.transfer import CONNECTIONS, TCP_INFO, TRANSFERS

POLICIES: list[Scalar] = ["one", "reused", "pipelined"]
TRANSPORTS: list[Scalar] = ["tcp", "xot"]


@dataclass
class TransferPlan:
    """What the synthetic run of transfers looks like: three policies over two transports, one server that delays."""

    servers: Sequence[str] = ("nsd@system", "powerdns@system")
    zones: int = 400
    repeats: int = 3
    policies: list[Scalar] = field(default_factory=lambda: list(POLICIES))
    transports: list[Scalar] = field(default_factory=lambda: list(TRANSPORTS))
    each_ms: dict[str, float] = field(default_factory=lambda: {"nsd@system": 0.02, "powerdns@system": 0.6})
    delayed: Sequence[str] = ("powerdns@system",)
    """Servers that need 42 ms a zone where a connection is used again."""
    outcomes: dict[tuple[str, str, str], Outcome] = field(default_factory=dict)
    """(server, policy, transport) -> outcome, where it is not `done`."""
    zone_name: str = "z{number:06}.example."
    tcp_info_s: float = 0.0
    """For how long the kernel was asked, ten times a second."""


def build(directory: Path, plan: TransferPlan | None = None) -> Path:
    """Write the run that ``plan`` describes to ``directory`` and return it."""
    plan = plan or TransferPlan()
    axes = {"policy": plan.policies, "transport": plan.transports}
    whole = synthetic.Plan(servers=plan.servers, zones=[100], repeats=plan.repeats, samples=False, extra_axes=axes)
    synthetic.build(directory, whole)
    manifest = read_json(directory / "manifest.json", Manifest)
    manifest.procedure, manifest.question = "transfer-load", "How many zones a second does each primary give away?"
    for spec in manifest.specs.values():
        spec.procedure, spec.main_metric = "transfer-load", "zones_per_s"
    write_json(directory / "manifest.json", manifest)
    for key in manifest.order:
        _rewrite(trial_dir(directory, key.variant, key.repeat), plan)
    return directory


def _rewrite(folder: Path, plan: TransferPlan) -> None:
    record = read_json(folder / "trial.json", TrialRecord)
    record.spec.procedure, record.spec.main_metric = "transfer-load", "zones_per_s"
    (folder / "zones.arrow").unlink()
    server, policy, transport = (str(record.spec.variant.parameters[n]) for n in ("server", "policy", "transport"))
    record.outcome = plan.outcomes.get((server, policy, transport), "done")
    made, connections = _pulled(plan, server, policy, transport, record.spec.repeat)
    for number, transfer in enumerate(made):
        transfer.zone = plan.zone_name.format(number=number)
    write(folder, made, connections, plan.tcp_info_s)
    record.instruments = {"transfer": summary(made, connections)}
    record.metrics = {}
    write_json(folder / "trial.json", record)


def _pulled(
    plan: TransferPlan, server: str, policy: str, transport: str, repeat: int
) -> tuple[list[Transfer], list[Connection]]:
    each = plan.each_ms[server] * random.Random(f"{server}/{policy}/{transport}/{repeat}").uniform(0.9, 1.1)
    tls = "none" if transport == "tcp" else "full"
    if policy == "pipelined":
        made = pipelined([300] * plan.zones, each_ms=each)
        return made, [Connection(0, 0, 0.1, made[-1].last_ms or 0, tls)]
    held = 42.0 if server in plan.delayed and policy == "reused" else 0.0
    made = reused(plan.zones, 2 * each, held_ms=[held], seed=repeat)
    if policy == "reused":
        return made, [Connection(0, 0, 0.1, made[-1].last_ms or 0, tls)]
    for number, transfer in enumerate(made):
        later = number * (0.1 if transport == "tcp" else 2.0)
        assert transfer.first_ms is not None and transfer.last_ms is not None
        transfer.asked_ms, transfer.first_ms, transfer.last_ms = (
            later + at for at in (transfer.asked_ms, transfer.first_ms, transfer.last_ms)
        )
        transfer.connection = number
    return made, [Connection(t.connection, t.asked_ms - 0.05, t.asked_ms, t.last_ms or 0, tls) for t in made]


def write(folder: Path, made: Sequence[Transfer], connections: Sequence[Connection], tcp_info_s: float = 0.0) -> None:
    """The three row files."""
    frame([transfer.row() for transfer in made], TRANSFERS).write_ipc_stream(folder / "transfers.arrow")
    frame([connection.row() for connection in connections], CONNECTIONS).write_ipc_stream(folder / "connections.arrow")
    info = [_sample(connection.connection, tick) for connection in connections for tick in range(int(10 * tcp_info_s))]
    frame(info, TCP_INFO).write_ipc_stream(folder / "tcp-info.arrow")


def _sample(connection: int, tick: int) -> dict[str, Any]:
    """Waves, so that there is something to see."""
    nothing = dict.fromkeys(TCP_INFO.schema, 0)
    received = sum(200_000 * (1.5 + math.sin(past / 5 + connection)) for past in range(tick))
    return nothing | {
        "time_ns": START_NS + tick * 100 * MS,
        "connection": connection,
        "rtt_us": round(1_000 * (1.2 + 0.2 * math.sin(tick / 5 + connection))),
        "cwnd": 10,
        "received_bytes": round(received),
        "unread_bytes": 4096 * (tick % 5),
    }


def summary(made: Sequence[Transfer], connections: Sequence[Connection], **changes: Any) -> dict[str, Any]:
    """The summary event that goes with these rows."""
    done = [transfer for transfer in made if transfer.outcome == "done"]
    elapsed_ns = round(max(transfer.last_ms or 0 for transfer in made) * MS)
    times = sorted(round(((transfer.last_ms or 0) - transfer.asked_ms) * MS) for transfer in done) or [0]
    return {
        "event": "summary",
        "start_ns": START_NS,
        "end_ns": START_NS + elapsed_ns,
        "elapsed_ns": elapsed_ns,
        "zones": len({transfer.zone for transfer in made}),
        "done": len(done),
        "failed": 0,
        "retries": sum(transfer.attempt > 1 for transfer in made),
        "records": sum(int(str(transfer.row()["records"])) for transfer in made),
        "bytes": sum(transfer.nbytes for transfer in made),
        "transfer_ns": {"p50": times[len(times) // 2], "p99": times[-1 - len(times) // 100]},
        "connections": {
            "established": len(connections),
            "full_handshakes": sum(connection.handshake == "full" for connection in connections),
        },
    } | changes
