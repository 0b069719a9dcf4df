"""What a run can be given when it is resumed: more repeats, and another measurement of its invalid trials.

An invalid trial has no result, so measuring it again chooses nothing. What it measured is kept beside its place, for
whoever looks for the cause.
"""

from __future__ import annotations

import secrets
import shutil
from pathlib import Path

from dnsrig import cached
from dnsrig.errors import UsageError
from dnsrig.experiment import trial_specs
from dnsrig.rundir import Extension, Manifest, TrialKey, TrialRecord, read_json, trial_dir, write_json

ASIDE = ".invalid"
"""Ending of the directory of an invalid trial that was measured again."""


def extended(manifest: Manifest, repeats: int, seed: int | None) -> Manifest:
    """``manifest`` with ``repeats`` repeats of each variant.

    The rounds that it has stay; the new ones are shuffled from ``seed``. Without a seed, one is drawn and recorded.
    """
    if repeats < manifest.repeats:
        raise UsageError(
            f"--repeats {repeats}: the run already has {manifest.repeats}, and repeats can only be added",
            hint=f"leave --repeats out to execute the missing trials, or set more than {manifest.repeats}",
        )
    if repeats == manifest.repeats:
        if seed is not None:
            raise UsageError(
                f"--seed {seed} has no effect: the run already has its {repeats} repeats, in the order of its manifest",
                hint="leave --seed out, or add repeats",
            )
        return manifest
    trial_specs.check_rounds(repeats, len(manifest.machines))
    first = manifest.repeats + 1
    drawn = secrets.randbelow(1 << 32) if seed is None else seed
    more = trial_specs.order([variant.id for variant in manifest.variants], repeats, drawn, first=first)
    extension = Extension(first_repeat=first, order_seed=drawn)
    changes = {"order": [*manifest.order, *more], "repeats": repeats, "extensions": [*manifest.extensions, extension]}
    return manifest.model_copy(update=changes)


def extend(directory: Path, repeats: int, seed: int | None) -> Manifest:
    """Write the extended manifest of the run in ``directory`` and return it."""
    with cached.only_one(directory, "somebody else is executing this run"):
        manifest = extended(read_json(directory / "manifest.json", Manifest), repeats, seed)
        write_json(directory / "manifest.json", manifest)
    return manifest


def invalid(manifest: Manifest, directory: Path) -> list[TrialKey]:
    """The finished trials of the run in ``directory`` that are invalid."""
    return [key for key in manifest.order if _outcome(directory, key) == "invalid"]


def set_invalid_aside(manifest: Manifest, directory: Path) -> None:
    """Rename the directories of invalid trials, so that these are measured again. An older directory is replaced."""
    with cached.only_one(directory, "somebody else is executing this run"):
        for key in invalid(manifest, directory):
            target = trial_dir(directory, key.variant, key.repeat)
            aside = target.with_name(f"{target.name}{ASIDE}")
            shutil.rmtree(aside, ignore_errors=True)
            target.rename(aside)


def _outcome(directory: Path, key: TrialKey) -> str:
    path = trial_dir(directory, key.variant, key.repeat) / "trial.json"
    return read_json(path, TrialRecord, inside=directory).outcome if path.exists() else ""
