"""PowerDNS with its tables in a PostgreSQL: what to configure, and how a primary fills them."""

from __future__ import annotations

from dnsrig.servers import _powerdns_signed as signed
from dnsrig.servers.driver import Preparation
from dnsrig.servers.placement import Placement
from dnsrig.servers.postgresql import DATABASE, USER, connection, programs, security

SCHEMA_FILES = (
    "usr/share/pdns-backend-pgsql/schema/schema.pgsql.sql",
    "usr/share/doc/pdns-backend-pgsql/schema.pgsql.sql",
    "share/doc/pdns/schema.pgsql.sql",
)


def backend(placement: Placement) -> str:
    """The lines of the configuration that choose the backend."""
    at = placement.database
    assert at is not None
    lines = ["launch=gpgsql", f"gpgsql-host={at.address}", f"gpgsql-port={at.port}"]
    lines += [f"gpgsql-user={USER}", f"gpgsql-dbname={DATABASE}"]
    lines.append(f"gpgsql-extra-connection-parameters={security(placement)}")
    lines += ["gpgsql-dnssec=yes"] if placement.signed else []
    return "\n".join(lines)


def fill(placement: Placement) -> list[Preparation]:
    """Make the tables, turn zone files into SQL by the server's own zone2sql, and let psql run it: no record passes
    here."""
    here = placement.seen_state
    schema = placement.shipped(SCHEMA_FILES, "PostgreSQL schema", "pdns-backend-pgsql")
    # The one on the path is Debian's wrapper, which wants to know of clusters.
    psql = [f"{programs(placement)}/psql", connection(placement), "-X", "-q", "-v", "ON_ERROR_STOP=1"]
    return [
        Preparation([*psql, "-f", f"{placement.seen_tree}/{schema}"]),
        Preparation(["zone2sql", f"--named-conf={here}/zones.conf", "--gpgsql", "--transactions"], "zones.sql"),
        Preparation([*psql, "-f", f"{here}/zones.sql"], "psql.out"),
        # A table that was filled just now is taken for small, and searched from end to end for each name.
        Preparation([*psql, "-c", "ANALYZE"]),
        *([Preparation([*psql, "-f", f"{here}/before.sql"])] if placement.hashed else []),
        *signed.rectify(placement),
        Preparation([*psql, "-f", f"{here}/after.sql"]),
        # What was changed stands there twice, and a replica would copy both.
        Preparation([*psql, "-c", "VACUUM FULL"]),
    ]
