"""What `dnsrig calibrate` writes: what this rig can tell, on this machine.

::

    ~/.cache/dnsrig/calibrations/<UTC time>-<4 letters>/
      certificate.json     Certificate
      certificate.html     the same as a page (derived)
      runs/                the run directories that its figures come from, one a part: `floor`, `capacity`, `noise`

Every run names the newest certificate of its machine in its manifest, under ``conditions.calibration`` (`Cited`): so a
report can say what the rig could tell, and a trap whether that still holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from dnsrig.rundir import ClockRecord, LinkKind, Name, Record, Scalar, read_json

CERTIFICATE_VERSION = 1
"""Raised by one whenever an older dnsrig would misread a newer certificate."""
VETH = "veth"
"""The path between hosts on one machine."""
FILE = "certificate.json"
PAGE = "certificate.html"
CITED = "calibration"
"""The key of `Cited` among the conditions of a manifest."""
LASTING = ("kernel", "cpu_model", "cpus", "clocksource", "governor", "nics")
"""Of a machine's conditions those with which its figures may change. A boot alone changes none."""

Scale = Literal["quick", "standard"]


class Measured(Record):
    """A figure over the trials that have one."""

    median: float
    low: float
    high: float
    trials: int


class Floor(Record):
    """What is left of a latency where the server has no work: `echo@engine` at a rate."""

    path: str = VETH
    """The path between generator and server: veth, or the label of a `NicPath`."""
    transport: str
    rate_qps: float
    trials: int
    not_done: str = ""
    """Why a trial is not `done`; empty where all are. Their figures count all the same: it is the instrument that is
    measured."""
    p50_us: Measured | None = None
    """Latencies from the moment at which each query was due."""
    p99_us: Measured | None = None
    p99_9_us: Measured | None = None
    lag_p50_us: Measured | None = None
    """From that moment to the sending."""
    lag_p99_us: Measured | None = None
    lag_max_us: Measured | None = None


class NicPath(Record):
    """From a generator on another machine to the server on this one, through an interface of each."""

    label: str
    """``eth1 – rack-2:eth1``."""
    nic: dict[str, Any]
    """What may decide a result, of the interface of this machine (`dnsrig.lab.nics.facts`)."""
    machine: str
    machine_nic: dict[str, Any]
    """The same of the other machine's interface."""
    machine_conditions: dict[str, Any]
    clock: ClockRecord | None = None
    """The other machine's, as the trial with the smallest error has it."""


class Capacity(Record):
    """The highest rate of the instrument against `echo@engine`."""

    transport: str
    new_connections: bool
    """Whether each query has a connection of its own, over TLS with a full handshake."""
    trials: int
    not_done: str = ""
    qps: Measured | None = None
    bound_by: Literal["instrument", "server", "not known"] = "not known"
    why: str = ""


class Step(Record):
    """A clock: the smallest step seen between two readings, which holds the time of a reading, and what the kernel
    says."""

    smallest_ns: int
    resolution_ns: int
    readings: int


class Clock(Record):
    source: str | None
    monotonic: Step
    realtime: Step
    anchor_error_ns: Measured
    """Half of what passed between the two readings of an anchor pair."""
    synchronised: bool | None
    error_bound_us: int | None


class LinkWay(Record):
    """A direction of an emulated link, as asked and as found by its self-test."""

    asked: dict[str, Any]
    found: dict[str, Any]


class LinkTest(Record):
    """A kind of link that this machine has, or has not."""

    kind: LinkKind
    works: bool
    missing: str = ""
    """Why there is none."""
    rtt_us: Measured | None = None
    """Of plain veth seen by refused TCP connects, else by datagrams both ways."""
    rtt_asked_us: float | None = None
    ways: dict[str, LinkWay] = Field(default_factory=dict)
    wrong: list[str] = Field(default_factory=list)


class Smallest(Record):
    """What so many repeats a side would show."""

    repeats: int
    percent: float | None
    """By so much slower is told; None: no difference, however large."""
    low: float | None = None
    high: float | None = None
    """The same with each measured trial left out in turn."""


class Noise(Record):
    """Repeats of one variant that nothing changes, and so the smallest difference that shows."""

    server: str
    metric: str
    unit: str
    rate_qps: float
    transport: str
    values: list[float]
    """One a trial, in the order of the trials."""
    not_done: str = ""
    smallest: list[Smallest]
    seed: int


class Disturbance(Record):
    """What spoils the figures, and what helps."""

    what: str
    grade: Literal["good", "note", "bad", "not known"]
    says: str
    remedy: str = ""


class Certificate(Record):
    """certificate.json."""

    certificate_version: int = CERTIFICATE_VERSION
    id: Name
    machine: str
    """The same for one machine, whatever its settings; empty where nothing tells machines apart."""
    created: str
    duration_s: float
    scale: Scale
    dnsrig_version: str
    engine_fingerprint: str
    conditions: dict[str, Any]
    """Of the machine, when it began."""
    nic: str = ""
    """The interface that was asked for by name. Without `nic_path` nothing is measured through it."""
    nic_path: NicPath | None = None
    """Through which floors are measured beside those over veth; all other figures are of veth."""
    floors: list[Floor]
    capacities: list[Capacity]
    clock: Clock
    links: list[LinkTest]
    noise: list[Noise]
    disturbances: list[Disturbance]


class Cited(Record):
    """A certificate as a run's manifest names it."""

    id: Name
    created: str
    digest: str
    """SHA-256 of certificate.json."""
    scale: Scale
    dnsrig_version: str
    engine_fingerprint: str
    figures: dict[str, Scalar]
    """The key figures, unit last."""
    conditions: dict[str, Any]
    """Those of `LASTING`, when it was measured."""


def read(path: Path) -> Certificate:
    """The certificate at ``path``: the file, or its folder. Raises DnsrigError."""
    return read_json(
        path / FILE if path.is_dir() else path.resolve(),
        Certificate,
        version=("certificate_version", CERTIFICATE_VERSION),
        where_from="`dnsrig calibrate` makes one",
    )


def cited(conditions: Mapping[str, Any]) -> Cited | None:
    """The certificate that a manifest's ``conditions`` name; None where they name none that this version reads."""
    try:
        return Cited.model_validate(conditions.get(CITED))
    except ValidationError:
        return None
