"""A primary gets a new version of its zone, and the secondary follows: by NOTIFY, with IXFR and without."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from suites import quick

from dnsrig.runs.trial import Trial
from dnsrig.servers import all_drivers

KINDS = sorted(kind for kind, server in all_drivers().items() if server.answers_zones and server.packages)
WITH_DIFFERENCES = [kind for kind in KINDS if all_drivers()[kind].support("IXFR").primary]
DELEGATIONS = 2_000
WHOLE_ZONE_BYTES = DELEGATIONS * 200
"""Less than an AXFR takes, about 49 bytes a record and five records a delegation; far more than a difference."""


def update(measure: Callable[..., Trial], secondary: str, primary: str, *, ixfr: bool, notify: bool = True) -> Trial:
    return measure(
        f"server={secondary}@forky",
        f"delegations={DELEGATIONS}",
        f"ixfr={str(ixfr).lower()}",
        "baseline={}",
        f"hosts.primary.server={primary}@forky",
        f"transfer.notify={str(notify).lower()}",
        "limit_s=20" if notify else "limit_s=3",
        experiment="zone-update",
    )


@pytest.mark.parametrize("kind", quick(KINDS, "bind"))
def test_secondary_takes_the_difference_or_the_whole_zone(measure: Callable[..., Trial], kind: str) -> None:
    nbytes = {}
    for ixfr in (False, True):
        trial = update(measure, kind, "knot", ixfr=ixfr)
        assert (trial.record.outcome, trial.record.reason) == ("done", "")
        assert (trial.metrics["update_time_s"] or 0) > 0
        assert trial.metrics["transfer_time_s"] is None, "not a cold start"
        nbytes[ixfr] = trial.metrics["transfer_bytes"] or 0
    assert nbytes[True] < WHOLE_ZONE_BYTES < nbytes[False]


@pytest.mark.full
@pytest.mark.parametrize("kind", WITH_DIFFERENCES)
def test_primary_has_the_difference(measure: Callable[..., Trial], kind: str) -> None:
    trial = update(measure, "knot", kind, ixfr=True)
    assert (trial.record.outcome, trial.record.reason) == ("done", "")
    assert (trial.metrics["transfer_bytes"] or 0) < WHOLE_ZONE_BYTES


@pytest.mark.full
def test_primary_without_differences_sends_all(measure: Callable[..., Trial]) -> None:
    record = update(measure, "nsd", "powerdns", ixfr=False).record
    assert (record.outcome, record.reason) == ("done", "")


@pytest.mark.full
def test_without_notify_nobody_looks(measure: Callable[..., Trial]) -> None:
    """The refresh timer of the SOA is an hour."""
    trial = update(measure, "nsd", "knot", ixfr=False, notify=False)
    record = trial.record
    assert (record.outcome, trial.metrics["zones_seen"]) == ("timeout", 0)
