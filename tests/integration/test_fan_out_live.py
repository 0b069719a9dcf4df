"""Very many secondaries, IXFR by size of change, and queries beside transfers: one cheap trial each, by real
servers."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
import pytest

from dnsrig.runs.trial import Trial

SECONDARIES = 20


def fan_out(measure: Callable[..., Trial], kind: str, *, by: str) -> Trial:
    return measure(
        f"server={kind}",
        f"secondaries={SECONDARIES}",
        f"by={by}",
        "limits=raised",
        "exclude=[]",
        "dataset.records_per_zone=200",
        'hosts.primary.settings.zones."changes-per-s"=0.5',
        experiment="fan-out",
    )


def test_every_secondary_is_told_and_has_the_change(measure: Callable[..., Trial]) -> None:
    trial = fan_out(measure, "knot@forky", by="IXFR")
    assert (trial.record.outcome, trial.record.reason) == ("done", "")
    assert trial.metrics["secondaries_done"] == SECONDARIES
    assert (trial.metrics["last_done_s"] or 0) >= (trial.metrics["first_done_s"] or 0) > 0
    new = trial.transfers.filter((pl.col("asked") == "ixfr") & (pl.col("outcome") == "done"))
    assert new["secondary"].n_unique() == SECONDARIES
    sources = {source.partition(":")[0] for source in trial.connections["source"]}
    assert sources == set(trial.record.spec.hosts["client"].source_addresses)


@pytest.mark.full
def test_a_primary_that_changes_by_itself(measure: Callable[..., Trial]) -> None:
    trial = fan_out(measure, "zones@engine", by="AXFR")
    assert (trial.record.outcome, trial.record.reason) == ("done", "")
    assert trial.metrics["secondaries_done"] == SECONDARIES


def test_a_small_change_is_cheaper_as_ixfr(measure: Callable[..., Trial]) -> None:
    trial = measure(
        "server=nsd@forky",
        "records_changed=10",
        "made_by=reload",
        "matrix.made_by.reload.dataset.delegations=500",
        experiment="ixfr-stream",
    )
    assert (trial.record.outcome, trial.record.reason) == ("done", "")
    metrics = trial.metrics
    assert metrics["ixfr_whole_percent"] == 0 and 0 < (metrics["ixfr_bytes_percent"] or 0) < 50
    rows = pl.read_ipc_stream(trial.directory / "ixfr" / "transfers.arrow")
    # SOA, 10 records removed and the SOA before them, 10 added and the SOA before them; the SOA that ends it is not
    # counted (RFC 1995 §4).
    assert set(rows.filter(pl.col("outcome") == "done")["records"]) == {2 * 10 + 3}


def test_queries_beside_transfers(measure: Callable[..., Trial]) -> None:
    trial = measure(
        "server=nsd@forky",
        "size=tiny",
        "transfers=pipelined",
        "exclude=[]",
        "baseline={}",
        "matrix.size.tiny.dataset.zones=50",
        "options.rate_qps=500.0",
        "options.duration_s=1",
        experiment="busy-primary",
    )
    assert trial.record.outcome in ("done", "invalid"), trial.record.reason
    assert trial.load.answered > 0 and (trial.metrics["meanwhile_zones_per_s"] or 0) > 0
