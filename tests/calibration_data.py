"""A certificate out of thin air, and what a run has of it; nothing in it was measured."""

from __future__ import annotations

from typing import Any

from dnsrig.certificate import (
    Capacity,
    Certificate,
    Cited,
    Clock,
    Disturbance,
    Floor,
    LinkTest,
    LinkWay,
    Measured,
    NicPath,
    Noise,
    Smallest,
    Step,
)
from dnsrig.comparison import calibration
from dnsrig.rundir import ClockRecord

CONDITIONS: dict[str, Any] = {
    "kernel": "6.1.0-synthetic",
    "cpu_model": "Synthetic CPU",
    "cpus": 2,
    "clocksource": "tsc",
    "governor": None,
    "nics": {"eth0": "virtio_net 10,000 Mbit/s"},
}


def of(median: float, trials: int = 3) -> Measured:
    return Measured(median=median, low=0.9 * median, high=1.2 * median, trials=trials)


def floor(transport: str, rate_qps: float, p99_us: float) -> Floor:
    return Floor(
        transport=transport,
        rate_qps=rate_qps,
        trials=3,
        p50_us=of(p99_us / 2),
        p99_us=of(p99_us),
        p99_9_us=of(4 * p99_us),
        lag_p50_us=of(0.5),
        lag_p99_us=of(2.5),
        lag_max_us=of(900),
    )


def through_nic() -> Certificate:
    """The same, with floors through an interface as well."""
    path = NicPath(
        label="eth1 – rack-2:eth1",
        nic={"name": "eth1", "driver": "ixgbe", "speed_mbit": 10_000, "offloads": {"rx-gro": True}},
        machine="rack-2",
        machine_nic={"name": "eth1", "driver": "ixgbe", "speed_mbit": 10_000, "offloads": {"rx-gro": False}},
        machine_conditions={"kernel": "6.1.0-other"},
        clock=ClockRecord(
            at_ns=1_000_000_000,
            offset_ns=3_700_000_000,
            drift_ppb=12.0,
            error_ns=20_500,
            realtime_offset_ns=-1_500_000,
            realtime_error_ns=30_000,
            comparisons=3,
        ),
    )
    found = certificate()
    further = [floor("udp", 2000, 91), floor("udp", 10_000, 60), floor("dot", 2000, 170)]
    return found.model_copy(
        update={
            "nic": "eth1",
            "nic_path": path,
            "floors": [*found.floors, *(each.model_copy(update={"path": path.label}) for each in further)],
        }
    )


def certificate() -> Certificate:
    step = Step(smallest_ns=40, resolution_ns=1, readings=100_000)
    way = LinkWay(
        asked={"delay_ms": 10.0, "jitter_ms": 1.0, "loss_percent": 1.0, "rate_mbit": 50.0},
        found={
            "packets": 1000,
            "lost_packets": 9,
            "delay_p5_ms": 9.2,
            "delay_median_ms": 10.1,
            "delay_p95_ms": 10.9,
            "rate_mbit": 49.9,
        },
    )
    shown = {3: None, 5: 42.0, 10: 9.9, 20: 5.5}
    return Certificate(
        id="20250101T120000Z-test",
        machine="0123456789abcdef",
        created="2025-01-01T12:00:00+00:00",
        duration_s=118.2,
        scale="quick",
        dnsrig_version="0.0.0",
        engine_fingerprint="aaaa",
        conditions=CONDITIONS | {"boot_id": "first"},
        floors=[floor("udp", 2000, 61), floor("udp", 10_000, 64), floor("dot", 2000, 120)],
        capacities=[
            Capacity(transport="udp", new_connections=False, trials=1, qps=of(240_000, 1), bound_by="instrument"),
            Capacity(transport="dot", new_connections=True, trials=1, not_done="1 of 1 timeout: <b>too slow</b>"),
        ],
        clock=Clock(
            source="tsc",
            monotonic=step,
            realtime=step,
            anchor_error_ns=of(60, 1000),
            synchronised=False,
            error_bound_us=None,
        ),
        links=[
            LinkTest(kind="veth", works=True, rtt_us=of(24, 1)),
            LinkTest(kind="netem", works=False, missing="this kernel has no netem"),
            LinkTest(kind="tun", works=True, rtt_us=of(20_200, 1), rtt_asked_us=20_000, ways={"forward": way}),
        ],
        noise=[
            Noise(
                server="echo@engine",
                metric="p99_ms",
                unit="ms",
                rate_qps=2000,
                transport="udp",
                values=[0.060, 0.061, 0.059, 0.064, 0.060, 0.062],
                smallest=[Smallest(repeats=n, percent=p, low=p, high=p) for n, p in shown.items()],
                seed=7,
            )
        ],
        disturbances=[
            Disturbance(what="CPUs", grade="good", says="2: the server under test has one for itself"),
            Disturbance(what="load", grade="note", says="<script>1</script> programs", remedy="`top` shows what it is"),
            Disturbance(what="SMT", grade="not known", says="the kernel does not tell"),
        ],
    )


def cited(found: Certificate | None = None, **changed: Any) -> dict[str, Any]:
    """As the conditions of a manifest have it."""
    found = found or certificate()
    made = Cited(
        id=found.id,
        created=found.created,
        digest="d" * 64,
        scale=found.scale,
        dnsrig_version=found.dnsrig_version,
        engine_fingerprint=found.engine_fingerprint,
        figures=calibration.key_figures(found),
        conditions=dict(CONDITIONS),
    )
    return made.model_dump() | changed
