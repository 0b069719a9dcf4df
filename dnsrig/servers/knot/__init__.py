"""Knot DNS (knotd), CZ.NIC.

Settings are named ``section.item``, e.g. ``server.background-workers`` or ``template.zonefile-sync``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from dnsrig.errors import UsageError
from dnsrig.rundir import Role, Scalar, ServerLimit
from dnsrig.servers.behaviour import AsPrimary, AsSecondary, Policy, Settings, Transport, count
from dnsrig.servers.builds.recipe import AUTOTOOLS, Method, Recipe, Tree
from dnsrig.servers.driver import Driver, Feature, Setting, Support, ZoneCheck, connection_limit
from dnsrig.servers.placement import Placement, Zone

LOG_TIME = re.compile(r"^(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)")
SECTIONS = ("server", "database", "template")
PRIMARY_DEFAULTS: Mapping[str, Scalar] = {
    # The files are the dataset's and read-only; contents checked by the generator's tests.
    "template.zonefile-sync": -1,
    "template.journal-content": "none",
    "template.semantic-checks": "off",
}
ZONE_INSTANCE = 1
"""Number of the version of a zone in a zone database, which keeps up to eight."""
IXFR_PRIMARY_DEFAULTS: Mapping[str, Scalar] = {
    # IXFR consists of the differences between a zone file and its next version.
    "template.zonefile-load": "difference",
    "template.journal-content": "changes",
}

UPDATED_PRIMARY_DEFAULTS: Mapping[str, Scalar] = {
    # Updates are in the journal, from which IXFR is made; the file does not change.
    "template.zonefile-load": "whole",
    "template.journal-content": "changes",
}


POOL = "server.remote-pool-limit"


def _policy(settings: Settings, transport: Transport) -> Policy:
    """The policy of a secondary: it keeps connections only with that setting, and only without TLS."""
    return "reused" if transport == "tcp" and count(settings, POOL, 0) else "one"


BUILD_LIBRARIES = ("libcap-ng-dev", "libedit-dev", "libgnutls28-dev", "libhiredis-dev", "liblmdb-dev", "liburcu-dev")
BUILD_SCRIPT = """\
autoreconf -fi
./configure --prefix="$PREFIX" --disable-static --enable-fastparser --disable-xdp --disable-documentation \\
    --disable-utilities "$@"
make -j"$JOBS"
make install
"""
"""The fast parser of zone files is also the one in distributions."""


def build_method(tree: Tree) -> Method:
    return Method("trixie", (*AUTOTOOLS, *BUILD_LIBRARIES), BUILD_SCRIPT)


RECIPE = Recipe(
    repository="https://gitlab.nic.cz/knot/knot-dns.git",
    markers=("src/libknot/xdp/xdp.h",),
    release=r"v(?P<version>[3-9]\.\d+\.\d+)",
    method=build_method,
    left_out=("tests-extra",),
)


class Knot(Driver):
    kind = "knot"
    title = "Knot DNS"
    executable = "knotd"
    recipe = RECIPE
    packages = ("knot",)
    arguments = ("-c", "{folder}/knot.conf")
    configuration_file = "knot.conf"
    templates: ClassVar[Mapping[Role, str]] = {"primary": "knot.conf.j2", "secondary": "knot.conf.j2"}
    check_command = ("knotc", "-c", "{folder}/knot.conf", "conf-check")
    listen_pattern = r"\s*listen(-tls|-quic)?:"
    listen_line = "    listen: {{ address }}@{{ port }}"
    template_variables: ClassVar[Mapping[str, str]] = {
        "settings": "section -> name -> value, with the sections `server`, `database` and `template`",
        "zone_instance": "number of the version of a zone in a zone database",
    }
    version_arguments = ("-V",)
    version_pattern = r"Knot DNS\)?,? (?:version )?(\d+\.\d+\S*)"
    settings = (
        Setting(
            "server.background-workers", "CPUs, at most 10", "transfers, zone loading and signing run on these threads"
        ),
        Setting("server.udp-workers", "CPUs", "threads that answer over UDP (set by dnsrig to the host's CPUs)"),
        Setting("server.tcp-workers", "CPUs, at least 10", "threads that answer over TCP"),
        Setting(POOL, "0", "outgoing TCP connections kept for reuse; 0 opens one a transfer"),
        Setting(
            "server.tcp-io-timeout",
            "500 ms",
            "how long a write may wait for the peer; a primary cuts a transfer over a slow, long link whose queue takes longer",
        ),
        Setting("server.tcp-remote-io-timeout", "5000 ms", "how long a secondary waits for its primary"),
        Setting("server.async-start", "off", "answer before all zones are loaded or were tried once"),
        Setting("template.zonefile-sync", "0", "seconds before a changed zone is written to its file; -1 never"),
        Setting(
            "template.refresh-max-interval", "2w", "a SOA's refresh timer beyond it is cut (refresh-min-interval: 2 s)"
        ),
        Setting("template.journal-content", "changes", "what the journal keeps: none, changes, all"),
    )
    features: ClassVar[Mapping[Feature, Support]] = {
        "TSIG": Support("1.0", "1.0"),
        "XoT": Support("3.4", "3.4"),
        "XoQ": Support("3.3", "3.3"),
        "DoT": Support("3.4", "3.4"),
        "DoQ": Support("3.3", "3.3"),
        "catalog zones": Support("1.0", "3.0"),
        "catalog zones of schema 1": Support("1.0", None),
        "IXFR": Support("1.0", "1.0"),
        "NOTIFY": Support("1.0", "1.0"),
        "dynamic updates": Support("1.5", None),
        "several source addresses": Support(None, "1.0"),
        "zone database": Support("3.5", "3.5"),
    }
    remedies = {
        "silent-connections": "over QUIC 3.5.8 drops a connection whose queries span more than ten streams, for good and "
        "without a word, although it permits 1,024 (MAX_STREAMS_PER_CONN of src/libknot/quic/quic_conn.h)",
    }
    databases = ("redis", "valkey")
    waits_for_database = True
    proxied = frozenset({"udp"})
    why_not_proxied = "its `proxy-allowlist` is for UDP"
    as_secondary = AsSecondary(
        title="Knot DNS",
        policy=_policy,
        workers=lambda settings: count(settings, "server.background-workers", 10),
        workers_setting="server.background-workers",
        zone_s=0.27e-3,
        record_s=1.0e-6,
        zones_measured=10_000,
        connections_setting=POOL,
        soa=lambda transport: "own" if transport == "xot" else "udp",
        time_wait=lambda transport: transport == "tcp",
    )
    as_primary = AsPrimary(
        "Knot DNS", {"one": 119, "reused": 55.3, "pipelined": 26.0}, {"one": 802, "reused": 62.6, "pipelined": 30.7}
    )
    log_clock_resolution_ns = 1_000_000_000
    log_time = (LOG_TIME, "%Y-%m-%dT%H:%M:%S")
    done_pattern = r"\[(?P<zone>[^\]\s]+)\] (refresh, remote \S+,.* zone updated|database loaded, instance)"
    failure_patterns = {
        "no free port": r"(?i)address is not available|cannot assign requested address",
        "database not usable": r"rdb, failed to|failed to load (updates )?from database|zone database update failed",
        "transfer failed": r"AXFR, incoming, .*failed|refresh, .*failed",
    }
    zone_pattern = r"^  - domain: (?P<zone>\S+)"
    settings_command = ("knotc", "-s", "{state}/knot.sock", "conf-read", *SECTIONS)
    work_patterns = {
        "update of its members by the catalog": r"info: catalog, updating, \d+ changes",
        "reload": r"info: (reloading configuration|control, received command 'reload')",
    }

    def variables(self, placement: Placement) -> dict[str, Any]:
        chosen: dict[str, Scalar] = {"server.udp-workers": placement.threads}
        if placement.role == "primary":
            chosen |= PRIMARY_DEFAULTS
        if placement.role == "primary" and placement.transfer.ixfr:
            chosen |= IXFR_PRIMARY_DEFAULTS
        if placement.role == "primary" and placement.transfer.updates:
            chosen |= UPDATED_PRIMARY_DEFAULTS
        return {"settings": by_section({**chosen, **placement.settings}), "zone_instance": ZONE_INSTANCE}

    def limits(self, role: Role, settings: Mapping[str, Scalar]) -> list[ServerLimit]:
        # By itself it has half as many as it may open files.
        clients = "server.tcp-max-clients"
        found = [connection_limit(settings, clients, 0, default=False)] if clients in settings else []
        value = settings.get("server.async-start", "off")
        if value in ("on", True):
            return found
        return [
            *found,
            ServerLimit(
                setting="server.async-start",
                value=value,
                default="server.async-start" not in settings,
                effect="silent-start",
                remedy='set it on, e.g. settings = { "server.async-start" = "on" }: zones are then answered as they come',
            ),
        ]

    def zone_check(self, zones: Sequence[Zone], dataset: str, folder: str) -> ZoneCheck:
        # knotc checks as knotd does by default; kzonecheck is stricter, and in another package.
        listed = "".join(f'  - domain: "{zone.name}."\n    file: "{dataset}/{zone.file}"\n' for zone in zones)
        command = ["knotc", "-c", f"{folder}/knot.conf", "zone-check"]
        return ZoneCheck([[*command, zone.name] for zone in zones], {"knot.conf": f"zone:\n{listed}"})


def by_section(settings: Mapping[str, Scalar]) -> dict[str, dict[str, str]]:
    """``{"server.udp-workers": 1}`` -> ``{"server": {"udp-workers": "1"}, …}``."""
    result: dict[str, dict[str, str]] = {section: {} for section in SECTIONS}
    for name, value in settings.items():
        section, _, item = name.partition(".")
        if section not in result or not item:
            raise UsageError(
                f"Knot DNS has no setting {name!r} here",
                hint=f"write SECTION.ITEM with SECTION one of {', '.join(SECTIONS)}",
            )
        result[section][item] = ("on" if value else "off") if isinstance(value, bool) else str(value)
    return result
