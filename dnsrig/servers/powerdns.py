"""PowerDNS Authoritative Server, PowerDNS.COM BV, with its SQLite backend; with its PostgreSQL backend where a database
carries its zones.

Carried by a database (PowerDNS calls it native replication) a secondary transfers nothing and keeps nothing: it asks
its database.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime
from typing import ClassVar

from dnsrig.confinement import as_user
from dnsrig.rundir import Role, Scalar, ServerLimit
from dnsrig.servers import _powerdns_postgresql as through_postgresql
from dnsrig.servers import _powerdns_signed as signed
from dnsrig.servers import keys
from dnsrig.servers.behaviour import AsPrimary, AsSecondary, count
from dnsrig.servers.driver import DNS_PORT, Driver, Feature, Preparation, Setting, Support, template, timer, yes_no
from dnsrig.servers.logs import utc_ns_without_year
from dnsrig.servers.placement import Placement
from dnsrig.servers.recipes.powerdns import RECIPE

SCHEMA_FILES = (
    "usr/share/pdns-backend-sqlite3/schema/schema.sqlite3.sql",
    "usr/share/doc/pdns-backend-sqlite3/schema.sqlite3.sql",
    "share/doc/pdns/schema.sqlite3.sql",
)
PRIMARY_TYPE, SECONDARY_TYPE, CONSUMER_TYPE = "MASTER", "SLAVE", "CONSUMER"
"""The schema's words for a zone that is notified of, for a secondary zone, and for a catalog zone that is followed."""
PRIMARY_DEFAULTS: Mapping[str, Scalar] = {"max-tcp-connections": 1000}

CONFIGURATION = template("""\
{% if p.database %}
{{ backend }}
{% else %}
launch=gsqlite3
gsqlite3-database={{ p.seen_state }}/zones.sqlite3
{# As a secondary it would take every change of a signed zone by AXFR: measured with 5.1.5. #}
{% if p.signed and p.role == "primary" %}
gsqlite3-dnssec=yes
{% endif %}
{% endif %}
local-address={{ p.addresses | join(",") }}
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
allow-axfr-ips={{ "" if p.transfer.tsig else "0.0.0.0/0,::/0" }}
{% elif not p.database %}
{{ secondary_word }}=yes
{% endif %}
{% if p.role == "primary" and p.transfer.notify %}
{{ primary_word }}=yes
only-notify=
also-notify={{ p.secondaries | join(",") }}
{% endif %}
{% if p.role == "primary" and p.transfer.updates %}
dnsupdate=yes
allow-dnsupdate-from=0.0.0.0/0,::/0
{% endif %}
{% for name, value in settings.items() %}
{{ name }}={{ value }}
{% endfor %}
""")

REPLACE = """\
ATTACH '{aside}' AS next;
BEGIN IMMEDIATE;
DELETE FROM domainmetadata; DELETE FROM records; DELETE FROM domains;
INSERT INTO domains SELECT * FROM next.domains;
INSERT INTO records SELECT * FROM next.records;
INSERT INTO domainmetadata SELECT * FROM next.domainmetadata;
COMMIT;
"""

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
    # The members that it creates get no TSIG key to ask with (measured with 5.1.5: every transfer of a member is
    # refused).
    never_together: ClassVar[Mapping[Role, frozenset[Feature]]] = {"secondary": frozenset({"TSIG", "catalog zones"})}
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
    done_pattern = r"zone:? '(?P<zone>[^']+)'.* zone committed"
    failure_patterns = {
        "no free port": r"(?i)cannot assign requested address",
        "transfer failed": r"(?i)unable to (axfr|xfr) zone|AXFR-in.*(error|failed)",
        "SOA query unanswered": r"Unable to retrieve SOA for",
    }
    settings_command = ("pdns_control", "--socket-dir={state}", "current-config")
    defaults_command = ("pdns_server", "--no-config", "--config=default")

    def configure(self, placement: Placement) -> None:
        defaults = PRIMARY_DEFAULTS if placement.role == "primary" else {}
        new_words = _speaks_of_secondaries(placement.source.version)
        text = CONFIGURATION.render(
            p=placement,
            port=DNS_PORT,
            primary_word="primary" if new_words else "master",
            secondary_word="secondary" if new_words else "slave",
            backend=through_postgresql.backend(placement) if placement.database else "",
            settings={name: yes_no(value) for name, value in {**defaults, **placement.settings}.items()},
        )
        (placement.directory / "pdns.conf").write_text(text)
        if placement.role == "primary":
            _list_zones(placement)
            (placement.state / "before.sql").write_text(signed.HASHED)
            (placement.state / "after.sql").write_text(_after_import(placement))
        if placement.database is not None:
            return
        database = placement.state / "zones.sqlite3"
        with sqlite3.connect(database) as connection:
            connection.executescript(_schema(placement))
            if placement.transfer.tsig:
                key = (keys.TSIG_NAME, keys.TSIG_ALGORITHM, placement.keys.tsig_secret)
                connection.execute("INSERT INTO tsigkeys (name, algorithm, secret) VALUES (?, ?, ?)", key)
            if placement.role == "secondary":
                _add_secondary_zones(connection, placement)

    def preparations(self, placement: Placement) -> list[Preparation]:
        """The server's own zone2sql turns zone files into SQL, and the sqlite3 shell runs it: no record passes here."""
        if placement.role == "secondary":
            return []
        if placement.database is not None:
            return through_postgresql.fill(placement)
        return _import(placement, "zones")

    def load_changes(self, placement: Placement) -> list[Preparation]:
        """All zones are imported anew; what was cached of them is forgotten; NOTIFY does not wait for the next cycle.

        They are imported aside and come in one transaction. A secondary that asked between the import and the word that
        the zones are signed got 34 % of a zone's bytes under the new serial (5.1.5; NOTIFY that no answer came to at
        start is sent again 3 s later).
        """
        here, schema = placement.seen_state, _schema(placement)
        with as_user(placement.state) as state:
            (state / "next.sqlite3").unlink(missing_ok=True)
            (state / "schema.sql").write_text(schema)
            (state / "replace.sql").write_text(REPLACE.format(aside=f"{here}/next.sqlite3"))
        (placement.directory / "pdns-next.conf").write_text(
            f"launch=gsqlite3\ngsqlite3-database={here}/next.sqlite3\ngsqlite3-dnssec=yes\n"
        )
        control = ["pdns_control", f"--socket-dir={here}"]
        steps = [
            _run_sql(placement, "next", "schema"),
            *_import(placement, "next"),
            _run_sql(placement, "zones", "replace"),
            Preparation([*control, "rediscover"]),
            Preparation([*control, "purge"]),
        ]
        return [*steps, Preparation([*control, "notify", "*"])] if placement.transfer.notify else steps

    def configured(self, placement: Placement) -> set[str] | None:
        """Its zones are in its database, the members of a catalog with its name beside them."""
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

    def command(self, placement: Placement) -> list[str]:
        return [self.executable, f"--config-dir={placement.seen_directory}"]

    def limits(self, role: Role, settings: Mapping[str, Scalar]) -> list[ServerLimit]:
        remedy = "find out why the first try failed; the next one comes after this time"
        return [timer(settings, "xfr-cycle-interval", 60, remedy)] if role == "secondary" else []

    def log_time_ns(self, line: str) -> int | None:
        return utc_ns_without_year(line, LOG_TIME, "%b %d %H:%M:%S", near=datetime.now(UTC))


def _import(placement: Placement, database: str) -> list[Preparation]:
    here = placement.seen_state
    return [
        Preparation(["zone2sql", f"--named-conf={here}/zones.conf", "--gsqlite", "--transactions"], "zones.sql"),
        _run_sql(placement, database, "zones"),
        *([_run_sql(placement, database, "before")] if placement.hashed else []),
        *signed.rectify(placement, "" if database == "zones" else database),
        _run_sql(placement, database, "after"),
    ]


def _run_sql(placement: Placement, database: str, script: str) -> Preparation:
    here = placement.seen_state
    return Preparation(["sqlite3", f"{here}/{database}.sqlite3", f".read {here}/{script}.sql"])


def _speaks_of_secondaries(version: str) -> bool:
    """Since 4.5 the settings say `secondary`."""
    major, minor = (int(part) for part in re.findall(r"\d+", version)[:2])
    return (major, minor) >= (4, 5)


def _schema(placement: Placement) -> str:
    return (placement.tree / placement.shipped(SCHEMA_FILES, "SQLite schema", "pdns-backend-sqlite3")).read_text()


def _add_secondary_zones(connection: sqlite3.Connection, placement: Placement) -> None:
    """Zones, and per zone what this backend keeps as metadata: the TSIG key to ask with, IXFR, the source address."""
    kind = CONSUMER_TYPE if placement.catalog else SECONDARY_TYPE
    for number, zone in enumerate(placement.configured_zones):
        route = placement.route_of(number)
        metadata = {"AXFR-MASTER-TSIG": keys.TSIG_NAME} if placement.transfer.tsig else {}
        # Of a catalog it applies no differences: from the first on it follows no more (issue 13825; still so in 5.1.5).
        metadata |= {"IXFR": "1"} if placement.transfer.ixfr and not placement.catalog else {}
        metadata |= {"AXFR-SOURCE": str(route.source)} if route.source else {}
        row = (zone.name, str(route.primary), kind)
        added = connection.execute("INSERT INTO domains (name, master, type) VALUES (?, ?, ?)", row).lastrowid
        connection.executemany(
            "INSERT INTO domainmetadata (domain_id, kind, content) VALUES (?, ?, ?)",
            [(added, name, value) for name, value in metadata.items()],
        )


def _list_zones(placement: Placement) -> None:
    """zone2sql takes its list of zones in the manner of named.conf."""
    with (placement.state / "zones.conf").open("w") as file:
        for zone in placement.configured_zones:
            file.write(f'zone "{zone.name}" {{ type master; file "{placement.seen_zone_file(zone)}"; }};\n')


def _after_import(placement: Placement) -> str:
    """What zone2sql does not say of the zones of a primary."""
    sql = signed.PRESIGNED if placement.signed else ""
    sql += signed.RECTIFIED if placement.hashed else ""
    if placement.transfer.notify:
        sql += f"UPDATE domains SET type = '{PRIMARY_TYPE}';\n"
    if placement.transfer.tsig:
        sql += _metadata_of_all("TSIG-ALLOW-AXFR", keys.TSIG_NAME)
    if placement.transfer.updates:
        sql += _metadata_of_all("NOTIFY-DNSUPDATE", "1") if placement.transfer.notify else ""
        sql += _metadata_of_all("TSIG-ALLOW-DNSUPDATE", keys.TSIG_NAME) if placement.transfer.tsig else ""
    return sql


def _metadata_of_all(kind: str, content: str) -> str:
    return f"INSERT INTO domainmetadata (domain_id, kind, content) SELECT id, '{kind}', '{content}' FROM domains;\n"
