"""Redis with the module of Knot DNS, which keeps zones in it, and Valkey with the same module.

A replica is empty at first. It takes a snapshot of the original and then follows what is written. Settings are settings
of redis.conf, e.g. ``io-threads``.
"""

from __future__ import annotations

import re
import shutil
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from dnsrig.errors import DnsrigError
from dnsrig.rundir import Address, Scalar
from dnsrig.servers.database import ANSWER_BYTES_MOST, CONSOLE_LIMIT_S, Console, Database, Refused
from dnsrig.servers.driver import Setting
from dnsrig.servers.formats import template, yes_no
from dnsrig.servers.knot import ZONE_INSTANCE
from dnsrig.servers.placement import Placement

if TYPE_CHECKING:
    import redis

MODULE = "knot.so"
MODULE_FILES = ("usr/lib/redis/modules/knot.so", "lib/redis/modules/knot.so", "lib/knot.so")
DEFAULTS: Mapping[str, Scalar] = {
    # A trial needs neither snapshots nor a log on disk; a replica gets its snapshot over its connection.
    "save": '""',
    "appendonly": "no",
    # There is only one replica, and by default an original waits for more.
    "repl-diskless-sync-delay": 0,
}

CONFIGURATION = template("""\
bind {{ p.addresses | join(" ") }} 127.0.0.1
port {{ port }}
protected-mode no
daemonize no
dir {{ p.seen_state }}
loglevel notice
locale-collate "C"
loadmodule {{ p.seen_state }}/{{ module }}
{% if p.over_tls %}
tls-port {{ tls_port }}
tls-protocols TLSv1.3
tls-ca-cert-file {{ p.certificate }}
tls-cert-file {{ p.certificate }}
tls-key-file {{ p.private_key }}
tls-auth-clients no
{% endif %}
{% if p.database %}
replicaof {{ p.database.address }} {{ p.database.port }}
{% if p.database.tls %}
tls-replication yes
{% endif %}
{% endif %}
{% for name, value in settings.items() %}
{{ name }} {{ value }}
{% endfor %}
""")

LOG_TIME = re.compile(r"^\d+:\w (?P<time>\d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d)\.(?P<ms>\d{3})")


class Redis(Database):
    kind = "redis"
    title = "Redis with the module of Knot DNS"
    executable = "redis-server"
    packages = ("redis-server", "redis-module-knot")
    version_arguments = ("--version",)
    version_pattern = r"(?:Redis|Valkey) server v=(\d+\.\d+\S*)"
    port = 6379
    tls_port = 6380
    settings = (
        Setting(
            "repl-diskless-sync-delay", "5", "seconds before a snapshot is sent, for more replicas to come (set to 0)"
        ),
        Setting(
            "repl-diskless-load",
            "disabled",
            "whether a replica loads a snapshot while it comes (on-empty-db), or when it is whole",
        ),
        Setting("client-output-buffer-limit", "replica 256mb 64mb 60", "a replica that is further behind is dropped"),
        Setting("repl-backlog-size", "1mb", "what a replica that lost its connection may have missed"),
        Setting("rdbcompression", "yes", "compress strings in snapshots (LZF)"),
        Setting("io-threads", "1", "threads that read and write sockets"),
        Setting("save", "3600 1 300 100 60 10000", "when snapshots go to disk (set to never)"),
    )
    log_clock_resolution_ns = 1_000_000
    log_time = (LOG_TIME, "%d %b %Y %H:%M:%S")
    failure_patterns: ClassVar[Mapping[str, str]] = {
        "replication failed": r"(?i)error condition on socket for sync|i/o error trying to sync|failed trying to load the master"
    }

    def configure(self, placement: Placement) -> None:
        module = placement.state / MODULE
        # The package ships the module without the right to execute it, and Redis refuses such a module.
        shutil.copyfile(_module(placement), module)
        module.chmod(0o755)
        text = CONFIGURATION.render(
            p=placement,
            port=self.port,
            tls_port=self.tls_port,
            module=MODULE,
            settings={name: yes_no(value) for name, value in {**DEFAULTS, **placement.settings}.items()},
        )
        (placement.directory / f"{self.kind}.conf").write_text(text)

    def command(self, placement: Placement) -> list[str]:
        return [self.executable, f"{placement.seen_directory}/{self.kind}.conf"]

    def console(self, address: Address) -> Console:
        client = _client(str(address), self.port)
        try:
            return RedisConsole(client)
        except BaseException:
            client.close()
            raise


class Valkey(Redis):
    """Valkey with the module of Knot DNS: as Redis in all that a trial needs, with the same module."""

    kind = "valkey"
    title = "Valkey with the module of Knot DNS"
    executable = "valkey-server"
    packages = ("valkey-server", "redis-module-knot")


class RedisConsole:
    """Console of Redis and Valkey."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        if self._ask("PING") not in (True, "PONG"):
            raise DnsrigError("the server that listens there is not Redis")

    def zones(self) -> int:
        """Number of listed zones: a zone is listed when it was committed, so when it is complete (src/redis/internal.h
        of Knot DNS, zone_commit)."""
        found = self._ask("KNOT.ZONE.LIST", str(ZONE_INSTANCE))
        return len(found) if isinstance(found, list) else 0

    def position(self) -> int:
        return _number(self._info("replication").get("master_repl_offset", 0))

    def has_all(self, position: int) -> bool:
        """Whether it follows up to ``position``: its link is up when it has the snapshot; then an offset in bytes
        grows."""
        found = self._info("replication")
        return found.get("master_link_status") == "up" and _number(found.get("slave_repl_offset", -1)) >= position

    def facts(self) -> dict[str, Scalar]:
        return {"memory_bytes": _number(self._info("memory").get("used_memory", 0))}

    def close(self) -> None:
        self._client.close()

    def _info(self, section: str) -> dict[str, Any]:
        found = self._ask("INFO", section)
        return found if isinstance(found, dict) else {}

    def _ask(self, *words: str) -> Any:
        import redis

        try:
            return self._client.execute_command(*words)  # type: ignore[no-untyped-call]
        except (redis.RedisError, ValueError) as error:  # ValueError: the answer is not RESP
            raise Refused(f"the database reports: {error}") from error


def _number(value: Any) -> int:
    if not isinstance(value, int):
        raise Refused(f"the database answered {value!r:.40} instead of a number")
    return value


def _client(address: str, port: int) -> redis.Redis:
    """A client of one connection, which is opened at the first command and never reopened.

    A new connection would start from whatever network the calling thread sees at that time.
    """
    import redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    class Connection(redis.Connection):
        def _connect(self) -> Any:
            return BoundedSocket(super()._connect())  # type: ignore[no-untyped-call]

    pool = redis.ConnectionPool(
        connection_class=Connection,
        host=address,
        port=port,
        protocol=2,
        socket_timeout=CONSOLE_LIMIT_S,
        socket_connect_timeout=CONSOLE_LIMIT_S,
        retry=Retry(NoBackoff(), 0),
        decode_responses=True,
        encoding_errors="replace",
        max_connections=1,
    )
    return redis.Redis.from_pool(pool)


class BoundedSocket:
    """A socket that limits the bytes received after each request to `ANSWER_BYTES_MOST`, because the library has no
    limit."""

    def __init__(self, inner: socket.socket) -> None:
        self._inner = inner
        self._left_bytes = ANSWER_BYTES_MOST

    def sendall(self, data: bytes) -> None:
        self._left_bytes = ANSWER_BYTES_MOST
        self._inner.sendall(data)

    def recv(self, size: int) -> bytes:
        if self._left_bytes <= 0:
            raise OSError(f"the database answers more than {ANSWER_BYTES_MOST:,} bytes")
        data = self._inner.recv(min(size, self._left_bytes))
        self._left_bytes -= len(data)
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def _module(placement: Placement) -> Path:
    return placement.tree / placement.shipped(MODULE_FILES, "module of Knot DNS", "redis-module-knot")
