"""A fit of a run's smaller sizes, compared with its largest, which the fit has not seen.

If a secondary opens a connection a zone, the port wall (`ports`) is checked beside the fit: a line cannot foresee it,
the law can. The result is then "at least", and is not counted in the coverage of the intervals.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from dnsrig.prediction import fit, path, ports, round_trips, secondaries
from dnsrig.prediction.fit import Forecast, Measured
from dnsrig.rundir import Scalar, TrialRecord, Variant
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial

FAR_S = 5e-3
"""Round trips from here on count as distance: on one machine they take a hundredth."""
A_CONNECTION_EACH = 0.9
"""Connections opened a zone from which a secondary is taken to open one for each. Chosen: one that reuses them opens
far fewer."""
PORT_RANGE = "net.ipv4.ip_local_port_range"


@dataclass(frozen=True)
class Row:
    """The variants of a run that differ in nothing but their size."""

    label: str
    parameters: dict[str, Scalar]
    unit: str
    """``zones`` or ``records``: what the size counts."""
    fitted: tuple[Measured, ...]
    unseen: tuple[Measured, ...]
    """The trials of the largest size."""
    unfinished: int
    """Trials of any size that did not finish, and say nothing here."""
    forecast: Forecast | None
    """The prediction for the largest size; None if the smaller ones are too few."""
    wall_s: float
    """What the port wall asks for at least at the largest size; 0: nothing."""
    example: Trial
    """One of those fitted, of their largest size."""

    @property
    def behind_wall(self) -> bool:
        return self.forecast is not None and self.wall_s > self.forecast.high_s

    @property
    def held(self) -> list[bool]:
        """Whether each trial of the largest size lies where it was expected."""
        if self.forecast is None:
            return []
        if self.behind_wall:
            return [trial.time_s >= self.wall_s for trial in self.unseen]
        return [self.forecast.holds(trial.time_s) for trial in self.unseen]

    @property
    def off(self) -> float:
        """By which factor the largest size was missed, in the median; 1 where most of its trials lie where they were
        expected."""
        if self.forecast is None or self.behind_wall or 2 * sum(self.held) > len(self.held):
            return 1.0
        ratio = self.measured_s / self.forecast.time_s
        return max(ratio, 1 / ratio)

    @property
    def measured_s(self) -> float:
        return statistics.median(trial.time_s for trial in self.unseen)

    @property
    def rtt_s(self) -> float | None:
        """The round trip of the path, if it is a far one."""
        rtt_s = path.rtt_s(self.example)
        return rtt_s if rtt_s is not None and rtt_s >= FAR_S else None

    @property
    def round_trips(self) -> float | None:
        """Round trips of a zone by the fit; None where distance or workers are not known, or the size does not count
        zones."""
        workers = workers_in(self.example)
        if self.rtt_s is None or workers is None or self.forecast is None or self.unit != "zones":
            return None
        each_s = self.forecast.line.each_s
        if each_s <= 0:
            return None
        # Jitter that keeps order makes the round trips of a busy path longer than on an idle one.
        met_s = path.rtt_s(self.example, path.PACKETS_A_ZONE / each_s) or self.rtt_s
        return round_trips.implied(each_s, 1, met_s, workers)

    @property
    def primary_zone_s(self) -> float | None:
        """CPU time of the primary for a zone."""
        used_s = self.example.value("primary_cpu_s")
        return None if used_s is None else used_s / self.example.record.spec.dataset.zones


@dataclass(frozen=True)
class Coverage:
    """How many trials of largest sizes lie where their interval said."""

    held: int
    trials: int
    narrow: int
    """Rows whose interval is within ± `fit.WIDEST`."""
    rows: int
    unfinished: int
    """Trials that are not counted, of any size, because they did not finish."""
    behind_wall: int
    """Trials of largest sizes that are not counted because their ports run out."""
    unfitted: int
    """Trials of largest sizes that are not counted because there are too few below."""


def rows(run: Run) -> list[Row]:
    """One a series of sizes; none of a run whose question is not how long something takes."""
    found = [row for variants in _series(run) if (row := _row(run, variants)) is not None]
    several = {
        axis for row in found for axis, value in row.parameters.items() if value != found[0].parameters.get(axis)
    }
    return [replace(row, label=_label(row.parameters, several)) for row in found]


def _label(parameters: dict[str, Scalar], axes: set[str]) -> str:
    """What tells a series from the others."""
    told = {axis: value for axis, value in parameters.items() if axis in axes} or parameters
    return " ".join(f"{axis}={value}" for axis, value in told.items()) or "only"


def coverage(found: list[Row]) -> Coverage:
    """Over all rows with an interval, without those behind the port wall."""
    counted = [row for row in found if row.forecast is not None and not row.behind_wall]
    held = [one for row in counted for one in row.held]
    narrow = sum(row.forecast.is_narrow for row in counted if row.forecast is not None)
    return Coverage(
        held=sum(held),
        trials=len(held),
        narrow=narrow,
        rows=len(counted),
        unfinished=sum(row.unfinished for row in found),
        behind_wall=sum(len(row.unseen) for row in found if row.behind_wall),
        unfitted=sum(len(row.unseen) for row in found if row.forecast is None),
    )


def workers_in(trial: Trial) -> int | None:
    """Transfers at once of the secondary of a trial; None where nothing says it."""
    spec = trial.record.spec
    host = spec.hosts.get(spec.subject)
    if host is None or host.server is None or host.role != "secondary":
        return None
    return secondaries.workers_of(host.server.kind, host.settings)


def _series(run: Run) -> Iterator[list[Variant]]:
    """Variants that differ in the axes that give the size alone, where there are two sizes or more."""
    variants = run.manifest.variants
    sizes = {variant.id: _sizes(run, variant) for variant in variants}
    axes = [axis for axis in run.manifest.axes if _tells_size([(v.parameters[axis], sizes[v.id]) for v in variants])]
    found: dict[tuple[Scalar, ...], list[Variant]] = {}
    for variant in variants:
        rest = tuple(value for axis, value in variant.parameters.items() if axis not in axes)
        found.setdefault(rest, []).append(variant)
    yield from (row for row in found.values() if len({sizes[variant.id] for variant in row}) > 1)


def _tells_size(pairs: list[tuple[Scalar, tuple[int, int]]]) -> bool:
    """Whether another value of an axis always is another size: numbers that grow with it."""
    if len({value for value, _ in pairs}) < 2 or any(isinstance(value, str | bool) for value, _ in pairs):
        return False
    by_value = sorted({(float(value), size) for value, size in pairs})
    grows = all(a[1] <= b[1] for a, b in pairwise(by_value))
    return grows and len({size for _, size in by_value}) == len({value for value, _ in by_value})


def _sizes(run: Run, variant: Variant) -> tuple[int, int]:
    dataset = run.manifest.specs[variant.id].dataset
    return dataset.zones, dataset.records


def _row(run: Run, variants: list[Variant]) -> Row | None:
    several = len({_sizes(run, variant)[0] for variant in variants}) > 1
    trials = [trial for variant in variants for trial in run.of_variant(variant.id)]
    done = [trial for trial in trials if trial.record.outcome == "done" and trial.time_s is not None]
    sized = sorted(((_size(trial, several), trial) for trial in done), key=lambda pair: pair[0])
    if not sized or sized[0][0] == sized[-1][0]:
        return None
    largest = sized[-1][0]
    fitted = tuple(_measured(size, trial) for size, trial in sized if size < largest)
    example = next(trial for size, trial in reversed(sized) if size < largest)
    parameters = {a: v for a, v in variants[0].parameters.items() if all(o.parameters[a] == v for o in variants)}
    return Row(
        label="",
        parameters=parameters,
        unit="zones" if several else "records",
        fitted=fitted,
        unseen=tuple(_measured(size, trial) for size, trial in sized if size == largest),
        unfinished=len(trials) - len(done),
        forecast=fit.forecast(fitted, largest),
        wall_s=wall_s(example, largest) if several else 0.0,
        example=example,
    )


def _size(trial: Trial, several: bool) -> int:
    dataset = trial.record.spec.dataset
    return dataset.zones if several else dataset.records


def _measured(size: int, trial: Trial) -> Measured:
    assert trial.time_s is not None
    return Measured(size, trial.time_s)


def wall_s(trial: Trial, zones: int) -> float:
    """The port wall of a secondary that did ``trial``, for ``zones`` zones; 0 where it does not open a connection for
    each."""
    record = trial.record
    spec, opened = record.spec, trial.value("connections_opened")
    server = spec.server
    secondary = secondaries.known().get(server.kind) if server else None
    if opened is None or opened < A_CONNECTION_EACH * spec.dataset.zones or len(spec.primaries) != 1:
        return 0.0
    if spec.transfer.quic or (secondary and not secondary.time_wait("xot" if spec.transfer.tls else "tcp")):
        return 0.0
    return ports.time_s(zones, _ports(record))


def _ports(record: TrialRecord) -> int:
    """Ports of the secondary: the ephemeral ports of all its addresses, as its host had them."""
    spec = record.spec
    sysctls = record.read_back.get("hosts", {}).get(spec.subject, {}).get("sysctls", {})
    told = str(sysctls.get(PORT_RANGE, "")).split()
    each = int(told[1]) - int(told[0]) + 1 if len(told) == 2 else ports.PORTS
    return max(1, each) * (1 + len(spec.hosts[spec.subject].source_addresses))
