"""Reads a run directory: lazily, and without trusting that it is complete."""

from __future__ import annotations

import copy
import os
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from dnsrig.errors import DnsrigError, UsageError
from dnsrig.rundir import Manifest, NewerSchema, TrialKey, TrialRecord, Variant, read_json, trial_dir
from dnsrig.runs.failures import Failures
from dnsrig.runs.trial import Trial

MOST_NAMED = 5
"""Trials that an error names."""


@dataclass
class Run:
    """A run directory, with its finished trials."""

    directory: Path
    manifest: Manifest

    @classmethod
    def open(cls, directory: Path) -> Run:
        if not directory.is_dir():
            raise DnsrigError(f"there is no run at {directory}", hint="`ls runs/*/` shows the runs made from here")
        return cls(directory, read_json(directory / "manifest.json", Manifest))

    failures: Failures = field(default_factory=Failures, repr=False, compare=False)
    """What failed while it was examined and drawn."""

    @cached_property
    def trials(self) -> list[Trial]:
        """The finished trials, in the order in which they were measured, but those that cannot be read."""
        return [found for _, found in self._read if isinstance(found, Trial)]

    @cached_property
    def unreadable(self) -> list[tuple[TrialKey, str]]:
        """The finished trials whose trial.json is damaged, and what is wrong with it."""
        return [(key, found) for key, found in self._read if isinstance(found, str)]

    @cached_property
    def _read(self) -> list[tuple[TrialKey, Trial | str]]:
        return [(key, found) for key in self.manifest.order if (found := self._trial(key)) is not None]

    def _trial(self, key: TrialKey) -> Trial | str | None:
        """None of one that is not finished, a sentence of one that cannot be read."""
        path = trial_dir(self.directory, key.variant, key.repeat)
        if not os.path.lexists(path / "trial.json"):
            return None
        try:
            record = read_json(path / "trial.json", TrialRecord, inside=self.directory)
        except NewerSchema:
            raise
        except DnsrigError as error:
            return error.message
        machine = self.manifest.machine_of(key.repeat)
        name = machine.name if machine else ""
        found = Trial(path, self._sharing(record), self.failures, machine=name, run_dir=self.directory)
        return found if found.key == key else f"{path / 'trial.json'} is of another trial"

    def _sharing(self, record: TrialRecord) -> TrialRecord:
        """``record`` with the spec of the plan, which is kept once: only the number of the repeat differs."""
        planned = self.manifest.specs.get(record.spec.variant.id, record.spec)
        spec = planned.model_copy(update={"repeat": record.spec.repeat})
        return record.model_copy(update={"spec": spec}) if spec == record.spec else record

    @property
    def is_damaged(self) -> bool:
        """Whether a file of a finished trial is not whole."""
        return bool(self.unreadable) or any(trial.damage for trial in self.trials)

    def as_far_as_whole(self) -> Run:
        """This run for charts: its trials have what lies before the damage of a file."""
        found = copy.copy(self)
        found.__dict__["trials"] = [trial.as_far_as_whole() for trial in self.trials]
        return found

    def only(self, name: str) -> Run:
        """This run with one trial only, by its ``VARIANT/REPEAT``."""
        trials = {f"{trial.key.variant}/{trial.key.repeat}": trial for trial in self.trials}
        variant, _, repeat = name.rpartition("/")
        wanted = f"{variant}/{repeat.lstrip('0')}"
        if wanted not in trials:
            known = ", ".join(list(trials)[:MOST_NAMED])
            raise UsageError(f"the run has no finished trial {name!r}", hint=f"they are VARIANT/REPEAT: {known} …")
        found = copy.copy(self)
        found.__dict__.update(trials=[trials[wanted]], unreadable=[])
        return found

    def of_variant(self, variant: str) -> list[Trial]:
        """In the order of repeats."""
        return sorted(
            (t for t in self.trials if t.record.spec.variant.id == variant), key=lambda t: t.record.spec.repeat
        )

    @property
    def without_valid_trial(self) -> list[Variant]:
        """The variants of which all trials are invalid."""
        outcomes = {v.id: {t.record.outcome for t in self.of_variant(v.id)} for v in self.manifest.variants}
        return [variant for variant in self.manifest.variants if outcomes[variant.id] == {"invalid"}]

    def done(self, variant: str) -> list[Trial]:
        """The trials of a variant that measured to the end."""
        return [trial for trial in self.of_variant(variant) if trial.record.outcome == "done"]
