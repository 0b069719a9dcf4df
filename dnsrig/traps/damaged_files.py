"""A file of a trial is cut off, damaged or missing, so its data is unknown.

A full disk, an interrupted copy or a faulty medium leaves files that are incomplete or changed. Nothing is derived from
half a file: metrics that need it have no value, traps that need it report `cannot-tell`, and charts show only the part
before the damage. A trial whose trial.json is damaged is left out completely.

How it is detected: trial.json contains the size and the checksum of each file of the trial, as of the trial's end. Runs
of earlier versions have none. In these runs a cut is detected; changed bytes are detected only if the file cannot be
read any more.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

from dnsrig.comparison.summary import main_metric
from dnsrig.rundir import trial_dir
from dnsrig.runs.run import Run
from dnsrig.traps import CLEAR, Conclusion

ORDER = 1
OF_IMPORTED = True
GROUP = "the machine and its clocks"
TITLE = "a file of a trial is damaged"
SOURCE = "checksums in trial.json; Apache Arrow columnar format, streaming"
WEIGHT = "invalidates"
MOST_TOLD = 5
"""Number of damaged repeats of a variant that the summary describes."""


def across(run: Run) -> Iterator[tuple[str, Conclusion]]:
    for variant in run.manifest.variants:
        damaged = {trial.key.repeat: "; ".join(trial.damage.values()) for trial in run.of_variant(variant.id)}
        damaged |= {key.repeat: f"left out: {wrong}" for key, wrong in run.unreadable if key.variant == variant.id}
        damaged = {repeat: wrong for repeat, wrong in sorted(damaged.items()) if wrong}
        trials = [trial_dir(run.directory, variant.id, repeat) for repeat in damaged]
        if damaged:
            yield variant.id, _found(damaged, trials, run)
        elif run.of_variant(variant.id):
            yield variant.id, CLEAR


def _found(damaged: Mapping[int, str], trials: list[Path], run: Run) -> Conclusion:
    """``damaged``: repeat -> what is wrong with its files."""
    told = [f"Repeat {repeat}: {wrong}." for repeat, wrong in damaged.items()]
    more = [f"And {len(told) - MOST_TOLD} more repeats."] if len(told) > MOST_TOLD else []
    return Conclusion(
        "found",
        summary=" ".join(
            [
                *told[:MOST_TOLD],
                *more,
                "Figures that need these files are missing; charts show only the part before the damage.",
            ]
        ),
        evidence={"damaged_repeats": ", ".join(map(str, damaged))},
        metrics=(main_metric(run),),
        remedy=remedy(trials, run.directory),
    )


def remedy(trials: list[Path], run: Path) -> str:
    """Instructions to measure the trials in these directories again."""
    aside = [f"`{shlex.join(['mv', str(trial), f'{trial}.damaged'])}`" for trial in trials]
    return (
        f"Copy the files again from an intact copy. Or set the trials aside with {', '.join(aside)}; then `{shlex.join(['dnsrig', 'run', '--resume', str(run)])}` "
        "measures them again, unless the machine was restarted or changed since the run began."
    )
