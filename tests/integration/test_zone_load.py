"""A primary loads its zones: every server that has something to load, with a cold and a warm page cache."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from suites import quick

from dnsrig.runs.trial import Trial


@pytest.mark.parametrize("kind", quick(["bind", "knot", "nsd", "powerdns"], "bind"))
def test_primary_loads(measure: Callable[..., Trial], kind: str) -> None:
    settings = (f"server={kind}@forky", "delegations=2000", "page_cache=warm", "baseline={}")
    trial = measure(*settings, experiment="zone-load")
    record = trial.record
    assert (record.outcome, record.reason) == ("done", "")
    assert (trial.metrics["load_time_s"] or 0) > 0
    assert trial.metrics["transfer_time_s"] is None


@pytest.mark.full
def test_cold_page_cache_is_read_from_the_disk(measure: Callable[..., Trial]) -> None:
    read = {}
    for state in ("warm", "cold"):
        trial = measure(
            "server=nsd@forky", "delegations=200000", f"page_cache={state}", "baseline={}", experiment="zone-load"
        )
        assert trial.record.outcome == "done"
        read[state] = trial.growth("primary", "cgroup", "memory_file_bytes")
    # What NSD shares among its processes counts as file cache as well, in both.
    assert read["cold"] is not None and read["warm"] is not None
    assert read["cold"] - read["warm"] > 40e6, "the zone file, 78 MB, was read in again on this cgroup's account"
