"""BIND 9 as a resolver: its configuration, and its words for what all resolvers have."""

from __future__ import annotations

import json

from dnsrig.rundir import Scalar
from dnsrig.servers import keys
from dnsrig.servers._bind_options import BEGIN
from dnsrig.servers.counters import Channel, Counters, nested
from dnsrig.servers.driver import DNS_PORT, template, yes_no
from dnsrig.servers.placement import Placement
from dnsrig.servers.resolving import AsResolver

STATISTICS_PORT = 8053

CONFIGURATION = template(
    BEGIN
    + """\
    recursion yes;
    allow-query { any; };
    allow-recursion { any; };
    notify no;
{% for name, value in settings.items() %}
    {{ name }} {{ value }};
{% endfor %}
};
controls { };
statistics-channels { inet {{ p.address }} port {{ statistics_port }} allow { any; }; };
logging {
    channel standard_error { stderr; severity info; print-time yes; print-category yes; print-severity yes; };
    category default { standard_error; };
    category lame-servers { null; };
    category dnssec { null; };
};
{% if p.resolving.upstream != "both" %}
server {{ "::/0" if p.resolving.upstream == "ipv4" else "0.0.0.0/0" }} { bogus yes; };
{% endif %}
{% if p.from_hints %}
zone "." { type hint; file "{{ p.seen_hints }}"; };
{% else %}
{# Not one for all: where it minimises names, it would ask about the zone above them, which nobody has. #}
{% for zone in p.zones %}
zone "{{ zone.name }}" { type static-stub; server-addresses { {% for route in p.routes %}{{ route.primary }}; {% endfor %}}; };
{% endfor %}
{% endif %}
{% if p.anchor %}
trust-anchors { . static-key {{ key[0] }} {{ key[1] }} {{ key[2] }} "{{ key[3] }}"; };
{% endif %}
"""
)


def read_statistics(answer: bytes) -> Counters:
    """Of the statistics channel, as JSON after the header of HTTP; a build without a JSON library has none.

    Of `QueryHits` it counts one when a recursion has ended, too: a miss is what needed a recursion (`QryRecursion`).
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


def configuration(placement: Placement) -> str:
    anchor, asked = placement.anchor, placement.resolving
    ours: dict[str, Scalar] = {
        "dnssec-validation": anchor is not None,
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
    return CONFIGURATION.render(
        p=placement,
        port=DNS_PORT,
        statistics_port=STATISTICS_PORT,
        keys=keys,
        key=anchor.dnskey.split() if anchor else None,
        settings={name: yes_no(value) for name, value in {**ours, **placement.settings}.items()},
    )
