"""Two runs side by side, or the variants of one: matched, each metric compared, and what differs in the conditions.

The base comes first everywhere, and the new run is given in percent of it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from dnsrig.comparison import run_differences, thresholds
from dnsrig.comparison.criterion import Criterion, without_unit
from dnsrig.comparison.run_differences import Difference, Pair
from dnsrig.comparison.summary import baseline_among, describe, done_samples, main_metric
from dnsrig.comparison.thresholds import Decision, Judgement, Repeats
from dnsrig.errors import UsageError
from dnsrig.metrics import Metric, all_metrics
from dnsrig.rundir import Manifest, Outcome, Scalar, Variant
from dnsrig.runs.run import Run
from dnsrig.stats import samples, statistics
from dnsrig.stats.statistics import Comparison

RESULT = "result"
"""The axis of imported results whose values are the names that the user gave."""
MOST_NAMED = 3
"""Differences that a verdict quotes; all are shown beside it."""


@dataclass(frozen=True)
class Line:
    """One pair under one metric."""

    pair: Pair
    metric: Metric
    base: Repeats
    new: Repeats
    comparison: Comparison


@dataclass(frozen=True)
class Verdict:
    """The judgement of a rule on one pair."""

    pair: Pair
    rule: Criterion
    judgement: Judgement


@dataclass(frozen=True)
class TwoRuns:
    """The comparison of two runs."""

    base: Manifest
    new: Manifest
    machines: list[str]
    """Machines of both runs: repeats are compared within each, and repeats of others are left out. Empty: none, so
    all repeats are compared together."""
    differences: list[Difference]
    only_in_base: list[Variant]
    only_in_new: list[Variant]
    lines: list[Line]
    """By metric, then by variant in the order of the new run's matrix."""
    verdicts: list[Verdict]
    within: dict[str, Scalar] = field(default_factory=dict)
    """The base's values on its axes, if the variants of one run are compared. Both manifests are then this run's."""

    @property
    def decision(self) -> Decision | None:
        """None without a rule. Of a variant that only the base has, no rule can say anything."""
        if not self.verdicts:
            return None
        missing: list[Decision] = ["undecided"] if self.only_in_base else []
        return thresholds.overall([*(verdict.judgement.decision for verdict in self.verdicts), *missing])

    @property
    def without_valid_trial(self) -> bool:
        """Whether all trials of a variant are invalid, on either side."""
        return any({*repeats.outcomes} == {"invalid"} for line in self.lines for repeats in (line.base, line.new))


def compare_runs(
    base: Run, new: Run, metrics: Sequence[str], wanted: Sequence[Criterion], may_differ: Sequence[str] = ()
) -> TwoRuns:
    """``new`` against ``base`` by its main metric, by ``metrics`` and by the metrics of the rules ``wanted``.

    ``may_differ``: names of differences that are no reason against a verdict (`run_differences.differences`).
    """
    named = [rule.of(metric_name(rule.metric, (base, new))) for rule in wanted]
    names = [main_metric(new), *(metric_name(name, (base, new)) for name in metrics), *(rule.metric for rule in named)]
    pairs, only_in_base, only_in_new = match(base.manifest, new.manifest)
    if not pairs:
        raise UsageError(
            "the two runs have no variant in common", hint="variants are matched by their values on the matrix's axes"
        )
    shared = run_differences.shared_machines(base.manifest, new.manifest)
    may_differ = [*may_differ, *(_left_out(base.manifest, shared) if shared else [])]
    nics = _interfaces(base), _interfaces(new)
    differences = run_differences.differences(base.manifest, new.manifest, pairs, may_differ, nics)
    verdicts = [_as_far_as_alike(found, differences) for found in _verdicts(base, new, pairs, named)]
    main, *others = dict.fromkeys(names)
    return TwoRuns(
        base=base.manifest,
        new=new.manifest,
        machines=shared,
        differences=differences,
        only_in_base=only_in_base,
        only_in_new=only_in_new,
        lines=[*_lines(base, new, pairs, [main]), *_lines(base, new, pairs, others)],
        verdicts=verdicts,
    )


def compare_within(run: Run, base: Mapping[str, str], metrics: Sequence[str], wanted: Sequence[Criterion]) -> TwoRuns:
    """Each variant of ``run`` against the one that has the values ``base`` and is the same on all other axes.

    An empty ``base`` is the baseline of the experiment. Trials were interleaved and differ in nothing but the matrix,
    so nothing speaks against a verdict, and repeats are compared round by round where there are enough.
    """
    manifest = run.manifest
    within = _values(manifest, base) if base else dict(manifest.baseline)
    if not within:
        raise UsageError(
            "one run, and its experiment names no baseline", hint="say which variants are the base: --base AXIS=VALUE"
        )
    named = [rule.of(metric_name(rule.metric, [run])) for rule in wanted]
    names = [main_metric(run), *(metric_name(name, [run]) for name in metrics), *(rule.metric for rule in named)]
    against = {variant.id: baseline_among(manifest.variants, within, variant) for variant in manifest.variants}
    pairs = [Pair(other, v) for v in manifest.variants if (other := against[v.id]) is not None and other.id != v.id]
    if not pairs:
        raise UsageError(
            f"no variant is to be compared with {_shown(within)}", hint="the run needs other values on these axes"
        )
    return TwoRuns(
        base=manifest,
        new=manifest,
        machines=[machine.name for machine in manifest.machines],
        differences=[],
        only_in_base=[],
        only_in_new=[variant for variant in manifest.variants if against[variant.id] is None],
        lines=_lines(run, run, pairs, list(dict.fromkeys(names))),
        verdicts=_verdicts(run, run, pairs, named),
        within=within,
    )


def _values(manifest: Manifest, base: Mapping[str, str]) -> dict[str, Scalar]:
    """``base`` as values of the matrix."""
    found = {}
    for axis, text in base.items():
        known = {str(value): value for value in manifest.axes.get(axis, ())}
        if text not in known:
            choice = f"{axis} has {', '.join(known)}" if known else f"axes are {', '.join(manifest.axes) or 'none'}"
            raise UsageError(f"no variant has {axis}={text}", hint=choice)
        found[axis] = known[text]
    return found


def _shown(within: Mapping[str, Scalar]) -> str:
    return " ".join(f"{axis}={value}" for axis, value in within.items())


def _interfaces(run: Run) -> dict[str, run_differences.InterfaceFacts]:
    return {
        host: run_differences.comparable_interface(facts)
        for host, facts in run_differences.interfaces_of_hosts(run).items()
    }


def _left_out(base: Manifest, shared: Collection[str]) -> list[str]:
    """Differences of machines whose repeats are not compared."""
    return ["machines", *(f"machine.{machine.name}" for machine in base.machines if machine.name not in shared)]


def metric_name(name: str, runs: Iterable[Run]) -> str:
    """The metric called ``name``, or ``name`` and its unit; ``p99.9`` is ``p99_9_ms``."""
    name = name.replace(".", "_")
    known = {*all_metrics(), *(name for run in runs for trial in run.trials for name in trial.record.metrics)}
    if name in known:
        return name
    # After a number a digit is its fraction: p99_9_ms is not another p99.
    found = sorted(other for other in known if re.match(rf"{re.escape(name)}_(?!\d)", other))
    if len(found) == 1 and without_unit(found[0]) == name:
        return found[0]
    hint = f"do you mean one of {', '.join(found)}?" if found else "`dnsrig list metrics` shows them"
    raise UsageError(f"there is no metric {name!r}", hint=hint)


def match(base: Manifest, new: Manifest) -> tuple[list[Pair], list[Variant], list[Variant]]:
    """Variants with the same values; and variants of the base and of the new run without a partner.

    Where each run has but one server on an axis, these are compared with each other whatever they are called: two
    builds of a server are two sources. So are two runs of one variant each, where another tool measured one of them:
    its variant has the name that the user gave it. In two imported runs of one name each, these names are no reason
    either.
    """
    if (base.is_imported or new.is_imported) and len(base.variants) == len(new.variants) == 1:
        return [Pair(base.variants[0], new.variants[0])], [], []
    ignored = run_differences.one_server(base) & run_differences.one_server(new)
    if base.is_imported and new.is_imported and len(base.axes[RESULT]) == len(new.axes[RESULT]) == 1:
        ignored |= {RESULT}

    def key(variant: Variant) -> frozenset[tuple[str, Scalar]]:
        return frozenset((axis, value) for axis, value in variant.parameters.items() if axis not in ignored)

    of_base = {key(variant): variant for variant in base.variants}
    pairs = [Pair(of_base[key(variant)], variant) for variant in new.variants if key(variant) in of_base]
    matched = {pair.base.id for pair in pairs}
    only_in_new = [variant for variant in new.variants if key(variant) not in of_base]
    return pairs, [variant for variant in base.variants if variant.id not in matched], only_in_new


def _lines(base: Run, new: Run, pairs: Sequence[Pair], metrics: Sequence[str]) -> list[Line]:
    """One a metric and pair, with p corrected over all of them."""
    lines = []
    comparisons = len(pairs) * len(metrics)
    for metric, pair in ((describe(name), pair) for name in metrics for pair in pairs):
        ours, theirs = _both(base, new, pair, metric.name)
        compared = statistics.nothing_to_compare(metric.better)
        if not ours.unfinished and not theirs.unfinished:
            compared = samples.compare(theirs.samples, ours.samples, metric.better, comparisons)
        lines.append(Line(pair, metric, ours, theirs, compared))
    tested = [index for index, line in enumerate(lines) if line.comparison.p is not None]
    corrected = statistics.holm([p for line in lines if (p := line.comparison.p) is not None])
    for index, p in zip(tested, corrected, strict=True):
        lines[index] = replace(lines[index], comparison=replace(lines[index].comparison, p_corrected=p))
    return lines


def _verdicts(base: Run, new: Run, pairs: Sequence[Pair], wanted: Sequence[Criterion]) -> list[Verdict]:
    cases = [(rule, pair) for rule in wanted for pair in pairs]
    found = thresholds.judge([(rule, *_both(base, new, pair, rule.metric)) for rule, pair in cases])
    return [Verdict(pair, rule, judgement) for (rule, pair), judgement in zip(cases, found, strict=True)]


def _as_far_as_alike(verdict: Verdict, differences: Sequence[Difference]) -> Verdict:
    """Undecided where more differs than was asked for: what the figures show may come from any of it."""
    names = [d.what for d in differences if not d.asked_for and d.concerns(verdict.pair)]
    if not names:
        return verdict
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    told = f"the runs differ in {', '.join(names[:MOST_NAMED])}{more}: --may-differ NAME where that is meant"
    judgement = verdict.judgement
    known = judgement.reason if judgement.decision == "undecided" else f"by the figures a {judgement.decision}"
    return replace(verdict, judgement=replace(judgement, decision="undecided", reason=f"{known}; but {told}"))


def _both(base: Run, new: Run, pair: Pair, metric: str) -> tuple[Repeats, Repeats]:
    shared = run_differences.shared_machines(base.manifest, new.manifest)
    ours, theirs = _repeats(base, pair.base, metric, shared), _repeats(new, pair.new, metric, shared)
    return (ours, theirs) if base is new else (ours.without_rounds(), theirs.without_rounds())


def _repeats(run: Run, variant: Variant, metric: str, shared: Collection[str]) -> Repeats:
    """The repeats on the ``shared`` machines; all repeats if there are none."""
    trials = [trial for trial in run.of_variant(variant.id) if not shared or trial.machine in shared]
    described = describe(metric)
    found = done_samples(trials, described)
    outcomes: Counter[Outcome] = Counter("done" if described.counts(t) else t.record.outcome for t in trials)
    return Repeats(found if shared else found.without_machines(), outcomes)
