"""Queries came from too few addresses and ports for the kernel to spread them evenly over the server's threads.

With SO_REUSEPORT the kernel assigns each packet to one of the server's sockets by a hash of addresses and ports.
Clients spread like balls thrown into urns: if there are few, or if a few send most queries, one thread gets much more
than its share, and this thread limits the capacity of the server.

From the number of queries of each client and its number of ports, the effective number of flows is 1 / Σ share². The
load of one of N threads then deviates from its mean by √((N − 1) / flows), as a relative standard deviation.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from dnsrig.runs.row_files import load
from dnsrig.runs.trial import Trial
from dnsrig.traps import CLEAR, JUDGED, Conclusion, cannot_tell

ORDER = 55
GROUP = "the load generator"
OUTCOMES = JUDGED
TITLE = "too few source ports for SO_REUSEPORT"
SOURCE = "Linux socket(7), SO_REUSEPORT; M. Raab and A. Steger, Balls into Bins (1998)"
THREADS = ("threads", "server.udp-workers", "server-count", "num-threads")
"""Settings of servers for the number of threads or processes that answer."""
UNEVEN = 0.1
"""Largest standard deviation of a thread's load, relative to its mean: the busiest of a few threads then has 10 to 20 %
more than the mean."""


def after(trial: Trial) -> Conclusion | None:
    if trial.load.model != "stream":
        return None
    threads = threads_of(trial)
    if threads < 2:
        return CLEAR
    rows = trial.rows(load.CLIENTS)
    queries = (rows["answered"].cast(int) + rows["unanswered"].cast(int)).to_list()
    if not sum(queries):
        return cannot_tell("There is no clients.arrow, or it is empty.")
    options = trial.record.spec.options
    ports = max(1, int(options["ports"]) // int(options["threads"])) if options["port"] == "fresh" else 1
    flows = flows_of(queries, ports)
    uneven = math.sqrt((threads - 1) / flows)
    if uneven <= UNEVEN:
        return CLEAR
    needed = math.ceil(ports * (uneven / UNEVEN) ** 2)
    return Conclusion(
        "found",
        summary=f"The queries of {len(queries):,} clients with {ports:,} {'port' if ports == 1 else 'ports'} each spread as evenly as "
        f"{flows:,.1f} flows: the load of one of the server's {threads} threads deviates from its mean by {uneven:.0%} (standard deviation).",
        evidence={
            "clients": len(queries),
            "ports": ports,
            "flows": round(flows, 1),
            "threads": threads,
            "uneven_percent": round(100 * uneven, 1),
            "ports_needed": needed,
        },
        metrics=(trial.record.spec.main_metric, "answered_qps"),
        remedy=f"Send each query from another port: `--set options.port=fresh --set options.ports={max(needed, 256):,}`".replace(
            ",", ""
        )
        + ", or replay more clients.",
    )


def flows_of(queries: Iterable[int], ports: int) -> float:
    """Number of flows with the same number of queries each that would spread as evenly. Each client sends its queries
    from ``ports`` ports, or from one port for each query if it has fewer queries."""
    counts = [count for count in queries if count]
    return sum(counts) ** 2 / sum(count * count / min(ports, count) for count in counts)


def threads_of(trial: Trial) -> int:
    """Number of threads with their own socket: from the experiment, or else one for each CPU of the host, as drivers
    set it."""
    host = trial.record.spec.hosts[trial.subject]
    said = [host.settings[name] for name in THREADS if name in host.settings]
    return int(said[0]) if said else len(host.cpus)
