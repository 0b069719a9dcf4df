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
    """Repeats that were added to a run after it was made."""

    first_repeat: int
    order_seed: int
    """Of the order of the trials from that repeat on, up to the next extension."""


class Machine(Record):
    """One of several equal machines that a run is spread over."""

    name: Name
    conditions: dict[str, Any]
    """What the lab's snapshot says of it."""


class Manifest(Record):
    """manifest.json: what was asked for, in which order, by what, on what machine."""

    schema_version: int = SCHEMA_VERSION
    run: str
    dnsrig_version: str
    engine_fingerprint: str = ""
    created: str
    """UTC, ISO 8601."""
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
    """Axis label -> value of the baseline, for the axes that have one."""
    variants: list[Variant]
    order: list[TrialKey]
    order_seed: int
    """Of the repeats that it was made with."""
    repeats: int
    extensions: list[Extension] = Field(default_factory=list)
    servers: dict[str, ServerSource]
    specs: dict[str, TrialSpec]
    """Variant id -> spec with ``repeat`` 0: the trial's spec but for its number."""
    conditions: dict[str, Any]
    """Of the machine that the run was started on."""
    machines: list[Machine] = Field(default_factory=list)
    """What it is spread over, a round (all trials of one repeat) on one of them; empty: all of it ran where it was
    started."""

    @model_validator(mode="after")
    def _refers_to_what_it_has(self) -> Manifest:
        """Every reader looks up axes in variants, and variants and specs by the ids of trials."""
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
        """Whether other tools measured it."""
        return any(spec.imported is not None for spec in self.specs.values())

    def machine_of(self, repeat: int) -> Machine | None:
        """Where the trials of ``repeat``, counted from 1, run: also those that are repeated because they were lost."""
        return self.machines[(repeat - 1) % len(self.machines)] if self.machines else None

    @property
    def measured_under(self) -> dict[str, Any]:
        """The conditions that its trials ran under: of several machines those that are the same on all."""
        first, *others = [machine.conditions for machine in self.machines] or [self.conditions]
        return {name: value for name, value in first.items() if all(other.get(name) == value for other in others)}
