"""How often traps raise a false alarm: clean variants of every built-in experiment, each repeated, examined by all
traps.

    .venv/bin/python benches/false_alarms.py [TRIALS]

Needs root and a machine with nothing else to do. At least TRIALS trials (100 by default), as many of each variant; runs
are kept in a temporary folder only if something was found or did not finish, and then the exit status is 1.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from clean import CLEAN
from smoke import parser, sized, status

from dnsrig import traps
from dnsrig.experiment import preparation, runner
from dnsrig.rundir import TrialSpec
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial

TRIALS = sized(100, smoke=2)
CASES = sized(CLEAN, smoke=CLEAN[:1])
NO_ALARM = {"too-few-repeats"}
"""It judges the spread of a few repeats of half a second each, and is right where that is wide."""


class Quiet:
    """Progress that nobody watches."""

    def note(self, text: str) -> None: ...

    def trial_started(self, number: int, total: int, spec: TrialSpec) -> None: ...

    def trial_event(self, spec: TrialSpec, event: dict[str, Any]) -> None: ...

    def trial_ended(self, spec: TrialSpec, trial: Trial | None, reason: str) -> None: ...


def main() -> int:
    asking = parser(__doc__)
    asking.add_argument("trials", nargs="?", type=int, default=TRIALS)
    repeats = -(-asking.parse_args().trials // len(CASES))
    folder = Path(tempfile.mkdtemp(prefix="dnsrig-false-alarms-"))
    outcomes: Counter[str] = Counter()
    verdicts = {name: Counter[str]() for name in traps.all_traps()}
    for number, (experiment, settings) in enumerate(CASES, start=1):
        run = execute(experiment, settings, repeats, folder)
        outcomes.update(trial.record.outcome for trial in run.trials)
        for finding in traps.examine(run):
            verdicts[finding.trap][finding.verdict] += 1
            if finding.verdict == "found":
                print(f"FOUND {finding.trap}, repeat {finding.repeat}: {finding.summary}")
        print(f"{number}/{len(CASES)} {experiment} {' '.join(settings)}: {len(run.trials)} trials", flush=True)
    print(f"outcomes: {dict(outcomes)}")
    for name, counted in verdicts.items():
        print(
            f"{name:24} found {counted['found']:4}  clear {counted['clear']:4}  cannot-tell {counted['cannot-tell']:4}"
        )
    alarms = sum(counted["found"] for name, counted in verdicts.items() if name not in NO_ALARM)
    if status(goals_met=not alarms and set(outcomes) == {"done"}):
        print(f"the runs are kept in {folder}")
        return 1
    shutil.rmtree(folder)
    return 0


def execute(experiment: str, settings: tuple[str, ...], repeats: int, folder: Path) -> Run:
    manifest = preparation.prepare(preparation.Request(experiment, settings=list(settings), repeats=repeats), print)
    directory = runner.create(manifest, folder)
    runner.execute(manifest, directory, Quiet())
    return Run.open(directory)


if __name__ == "__main__":
    sys.exit(main())
