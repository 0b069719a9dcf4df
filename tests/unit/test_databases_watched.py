"""How a trial waits for databases and follows a replica: without a database, and without time that passes."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import MagicMock

import pytest

from dnsrig.procedures import replication
from dnsrig.procedures.context import TrialContext
from dnsrig.procedures.context.workspace import ServerFailed
from dnsrig.procedures.parts import databases
from dnsrig.rundir import Scalar
from dnsrig.servers import redis
from dnsrig.servers.database import Refused
from dnsrig.servers.postgresql import PostgreSqlConsole
from dnsrig.servers.redis import Redis, RedisConsole


class FakeContext:
    """Remembers how long it was told to rest, and does not."""

    def __init__(self, limit_s: float = 0.05) -> None:
        self.summaries: dict[str, Any] = {}
        self.spec = SimpleNamespace(limit_s=limit_s, dataset=SimpleNamespace(zones=3))
        self.rested: list[float] = []
        self.dead = False

    def rest(self, seconds: float) -> None:
        self.rested.append(seconds)
        if self.dead:
            raise ServerFailed("redis exited with status 1")


class FakeConsole:
    """Has what it is given, look by look; an exception is raised."""

    def __init__(self, *looks: bool | Exception, facts: dict[str, Scalar] | Exception) -> None:
        self.looks, self.told, self.closed = list(looks), facts, False

    def has_all(self, position: int) -> bool:
        found = self.looks.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    def facts(self) -> dict[str, Scalar]:
        if isinstance(self.told, Exception):
            raise self.told
        return self.told

    def close(self) -> None:
        self.closed = True


def followed(monkeypatch: pytest.MonkeyPatch, *consoles: FakeConsole | Exception) -> dict[str, Any]:
    """What a follower tells that meets these consoles, one at each attempt to connect."""
    left = list(consoles)

    def connect(context: TrialContext, name: str) -> FakeConsole:
        found = left.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr(databases, "console", connect)
    monkeypatch.setattr(databases, "LOOK_EVERY_S", 0.0)
    context = FakeContext()
    follower = databases.Follower(cast(TrialContext, context), "replica", position=7)
    follower._follow()
    follower.stop()
    found: dict[str, Any] = context.summaries["replica"]
    return found


def test_a_replica_is_stored_when_it_says_so_and_not_before(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = FakeConsole(False, Refused("LOADING"), facts={})
    whole = FakeConsole(False, True, facts={"memory_bytes": 5})
    told = followed(monkeypatch, ConnectionRefusedError(), lost, whole)
    assert told["stored_ns"] >= told["unstored_ns"] > 0
    assert told["looks"] == 5 and told["memory_bytes"] == 5
    assert lost.closed and whole.closed, "no connection is left open"


def test_what_it_weighs_does_not_decide_when_it_was_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    console = FakeConsole(True, facts=Refused("no"))
    assert followed(monkeypatch, console)["stored_ns"] is not None
    assert console.closed


def test_a_database_that_is_never_ready_at_the_far_site_is_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(databases, "console", _refuse)
    with pytest.raises(databases.TooLate, match=r"replica was not ready after 0\.05 s"):
        databases.wait_far(cast(TrialContext, FakeContext()), "replica")


def test_a_database_that_ended_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(databases, "console", _refuse)
    context = FakeContext(limit_s=3600)
    context.dead = True
    with pytest.raises(ServerFailed, match="exited with status 1"):
        databases.wait_far(cast(TrialContext, context), "replica")


def test_a_database_that_is_not_filled_is_no_result_of_the_far_site(monkeypatch: pytest.MonkeyPatch) -> None:
    context, made = FakeContext(), list[Filling]()
    monkeypatch.setattr(databases, "console", lambda *_: made.append(Filling(2)) or made[-1])
    with pytest.raises(ServerFailed, match=r"did not get all 3 zones within 0\.01 s \(it answers\)"):
        databases.wait_filled(cast(TrialContext, context), "database", limit_s=0.01)
    assert min(context.rested) >= databases.LOOK_EVERY_S
    assert made and all(console.closed for console in made), "no connection is left open"
    monkeypatch.setattr(databases, "console", _refuse)
    with pytest.raises(ServerFailed, match=r"within 0\.01 s \(nobody is there\)"):
        databases.wait_filled(cast(TrialContext, context), "database", limit_s=0.01)


def test_a_database_is_filled_though_one_look_broke_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a look that timed out asked for may still come, so the next look has a connection of its own."""
    looks: list[Filling] = [Filling(TimeoutError()), Filling(2), Filling(3)]
    made = list(looks)
    monkeypatch.setattr(databases, "console", lambda *_: looks.pop(0))
    context = FakeContext()
    assert databases.wait_filled(cast(TrialContext, context), "database", limit_s=3600) == 70
    told = context.summaries["database"]
    assert told.pop("filled_ns") > 0 and told == {"zones": 3, "position": 70, "memory_bytes": 5}
    assert all(console.closed for console in made)


def test_a_database_that_takes_long_to_answer_is_asked_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, context = iter(range(0, 100, 2)), FakeContext()
    monkeypatch.setattr(databases, "console", lambda *_: Filling(2))
    monkeypatch.setattr(databases.time, "monotonic", lambda: float(next(clock)))
    with pytest.raises(ServerFailed):
        databases.wait_filled(cast(TrialContext, context), "database", limit_s=5)
    assert context.rested == [10.0], "a look of 2 s is a fifth of the time"


@pytest.mark.parametrize(("kind", "waited"), [("knot", []), ("powerdns", ["wait"])])
def test_a_secondary_that_ends_without_its_database_waits_for_that(
    monkeypatch: pytest.MonkeyPatch, kind: str, waited: list[str]
) -> None:
    done: list[str] = []
    context = MagicMock()
    context.spec.hosts = dict.fromkeys(("primary", "database", "secondary", "replica"))
    context.servers.placements = {"secondary": SimpleNamespace(source=SimpleNamespace(kind=kind, described=None))}
    context.servers.start.side_effect = done.append
    context.time_zones.side_effect = lambda probe, begin: begin()
    monkeypatch.setattr(replication, "_start_near_site", lambda context: 70)
    monkeypatch.setattr(replication.transfer, "SETTLE_S", 0)
    monkeypatch.setattr(replication.transfer, "start_probe", lambda context: MagicMock())
    monkeypatch.setattr(databases, "Follower", MagicMock())
    monkeypatch.setattr(databases, "wait_far", lambda *_: done.append("wait"))
    replication.measure(context)
    assert done == ["replica", *waited, "secondary"]


class Filling:
    """The console of a database that has so many zones, or does not answer."""

    def __init__(self, zones: int | Exception) -> None:
        self.found, self.closed = zones, False

    def zones(self) -> int:
        if isinstance(self.found, Exception):
            raise self.found
        return self.found

    def position(self) -> int:
        return 70

    def facts(self) -> dict[str, Scalar]:
        return {"memory_bytes": 5}

    def close(self) -> None:
        self.closed = True


def _refuse(context: TrialContext, name: str) -> None:
    raise ConnectionRefusedError("nobody is there")


class FakeRedis:
    """A client that answers commands as ``answer`` says."""

    def __init__(self, answer: Callable[[Any], Any]) -> None:
        self.execute_command: Callable[..., Any] = lambda *words: answer(words)
        self.closed = False

    def close(self) -> None:
        self.closed = True


class FakePostgres:
    """A connection that answers statements by rows, as ``answer`` says."""

    def __init__(self, answer: Callable[[str], list[tuple[Any, ...]]]) -> None:
        self.execute = lambda sql: SimpleNamespace(fetchmany=lambda most: answer(sql.decode())[:most])


def of_redis(info: Any) -> RedisConsole:
    return RedisConsole(cast(Any, FakeRedis(lambda words: True if words == ("PING",) else info)))


def of_postgres(answer: Callable[[str], list[tuple[Any, ...]]]) -> PostgreSqlConsole:
    return PostgreSqlConsole(cast(Any, FakePostgres(answer)))


@pytest.mark.parametrize(
    ("status", "offset", "wanted"), [("up", 7, True), ("up", 6, False), ("down", 7, False), ("up", None, False)]
)
def test_a_replica_of_redis_has_all_when_its_link_is_up_and_its_offset_there(
    status: str, offset: int | None, wanted: bool
) -> None:
    info = {"master_link_status": status} | ({} if offset is None else {"slave_repl_offset": offset})
    assert of_redis(info).has_all(7) is wanted


@pytest.mark.parametrize(
    ("streams", "replayed", "wanted"), [(1, 7, True), (1, 6, False), (0, 7, False), (1, None, False)]
)
def test_a_replica_of_postgresql_has_all_when_it_streams_and_has_replayed_as_much(
    streams: int, replayed: int | None, wanted: bool
) -> None:
    answers = {"pg_stat_wal_receiver": streams, "pg_last_wal_replay_lsn": replayed}
    console = of_postgres(lambda sql: [(next(told for name, told in answers.items() if name in sql),)])
    assert console.has_all(7) is wanted


def test_what_is_no_number_is_refused() -> None:
    with pytest.raises(Refused):
        of_redis({"master_repl_offset": "many"}).position()
    for answer in ([("many",)], [(1, 2)], [], [(1,), (2,)]):
        with pytest.raises(Refused):
            of_postgres(lambda sql, rows=answer: rows).zones()  # type: ignore[misc]
    assert of_postgres(lambda sql: [(None,)]).zones() == 0


def test_a_database_that_loads_leaves_no_connection_open(monkeypatch: pytest.MonkeyPatch) -> None:
    client = FakeRedis(lambda words: "LOADING")
    monkeypatch.setattr(redis, "_client", lambda *_: client)
    with pytest.raises(Exception, match="not Redis"):
        Redis().console(cast(Any, "198.18.0.1"))
    assert client.closed
