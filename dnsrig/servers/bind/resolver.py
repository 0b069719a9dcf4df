"""BIND 9 as a resolver: its settings and its counters."""

from __future__ import annotations

import json

from dnsrig.rundir import Scalar
from dnsrig.servers.formats import yes_no
from dnsrig.servers.placement import Placement
from dnsrig.servers.resolving import AsResolver, Channel, Counters, nested

STATISTICS_PORT = 8053


def read_statistics(answer: bytes) -> Counters:
    """Counters from the statistics channel, which answers with JSON over HTTP; a build without a JSON library has none.

    `QueryHits` also counts queries whose recursion has ended. So a miss is a query with a recursion (`QryRecursion`).
    """
    try:
        seen = json.loads(answer.partition(b"\r\n\r\n")[2])
    except (ValueError, RecursionError):
        return {}
    if not isinstance(seen, dict) or "nsstats" not in seen:
        return {}
    resolver = ("views", "_default", "resolver", "stats")
    queries = nested(seen, "nsstats", "Requestv4") + nested(seen, "nsstats", "Requestv6")
    misses = nested(seen, "nsstats", "QryRecursion")
    return {
        "client_queries": queries,
        "cache_hits": max(0.0, queries - misses),
        "cache_misses": misses,
        "upstream_queries": nested(seen, *resolver, "Queryv4") + nested(seen, *resolver, "Queryv6"),
        "upstream_timeouts": nested(seen, *resolver, "QueryTimeout"),
        "validations": nested(seen, *resolver, "ValAttempt"),
        "bogus": nested(seen, *resolver, "ValFail"),
    }


AS_RESOLVER = AsResolver(
    levels={
        "do-unvalidated": "`dnssec-validation no`",
        "validating": "`dnssec-validation yes`, `trust-anchors` with the static key",
    },
    lacking_levels={"no-do": "it sets DO in every query with EDNS that it sends (lib/dns/resolver.c)"},
    words={
        "cache_mb": "`max-cache-size`",
        "recursions": "`recursive-clients`: of all threads",
        "tcp_clients": "`tcp-clients`",
        "query_timeout_ms": "`resolver-query-timeout`",
        "upstream": "`server` of the other family: `bogus yes`",
        "qname_minimisation": "`qname-minimization relaxed` or `off`",
        "prefetch": "`prefetch 2 9` or `0`",
        "serve_stale": "`stale-cache-enable`, `stale-answer-enable`",
        "aggressive_nsec": "`synth-from-dnssec`: NSEC, not NSEC3",
    },
    fixed={},
    statistics=Channel(b"GET /json/v1/server HTTP/1.0\r\n\r\n", read_statistics, port=STATISTICS_PORT),
)


def settings(placement: Placement) -> dict[str, str]:
    """The settings of `Resolving` as BIND's, with the experiment's over them."""
    asked = placement.resolving
    ours: dict[str, Scalar] = {
        "dnssec-validation": placement.anchor is not None,
        "max-cache-size": f"{asked.cache_mb}M",
        "recursive-clients": asked.recursions * placement.threads,
        "tcp-clients": asked.tcp_clients,
        "resolver-query-timeout": asked.query_timeout_ms,
        "qname-minimization": "relaxed" if asked.qname_minimisation else "off",
        "prefetch": "2 9" if asked.prefetch else 0,
        "stale-cache-enable": asked.serve_stale,
        "stale-answer-enable": asked.serve_stale,
        "synth-from-dnssec": asked.aggressive_nsec,
    }
    return {name: yes_no(value) for name, value in {**ours, **placement.settings}.items()}
