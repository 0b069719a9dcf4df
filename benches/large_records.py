"""Which large records arrive: the tables of docs/results/large-records.md, from a run of `large-records`.

    .venv/bin/python benches/large_records.py [RUN]

Without RUN it makes one first, which needs root. The first table has a row for each primary and a column for each
secondary; the second names each RRset that was lost, with its size and the pairs that lost it.
"""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from smoke import parser, scratch, sized

from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial
from dnsrig.traps.rrsets_lost import verdict

sys.path.insert(0, str(Path(__file__).parents[1] / "docs"))
from generate import table  # type: ignore[import-not-found]

SETTINGS = sized(
    [], smoke=["dataset.largest_bytes=1000", 'matrix.primary=["nsd@forky"]', 'matrix.secondary=["knot@forky"]']
)
COMPARISONS = {
    "records-primary": "at the primary",
    "records-secondary": "by AXFR",
    "records-secondary-updated": "by the update",
}


def main() -> int:
    asking = parser(__doc__)
    asking.add_argument("run", nargs="?", type=Path, metavar="RUN")
    run = Run.open(asking.parse_args().run or measured())
    trials = {pair(trial): trial for trial in run.trials}
    print(pairs_table(trials))
    print()
    print(lost_table(trials))
    return 0


def measured() -> Path:
    """The folder of a new run."""
    runs = scratch() or Path("runs")
    words = [word for setting in SETTINGS for word in ("--set", setting)]
    subprocess.run(
        [sys.executable, "-m", "dnsrig", "run", "large-records", "--runs", runs, "--quiet", *words],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return max((runs / "large-records").iterdir())


def pair(trial: Trial) -> tuple[str, str]:
    """The servers of a trial: primary, secondary."""
    primary, secondary = (trial.record.spec.hosts[host].server for host in ("primary", "secondary"))
    assert primary is not None and secondary is not None
    return primary.label, secondary.label


def pairs_table(trials: dict[tuple[str, str], Trial]) -> str:
    """RRsets that the secondary lost by AXFR, and by the update, of each pair."""
    secondaries = list(dict.fromkeys(secondary for _, secondary in sorted(trials)))
    rows = [
        [primary, different(trials, primary, secondaries), *(lost(trials.get((primary, each))) for each in secondaries)]
        for primary in dict.fromkeys(primary for primary, _ in sorted(trials))
    ]
    return str(table(["primary ↓, secondary →", "primary itself", *secondaries], rows))


def different(trials: dict[tuple[str, str], Trial], primary: str, secondaries: list[str]) -> str:
    counts = {count(trials[primary, each], "records-primary") for each in secondaries if (primary, each) in trials}
    return ", ".join(sorted(counts))


def lost(trial: Trial | None) -> str:
    """Of a pair: RRsets lost by AXFR, and by the update."""
    if trial is None:
        return "–"
    if trial.record.outcome != "done":
        return f"{trial.record.outcome}: {trial.record.reason}"
    return f"{count(trial, 'records-secondary')}, {count(trial, 'records-secondary-updated')}"


def count(trial: Trial, comparison: str) -> str:
    summary = trial.record.instruments.get(comparison)
    return "–" if summary is None else str(summary["rrsets_different"])


def lost_table(trials: dict[tuple[str, str], Trial]) -> str:
    """Each RRset that was lost, and where."""
    found: dict[tuple[str, str, str], dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for (primary, secondary), trial in sorted(trials.items()):
        for comparison, words in COMPARISONS.items():
            for each in trial.record.instruments.get(comparison, {}).get("differences", []):
                at_primary = comparison == "records-primary"
                who = kind(primary) if at_primary else f"{kind(primary)} → {kind(secondary)}"
                seen = found[each["zone"], each["rtype"], size(each)][f"{words}, {verdict(each)}"]
                if who not in seen:
                    seen.append(who)
    rows = [
        [f"`{zone}`", rtype, nbytes, "; ".join(f"{what}: {', '.join(who)}" for what, who in sorted(cases.items()))]
        for (zone, rtype, nbytes), cases in sorted(found.items())
    ]
    return str(table(["zone", "type", "records, bytes", "lost"], rows))


def kind(label: str) -> str:
    return label.split(" ", maxsplit=1)[0]


def size(each: dict[str, Any]) -> str:
    return f"{each['records']:,}, {each['bytes']:,}"


if __name__ == "__main__":
    raise SystemExit(main())
