"""How late `load` sends, in trials as users run them: against the reflector and beside real servers, one engine or
several.

    .venv/bin/python benches/send_lag.py [ENGINE ...]

Each ENGINE is a dnsrig-engine; without one, the installed one is measured. All are measured in turn, in shuffled
rounds, at 10,000 queries a second: the server on the last CPU, the instrument with the rig on the first. Needs root,
and a machine with nothing else to do. It prints how busy the machine was.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from pair import spread
from smoke import parser, sized

from dnsrig import paths
from dnsrig.experiment import preparation, trial
from dnsrig.rundir import TrialSpec

ROUNDS = sized(3, smoke=1)
SETTINGS: list[str] = sized([], smoke=["options.duration_s=0.5", 'server=["echo@engine", "nsd@forky"]'])
EXPERIMENT = """
title = "Send lag"
question = "How late are queries sent?"
sources = []
procedure = "latency"
repeats = 1
limit_s = 60
storage = "memory"

[dataset]
kind = "tiny-zones"

[hosts.primary]
server = "echo@engine"

[options]
rate_qps = 10_000
duration_s = 3
warmup_s = 0.5
drain_s = 0.1

[matrix]
"hosts.primary.server" = ["echo@engine", "nsd@forky", "knot@forky", "bind@forky", "powerdns@forky"]
"""
TARGETS_US = {"echo@engine": 15.0}
TARGET_US = 50.0
"""The most send lag at the 99th percentile, beside a server that answers with data."""


def specs(folder: Path) -> dict[str, TrialSpec]:
    """By the server's name."""
    file = folder / "send-lag.toml"
    file.write_text(EXPERIMENT)
    manifest = preparation.prepare(
        preparation.Request(str(file), settings=SETTINGS), lambda text: print(text, file=sys.stderr)
    )
    return {str(spec.variant.parameters["server"]): spec for spec in manifest.specs.values()}


def load(spec: TrialSpec, engine: Path, folder: Path) -> dict[str, Any]:
    """The summary of `load` in one trial."""
    os.environ["DNSRIG_ENGINE"] = str(engine)
    record = trial.run_trial(spec, folder, lambda event: None)
    shutil.rmtree(folder, ignore_errors=True)
    if "load" not in record.instruments:
        raise RuntimeError(f"{spec.variant.id}: {record.outcome}: {record.reason}")
    return record.instruments["load"]


def waited_s() -> float:
    """How long something has waited for a CPU on this machine, since boot."""
    return int(re.search(r"some .*total=(\d+)", Path("/proc/pressure/cpu").read_text())[1]) / 1e6  # type: ignore[index]


def row(name: str, found: list[dict[str, Any]]) -> str:
    cells = [f"{spread([one['lag_ns'][at] / 1e3 for one in found]):>23s}" for at in ("p50", "p99", "p99_9")]
    cells.append(f"{spread([one['sent_latency_ns']['p99'] / 1e3 for one in found]):>23s}")
    cells.append(f"{spread([one['sent_latency_ns']['p99_9'] / 1e3 for one in found]):>23s}")
    cells.append(f"{spread([100 * one['cpu_ns'] / 1e9 / one['duration_s'] for one in found], 2):>15s}")
    return (
        f"  {name:14.14s}" + "".join(cells) + ("" if all(one["real_time"] for one in found) else "  not in real time")
    )


def main() -> None:
    asking = parser(__doc__)
    asking.add_argument("engines", nargs="*", type=Path, metavar="ENGINE")
    engines = [path.resolve() for path in asking.parse_args().engines] or [paths.engine()]
    found: dict[tuple[str, Path], list[dict[str, Any]]] = defaultdict(list)
    order = random.Random(1)
    folder = Path(tempfile.mkdtemp(prefix="dnsrig-bench-"))
    began_s, waited_before_s = time.monotonic(), waited_s()
    try:
        servers = specs(folder)
        for _ in range(ROUNDS):
            for server in order.sample(list(servers), len(servers)):
                for engine in order.sample(engines, len(engines)):
                    found[server, engine].append(load(servers[server], engine, folder / "trial"))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    took_s = time.monotonic() - began_s
    print(
        f"\nSend lag and latency from sent at 10,000 queries/s, µs; CPU of `load`, %; median [range] of {ROUNDS} rounds"
    )
    print(f"  {'engine':14s}" + "".join(f"{name:>23s}" for name in ("lag p50", "lag p99", "lag p99.9", "sent p99", "sent p99.9")) + f"{'CPU':>15s}")  # fmt: skip
    for server in servers:
        print(f"{server}: target p99 ≤ {TARGETS_US.get(server, TARGET_US):g} µs")
        for number, engine in enumerate(engines, start=1):
            print(row(f"{number} {engine.name}", found[server, engine]))
    print(
        f"In {took_s:.0f} s something waited for a CPU for {waited_s() - waited_before_s:.0f} s, the trials' own programs included."
    )


if __name__ == "__main__":
    main()
