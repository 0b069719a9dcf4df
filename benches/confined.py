"""What the confinement of servers costs: trials of servers that are confined, and of servers that run as root.

    sudo .venv/bin/python benches/confined.py [capacity] [latency] [transfer] [--rounds N]

In each round every server is measured in both ways, in turns: as dnsrig runs it, and as root with all capabilities and
without `no_new_privs`. Each line has both medians, and the median and the range of the ratios within a round. It also
reads back as what each server ran.
"""

from __future__ import annotations

import contextlib
import re
import socket
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from pair import ratios, spread
from smoke import add_parts, new_run, parser, sized

from dnsrig.cli import _app, _fork_server
from dnsrig.confinement import Confinement
from dnsrig.experiment import forks
from dnsrig.lab import ledger
from dnsrig.rundir import TrialRecord
from dnsrig.runs.run import Run

AS_ROOT, FORK = "--as-root", "--fork"
PROGRAMS = {"confined": ("-m", "dnsrig"), "root": (__file__, AS_ROOT)}
AUTHORITATIVE = sized('["bind@forky", "knot@forky", "nsd@forky", "powerdns@forky"]', smoke='["nsd@forky"]')
SERVERS = [f"server={AUTHORITATIVE}", "exclude=[]", "baseline={}"]
UDP = ["transport=udp", "baseline={}"]
LATENCY = ["options.rate_qps=10_000", "options.duration_s=2", "main_metric=p99_ms"]
LATENCIES = ["p50_ms", "p99_ms", "cpu_a_query_us"]
PARTS = {
    "capacity": [
        ("transports", [*SERVERS, *UDP], ["capacity_qps"]),
        ("resolver-transports", UDP, ["capacity_qps"]),
    ],
    "latency": [
        ("transports", [*SERVERS, *UDP, *LATENCY], LATENCIES),
        ("resolver-transports", [*UDP, *LATENCY], LATENCIES),
    ],
    "transfer": [
        (
            "connection-policy",
            [*SERVERS, "policy=pipelined", "transport=tcp", "limit_s=10"],
            ["zones_per_s", "primary_cpu_us_per_zone"],
        ),
    ],
}
"""Experiments, their settings and the metrics of interest. The latency of all is at the same rate."""
MOST_NAMED = 5
BUFFER = re.compile(r'users:\(\("([^"]+)".*?skmem:\(r\d+,rb(\d+),', re.DOTALL)
Values = dict[tuple[str, str], dict[str, dict[int, float]]]
"""Variant and metric -> confined or root -> round -> a figure."""


def main() -> None:
    asking = parser(__doc__)
    asking.add_argument("--rounds", type=int, default=sized(6, smoke=1))
    add_parts(asking, sized([*PARTS], smoke=["transfer"]))
    asked = asking.parse_args()
    found: Values = defaultdict(lambda: defaultdict(dict))
    seen: dict[str, set[str]] = defaultdict(set)
    for number in range(asked.rounds):
        for experiment, settings, metrics in chain.from_iterable(PARTS[part] for part in asked.parts):
            ways = sorted(PROGRAMS, reverse=bool(number % 2))
            for way in ways:
                with buffers(seen[way]):
                    run = Run.open(new_run(experiment, settings, "--repeats", "1", program=PROGRAMS[way]))
                add(found, run, way, number, metrics)
                seen[way].update(line for trial in run.trials for line in ran_as(trial.record))
        print(f"round {number + 1} of {asked.rounds}", flush=True)
    table(found)
    for way, lines in seen.items():
        print(f"\n{way}:", *sorted(lines), sep="\n- ")


def table(found: Values) -> None:
    """Print the rounds in which a server was measured in both ways."""
    print("\n| variant | metric | rounds | confined | root | confined : root |\n" + "| --- " * 6 + "|")
    for (variant, metric), of in found.items():
        confined, root = (of[way] for way in PROGRAMS)
        rounds = sorted(confined.keys() & root.keys())
        ours, theirs = ([values[number] for number in rounds] for values in (confined, root))
        cells = [spread(ours), spread(theirs), spread(ratios(ours, theirs), 2)] if rounds else [""] * 3
        print(f"| {variant} | {metric} | {len(rounds)} | {' | '.join(cells)} |")


def add(found: Values, run: Run, way: str, number: int, metrics: list[str]) -> None:
    """Note the figures of a run, which has a trial of each variant, for round ``number``."""
    for trial in run.trials:
        label = ", ".join(map(str, trial.record.spec.variant.parameters.values()))
        for metric in metrics:
            value = trial.value(metric)
            if trial.record.outcome == "done" and value is not None:
                found[label, metric][way][number] = value


def ran_as(record: TrialRecord) -> Iterator[str]:
    for server in record.servers.values():
        if (had := server.privileges) is not None:
            names = (
                had.capabilities if len(had.capabilities) < MOST_NAMED else [f"{len(had.capabilities)} capabilities"]
            )
            limits = f"no_new_privs {had.no_new_privileges}, own PID namespace {had.own_pid_namespace}"
            yield f"{server.server.label}: user {had.user}, {', '.join(names) or 'no capability'}, {limits}"


@contextlib.contextmanager
def buffers(seen: set[str]) -> Iterator[None]:
    """Read the receive buffers of the UDP sockets of all servers that run meanwhile (ss(8))."""
    over = threading.Event()

    def look() -> None:
        while not over.wait(0.5):
            for namespace in Path("/run/netns").glob(f"{ledger.PREFIX}*"):
                command = ["ip", "netns", "exec", namespace.name, "ss", "-Huanpm", "sport = 53"]
                told = subprocess.run(command, check=False, capture_output=True, text=True).stdout
                seen.update(f"{name}: {size} bytes" for name, size in BUFFER.findall(told))

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield
    finally:
        over.set()
        looking.join()


def as_root() -> None:
    """Let each program that this process confines from now on be root."""
    make = Confinement.__init__

    def made(self: Confinement, *words: Any, **named: Any) -> None:
        make(self, *words, **{**named, "as_root": True})

    Confinement.__init__ = made  # type: ignore[method-assign]
    Confinement.give = give_all  # type: ignore[method-assign]


def give_all(self: Confinement) -> None:
    """Let everybody write in a server's folders: BIND, as root, gives up the right to write in folders of others."""
    for bind in self.binds:
        if not bind.read_only:
            for path in (bind.machine, *bind.machine.rglob("*")):
                if not path.is_symlink():
                    path.chmod(0o777)


if __name__ == "__main__":
    if sys.argv[1:2] == [AS_ROOT]:
        forks.COMMAND = [sys.executable, str(Path(__file__).resolve()), FORK]
        sys.argv[1:2] = []
        _app.main()
    elif sys.argv[1:2] == [FORK]:
        as_root()
        _fork_server.main(socket.socket(fileno=int(sys.argv[2])))
    else:
        main()
