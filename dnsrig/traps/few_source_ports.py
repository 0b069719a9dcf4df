"""Queries came from too few addresses and ports for the kernel to spread them over the server's threads.

With SO_REUSEPORT the kernel gives each packet to one of the server's sockets by a hash of addresses and ports. Clients
deal themselves out like balls into urns: of few, or where a few ask most, one thread gets much more than its part, and
the capacity of the server is that of this thread.

From what each client asked and the ports that it had, the number of flows that count is 1 / Σ share². The load of one
of N threads then misses its mean by √((N − 1) / flows) of it, in the standard deviation.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from dnsrig.analysis.read import Trial
from dnsrig.analysis.row_files import load
from dnsrig.traps import CLEAR, JUDGED, Conclusion, cannot_tell

ORDER = 55
TITLE = "too few source ports for SO_REUSEPORT"
SOURCE = "Linux socket(7), SO_REUSEPORT; M. Raab and A. Steger, Balls into Bins (1998)"
THREADS = ("threads", "server.udp-workers", "server-count", "num-threads")
"""Settings of servers that say how many threads or processes answer."""
UNEVEN = 0.1
"""Standard deviation of a thread's load, of its mean: the busiest of a few threads then has a tenth or two more."""


def after(trial: Trial) -> Conclusion | None:
    if trial.load.model != "stream" or trial.record.outcome not in JUDGED:
        return None
    threads = threads_of(trial)
    if threads < 2:
        return CLEAR
    rows = trial.rows(load.CLIENTS)
    queries = (rows["answered"].cast(int) + rows["unanswered"].cast(int)).to_list()
    if not sum(queries):
        return cannot_tell("There is no clients.arrow, or nothing in it.")
    options = trial.record.spec.options
    ports = max(1, int(options["ports"]) // int(options["threads"])) if options["port"] == "fresh" else 1
    flows = flows_of(queries, ports)
    uneven = math.sqrt((threads - 1) / flows)
    if uneven <= UNEVEN:
        return CLEAR
    needed = math.ceil(ports * (uneven / UNEVEN) ** 2)
    return Conclusion(
        "found",
        summary=f"The queries of {len(queries):,} clients with {ports:,} {'port' if ports == 1 else 'ports'} each are as even as those of "
        f"{flows:,.1f} flows: the load of one of the server's {threads} threads misses its mean by {uneven:.0%} (standard deviation).",
        evidence={
            "clients": len(queries),
            "ports": ports,
            "flows": round(flows, 1),
            "threads": threads,
            "uneven_percent": round(100 * uneven, 1),
            "ports_needed": needed,
        },
        metrics=(trial.record.spec.main_metric, "answered_qps"),
        remedy=f"Let each query leave by another port: `--set options.port=fresh --set options.ports={max(needed, 256):,}`".replace(
            ",", ""
        )
        + ", or replay more clients.",
    )


def flows_of(queries: Iterable[int], ports: int) -> float:
    """As many flows with equally many queries would spread as evenly; each client has its queries on ``ports`` of
    them, or on as many as it has queries."""
    counts = [count for count in queries if count]
    return sum(counts) ** 2 / sum(count * count / min(ports, count) for count in counts)


def threads_of(trial: Trial) -> int:
    """With a socket each: as many as the experiment says, or else one a CPU of the host, as drivers set them."""
    host = trial.record.spec.hosts[trial.subject]
    said = [host.settings[name] for name in THREADS if name in host.settings]
    return int(said[0]) if said else len(host.cpus)
