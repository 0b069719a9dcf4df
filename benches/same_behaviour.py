"""Do two engines behave the same? Ten seeded runs and some more; the first difference of each, if there is one.

    .venv/bin/python benches/same_behaviour.py BEFORE AFTER [--only RUN ...] [--seed N]

BEFORE and AFTER are two dnsrig-engine. Compared are generated files, every byte on the wire (a message a line; not how
they are cut into segments), rows of every Arrow file, values in histograms, keys and values of events, exit codes.
Names are compared after the map `RENAMES` of `behaviour/records.py`. Not compared are moments, durations, rates and
CPU: that is what `make bench` is for. Exit code 1 if something differs. Each run has a network namespace of its own, so
nothing disturbs it; needs root, or a kernel that lets users make namespaces.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from behaviour.bench import Bench
from behaviour.capture import own_network
from behaviour.records import IF_ANY, difference
from behaviour.runs import RUNS
from smoke import SMOKE, parser, sized

from dnsrig import paths

TRIES = 3
"""Attempts at a run. A busy machine can make a query late, and so change what follows: only a difference in every
attempt counts."""

SHOWN = 12
"""The most titles that are named."""

Kept = dict[str, list[str]]


def observe(run: str, engine: Path, seed: int) -> Kept:
    """What a run keeps, in a process of its own: it moves into a network namespace and cannot come back."""
    command = [sys.executable, __file__, "--observe", run, str(engine), "--seed", str(seed)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{run} with {engine} failed: {done.stderr[done.stderr.rfind('Error:') :]}")
    kept: Kept = json.loads(done.stdout)
    return kept


def digests(kept: Kept) -> dict[str, str]:
    """The digest of each title."""
    return {title: hashlib.sha256("\n".join(content).encode()).hexdigest()[:16] for title, content in kept.items()}


def differences(before: Kept, after: Kept) -> dict[str, str]:
    """The first difference of every title; also titles that only one of both has, unless the clock decides whether such
    an event occurs."""
    lacking = [title for title in before.keys() ^ after.keys() if not title.endswith(IF_ANY)]
    found = {title: "only before" if title in before else "only after" for title in lacking}
    for title in before.keys() & after.keys():
        if (text := difference(before[title], after[title])) is not None:
            found[title] = text
    return found


def _compare(run: str, before: Path, after: Path, seed: int) -> bool:
    found: dict[str, str] | None = None
    for _ in range(TRIES):
        kept = observe(run, before, seed)
        try:
            latest = differences(kept, observe(run, after, seed))
        except RuntimeError as error:
            print(f"{run:18s} DIFFERS: {error}", flush=True)
            return False
        found = {title: text for title, text in latest.items() if found is None or title in found}
        if not found:
            print(
                f"{run:18s} equal: {len(kept)} files, flows and reports of {sum(map(len, kept.values()))} lines",
                flush=True,
            )
            return True
    assert found
    titles = sorted(found)
    print(
        f"{run:18s} DIFFERS in {len(found)} of {len(kept)}: {', '.join(titles[:SHOWN])}{' …' * (len(titles) > SHOWN)}"
    )
    print(f"  {titles[0]}: {found[titles[0]]}", flush=True)
    return False


def _observed_here(run: str, engine: Path, seed: int) -> None:
    own_network()
    with tempfile.TemporaryDirectory(prefix="dnsrig-behaviour-") as folder:
        bench = Bench(engine, seed, Path(folder))
        RUNS[run](bench)
        json.dump(bench.kept, sys.stdout)


def main() -> int:
    itself = [paths.engine()] * 2 if SMOKE else None
    asking = parser(__doc__)
    asking.add_argument("engines", nargs=sized("+", smoke="*"), metavar="ENGINE", type=Path, default=itself)
    runs = sized([*RUNS], smoke=["generate", "serve", "transfer"])
    asking.add_argument("--only", nargs="+", choices=RUNS, default=runs, metavar="RUN", help=", ".join(RUNS))
    asking.add_argument("--seed", type=int, default=7)
    asking.add_argument("--digests", action="store_true", help="print digests of what one engine does (JSON)")
    asking.add_argument("--observe", choices=RUNS, help=argparse.SUPPRESS)
    arguments = asking.parse_args()
    if arguments.observe:
        _observed_here(arguments.observe, arguments.engines[0], arguments.seed)
        return 0
    if arguments.digests:
        engine = arguments.engines[0].resolve()
        found = {run: digests(observe(run, engine, arguments.seed)) for run in arguments.only}
        print(json.dumps(found, indent=1))
        return 0
    if len(arguments.engines) != 2:
        asking.error("give two engines: BEFORE AFTER")
    before, after = (engine.resolve() for engine in arguments.engines)
    same = [_compare(run, before, after, arguments.seed) for run in arguments.only]
    return 0 if all(same) else 1


if __name__ == "__main__":
    sys.exit(main())
