"""What load generators report about a server that stands still for 200 ms of each second: `load`, six others, by hand

    .venv/bin/python benches/stalling_server.py --run RUN [--from RESULTS] [--out RESULTS] [--peers DIR] …

Each tool is asked for 5,000 queries/s. The tools take turns, in another order in each repeat, and each trial has new
hosts. The output of the tools is kept in RESULTS; RUN is made from it, as `dnsrig import` does. `--from` measures
nothing. README.md describes what DIR must contain. By hand: queries are due evenly. If a query is due while the server
stands still, it waits until the server continues; other queries do not wait, and no query is lost. In the table,
latencies are in ms, the mean of resperf is the mean of its bins, weighted by answers, and PSI is the share of the time
in which something waited for a CPU.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
import time
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from hdrh.histogram import HdrHistogram
from pair import NAMES, REFLECTOR, interleaved, pair, spread
from smoke import SMOKE, parser, scratch, sized

from dnsrig import paths
from dnsrig.analysis.read import Run, Trial
from dnsrig.confinement import BindMount, Confinement
from dnsrig.importers import MS, Asked, S, _run
from dnsrig.lab import process
from dnsrig.report import svg, write_report
from dnsrig.report.charts import slowest_percentile

QPS, STALL_MS, EVERY_MS = 5_000, 200, 1000
BUFFER_BYTES = 16 << 20  # holds what comes during a stall
LATE_S = 60  # after its planned end: a tool that takes longer ends the bench, and `--from` reads what there is
PERCENTILES = (50, 90, 95, 99)


class Tool(NamedTuple):
    label: str
    importer: str
    file: str  # after `REPEAT.`: what is imported
    program: str = ""  # in DIR; else it is Debian's or dnsrig's own


TOOLS = {  # those without a distribution last, since charts have eight colours
    "dnsrig": Tool("dnsrig load", "hlog", "dnsrig/latency.hlog"),
    "dnsperf-q100": Tool("dnsperf -q 100 (default)", "dnsperf", "stdout"),
    "dnsperf-q20000": Tool("dnsperf -q 20000 -c 16", "dnsperf", "stdout"),
    "shotgun": Tool("Shotgun", "shotgun", "shotgun/data/UDP.json", "shotgun"),
    "dnspyre": Tool("dnspyre", "dnspyre", "csv", "dnspyre"),
    "flamethrower": Tool("flamethrower", "flamethrower", "jsonl", "flame"),
    "resperf": Tool("resperf", "resperf", "plot"),
    "kxdpgun": Tool("kxdpgun", "kxdpgun", "stdout"),
}


def command(name: str, server: str, folder: Path, out: str, duration_s: int, peers: Path) -> list[str]:
    """``folder`` holds the queries, and results begin with ``out``, both as the tool sees them."""
    rate, lasts, queries = str(QPS), str(duration_s), f"{folder}/queries.txt"
    program = str(peers / TOOLS[name].program)
    workers = 2 * QPS * STALL_MS // 1000  # twice those that wait at the end of a stall
    dnsperf = ["dnsperf", "-s", server, "-d", queries, "-Q", rate, "-l", lasts, "-S", "1", "-O", "latency-histogram"]
    return {
        "dnsrig": [str(paths.engine()), "load", server, "--queries", queries, "--rate", rate, "--duration-s", lasts,
                   "--out", f"{out}.dnsrig"],
        "dnsperf-q100": dnsperf,
        # 16 sockets, since the answers after a stall overflow the receive buffer of one.
        "dnsperf-q20000": [*dnsperf, "-q", "20000", "-c", "16"],
        "resperf": ["resperf", "-s", server, "-d", f"{folder}/long.txt", "-m", rate, "-r", "0", "-c", lasts, "-i", "1",
                    "-C", "16", "-P", f"{out}.plot"],
        "flamethrower": [program, server, "-Q", rate, "-l", lasts, "-g", "file", "-f", queries, "-o", f"{out}.jsonl"],
        "shotgun": [program, rate, lasts, server, f"{out}.shotgun"],
        "kxdpgun": ["kxdpgun", "-i", queries, "-t", lasts, "-Q", rate, "-j", "-S", "1000", "-I", REFLECTOR, server],
        "dnspyre": [program, "-s", f"{server}:53", "-l", rate, "-c", str(workers), "-d", f"{lasts}s", "--no-color",
                    "--no-progress", "--precision", "3", "--json", "--csv", f"{out}.csv", f"@{queries}"],
    }[name]  # fmt: skip


def waited() -> dict[str, int]:
    """How long something waited for a CPU since the machine started; empty without PSI."""
    file = Path("/proc/pressure/cpu")
    found = re.search(r"some .*total=(\d+)", file.read_text()) if file.exists() else None
    return {"psi_cpu_some_us": int(found[1])} if found else {}


def trial(name: str, results: Path, duration_s: int, peers: Path) -> None:
    """It has hosts of its own, and what it wrote is in ``results`` afterwards."""
    repeat = 1 + len([*(results / name).glob("*.meta.json")])
    options = ("--transport", "udp", "--threads", "1", "--stall", f"{STALL_MS}ms", "--stall-every", f"{EVERY_MS}ms")
    with pair() as hosts, hosts.echo(*options, "--receive-buffer-bytes", str(BUFFER_BYTES)):
        (hosts.folder / "long.txt").write_text(hosts.queries.read_text() * (QPS * (duration_s + 10) // NAMES))
        debian = not TOOLS[name].program and name != "dnsrig"
        view: dict[str, Any] = (
            {"confined": Confinement(hosts.root, [BindMount(hosts.folder, "/mnt")], as_root=True)} if debian else {}
        )
        folder, out = Path("/mnt") if debian else hosts.folder, hosts.folder / f"out/{repeat}"
        Path(f"{out}.dnsrig" if name == "dnsrig" else out.parent).mkdir(parents=True)
        line = command(name, str(hosts.reflector.address), folder, f"{folder}/out/{repeat}", duration_s, peers)
        begun = {"start_ns": time.monotonic_ns(), "before": waited()}
        with Path(f"{out}.stdout").open("w") as stdout, Path(f"{out}.stderr").open("w") as stderr:
            started = process.start(line[0], hosts.instrument, line, stdout=stdout, stderr=stderr, **view)
            try:
                status = started.popen.wait(duration_s + LATE_S)
            finally:
                started.stop()
        ended = {"end_ns": time.monotonic_ns(), "after": waited(), "exit_code": status}
        meta = {"tool": name, "repeat": repeat, "command": line, "duration_s": duration_s} | begun | ended
        Path(f"{out}.meta.json").write_text(json.dumps(meta, indent=1))
        shutil.copytree(out.parent, results / name, dirs_exist_ok=True)
    print(f"{name} {repeat}: exit code {status}", flush=True)


def whole(results: Path, name: str) -> list[dict[str, Any]]:
    """The metadata of the trials of a tool that ended with exit code 0, in their order."""
    told = [json.loads(file.read_text()) for file in (results / name).glob("*.meta.json")]
    return sorted((each for each in told if each["exit_code"] == 0), key=lambda each: int(each["repeat"]))


def make_run(results: Path, run: Path) -> tuple[Run, list[str]]:
    """The run, and the tools in it after what is done by hand."""
    found = [name for name in TOOLS if whole(results, name)]
    with tempfile.TemporaryDirectory() as folder:
        waits, duration_s = HdrHistogram(1, S, 3), whole(results, found[0])[0]["duration_s"]
        for number in range(QPS * duration_s):
            waits.record_value(max(0, STALL_MS * MS - number * S // QPS % (EVERY_MS * MS)))
        by_hand = Path(folder, "by-hand.hlog")
        line = f"0,{duration_s},{STALL_MS * MS},{waits.encode().decode()}"
        by_hand.write_text(f"Tag=due,{line}\nTag=sent,{line}\n")  # each is sent when it is due
        _run.write("hlog", "by hand (truth)", _run.read("hlog", [by_hand], Asked()), run)
    for name in found:
        label, tool, file, _ = TOOLS[name]
        written = [results / name / f"{each['repeat']}.{file}" for each in whole(results, name)]
        _run.write(tool, label, _run.read(tool, written, Asked()), run)
    made = write_report(run).run
    (run.parent / f"{run.name}.png").write_bytes(svg.png(svg.render(slowest_percentile.draw(made)[0].chart)))
    return made, found


def beside(name: str, base: str) -> dict[str, Any]:
    """The figures that a tool writes into another file than the imported one."""
    if name == "dnsrig":
        summary = json.loads(Path(f"{base}.dnsrig/summary.json").read_text())
        return {"sent": summary["sent"], "timeouts": summary["timeouts"] + sum(summary["lost"].values())}
    if name == "dnspyre":
        told = json.loads(Path(f"{base}.stdout").read_text())
        return {"sent": told["totalRequests"], "timeouts": told["totalIOErrors"]}
    if name == "resperf":
        sent, lost = map(int, re.findall(r"Queries (?:sent|lost): +(\d+)", Path(f"{base}.stdout").read_text()))
        bins = [[*map(float, line.split())] for line in Path(f"{base}.plot").read_text().splitlines()[1:]]
        mean_ns = S * sum(row[3] * row[5] for row in bins) / sum(row[3] for row in bins)
        return {"sent": sent, "timeouts": lost, "sent_latency_ns": {"mean": mean_ns}}
    return {}


def row(name: str, trial: Trial, results: Path, meta: dict[str, Any]) -> list[float | None]:
    """Sent, lost, mean, percentiles, max, PSI; latencies in ms, the mean from the middle of each bucket."""
    load = trial.load.model_copy(update=beside(name, f"{results / name}/{meta.get('repeat')}"))
    ends = [load.latency_ns] if name in ("", "dnsrig") else [load.sent_latency_ns, load.lower_sent_latency_ns]
    means = [mean for end in ends if (mean := end.get("mean")) is not None]
    values = log.total(log.result).percentiles(PERCENTILES) if (log := trial.latency) else [None] * len(PERCENTILES)
    values_ns = [fmean(means) if means else None, *values, ends[0].get("max")]
    psi = [meta.get(when, {}).get("psi_cpu_some_us") for when in ("before", "after")]
    share = None if None in psi else (psi[1] - psi[0]) * 1000 / (meta["end_ns"] - meta["start_ns"])
    return [load.sent, load.timeouts, *(None if value is None else value / MS for value in values_ns), share]


def print_table(results: Path, run: Run, names: list[str]) -> None:
    """Over the repeats: median and range."""
    heads = ("", "sent", "lost", "mean", *(f"p{percent}" for percent in PERCENTILES), "max", "PSI")
    print("".join(f"{head:27}" for head in heads).rstrip())
    for variant, name in zip(run.manifest.variants, ["", *names]):
        metas = whole(results, name) if name else [{}]
        rows = [row(name, trial, results, meta) for trial, meta in zip(run.of_variant(variant.id), metas)]
        known = [[value for value in column if value is not None] for column in zip(*rows)]
        cells = [spread(column, 6 if at < 2 else 3) if column else "-" for at, column in enumerate(known)]
        print("".join(f"{cell:27}" for cell in (variant.parameters["result"], *cells)).rstrip())


def main() -> None:
    new = scratch() or Path()
    asking = parser(__doc__)
    asking.add_argument(
        "--run", type=Path, required=not SMOKE, default=new / "run", help="the run to make; its chart is RUN.png"
    )
    asking.add_argument("--from", dest="results", type=Path, help="read these results, and measure nothing")
    asking.add_argument("--out", type=Path, default=new / "stalling-server", help="a new folder for results")
    asking.add_argument("--peers", type=Path, default=Path("peers"), help="has flame, shotgun and dnspyre")
    asking.add_argument("--tools", nargs="+", choices=TOOLS, default=list(TOOLS), metavar="TOOL", help=", ".join(TOOLS))
    asking.add_argument("--repeats", type=int, default=sized(5, smoke=1))
    asking.add_argument("--duration-s", type=int, default=sized(30, smoke=1))
    asked = asking.parse_args()
    results, peers = asked.results or asked.out, asked.peers.resolve()
    if asked.results is None:
        results.mkdir(parents=True)
        there = [name for name in asked.tools if not TOOLS[name].program or (peers / TOOLS[name].program).is_file()]
        print("Absent:", ", ".join(name for name in asked.tools if name not in there) or "none")
        interleaved(asked.repeats, there, lambda name: trial(name, results, asked.duration_s, peers))
    print_table(results, *make_run(results, asked.run))


if __name__ == "__main__":
    main()
