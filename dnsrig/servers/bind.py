"""BIND 9 (named), Internet Systems Consortium."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar

from dnsrig.rundir import Role, Scalar, ServerLimit, TransferSpec
from dnsrig.servers import _bind_resolver, defaults, keys
from dnsrig.servers._bind_options import BEGIN
from dnsrig.servers.behaviour import AsPrimary, AsSecondary, count
from dnsrig.servers.driver import DNS_PORT, Driver, Feature, Setting, Support, numbers, template, yes_no
from dnsrig.servers.logs import utc_ns
from dnsrig.servers.placement import Placement, Route
from dnsrig.servers.recipes.bind import RECIPE

PRIMARY_DEFAULTS = {"transfers-out": 100_000, "tcp-clients": 10_000, "tcp-listen-queue": 1_000}
"""The primary is not under test: its own limits are raised so that they do not bind."""
UPDATED_PRIMARY_DEFAULTS: Mapping[str, Scalar] = {
    "notify-delay": 0,
    "notify-rate": 10_000,
    "max-ixfr-ratio": "unlimited",
}
"""The same of a primary that takes updates: it tells of each at once, and sends differences however small the zone."""

UPDATE_INTERVAL = "min-update-interval"
"""A setting that stands in `catalog-zones`, not among the options."""

WORDS = {"primary": "primary", "secondary": "secondary", "primaries": "primaries"}
FORMER_WORDS = {"primary": "master", "secondary": "slave", "primaries": "masters"}

CONFIGURATION = template(
    """\
{% if p.transfer.tsig %}
key "{{ keys.TSIG_NAME }}" { algorithm {{ keys.TSIG_ALGORITHM }}; secret "{{ p.keys.tsig_secret }}"; };
{% endif %}
{% if p.transfer.tls and p.role == "secondary" %}
tls xot { ca-file "{{ p.certificate }}"; remote-hostname "{{ keys.TLS_NAME }}"; };
{% endif %}
"""
    + BEGIN
    + """\
    recursion no;
    dnssec-validation no;
{% if p.transfer.notify and p.role == "primary" %}
    notify explicit;
    also-notify { {% for address in p.secondaries %}{{ address }}; {% endfor %}};
{% else %}
    notify no;
{% endif %}
    request-ixfr {{ "yes" if p.transfer.ixfr else "no" }};
    allow-query { any; };
    allow-transfer { {{ "none" if p.role == "secondary" else 'key "' + keys.TSIG_NAME + '"' if p.transfer.tsig else "any" }}; };
{% if p.catalog and p.role == "secondary" %}
    catalog-zones { zone "{{ p.catalog.name }}" default-{{ words.primaries }} { {{ primary(p.routes[0]) }} }{% if update_interval is not none %} min-update-interval {{ update_interval }}{% endif %}; };
{% endif %}
{% for name, value in settings.items() %}
    {{ name }} {{ value }};
{% endfor %}
};
controls { };
logging {
    channel standard_error { stderr; severity info; print-time yes; print-category yes; print-severity yes; };
    category default { standard_error; };
{% if p.role == "primary" %}
    category xfer-out { null; };
{% endif %}
};
{% for zone in p.configured_zones %}
{% if p.role == "primary" and p.transfer.updates %}
zone "{{ zone.name }}" { type {{ words.primary }}; file "{{ p.seen_zone_file(zone) }}"; journal "{{ zone.name }}.jnl"; allow-update { {{ 'key "' + keys.TSIG_NAME + '"' if p.transfer.tsig else "any" }}; }; };
{% elif p.role == "primary" and p.transfer.ixfr %}
zone "{{ zone.name }}" { type {{ words.primary }}; file "{{ p.seen_zone_file(zone) }}"; ixfr-from-differences yes; journal "{{ zone.name }}.jnl"; };
{% elif p.role == "primary" %}
zone "{{ zone.name }}" { type {{ words.primary }}; file "{{ p.seen_zone_file(zone) }}"; };
{% else %}
{% set route = p.route_of(loop.index0) %}
zone "{{ zone.name }}" { type {{ words.secondary }}; {{ words.primaries }} { {{ primary(route) }} }; file "{{ zone.name }}.db";{% if route.source %} transfer-source{{ "-v6" if route.source.version == 6 }} {{ route.source }};{% endif %} };
{% endif %}
{% endfor %}
"""
)

LOG_TIME = re.compile(r"^(?P<time>\d\d-[A-Z][a-z]{2}-\d{4} \d\d:\d\d:\d\d)\.(?P<ms>\d{3})")


class Bind(Driver):
    kind = "bind"
    title = "BIND 9"
    executable = "named"
    recipe = RECIPE
    packages = ("bind9", "bind9-utils")
    roles = ("primary", "secondary", "resolver")
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
        # Serving one is serving any zone; schema version 2 is followed since 9.18.3, version 1 since there are any.
        "catalog zones": Support("9.0", "9.18.3"),
        "catalog zones of schema 1": Support("9.0", "9.11"),
        "IXFR": Support("9.0", "9.0"),
        "NOTIFY": Support("9.0", "9.0"),
        "dynamic updates": Support("9.0", None),
        "several source addresses": Support(None, "9.0"),
    }
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
    as_resolver = _bind_resolver.AS_RESOLVER
    remedies = {
        "blocked-thread": "9.18.13 mended it for catalogs",
        "client-rate-limit": "rate-limit, off by default; ipv4-prefix-length 32 counts each client",
        "few-bytes-a-message": "transfer-format many-answers, transfer-message-size",
        "full-handshakes": "session-tickets in its tls block",
        "stalled-server": "the stalls of 9.18.10 are gone in 9.18.13",
        "transfer-limit": "transfers-out, 10 by default",
    }
    log_clock_resolution_ns = 1_000_000
    done_pattern = r"transfer of '(?P<zone>[^']+)/IN' from \S+: Transfer status: success"
    failure_patterns = {
        "no free port": r"address not available|(failed to connect|refresh: failure).*address in use",
        "transfer failed": r"Transfer status: (?!success)|failed to connect",
        "refresh failed": r"refresh: (failure|retry limit|unexpected)",
    }
    zone_pattern = r'^zone "(?P<zone>[^"]+)"'
    settings_command = ("named-checkconf", "-p", "{directory}/named.conf")
    defaults_command = ("named", "-C")
    work_patterns = {
        "update of its members by the catalog": r"catz: updating catalog zone",
        "reload": r"received control channel command 'reload|reloading configuration",
    }

    def configure(self, placement: Placement) -> None:
        if placement.role == "resolver":
            (placement.directory / "named.conf").write_text(_bind_resolver.configuration(placement))
            return
        defaults: dict[str, Scalar] = dict(PRIMARY_DEFAULTS) if placement.role == "primary" else {}
        if placement.role == "primary" and placement.transfer.updates:
            defaults |= UPDATED_PRIMARY_DEFAULTS
        settings = {name: yes_no(value) for name, value in {**defaults, **placement.settings}.items()}
        text = CONFIGURATION.render(
            p=placement,
            port=DNS_PORT,
            update_interval=settings.pop(UPDATE_INTERVAL, None),
            settings=settings,
            keys=keys,
            primary=lambda route: _primary(route, placement.transfer),
            words=WORDS if _speaks_of_primaries(placement.source.version) else FORMER_WORDS,
        )
        (placement.directory / "named.conf").write_text(text)

    def read_defaults(self, text: str) -> dict[str, str]:
        return defaults.of_blocks(text)

    def command(self, placement: Placement) -> list[str]:
        # Not -g: it ignores the logging statement.
        return [self.executable, "-f", "-n", str(placement.threads), "-c", f"{placement.seen_directory}/named.conf"]

    def limits(self, role: Role, settings: Mapping[str, Scalar]) -> list[ServerLimit]:
        if role != "secondary":
            return []
        rate = settings.get("serial-query-rate", 20)
        if not isinstance(rate, int | float):
            return []
        return [
            ServerLimit(
                setting="serial-query-rate",
                value=rate,
                default="serial-query-rate" not in settings,
                zones_per_s=float(rate),
                remedy='raise it, e.g. settings = { "serial-query-rate" = 10000 }: a cold secondary asks one SOA a zone',
            )
        ]

    def log_time_ns(self, line: str) -> int | None:
        return utc_ns(line, LOG_TIME, "%d-%b-%Y %H:%M:%S")


def _speaks_of_primaries(version: str) -> bool:
    """Since 9.18 a catalog has `default-primaries`, and 9.11 has none of the new words; a server does not start with
    what it does not know."""
    return not numbers(version) or numbers(version) >= (9, 18)


def _primary(route: Route, transfer: TransferSpec) -> str:
    """One entry of a `primaries` statement."""
    words = [str(route.primary), "port", str(keys.XOT_PORT if transfer.tls else DNS_PORT)]
    words += ["key", f'"{keys.TSIG_NAME}"'] if transfer.tsig else []
    words += ["tls", "xot"] if transfer.tls else []
    return " ".join(words) + ";"
