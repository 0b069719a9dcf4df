"""A search, one round after the other. What to measure next is computed from the finished trials alone."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from dnsrig import cached
from dnsrig.analysis.bisection import record, trials
from dnsrig.analysis.bisection.record import Search
from dnsrig.analysis.bisection.search import Answer, Measure, next_step
from dnsrig.analysis.bisection.state import GOOD, State, Value
from dnsrig.analysis.read import Run
from dnsrig.errors import DnsrigError, UsageError
from dnsrig.experiment import runner
from dnsrig.experiment.bisection import manifest as growing
from dnsrig.rundir import Manifest, check_ours, read_json, write_json
from dnsrig.servers.builds.errors import BuildFailed

ATTEMPTS = 3
"""Attempts to measure a trial that fails because of dnsrig or the machine."""


class Progress(runner.Progress, Protocol):
    """An observer of a search."""

    def step(self, search: Search, state: State, step: Measure) -> None: ...


class Hunt:
    """The search in ``directory``."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.search = read_json(record.path(directory), Search)
        self.manifest = read_json(directory / "manifest.json", Manifest)
        self._values: dict[tuple[str, int], Value] = {}
        """Variant and round -> the value of a finished trial."""

    def run(self, progress: Progress) -> Answer:
        """Measure until there is an answer. Only one process may do so at a time."""
        check_ours(self.directory)
        folder = self.directory / "trials"
        folder.mkdir(exist_ok=True)
        with cached.only_one(folder, "somebody else is executing this search already"):
            while True:
                self._finish(progress)
                state = self.state()
                step = next_step(state)
                if isinstance(step, Answer):
                    return step
                progress.step(self.search, state, step)
                if self._provide(step.commits, progress):
                    self._write(growing.with_round(self.manifest, self.search, step.commits))

    def state(self) -> State:
        """State of the search after the finished trials. Raises UsageError if all trials of the ends lack the
        metric."""
        self._read_new()
        return trials.state(self.manifest, self.search, self._values)

    def _read_new(self) -> None:
        known = set(self._values)
        left = [key for key in self.manifest.order if (key.variant, key.repeat) not in known]
        new = Run(self.directory, self.manifest.model_copy(update={"order": left})).trials
        metric = self.search.criterion.metric
        for trial in new:
            self._values[trial.key.variant, trial.key.repeat] = trials.value_of(trial, metric)
        done = [trial for trial in new if trial.record.outcome == "done"]
        if not known and done and all(trial.value(metric) is None for trial in done):
            raise UsageError(
                f"trials of {self.manifest.experiment} have no {metric}",
                hint=f"its main metric is {done[0].record.spec.main_metric}; `dnsrig list metrics` shows all",
            )

    def _finish(self, progress: Progress) -> None:
        """Execute the missing trials of rounds that have begun. A candidate whose trials keep failing is given up."""
        self._write(growing.without_failed(self.manifest, self.search, self.directory))
        for _ in range(ATTEMPTS):
            if not runner.missing(self.manifest, self.directory):
                return
            runner.execute(self.manifest, self.directory, progress)
        positions = trials.position_of(self.manifest, self.search)
        for position in {positions[key.variant] for key in runner.missing(self.manifest, self.directory)}:
            self._give_up(position, f"its trials failed {ATTEMPTS} times by a fault of dnsrig or the machine", progress)
        self._write(growing.without_failed(self.manifest, self.search, self.directory))

    def _provide(self, positions: tuple[int, ...], progress: Progress) -> bool:
        """Build or install what the next round needs. Return whether everything is there."""
        for position in positions:
            try:
                self._write(growing.with_candidate(self.manifest, self.search, position, progress.note))
            except BuildFailed as error:
                self._give_up(position, error.message.splitlines()[0], progress)
                return False
        return True

    def _give_up(self, position: int, why: str, progress: Progress) -> None:
        """Skip the candidate at ``position`` from now on. Raises DnsrigError if it is an end of the search."""
        name = self.search.candidates[position].name
        if position in (GOOD, len(self.search.candidates) - 1):
            raise DnsrigError(f"{name}, an end of the search, cannot be measured: {why}", hint="choose another end")
        progress.note(f"{name} is stepped around: {why}")
        self.search.failed[position] = why
        write_json(record.path(self.directory), self.search)

    def _write(self, manifest: Manifest) -> None:
        if manifest != self.manifest:
            write_json(self.directory / "manifest.json", manifest)
            self.manifest = manifest


def start(search: Search, experiment: str, scale: str, runs: Path, progress: runner.Progress) -> Path:
    """The directory of a new search, with both ends in its manifest and no trials."""
    runner.check_folders(runs)
    manifest = growing.begun(search, experiment, scale, progress.note)
    manifest = growing.with_candidate(manifest, search, len(search.candidates) - 1, progress.note)
    directory = runner.create(manifest, runs)
    write_json(record.path(directory), search)
    return directory
