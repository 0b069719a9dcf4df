"""Pairs of versions of one server in a run: what each cost, which defaults differ, and which code ran.

The unit is the trial. Both versions were measured in every round, so the ratio of a cost is taken within rounds, and
drift from round to round is not in it.

Profiles are compared by shares: each count is divided by all samples of its own profile, as `difffolded.pl -n` does
(B. Gregg, Differential Flame Graphs, 2014). Nothing is paired, because a profile of one trial has few samples.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dnsrig import files
from dnsrig.comparison.bisection.record import Search, position_of, search_of, state_of
from dnsrig.comparison.bisection.search import Answer, next_step
from dnsrig.comparison.summary import baseline_of
from dnsrig.rundir import DEFAULTS_FILE, Manifest, ServerSource, Variant
from dnsrig.runs import cpu
from dnsrig.runs.cpu import COSTS, Cost
from dnsrig.runs.profile import Difference, differences
from dnsrig.runs.run import Run
from dnsrig.runs.stalls import stacks_of, stalls_of
from dnsrig.runs.trial import Trial
from dnsrig.servers import all_drivers
from dnsrig.stats import statistics
from dnsrig.stats.statistics import Spread

AN_ANSWER, A_TRIAL = "an answer", "a trial"


@dataclass(frozen=True)
class VersionPair:
    """Two variants that differ in the version of the server under test, and in nothing else."""

    base: Variant
    new: Variant
    base_server: ServerSource
    new_server: ServerSource

    @property
    def label(self) -> str:
        """``bind 9.18.10 → 9.18.11``; what else tells two builds of one version apart is in the variants' labels."""
        versions = [self.base_server.version, self.new_server.version]
        if versions[0] == versions[1]:
            versions = [self.base.label, self.new.label]
        return f"{self.new_server.kind} {' → '.join(versions)}"


@dataclass(frozen=True)
class CostRatio:
    """One cost of both versions, ``PairCosts.per``. A spread is over repeats; the spread of ``ratio`` is over
    rounds."""

    cost: Cost
    base: Spread | None
    new: Spread | None
    ratio: Spread | None
    """New divided by base, within each round that has both; None where it has no base above zero."""


@dataclass(frozen=True)
class PairCosts:
    """All costs of a pair. ``per``: what they are divided by."""

    per: str
    lines: list[CostRatio]


def pairs(run: Run) -> list[VersionPair]:
    """Each version with its baseline, where that is another version of the same server, else with the version before it
    in the matrix. Of a search the two that the change lies between, as far as they were measured."""
    manifest = run.manifest
    if (search := search_of(run)) is not None:
        base, new = _sides(run, search)
        return [_pair(manifest, base, new)] if _differ_in_version(manifest, base, new) else []
    found = []
    for number, new in enumerate(manifest.variants):
        baseline = baseline_of(run, new)
        if baseline is not None and baseline.id == new.id:
            continue
        others = [*([] if baseline is None else [baseline]), *reversed(manifest.variants[:number])]
        earlier = next((each for each in others if _differ_in_version(manifest, each, new)), None)
        found += [_pair(manifest, earlier, new)] if earlier is not None else []
    return found


def _sides(run: Run, search: Search) -> tuple[Variant, Variant]:
    """The last commit that was measured before the answer, and the first from its end on; without an answer the
    ends."""
    state = state_of(run, search)
    step, positions = next_step(state), position_of(run.manifest, search)
    first, last = (step.first, step.last) if isinstance(step, Answer) else (1, state.commits)
    by_position = sorted(run.manifest.variants, key=lambda variant: positions[variant.id])
    before = [variant for variant in by_position if positions[variant.id] < first]
    after = [variant for variant in by_position if positions[variant.id] >= last]
    return (before or by_position)[-1], (after or by_position)[0]


def _pair(manifest: Manifest, base: Variant, new: Variant) -> VersionPair:
    servers = [_server(manifest, each) for each in (base, new)]
    assert servers[0] is not None and servers[1] is not None  # `_differ_in_version` says so
    return VersionPair(base, new, servers[0], servers[1])


def _differ_in_version(manifest: Manifest, base: Variant, new: Variant) -> bool:
    one, other = _server(manifest, base), _server(manifest, new)
    if one is None or other is None or one.kind != other.kind or one == other:
        return False
    return _without_server(manifest, base) == _without_server(manifest, new)


def _server(manifest: Manifest, variant: Variant) -> ServerSource | None:
    spec = manifest.specs[variant.id]
    return spec.server


def _without_server(manifest: Manifest, variant: Variant) -> object:
    spec = manifest.specs[variant.id]
    host = spec.hosts[spec.subject].model_copy(update={"server": None})
    return spec.model_copy(update={"variant": None, "hosts": {**spec.hosts, spec.subject: host}})


def costs_of(run: Run, pair: VersionPair) -> PairCosts:
    """What each cost: an answer where all trials have answers, else a trial. Costs that neither recorded are left
    out."""
    base, new = run.done(pair.base.id), run.done(pair.new.id)
    both = [*base, *new]
    answered = bool(both) and all(cpu.answered(trial) for trial in both)
    lines = [_line(cost, base, new, answered=answered) for cost in COSTS.values()]
    return PairCosts(AN_ANSWER if answered else A_TRIAL, [line for line in lines if line.base or line.new])


def _line(cost: Cost, base: Sequence[Trial], new: Sequence[Trial], *, answered: bool) -> CostRatio:
    ours, theirs = (_by_round(cost, trials, answered=answered) for trials in (new, base))
    ratios = [ours[number] / theirs[number] for number in ours if theirs.get(number)]
    base_spread, new_spread = statistics.spread([*theirs.values()]), statistics.spread([*ours.values()])
    return CostRatio(cost, base_spread, new_spread, statistics.spread(ratios))


def _by_round(cost: Cost, trials: Sequence[Trial], *, answered: bool) -> dict[int, float]:
    amounts = {trial.record.spec.repeat: (cost.of(trial), cpu.answered(trial)) for trial in trials}
    return {
        number: amount / count if answered else amount
        for number, (amount, count) in amounts.items()
        if amount is not None
    }


CONFIGURATIONS = (".conf", ".conf.gz", ".yml", ".yml.gz")
CONFIGURATION_BYTES = 1 << 18
"""Bytes of a configuration that are searched for settings: they precede its zones."""
DEFAULTS_BYTES = 1 << 22
"""Limit for the defaults that a server prints; BIND prints some 10 kB."""


@dataclass(frozen=True)
class Default:
    """A setting whose default is another one; None where a version does not have it."""

    name: str
    base: str | None
    new: str | None
    configured: bool
    """Whether the configuration of the trials names it, so that its default may not have been in force."""


@dataclass(frozen=True)
class Defaults:
    """``unknown``: why nothing can be said, in a sentence; else empty."""

    changed: list[Default]
    unknown: str = ""


def defaults(run: Run, pair: VersionPair) -> Defaults:
    """In the order of the alphabet, settings that both versions have first."""
    if not _prints(pair.new_server):
        return Defaults([], f"{pair.new_server.kind} does not print its defaults.")
    base, new = _printed(run, pair.base, pair.base_server), _printed(run, pair.new, pair.new_server)
    if not base or not new:
        lacking = [server.version for server, found in ((pair.base_server, base), (pair.new_server, new)) if not found]
        return Defaults([], f"{' and '.join(lacking)} printed no defaults.")
    text = _configuration(run, pair.new)
    changed = [Default(name, base.get(name), new.get(name), _names(text, name)) for name in differing(base, new)]
    return Defaults(sorted(changed, key=lambda each: (None in (each.base, each.new), each.name)))


def differing(base: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """
    >>> differing({"a": "1", "b": "2", "c": "3"}, {"a": "1", "b": "5", "d": ""})
    ['b', 'c', 'd']
    """
    return sorted(name for name in {*base, *new} if base.get(name) != new.get(name))


def _prints(server: ServerSource) -> bool:
    known = all_drivers().get(server.kind)
    return known is not None and bool(known.defaults_command)


def _printed(run: Run, variant: Variant, server: ServerSource) -> dict[str, str]:
    """By the first repeat that has them."""
    known = all_drivers()[server.kind]
    for folder in _folders(run, variant):
        if (path := folder / DEFAULTS_FILE).is_file():
            return known.read_defaults(_beginning(run, path, DEFAULTS_BYTES))
    return {}


def _configuration(run: Run, variant: Variant) -> str:
    """All files of a trial's, as far as they are not zones."""
    for folder in _folders(run, variant):
        found = [name for name in files.names(folder, run.directory) if name.endswith(CONFIGURATIONS)]
        if found:
            return "\n".join(_beginning(run, folder / name, CONFIGURATION_BYTES) for name in found)
    return ""


def _beginning(run: Run, path: Path, most_bytes: int) -> str:
    data, _ = files.beginning(path, most_bytes, run.directory)
    return data.decode(errors="replace")


def _folders(run: Run, variant: Variant) -> list[Path]:
    return [trial.directory / "servers" / trial.subject for trial in run.of_variant(variant.id)]


def _names(configuration: str, name: str) -> bool:
    last = re.escape(name.rpartition(".")[2].rpartition(" ")[2])
    return re.search(rf"(?<![\w-]){last}(?![\w-])", configuration) is not None


FEWEST_STACKS = 100
"""Samples of either side: among fewer, a share of a tenth is known to a twentieth."""
STANDARD_ERRORS = 3
"""A difference of shares that is larger is not what sampling brings about. Trials differ as well; so do functions, of
which there are hundreds."""
WHOLE, IN_STALLS, OTHERWISE = "whole", "in stalls", "all of it"


@dataclass(frozen=True)
class Profiles:
    """Stacks of both versions, and which part of the time they are of."""

    base: Counter[str]
    new: Counter[str]
    base_part: str = WHOLE
    new_part: str = WHOLE

    @property
    def functions(self) -> list[Difference]:
        """Functions whose own share differs by more than sampling brings about, the largest difference first."""
        told = [
            each
            for each in differences(self.new, self.base)
            if is_told(each.share, each.other_share, each.samples, each.other_samples)
        ]
        return sorted(told, key=lambda each: -abs(each.share - each.other_share))


def is_told(share: float, other: float, samples: int, others: int) -> bool:
    """Whether two shares, 0..1, of so many samples differ by more than `STANDARD_ERRORS`.

    >>> is_told(0.3, 0.2, 1000, 1000), is_told(0.3, 0.2, 100, 100)
    (True, False)
    """
    together = (share * samples + other * others) / (samples + others)
    error = math.sqrt(together * (1 - together) * (1 / samples + 1 / others))
    return abs(share - other) > STANDARD_ERRORS * error


def profiles(run: Run, pair: VersionPair) -> Iterator[Profiles]:
    """The whole, and the stalls where either version has any: what ran in its stalls against what ran in the other's,
    or in all of the other where that has too few. Nothing where there are too few stacks."""
    base, new = run.done(pair.base.id), run.done(pair.new.id)
    yield from _enough(Profiles(_pooled(base), _pooled(new)))
    stalled = [_in_stalls(trials) for trials in (base, new)]
    if any(found.total() >= FEWEST_STACKS for found in stalled):
        sides = [
            (found, IN_STALLS) if found.total() >= FEWEST_STACKS else (_pooled(trials), OTHERWISE)
            for found, trials in zip(stalled, (base, new), strict=True)
        ]
        yield from _enough(Profiles(sides[0][0], sides[1][0], sides[0][1], sides[1][1]))


def _enough(found: Profiles) -> list[Profiles]:
    return [found] if min(found.base.total(), found.new.total()) >= FEWEST_STACKS else []


def _pooled(trials: Sequence[Trial]) -> Counter[str]:
    found = Counter[str]()
    for trial in trials:
        found.update(trial.stacks)
    return found


def _in_stalls(trials: Sequence[Trial]) -> Counter[str]:
    found = Counter[str]()
    for trial in trials:
        stalls = stalls_of(trial)
        if stalls is not None and stalls.found:
            found += stacks_of(trial, stalls)[0]
    return found
