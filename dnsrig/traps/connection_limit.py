"""The server was at its own limit of TCP connections: it closed or refused connections, or let them wait.

Each server has a limit of connections of clients at a time, by default from 20 to some hundred. What happens beyond it
differs: Knot DNS accepts none above it, and new connections wait in the queue of the kernel, where nobody answers them;
NSD closes idle connections after 0.2 s when it is nearly full. Either way the limit decides latency and loss, and a
higher one is a line in the configuration.

How it is detected: clients wanted more connections at a time than the server's setting permits, and the server ended
connections, or queries had no answer. Connections that end below the limit have another cause, such as a timer of idle
connections. If the setting is not known, the sign is that some clients had no answer at all, although each asked so
often that chance does not explain it: the kernel has accepted their connections, and the server has not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import polars as pl

from dnsrig.rundir import ServerLimit
from dnsrig.runs.trial import Trial
from dnsrig.servers import all_drivers
from dnsrig.traps import CLEAR, Conclusion, cannot_tell

ORDER = 40
GROUP = "limits of servers and hosts"
TITLE = "the server's limit of TCP connections"
SOURCE = "BIND 9 Administrator Reference Manual, tcp-clients; nsd.conf(5), tcp-count; RFC 7766, section 6.2"
WEIGHT = "explains"
OVER_CONNECTIONS = ("tcp", "dot", "doh")
LOADS = ("held", "load")
"""The instruments whose clients have connections at the same time."""
NAME = re.compile(r"\W([\w.-]+)\W")
"""The name of a setting at the begin of a driver's words, marked as code."""
CAUSES = ("closed", "reset", "refused")
ALPHA = 1e-3
"""Probability of a client without an answer by chance."""


@dataclass(frozen=True)
class Seen:
    """What clients wanted, and what became of it."""

    wanted: int
    """Number of connections that clients wanted at a time."""
    ended: dict[str, int]
    """Connections that the server ended, or did not accept."""
    unanswered: int

    @property
    def is_fine(self) -> bool:
        return not self.unanswered and not any(self.ended.values())


def after(trial: Trial) -> Conclusion | None:
    loads = [found for name in LOADS if (found := trial.record.instruments.get(name)) and _has_connections(found)]
    if not loads:
        return None
    seen = _seen(loads)
    if seen.is_fine:
        return CLEAR
    limit = _limit(trial)
    if limit is None or limit.connections is None:
        return _found_by_silence(trial, seen) or cannot_tell(
            f"Clients wanted {seen.wanted:,} connections at a time, and {_ended(seen)}. The limit of connections of the "
            "server is not known."
        )
    threads = len(trial.record.spec.hosts[trial.subject].cpus) or 1 if limit.each_thread else 1
    permitted = limit.connections * threads
    return CLEAR if seen.wanted <= permitted else _found(trial, seen, limit, permitted)


def _has_connections(load: dict[str, Any]) -> bool:
    """Whether each client of a load has a connection of its own: clients of a replay come and go."""
    return load.get("transport") in OVER_CONNECTIONS and load.get("model") != "stream" and "connections" in load


def _seen(loads: list[dict[str, Any]]) -> Seen:
    ended = [load["connections"].get("ended", {}) for load in loads]
    return Seen(
        wanted=sum(int(load.get("clients", 0)) for load in loads),
        ended={cause: sum(int(each.get(cause, 0)) for each in ended) for cause in CAUSES},
        unanswered=sum(int(load.get("timeouts", 0)) for load in loads),
    )


def _limit(trial: Trial) -> ServerLimit | None:
    """The limit of the server under test."""
    if trial.server is None:
        return None
    found = next((limit for limit in trial.server.limits if limit.effect == "connections"), None)
    return found or _of_resolver(trial)


def _of_resolver(trial: Trial) -> ServerLimit | None:
    """The limit that dnsrig sets for a resolver, by the resolver's own name for it."""
    host = trial.record.spec.hosts[trial.subject]
    driver = all_drivers().get(host.server.kind) if host.server else None
    resolver = driver.as_resolver if driver and host.role == "resolver" else None
    words = resolver.words.get("tcp_clients", "") if resolver else ""
    name = NAME.match(words)
    if host.resolving is None or name is None:
        return None
    return ServerLimit(
        setting=name[1],
        value=host.resolving.tcp_clients,
        default=False,
        effect="connections",
        connections=host.resolving.tcp_clients,
        each_thread="a thread" in words,
        remedy="raise resolving.tcp_clients of the host",
    )


def _found_by_silence(trial: Trial, seen: Seen) -> Conclusion | None:
    """What clients saw, each with one connection, if the server had answers for some of them only."""
    of_each = trial.clients.group_by("client").agg(pl.col("answered", "unanswered").sum())
    answered, unanswered = (of_each[name].to_list() for name in ("answered", "unanswered"))
    heard = sum(count > 0 for count in answered)
    silent = of_each.height - heard
    # Had each query been lost by itself, a client with n of them would have no answer with the probability share^n.
    share = sum(unanswered) / max(1, sum(answered) + sum(unanswered))
    chance = sum(share**asked for count, asked in zip(answered, unanswered, strict=True) if not count)
    if not heard or not silent or chance > ALPHA:
        return None
    return Conclusion(
        "found",
        summary=f"{silent:,} of {of_each.height:,} clients got no answer at all on their connections, and the others did: "
        f"the server took about {heard:,} connections at a time. Its limit is not known.",
        evidence={
            "wanted_connections": seen.wanted,
            "served_clients": heard,
            "clients_without_an_answer": silent,
            "timed_out_queries": seen.unanswered,
        },
        series=("clients.arrow/answered",),
        metrics=(trial.record.spec.main_metric, "unanswered_share_percent"),
        remedy=f"Raise the server's limit of TCP connections ({_settings()}), or ask with fewer clients "
        f"(`--set options.clients={heard}`).",
    )


def _settings() -> str:
    """The limits of all servers by their names, for somebody who knows the server."""
    names = {
        limit.setting: server.title
        for server in all_drivers().values()
        for limit in server.limits("primary", {})
        if limit.effect == "connections"
    }
    for server in all_drivers().values():
        if server.as_resolver and (found := NAME.match(server.as_resolver.words.get("tcp_clients", ""))):
            names.setdefault(found[1], server.title)
    return ", ".join(f"`{name}` of {title}" for name, title in sorted(names.items()))


def _ended(seen: Seen) -> str:
    found = [f"{count:,} were {cause}" for cause, count in seen.ended.items() if count]
    found += [f"{seen.unanswered:,} queries timed out"] if seen.unanswered else []
    return ", ".join(found)


def _found(trial: Trial, seen: Seen, limit: ServerLimit, permitted: int) -> Conclusion:
    assert trial.server is not None
    each = " for each thread" if limit.each_thread else ""
    return Conclusion(
        "found",
        summary=f"Clients wanted {seen.wanted:,} connections at a time, but {trial.server.server.label} permits "
        f"{permitted:,}, by {limit.setting} = {limit.value}{each}: {_ended(seen)}.",
        evidence={
            "wanted_connections": seen.wanted,
            "permitted_connections": permitted,
            "setting": limit.setting,
            "value": limit.value,
            **{f"{cause}_connections": count for cause, count in seen.ended.items()},
            "timed_out_queries": seen.unanswered,
        },
        series=(f"{trial.subject}/tcp/curr_estab", f"{trial.subject}/tcp/listen_overflows"),
        metrics=(trial.record.spec.main_metric, "unanswered_share_percent", "connections_ended", "held_open_percent"),
        remedy=f"{limit.remedy[0].upper()}{limit.remedy[1:]}.",
    )
