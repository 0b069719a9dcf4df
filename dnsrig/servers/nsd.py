"""NSD, NLnet Labs.

Settings are attributes of ``server:``; those of the pattern that all zones include are written ``pattern.NAME``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar

from dnsrig.confinement import NET_ADMIN, NET_BIND_SERVICE
from dnsrig.rundir import Role, Scalar, ServerLimit
from dnsrig.servers import keys
from dnsrig.servers.behaviour import AsPrimary, AsSecondary, Settings, count
from dnsrig.servers.driver import DNS_PORT, Driver, Feature, Setting, Support, template, timer, yes_no
from dnsrig.servers.logs import utc_ns
from dnsrig.servers.placement import Placement
from dnsrig.servers.recipes.nsd import RECIPE

PRIMARY_DEFAULTS: Mapping[str, Scalar] = {"tcp-count": 1000}
"""The primary is not under test: its own limit of TCP connections is raised so that it does not bind."""

CONFIGURATION = template("""\
server:
    server-count: {{ p.threads }}
{% for address in p.addresses %}
    ip-address: {{ address }}@{{ port }}
{% if p.answers_over_tls %}
    ip-address: {{ address }}@{{ keys.XOT_PORT }}
{% endif %}
{% endfor %}
    port: {{ port }}
{% if p.answers_over_tls %}
    tls-port: {{ keys.XOT_PORT }}
    tls-service-key: "{{ p.private_key }}"
    tls-service-pem: "{{ p.certificate }}"
{% endif %}
{% if p.transfer.tls and p.role == "secondary" %}
    tls-cert-bundle: "{{ p.certificate }}"
{% endif %}
    username: ""
    chroot: ""
    zonesdir: "{{ p.seen_state }}"
    zonelistfile: "{{ p.seen_state }}/zone.list"
    xfrdfile: "{{ p.seen_state }}/xfrd.state"
    xfrdir: "{{ p.seen_state }}"
    pidfile: "{{ p.seen_state }}/nsd.pid"
    verbosity: 1
{% for name, value in server.items() %}
    {{ name }}: {{ value }}
{% endfor %}
remote-control:
    control-enable: no
{% if p.transfer.tsig %}
key:
    name: "{{ keys.TSIG_NAME }}"
    algorithm: {{ keys.TSIG_ALGORITHM }}
    secret: "{{ p.keys.tsig_secret }}"
{% endif %}
{% if p.transfer.tls and p.role == "secondary" %}
tls-auth:
    name: xot
    auth-domain-name: {{ keys.TLS_NAME }}
{% endif %}
{% set key = keys.TSIG_NAME if p.transfer.tsig else "NOKEY" %}
{% if p.role == "primary" %}
pattern:
    name: all
    provide-xfr: 0.0.0.0/0 {{ key }}
    provide-xfr: ::0/0 {{ key }}
{% if p.transfer.notify %}
{% for address in p.secondaries %}
    notify: {{ address }} NOKEY
{% endfor %}
{% endif %}
{% if p.transfer.ixfr %}
    create-ixfr: yes
    store-ixfr: yes
{% endif %}
{% for name, value in pattern.items() %}
    {{ name }}: {{ value }}
{% endfor %}
{% endif %}
{% for route in p.routes %}
pattern:
    name: route{{ route.number }}
    zonefile: "%s.zone"
    request-xfr: {{ "" if p.transfer.ixfr else "AXFR " }}{{ route.primary }}@{{ keys.XOT_PORT if p.transfer.tls else port }} {{ key }}{{ " xot" if p.transfer.tls }}
    allow-notify: {{ route.primary }} NOKEY
{% if p.transfer.tsig %}
    allow-notify: {{ route.primary }} {{ key }}
{% endif %}
{% if route.source %}
    outgoing-interface: {{ route.source }}
{% endif %}
{% for name, value in pattern.items() %}
    {{ name }}: {{ value }}
{% endfor %}
{% endfor %}
{% for zone in p.configured_zones %}
zone:
    name: "{{ zone.name }}"
{% if p.role == "primary" %}
    zonefile: "{{ p.seen_zone_file(zone) }}"
    include-pattern: all
{% else %}
{% if p.catalog %}
    catalog: consumer
    catalog-member-pattern: route1
{% endif %}
    include-pattern: route{{ p.route_of(loop.index0).number }}
{% endif %}
{% endfor %}
""")

LOG_TIME = re.compile(r"^\[(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\.(?P<ms>\d{3})\]")


def _connections(settings: Settings) -> int:
    return count(settings, "xfrd-tcp-max", 128)


class Nsd(Driver):
    kind = "nsd"
    title = "NSD"
    executable = "nsd"
    recipe = RECIPE
    packages = ("nsd",)
    version_arguments = ("-v",)
    version_pattern = r"NSD version (\S+)"
    # nsd.service of Debian leaves it this one: its sockets get larger buffers than the machine's limit.
    capabilities = (NET_BIND_SERVICE, NET_ADMIN)
    settings = (
        Setting("xfrd-tcp-max", "128", "TCP connections that the transfer daemon opens at once"),
        Setting("xfrd-tcp-pipeline", "128", "transfers at once on one of these connections"),
        Setting("xfrd-reload-timeout", "1", "seconds between reloads: transferred zones are served after the next one"),
        Setting(
            "zonefiles-write",
            "3600",
            "seconds between writing what a secondary received to files; a restart loads these",
        ),
        Setting("tcp-count", "100", "TCP connections accepted at once"),
        Setting("server-count", "1", "processes that answer (set by dnsrig to the host's CPUs)"),
    )
    features: ClassVar[Mapping[Feature, Support]] = {
        "TSIG": Support("1.0", "1.0"),
        "XoT": Support("4.2", "4.3.7"),
        "DoT": Support("4.2", "4.2"),
        "catalog zones": Support("1.0", "4.9"),
        "catalog zones of schema 1": Support("1.0", None),
        "IXFR": Support("4.5", "3.0"),
        "NOTIFY": Support("1.0", "1.0"),
        "several source addresses": Support(None, "1.0"),
    }
    as_secondary = AsSecondary(
        title="NSD",
        policy=lambda settings, transport: "pipelined",
        # nsd.conf(5): xfrd-tcp-max, xfrd-tcp-pipeline.
        workers=lambda settings: _connections(settings) * count(settings, "xfrd-tcp-pipeline", 128),
        workers_setting="xfrd-tcp-max and xfrd-tcp-pipeline",
        zone_s=0.15e-3,
        record_s=1.2e-6,
        zones_measured=30_000,
        connections=_connections,
    )
    as_primary = AsPrimary(
        "NSD", {"one": 82.8, "reused": 70.2, "pipelined": 34.4}, {"one": 930, "reused": 66.6, "pipelined": 42.1}
    )
    log_clock_resolution_ns = 1_000_000
    done_pattern = r"zone (?P<zone>\S+) serial \d+ is updated to \d+"
    failure_patterns = {
        "no free port": r"(?i)cannot assign requested address",
        "transfer failed": r"xfrd: .*(failed|error|timeout)",
    }
    zone_pattern = r'^zone:\n    name: "(?P<zone>[^"]+)"'
    settings_command = ("nsd-checkconf", "-v", "{directory}/nsd.conf")
    defaults_command = ("nsd-checkconf", "-v", "/dev/null")

    def configure(self, placement: Placement) -> None:
        chosen = {**(PRIMARY_DEFAULTS if placement.role == "primary" else {}), **placement.settings}
        prefix = "pattern."
        text = CONFIGURATION.render(
            p=placement,
            port=DNS_PORT,
            keys=keys,
            server={n: yes_no(v) for n, v in chosen.items() if not n.startswith(prefix)},
            pattern={n.removeprefix(prefix): yes_no(v) for n, v in chosen.items() if n.startswith(prefix)},
        )
        (placement.directory / "nsd.conf").write_text(text)

    def command(self, placement: Placement) -> list[str]:
        return [self.executable, "-d", "-c", f"{placement.seen_directory}/nsd.conf"]

    def limits(self, role: Role, settings: Mapping[str, Scalar]) -> list[ServerLimit]:
        return [
            timer(
                settings,
                "xfrd-reload-timeout",
                1,
                "lower it: zones that were received are served after the next reload, at most one in this time",
            )
        ]

    def log_time_ns(self, line: str) -> int | None:
        return utc_ns(line, LOG_TIME, "%Y-%m-%d %H:%M:%S")
