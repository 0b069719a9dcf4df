"""Large records: what a secondary answers is compared with what its primary was given."""

from __future__ import annotations

from collections.abc import Callable

from dnsrig.runs.trial import Trial
from dnsrig.traps import all_traps

ZONES, RECORDS = 46, 4_103


def test_large_records_arrive_by_axfr_and_ixfr(measure: Callable[..., Trial]) -> None:
    chosen = ('primary=["knot@forky"]', 'secondary=["nsd@forky"]', 'method=["ixfr"]')
    trial = measure(*chosen, experiment="large-records")
    record = trial.record
    assert record.outcome == "done", record.reason
    for comparison in ("records-primary", "records-secondary", "records-secondary-updated"):
        summary = record.instruments[comparison]
        assert (summary["outcome"], summary["zones"], summary["records"]) == ("done", ZONES, RECORDS)
        assert summary["differences"] == [], comparison
    examine = all_traps()["rrsets-lost"].after
    assert examine is not None
    conclusion = examine(trial)
    assert conclusion is not None and conclusion.verdict == "clear"
