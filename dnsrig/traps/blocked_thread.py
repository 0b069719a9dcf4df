"""One thread of the server was blocked, and the clients that the kernel had given to it waited.

With SO_REUSEPORT each of a server's N threads has a socket of its own, and the kernel picks one by a hash of addresses
and ports: a client that keeps its port keeps its thread. While that thread does other work (a zone to load, a catalog
to read) about 1/N of the clients wait, always the same together, and all others are answered as ever. A mean does not
show it.

How it is told: per window of two intervals each client is late or not, by the longest that one of its queries waited.
Of windows that tell the two apart, the overlap of the late clients of any two is held against the hypergeometric
distribution, as if each window had picked its late clients by chance; the sum of squared deviations gets its p by
permutation. So it does not matter whether the same thread is blocked each time, or another. Late all together (the
whole server stood still: `stalled-server`) or a single late client is none.
"""

from __future__ import annotations

from dnsrig.analysis import lag
from dnsrig.analysis.late_clients import FEWEST_CLIENTS, FEWEST_WINDOWS, Group, Windows, late_together, windows_of
from dnsrig.analysis.read import Trial
from dnsrig.analysis.stalls import stalls_of
from dnsrig.text import digits
from dnsrig.traps import CLEAR, JUDGED, Conclusion, cannot_tell, of_servers

ORDER = 45
TITLE = "one blocked thread behind SO_REUSEPORT"
SOURCE = "S2: P. Spacek, in search of latency, test 3: fixed in BIND 9.18.13 (2023); Linux socket(7), SO_REUSEPORT"
WEIGHT = "explains"
ALPHA = 0.001
"""p below which late clients are no longer mixed by chance: a run has dozens of trials."""
LARGEST_SHARE = 0.75
"""Of the clients: one of two threads may get more than half of them, but not more than this of sixteen or more, but for
bad luck."""


def after(trial: Trial) -> Conclusion | None:
    if not trial.load.has_latencies or trial.record.outcome not in JUDGED:
        return None
    windows = windows_of(trial.clients)
    if windows is None:
        return cannot_tell("There is no clients.arrow, or nothing in it.")
    if not windows.late_rows:
        return _clear(trial)
    if windows.clients < FEWEST_CLIENTS:
        return cannot_tell(
            f"Queries waited long, but {windows.clients} clients are too few to tell a thread's from others; "
            f"{FEWEST_CLIENTS} are needed (`--set options.clients={2 * FEWEST_CLIENTS}`)."
        )
    if not windows.late and windows.sparse:
        return cannot_tell(
            "Queries waited long, but each client sent too seldom to tell whether all would have waited: raise the rate, or use fewer clients."
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
            "The same clients waited together, but the load generator was late itself, and its threads have their own clients."
        )
    return _found(trial, windows, group)


def _clear(trial: Trial) -> Conclusion:
    found = stalls_of(trial)
    if found is None or not found.found:
        return CLEAR
    return Conclusion(
        "clear", "All clients waited together, and not some of them: the whole server stood still (`stalled-server`)."
    )


def _generator_was_late(trial: Trial) -> bool:
    """Then it may be one of its threads that was blocked, if it has several."""
    load = trial.load
    lag_ns, sent_ns = (figures.get("p99") or 0 for figures in (load.lag_ns, load.sent_latency_ns))
    return load.threads > 1 and lag_ns > lag.allowed_ns(sent_ns)


def _found(trial: Trial, windows: Windows, group: Group) -> Conclusion:
    threads = trial.server.threads if trial.server else None
    fewest, most = group.threads_range
    recorded = f"; the server had {threads} threads in all" if threads else ""
    others = f" In other windows other clients did, {group.groups} groups in all." if group.groups > 1 else ""
    return Conclusion(
        "found",
        summary=f"In {group.windows} windows of two intervals the same {len(group.clients)} of {windows.clients} clients "
        f"({group.share:.0%}) waited up to {digits(group.late_ns / 1e6)} ms, and the others {digits(group.others_ns / 1e6)} ms (p = "
        f"{group.p:.4f} that it is chance).{others} So one of about {group.threads} threads was blocked (95 %: {fewest} to {most})"
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
        remedy="Find what the server does in a thread that also answers (its log at the times that the heat map shows; `profile = true` "
        f"of its host samples the stacks), and compare with a version that has it elsewhere{of_servers(trial, 'blocked-thread', [trial.subject])}.",
    )
