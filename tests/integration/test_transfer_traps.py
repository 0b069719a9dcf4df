"""Each trap of transfers is provoked for real, and is silent without its cause. Trials of a second or so."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from suites import quick
from test_traps_provoked import eventually, finding

from dnsrig.runs.trial import Trial

Measure = Callable[..., Trial]
SYNTHETIC = "server=zones@engine"
LARGE = 'hosts.primary.settings.large="1:4000000"'
"""A hundred megabytes: sent in some 40 ms where nobody else uses the CPU."""


@pytest.fixture
def transfer_load(measure: Measure) -> Measure:
    """One trial of `connection-policy`: all zones pipelined over TCP unless ``settings`` say something else."""

    def one(*settings: str) -> Trial:
        usual = {"policy": "pipelined", "transport": "tcp", "dataset.zones": "100", "limit_s": "10", "baseline": "{}"}
        said = dict(setting.split("=", 1) for setting in settings)
        return measure(*(f"{name}={value}" for name, value in (usual | said).items()), experiment="connection-policy")

    return one


@pytest.mark.full
def test_delayed_ack(transfer_load: Measure) -> None:
    """PowerDNS writes a zone as three small messages."""
    trial = transfer_load("server=powerdns@forky", "policy=reused", "dataset.zones=30")
    found = finding("delayed-ack", trial)
    assert found.verdict == "found"
    assert 39 <= float(found.evidence["wait_median_ms"] or 0) <= 50
    tiny = finding("few-bytes-a-message", trial)
    assert tiny.verdict == "found" and tiny.evidence["tiny_messages_a_transfer"] == 3


@pytest.mark.full
def test_delayed_ack_of_new_tls_connections(transfer_load: Measure) -> None:
    """NSD sends session tickets after the handshake, and holds the answer back until they are acknowledged."""
    settings = ("server=nsd@forky", "policy=one", "transport=xot (resumed)", "dataset.zones=30")
    found = eventually("delayed-ack", "found", transfer_load, *settings)
    assert int(found.evidence["waits_before_first_message"] or 0) * 2 > int(found.evidence["waits"] or 0)


@pytest.mark.full
def test_no_delayed_ack(transfer_load: Measure) -> None:
    """The same without the delay, which is the instrument's side."""
    settings = ("server=powerdns@forky", "policy=reused", "dataset.zones=30", "options.quickack=true")
    eventually("delayed-ack", "clear", transfer_load, *settings)


def test_transfer_limit(transfer_load: Measure) -> None:
    ten = 'hosts.primary.settings.bind."transfers-out"=10'
    found = finding("transfer-limit", transfer_load("server=bind@forky", "dataset.zones=200", ten))
    assert found.verdict == "found"
    assert 5 <= int(found.evidence["not_refused_at_a_time"] or 0) <= 10
    assert "transfers-out" in found.remedy


@pytest.mark.full
@pytest.mark.alone
def test_transfer_limit_of_the_synthetic_primary(transfer_load: Measure) -> None:
    """Zones that take a while each, and three at a time. A client that waits for a CPU reads the answers of many
    transfers at once, which then all seem to have been in progress."""
    settings = (
        'hosts.primary.settings."concurrent-max"=3',
        'hosts.primary.settings.fault="slow=2ms"',
        "options.connections=8",
    )
    found = finding("transfer-limit", transfer_load(SYNTHETIC, *settings))
    assert found.verdict == "found"
    assert int(found.evidence["not_refused_at_a_time"] or 0) <= 3


@pytest.mark.full
def test_small_behind_large(transfer_load: Measure) -> None:
    found = finding("small-behind-large", transfer_load(SYNTHETIC, LARGE))
    assert found.verdict == "found"
    assert int(found.evidence["transfers_behind"] or 0) >= 50
    assert int(found.evidence["largest_bytes"] or 0) > 1_000_000


@pytest.mark.full
def test_a_primary_that_interleaves(transfer_load: Measure) -> None:
    trial = transfer_load(SYNTHETIC, LARGE, 'hosts.primary.settings.order="interleaved"')
    assert finding("small-behind-large", trial).verdict == "clear"


@pytest.mark.full
def test_full_handshakes(transfer_load: Measure) -> None:
    """A primary that gives no tickets, beside one that does."""
    over_tls = (SYNTHETIC, "policy=one", "transport=xot (resumed)", "dataset.zones=30")
    found = finding("full-handshakes", transfer_load(*over_tls, 'hosts.primary.settings.fault="no-tickets"'))
    assert found.verdict == "found"
    assert found.evidence["resumed_handshakes"] == 0
    assert finding("full-handshakes", transfer_load(*over_tls)).verdict == "clear"


@pytest.mark.full
def test_cut_transfer(transfer_load: Measure) -> None:
    cut = ('hosts.primary.settings.fault="cut-after=3"', 'hosts.primary.settings."fault-every"=50')
    retry = ("options.retries=1", "options.retry_after_s=0.1")
    trial = transfer_load(SYNTHETIC, LARGE, "policy=one", *cut, *retry)
    found = finding("cut-transfer", trial)
    assert found.verdict == "found"
    assert int(found.evidence["begun_again"] or 0) >= 1
    assert int(found.evidence["zones_never_done"] or 0) >= 1


@pytest.mark.full
def test_few_bytes_a_message(transfer_load: Measure) -> None:
    found = finding(
        "few-bytes-a-message", transfer_load(SYNTHETIC, LARGE, 'hosts.primary.settings."message-bytes"=512')
    )
    assert found.verdict == "found"
    assert float(found.evidence["large_bytes_a_message"] or 0) <= 514


@pytest.mark.full
def test_records_missing(transfer_load: Measure) -> None:
    """A primary that is told to leave out a type; and one that is not."""
    query = (
        "SELECT content,ttl,prio,type,domain_id,disabled,name,auth,ordername FROM records "
        "WHERE (disabled=0 OR :include_disabled) and domain_id=:domain_id and type<>'A' order by name, type"
    )
    without = f'hosts.primary.settings.powerdns."gsqlite3-list-query"="{query}"'
    found = finding("records-missing", transfer_load("server=powerdns@forky", without))
    assert found.verdict == "found"
    assert 0 < int(found.evidence["records"] or 0) < int(found.evidence["records_of_the_zones"] or 0)
    assert finding("records-missing", transfer_load("server=powerdns@forky")).verdict == "clear"


@pytest.mark.full
@pytest.mark.parametrize("server", [f"{kind}@forky" for kind in ("bind", "knot", "nsd", "powerdns")])
def test_a_signed_zone_comes_whole_from_every_primary(measure: Measure, server: str) -> None:
    usual = ("path.delay_ms=0", "path.mtu_bytes=1500", "icmp=sent", "mss=untouched", "transport=tcp")
    trial = measure(f"hosts.primary.server={server}", *usual, "dataset.delegations=500", experiment="mtu-mss")
    assert trial.record.outcome == "done"
    assert finding("records-missing", trial).verdict == "clear"


@pytest.mark.parametrize("server", quick(["nsd@forky", "zones@engine"], "zones@engine"))
def test_a_clean_transfer_load(transfer_load: Measure, server: str) -> None:
    trial = transfer_load(f"server={server}", "dataset.zones=300")
    traps = ("delayed-ack", "transfer-limit", "small-behind-large", "cut-transfer", "few-bytes-a-message")
    assert {trap: finding(trap, trial).verdict for trap in traps} == dict.fromkeys(traps, "clear")
