"""PowerDNS Authoritative Server, PowerDNS.COM BV, with its SQLite backend, or with its PostgreSQL backend if a database
carries its zones.

If a database carries the zones (native replication), a secondary transfers and keeps nothing: it queries its database.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from typing import Any, ClassVar

from dnsrig.confinement import as_user
from dnsrig.rundir import Role, Scalar, ServerLimit
from dnsrig.servers import keys
from dnsrig.servers.behaviour import AsPrimary, AsSecondary, count
from dnsrig.servers.driver import Driver, Feature, Setting, Support, connection_limit, timer
from dnsrig.servers.formats import yes_no
from dnsrig.servers.placement import DNS_PORT, Placement, Preparation
from dnsrig.servers.powerdns import backends
from dnsrig.servers.powerdns.recipe import RECIPE
from dnsrig.servers.templates import without_addresses

PRIMARY_DEFAULTS: Mapping[str, Scalar] = {"max-tcp-connections": 1000}


LOG_TIME = re.compile(r"^(?P<time>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d)")


class PowerDns(Driver):
    kind = "powerdns"
    title = "PowerDNS Authoritative Server (SQLite)"
    executable = "pdns_server"
    recipe = RECIPE
    packages = (
        "pdns-server",
        "pdns-backend-sqlite3",
        "pdns-backend-pgsql",
        "pdns-tools",
        "sqlite3",
        "postgresql-client",
    )
    arguments = ("--config-dir={folder}",)
    configuration_file = "pdns.conf"
    templates: ClassVar[Mapping[Role, str]] = {"primary": "pdns.conf.j2", "secondary": "pdns.conf.j2"}
    check_command = ("pdns_server", "--config-dir={folder}", "--config=check")
    address_arguments = ()
    template_variables: ClassVar[Mapping[str, str]] = {
        "settings": "name -> value",
        "words": "`primary` and `secondary` as this version calls them",
        "backend": "lines that choose the backend, if a database carries the zones",
    }
    version_arguments = ("--version",)
    version_pattern = r"PowerDNS Authoritative Server (\d\S*)"
    settings = (
        Setting("retrieval-threads", "2", "zone transfers running at once, inbound"),
        Setting("xfr-cycle-interval", "60", "seconds between two looks for zones that need a refresh"),
        Setting("max-tcp-connections", "20", "TCP connections accepted at once"),
        Setting("distributor-threads", "3", "backend threads a receiver thread"),
        Setting("gsqlite3-pragma-synchronous", "1", "how hard SQLite tries that data survive a power cut"),
    )
    features: ClassVar[Mapping[Feature, Support]] = {
        "TSIG": Support("3.0", "3.0"),
        "catalog zones": Support("3.0", "4.7"),
        "catalog zones of schema 1": Support("3.0", "4.7"),
        "IXFR": Support(None, "4.0"),
        "NOTIFY": Support("3.0", "3.0"),
        "dynamic updates": Support("3.4", None),
        "several source addresses": Support(None, "3.0"),
        "zone database": Support("3.0", "3.0"),
    }
    databases = ("postgresql",)
    # It requests the members of a catalog without a TSIG key (measured with 5.1.5: every transfer of a member is
    # refused).
    never_together: ClassVar[Mapping[Role, frozenset[Feature]]] = {"secondary": frozenset({"TSIG", "catalog zones"})}
    why_not_proxied = "its `proxy-protocol-from` demands a header on all ports, also where dnsrig asks without one"
    as_secondary = AsSecondary(
        title="PowerDNS",
        policy=lambda settings, transport: "one",
        workers=lambda settings: count(settings, "retrieval-threads", 2),
        workers_setting="retrieval-threads",
        zone_s=0.8e-3,
        record_s=None,
        zones_measured=3_000,
    )
    as_primary = AsPrimary("PowerDNS", {"one": 612, "reused": 1131, "pipelined": 402}, None)
    log_clock_resolution_ns = 1_000_000_000
    log_time = (LOG_TIME, "%b %d %H:%M:%S")
    done_pattern = r"zone:? '(?P<zone>[^']+)'.* zone committed"
    failure_patterns = {
        "no free port": r"(?i)cannot assign requested address",
        "transfer failed": r"(?i)unable to (axfr|xfr) zone|AXFR-in.*(error|failed)",
        "SOA query unanswered": r"Unable to retrieve SOA for",
    }
    settings_command = ("pdns_control", "--socket-dir={state}", "current-config")
    defaults_command = ("pdns_server", "--no-config", "--config=default")

    def variables(self, placement: Placement) -> dict[str, Any]:
        defaults = PRIMARY_DEFAULTS if placement.role == "primary" else {}
        new = _speaks_of_secondaries(placement.source.version)
        return {
            "settings": {name: yes_no(value) for name, value in {**defaults, **placement.settings}.items()},
            "words": {"primary": "primary" if new else "master", "secondary": "secondary" if new else "slave"},
            "backend": backends.postgresql_configuration(placement) if placement.database else "",
        }

    def configure(self, placement: Placement) -> None:
        super().configure(placement)
        if placement.role == "primary":
            backends.list_zones(placement)
            (placement.state / "before.sql").write_text(backends.HASHED)
            (placement.state / "after.sql").write_text(backends.sql_after_import(placement))
        if placement.database is not None:
            return
        database = placement.state / "zones.sqlite3"
        with sqlite3.connect(database) as connection:
            connection.executescript(backends.sqlite_schema(placement))
            if placement.transfer.tsig:
                key = (keys.TSIG_NAME, keys.TSIG_ALGORITHM, placement.keys.tsig_secret)
                connection.execute("INSERT INTO tsigkeys (name, algorithm, secret) VALUES (?, ?, ?)", key)
            if placement.role == "secondary":
                backends.add_secondary_zones(connection, placement)

    def preparations(self, placement: Placement) -> list[Preparation]:
        """Programs that import the zones of a primary."""
        if placement.role == "secondary":
            return []
        if placement.database is not None:
            return backends.fill_postgresql(placement)
        return backends.import_zones(placement, "zones")

    def load_changes(self, placement: Placement) -> list[Preparation]:
        """Import all zones again, clear the caches, and send NOTIFY without waiting for the next cycle.

        The zones are imported into another file, and replaced in one transaction. Without this, a secondary that asked
        before the zones were marked as signed got 34 % of a zone's bytes under the new serial (5.1.5; it resends a
        NOTIFY that was not answered at the start 3 s later).
        """
        here, schema = placement.seen_state, backends.sqlite_schema(placement)
        with as_user(placement.state) as state:
            (state / "next.sqlite3").unlink(missing_ok=True)
            (state / "schema.sql").write_text(schema)
            (state / "replace.sql").write_text(backends.REPLACE.format(aside=f"{here}/next.sqlite3"))
        (placement.directory / "pdns-next.conf").write_text(
            f"launch=gsqlite3\ngsqlite3-database={here}/next.sqlite3\ngsqlite3-dnssec=yes\n"
        )
        control = ["pdns_control", f"--socket-dir={here}"]
        steps = [
            backends.run_sql(placement, "next", "schema"),
            *backends.import_zones(placement, "next"),
            backends.run_sql(placement, "zones", "replace"),
            Preparation([*control, "rediscover"]),
            Preparation([*control, "purge"]),
        ]
        return [*steps, Preparation([*control, "notify", "*"])] if placement.transfer.notify else steps

    def configured(self, placement: Placement) -> set[str] | None:
        """The zones in its SQLite database that do not belong to a catalog; None if it cannot be read."""
        database = placement.state / "zones.sqlite3"
        if database.is_symlink() or not database.is_file():
            return None
        try:
            with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
                columns = {row[1] for row in connection.execute("PRAGMA table_info(domains)")}
                own = "WHERE coalesce(catalog, '') = ''" if "catalog" in columns else ""
                return {name for (name,) in connection.execute(f"SELECT name FROM domains {own}")}
        except sqlite3.Error:
            return None

    def listen_arguments(self, placement: Placement) -> list[str]:
        if not without_addresses(placement.host.config):
            return []
        return [f"--local-address={','.join(map(str, placement.addresses))}", f"--local-port={DNS_PORT}"]

    def limits(self, role: Role, settings: Mapping[str, Scalar]) -> list[ServerLimit]:
        chosen = {**(PRIMARY_DEFAULTS if role == "primary" else {}), **settings}
        name = "max-tcp-connections"
        clients = connection_limit(chosen, name, 20, default=name not in settings)
        remedy = "find out why the first try failed; the next one comes after this time"
        return [clients, *([timer(settings, "xfr-cycle-interval", 60, remedy)] if role == "secondary" else [])]


def _speaks_of_secondaries(version: str) -> bool:
    """Whether settings contain the word `secondary`, as since 4.5."""
    major, minor = (int(part) for part in re.findall(r"\d+", version)[:2])
    return (major, minor) >= (4, 5)
