"""Several generators of one load: each has its share of one schedule, and all begin at the same moment.

Each gets the moment in its own clock. The engine's `merge` combines their results and adds histograms without loss; the
results of each are kept in ``generators/LOAD/HOST``. If one fails, the trial ends.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dnsrig import engine, paths
from dnsrig.analysis.load_result import LoadResult
from dnsrig.procedures import HostRole
from dnsrig.procedures.context import TrialContext
from dnsrig.procedures.instrument import Instrument
from dnsrig.rundir import Scalar, TrialSpec

OPTIONS: dict[str, Scalar] = {"generators": 0}
READY_LIMIT_S = 120.0
"""Time to read zones, open sockets and make sessions."""
LEAD_NS = 500_000_000
"""Time from the agreement to the beginning: many round trips to each machine."""
MERGE_LIMIT_S = 600.0
FOLDER = "generators"


def hosts(options: Mapping[str, Scalar]) -> dict[str, HostRole]:
    """A host for each generator, if the observer is not the only one."""
    count = int(options["generators"])
    return {f"generator-{number}": HostRole(asks=True) for number in range(1, count + 1)}


def are_led(spec: TrialSpec) -> bool:
    """Whether there are several generators, or one on another machine: these begin on command."""
    generators = spec.generators
    return len(generators) > 1 or spec.hosts[generators[0]].machine is not None


@dataclass
class Led:
    """Generators that are ready to begin."""

    context: TrialContext
    name: str
    instruments: dict[str, Instrument]
    """Host -> the instrument there."""
    begin_ns: int = 0

    def begin(self, **what: Any) -> None:
        """Let all generators begin at the same moment."""
        self.begin_ns = time.monotonic_ns() + LEAD_NS
        for host, instrument in self.instruments.items():
            clock = self.context.clocks.of(self.context.host(host))
            instrument.say(start_ns=clock.there(self.begin_ns), **what)

    def wait(self, limit_s: float) -> None:
        """Wait until all have ended."""
        deadline = time.monotonic() + limit_s
        for instrument in self.instruments.values():
            if instrument.summary is None:
                self.context.wait(instrument, limit_s=max(1.0, deadline - time.monotonic()))

    def search(self, limit_s: float) -> None:
        """Execute a ramp: the first generator leads it, and gets the results of the others for each rate."""
        leader, *followers = self.instruments.values()
        deadline = time.monotonic() + limit_s
        while True:
            event = self.context.wait(leader, limit_s=max(1.0, deadline - time.monotonic()), until="try")
            if event["event"] == "summary":
                break
            self.begin(rate_qps=event["rate_qps"])
            for follower in followers:
                leader.say(**self.context.wait(follower, limit_s=limit_s, until="tried"))
        for follower in followers:
            follower.say(end=True)
        self.wait(READY_LIMIT_S)

    def merged(self, out: Path | None) -> LoadResult:
        """Combined result of all generators. Its files go to ``out``, by default to a folder of their own."""
        folders = []
        for host in self.instruments:
            own = folder(self.context, self.name, host)
            if (machine := self.context.host(host).machine) is not None:
                machine.fetch(own)
            folders.append(str(own))
        target = out or folder(self.context, self.name, "all")
        target.mkdir(exist_ok=True)
        summary = merge(folders, target, self.begin_ns)
        self.context.summaries[self.name] = summary
        return LoadResult.model_validate(summary)

    def leaders(self) -> LoadResult:
        """Result of a ramp, from the generator that led it."""
        host, leader = next(iter(self.instruments.items()))
        summary = dict(leader.summary or {})
        clock = self.context.clocks.of(self.context.host(host))
        summary |= {moment: clock.here(summary[moment]) for moment in ("start_ns", "end_ns")}
        self.context.summaries[self.name] = summary
        return LoadResult.model_validate(summary)


def ready(
    context: TrialContext,
    name: str,
    words: Callable[[str], Sequence[str]],
    *,
    reads: Path | None = None,
    writes: bool = True,
) -> Led:
    """Start the generators of the load ``name``, and wait until all can begin. ``words``: arguments of the engine, by
    host; ``reads``: a file in these arguments; ``writes``: whether each writes files."""
    generators = context.spec.generators
    context.instruments.let_watch_go_first()
    started = {}
    for number, host in enumerate(generators, start=1):
        own = folder(context, name, host)
        own.mkdir(parents=True, exist_ok=True)
        context.host(host).make_folder(own)
        machine = context.host(host).machine
        if machine is not None and reads is not None and not reads.is_relative_to(paths.cache()):
            machine.bring_folder(reads.parent)
        shared = [
            f"--segment={number}/{len(generators)}",
            "--led",
            "--until-eof",
            *([f"--out={own}"] if writes else []),
        ]
        started[host] = context.instruments.start(f"{name}-{host}", [*words(host), *shared], host)
    for instrument in started.values():
        context.wait(instrument, limit_s=READY_LIMIT_S, until="ready")
    return Led(context, name, started)


def folder(context: TrialContext, name: str, host: str) -> Path:
    return context.directory / FOLDER / name / host


def merge(folders: Sequence[str], out: Path, begin_ns: int) -> dict[str, Any]:
    """Merge the results in ``folders`` and return the summary. ``begin_ns``: the beginning, in the clock of this
    machine."""
    arguments = ["merge", *folders, f"--out={out}", f"--start-ns={begin_ns}"]
    return engine.summary(arguments, "the generators' results could not be merged", limit_s=MERGE_LIMIT_S)
