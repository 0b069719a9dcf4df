"""Held connections: the options of the procedure, the metrics, and the trap of a server's limit, on made data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from trial_data import SECOND, check, clean_trial, judge, measured, series, use

from dnsrig.errors import UsageError
from dnsrig.metrics import held_connections as metrics
from dnsrig.procedures import all_procedures, options_of
from dnsrig.rundir import Resolving, ServerLimit
from dnsrig.runs.row_files.load import CLIENTS
from dnsrig.runs.trial import Trial
from dnsrig.servers import all_drivers

KIND = all_procedures()["held-connections"]
LIMIT = ServerLimit(
    setting="tcp-count", value=100, default=True, effect="connections", connections=100, remedy="raise it"
)


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    return clean_trial(tmp_path / "run")


def summary(open_count: int, *, start_ns: int = 0, clients: int = 1000, **ended: int) -> dict[str, Any]:
    """The summary of a load that held connections, of which ``open_count`` are open."""
    connections = {"attempted": clients, "established": clients, "open": open_count, "ended": ended}
    opening = {
        "start_ns": start_ns,
        "duration_s": 2.0,
        "sent": clients,
        "answered": open_count,
        "connections": connections,
        "handshake_ns": {"p99": 4e6},
        "memory_per_connection_bytes": 2_900.0,
    }
    return {
        "transport": "tcp",
        "model": "rate",
        "clients": clients,
        "sent": 500,
        "answered": 400,
        "timeouts": 100 - open_count // 10,
        "connections": connections,
        "held": {"held_as": "idle", "every_s": 10.0, "opening": opening},
    }


def test_hosts_have_as_many_addresses_as_their_ports_need() -> None:
    options = options_of(KIND, {"held": 100_000})
    hosts = KIND.hosts(options)
    assert hosts["holder"].source_addresses == 3
    assert KIND.links(hosts) == [("primary", "holder")]
    assert KIND.expected_s(options) == pytest.approx(2 + 200 + 10)


def test_other_behaviours_need_tcp() -> None:
    with pytest.raises(UsageError, match="needs TCP"):
        KIND.hosts(options_of(KIND, {"transport": "doq", "held_as": "half-open"}))
    with pytest.raises(UsageError, match=r"options\.transport"):
        options_of(KIND, {"transport": "udp"})


def test_a_connection_costs_the_difference_to_before_the_opening(trial: Trial) -> None:
    start = measured(trial, 4)
    anonymous = [50_000_000, 50_000_000, *[53_000_000] * 5]
    use(
        trial,
        series(
            start - 2 * SECOND,
            secondary__cgroup__memory_anonymous_bytes=anonymous,
            secondary__cgroup__memory_kernel_bytes=[1_000_000, 2_000_000, *[6_000_000] * 5],
            secondary__cgroup__cpu_usage_us=[0, 10_000, 20_000, 50_000, 80_000, 110_000, 140_000],
        ),
    )
    told = summary(1000, start_ns=start - SECOND // 2)
    warmup = {"model": "rate", "start_ns": start - 2 * SECOND, "end_ns": start}
    trial.record.instruments.update(held=told, warmup=warmup)
    assert metrics.held_memory_bytes(trial) == 3_000
    assert metrics.held_kernel_memory_bytes(trial) == 4_000
    assert metrics.held_cpu_us_per_s(trial) == pytest.approx(20)
    assert metrics.held_open_percent(trial) == 100
    assert metrics.opening_p99_ms(trial) == 4
    assert metrics.holder_memory_bytes(trial) == 2_900


def test_without_open_connections_there_is_no_cost(trial: Trial) -> None:
    assert metrics.held_memory_bytes(trial) is None
    assert metrics.connections_ended(trial) is None
    trial.record.instruments["held"] = summary(0, refused=1000)
    assert metrics.held_memory_bytes(trial) is None
    assert metrics.connections_ended(trial) == 1000
    assert metrics.held_unanswered_percent(trial) == 20


METRICS = (
    "held_memory_bytes", "held_kernel_memory_bytes", "held_cpu_us_per_s", "held_open_percent", "connections_ended",
    "held_unanswered_percent", "opening_p99_ms", "holder_memory_bytes",
)  # fmt: skip


def test_what_is_not_known_of_held_connections_has_no_value(trial: Trial) -> None:
    """There are samples throughout: what lacks is the holder, an open connection, a query or a warm-up."""
    start = measured(trial, 4)
    names = ("memory_anonymous_bytes", "memory_kernel_bytes", "cpu_usage_us")
    use(
        trial,
        series(start - 2 * SECOND, **{f"secondary__cgroup__{name}": [100 * n for n in range(7)] for name in names}),
    )
    trial.record.instruments["warmup"] = {"model": "rate", "start_ns": start - 2 * SECOND, "end_ns": start}

    def known() -> set[str]:
        return {name for name in METRICS if getattr(metrics, name)(trial) is not None}

    assert known() == set()
    trial.record.instruments["held"] = summary(1000, start_ns=start - SECOND)
    assert known() == set(METRICS)
    trial.record.instruments["held"] = {**summary(1000, start_ns=start - SECOND), "sent": 0}
    assert set(METRICS) - known() == {"held_unanswered_percent"}
    trial.record.instruments["held"] = summary(1000, start_ns=start - 3 * SECOND)
    assert set(METRICS) - known() == {"held_memory_bytes", "held_kernel_memory_bytes"}, "no sample before the opening"
    del trial.record.instruments["warmup"]
    trial.record.instruments["held"] = summary(1000, start_ns=start - SECOND)
    assert set(METRICS) - known() == {"held_cpu_us_per_s"}
    nobody = summary(0, start_ns=start - SECOND)
    nobody["held"]["opening"] |= {"handshake_ns": {}, "connections": nobody["connections"]}
    trial.record.instruments["held"] = nobody
    assert set(METRICS) - known() >= {
        "held_memory_bytes",
        "held_kernel_memory_bytes",
        "held_cpu_us_per_s",
        "opening_p99_ms",
    }


def test_connections_that_were_not_begun_are_noticed(trial: Trial) -> None:
    for held, begun, verdict in ((2000, 1000, "failed"), (1000, 1000, "passed"), (1000, None, "cannot-tell")):
        trial.record.spec.options["held"] = held
        trial.record.instruments.pop("held", None)
        if begun is not None:
            trial.record.instruments["held"] = summary(begun)
        found = check("connections-opened", trial)
        assert found.verdict == verdict, found


@pytest.mark.parametrize(
    ("clients", "ended", "verdict"),
    [
        (1000, {"closed": 900}, "found"),
        (1000, {"reset": 1}, "found"),
        (100, {"closed": 50}, "clear"),
        (90, {}, "clear"),
    ],
)
def test_trap_of_the_limit(trial: Trial, clients: int, ended: dict[str, int], verdict: str) -> None:
    assert trial.server is not None
    trial.server.limits.append(LIMIT)
    trial.record.instruments["held"] = {**summary(100, clients=clients, **ended), "timeouts": 0}
    found = judge("connection-limit", trial)
    assert found.verdict == verdict
    if verdict == "found":
        assert found.evidence["setting"] == "tcp-count"
        assert found.evidence["wanted_connections"] == 1000
        assert found.remedy == "Raise it."


def test_connections_that_starve_are_at_the_limit_too(trial: Trial) -> None:
    assert trial.server is not None
    trial.server.limits.append(LIMIT)
    trial.record.instruments["held"] = summary(1000)
    assert judge("connection-limit", trial).verdict == "clear", "nothing was lost"
    trial.record.instruments["load"] = {**summary(4, clients=4), "timeouts": 7}
    found = judge("connection-limit", trial)
    assert (found.verdict, found.evidence["timed_out_queries"]) == ("found", 7)


def test_an_unknown_limit_is_no_answer(trial: Trial) -> None:
    trial.record.instruments["held"] = summary(10, closed=990)
    assert judge("connection-limit", trial).verdict == "cannot-tell"


@pytest.mark.parametrize(
    ("answered", "unanswered", "verdict"),
    [
        ([50, 0, 70, 0], [1, 60, 0, 60], "found"),
        ([50, 1, 70, 1], [1, 60, 0, 60], "cannot-tell"),
        ([0, 0, 0, 0], [60, 60, 60, 60], "cannot-tell"),
        ([50, 0, 70, 0], [10, 1, 10, 1], "cannot-tell"),  # one query each may be lost by chance
    ],
)
def test_clients_without_any_answer_show_an_unknown_limit(
    trial: Trial, answered: list[int], unanswered: list[int], verdict: str
) -> None:
    trial.record.instruments["load"] = {**summary(4, clients=4), "timeouts": 7}
    rows = {"start_ns": [0] * 4, "client": [0, 1, 2, 3], "answered": answered, "unanswered": unanswered}
    rows |= {"sum_ns": [0] * 4, "max_ns": [0] * 4}
    pl.DataFrame(rows, schema=CLIENTS.schema).write_ipc_stream(trial.directory / "clients.arrow")
    found = judge("connection-limit", trial)
    assert found.verdict == verdict
    if verdict == "found":
        assert (found.evidence["served_clients"], found.evidence["clients_without_an_answer"]) == (2, 2)
        assert "incoming-num-tcp" in found.remedy


@pytest.mark.parametrize(
    ("kind", "settings", "permitted"),
    [
        ("bind", {}, 10_000),
        ("bind", {"tcp-clients": 150}, 150),
        ("nsd", {"tcp-count": 100}, 100),
        ("powerdns", {}, 1000),
        ("knot", {}, None),
        ("knot", {"server.tcp-max-clients": 50}, 50),
    ],
)
def test_drivers_know_their_limits(kind: str, settings: dict[str, int], permitted: int | None) -> None:
    limits = all_drivers()[kind].limits("primary", settings)
    found = [limit.connections for limit in limits if limit.effect == "connections"]
    assert found == ([] if permitted is None else [permitted])


def test_the_limit_of_a_resolver_has_its_own_name(trial: Trial) -> None:
    host = trial.record.spec.hosts[trial.subject]
    assert host.server is not None
    host.role, host.server.kind, host.resolving = "resolver", "unbound", Resolving(tcp_clients=10)
    host.cpus = [0, 1]
    trial.record.instruments["held"] = summary(20, clients=1000, reset=980)
    found = judge("connection-limit", trial)
    assert (found.verdict, found.evidence["setting"], found.evidence["permitted_connections"]) == (
        "found",
        "incoming-num-tcp",
        20,
    )
