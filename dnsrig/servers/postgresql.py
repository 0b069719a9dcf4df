"""PostgreSQL, which carries the tables of a DNS server by streaming replication.

A replica begins with a copy of the original (``pg_basebackup``) and then follows what is written; both belong to its
start. Settings are settings of postgresql.conf, e.g. ``wal_compression``.
"""

from __future__ import annotations

import re
import shlex
import signal
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from dnsrig.errors import DnsrigError
from dnsrig.rundir import Address, Scalar
from dnsrig.servers.database import CONSOLE_LIMIT_S, Console, Database, Refused
from dnsrig.servers.driver import Setting
from dnsrig.servers.formats import numbers, template
from dnsrig.servers.placement import Placement, Preparation

if TYPE_CHECKING:
    import psycopg

USER, DATABASE = "dnsrig", "postgres"
CHECK_EVERY_S = 0.1
"""Interval at which a waiting client checks whether it was interrupted, in seconds."""

CONFIGURATION = template("""\
listen_addresses = '{{ p.addresses | join(",") }},127.0.0.1'
port = {{ port }}
unix_socket_directories = ''
dynamic_shared_memory_type = mmap
logging_collector = off
log_line_prefix = '%m '
log_timezone = 'UTC'
timezone = 'UTC'
{% if p.over_tls %}
ssl = on
ssl_min_protocol_version = 'TLSv1.3'
ssl_cert_file = '{{ p.certificate }}'
ssl_key_file = '{{ p.private_key }}'
{% endif %}
{% for name, value in settings.items() %}
{{ name }} = '{{ value }}'
{% endfor %}
""")
ACCESS = "host all all all trust\nhost replication all all trust\n"
"""Access rules: every host in the network of a trial may do everything."""

LOG_TIME = re.compile(r"^(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\.(?P<ms>\d{3}) UTC")


class PostgreSql(Database):
    kind = "postgresql"
    title = "PostgreSQL"
    executable = "postgres"
    packages = ("postgresql", "dash")
    version_package = r"postgresql-\d+"
    version_arguments = ("--version",)
    version_pattern = r"postgres \(PostgreSQL\) (\d\S*)"
    # At SIGTERM it waits until every client has gone.
    stop_signal = signal.SIGINT
    port = 5432
    tls_port = 5432
    settings = (
        Setting("shared_buffers", "128MB", "memory in which pages of tables are kept"),
        Setting("wal_compression", "off", "compress whole pages in what is replicated"),
        Setting("max_wal_size", "1GB", "how much is written before a checkpoint"),
        Setting("synchronous_commit", "on", "what a writer waits for"),
        Setting("fsync", "on", "whether what is written survives a power cut"),
    )
    log_clock_resolution_ns = 1_000_000
    log_time = (LOG_TIME, "%Y-%m-%d %H:%M:%S")
    failure_patterns: ClassVar[Mapping[str, str]] = {
        "replication failed": r"FATAL: .*(wal receiver|streaming|primary server)|could not connect to the primary server"
    }

    def configure(self, placement: Placement) -> None:
        (placement.state / "data").mkdir(mode=0o700)
        text = CONFIGURATION.render(p=placement, port=self.port, settings=_written(placement.settings))
        (placement.directory / "postgresql.conf").write_text(text)
        (placement.directory / "pg_hba.conf").write_text(ACCESS)

    def preparations(self, placement: Placement) -> list[Preparation]:
        if placement.database is not None:
            return []  # a replica copies the original over the network, which belongs to its start
        words = ["-D", f"{placement.seen_state}/data", "-U", USER, "--auth=trust", "--no-locale", "-E", "UTF8", "-N"]
        return [Preparation([f"{programs(placement)}/initdb", *words])]

    def command(self, placement: Placement) -> list[str]:
        here = placement.seen_directory
        server = [f"{programs(placement)}/postgres", "-D", f"{placement.seen_state}/data"]
        server += ["-c", f"config_file={here}/postgresql.conf", "-c", f"hba_file={here}/pg_hba.conf"]
        if placement.database is None:
            return server
        copy = [
            f"{programs(placement)}/pg_basebackup",
            "-d",
            connection(placement),
            "-D",
            f"{placement.seen_state}/data",
        ]
        copy += ["-R", "-X", "stream", "--checkpoint=fast", "--no-sync"]
        return ["sh", "-c", f"{shlex.join(copy)} && exec {shlex.join(server)}"]

    def console(self, address: Address) -> Console:
        return PostgreSqlConsole(_connect(str(address), self.port))


class PostgreSqlConsole:
    """Console of PostgreSQL; zones are zones in the tables of PowerDNS."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def zones(self) -> int:
        return self._number("SELECT count(*) FROM domains")

    def position(self) -> int:
        return self._number("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint")

    def has_all(self, position: int) -> bool:
        """Whether it streams, and has replayed up to ``position``."""
        streams = self._number("SELECT count(*) FROM pg_stat_wal_receiver WHERE status = 'streaming'")
        return (
            streams > 0 and self._number("SELECT pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0')::bigint") >= position
        )

    def facts(self) -> dict[str, Scalar]:
        return {"stored_bytes": self._number("SELECT pg_database_size(current_database())")}

    def close(self) -> None:
        self._connection.close()

    def _number(self, sql: str) -> int:
        """The only value of the only row of ``sql``; 0 for null, with which a server answers about a role that it does
        not have."""
        import psycopg

        try:
            found = self._connection.execute(sql.encode()).fetchmany(2)
        except psycopg.Error as error:
            raise Refused(f"the database reports: {error}") from error
        value = (found[0][0] or 0) if len(found) == 1 and len(found[0]) == 1 else None
        if not isinstance(value, int):
            raise Refused(f"the database answered {found!r:.40} instead of a number")
        return value


def _connect(address: str, port: int) -> psycopg.Connection[Any]:
    """Connect without TLS. Raises `Refused` without an answer within `CONSOLE_LIMIT_S`, which also limits later
    answers."""
    import psycopg

    class Bounded(psycopg.Connection[Any]):
        def wait(self, gen: Any, interval: float = CHECK_EVERY_S, timeout: float | None = CONSOLE_LIMIT_S) -> Any:
            return super().wait(gen, interval, timeout)

    try:
        return Bounded.connect(
            host=address,
            port=port,
            user=USER,
            dbname=DATABASE,
            sslmode="disable",
            connect_timeout=int(CONSOLE_LIMIT_S),
            autocommit=True,
        )
    except psycopg.Error as error:
        raise Refused(f"the database reports: {error}") from error


def connection(placement: Placement) -> str:
    """Connection string of libpq for the database that ``placement`` uses."""
    at = placement.database
    assert at is not None
    return f"host={at.address} port={at.port} user={USER} dbname={DATABASE} {security(placement)}"


def security(placement: Placement) -> str:
    """Parameters for TLS and a check of the certificate if the database is far away, otherwise for no TLS, which libpq
    would try by default."""
    far = placement.database is not None and placement.database.tls
    return f"sslmode=verify-ca sslrootcert={placement.certificate}" if far else "sslmode=disable"


def programs(placement: Placement) -> str:
    """The folder of PostgreSQL's programs, as they see it: in the user's own build, or Debian's folder of a major
    version, which is not on the path."""
    source, tree = placement.source, placement.root
    if source.prefix and (placement.tree / "bin/psql").is_file():
        return f"{source.prefix}/bin"
    found = sorted(tree.glob("usr/lib/postgresql/*/bin"), key=lambda path: numbers(path.parent.name))
    if not found:
        raise DnsrigError(
            f"{source.name} has no /usr/lib/postgresql",
            hint=f"use {source.kind}@forky, which dnsrig installs with it",
        )
    return f"/{found[-1].relative_to(tree)}"


def _written(settings: Mapping[str, Scalar]) -> dict[str, str]:
    return {
        name: ("on" if value else "off") if isinstance(value, bool) else str(value) for name, value in settings.items()
    }
