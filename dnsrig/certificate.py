"""The certificate that `dnsrig calibrate` writes: the accuracy of this rig on this machine.

::

    ~/.cache/dnsrig/calibrations/<UTC time>-<4 letters>/
      certificate.json     Certificate
      certificate.html     the same as a page (derived)
      runs/                the run directories of its figures, one for each part: `floor`, `capacity`, `noise`

The manifest of every run names the newest certificate of its machine under ``conditions.calibration`` (`Cited`). So a
report can state the accuracy of the rig, and a trap can check whether the certificate still applies.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from dnsrig.rundir import ClockRecord, Name, Record, Scalar, read_json

CERTIFICATE_VERSION = 1
"""Raised by one whenever an older dnsrig would misread a newer certificate."""
VETH = "veth"
"""The path between hosts on one machine."""
FILE = "certificate.json"
PAGE = "certificate.html"
CITED = "calibration"
"""The key of `Cited` among the conditions of a manifest."""
LASTING = ("kernel", "cpu_model", "cpus", "clocksource", "governor", "nics")
"""Conditions of a machine that may change its figures. A restart changes none."""

Scale = Literal["quick", "standard"]


class Measured(Record):
    """A figure over the trials that have a value."""

    median: float
    low: float
    high: float
    trials: int


class Floor(Record):
    """The latency of the rig itself: of `echo@engine`, which has no work, at a fixed rate."""

    path: str = VETH
    """The path between generator and server: veth, or the label of a `NicPath`."""
    transport: str
    rate_qps: float
    trials: int
    not_done: str = ""
    """Why a trial is not `done`; empty if all are. Its figures count, because they describe the instrument."""
    p50_us: Measured | None = None
    """Latency from the moment when a query was due."""
    p99_us: Measured | None = None
    p99_9_us: Measured | None = None
    lag_p50_us: Measured | None = None
    """Time from that moment to the sending of the query."""
    lag_p99_us: Measured | None = None
    lag_max_us: Measured | None = None


class NicPath(Record):
    """Path from a generator on another machine to the server on this one, through an interface of each."""

    label: str
    """``eth1 – rack-2:eth1``."""
    nic: dict[str, Any]
    """Facts about this machine's interface that may decide a result (`dnsrig.lab.nics.facts`)."""
    machine: str
    machine_nic: dict[str, Any]
    """Facts about the other machine's interface that may decide a result."""
    machine_conditions: dict[str, Any]
    clock: ClockRecord | None = None
    """The other machine's clock, from the trial with the smallest error."""


class Capacity(Record):
    """The highest rate of the instrument against `echo@engine`."""

    transport: str
    new_connections: bool
    """Whether each query uses a new connection, over TLS with a full handshake."""
    trials: int
    not_done: str = ""
    qps: Measured | None = None
    bound_by: Literal["instrument", "server", "not known"] = "not known"
    why: str = ""


class Step(Record):
    """Steps of a clock: the smallest one between two readings, which includes the time of a reading, and the resolution
    that the kernel reports."""

    smallest_ns: int
    resolution_ns: int
    readings: int


class Clock(Record):
    source: str | None
    monotonic: Step
    realtime: Step
    anchor_error_ns: Measured
    """Half of the time between the two readings of an anchor."""
    synchronised: bool | None
    error_bound_us: int | None


class LinkWay(Record):
    """One direction of an emulated link: the values asked for, and the values that its self-test found."""

    asked: dict[str, Any]
    found: dict[str, Any]


class LinkTest(Record):
    """Self-test of a kind of link, which this machine may not have."""

    kind: Name
    works: bool
    missing: str = ""
    """Why this machine does not have such a link."""
    rtt_us: Measured | None = None
    """Round trip: for veth, from refused TCP connections; for other links, from datagrams in both directions."""
    rtt_asked_us: float | None = None
    ways: dict[str, LinkWay] = Field(default_factory=dict)
    wrong: list[str] = Field(default_factory=list)


class Smallest(Record):
    """Smallest difference that a number of repeats on each side shows."""

    repeats: int
    percent: float | None
    """Smallest increase of a latency that shows, in percent; None: no difference shows."""
    low: float | None = None
    high: float | None = None
    """Highest ``percent`` when each measured trial is left out in turn. ``low`` is the lowest."""


class Noise(Record):
    """How much identical trials vary, and so the smallest difference that shows."""

    server: str
    metric: str
    unit: str
    rate_qps: float
    transport: str
    values: list[float]
    """Values of the trials, in their order."""
    not_done: str = ""
    smallest: list[Smallest]
    seed: int


class Disturbance(Record):
    """Something that disturbs the figures, and its remedy."""

    what: str
    grade: Literal["good", "note", "bad", "not known"]
    says: str
    remedy: str = ""


class Certificate(Record):
    """certificate.json."""

    certificate_version: int = CERTIFICATE_VERSION
    id: Name
    machine: str
    """Permanent identity of the machine, whatever its settings; empty: not known."""
    created: str
    duration_s: float
    scale: Scale
    dnsrig_version: str
    engine_fingerprint: str
    conditions: dict[str, Any]
    """Conditions of the machine at the beginning."""
    nic: str = ""
    """Interface that the user named. Without `nic_path`, nothing is measured through it."""
    nic_path: NicPath | None = None
    """Path of the floors that are not measured over veth. All other figures are measured over veth."""
    floors: list[Floor]
    capacities: list[Capacity]
    clock: Clock
    links: list[LinkTest]
    noise: list[Noise]
    disturbances: list[Disturbance]


class Cited(Record):
    """Reference to a certificate in the manifest of a run."""

    id: Name
    created: str
    digest: str
    """SHA-256 of certificate.json."""
    scale: Scale
    dnsrig_version: str
    engine_fingerprint: str
    figures: dict[str, Scalar]
    """Key figures, with the unit at the end of the name."""
    conditions: dict[str, Any]
    """The conditions in `LASTING` at the time of the measurement."""


def read(path: Path) -> Certificate:
    """The certificate at ``path``: the file, or its folder. Raises DnsrigError."""
    return read_json(
        path / FILE if path.is_dir() else path.resolve(),
        Certificate,
        version=("certificate_version", CERTIFICATE_VERSION),
        where_from="`dnsrig calibrate` makes one",
    )


def cited(conditions: Mapping[str, Any]) -> Cited | None:
    """The certificate that a manifest's ``conditions`` name; None: there is no certificate that this version reads."""
    try:
        return Cited.model_validate(conditions.get(CITED))
    except ValidationError:
        return None
