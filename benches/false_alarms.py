"""How often traps raise a false alarm: clean trials of every built-in experiment, interleaved, and what was found in them.

    .venv/bin/python benches/false_alarms.py [TRIALS]

Needs root and a machine with nothing else to do. Prints a line a trial, and a table at the end; exit status 1 if anything was found.
"""

from __future__ import annotations

import itertools
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from clean import CLEAN

from dnsrig.analysis.read import Trial
from dnsrig.experiment import runner
from dnsrig.rundir import TrialRecord, read_json
from dnsrig.traps import all_traps

TRIALS = 100
SEED = 1


class Quiet:
    def note(self, text: str) -> None: ...

    def trial_started(self, *_: object) -> None: ...

    def trial_event(self, *_: object) -> None: ...

    def trial_ended(self, *_: object) -> None: ...


def main() -> int:
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else TRIALS
    shuffled = random.Random(SEED).sample(CLEAN, len(CLEAN))
    outcomes: Counter[str] = Counter()
    verdicts: dict[str, Counter[str]] = {name: Counter() for name in all_traps()}
    for number, (experiment, settings) in enumerate(itertools.islice(itertools.cycle(shuffled), wanted), start=1):
        trial = execute(experiment, settings)
        outcomes[trial.record.outcome] += 1
        for name, trap in all_traps().items():
            if (conclusion := trap.after(trial)) is None:
                continue
            verdicts[name][conclusion.verdict] += 1
            if conclusion.verdict == "found":
                print(f"FOUND {name}: {conclusion.summary}")
        print(f"{number}/{wanted} {experiment} {' '.join(settings)}: {trial.record.outcome}", flush=True)
    print("outcomes:", dict(outcomes))
    for name, counted in verdicts.items():
        print(f"{name:24} found {counted['found']:4} clear {counted['clear']:4} cannot-tell {counted['cannot-tell']:4}")
    return 1 if any(counted["found"] for counted in verdicts.values()) else 0


def execute(experiment: str, settings: tuple[str, ...]) -> Trial:
    """One trial, by the runner, in a folder that is removed when the trial was read."""
    manifest = runner.prepare(runner.Request(experiment, settings=list(settings), repeats=1), print)
    folder = Path(tempfile.mkdtemp(prefix="dnsrig-false-alarms-"))
    directory = runner.create(manifest, folder)
    runner.execute(manifest, directory, Quiet())
    (record,) = directory.glob("trials/*/*/trial.json")
    return Trial(record.parent, read_json(record, TrialRecord))


if __name__ == "__main__":
    sys.exit(main())
