"""BIND 9 (named), Internet Systems Consortium."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from dnsrig.rundir import Role, Scalar, ServerLimit
from dnsrig.servers.behaviour import AsPrimary, AsSecondary, count
from dnsrig.servers.bind import configuration, resolver
from dnsrig.servers.bind.recipe import RECIPE
from dnsrig.servers.driver import Driver, Feature, Setting, Support, ZoneCheck, connection_limit
from dnsrig.servers.formats import numbers, yes_no
from dnsrig.servers.placement import Placement, Zone

PRIMARY_DEFAULTS = {"transfers-out": 100_000, "tcp-clients": 10_000, "tcp-listen-queue": 1_000}
"""Settings of a primary. It is not under test, so its limits are raised until they have no effect."""
UPDATED_PRIMARY_DEFAULTS: Mapping[str, Scalar] = {
    "notify-delay": 0,
    "notify-rate": 10_000,
    "max-ixfr-ratio": "unlimited",
}
"""More settings of a primary that takes updates: it notifies of each at once, and sends differences even of small
zones."""

UPDATE_INTERVAL = "min-update-interval"
"""A setting in `catalog-zones`, not among the options."""


NEW_WORDS = {"primary": "primary", "secondary": "secondary", "primaries": "primaries"}
FORMER_WORDS = {"primary": "master", "secondary": "slave", "primaries": "masters"}

LOG_TIME = re.compile(r"^(?P<time>\d\d-[A-Z][a-z]{2}-\d{4} \d\d:\d\d:\d\d)\.(?P<ms>\d{3})")


class Bind(Driver):
    kind = "bind"
    title = "BIND 9"
    executable = "named"
    recipe = RECIPE
    packages = ("bind9", "bind9-utils")
    roles = ("primary", "secondary", "resolver")
    arguments = ("-f", "-n", "{threads}", "-c", "{folder}/named.conf")  # not -g, which ignores the logging statement
    configuration_file = "named.conf"
    templates: ClassVar[Mapping[Role, str]] = {
        "primary": "named.conf.j2",
        "secondary": "named.conf.j2",
        "resolver": "named-resolver.conf.j2",
    }
    check_command = ("named-checkconf", "{folder}/named.conf")
    listen_pattern = r"\s*listen-on"
    listen_line = "listen-on port {{ port }} { {{ address }}; };"
    listens_everywhere = True
    template_variables: ClassVar[Mapping[str, str]] = {
        "settings": "name -> value, for `options`; only `min-update-interval` is for `catalog-zones`",
        "words": "for a primary or a secondary: `primary`, `secondary`, `primaries` as this version calls them",
        "anchor_key": "for a resolver that validates: the DNSKEY of the root as a list of four texts",
        "statistics_port": "for a resolver: port at which dnsrig asks for its counters",
    }
    version_arguments = ("-v",)
    version_pattern = r"BIND (\d+\.\d+\.\d+\S*)"
    settings = (
        Setting(
            "serial-query-rate", "20", "SOA queries a second that a secondary sends; the first limit of a cold start"
        ),
        Setting("transfers-in", "10", "zone transfers running at once, inbound"),
        Setting("transfers-per-ns", "2", "zone transfers running at once from one primary"),
        Setting("transfers-out", "10", "zone transfers running at once, outbound; the excess is answered SERVFAIL"),
        Setting("notify-delay", "5", "seconds between two rounds of NOTIFY for a zone"),
        Setting("notify-rate", "20", "NOTIFY messages a second"),
        Setting(
            "max-refresh-time", "2419200", "seconds; a SOA's refresh timer beyond it is cut (min-refresh-time: 300)"
        ),
        Setting(
            UPDATE_INTERVAL,
            "5",
            "seconds between two updates of the members from a catalog zone, of its `catalog-zones`",
        ),
        Setting("tcp-clients", "150", "TCP connections accepted at once"),
        Setting("tcp-listen-queue", "10", "backlog of the listening TCP socket"),
    )
    features: ClassVar[Mapping[Feature, Support]] = {
        "TSIG": Support("9.0", "9.0"),
        "XoT": Support("9.18", "9.18"),
        "DoT": Support("9.18", "9.18", "9.18"),
        "DoH": Support("9.18", "9.18", "9.18"),
        # A primary serves a catalog like any zone. Secondaries follow schema version 2 since 9.18.3, version 1 since
        # 9.11.
        "catalog zones": Support("9.0", "9.18.3"),
        "catalog zones of schema 1": Support("9.0", "9.11"),
        "IXFR": Support("9.0", "9.0"),
        "NOTIFY": Support("9.0", "9.0"),
        "dynamic updates": Support("9.0", None),
        "several source addresses": Support(None, "9.0"),
    }
    proxied = frozenset({"udp", "tcp", "dot"})
    why_not_proxied = "dnsrig sets up UDP, TCP and DoT"
    as_secondary = AsSecondary(
        title="BIND",
        policy=lambda settings, transport: "one",
        # Administrator Reference Manual: transfers-per-ns, transfers-in.
        workers=lambda settings: min(count(settings, "transfers-per-ns", 2), count(settings, "transfers-in", 10)),
        workers_setting="transfers-per-ns and transfers-in",
        zone_s=0.5e-3,
        record_s=1.5e-6,
        zones_measured=10_000,
    )
    as_primary = AsPrimary(
        "BIND", {"one": 186, "reused": 91.8, "pipelined": 115}, {"one": 627, "reused": 147, "pipelined": 98.7}
    )
    as_resolver = resolver.AS_RESOLVER
    remedies = {
        "blocked-thread": "fixed for catalogs in 9.18.13",
        "client-rate-limit": "rate-limit, off by default; ipv4-prefix-length 32 counts each client",
        "few-bytes-a-message": "transfer-format many-answers, transfer-message-size",
        "full-handshakes": "session-tickets in its tls block",
        "stalled-server": "the stalls of 9.18.10 are gone in 9.18.13",
        "transfer-limit": "transfers-out, 10 by default",
    }
    log_clock_resolution_ns = 1_000_000
    log_time = (LOG_TIME, "%d-%b-%Y %H:%M:%S")
    done_pattern = r"transfer of '(?P<zone>[^']+)/IN' from \S+: Transfer status: success"
    failure_patterns = {
        "no free port": r"address not available|(failed to connect|refresh: failure).*address in use",
        "transfer failed": r"Transfer status: (?!success)|failed to connect",
        "refresh failed": r"refresh: (failure|retry limit|unexpected)",
    }
    zone_pattern = r'^zone "(?P<zone>[^"]+)"'
    settings_command = ("named-checkconf", "-p", "{folder}/named.conf")
    defaults_command = ("named", "-C")
    work_patterns = {
        "update of its members by the catalog": r"catz: updating catalog zone",
        "reload": r"received control channel command 'reload|reloading configuration",
    }

    def variables(self, placement: Placement) -> dict[str, Any]:
        if placement.role == "resolver":
            anchor = placement.anchor
            return {
                "settings": resolver.settings(placement),
                "statistics_port": resolver.STATISTICS_PORT,
                "anchor_key": anchor.dnskey.split() if anchor else [],
            }
        defaults: dict[str, Scalar] = dict(PRIMARY_DEFAULTS) if placement.role == "primary" else {}
        if placement.role == "primary" and placement.transfer.updates:
            defaults |= UPDATED_PRIMARY_DEFAULTS
        return {
            "settings": {name: yes_no(value) for name, value in {**defaults, **placement.settings}.items()},
            "words": NEW_WORDS if _speaks_of_primaries(placement.source.version) else FORMER_WORDS,
        }

    def read_defaults(self, text: str) -> dict[str, str]:
        return configuration.printed_defaults(text)

    def limits(self, role: Role, settings: Mapping[str, Scalar]) -> list[ServerLimit]:
        if role == "resolver":
            return []
        chosen = {**(PRIMARY_DEFAULTS if role == "primary" else {}), **settings}
        clients = connection_limit(chosen, "tcp-clients", 150, default="tcp-clients" not in settings)
        rate = settings.get("serial-query-rate", 20)
        if role != "secondary" or not isinstance(rate, int | float):
            return [clients]
        return [
            clients,
            ServerLimit(
                setting="serial-query-rate",
                value=rate,
                default="serial-query-rate" not in settings,
                zones_per_s=float(rate),
                remedy='raise it, e.g. settings = { "serial-query-rate" = 10000 }: a cold secondary asks one SOA a zone',
            ),
        ]

    def zone_check(self, zones: Sequence[Zone], dataset: str, folder: str) -> ZoneCheck:
        # As named checks a primary's zone by default; without a network, it cannot look up names outside of the zone.
        words = ["named-checkzone", "-i", "local", "-k", "fail"]
        return ZoneCheck([[*words, zone.name, f"{dataset}/{zone.file}"] for zone in zones])


def _speaks_of_primaries(version: str) -> bool:
    """Whether the version uses the new words. Since 9.18 a catalog has `default-primaries`, and 9.11 has none of the
    new words; a server does not start with words that it does not know."""
    return not numbers(version) or numbers(version) >= (9, 18)
