"""Which large records arrive: the tables of docs/results/large-records.md, from a run of `large-records`.

    .venv/bin/python benches/large_records.py [RUN]

Without RUN it makes one first, which needs root. The first table has a row for each primary and a column for each
secondary; the second names the RRsets that were lost, and the pairs that lost them.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

from smoke import new_run, parser, sized

from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial
from dnsrig.traps.rrsets_lost import verdict

sys.path.insert(0, str(Path(__file__).parents[1] / "docs"))
from generate import table  # type: ignore[import-not-found]

SETTINGS = sized([], smoke=["dataset.largest_bytes=1000", 'primary=["nsd@forky"]', 'secondary=["knot@forky"]'])
SUFFIX = ".large.example"
COMPARISONS = {
    "records-primary": "at the primary",
    "records-secondary": "by AXFR",
    "records-secondary-updated": "by the update",
}


def main() -> int:
    asking = parser(__doc__)
    asking.add_argument("run", nargs="?", type=Path, metavar="RUN")
    run = Run.open(asking.parse_args().run or new_run("large-records", SETTINGS))
    trials = {key(trial): trial for trial in run.trials}
    print(pairs_table(trials))
    print()
    print(lost_table(trials))
    return 0


Key = tuple[str, str, bool]
"""Primary, secondary, whether the secondary asks for IXFR."""


def key(trial: Trial) -> Key:
    primary, secondary = (trial.record.spec.hosts[host].server for host in ("primary", "secondary"))
    assert primary is not None and secondary is not None
    return primary.label, secondary.label, trial.record.spec.transfer.ixfr


def pairs_table(trials: dict[Key, Trial]) -> str:
    """Of each pair: RRsets that the secondary lost by AXFR, at the update by AXFR, and at the update by IXFR."""
    secondaries = list(dict.fromkeys(secondary for _, secondary, _ in sorted(trials)))
    rows = [
        [primary, of_primary(trials, primary), *(lost(trials, primary, each) for each in secondaries)]
        for primary in dict.fromkeys(primary for primary, _, _ in sorted(trials))
    ]
    return str(table(["primary ↓, secondary →", "primary itself", *secondaries], rows))


def of_primary(trials: dict[Key, Trial], primary: str) -> str:
    counts = {count(trial, "records-primary") for (one, _, _), trial in trials.items() if one == primary}
    return ", ".join(sorted(counts - {"–"}))


def lost(trials: dict[Key, Trial], primary: str, secondary: str) -> str:
    by_axfr, by_ixfr = (trials.get((primary, secondary, ixfr)) for ixfr in (False, True))
    first = [count(by_axfr, "records-secondary"), count(by_axfr, "records-secondary-updated")]
    return ", ".join([*first, count(by_ixfr, "records-secondary-updated")])


def count(trial: Trial | None, comparison: str) -> str:
    """The number of RRsets that differ; – if they were not compared; the outcome of a trial that failed."""
    if trial is None:
        return "–"
    if trial.record.outcome != "done" and comparison not in trial.record.instruments:
        return trial.record.outcome
    summary = trial.record.instruments.get(comparison)
    return "–" if summary is None else str(summary["rrsets_different"])


def lost_table(trials: dict[Key, Trial]) -> str:
    """The RRsets that were lost, together if the same pairs lost them. SOA and NS are lost with the whole zone."""
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for (primary, secondary, _), trial in sorted(trials.items()):
        for comparison, words in COMPARISONS.items():
            for each in trial.record.instruments.get(comparison, {}).get("differences", []):
                at_primary = comparison == "records-primary"
                who = kind(primary) if at_primary else f"{kind(primary)} → {kind(secondary)}"
                seen = found[f"`{each['zone'].removesuffix(SUFFIX)}`"][f"{words}, {verdict(each)}"]
                if each["rtype"] not in ("SOA", "NS") and who not in seen:
                    seen.append(who)
    alike: dict[str, list[str]] = defaultdict(list)
    for zone, cases in sorted(found.items()):
        alike["; ".join(f"{what}: {', '.join(who)}" for what, who in sorted(cases.items()) if who)].append(zone)
    return str(table(["zones", "lost"], [[", ".join(zones), where] for where, zones in alike.items()]))


def kind(label: str) -> str:
    return label.split(" ", maxsplit=1)[0]


if __name__ == "__main__":
    raise SystemExit(main())
