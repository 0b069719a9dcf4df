"""How zones get into the backend of PowerDNS, SQLite or PostgreSQL: its own zone2sql turns zone files into SQL, which
the shell of the database runs. No record passes through Python.

Signed zones need a mark in the database, or PowerDNS leaves out DNSKEY, RRSIG and NSEC. Measured with 5.1.5: without
the mark, it sent 91,371 of the 163,271 records of such a zone. In addition, the backend needs its setting
``dnssec=yes``.
"""

from __future__ import annotations

import sqlite3

from dnsrig.servers import keys
from dnsrig.servers.placement import Placement, Preparation
from dnsrig.servers.postgresql import DATABASE, USER, connection, programs, security

SQLITE_SCHEMA_FILES = (
    "usr/share/pdns-backend-sqlite3/schema/schema.sqlite3.sql",
    "usr/share/doc/pdns-backend-sqlite3/schema.sqlite3.sql",
    "share/doc/pdns/schema.sqlite3.sql",
)
POSTGRESQL_SCHEMA_FILES = (
    "usr/share/pdns-backend-pgsql/schema/schema.pgsql.sql",
    "usr/share/doc/pdns-backend-pgsql/schema.pgsql.sql",
    "share/doc/pdns/schema.pgsql.sql",
)
PRIMARY_TYPE, SECONDARY_TYPE, CONSUMER_TYPE = "MASTER", "SLAVE", "CONSUMER"
"""The schema's words for a zone that is notified of, for a secondary zone, and for a catalog zone that is followed."""

REPLACE = """\
ATTACH '{aside}' AS next;
BEGIN IMMEDIATE;
DELETE FROM domainmetadata; DELETE FROM records; DELETE FROM domains;
INSERT INTO domains SELECT * FROM next.domains;
INSERT INTO records SELECT * FROM next.records;
INSERT INTO domainmetadata SELECT * FROM next.domainmetadata;
COMMIT;
"""

PRESIGNED = """INSERT INTO domainmetadata (domain_id, kind, content) SELECT id, 'PRESIGNED', '1' FROM domains
WHERE EXISTS (SELECT 1 FROM records WHERE records.domain_id = domains.id AND records.type = 'RRSIG');
"""
"""Marks signed zones: their signatures are in the table."""

HASHED = """INSERT INTO domainmetadata (domain_id, kind, content)
SELECT domain_id, 'NSEC3PARAM', content FROM records WHERE type = 'NSEC3PARAM';
"""
"""Executed before zones are rectified. Measured with 5.1.5: without it the server invented NSECs without signatures."""
RECTIFIED = """DELETE FROM cryptokeys;
UPDATE records SET ordername = NULL WHERE type = 'RRSIG' AND content LIKE 'NSEC3 %';
"""
"""Executed after that: the owner of an NSEC3 is not a name of the zone. Without this, it gets a hash and an unsigned
NSEC3 itself."""


def rectify(placement: Placement, configuration: str = "") -> list[Preparation]:
    """Mark glue and delegations, which zone2sql does not do; otherwise glue gets NSECs as well.

    This precedes the mark as presigned, after which pdnsutil refuses it. It orders hashes of names, which NSEC3 needs,
    only for zones with a key, so they have a key meanwhile. ``configuration``: the name of another configuration than
    the server's own, ``pdns-NAME.conf``.
    """
    if not placement.signed:
        return []
    name = [f"--config-name={configuration}"] if configuration else []
    tool = ["pdnsutil", f"--config-dir={placement.seen_directory}", *name]
    steps = []
    for zone in placement.configured_zones:
        if placement.hashed:
            steps.append(Preparation([*tool, "add-zone-key", zone.name, "ksk", "active", "ecdsa256"]))
        steps.append(Preparation([*tool, "rectify-zone", zone.name]))
    return steps


def list_zones(placement: Placement) -> None:
    """Write the list of zones for zone2sql, which reads the format of named.conf."""
    with (placement.state / "zones.conf").open("w") as file:
        for zone in placement.configured_zones:
            file.write(f'zone "{zone.name}" {{ type master; file "{placement.seen_zone_file(zone)}"; }};\n')


def import_zones(placement: Placement, database: str) -> list[Preparation]:
    here = placement.seen_state
    return [
        Preparation(["zone2sql", f"--named-conf={here}/zones.conf", "--gsqlite", "--transactions"], "zones.sql"),
        run_sql(placement, database, "zones"),
        *([run_sql(placement, database, "before")] if placement.hashed else []),
        *rectify(placement, "" if database == "zones" else database),
        run_sql(placement, database, "after"),
    ]


def run_sql(placement: Placement, database: str, script: str) -> Preparation:
    here = placement.seen_state
    return Preparation(["sqlite3", f"{here}/{database}.sqlite3", f".read {here}/{script}.sql"])


def sqlite_schema(placement: Placement) -> str:
    return (
        placement.tree / placement.shipped(SQLITE_SCHEMA_FILES, "SQLite schema", "pdns-backend-sqlite3")
    ).read_text()


def add_secondary_zones(connection: sqlite3.Connection, placement: Placement) -> None:
    """Add the zones of a secondary, each with its metadata: the TSIG key of requests, IXFR, the source address."""
    kind = CONSUMER_TYPE if placement.catalog else SECONDARY_TYPE
    for number, zone in enumerate(placement.configured_zones):
        route = placement.route_of(number)
        metadata = {"AXFR-MASTER-TSIG": keys.TSIG_NAME} if placement.transfer.tsig else {}
        # It cannot apply differences of a catalog: after the first it stops following it (issue 13825; also in 5.1.5).
        metadata |= {"IXFR": "1"} if placement.transfer.ixfr and not placement.catalog else {}
        metadata |= {"AXFR-SOURCE": str(route.source)} if route.source else {}
        row = (zone.name, str(route.primary), kind)
        added = connection.execute("INSERT INTO domains (name, master, type) VALUES (?, ?, ?)", row).lastrowid
        connection.executemany(
            "INSERT INTO domainmetadata (domain_id, kind, content) VALUES (?, ?, ?)",
            [(added, name, value) for name, value in metadata.items()],
        )


def sql_after_import(placement: Placement) -> str:
    """SQL for what zone2sql leaves out of the zones of a primary."""
    sql = PRESIGNED if placement.signed else ""
    sql += RECTIFIED if placement.hashed else ""
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


def postgresql_configuration(placement: Placement) -> str:
    """The lines of the configuration that choose the backend."""
    at = placement.database
    assert at is not None
    lines = ["launch=gpgsql", f"gpgsql-host={at.address}", f"gpgsql-port={at.port}"]
    lines += [f"gpgsql-user={USER}", f"gpgsql-dbname={DATABASE}"]
    lines.append(f"gpgsql-extra-connection-parameters={security(placement)}")
    lines += ["gpgsql-dnssec=yes"] if placement.signed else []
    return "\n".join(lines)


def fill_postgresql(placement: Placement) -> list[Preparation]:
    """Programs that make the tables of a primary and fill them."""
    here = placement.seen_state
    schema = placement.shipped(POSTGRESQL_SCHEMA_FILES, "PostgreSQL schema", "pdns-backend-pgsql")
    # On the path there is Debian's wrapper, which needs a cluster.
    psql = [f"{programs(placement)}/psql", connection(placement), "-X", "-q", "-v", "ON_ERROR_STOP=1"]
    return [
        Preparation([*psql, "-f", f"{placement.seen_tree}/{schema}"]),
        Preparation(["zone2sql", f"--named-conf={here}/zones.conf", "--gpgsql", "--transactions"], "zones.sql"),
        Preparation([*psql, "-f", f"{here}/zones.sql"], "psql.out"),
        # Without this, PostgreSQL takes a new table for small, and searches it from end to end for each name.
        Preparation([*psql, "-c", "ANALYZE"]),
        *([Preparation([*psql, "-f", f"{here}/before.sql"])] if placement.hashed else []),
        *rectify(placement),
        Preparation([*psql, "-f", f"{here}/after.sql"]),
        # Changed rows are in the table twice, and a replica would copy both.
        Preparation([*psql, "-c", "VACUUM FULL"]),
    ]
