"""Query load on real servers: every transport, every role, with changes meanwhile.

Other work on the machine makes the instrument late, and the trial `invalid`: that is its job, so it is as good as
`done` here. What was asked and answered must be right either way.
"""

from __future__ import annotations

from collections.abc import Callable

import others
import pytest
from conftest import share_of_others
from suites import quick

from dnsrig.runs.trial import Trial

RATE_QPS = 500
CLIENTS = 16
SHORT = ("options.duration_s=1", "options.warmup_s=0.2", "baseline={}", "dataset.zones=20")
TRANSPORTS = [
    (kind, transport)
    for kind in ("bind", "knot", "nsd", "powerdns", "echo")
    for transport in ("udp", "tcp", "dot")
    if (kind, transport) != ("powerdns", "dot")
] + [("bind", "doh"), ("echo", "doh"), ("knot", "doq"), ("echo", "doq")]
QUICK = [("bind", "dot"), ("knot", "doq"), ("nsd", "tcp"), ("powerdns", "udp"), ("bind", "doh")]
"""Each server and each transport."""


def answered(trial: Trial) -> dict[str, int]:
    """The response codes; every query that was due has one, unless others took the CPUs: then some are lost, because
    a server without a CPU reads no socket."""
    record = trial.record
    assert record.outcome in ("done", "invalid"), record.reason
    load = record.instruments["load"]
    share = share_of_others(trial)
    least = load["due"] // 2 if others.excused({"udp-buffer-drops"}, share) else load["due"]
    assert load["due"] >= load["answered"] >= least > 0, f"others took {share:.0%} of a CPU"
    assert not load["malformed"] and not load["mismatched"]
    rcodes: dict[str, int] = load["rcodes"]
    return rcodes


def source(kind: str) -> str:
    return "echo@engine" if kind == "echo" else f"{kind}@forky"


@pytest.mark.parametrize(("kind", "transport"), quick(TRANSPORTS, *QUICK))
def test_primary_answers_over_every_transport(measure: Callable[..., Trial], kind: str, transport: str) -> None:
    trial = measure(
        *SHORT,
        f"rate_qps={RATE_QPS}",
        f"transport={transport}",
        f"hosts.primary.server={source(kind)}",
        experiment="echo-baseline",
    )
    assert set(answered(trial)) == {"NOERROR"}
    assert {check.name: check.verdict for check in trial.record.checks}["query-transport"] == "passed"
    for name in ("latency.hlog", "intervals.arrow", "clients.arrow"):
        assert (trial.directory / name).stat().st_size
    if transport != "udp":
        connections = trial.record.instruments["load"]["connections"]
        lost = sum(connections["ended"].values())
        assert connections["established"] == CLIENTS + lost
        # A server without a CPU exceeds limits of its own: `tcp-io-timeout` of Knot DNS is 500 ms.
        assert not lost or others.excused((), share_of_others(trial))


@pytest.mark.parametrize("transport", quick(["udp", "dot"], "udp"))
def test_resolver_asks_the_authority_for_what_it_has_not(measure: Callable[..., Trial], transport: str) -> None:
    for names, rcode in (("cached", "NOERROR"), ("uncached", "NXDOMAIN")):
        trial = measure(
            *SHORT,
            f"options.rate_qps={RATE_QPS}",
            f"transport={transport}",
            f"names={names}",
            experiment="resolver-cache",
        )
        assert set(answered(trial)) == {rcode}
        asked = trial.growth("primary", "udp", "in_datagrams")
        assert asked is not None
        # Answers from the cache leave the authority in peace; `watch` samples to within a few of them.
        assert asked > 0.5 * RATE_QPS if names == "uncached" else asked < 0.1 * RATE_QPS


@pytest.mark.parametrize("kind", quick(["bind", "unbound", "knot-resolver"], "unbound"))
def test_resolver_answers_over_https(measure: Callable[..., Trial], kind: str) -> None:
    trial = measure(
        *SHORT,
        f"options.rate_qps={RATE_QPS}",
        "transport=doh",
        "names=cached",
        f"hosts.resolver.server={kind}@forky",
        experiment="resolver-cache",
    )
    assert set(answered(trial)) == {"NOERROR"}
    assert trial.record.instruments["load"]["connections"]["handshakes"] > 0


@pytest.mark.parametrize(
    "server",
    quick(
        ["bind@bullseye", "bind@bookworm", "bind@forky", "knot@forky", "nsd@forky", "powerdns@forky"],
        "bind@forky",
    ),
)
def test_secondary_answers_while_its_catalog_changes(measure: Callable[..., Trial], server: str) -> None:
    trial = measure(
        *SHORT,
        f"options.rate_qps={RATE_QPS}",
        "options.changes_per_s=5",
        "options.timeout_s=5",
        "options.duration_s=4",
        f"server={server}",
        "changes=catalog",
        "exclude=[]",
        experiment="catalog-churn",
    )
    assert set(answered(trial)) == {"NOERROR"}, "members that are asked for stay"
    assert trial.record.instruments["change"]["changes"] > 0
    seen = {check.name: check.seen for check in trial.record.checks}
    assert seen["changes-served"], "the secondary followed while it was measured"


RAMP = ("options.ramp_most_qps=4000.0", "options.ramp_step_s=0.3", "options.ramp_latency_ms=1000.0")
"""A short one, which any machine holds up to its end."""


def test_capacity_of_the_reflector_is_found(measure: Callable[..., Trial]) -> None:
    only = ("matrix={}", "baseline={}", "hosts.secondary.server=echo@engine", "options.ramp_start_qps=1000.0")
    trial = measure(*only, *RAMP, experiment="capacity")
    load = trial.record.instruments["load"]
    assert load["steps"] and load["capacity_qps"] is not None
    if load["capacity_qps"] == 4000.0:
        assert trial.record.outcome == "done" and "ramp_most_qps = 4000" in trial.record.reason


@pytest.mark.full
def test_a_rate_from_the_ramp(measure: Callable[..., Trial]) -> None:
    only = ("matrix={}", "baseline={}", "options.rate_qps=0", "options.rate_share=0.25", "options.duration_s=1")
    trial = measure(*only, *RAMP, experiment="echo-baseline")
    capacity_qps = trial.record.instruments["ramp"]["capacity_qps"]
    assert 0 < trial.record.instruments["load"]["asked_qps"] <= 0.25 * capacity_qps
