"""One thread of the server was blocked, and the clients that the kernel had assigned to it waited.

With SO_REUSEPORT each of a server's N threads has its own socket, and the kernel picks one by a hash of addresses and
ports. So a client that keeps its port keeps its thread. While that thread does other work (loading a zone, reading a
catalog), about 1/N of the clients wait, always the same ones together, and all others get their answers as usual. A
mean does not show this.

How it is detected: in each window of two intervals a client is late or not, by the longest wait of its queries. For the
windows that separate late clients from others, the overlap of the late clients of any two windows is compared with the
hypergeometric distribution, as if each window had picked its late clients by chance. A permutation test gives the p of
the sum of squared deviations. So it does not matter whether the same thread is blocked each time or a different one. If
all clients are late together, the whole server stood still (`stalled-server`); that, or a single late client, is not
this trap.
"""

from __future__ import annotations

from dnsrig.runs import lag
from dnsrig.runs.late_clients import FEWEST_CLIENTS, FEWEST_WINDOWS, Group, Windows, late_together, windows_of
from dnsrig.runs.stalls import stalls_of
from dnsrig.runs.trial import Trial
from dnsrig.text import digits
from dnsrig.traps import CLEAR, JUDGED, Conclusion, cannot_tell, of_servers

ORDER = 45
GROUP = "stalls and warm-up"
OUTCOMES = JUDGED
TITLE = "one blocked thread behind SO_REUSEPORT"
SOURCE = "S2: P. Spacek, in search of latency, test 3: fixed in BIND 9.18.13 (2023); Linux socket(7), SO_REUSEPORT"
WEIGHT = "explains"
ALPHA = 0.001
"""Largest p at which late clients are not a random mixture. It is small because a run has dozens of trials."""
LARGEST_SHARE = 0.75
"""Largest share of the clients: one of two threads may get more than half of them, but with sixteen clients or more it
very rarely gets more than this."""


def after(trial: Trial) -> Conclusion | None:
    if not trial.load.has_latencies:
        return None
    windows = windows_of(trial.clients)
    if windows is None:
        return cannot_tell("There is no clients.arrow, or it is empty.")
    if not windows.late_rows:
        return _clear(trial)
    if windows.clients < FEWEST_CLIENTS:
        return cannot_tell(
            f"Queries waited long, but {windows.clients} clients are too few to attribute them to a thread; "
            f"{FEWEST_CLIENTS} are needed (`--set options.clients={2 * FEWEST_CLIENTS}`)."
        )
    if not windows.late and windows.sparse:
        return cannot_tell(
            "Queries waited long, but each client sent too rarely to show whether all would have waited: raise the rate, or use fewer clients."
        )
    if 0 < len(windows.late) < FEWEST_WINDOWS:
        return cannot_tell(
            f"Some clients waited and others did not, but only in {len(windows.late)} windows: at least {FEWEST_WINDOWS} are "
            "needed to see whether they are the same ones (`--set options.duration_s=...`)."
        )
    group = late_together(windows)
    if group is None or group.p > ALPHA or len(group.clients) < 2 or group.share > LARGEST_SHARE:
        return _clear(trial)
    if _generator_was_late(trial):
        return cannot_tell(
            "The same clients waited together, but the load generator was late too, and each of its threads has its own clients: the cause may be one of these."
        )
    return _found(trial, windows, group)


def _clear(trial: Trial) -> Conclusion:
    found = stalls_of(trial)
    if found is None or not found.found:
        return CLEAR
    return Conclusion(
        "clear", "All clients waited together, not only some of them: the whole server stood still (`stalled-server`)."
    )


def _generator_was_late(trial: Trial) -> bool:
    """Whether one of the generator's own threads may have been the blocked one."""
    load = trial.load
    lag_ns, sent_ns = (figures.get("p99") or 0 for figures in (load.lag_ns, load.sent_latency_ns))
    return load.threads > 1 and lag_ns > lag.allowed_ns(sent_ns)


def _found(trial: Trial, windows: Windows, group: Group) -> Conclusion:
    threads = trial.server.threads if trial.server else None
    fewest, most = group.threads_range
    recorded = f"; the server had {threads} threads in all" if threads else ""
    others = f" In other windows other clients waited, {group.groups} groups in all." if group.groups > 1 else ""
    return Conclusion(
        "found",
        summary=f"In {group.windows} windows of two intervals the same {len(group.clients)} of {windows.clients} clients "
        f"({group.share:.0%}) waited up to {digits(group.late_ns / 1e6)} ms, the others up to {digits(group.others_ns / 1e6)} ms (p = "
        f"{group.p:.4f} that this is chance).{others} So one of about {group.threads} threads was blocked (95 %: {fewest} to {most})"
        f"{recorded}.",
        evidence={
            "share_percent": round(100 * group.share, 1),
            "threads_estimated": group.threads,
            "threads_fewest": fewest,
            "threads_most": most,
            "threads_recorded": threads,
            "clients": windows.clients,
            "clients_late": len(group.clients),
            "groups": group.groups,
            "windows": windows.count,
            "windows_late": group.windows,
            "late_ms": round(group.late_ns / 1e6, 3),
            "others_ms": round(group.others_ns / 1e6, 3),
            "queries_of_late_clients_percent": round(100 * group.query_share, 1),
            "p": group.p,
        },
        metrics=(trial.record.spec.main_metric, "p99_ms", "p99_9_ms", "p99_99_ms", "max_ms"),
        remedy="Find out what else the server does in a thread that answers queries: look at its log at the times that the heat map shows, or "
        f"sample its stacks (`profile = true` of its host). Compare with a version that does this work in another thread{of_servers(trial, 'blocked-thread', [trial.subject])}.",
    )
