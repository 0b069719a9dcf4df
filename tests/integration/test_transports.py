"""TSIG, XoT, catalog zones and divided zones, with every server in every role that has them."""

from __future__ import annotations

import contextlib
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import dns.message
import dns.query
import dns.rcode
import dns.tsig
import dns.tsigkeyring
import dns.xfr
import dns.zone
import pytest
from conftest import specs
from suites import quick

from dnsrig.lab.host import inside
from dnsrig.lab.network import Network
from dnsrig.procedures import procedure
from dnsrig.procedures.context import TrialContext
from dnsrig.rundir import TrialSpec
from dnsrig.runs.trial import Trial
from dnsrig.servers import all_drivers, keys

ZONES = 30
RAISED = (f'matrix."dataset.zones"=[{ZONES}]', "settings=raised", "baseline={}")
KINDS = sorted(kind for kind, server in all_drivers().items() if server.answers_zones and server.packages)
WITH_TLS = [kind for kind in KINDS if all_drivers()[kind].support("XoT").secondary]
SIGNED = [(kind, "tcp+tsig") for kind in KINDS] + [(kind, "xot+tsig") for kind in WITH_TLS]
CLIENT_LIMIT_S = 10.0
DNS, XOT = 53, 853
LOOK_EVERY_S = 0.002


@pytest.mark.parametrize(("kind", "transport"), quick(SIGNED, ("powerdns", "tcp+tsig"), ("bind", "xot+tsig")))
def test_secondary_over(measure: Callable[..., Trial], kind: str, transport: str) -> None:
    trial = measure(f"server={kind}@forky", f"zones={ZONES}", f"transfer.transport={transport}")
    record = trial.record
    assert (record.outcome, record.reason) == ("done", "")
    assert trial.metrics["zones_seen"] == ZONES


@pytest.mark.parametrize("kind", quick(KINDS, "nsd"))
def test_consumer_of_a_catalog(measure: Callable[..., Trial], kind: str) -> None:
    """No member is in the configuration of the secondary, and all are answered."""
    trial = measure(f"server={kind}@forky", f"zones={ZONES}", "transfer.provisioning=catalog")
    assert (trial.record.outcome, trial.metrics["zones_seen"]) == ("done", ZONES)
    assert ("provisioning", "passed", 100.0) in [
        (check.name, check.verdict, check.seen) for check in trial.record.checks
    ]
    for file in (trial.directory / "servers/secondary").glob("*.conf"):
        assert "z000001.example" not in file.read_text()


@pytest.mark.parametrize("kind", quick(KINDS, "bind"))
def test_settings_are_in_force(measure: Callable[..., Trial], kind: str) -> None:
    """As `server-defaults` raises them; the server itself shows them."""
    trial = measure(f"server={kind}@forky", *RAISED, experiment="server-defaults")
    named = trial.record.spec.hosts["secondary"].settings
    shown = trial.record.instruments["settings"]
    assert named and shown.keys() == named.keys()
    checks = {check.name: (check.verdict, check.seen) for check in trial.record.checks}
    assert (checks["settings-in-force"], checks["provisioning"]) == (("passed", 100.0), ("passed", 0.0))


@pytest.mark.parametrize("kind", quick(KINDS, "powerdns"))
def test_producer_of_a_catalog(measure: Callable[..., Trial], kind: str) -> None:
    primary = f"hosts.primary.server={kind}@forky"
    trial = measure("server=knot@forky", f"zones={ZONES}", primary, "transfer.provisioning=catalog")
    assert (trial.record.outcome, trial.metrics["zones_seen"]) == ("done", ZONES)


def test_zones_divided_among_primaries(measure: Callable[..., Trial]) -> None:
    trial = measure("server=bind@forky", f"zones={ZONES}", "options.primaries=3")
    assert trial.metrics["zones_seen"] == ZONES
    volumes = [trial.growth("secondary", f"link:{name}", "rx_bytes") for name in trial.record.spec.primaries]
    assert len(volumes) == 3 and all(volume and volume > ZONES / 3 * 100 for volume in volumes)


@contextlib.contextmanager
def in_progress(spec: TrialSpec, folder: Path) -> Iterator[TrialContext]:
    """The context of a trial in this process, so that a test can look around on it."""
    with Network(spec.hosts, spec.links) as lab:
        context = TrialContext(spec, folder, lab, lambda event: None)
        try:
            yield context
        finally:
            context.close()


@pytest.mark.parametrize("kind", quick(WITH_TLS, "nsd"))
def test_secondary_really_uses_tls(tmp_path: Path, kind: str) -> None:
    (spec,) = specs("tour", f"server={kind}@forky", f"zones={ZONES}", "transfer.transport=xot")
    with in_progress(spec, tmp_path) as context, connections_seen(context, "secondary") as seen:
        assert procedure("transfer").measure(context).outcome == "done"
    ports = {remote_port for _, remote_port in seen}
    assert XOT in ports and DNS not in ports


@pytest.mark.parametrize("kind", quick(KINDS, "knot"))
def test_secondary_uses_all_its_source_addresses(tmp_path: Path, kind: str) -> None:
    (spec,) = specs("tour", f"server={kind}@forky", f"zones={ZONES}", "hosts.secondary.source_addresses=2")
    with in_progress(spec, tmp_path) as context, connections_seen(context, "secondary") as seen:
        assert procedure("transfer").measure(context).outcome == "done"
    host = spec.hosts["secondary"]
    assert {own for own, remote_port in seen if remote_port == DNS} == {host.address, *host.source_addresses}


@pytest.mark.parametrize("kind", quick(KINDS, "bind"))
def test_primary_wants_the_key(tmp_path: Path, kind: str) -> None:
    """Asked by another program: nothing without the key, the zone with it, over TLS where the server has that."""
    transport = "xot+tsig" if kind in WITH_TLS else "tcp+tsig"
    partner = "nsd" if kind in WITH_TLS else "bind"
    primary = f"hosts.primary.server={kind}@forky"
    (spec,) = specs("tour", f"server={partner}@forky", "zones=2", primary, f"transfer.transport={transport}")
    with in_progress(spec, tmp_path) as context:
        context.start_watch()
        context.start_ready("primary", limit_s=60)
        address = spec.hosts["primary"].address
        with inside(context.host("observer").namespace):
            refused = dns.query.tcp(dns.message.make_query("z000000.example", "AXFR"), address, timeout=CLIENT_LIMIT_S)
            assert refused.rcode() in (dns.rcode.REFUSED, dns.rcode.NOTAUTH)
            zone = dns.zone.Zone("z000000.example")
            query, _ = dns.xfr.make_query(zone, keyring=keyring(context), keyname=keys.TSIG_NAME)
            dns.query.inbound_xfr(address, zone, query, lifetime=CLIENT_LIMIT_S)
            assert zone.get_soa().serial == spec.dataset.serial
            if kind in WITH_TLS:
                soa = dns.message.make_query("z000000.example", "SOA")
                answer = dns.query.tls(
                    soa, address, timeout=CLIENT_LIMIT_S, server_hostname=keys.TLS_NAME, ssl_context=trusting(context)
                )
                assert answer.answer


def keyring(context: TrialContext) -> dict[dns.name.Name, dns.tsig.Key]:
    key = dns.tsig.Key(keys.TSIG_NAME, context.workspace.keys.tsig_secret, dns.tsig.HMAC_SHA256)
    return {key.name: key}


def trusting(trial: TrialContext) -> ssl.SSLContext:
    """TLS 1.3 that trusts this trial's certificate and nothing else."""
    context = ssl.create_default_context(cadata=trial.workspace.keys.certificate_pem.decode())
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.set_alpn_protocols(["dot"])
    return context


@contextlib.contextmanager
def connections_seen(context: TrialContext, host: str) -> Iterator[set[tuple[str, int]]]:
    """Fills with (own address, other port) of every TCP connection of ``host`` that exists at some moment."""
    seen: set[tuple[str, int]] = set()
    stop = threading.Event()

    def look() -> None:
        with inside(context.host(host).namespace):
            while not stop.is_set():
                seen.update(_connections(Path("/proc/thread-self/net/tcp").read_text()))
                time.sleep(LOOK_EVERY_S)

    looker = threading.Thread(target=look)
    looker.start()
    try:
        yield seen
    finally:
        stop.set()
        looker.join()


def _connections(table: str) -> Iterator[tuple[str, int]]:
    """proc_net_tcp: addresses are hexadecimal, least significant byte first; 0A is LISTEN."""
    for line in table.splitlines()[1:]:
        _, own, other, state, *_ = line.split()
        if state != "0A":
            nbytes = bytes.fromhex(own.partition(":")[0])[::-1]
            yield ".".join(map(str, nbytes)), int(other.partition(":")[2], 16)
