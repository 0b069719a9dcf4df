"""PowerDNS Authoritative Server with its SQLite backend, PowerDNS.COM BV."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from dnsrig.errors import DnsrigError
from dnsrig.rundir import Scalar, ServerLimit
from dnsrig.servers.driver import (
    DNS_PORT,
    Driver,
    Placement,
    Preparation,
    Role,
    Setting,
    template,
    timer,
    utc_ns,
    yes_no,
)

SCHEMA_FILES = (
    "usr/share/pdns-backend-sqlite3/schema/schema.sqlite3.sql",
    "usr/share/doc/pdns-backend-sqlite3/schema.sqlite3.sql",
    "share/doc/pdns/schema.sqlite3.sql",
)
SECONDARY_TYPE = "SLAVE"
"""The schema's word for a secondary zone."""
PRIMARY_DEFAULTS: Mapping[str, Scalar] = {"max-tcp-connections": 1000}

CONFIGURATION = template("""\
launch=gsqlite3
gsqlite3-database={{ p.seen_state }}/zones.sqlite3
local-address={{ p.address }}
local-port={{ port }}
daemon=no
guardian=no
socket-dir={{ p.seen_state }}
setuid=
setgid=
security-poll-suffix=
loglevel=5
log-timestamp=yes
receiver-threads={{ p.threads }}
{% if p.role == "primary" %}
disable-axfr=no
allow-axfr-ips=0.0.0.0/0,::/0
{% else %}
{{ secondary_word }}=yes
{% endif %}
{% for name, value in settings.items() %}
{{ name }}={{ value }}
{% endfor %}
""")

LOG_TIME = re.compile(r"^(?P<time>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d)")


class PowerDns(Driver):
    kind = "powerdns"
    title = "PowerDNS Authoritative Server (SQLite)"
    executable = "pdns_server"
    packages = ("pdns-server", "pdns-backend-sqlite3", "pdns-tools", "sqlite3")
    version_arguments = ("--version",)
    version_pattern = r"PowerDNS Authoritative Server (\d\S*)"
    settings = (
        Setting("retrieval-threads", "2", "zone transfers running at once, inbound"),
        Setting("xfr-cycle-interval", "60", "seconds between two looks for zones that need a refresh"),
        Setting("max-tcp-connections", "20", "TCP connections accepted at once"),
        Setting("distributor-threads", "3", "backend threads a receiver thread"),
        Setting("gsqlite3-pragma-synchronous", "1", "how hard SQLite tries that data survive a power cut"),
    )
    log_clock_resolution_ns = 1_000_000_000
    done_pattern = r"zone:? '(?P<zone>[^']+)'.* zone committed"
    failure_patterns = {
        "address not available": r"(?i)cannot assign requested address",
        "transfer failed": r"(?i)unable to (axfr|xfr) zone|AXFR-in.*(error|failed)",
        "SOA query unanswered": r"Unable to retrieve SOA for",
    }

    def configure(self, placement: Placement) -> None:
        defaults = PRIMARY_DEFAULTS if placement.role == "primary" else {}
        text = CONFIGURATION.render(
            p=placement,
            port=DNS_PORT,
            secondary_word="secondary" if _speaks_of_secondaries(placement.source.version) else "slave",
            settings={name: yes_no(value) for name, value in {**defaults, **placement.settings}.items()},
        )
        (placement.directory / "pdns.conf").write_text(text)
        database = placement.state / "zones.sqlite3"
        with sqlite3.connect(database) as connection:
            connection.executescript(_schema(placement))
        if placement.role == "secondary":
            _add_secondary_zones(database, placement)
        else:
            _list_zones(placement)

    def preparations(self, placement: Placement) -> list[Preparation]:
        """The server's own zone2sql turns zone files into SQL, and the sqlite3 shell runs it: no record passes here."""
        if placement.role == "secondary":
            return []
        here = placement.seen_state
        return [
            Preparation(["zone2sql", f"--named-conf={here}/zones.conf", "--gsqlite", "--transactions"], "zones.sql"),
            Preparation(["sqlite3", f"{here}/zones.sqlite3", f".read {here}/zones.sql"]),
        ]

    def command(self, placement: Placement) -> list[str]:
        return [self.executable, f"--config-dir={placement.seen_directory}"]

    def limits(self, role: Role, settings: Mapping[str, Scalar]) -> list[ServerLimit]:
        remedy = "find out why the first try failed; the next one comes after this time"
        return [timer(settings, "xfr-cycle-interval", 60, remedy)] if role == "secondary" else []

    def log_time_ns(self, line: str) -> int | None:
        # This log leaves out the year.
        return utc_ns(line, LOG_TIME, "%b %d %H:%M:%S", year=datetime.now(UTC).year)


def _speaks_of_secondaries(version: str) -> bool:
    """Since 4.5 the settings say `secondary`."""
    major, minor = (int(part) for part in re.findall(r"\d+", version)[:2])
    return (major, minor) >= (4, 5)


def _tree(placement: Placement) -> Path:
    return Path(placement.source.root or placement.source.prefix or "/")


def _schema(placement: Placement) -> str:
    for name in SCHEMA_FILES:
        if (path := _tree(placement) / name).exists():
            return path.read_text()
    raise DnsrigError(
        f"{placement.source.name} has no SQLite schema ({SCHEMA_FILES[0]})",
        hint="install its SQLite backend: Debian's package is pdns-backend-sqlite3",
    )


def _add_secondary_zones(database: Path, placement: Placement) -> None:
    primaries = ",".join(str(address) for address in placement.primaries)
    with sqlite3.connect(database) as connection:
        connection.executemany(
            "INSERT INTO domains (name, master, type) VALUES (?, ?, ?)",
            ((zone.name, primaries, SECONDARY_TYPE) for zone in placement.zones),
        )


def _list_zones(placement: Placement) -> None:
    """zone2sql takes its list of zones in the manner of named.conf."""
    with (placement.state / "zones.conf").open("w") as file:
        for zone in placement.zones:
            file.write(f'zone "{zone.name}" {{ type master; file "{placement.seen_dataset}/{zone.file}"; }};\n')
