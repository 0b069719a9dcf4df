"""The manifest of a run: what was asked for, in which order, by what, on which machine."""

from __future__ import annotations

from typing import Any

from pydantic import Field, model_validator

from dnsrig.rundir.base import SCHEMA_VERSION, Name, Record, Scalar
from dnsrig.rundir.spec import ServerSource, TrialSpec, Variant


class TrialKey(Record):
    variant: Name
    repeat: int


class Extension(Record):
    """Repeats that were added to an existing run."""

    first_repeat: int
    order_seed: int
    """Seed of the order of the trials from that repeat to the next extension."""


class Until(Record):
    """A run gets another round until its intervals are narrow (`dnsrig.stats.stopping`)."""

    percent: float
    """Largest distance of an interval's ends from its middle."""
    least: int
    most: int
    """Smallest and largest number of repeats."""
    within_s: float | None = None
    """Time in which the rounds after the least number must fit. A run that is resumed gets as much again."""


class Machine(Record):
    """One of several equal machines that a run is spread over."""

    name: Name
    conditions: dict[str, Any]
    """Conditions of the machine when the run began."""


class Manifest(Record):
    """manifest.json: the request, the order of the trials, the programs and the machines of a run."""

    schema_version: int = SCHEMA_VERSION
    run: str
    dnsrig_version: str
    engine_fingerprint: str = ""
    created: str
    """Time in UTC, ISO 8601."""
    experiment: str
    title: str
    question: str
    sources: list[str]
    scale: str
    document: dict[str, Any]
    """The experiment's TOML with scale and --set applied."""
    procedure: str
    axes: dict[str, list[Scalar]]
    """Axis label -> values, in the order of the matrix."""
    baseline: dict[str, Scalar] = Field(default_factory=dict)
    """Axis label -> value of the baseline, for axes with a baseline."""
    variants: list[Variant]
    order: list[TrialKey]
    order_seed: int
    """Seed of the order of the first repeats, up to the first extension."""
    repeats: int
    extensions: list[Extension] = Field(default_factory=list)
    until: Until | None = None
    """None: the number of repeats was fixed beforehand."""
    servers: dict[str, ServerSource]
    specs: dict[str, TrialSpec]
    """Variant id -> the spec of its trials, with ``repeat`` 0."""
    conditions: dict[str, Any]
    """Conditions of the machine on which the run was started."""
    machines: list[Machine] = Field(default_factory=list)
    """Machines that the run is spread over; all trials of one repeat run on one machine. Empty: all trials run on the
    machine where the run was started."""

    @model_validator(mode="after")
    def _refers_to_what_it_has(self) -> Manifest:
        """Refuse a manifest in which a reader would not find the axis of a variant, or the variant or spec of a
        trial."""
        variants = {variant.id: variant for variant in self.variants}
        for variant in self.variants:
            if lost := next((axis for axis in self.axes if axis not in variant.parameters), None):
                raise ValueError(f"variant {variant.id} has no value of the axis {lost!r}")
        if lost := next(
            (name for name in (*variants, *(k.variant for k in self.order)) if name not in self.specs), None
        ):
            raise ValueError(f"variant {lost} has no spec")
        if lost := next((key.variant for key in self.order if key.variant not in variants), None):
            raise ValueError(f"a trial is of the variant {lost}, which there is not")
        return self

    @property
    def is_imported(self) -> bool:
        """Whether another tool measured the run."""
        return any(spec.imported is not None for spec in self.specs.values())

    def machine_of(self, repeat: int) -> Machine | None:
        """Machine for the trials of ``repeat``, counted from 1, also for lost trials that are repeated."""
        return self.machines[(repeat - 1) % len(self.machines)] if self.machines else None

    @property
    def measured_under(self) -> dict[str, Any]:
        """Conditions that all trials ran under: with several machines, the conditions that are the same on all."""
        first, *others = [machine.conditions for machine in self.machines] or [self.conditions]
        return {name: value for name, value in first.items() if all(other.get(name) == value for other in others)}
