"""An Unbound that runs already, measured by `dnsrig run` and by dnsperf: the same server, queries, rates and clients.

Unbound is started by hand, on CPU 1 and on loopback, and answers from its own data. In each round both tools measure
every transport at every rate, one after the other, in turn which of them is first. dnsperf prints one latency, from
sending to the answer, of answered queries only; of its histogram the upper ends of the bins are taken. dnsrig counts
from the moment at which a query was due, and a query without an answer counts with the timeout.

The table has the median and the range of the rounds. `--run DIR` keeps the run of dnsrig, for `dnsrig report`.
"""

from __future__ import annotations

import math
import random
import re
import shutil
import socket
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from pair import PEERS, installed, spread
from smoke import parser, sized

from dnsrig.confinement import BindMount, Confinement
from dnsrig.experiment import preparation, runner
from dnsrig.experiment.preparation import Request
from dnsrig.lab import process
from dnsrig.lab.host import Host
from dnsrig.rundir import HostSpec, Manifest, TrialSpec
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial
from dnsrig.servers import driver, keys

ROUNDS = sized(3, smoke=1)
RATES = sized((1_000, 5_000, 20_000), smoke=(200,))
TRANSPORTS = ("udp", "tcp", "dot")
DURATION_S = sized(2.0, smoke=0.5)
CLIENTS, TIMEOUT_S, NAMES = 8, 1, 1000
"""More than 10 clients would wait for a place: Unbound takes as many connections at once (incoming-num-tcp)."""
PORT, DOT_PORT = 5390, 8590
CPU_OF_TOOLS, CPU_OF_SERVER = 0, 1
START_LIMIT_S, DNSPERF_LIMIT_S = 20.0, 60.0
SEEN = "/mnt/files"
UNBOUND = f"""\
server:
  chroot: ""
  username: ""
  pidfile: ""
  do-daemonize: no
  use-syslog: no
  interface: 127.0.0.1@{PORT}
  interface: 127.0.0.1@{DOT_PORT}
  tls-port: {DOT_PORT}
  tls-service-key: {SEEN}/{keys.PRIVATE_KEY_FILE}
  tls-service-pem: {SEEN}/{keys.CERTIFICATE_FILE}
  local-zone: "example.com." redirect
  local-data: "example.com. A 192.0.2.1"
"""
EXPERIMENT = f"""\
title = "An Unbound that runs"
question = "How fast does it answer, by rate and transport?"
procedure = "latency"
limit_s = 60
hosts.resolver.server = "running@127.0.0.1:{PORT},dot={DOT_PORT}"
hosts.observer.cpus = [{CPU_OF_TOOLS}]
options = {{ serve_as = "resolver", edns_bytes = 0, clients = {CLIENTS}, timeout_s = {TIMEOUT_S} }}
matrix = {{ "options.transport" = {[*TRANSPORTS]}, "options.rate_qps" = {[*RATES]} }}
"""
Key = tuple[str, int]
Figures = dict[str, float]


def machine(cpu: int) -> Host:
    """This machine, without a network of its own."""
    return Host("machine", HostSpec(address="127.0.0.1", cpus=[cpu]), namespace="")


@contextmanager
def unbound(folder: Path) -> Iterator[None]:
    keys.make().write(folder, private=True)
    (folder / "unbound.conf").write_text(UNBOUND)
    root = installed("unbound", *driver("unbound").packages).path
    confined = Confinement(root, [BindMount(folder, SEEN)], as_root=True)
    with (folder / "log").open("wb") as log:
        command = ["unbound", "-d", "-c", f"{SEEN}/unbound.conf"]
        server = process.start("unbound", machine(CPU_OF_SERVER), command, confined=confined, stdout=log, stderr=log)
        try:
            _await(server, folder / "log")
            yield
        finally:
            server.stop()


def _await(server: process.Process, log: Path) -> None:
    deadline = time.monotonic() + START_LIMIT_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", PORT), 1).close()
            return
        except OSError:
            if not server.running or time.monotonic() > deadline:
                raise RuntimeError(f"Unbound did not start: {log.read_text()[-500:]}") from None
            time.sleep(0.05)


def dnsperf(folder: Path, transport: str, rate: int) -> Figures:
    root = installed("peers", *PEERS).path
    port = DOT_PORT if transport == "dot" else PORT
    command = ["dnsperf", "-s", "127.0.0.1", "-p", str(port), "-m", transport, "-d", f"{SEEN}/queries.txt",
               "-Q", str(rate), "-c", str(CLIENTS), "-l", f"{DURATION_S:g}", "-t", str(TIMEOUT_S),
               "-O", "latency-histogram"]  # fmt: skip
    confined = Confinement(root, [BindMount(folder, SEEN)], as_root=True)
    with (folder / "dnsperf.txt").open("wb") as output:
        started = process.start(
            "dnsperf", machine(CPU_OF_TOOLS), command, confined=confined, stdout=output, stderr=output
        )
        try:
            status = started.popen.wait(DNSPERF_LIMIT_S)
        finally:
            started.stop()
    text = (folder / "dnsperf.txt").read_text(errors="replace")
    if status:
        raise RuntimeError(f"dnsperf ended with {status}: {text[-500:]}")
    return printed(text)


def printed(text: str) -> Figures:
    """The figures in dnsperf's output."""
    end = text.partition("Statistics:")[2]
    counts = {name: int(count) for name, count in re.findall(r"Queries (sent|completed|lost): +(\d+)", end)}
    bins = [(float(upper) * 1e3, int(count)) for upper, count in re.findall(r"[\d.]+ - ([\d.]+): +(\d+)", end)]
    took = re.search(r"Run time \(s\): +([\d.]+)", end)
    return {
        "qps": counts["sent"] / float(took[1]) if took else math.nan,
        "unanswered": counts["sent"] - counts["completed"],
        "p50": at(bins, 50),
        "p99": at(bins, 99),
    }


def at(bins: list[tuple[float, int]], percent: float) -> float:
    """The upper end of the bin with the percentile."""
    total, seen = sum(count for _, count in bins), 0
    for upper_ms, count in bins:
        seen += count
        if seen >= percent / 100 * total:
            return upper_ms
    return math.nan


def of_trial(trial: Trial) -> dict[str, Figures]:
    load = trial.load
    common = {"qps": load.sent / load.span_s if load.span_s else math.nan, "unanswered": load.sent - load.answered}
    found = {}
    for name, latency in (("from due", load.latency_ns), ("from sending", load.sent_latency_ns)):
        each = {key: (latency.get(key) or math.nan) / 1e6 for key in ("p50", "p99")}
        found[f"dnsrig, {name}"] = {**common, **each}
    return found


class Quiet:
    """Nothing is printed while trials run."""

    def note(self, text: str) -> None:
        print(text)

    def trial_started(self, number: int, total: int, spec: TrialSpec) -> None: ...

    def trial_event(self, spec: TrialSpec, event: dict[str, object]) -> None: ...

    def trial_ended(self, spec: TrialSpec, trial: Trial | None, reason: str) -> None:
        if trial is None or trial.record.outcome != "done":
            print(f"  {spec.variant.label}: {reason or (trial and trial.record.reason)}")


def measured(folder: Path) -> tuple[Path, dict[tuple[str, int, str], list[Figures]]]:
    """The run directory, and the figures of each round by transport, rate and tool."""
    (folder / "queries.txt").write_text("".join(f"name{number}.example.com A\n" for number in range(NAMES)))
    (folder / "running.toml").write_text(EXPERIMENT)
    setting = f'queries.file="{folder / "queries.txt"}"'
    request = Request(
        str(folder / "running.toml"), settings=[setting, f"options.duration_s={DURATION_S}"], repeats=ROUNDS
    )
    found: dict[tuple[str, int, str], list[Figures]] = defaultdict(list)
    with unbound(folder):
        manifest = preparation.prepare(request, print)
        directory = runner.create(manifest, folder / "runs")
        for number in range(1, ROUNDS + 1):
            works = [partial(_round, manifest, directory, number), partial(_peers, folder, found)]
            for work in works if number % 2 else reversed(works):
                work()
    for trial in Run.open(directory).trials:
        options = trial.record.spec.options
        if trial.record.outcome == "done":
            for tool, figures in of_trial(trial).items():
                found[str(options["transport"]), int(options["rate_qps"]), tool].append(figures)
    return directory, found


def _round(manifest: Manifest, directory: Path, number: int) -> None:
    order = [key for key in manifest.order if key.repeat == number]
    runner.execute(manifest.model_copy(update={"order": order}), directory, Quiet())


def _peers(folder: Path, found: dict[tuple[str, int, str], list[Figures]]) -> None:
    each = [(transport, rate) for transport in TRANSPORTS for rate in RATES]
    for transport, rate in random.sample(each, len(each)):
        found[transport, rate, "dnsperf"].append(dnsperf(folder, transport, rate))


def table(found: dict[tuple[str, int, str], list[Figures]]) -> Iterator[str]:
    yield "| transport | queries/s | measured by | rounds | sent/s | without an answer | p50, ms | p99, ms |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    for transport in TRANSPORTS:
        for rate in RATES:
            for tool in ("dnsrig, from due", "dnsrig, from sending", "dnsperf"):
                if rows := found.get((transport, rate, tool)):
                    each = {name: [row[name] for row in rows] for name in rows[0]}
                    yield (
                        f"| {transport} | {rate:,} | {tool} | {len(rows)} | {spread(each['qps'], 5)}"
                        f" | {spread(each['unanswered'])} | {spread(each['p50'])} | {spread(each['p99'])} |"
                    )


def main() -> None:
    asking = parser(__doc__)
    asking.add_argument("--run", type=Path, help="folder for the run of dnsrig, which must not exist")
    kept = asking.parse_args().run
    with tempfile.TemporaryDirectory(prefix="dnsrig-bench-") as name:
        directory, found = measured(Path(name))
        for line in table(found):
            print(line)
        if kept is not None:
            shutil.copytree(directory, kept)


if __name__ == "__main__":
    main()
