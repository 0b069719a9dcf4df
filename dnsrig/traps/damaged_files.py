"""A file of a trial is cut, damaged or gone: what it would say of the trial is not known.

A full disk, a copy that was interrupted or a faulty medium leaves files of which a part is missing or other. Nothing is
derived from half a file: metrics that need it have no value, traps that need it cannot tell, and charts show what lies
before the damage. A trial whose trial.json is damaged is left out as a whole.

How it is told: trial.json has the size and the checksums of the trial's files as they were when it ended. Runs of
earlier versions have none; of theirs a cut is seen, and bytes that changed only where the file cannot be read any more.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

from dnsrig.analysis.read import Run
from dnsrig.analysis.summary import main_metric
from dnsrig.rundir import trial_dir
from dnsrig.traps import CLEAR, Conclusion

ORDER = 1
OF_IMPORTED = True
TITLE = "a damaged file"
SOURCE = "checksums in trial.json; Apache Arrow columnar format, streaming"
WEIGHT = "invalidates"
MOST_TOLD = 5
"""Repeats of a variant of which the summary says what is wrong."""


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
            [*told[:MOST_TOLD], *more, "Figures that need these are missing; charts show what lies before the damage."]
        ),
        evidence={"damaged_repeats": ", ".join(map(str, damaged))},
        metrics=(main_metric(run),),
        remedy=remedy(trials, run.directory),
    )


def remedy(trials: list[Path], run: Path) -> str:
    """How to measure the trials in these directories once more."""
    aside = [f"`{shlex.join(['mv', str(trial), f'{trial}.damaged'])}`" for trial in trials]
    return (
        f"Copy the files again from where they are whole. Or set the trials aside with {', '.join(aside)}: then `{shlex.join(['dnsrig', 'run', '--resume', str(run)])}` "
        "measures them again, if the machine was not restarted or changed since the run began."
    )
