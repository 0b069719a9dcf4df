"""A primary that changes its catalog by itself, and real secondaries that follow it; dnspython says what is right."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import dns.message
import dns.name
import dns.query
import dns.rcode
import dns.rdatatype
import dns.xfr
import dns.zone
import polars as pl
import pytest
from conftest import specs
from suites import quick

from dnsrig.lab.host import inside
from dnsrig.lab.network import Network
from dnsrig.procedures.context import TrialContext
from dnsrig.procedures.parts import serving
from dnsrig.rundir import OBSERVER
from dnsrig.runs.trial import Trial

KINDS = ("bind", "knot", "nsd", "powerdns")
MEMBERS = 40
STAY = MEMBERS // 2
RATE_PER_S = 100.0
FOLLOWED_LIMIT_S = 20.0
CATALOG = dns.name.from_text("catalog.example")


@contextmanager
def servers_ready(directory: Path, *settings: str) -> Iterator[TrialContext]:
    """The servers of one trial of `catalog-churn`, all ready, with the synthetic primary."""
    (spec,) = specs(
        "catalog-churn",
        "changes=catalog",
        "baseline={}",
        "hosts.primary.server=zones@engine",
        "transfer.updates=false",
        f"dataset.zones={MEMBERS}",
        f"options.changes_per_s={RATE_PER_S}",
        # What its caches still say of a member that is gone is no answer of the catalog.
        'hosts.secondary.settings.powerdns={"cache-ttl"=0,"query-cache-ttl"=0,"retrieval-threads"=8}',
        *settings,
    )
    with Network(spec.hosts, spec.links, directory=directory, repeat=1) as lab:
        made = TrialContext(spec, directory, lab, lambda event: None)
        try:
            serving.bring_up(made)
            yield made
        finally:
            made.close()


def transferred(server: str, known: dns.zone.Zone | None = None) -> dns.zone.Zone:
    """The catalog as dnspython takes it: whole, or what is ``known`` with the changes since then."""
    zone = known or dns.zone.Zone(CATALOG, relativize=False)
    query, _ = dns.xfr.make_query(zone)
    dns.query.inbound_xfr(server, zone, query, timeout=5)
    return zone


def settled(server: str) -> dns.zone.Zone:
    """The catalog after its last change: on a busy machine that is a moment after the order to end."""
    found, deadline = transferred(server), time.monotonic() + FOLLOWED_LIMIT_S
    while time.monotonic() < deadline:
        time.sleep(0.2)
        again = transferred(server)
        if again == found:
            break
        found = again
    return found


def listed(catalog: dns.zone.Zone) -> set[str]:
    return {rdata.target.to_text() for _, _, rdata in catalog.iterate_rdatas(dns.rdatatype.PTR)}


def served(server: str) -> set[str]:
    """Members of which the server knows the SOA."""
    found = set()
    for number in range(MEMBERS):
        name = dns.name.from_text(f"z{number:06}.example")
        answer = dns.query.udp(dns.message.make_query(name, "SOA"), server, timeout=5)
        if answer.rcode() == dns.rcode.NOERROR and answer.answer:
            found.add(name.to_text())
    return found


def followed(server: str, wanted: set[str]) -> set[str]:
    """What the server serves as soon as that is what is ``wanted``, or when there was time enough."""
    deadline = time.monotonic() + FOLLOWED_LIMIT_S
    while (found := served(server)) != wanted and time.monotonic() < deadline:
        time.sleep(0.2)
    return found


@pytest.mark.parametrize("kind", quick([f"{kind}@forky" for kind in KINDS], "knot@forky", "powerdns@forky"))
def test_secondaries_follow_the_catalog(tmp_path: Path, kind: str) -> None:
    with servers_ready(tmp_path, f"server={kind}") as made:
        primary, secondary = (str(made.host(name).address) for name in ("primary", "secondary"))
        with inside(made.host(OBSERVER).namespace):
            before = transferred(primary)
            assert listed(before) == served(secondary), "all are there at first"
            made.changes.begin("primary")
            time.sleep(1)
            made.changes.end("primary")
            after = settled(primary)
            # Not compared in the assertion: pytest would take half a minute to describe how two zones differ.
            same = transferred(primary, before) == after
            assert same, "the changes make of the old catalog the new one"
            there = listed(after)
            assert MEMBERS - STAY // 2 <= len(there) < MEMBERS
            assert followed(secondary, there) == there, "who left is gone, and who came back is served again"
    told = made.summaries["change"]
    rows = pl.read_ipc_stream(tmp_path / "changes.arrow")
    assert rows.height == told["changes"] >= RATE_PER_S and rows["serial"][-1] == after.get_soa().serial
    (counted,) = (one for one in told["secondaries"] if one["address"] == secondary)
    # As it stood when the changes ended: a secondary may still be on its way to the last serial.
    assert 0 < counted["serial"] <= rows["serial"][-1] and counted["notifies_answered"] > 0
    asked = counted["served"]
    assert asked["ixfr"] + asked["axfr"] + asked["axfr_for_ixfr"] > 0, asked


def test_a_measurement_has_the_changes_that_the_primary_made(measure: Callable[..., Trial]) -> None:
    trial = measure(
        "server=knot@forky",
        "changes=catalog",
        "baseline={}",
        "hosts.primary.server=zones@engine",
        "transfer.updates=false",
        "options.changes_per_s=50.0",
        # So few leave before the first comes back.
        f"dataset.zones={MEMBERS}",
        "options.rate_qps=500.0",
        "options.duration_s=1",
        experiment="catalog-churn",
    )
    assert trial.record.outcome in ("done", "invalid"), trial.record.reason
    made = trial.record.instruments["change"]
    (phase,) = (phase for phase in trial.record.phases if phase.name == "measure")
    rows = pl.read_ipc_stream(trial.directory / "changes.arrow")
    assert rows.height == made["changes"] >= 45 and set(rows["kind"]) == {"add", "remove"}
    begin_ns, end_ns = phase.start.monotonic_ns, phase.end.monotonic_ns
    assert rows.filter(pl.col("sent_ns").is_between(begin_ns, end_ns)).height >= 45, "all the while"
    assert rows["sent_ns"].max() <= end_ns + 500_000_000, "and not for longer"
    (counted,) = made["secondaries"]
    assert counted["served"]["ixfr"] > 0 and counted["serial"] > rows["serial"][0]


@pytest.mark.full
@pytest.mark.parametrize("kind", [f"{kind}@forky" for kind in KINDS])
def test_changes_of_zones_arrive(measure: Callable[..., Trial], kind: str) -> None:
    changes = 20
    trial = measure(
        f"server={kind}",
        "secondaries=1",
        f"matrix.changes={{ it.options = {{ mode = 'stream', changes = {changes}, rate_per_s = 20.0 }} }}",
        "changes=it",
        "hosts.primary.server=zones@engine",
        "transfer.updates=false",
        experiment="propagation",
    )
    assert (trial.record.outcome, trial.record.reason) == ("done", "")
    seen = pl.read_ipc_stream(trial.directory / "propagation.arrow")
    assert seen.height == changes and seen["seen_ns"].null_count() == 0
    assert (seen["seen_ns"] > seen["changed_ns"]).all(), "nothing is seen before it is made"
    made = pl.read_ipc_stream(trial.directory / "changes.arrow").head(changes)
    assert made["zone"].to_list() == seen["zone"].to_list() and made["serial"].to_list() == seen["serial"].to_list()
    assert (made["due_ns"] - seen["due_ns"]).abs().max() <= 2, "both know when each is made"
    secondary = trial.record.spec.hosts["secondary"].address
    (counted,) = (one for one in trial.record.instruments["change"]["secondaries"] if one["address"] == secondary)
    # One IXFR brings all that a zone has changed since the last one: on a busy machine that is several changes.
    assert counted["served"]["ixfr"] >= seen["zone"].n_unique() and counted["served"]["axfr_for_ixfr"] == 0, counted
