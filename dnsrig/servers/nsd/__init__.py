"""NSD, NLnet Labs.

Settings are attributes of ``server:``; an attribute of the pattern that all zones include is written ``pattern.NAME``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from dnsrig.confinement import NET_ADMIN, NET_BIND_SERVICE
from dnsrig.rundir import Role, Scalar, ServerLimit
from dnsrig.servers.behaviour import AsPrimary, AsSecondary, Settings, count
from dnsrig.servers.builds.recipe import AUTOTOOLS, Method, Recipe, Tree
from dnsrig.servers.driver import Driver, Feature, Setting, Support, ZoneCheck, connection_limit, timer
from dnsrig.servers.formats import yes_no
from dnsrig.servers.placement import Placement, Zone

PRIMARY_DEFAULTS: Mapping[str, Scalar] = {"tcp-count": 1000}
"""Settings of a primary. It is not under test, so its limit of TCP connections is raised until it has no effect."""


LOG_TIME = re.compile(r"^\[(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\.(?P<ms>\d{3})\]")


def _connections(settings: Settings) -> int:
    return count(settings, "xfrd-tcp-max", 128)


BUILD_LIBRARIES = ("bison", "flex", "libevent-dev", "libssl-dev")
DNSTAP_LIBRARIES = ("libfstrm-dev", "libprotobuf-c-dev", "protobuf-c-compiler")
"""Libraries for dnstap, which is built in by default from 4.13 on."""
BUILD_SCRIPT = """\
autoreconf -fi
./configure --prefix="$PREFIX" --with-configdir="$PREFIX/etc" --with-user=root "$@"
make -j"$JOBS"
make install
"""


def build_method(tree: Tree) -> Method:
    return Method("bookworm", (*AUTOTOOLS, *BUILD_LIBRARIES, *DNSTAP_LIBRARIES), BUILD_SCRIPT)


RECIPE = Recipe(
    repository="https://github.com/NLnetLabs/nsd.git",
    markers=("nsd.c",),
    release=r"NSD_(?P<version>\d+_\d+_\d+)_REL",
    method=build_method,
    submodules=("simdzone",),
    left_out=("tpkg",),
)


class Nsd(Driver):
    kind = "nsd"
    title = "NSD"
    executable = "nsd"
    recipe = RECIPE
    packages = ("nsd",)
    arguments = ("-d", "-c", "{folder}/nsd.conf")
    configuration_file = "nsd.conf"
    templates: ClassVar[Mapping[Role, str]] = {"primary": "nsd.conf.j2", "secondary": "nsd.conf.j2"}
    check_command = ("nsd-checkconf", "{folder}/nsd.conf")
    address_arguments = ("-a", "{address}")
    port_arguments = ("-p", "{port}")
    template_variables: ClassVar[Mapping[str, str]] = {
        "settings": "`server` and `pattern`, each name -> value",
    }
    version_arguments = ("-v",)
    version_pattern = r"NSD version (\S+)"
    # nsd.service of Debian grants NET_ADMIN: its sockets get larger buffers than the machine's limit.
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
    proxied = frozenset({"udp", "tcp"})
    why_not_proxied = "over DoT it expects the header inside TLS"
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
    log_time = (LOG_TIME, "%Y-%m-%d %H:%M:%S")
    done_pattern = r"zone (?P<zone>\S+) serial \d+ is updated to \d+"
    failure_patterns = {
        "no free port": r"(?i)cannot assign requested address",
        "transfer failed": r"xfrd: .*(failed|error|timeout)",
    }
    zone_pattern = r'^zone:\n    name: "(?P<zone>[^"]+)"'
    settings_command = ("nsd-checkconf", "-v", "{folder}/nsd.conf")
    defaults_command = ("nsd-checkconf", "-v", "/dev/null")

    def variables(self, placement: Placement) -> dict[str, Any]:
        chosen = {**(PRIMARY_DEFAULTS if placement.role == "primary" else {}), **placement.settings}
        prefix = "pattern."
        server = {n: yes_no(v) for n, v in chosen.items() if not n.startswith(prefix)}
        pattern = {n.removeprefix(prefix): yes_no(v) for n, v in chosen.items() if n.startswith(prefix)}
        return {"settings": {"server": server, "pattern": pattern}}

    def limits(self, role: Role, settings: Mapping[str, Scalar]) -> list[ServerLimit]:
        chosen = {**(PRIMARY_DEFAULTS if role == "primary" else {}), **settings}
        return [
            connection_limit(chosen, "tcp-count", 100, default="tcp-count" not in settings, each_thread=True),
            timer(
                settings,
                "xfrd-reload-timeout",
                1,
                "lower it: zones that were received are served after the next reload, at most one in this time",
            ),
        ]

    def zone_check(self, zones: Sequence[Zone], dataset: str, folder: str) -> ZoneCheck:
        return ZoneCheck([["nsd-checkzone", zone.name, f"{dataset}/{zone.file}"] for zone in zones])
