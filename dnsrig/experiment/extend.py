"""More repeats for a run that is there: rounds of all variants, after those that it has."""

from __future__ import annotations

import secrets
from pathlib import Path

from dnsrig import cached
from dnsrig.errors import UsageError
from dnsrig.experiment import plan
from dnsrig.rundir import Extension, Manifest, read_json, write_json


def extended(manifest: Manifest, repeats: int, seed: int | None) -> Manifest:
    """``manifest`` with ``repeats`` repeats of each variant: the rounds that it lacks are shuffled from ``seed``, those
    that it has stay.

    None: a seed is drawn; it is recorded either way.
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
    plan.check_rounds(repeats, len(manifest.machines))
    first = manifest.repeats + 1
    drawn = secrets.randbelow(1 << 32) if seed is None else seed
    more = plan.order([variant.id for variant in manifest.variants], repeats, drawn, first=first)
    extension = Extension(first_repeat=first, order_seed=drawn)
    changes = {"order": [*manifest.order, *more], "repeats": repeats, "extensions": [*manifest.extensions, extension]}
    return manifest.model_copy(update=changes)


def extend(directory: Path, repeats: int, seed: int | None) -> Manifest:
    """Write the extended manifest of the run in ``directory``, whole or not at all, and return it."""
    with cached.only_one(directory, "somebody else is executing this run"):
        manifest = extended(read_json(directory / "manifest.json", Manifest), repeats, seed)
        write_json(directory / "manifest.json", manifest)
    return manifest
