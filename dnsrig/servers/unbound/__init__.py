"""Unbound, NLnet Labs: a resolver.

It resolves from the hints of a world, or asks the primaries of a trial for everything at or below the longest suffix
that all zones share. Settings are attributes of ``server:``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from dnsrig.confinement import NET_ADMIN, NET_BIND_SERVICE
from dnsrig.rundir import Role, Scalar
from dnsrig.servers.builds.recipe import Method, Recipe, Tree
from dnsrig.servers.driver import Driver, Feature, Setting, Support
from dnsrig.servers.formats import numbers, yes_no
from dnsrig.servers.placement import Placement
from dnsrig.servers.resolving import AsResolver, Channel, Counters, of_lines

CONTROL_SOCKET = "control"
LOG_TIME = re.compile(r"^\[(?P<time>\d{9,12})\] ")


def read_statistics(answer: bytes) -> Counters:
    """Counters from `stats_noreset`. It does not count time-outs of authorities."""
    seen = of_lines(answer, "=")
    if "total.num.queries" not in seen:
        return {}
    return {
        "client_queries": seen["total.num.queries"],
        "cache_hits": seen.get("total.num.cachehits", 0.0),
        "cache_misses": seen.get("total.num.cachemiss", 0.0),
        "upstream_queries": seen.get("num.query.udpout", 0.0) + seen.get("num.query.tcpout", 0.0),
        "validations": seen.get("num.valops", 0.0),
        "bogus": seen.get("num.answer.bogus", 0.0),
    }


BUILD_LIBRARIES = ("bison", "flex", "libevent-dev", "libexpat1-dev", "libnghttp2-dev", "libssl-dev")
BUILD_SCRIPT = """\
./configure --prefix="$PREFIX" --with-libevent --with-libnghttp2 "$@"
make util/configlexer.c
make -j"$JOBS"
make install
"""
"""The scanner of the configuration is made first: parallel processes would each make it."""


def build_method(tree: Tree) -> Method:
    return Method("bookworm", BUILD_LIBRARIES, BUILD_SCRIPT)


RECIPE = Recipe(
    repository="https://github.com/NLnetLabs/unbound.git",
    markers=("services/authzone.c",),
    release=r"release-(?P<version>\d+\.\d+\.\d+)",
    method=build_method,
    left_out=("testdata",),
)


class Unbound(Driver):
    kind = "unbound"
    title = "Unbound"
    executable = "unbound"
    recipe = RECIPE
    packages = ("unbound",)
    arguments = ("-d", "-p", "-c", "{folder}/unbound.conf")
    configuration_file = "unbound.conf"
    templates: ClassVar[Mapping[Role, str]] = {"resolver": "unbound.conf.j2"}
    check_command = ("unbound-checkconf", "{folder}/unbound.conf")
    listen_pattern = r"\s*(interface|ip-address):"
    listen_line = "    interface: {{ address }}@{{ port }}"
    template_variables: ClassVar[Mapping[str, str]] = {"settings": "name -> value, for `server:`"}
    version_arguments = ("-V",)
    version_pattern = r"Version (\d+\.\d+\S*)"
    # unbound.service of Debian grants NET_ADMIN: its sockets get larger buffers than the machine's limit.
    capabilities = (NET_BIND_SERVICE, NET_ADMIN)
    roles = ("resolver",)
    answers_zones = False
    settings = (
        Setting("num-threads", "1", "threads that answer (set by dnsrig to the host's CPUs)"),
        Setting("so-reuseport", "yes", "a socket a thread, among which the kernel divides the queries"),
        Setting(
            "outgoing-range", "4096 or 960", "sockets for queries to authorities, a thread; twice `recursions` here"
        ),
        Setting("cache-max-ttl", "86400", "seconds; 0 keeps nothing, which no operator does"),
        Setting("outbound-msg-retry", "5", "times that it asks an authority again"),
        Setting("unknown-server-time-limit", "376", "ms for the first query to a server that it does not know yet"),
        Setting("outgoing-num-tcp", "10", "TCP connections to authorities at once, a thread; more queries wait"),
        Setting("wait-limit", "1000", "queries of one client address that may wait for authorities at once"),
    )
    features: ClassVar[Mapping[Feature, Support]] = {
        "DoT": Support(None, None, "1.4.14"),
        "DoH": Support(None, None, "1.12"),
    }
    proxied = frozenset({"udp", "tcp"})
    why_not_proxied = "over DoT it expects the header inside TLS, and over DoH it has none"
    as_resolver = AsResolver(
        levels={
            "no-do": '`module-config: "iterator"`, `disable-edns-do: yes`',
            "do-unvalidated": '`module-config: "iterator"`',
            "validating": '`module-config: "validator iterator"`, `trust-anchor-file`',
        },
        lacking_levels={},
        words={
            "cache_mb": "`msg-cache-size` a third, `rrset-cache-size` two thirds, as its manual advises",
            "recursions": "`num-queries-per-thread`, and twice as many sockets: `outgoing-range`",
            "tcp_clients": "`incoming-num-tcp`, a thread",
            "query_timeout_ms": "`discard-timeout`: it stops answering then, and goes on asking; over UDP only",
            "upstream": "`do-not-query-address` of the other family",
            "qname_minimisation": "`qname-minimisation`",
            "prefetch": "`prefetch`",
            "serve_stale": "`serve-expired`",
            "aggressive_nsec": "`aggressive-nsec`",
        },
        fixed={},
        statistics=Channel(b"UBCT1 stats_noreset\n", read_statistics, socket=CONTROL_SOCKET),
    )
    log_clock_resolution_ns = 1_000_000_000

    def variables(self, placement: Placement) -> dict[str, Any]:
        chosen = {**_ours(placement), **placement.settings}
        return {"settings": {name: yes_no(value) for name, value in chosen.items()}}

    def log_time_ns(self, line: str) -> int | None:
        match = LOG_TIME.match(line)
        return int(match["time"]) * 1_000_000_000 if match else None


def _ours(placement: Placement) -> dict[str, Scalar]:
    asked, version = placement.resolving, numbers(placement.source.version)
    found: dict[str, Scalar] = {
        "num-threads": placement.threads,
        "so-reuseport": True,
        "module-config": '"validator iterator"' if placement.anchor else '"iterator"',
        "msg-cache-size": f"{asked.cache_mb * 1024 // 3}k",
        "rrset-cache-size": f"{asked.cache_mb * 1024 * 2 // 3}k",
        "num-queries-per-thread": asked.recursions,
        "outgoing-range": 2 * asked.recursions,
        "incoming-num-tcp": asked.tcp_clients,
        "qname-minimisation": asked.qname_minimisation,
        "prefetch": asked.prefetch,
        "serve-expired": asked.serve_stale,
        "aggressive-nsec": asked.aggressive_nsec,
        "extended-statistics": True,
    }
    if asked.upstream != "both":
        found["do-not-query-address"] = "::/0" if asked.upstream == "ipv4" else "0.0.0.0/0"
    if asked.level == "no-do":
        found["disable-edns-do"] = True
    if not version or version >= (1, 20):
        found["discard-timeout"] = asked.query_timeout_ms
    return found
