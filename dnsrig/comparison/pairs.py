"""Pairs of versions of one server in a run, and what each cost beside the other.

The unit is the trial. Both versions were measured in every round, so their ratio is taken within rounds: what drifts
from round to round is not in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dnsrig.comparison.bisection.record import Search
from dnsrig.comparison.bisection.search import Answer, next_step
from dnsrig.comparison.bisection.trials import position_of, search_of, state_of
from dnsrig.comparison.summary import baseline_of
from dnsrig.rundir import Manifest, ServerSource, Variant
from dnsrig.runs import costs
from dnsrig.runs.costs import COSTS, Cost
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial
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
    """One cost of both versions, ``PairCosts.per``. A spread is over repeats, that of ``ratio`` over rounds."""

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
    answered = bool(both) and all(costs.answers(trial) for trial in both)
    lines = [_line(cost, base, new, answered=answered) for cost in COSTS.values()]
    return PairCosts(AN_ANSWER if answered else A_TRIAL, [line for line in lines if line.base or line.new])


def _line(cost: Cost, base: Sequence[Trial], new: Sequence[Trial], *, answered: bool) -> CostRatio:
    ours, theirs = (_by_round(cost, trials, answered=answered) for trials in (new, base))
    ratios = [ours[number] / theirs[number] for number in ours if theirs.get(number)]
    base_spread, new_spread = statistics.spread([*theirs.values()]), statistics.spread([*ours.values()])
    return CostRatio(cost, base_spread, new_spread, statistics.spread(ratios))


def _by_round(cost: Cost, trials: Sequence[Trial], *, answered: bool) -> dict[int, float]:
    amounts = {trial.record.spec.repeat: (cost.of(trial), costs.answers(trial)) for trial in trials}
    return {
        number: amount / count if answered else amount
        for number, (amount, count) in amounts.items()
        if amount is not None
    }
