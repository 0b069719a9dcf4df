"""`dnsrig run --resume`: which options it accepts, which it refuses, and its dry run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dnsrig.cli import _console, _dry_run, _options
from dnsrig.errors import UsageError
from dnsrig.experiment import resume, runner, trial_specs
from dnsrig.experiment.spread import Executing
from dnsrig.rundir import Manifest, check_ours, read_json
from dnsrig.text import visible

if TYPE_CHECKING:
    from dnsrig.experiment.spread import Executing

_OF_THE_EXPERIMENT = {
    "settings": "--set",
    "scale": "--scale",
    "debug": "--debug",
    "repositories": "--repository",
    "precision": "--precision",
    "most": "--most",
    "within": "--within",
}
_OF_MORE_REPEATS = {"seed": "--seed", "max_trials": "--max-trials"}


@dataclass(frozen=True)
class More:
    """Options that ask for more than the trials that the run lacks."""

    repeats: int | None
    """Number of repeats of each variant."""
    seed: int | None
    max_trials: int
    redo_invalid: bool


def check_options(context: typer.Context, directory: Path) -> None:
    """Refuse options that a resumed run would ignore."""
    given = _options.given(context)
    if "experiment" in given:
        raise UsageError("--resume takes no experiment", hint=f"dnsrig run --resume {directory}")
    for name, option in _OF_THE_EXPERIMENT.items():
        if name in given:
            raise UsageError(
                f"{option} has no effect with --resume: the manifest of the run decides its trials",
                hint=f"start another run with {option}, and compare the two with `dnsrig compare`",
            )
    if "runs" in given:
        raise UsageError("--runs has no effect with --resume: the run stays where it is", hint="leave --runs out")
    for name, option in _OF_MORE_REPEATS.items():
        if name in given and "repeats" not in given:
            raise UsageError(
                f"{option} has no effect with --resume: the manifest of the run decides the order of its trials",
                hint=f"{option} applies to trials that --repeats adds",
            )


def check_authorized(manifest: Manifest, vouched: Sequence[str]) -> None:
    """Refuse to load addresses that the user does not name: somebody else may have made the manifest."""
    may = {ip_address(text) for text in vouched}
    for spec in manifest.specs.values():
        for host in spec.hosts.values():
            if host.authorized and ip_address(host.address) not in may:
                raise UsageError(
                    f"the run loads {host.address}, which is neither loopback nor in the ranges kept for benchmarks",
                    hint=f"if you may load that address, confirm it: --i-am-authorized {host.address}",
                )


def read(directory: Path) -> Manifest:
    """The manifest of the run to resume."""
    manifest = read_json(directory / "manifest.json", Manifest)
    if manifest.is_imported:
        raise UsageError(
            "another tool measured this run, so it cannot be resumed", hint="import all files of the tool at once"
        )
    return manifest


def prepare(manifest: Manifest, directory: Path, more: More, executing: Executing) -> Manifest:
    """The manifest of the run to resume, with the repeats that are added. Invalid trials are set aside, or reported."""
    check_ours(directory)
    executing.check_unchanged(manifest)
    if more.repeats is not None:
        trial_specs.check_size(len(manifest.variants) * more.repeats, more.max_trials)
        manifest = resume.extend(directory, more.repeats, more.seed)
    if more.redo_invalid:
        resume.set_invalid_aside(manifest, directory)
    else:
        _tell_kept(len(resume.invalid(manifest, directory)))
    return manifest


def _tell_kept(trials: int) -> None:
    if trials:
        are = "1 trial is invalid" if trials == 1 else f"{trials} trials are invalid"
        _console.err().print(f"{are}: --redo-invalid measures them again")


def show(manifest: Manifest, directory: Path, more: More, executing: Executing) -> None:
    """Print what would be executed, and how long it would take; raises if the run cannot continue. Nothing is
    written."""
    if more.repeats is not None:
        trial_specs.check_size(len(manifest.variants) * more.repeats, more.max_trials)
        manifest = resume.extended(manifest, more.repeats, more.seed)
    unusable = resume.invalid(manifest, directory)
    again = unusable if more.redo_invalid else []
    wanted = {(key.variant, key.repeat) for key in (*runner.missing(manifest, directory), *again)}
    missing = [key for key in manifest.order if (key.variant, key.repeat) in wanted]
    console = _console.out()
    console.print(visible(f"{manifest.title}: {manifest.question}"))
    finished = len(manifest.order) - len(missing)
    console.print(f"{finished} of {len(manifest.order)} trials are finished; {len(missing)} would be executed")
    if again:
        console.print(f"{len(again)} of these were invalid")
    else:
        _tell_kept(len(unusable))
    for extension in manifest.extensions:
        console.print(f"repeats from {extension.first_repeat} on: order from seed {extension.order_seed}")
    _dry_run.show_order(console, missing, manifest.variants)
    _dry_run.show_time(console, [manifest.specs[key.variant] for key in missing])
    check_ours(directory)
    executing.check_unchanged(manifest)
