"""PowerDNS Recursor, PowerDNS: a resolver.

It has the settings of version 5 in YAML, named by section and name, e.g. ``"outgoing.network_timeout" = 1000``.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from typing import Any, ClassVar

from dnsrig.rundir import Level, Role
from dnsrig.servers.driver import Driver, Feature, Setting, Support
from dnsrig.servers.placement import DNS_PORT, PROXY_PORTS, Placement
from dnsrig.servers.resolving import AsResolver, Channel, Counters, of_lines
from dnsrig.servers.running import endpoint
from dnsrig.servers.templates import INCLUDE_FOLDER

VALIDATION: Mapping[Level, str] = {
    "no-do": "off",
    "do-unvalidated": "process-no-validate",
    "validating": "validate",
}
SOURCES = {"both": ["0.0.0.0", "::"], "ipv4": ["0.0.0.0"], "ipv6": ["::"]}
ENTRIES_PER_MB = 1024
"""Assumed entries in a megabyte, in the record and packet cache together: both are limited by entries, not by bytes."""
STALE_EXTENSIONS = 2880
"""Number of extensions of 30 s: a day, for which the other resolvers also serve expired records."""
PREFETCH_PERCENT = 10
"""Share of the TTL that is left when a record is fetched again, as in Unbound."""
REQUEST = b"get-all"
"""The request of rec_control; it follows a status of four bytes and a length of eight, in the byte order of the
machine."""
LOG_TIME = re.compile(r"^(?P<time>[A-Z][a-z]{2} \d\d \d\d:\d\d:\d\d) ")


def read_statistics(answer: bytes) -> Counters:
    """Counters from `get-all`, after a status and a length. Threads report their counts ten times a second."""
    seen = of_lines(answer[struct.calcsize("=iQ") :], "\t")
    if "questions" not in seen:
        return {}
    return {
        "client_queries": seen["questions"],
        "cache_hits": seen.get("packetcache-hits", 0.0) + seen.get("cache-hits", 0.0),
        "cache_misses": seen.get("cache-misses", 0.0),
        "upstream_queries": seen.get("all-outqueries", 0.0),
        "upstream_timeouts": seen.get("outgoing-timeouts", 0.0),
        "validations": seen.get("dnssec-validations", 0.0),
        "bogus": seen.get("dnssec-result-bogus", 0.0),
    }


class PowerDnsRecursor(Driver):
    kind = "powerdns-recursor"
    title = "PowerDNS Recursor"
    executable = "pdns_recursor"
    packages = ("pdns-recursor",)
    arguments = ("--config-dir={folder}",)
    configuration_file = "recursor.yml"
    templates: ClassVar[Mapping[Role, str]] = {"resolver": "recursor.yml.j2"}
    check_command = ("pdns_recursor", "--config-dir={folder}", "--config=check")
    listen_pattern = r"\s*(listen|local-address)\b"
    listen_line = "  listen: {{ addresses | tojson }}"
    template_variables: ClassVar[Mapping[str, str]] = {
        "settings": "section -> name -> value: the whole configuration, except where it listens"
    }
    version_arguments = ("--version",)
    version_pattern = r"Recursor[^0-9]*(\d+\.\d+\.\d+\S*)"
    roles = ("resolver",)
    answers_zones = False
    settings = (
        Setting("recursor.threads", "2", "threads that answer (set by dnsrig to the host's CPUs)"),
        Setting("outgoing.network_timeout", "1500", "ms for an answer of an authority"),
        Setting("incoming.max_concurrent_requests_per_tcp_connection", "10", "queries resolved at once"),
        Setting("incoming.tcp_timeout", "2", "seconds that a connection of a client may be idle"),
        Setting("packetcache.disable", "false", "whether whole answers are not kept"),
    )
    features: ClassVar[Mapping[Feature, Support]] = {}
    proxied = frozenset({"udp", "tcp"})
    why_not_proxied = "it has no port for TLS or HTTPS"
    as_resolver = AsResolver(
        levels={level: f"`dnssec.validation: {word}`" for level, word in VALIDATION.items()},
        lacking_levels={},
        words={
            "cache_mb": "`recordcache.max_entries` two thirds, `packetcache.max_entries` a third, at one KiB an entry: "
            "it counts no bytes",
            "recursions": "`recursor.max_mthreads`, a thread",
            "tcp_clients": "`incoming.max_tcp_clients`",
            "query_timeout_ms": "`recursor.max_total_msec`",
            "upstream": "`outgoing.source_address`",
            "qname_minimisation": "`recursor.qname_minimization`",
            "prefetch": f"`recordcache.refresh_on_ttl_perc` {PREFETCH_PERCENT} or 0",
            "serve_stale": f"`recordcache.serve_stale_extensions` {STALE_EXTENSIONS} or 0",
            "aggressive_nsec": "`dnssec.aggressive_nsec_cache_size` 100000 or 0",
        },
        fixed={},
        statistics=Channel(
            struct.pack("=iQ", 0, len(REQUEST)) + REQUEST, read_statistics, socket="pdns_recursor.controlsocket"
        ),
    )
    log_clock_resolution_ns = 1_000_000_000
    log_time = (LOG_TIME, "%b %d %H:%M:%S")
    defaults_command = ("pdns_recursor", "--config=default")

    def variables(self, placement: Placement) -> dict[str, Any]:
        chosen = {
            **_ours(placement),
            **(_proxied(placement) if placement.host.proxy_protocol else {}),
            **placement.settings,
        }
        if placement.host.include:
            chosen["recursor.include_dir"] = f"{placement.seen_directory}/{INCLUDE_FOLDER}"
        sections: dict[str, dict[str, Any]] = {}
        for name, value in chosen.items():
            section, _, setting = name.partition(".")
            sections.setdefault(section, {})[setting] = value
        return {"settings": sections}


def _proxied(placement: Placement) -> dict[str, Any]:
    """The settings with which it demands the PROXY protocol everywhere but at its usual port."""
    usual = [endpoint(str(address), DNS_PORT) for address in placement.addresses]
    return {
        "incoming.listen": [*usual, *(endpoint(str(at), PROXY_PORTS["udp"]) for at in placement.addresses)],
        "incoming.proxy_protocol_from": ["0.0.0.0/0", "::/0"],
        "incoming.proxy_protocol_exceptions": usual,
    }


def _ours(placement: Placement) -> dict[str, Any]:
    asked, anchor = placement.resolving, placement.anchor
    entries = asked.cache_mb * ENTRIES_PER_MB
    found: dict[str, Any] = {
        "incoming.allow_from": ["0.0.0.0/0", "::/0"],
        "incoming.max_tcp_clients": asked.tcp_clients,
        "outgoing.dont_query": [],
        "outgoing.source_address": SOURCES[asked.upstream],
        "recursor.daemon": False,
        "recursor.threads": placement.threads,
        "recursor.socket_dir": ".",  # where it is started: the whole path may be too long for a socket
        "recursor.security_poll_suffix": "",
        "recursor.max_mthreads": asked.recursions,
        "recursor.max_total_msec": asked.query_timeout_ms,
        "recursor.qname_minimization": asked.qname_minimisation,
        "recordcache.max_entries": entries * 2 // 3,
        "recordcache.refresh_on_ttl_perc": PREFETCH_PERCENT if asked.prefetch else 0,
        "recordcache.serve_stale_extensions": STALE_EXTENSIONS if asked.serve_stale else 0,
        "packetcache.max_entries": entries // 3,
        "dnssec.validation": VALIDATION[asked.level],
        "dnssec.aggressive_nsec_cache_size": 100_000 if asked.aggressive_nsec else 0,
        "logging.disable_syslog": True,
        "logging.quiet": True,
        "logging.loglevel": 4,
        "logging.structured_logging": True,
    }
    if placement.from_hints:
        found["recursor.hint_file"] = placement.seen_hints
    else:
        found["recursor.forward_zones"] = [
            {"zone": placement.suffix, "forwarders": [str(route.primary) for route in placement.routes]}
        ]
    if anchor is not None:
        found["dnssec.trustanchors"] = [{"name": ".", "dsrecords": list(anchor.ds)}]
    return found
