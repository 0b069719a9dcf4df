"""Zones carried by real databases: published, replicated or read from far away, and served."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from suites import quick

from dnsrig.runs import replication
from dnsrig.runs.trial import Trial
from dnsrig.traps import all_traps

ZONES = 300
WAYS = [
    ("replica", "xot", "redis"),
    ("replica", "tcp", "valkey"),
    ("remote", "tcp", "redis"),
    ("remote", "xot", "valkey"),
]
"""Every pair of a carrier, a transport and a database."""
DOCUMENT = f"""
title = "two sites"
question = "does it arrive?"
procedure = "replication"
repeats = 1
limit_s = 60

[dataset]
kind = "tiny-zones"
zones = {ZONES}
records_per_zone = 3

[hosts.primary]
server = "knot@forky"

[hosts.database]
server = "redis@forky"

[hosts.secondary]
server = "knot@forky"

[hosts.secondary.settings.knot]
"server.async-start" = true
"""


@pytest.fixture
def over(measure: Callable[..., Trial], tmp_path: Path) -> Callable[..., Trial]:
    """Measure the document above, over plain links, by a carrier."""
    path = tmp_path / "sites.toml"
    path.write_text(DOCUMENT)

    def execute(carrier: str, *settings: str) -> Trial:
        return measure(f"options.carrier={carrier}", *settings, experiment=str(path))

    return execute


@pytest.mark.parametrize(("carrier", "transport", "database"), quick(WAYS, ("replica", "xot", "redis")))
def test_all_zones_come_through_a_database(
    over: Callable[..., Trial], carrier: str, transport: str, database: str
) -> None:
    trial = over(carrier, f"hosts.database.server={database}@forky", f"transfer.transport={transport}")
    record, metrics = trial.record, trial.metrics
    assert (record.outcome, record.reason) == ("done", "")
    assert metrics["zones_seen"] == ZONES
    assert record.servers["database"].server.kind == database
    assert record.servers["database"].server.version[0].isdigit()
    assert record.instruments["database"]["zones"] == record.logs["secondary"].zones == ZONES
    assert metrics["served_s"] == metrics["transfer_time_s"]
    assert (metrics["publish_s"] or 0) > 0 and (metrics["received_s"] or 0) > 0
    assert (metrics["stored_s"] is not None) == (carrier == "replica")
    assert "transfer_bytes" in metrics and metrics["transfer_bytes"] is None, "nothing was transferred"
    ends = replication.far_link(record.spec)
    assert ends == ("database", "replica" if carrier == "replica" else "secondary")
    listening = (trial.directory / f"servers/database/{database}.conf").read_text()
    assert ("tls-port" in listening) == (transport == "xot")


POWERDNS = [
    "hosts.primary.server=powerdns@forky",
    "hosts.database.server=postgresql@forky",
    "hosts.secondary.server=powerdns@forky",
]


@pytest.mark.full
@pytest.mark.parametrize(("carrier", "transport"), [("replica", "xot"), ("remote", "tcp")])
def test_all_zones_come_through_tables(over: Callable[..., Trial], carrier: str, transport: str) -> None:
    trial = over(carrier, *POWERDNS, f"transfer.transport={transport}")
    record, metrics = trial.record, trial.metrics
    assert (record.outcome, record.reason) == ("done", "")
    assert metrics["zones_seen"] == ZONES
    assert record.servers["database"].server.version.startswith(("15", "16", "17", "18"))
    stored, served = metrics["stored_s"], metrics["served_s"]
    assert (stored is not None) == (carrier == "replica") and served is not None
    settings = (trial.directory / "servers/database/postgresql.conf").read_text()
    assert ("ssl = on" in settings) == (transport == "xot")


@pytest.mark.full
@pytest.mark.parametrize(("carrier", "database"), [("replica", "redis"), ("remote", "postgresql")])
def test_a_database_is_reached_over_ipv6(over: Callable[..., Trial], carrier: str, database: str) -> None:
    servers = POWERDNS if database == "postgresql" else []
    trial = over(carrier, *servers, "family=ipv6", "transfer.transport=xot")
    assert (trial.record.outcome, trial.record.reason) == ("done", "")
    assert trial.metrics["zones_seen"] == ZONES


@pytest.mark.full
def test_a_large_zone_comes_through_a_replica(over: Callable[..., Trial]) -> None:
    trial = over("replica", "dataset={}", "dataset.kind=tld", "dataset.delegations=2000")
    assert trial.record.outcome == "done"
    received, stored = trial.metrics["received_s"], trial.metrics["stored_s"]
    assert received is not None and stored is not None


@pytest.mark.full
@pytest.mark.parametrize("transport", ["tcp", "xot"])
def test_the_same_zones_come_by_axfr_and_pipelined(over: Callable[..., Trial], transport: str) -> None:
    for carrier, secondary in (("axfr", "knot@forky"), ("pipelined", "transfer@engine")):
        trial = over(carrier, f"hosts.secondary.server={secondary}", f"transfer.transport={transport}", "limit_s=60")
        metrics = trial.metrics
        assert (trial.record.outcome, metrics["zones_seen"]) == ("done", ZONES)
        assert (metrics["transfer_time_s"] or 0) > 0
        assert (metrics["served_s"] is None) == (carrier == "pipelined"), "the instrument serves nothing"


@pytest.mark.full
def test_a_replica_that_is_not_in_sync_is_told(over: Callable[..., Trial]) -> None:
    """Provoked: the original waits before it sends its snapshot, and the secondary answers meanwhile."""
    trial = over("replica", 'hosts.database.settings."repl-diskless-sync-delay"=3')
    found = all_traps()["replica-not-in-sync"].after(trial)
    assert found is not None and found.verdict == "found"
    assert "SERVFAIL" in found.summary
    assert (trial.metrics["first_answer_s"] or 9) < (trial.metrics["stored_s"] or 0)


@pytest.mark.full
def test_a_database_that_ends_is_a_result(over: Callable[..., Trial]) -> None:
    record = over("remote", 'hosts.database.settings."no-such-thing"=1').record
    assert record.outcome == "server-failed"
    assert "redis" in record.reason and "exited with status 1" in record.reason
