"""Two runs side by side: their variants matched, each metric compared, and what differs in the conditions.

The base comes first everywhere, and the new run is given in percent of it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dnsrig.analysis import rules, statistics
from dnsrig.analysis.metrics import Metric, all_metrics
from dnsrig.analysis.read import Run
from dnsrig.analysis.rules import Decision, Judgement, Repeats, Rule
from dnsrig.analysis.statistics import Comparison
from dnsrig.analysis.summary import describe, done_values, main_metric, measured_metrics
from dnsrig.errors import UsageError
from dnsrig.rundir import DatasetSpec, Manifest, Outcome, Scalar, Variant

UNITS = ("per_s", "s", "ms", "us", "ns", "bytes", "percent", "qps")
"""Endings of a metric's name that may be left out: ``transfer_time`` for ``transfer_time_s``; the longest that fits counts."""

CONDITIONS = (
    *("kernel", "architecture", "system", "cpu_model", "cpus", "memory_total_bytes", "virtualisation", "governor"),
    *("clocksource", "transparent_hugepages", "cgroups", "sysctls"),
)
"""Of a machine's snapshot: what a result may depend on. Left out is what every boot changes."""


@dataclass(frozen=True)
class Pair:
    """A variant of the base and the one of the new run that stands against it."""

    base: Variant
    new: Variant

    @property
    def label(self) -> str:
        return self.new.label


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
    """What a rule says of one pair."""

    pair: Pair
    rule: Rule
    judgement: Judgement


@dataclass(frozen=True)
class Difference:
    """A condition that is not the same in both runs."""

    what: str
    base: str
    new: str

    def __str__(self) -> str:
        return f"{self.what}: {self.base} in the base, {self.new} in the new run"


@dataclass(frozen=True)
class TwoRuns:
    """All that is said of two runs."""

    base: Manifest
    new: Manifest
    differences: list[Difference]
    only_in_base: list[Variant]
    only_in_new: list[Variant]
    lines: list[Line]
    """By metric, then by variant in the order of the new run's matrix."""
    verdicts: list[Verdict]

    @property
    def decision(self) -> Decision | None:
        """None without a rule. Of a variant that only the base has, no rule can say anything."""
        if not self.verdicts:
            return None
        missing: list[Decision] = ["undecided"] if self.only_in_base else []
        return rules.overall([*(verdict.judgement.decision for verdict in self.verdicts), *missing])


def compare_runs(base: Run, new: Run, metrics: Sequence[str], wanted: Sequence[Rule]) -> TwoRuns:
    """``new`` against ``base`` by its main metric, by ``metrics`` and by those of the rules ``wanted``."""
    named = [replace(rule, metric=metric_name(rule.metric, (base, new))) for rule in wanted]
    names = [main_metric(new), *(metric_name(name, (base, new)) for name in metrics), *(rule.metric for rule in named)]
    pairs, only_in_base, only_in_new = match(base.manifest, new.manifest)
    if not pairs:
        raise UsageError(
            "the two runs have no variant in common", hint="variants are matched by their values on the matrix's axes"
        )
    verdicts = [verdict for rule in named for verdict in _verdicts(base, new, pairs, rule)]
    return TwoRuns(
        base=base.manifest,
        new=new.manifest,
        differences=list(differences(base.manifest, new.manifest, pairs)),
        only_in_base=only_in_base,
        only_in_new=only_in_new,
        lines=[line for name in dict.fromkeys(names) for line in _lines(base, new, pairs, describe(name))],
        verdicts=verdicts,
    )


def metric_name(name: str, runs: Iterable[Run]) -> str:
    """The metric called ``name``, or ``name`` and its unit; ``p99.9`` is ``p99_9_ms``."""
    name = name.replace(".", "_")
    known = {*all_metrics(), *(metric.name for run in runs for metric in measured_metrics(run))}
    if name in known:
        return name
    # After a number a digit is its fraction: p99_9_ms is not another p99.
    found = sorted(other for other in known if re.match(rf"{re.escape(name)}_(?!\d)", other))
    if len(found) == 1 and _without_unit(found[0]) == name:
        return found[0]
    hint = f"do you mean one of {', '.join(found)}?" if found else "`dnsrig list metrics` shows them"
    raise UsageError(f"there is no metric {name!r}", hint=hint)


def _without_unit(name: str) -> str:
    return next((name.removesuffix(f"_{unit}") for unit in UNITS if name.endswith(f"_{unit}")), name)


def match(base: Manifest, new: Manifest) -> tuple[list[Pair], list[Variant], list[Variant]]:
    """Variants with the same values; and those of the base and of the new run that stand alone.

    Where each run has but one server on an axis, these are held against each other whatever they are called: two
    builds of a server are two sources.
    """
    ignored = _one_server(base) & _one_server(new)

    def key(variant: Variant) -> frozenset[tuple[str, Scalar]]:
        return frozenset((axis, value) for axis, value in variant.parameters.items() if axis not in ignored)

    of_base = {key(variant): variant for variant in base.variants}
    pairs = [Pair(of_base[key(variant)], variant) for variant in new.variants if key(variant) in of_base]
    matched = {pair.base.id for pair in pairs}
    only_in_new = [variant for variant in new.variants if key(variant) not in of_base]
    return pairs, [variant for variant in base.variants if variant.id not in matched], only_in_new


def differences(base: Manifest, new: Manifest, pairs: Sequence[Pair]) -> Iterable[Difference]:
    """Each condition that may explain a difference, once."""
    yield from _unlike("dnsrig", base.dnsrig_version, new.dnsrig_version)
    for name in ("experiment", "scale", "procedure"):
        yield from _unlike(name, getattr(base, name), getattr(new, name))
    for name in CONDITIONS:
        yield from _unlike(name, base.conditions.get(name), new.conditions.get(name))
    seen: set[Difference] = set()
    for pair in pairs:
        for difference in _of_specs(base, new, pair):
            if difference not in seen:
                seen.add(difference)
                yield difference


def _of_specs(base: Manifest, new: Manifest, pair: Pair) -> Iterable[Difference]:
    """How two matched trials differ in what they were asked to do."""
    one, other = base.specs[pair.base.id], new.specs[pair.new.id]
    for name in ("link", "kernel", "limit_s", "storage", "options"):
        yield from _unlike(name, getattr(one, name), getattr(other, name))
    yield from _unlike("transfer", one.transfer.model_dump(), other.transfer.model_dump())
    for name in ("kind", "zones", "records"):
        yield from _unlike(f"dataset {name}", getattr(one.dataset, name), getattr(other.dataset, name))
    yield from _unlike("dataset parameter", *(_parameters(spec.dataset) for spec in (one, other)))
    for host in dict.fromkeys([*one.hosts, *other.hosts]):
        ours, theirs = one.hosts.get(host), other.hosts.get(host)
        if ours is None or theirs is None:
            yield Difference(f"host {host}", *("none" if h is None else "present" for h in (ours, theirs)))
            continue
        servers = [h.server.label if h.server else "no server" for h in (ours, theirs)]
        yield from _unlike(f"server of the {host}", *servers)
        for name in ("role", "cpus", "sysctls", "settings", "source_addresses", "profile"):
            yield from _unlike(f"{name} of the {host}", getattr(ours, name), getattr(theirs, name))


def _parameters(dataset: DatasetSpec) -> dict[str, Scalar]:
    """Without the number of zones, which every dataset tells by itself."""
    return {name: value for name, value in dataset.parameters.items() if name != "zones"}


def _unlike(what: str, base: Any, new: Any) -> Iterable[Difference]:
    """Nothing where both are alike; of two tables only the entries that are not."""
    if base == new:
        return
    if isinstance(base, dict) and isinstance(new, dict):
        for name in dict.fromkeys([*base, *new]):
            yield from _unlike(f"{what} {name}", base.get(name), new.get(name))
        return
    yield Difference(what, *("not known" if value is None else str(value) for value in (base, new)))


def _one_server(manifest: Manifest) -> set[str]:
    """The axes whose only value is a server."""
    return {axis for axis, values in manifest.axes.items() if len(values) == 1 and str(values[0]) in manifest.servers}


def _lines(base: Run, new: Run, pairs: Sequence[Pair], metric: Metric) -> list[Line]:
    """One a pair, with p corrected over all of them."""
    lines = []
    for pair in pairs:
        ours, theirs = _repeats(base, pair.base, metric.name), _repeats(new, pair.new, metric.name)
        known = not ours.unfinished and not theirs.unfinished and not (ours.at_least and theirs.at_least)
        compared = statistics.compare(theirs.values, ours.values, metric.better) if known else None
        lines.append(Line(pair, metric, ours, theirs, compared or statistics.nothing_to_compare(metric.better)))
    tested = [index for index, line in enumerate(lines) if line.comparison.p is not None]
    corrected = statistics.holm([p for line in lines if (p := line.comparison.p) is not None])
    for index, p in zip(tested, corrected, strict=True):
        lines[index] = replace(lines[index], comparison=replace(lines[index].comparison, p_corrected=p))
    return lines


def _verdicts(base: Run, new: Run, pairs: Sequence[Pair], rule: Rule) -> list[Verdict]:
    repeats = [(_repeats(base, p.base, rule.metric), _repeats(new, p.new, rule.metric)) for p in pairs]
    return [Verdict(pair, rule, found) for pair, found in zip(pairs, rules.judge(rule, repeats), strict=True)]


def _repeats(run: Run, variant: Variant, metric: str) -> Repeats:
    trials = run.of_variant(variant.id)
    described = describe(metric)
    values, at_least = done_values(trials, described)
    outcomes: Counter[Outcome] = Counter("done" if described.counts(t) else t.record.outcome for t in trials)
    return Repeats((*values, *at_least), outcomes, len(at_least))
