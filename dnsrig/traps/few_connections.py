"""Fewer connections than threads of the server: some of its threads had nothing to do.

Servers give each TCP connection to one thread, and each QUIC connection too, because its state is there. With one
connection, all queries are answered by one thread, however many the server has. Over UDP, where the kernel spreads
datagrams by address and port, the number of sockets matters in the same way (`few-source-ports`).

The trap compares the connections of the load with the threads of the server. It only matters if the server's speed
decides the result: in a search for the highest rate, or in a closed loop.
"""

from __future__ import annotations

from dnsrig.runs.trial import Trial
from dnsrig.traps import CLEAR, JUDGED, Conclusion
from dnsrig.traps.few_source_ports import threads_of

ORDER = 41
GROUP = "limits of servers and hosts"
OUTCOMES = JUDGED
TITLE = "fewer connections than threads of the server"
SOURCE = "RFC 7766, 6.2.1.1: few connections for many queries; Linux socket(7), SO_REUSEPORT"
WEIGHT = "distorts"
DATAGRAMS = ("udp", "")


def after(trial: Trial) -> Conclusion | None:
    searched = trial.ramp if trial.ramp.ran else trial.load
    if searched.model not in ("ramp", "closed") or searched.transport in DATAGRAMS:
        return None
    spec = trial.record.spec
    clients, threads = int(spec.options.get("clients", 0)), threads_of(trial)
    if not clients or clients >= threads or spec.options.get("queries_per_connection"):
        return CLEAR
    return Conclusion(
        "found",
        summary=f"The load had {clients} {'connection' if clients == 1 else 'connections'}, and the server {threads} threads: "
        f"at least {threads - clients} of them had nothing to do.",
        evidence={"connections": clients, "threads": threads},
        metrics=(spec.main_metric, "capacity_qps", "answered_qps"),
        remedy=f"Use several connections for each thread of the server (`--set options.clients={8 * threads}` or more).",
    )
