"""Changes on a primary and their way to secondaries: every server in each role that it has, signed and not, told and
not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from suites import quick

from dnsrig.runs.trial import Trial
from dnsrig.servers import all_drivers

DRIVERS = all_drivers()
AS_PRIMARY = sorted(
    kind for kind, server in DRIVERS.items() if server.packages and server.support("dynamic updates").primary
)
AS_SECONDARY = sorted(
    kind for kind, server in DRIVERS.items() if server.packages and server.support("NOTIFY").secondary
)
BOTH = [(kind, transport) for kind in AS_PRIMARY for transport in ("tcp", "tcp+tsig")]
CHANGES = 3


def propagate(
    measure: Callable[..., Trial],
    primary: str,
    secondary: str,
    *settings: str,
    mode: str = "single",
    secondaries: int = 1,
) -> Trial:
    return measure(
        f"server={secondary}@forky",
        f"secondaries={secondaries}",
        f"matrix.changes={{ it.options = {{ mode = '{mode}', changes = {CHANGES} }} }}",
        "changes=it",
        f"hosts.primary.server={primary}@forky",
        # PowerDNS as primary sends whole zones.
        f"transfer.ixfr={str(bool(DRIVERS[primary].support('IXFR').primary)).lower()}",
        *settings,
        experiment="propagation",
    )


def check(trial: Trial, arrivals: int) -> None:
    record = trial.record
    assert (record.outcome, record.reason) == ("done", "")
    summary = record.instruments["propagation"]
    assert (summary["changes"], summary["accepted"], summary["seen"]) == (CHANGES, CHANGES, arrivals)
    rows = pl.read_ipc_stream(trial.directory / "propagation.arrow")
    assert rows.height == arrivals and rows["seen_ns"].null_count() == 0
    assert (rows["seen_ns"] > rows["changed_ns"]).all()
    verdict, told_percent = seen(trial, "told-by-notify")
    assert verdict == "passed" and told_percent >= 100
    assert (trial.metrics["propagation_p50_ms"] or 0) > 0
    assert (trial.metrics["propagation_resolution_p50_ms"] or 0) > 0


def seen(trial: Trial, name: str) -> tuple[str, Any]:
    (found,) = [check for check in trial.record.checks if check.name == name]
    return found.verdict, found.seen


@pytest.mark.parametrize("kind", quick(AS_SECONDARY, "knot"))
def test_secondary_follows(measure: Callable[..., Trial], kind: str) -> None:
    check(propagate(measure, "bind", kind), CHANGES)


@pytest.mark.parametrize(("kind", "transport"), quick(BOTH, ("powerdns", "tcp+tsig")))
def test_primary_takes_changes(measure: Callable[..., Trial], kind: str, transport: str) -> None:
    check(propagate(measure, kind, "nsd", f"transfer.transport={transport}"), CHANGES)


@pytest.mark.full
@pytest.mark.parametrize("kind", AS_SECONDARY)
def test_secondary_takes_a_signed_notify(measure: Callable[..., Trial], kind: str) -> None:
    """PowerDNS signs its NOTIFY where transfers are signed; the others do not."""
    check(propagate(measure, "powerdns", kind, "transfer.transport=tcp+tsig"), CHANGES)


def test_a_stream_to_several_secondaries(measure: Callable[..., Trial]) -> None:
    check(propagate(measure, "bind", "knot", mode="stream", secondaries=3), 3 * CHANGES)


@pytest.mark.full
def test_without_notify_nobody_looks(measure: Callable[..., Trial]) -> None:
    """The refresh timer of the SOA is an hour."""
    trial = propagate(measure, "bind", "knot", "transfer.notify=false", "options.change_limit_s=1.0")
    assert trial.record.outcome == "timeout"
    assert trial.metrics["unseen_changes_percent"] == 100
    assert (seen(trial, "told-by-notify"), seen(trial, "asked-by-timer")) == (("passed", 0.0), ("cannot-tell", None))


@pytest.mark.full
def test_a_secondary_that_keeps_its_connection_asks_over_it(measure: Callable[..., Trial]) -> None:
    """Its SOA query and its transfer open no new one."""
    pool = 'hosts.secondary.settings={"server.remote-pool-limit"=10}'
    trial = propagate(measure, "bind", "knot", pool)
    check(trial, CHANGES)
    assert seen(trial, "settings-in-force") == ("passed", 100.0)


@pytest.mark.full
@pytest.mark.parametrize("kind", AS_SECONDARY)
def test_without_notify_the_timer_finds_a_change(measure: Callable[..., Trial], kind: str) -> None:
    trial = measure(f"server={kind}@forky", "secondaries=1", "changes=refresh", experiment="propagation")
    assert trial.record.outcome == "done"
    assert seen(trial, "told-by-notify") == ("passed", 0.0)
    assert seen(trial, "asked-by-timer")[0] == "passed"
