"""Resolvers that resolve from a simulated Internet while clients' queries are replayed at them."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
import pytest
from suites import quick

from dnsrig.rundir import Check
from dnsrig.runs import upstream
from dnsrig.runs.row_files.world import QUERIES
from dnsrig.runs.trial import Trial
from dnsrig.servers import driver


def able(kind: str, level: str) -> bool:
    found = driver(kind).as_resolver
    return found is not None and level in found.levels


KINDS = ["bind", "knot-resolver", "powerdns-recursor", "unbound"]
SHORT = (
    "dataset.zones=500",
    "stream.duration_s=4",
    "options.duration_s=4",
    "stream.qps=300",
    "cache=empty",
    "baseline={}",
)


def resolved(measure: Callable[..., Trial], kind: str, *more: str) -> Trial:
    return measure(*SHORT, f"server={kind}@forky", *more, experiment="cold-minute")


def within(trial: Trial) -> pl.DataFrame:
    """What the world was asked in seconds that lie in `measure` as a whole."""
    phase = trial.measure
    assert phase is not None
    last_ns = phase.end.monotonic_ns - 1_000_000_000
    return upstream.queries(trial).filter(pl.col("time_ns").is_between(phase.start.monotonic_ns, last_ns))


def check(trial: Trial, name: str) -> Check:
    return next(check for check in trial.record.checks if check.name == name)


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
def test_a_resolver_resolves_from_the_world(measure: Callable[..., Trial], kind: str) -> None:
    trial = resolved(measure, kind)
    failed = {check.name: check.reason for check in trial.record.checks if check.verdict != "passed"}
    assert (trial.record.outcome, trial.record.reason, failed) == ("done", "", {})
    rcodes = trial.load.rcodes
    assert rcodes["NOERROR"] > 4 * rcodes["NXDOMAIN"] > 0 and "SERVFAIL" not in rcodes
    # Its cache is empty at first, and popular names are soon in it. Each miss costs a query, and delegations cost more.
    assert 40 < (trial.value("cache_hits_percent") or 0) < 95
    misses = 1 - (trial.value("cache_hits_percent") or 0) / 100
    assert misses < (trial.value("upstream_a_query") or 0) < 10 * misses
    assert set(trial.rows(QUERIES)["level"]) == {"root", "tld", "second"}
    assert (trial.value("upstream_packets") or 0) >= 2 * trial.rows(QUERIES)["queries"].sum() * 0.5


@pytest.mark.full
def test_a_warm_cache_asks_little(measure: Callable[..., Trial]) -> None:
    trial = measure(*SHORT[:-2], "cache=warm", "baseline={}", "server=unbound@forky", experiment="cold-minute")
    assert trial.record.outcome == "done"
    assert (trial.value("upstream_a_query") or 1) < (resolved(measure, "unbound").value("upstream_a_query") or 0) / 2


@pytest.mark.full
def test_a_resolver_resolves_over_ipv6(measure: Callable[..., Trial]) -> None:
    trial = resolved(measure, "bind", 'family="ipv6"', 'hosts.resolver.resolving.upstream="ipv6"')
    assert (trial.record.outcome, trial.record.reason) == ("done", "")
    assert set(trial.rows(QUERIES)["family"]) == {"ipv6"}


@pytest.mark.full
def test_names_that_the_world_lacks_make_a_trial_invalid(measure: Callable[..., Trial]) -> None:
    trial = resolved(measure, "unbound", "stream.once=0.2", 'dataset.set="zones.wildcard = 0.0"')
    assert trial.record.outcome == "invalid" and trial.record.reason.startswith("it does not match its variant")
    assert check(trial, "names-in-world").verdict == "failed"


@pytest.mark.full
def test_a_resolver_that_lost_its_level_makes_a_trial_invalid(measure: Callable[..., Trial]) -> None:
    trial = resolved(measure, "unbound", 'hosts.resolver.settings={ "disable-edns-do" = true }')
    assert trial.record.outcome == "invalid"
    assert (check(trial, "upstream-do").verdict, check(trial, "upstream-do").seen) == ("failed", 0)


@pytest.mark.full
def test_a_world_that_is_too_slow_makes_a_trial_invalid(measure: Callable[..., Trial]) -> None:
    """Names of which none is asked for twice, in signed zones, and each answer signed anew with RSA."""
    names = ("stream.qps=3000", "stream.missing=0.9", "stream.missing_once=1.0")
    signed = "\\n".join(["signing.share = 0.93", "signing.tlds.signed = 1.0", "signing.zones.p256 = 0.0"])
    slow = (f'dataset.set="{signed}"', 'hosts.internet.settings={ "signature-cache-mib" = 0 }')
    trial = resolved(measure, "unbound", *names, *slow)
    assert check(trial, "world-kept-up").verdict == "failed", check(trial, "world-kept-up")
    assert check(trial, "world-signed-ahead").verdict == "failed", check(trial, "world-signed-ahead")


# Mbit/s from the world to the resolver, packets that may wait, and what is said of it.
LINKS = [
    (0.3, 10_000, "0.3 Mbit/s from internet to resolver"),
    (0.3, 20, "packets found no room from internet to resolver"),
    (100, 10_000, ""),
]


@pytest.mark.full
@pytest.mark.parametrize(("rate_mbit", "limit_packets", "says"), LINKS)
def test_a_link_that_is_full_makes_a_trial_invalid(
    measure: Callable[..., Trial], rate_mbit: float, limit_packets: int, says: str
) -> None:
    path = (f"path.rate_mbit={rate_mbit}", f"path.limit_packets={limit_packets}", "path.reverse.rate_mbit=100")
    trial = resolved(measure, "unbound", 'link="tun"', *path)
    assert check(trial, "links-kept-up").verdict == ("failed" if says else "passed")
    assert trial.record.outcome == ("invalid" if says else "done"), trial.record.reason
    assert says in trial.record.reason


@pytest.mark.full
def test_a_world_has_its_signatures_before_it_is_asked(measure: Callable[..., Trial]) -> None:
    trial = resolved(measure, "bind", "dataset.zones=300", "stream.qps=50", 'dataset.set="signing.share = 0.9"')
    assert trial.record.outcome == "done", trial.record.reason
    # Nobody's question waited in a socket until the world had signed.
    assert trial.rows(QUERIES).filter(~pl.col("dnssec_ok"))["queries"].sum() < 50
    assert trial.record.instruments["world"]["signatures"]["given"] > 100
    assert check(trial, "world-signed-ahead").verdict == "passed", check(trial, "world-signed-ahead")


WITHOUT = [
    ("unbound", '{ "val-permissive-mode" = true }', "AD for the good name, and no SERVFAIL"),
    ("unbound", '{ "module-config" = "\\"iterator\\"" }', "do-unvalidated, required: validating"),
    ("bind", '{ "validate-except" = "{ \\"dnssec-failed.arpa\\"; }" }', "AD for the good name, and no SERVFAIL"),
    ("bind", '{ "dnssec-validation" = false }', "do-unvalidated, required: validating"),
]


@pytest.mark.full
@pytest.mark.parametrize(("kind", "settings", "reason"), WITHOUT)
def test_one_that_does_not_validate_is_not_measured_as_if_it_did(
    measure: Callable[..., Trial], kind: str, settings: str, reason: str
) -> None:
    changed = f"hosts.resolver.settings={settings}"
    trial = resolved(measure, kind, "hosts.resolver.resolving.level=validating", changed)
    assert trial.record.outcome == "invalid"
    found = check(trial, "resolver-level")
    assert found.verdict == "failed" and reason in found.reason


@pytest.mark.full
def test_signatures_that_ended_make_a_trial_invalid(measure: Callable[..., Trial]) -> None:
    ended = 'dataset.set="signing.epoch_s = 1000000000\\nsigning.validity_days = 30"'
    trial = resolved(measure, "bind", "hosts.resolver.resolving.level=validating", ended)
    assert trial.record.outcome == "invalid"
    assert "no data for the good name" in check(trial, "resolver-level").reason


LEVELS = [(kind, level) for kind in KINDS for level in ("no-do", "do-unvalidated", "validating") if able(kind, level)]


@pytest.mark.parametrize(("kind", "level"), quick(LEVELS, ("unbound", "validating")))
def test_a_level_is_what_it_says_in_a_signed_world(measure: Callable[..., Trial], kind: str, level: str) -> None:
    trial = resolved(measure, kind, f"hosts.resolver.resolving.level={level}", 'dataset.set="signing.share = 0.5"')
    failed = {check.name: check.reason for check in trial.record.checks if check.verdict != "passed"}
    assert (trial.record.outcome, trial.record.reason, failed) == ("done", "", {})
    validates = level == "validating"
    for shown in trial.record.instruments["level"].values():
        assert shown["good"]["rcode"] == 0 and shown["good"]["ad"] == validates
        assert shown["broken"]["rcode"] == (2 if validates else 0) and not shown["broken"]["ad"]
    # What clients ask for is in order, and none asks for the broken zone: only the twin and the question afterwards do.
    assert "SERVFAIL" not in trial.load.rcodes
    assert set(within(trial)["fault"]) == {"none"}
    assert "wrong-ds" in set(trial.rows(QUERIES)["fault"])
    if trial.value("validations_per_s") is not None:
        assert ((trial.value("validations_per_s") or 0) > 0) == validates
    assert (trial.value("upstream_bytes") or 0) > 0 and (trial.value("upstream_a_query") or 0) > 0
    assert 0 < (trial.value("cache_hits_percent") or 0) < 100
    assert set(trial.rows(QUERIES)["level"]) == {"root", "tld", "second"}
