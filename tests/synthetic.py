"""Builds a complete run directory out of thin air, for tests: nothing in it was measured.

The figures follow a simple made-up law (time grows with the zones, one server runs into a wall of TIME_WAIT),
so that charts and tables have something to show; the shapes are those of dnsrig.rundir.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl
from pydantic import BaseModel

from dnsrig.rundir import (
    Anchor,
    DatasetSpec,
    HostSpec,
    LinkSpec,
    LogDrilldown,
    Machine,
    Manifest,
    Outcome,
    Phase,
    Scalar,
    ServerRecord,
    ServerSource,
    TrialKey,
    TrialRecord,
    TrialSpec,
    Variant,
    trial_dir,
)
from dnsrig.runs.trial import Trial

SECOND = 1_000_000_000
SYSCTLS = {"net.ipv4.ip_local_port_range": "40000 40099", "net.ipv4.tcp_max_tw_buckets": "131072"}
"""Of every synthetic host: few ports, so that a hundred zones meet the wall."""
EXEC_NS = 5_000 * SECOND
"""When every synthetic secondary is executed."""


@dataclass
class Plan:
    """What the synthetic run looks like; the defaults are a small clean one."""

    servers: Sequence[str] = ("bind@system", "knot@system")
    zones: Sequence[int] = (100, 1000)
    repeats: int = 3
    outcomes: dict[tuple[str, int, int], Outcome] = field(default_factory=dict)
    """(server, zones, repeat) -> outcome, where it is not `done`."""
    extra_axes: dict[str, list[Scalar]] = field(default_factory=dict)
    baseline: dict[str, Scalar] = field(default_factory=lambda: {"server": "bind@system"})
    title: str = "Cold start of a secondary with many zones"
    log_example: str = "transfer of 'z000017.example/IN' from 198.18.0.1#53: failed to connect: address not available"
    zone_name: str = "z{index:06}.example"
    limit_s: float = 60.0
    samples: bool = True
    stacks: dict[str, int] = field(default_factory=dict)
    """CPU stacks sampled on the host under test in every trial, where profiles were asked for."""
    seed: int = 1
    slow: dict[tuple[str, int, int], float] = field(default_factory=dict)
    """(server, zones, repeat) -> how many times as long it takes, the rest of it waiting for reads."""
    subject: str = "secondary"
    """``primary``: the run loads a zone, and has no secondary."""
    run: str = "20250101T120000Z-test"
    machines: Sequence[str] = ()
    """Those that it is spread over; each is as the one of a run without, but for its boot id."""


def build(directory: Path, plan: Plan | None = None) -> Path:
    """Write the run that ``plan`` describes to ``directory`` and return it."""
    plan = plan or Plan()
    axes: dict[str, list[Scalar]] = {"server": list(plan.servers), "zones": list(plan.zones)}
    axes |= plan.extra_axes
    variants = [
        Variant(id=f"v{number:02d}", parameters=dict(zip(axes, point, strict=True)))
        for number, point in enumerate(itertools.product(*axes.values()))
    ]
    order = [TrialKey(variant=v.id, repeat=r) for r in range(1, plan.repeats + 1) for v in variants]
    specs = {variant.id: _spec(plan, variant) for variant in variants}
    directory.mkdir(parents=True, exist_ok=True)
    manifest = Manifest(
        run=plan.run,
        dnsrig_version="0.0.0",
        created="2025-01-01T12:00:00Z",
        experiment="synthetic",
        title=plan.title,
        question="How does the time of a cold start grow with the number of zones?",
        sources=["S1: zone transfers, what they cost and what lies about it"],
        scale="quick",
        document={"title": plan.title, "matrix": {"zones": list(plan.zones)}},
        procedure="zone-load" if plan.subject == "primary" else "transfer",
        axes=axes,
        baseline=plan.baseline,
        variants=variants,
        order=order,
        order_seed=plan.seed,
        repeats=plan.repeats,
        servers={name: _server(name) for name in plan.servers},
        specs=specs,
        conditions=_conditions(),
        machines=[Machine(name=name, conditions=_conditions() | {"boot_id": name}) for name in plan.machines],
    )
    _write(directory / "manifest.json", manifest)
    for key in order:
        _write_trial(directory, plan, specs[key.variant], key.repeat)
    return directory


def _write(path: Path, record: BaseModel) -> None:
    """As `dnsrig.rundir.write_json`, which also waits for the disk."""
    path.write_text(record.model_dump_json(indent=2) + "\n")


def known(trial: Trial, **values: float | None) -> None:
    """Makes metrics of ``trial`` be ``values``, whatever its rows say."""
    trial._values.update(values)


def _conditions() -> dict[str, object]:
    return {
        "kernel": {"release": "6.1.0-synthetic", "tcp_max_tw_buckets": 262144},
        "cpu": {"model": "Synthetic CPU", "count": 2, "governor": "performance"},
        "memory_bytes": 8 * 1024**3,
        "clock_synchronised": True,
        "virtualisation": None,
    }


def _server(name: str) -> ServerSource:
    """``bind@9.18.1`` is of that version."""
    kind, _, source = name.partition("@")
    version = source if source[0].isdigit() else "1.2.3"
    return ServerSource(kind=kind, source=source, version=version, packages={kind: f"{version}-1"})


def _spec(plan: Plan, variant: Variant) -> TrialSpec:
    zones = int(variant.parameters["zones"])
    server = _server(str(variant.parameters["server"]))
    loads = plan.subject == "primary"
    primary = HostSpec(
        address="198.18.0.1",
        cpus=[0],
        server=server if loads else _server("knot@system"),
        role="primary",
        under_test=loads,
    )
    secondary = HostSpec(address="198.18.0.2", cpus=[1], server=server, role="secondary", under_test=not loads)
    observer = HostSpec(address="198.18.0.3", cpus=[0])
    (primary if loads else secondary).profile = bool(plan.stacks)
    return TrialSpec(
        run=plan.run,
        experiment="synthetic",
        procedure="zone-load" if loads else "transfer",
        main_metric="load_time_s" if loads else "transfer_time_s",
        variant=variant,
        repeat=0,
        link="veth",
        kernel="running",
        hosts={"primary": primary} | ({} if loads else {"secondary": secondary}) | {"observer": observer},
        links=[LinkSpec(ends=(host, plan.subject)) for host in ("primary", "observer") if host != plan.subject],
        dataset=DatasetSpec(kind="zones", key="zones-1", zones=zones, records=4 * zones, serial=1),
        limit_s=plan.limit_s,
    )


def _write_trial(directory: Path, plan: Plan, base: TrialSpec, repeat: int) -> None:
    spec = base.model_copy(update={"repeat": repeat})
    zones, server = spec.dataset.zones, str(spec.variant.parameters["server"])
    noise = random.Random(f"{plan.seed}/{spec.variant.id}/{repeat}")
    outcome = plan.outcomes.get((server, zones, repeat), "done")
    speed = {"bind@system": 500, "knot@system": 800}.get(server, 300) * noise.uniform(0.9, 1.1)
    finish_s = plan.limit_s if outcome == "timeout" else 0.4 + zones / speed
    waited_s = finish_s * (plan.slow.get((server, zones, repeat), 1.0) - 1)
    finish_s += waited_s
    seen = 0 if outcome == "server-failed" else zones // 3 if outcome == "timeout" else zones
    folder = trial_dir(directory, spec.variant.id, repeat)
    folder.mkdir(parents=True)
    _write(folder / "trial.json", _record(plan, spec, outcome, finish_s, seen))
    _zone_rows(plan, zones, seen, finish_s, noise).write_ipc_stream(folder / "zones.arrow")
    if plan.samples:
        rows = list(_sample_rows(finish_s, seen, noise))
        rows += _waiting_rows(plan.subject, finish_s, waited_s)
        columns = ["host", "source", "metric", "time_ns", "value"]
        pl.DataFrame(rows, schema=columns, orient="row").write_ipc_stream(folder / "samples.arrow")
    if plan.stacks:
        lines = (f"{stack} {count}\n" for stack, count in plan.stacks.items())
        (folder / f"profile-{plan.subject}.folded").write_text("".join(lines))


def _record(plan: Plan, spec: TrialSpec, outcome: Outcome, finish_s: float, seen: int) -> TrialRecord:
    zones = spec.dataset.zones
    server = spec.hosts[spec.subject].server
    assert server is not None
    reasons = {
        "timeout": f"{seen:,} of {zones:,} zones after {spec.limit_s:g} s",
        "server-failed": "the secondary exited with status 1 after 0.3 s",
        "invalid": "the probe missed its schedule by 1.2 s",
        "error": "the rig could not make the host",
    }
    end_ns = EXEC_NS + int(finish_s * SECOND)
    return TrialRecord(
        spec=spec,
        outcome=outcome,
        reason=reasons.get(outcome, ""),
        phases=[
            Phase(name="setup", start=_anchor(EXEC_NS - SECOND), end=_anchor(EXEC_NS - SECOND // 10)),
            Phase(name="measure", start=_anchor(EXEC_NS - SECOND // 10), end=_anchor(end_ns)),
        ],
        servers={
            spec.subject: ServerRecord(
                server=server,
                role=spec.subject,
                host=spec.subject,
                command=["named", "-f"],
                pid=4242,
                exec_ns=EXEC_NS,
                settings={},
                threads=4,
                log_clock_resolution_ns=1_000_000,
            )
        },
        instruments={
            "probe": {
                "event": "summary",
                "outcome": "done",
                "polls": 3 * zones,
                "rate": 2000,
                "resolution_ns": 500_000,
                "cpu_ns": 40_000_000,
            },
            "watch": {"event": "summary", "cpu_ns": 12_000_000, "samples": int(finish_s * 10), "missed_ticks": 0},
        },
        logs={
            spec.subject: LogDrilldown(
                zones=seen,
                first_realtime_ns=None,
                last_realtime_ns=None,
                resolution_ns=1_000_000,
                failures={"no free port": 3},
                examples={"no free port": plan.log_example},
            )
        },
        link_tests=[{"from": "primary", "to": "secondary", "works": True, "rtt_median_us": 31.0 + spec.repeat}],
        read_back={
            "load_1min": 0.2 + spec.repeat / 10,
            "hosts": {host: {"sysctls": dict(SYSCTLS)} for host in spec.hosts},
        },
        metrics=_metrics(outcome, finish_s, zones, seen, spec.main_metric),
    )


def _metrics(outcome: Outcome, finish_s: float, zones: int, seen: int, main: str) -> dict[str, float | None]:
    finished = outcome in ("done", "invalid")
    return {
        main: finish_s if finished else None,
        "time_per_zone_ms": 1e3 * finish_s / zones if finished else None,
        "first_answer_s": 0.2 if seen else None,
        "zones_seen": float(seen),
        "zones_per_s": seen / finish_s,
        "probe_resolution_s": 0.0005,
        "connections_opened": float(seen),
        "time_wait_peak": float(min(seen, 28_232)),
        "transfer_bytes": 900.0 * seen,
        "secondary_cpu_s": 0.7 * finish_s,
        "primary_cpu_s": 0.3 * finish_s,
        "secondary_memory_peak_bytes": 4e7 + 2e4 * seen,
        "retransmissions": 0.0,
    }


def _anchor(time_ns: int) -> Anchor:
    return Anchor(monotonic_ns=time_ns, realtime_ns=1_735_732_800 * SECOND + time_ns, error_ns=200)


def _zone_rows(plan: Plan, zones: int, seen: int, finish_s: float, noise: random.Random) -> pl.DataFrame:
    times = sorted(noise.uniform(0.3, finish_s) for _ in range(max(0, seen - 1))) + [finish_s] * (seen > 0)
    seen_ns = [EXEC_NS + int(time * SECOND) for time in times] + [None] * (zones - seen)
    return pl.DataFrame(
        {
            "zone": [plan.zone_name.format(index=index) for index in range(zones)],
            "last_unseen_ns": [None if t is None else t - 500_000 for t in seen_ns],
            "seen_ns": seen_ns,
            "polls": [3] * zones,
            "serial": [None if t is None else 1 for t in seen_ns],
            "outcome": ["unseen" if t is None else "seen" for t in seen_ns],
        },
        schema_overrides={
            "last_unseen_ns": pl.Int64,
            "seen_ns": pl.Int64,
            "polls": pl.UInt32,
            "serial": pl.UInt32,
        },
    )


def _waiting_rows(host: str, finish_s: float, waited_s: float) -> Iterable[tuple[str, str, str, int, int]]:
    """Waiting for reads comes first, then the work."""
    for tick in range(-2, int(finish_s * 10) + 3):
        waited_us = int(1e6 * min(max(0.0, tick / 10), waited_s))
        yield host, "psi", "io_some_us", EXEC_NS + tick * SECOND // 10, waited_us
        yield host, "cgroup", "memory_file_bytes", EXEC_NS + tick * SECOND // 10, 4096 + 100 * waited_us


def _sample_rows(finish_s: float, seen: int, noise: random.Random) -> Iterable[tuple[str, str, str, int, int]]:
    """Ten samples a second from one before the start to one after the end."""
    busy = {"primary": 0.3, "secondary": 0.7, "observer": 0.1}
    used = dict.fromkeys(busy, 0.0)
    for tick in range(-2, int(finish_s * 10) + 3):
        time_ns = EXEC_NS + tick * SECOND // 10
        share = min(1.0, max(0.0, tick / 10 / finish_s))
        for host, load in busy.items():
            used[host] += 1e5 * load * noise.uniform(0.8, 1.2) * (tick >= 0)
            yield host, "cgroup", "cpu_usage_us", time_ns, int(used[host])
            yield host, "cgroup", "memory_anonymous_bytes", time_ns, int(3e7 + 2e4 * seen * share)
            yield host, "sockets", "tcp_inuse", time_ns, noise.randint(1, 10)
            yield host, "sockets", "tcp_time_wait", time_ns, int(seen * share) if host == "secondary" else 0
        yield "secondary", "tcp", "active_opens", time_ns, int(seen * share)
        yield "secondary", "link:primary", "rx_bytes", time_ns, int(900 * seen * share)
        yield "secondary", "link:primary", "tx_bytes", time_ns, int(300 * seen * share)
        yield "machine", "cpu0", "steal_us", time_ns, 0
