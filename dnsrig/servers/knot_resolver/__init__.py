"""Knot Resolver 6, CZ.NIC: a resolver.

The process `kresd` is started directly, with a configuration in Lua. The manager of version 6, which would write this
configuration, takes five seconds to start and needs a supervisor. Without the manager one process runs, so a host has
one CPU. The cache is a file (LMDB) in the folder that a trial removes. Settings are functions
of one argument, e.g. ``"cache.max_ttl" = 3600``, and options, e.g. ``"option.NO_0X20" = true``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from dnsrig.errors import UsageError
from dnsrig.rundir import Role, Scalar
from dnsrig.servers.driver import Driver, Feature, Setting, Support
from dnsrig.servers.placement import Placement
from dnsrig.servers.resolving import AsResolver, Channel, Counters, nested

CONTROL_SOCKET = "control.socket"


def read_statistics(answer: bytes) -> Counters:
    """Counters from its control socket: a prompt, the length in four bytes, JSON. It does not count validations.

    It also counts answers to its own queries (priming, refreshing), so its hits are slightly too many.
    """
    try:
        seen = json.loads(answer[answer.find(b"{") :])
    except (ValueError, RecursionError):
        return {}
    if not isinstance(seen, dict) or "stats" not in seen:
        return {}
    answers, hits = nested(seen, "stats", "answer", "total"), nested(seen, "stats", "answer", "cached")
    return {
        "client_queries": nested(seen, "stats", "request", "total") - nested(seen, "stats", "request", "internal"),
        "cache_hits": hits,
        "cache_misses": max(0.0, answers - hits),
        "upstream_queries": sum(nested(seen, "worker", transport) for transport in ("udp", "tcp", "tls")),
        "upstream_timeouts": nested(seen, "worker", "timeout"),
    }


class KnotResolver(Driver):
    kind = "knot-resolver"
    title = "Knot Resolver"
    executable = "kresd"
    packages = ("knot-resolver6",)
    arguments = ("-n", "-c", "{folder}/kresd.conf", "{state}")
    configuration_file = "kresd.conf"
    templates: ClassVar[Mapping[Role, str]] = {"resolver": "kresd.conf.j2"}
    address_arguments = ("-a", "{address}@53")
    template_variables: ClassVar[Mapping[str, str]] = {
        "settings": "list of pairs: the beginning of a call in Lua, and its last argument"
    }
    version_arguments = ("-V",)
    version_pattern = r"version (\d+\.\d+\.\d+\S*)"
    roles = ("resolver",)
    answers_zones = False
    settings = (
        Setting("cache.max_ttl", "518400", "seconds that a record is kept at most"),
        Setting("net.tcp_pipeline", "100", "queries of one TCP connection that are resolved at once"),
        Setting("option.NO_0X20", "false", "whether it does not mix the case of letters in the names it asks for"),
        Setting("modules.load", "none", "a module to load, e.g. `predict`"),
    )
    features: ClassVar[Mapping[Feature, Support]] = {name: Support(None, None, "6.0") for name in ("DoT", "DoH")}
    proxied = frozenset({"udp", "tcp", "dot"})
    why_not_proxied = "dnsrig sets up UDP, TCP and DoT"
    as_resolver = AsResolver(
        levels={
            "do-unvalidated": "`trust_anchors.remove('.')`",
            "validating": "`trust_anchors.add_file`, read-only",
        },
        lacking_levels={
            "no-do": "it sets DO in every query that it sends, unless it only forwards them (`policy.STUB`)"
        },
        words={
            "cache_mb": "`cache.open`: a file that the kernel counts as file cache",
            "upstream": "`option('NO_IPV4', …)`, `option('NO_IPV6', …)`",
            "qname_minimisation": "`option('NO_MINIMIZE', …)`",
            "prefetch": "the module `prefetch`",
            "serve_stale": "the module `serve_stale`",
        },
        fixed={
            "recursions": "it has no limit of its own",
            "tcp_clients": "it has no limit of its own",
            "query_timeout_ms": "10 s are compiled in",
            "aggressive_nsec": "it always does when it validates, by NSEC and NSEC3",
        },
        statistics=Channel(
            b"__json\n{stats=stats.list(),worker=worker.stats()}\n",
            read_statistics,
            socket=CONTROL_SOCKET,
            ends_request=True,
        ),
    )
    log_clock_resolution_ns = 1_000_000_000  # on standard error its lines have no time

    def configure(self, placement: Placement) -> None:
        if placement.threads > 1:
            raise UsageError(
                "Knot Resolver has one thread for each process, and dnsrig starts one process",
                hint="give its host one CPU: hosts.resolver.cpus = [1]",
            )
        super().configure(placement)

    def variables(self, placement: Placement) -> dict[str, Any]:
        return {"settings": [(_function(name), _lua(value)) for name, value in placement.settings.items()]}


def _function(name: str) -> str:
    """The call for a setting, up to its value."""
    group, _, option = name.partition(".")
    return f"option('{option}', " if group == "option" else f"{name}("


def _lua(value: Scalar) -> str:
    """The value in Lua, which is the same as in JSON."""
    return json.dumps(value)
