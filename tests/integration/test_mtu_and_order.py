"""A path that takes smaller packets than its ends, one that does not keep order, and a zone that changes faster than it
arrives.

The traps of each are provoked for real, and are silent without their cause. Trials of a few seconds.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from suites import quick
from test_traps_provoked import eventually, finding

from dnsrig.runs import replication
from dnsrig.runs.trial import Trial

Measure = Callable[..., Trial]


@pytest.fixture
def narrow(measure: Measure) -> Measure:
    """One trial of `mtu-mss` over 10 ms each way."""

    def one(*settings: str) -> Trial:
        usual = {"transport": "tcp", "icmp": "sent", "mss": "untouched", "path.delay_ms": "10", "baseline": "{}"}
        said = dict(setting.split("=", 1) for setting in settings)
        values = (usual | {"limit_s": "6", "dataset.delegations": "1000"} | said).items()
        return measure(*(f"{name}={value}" for name, value in values), experiment="mtu-mss")

    return one


@pytest.mark.full
def test_icmp_tells_the_sender(narrow: Measure) -> None:
    trial = narrow()
    assert trial.record.outcome == "done", trial.record.reason
    found = finding("mss-above-path-mtu", trial)
    assert found.verdict == "found" and "ICMP reported this to the primary" in found.summary
    assert int(found.evidence["too_big_packets"] or 0) > 0


@pytest.mark.parametrize("transport", quick(["tcp", "xot"], "tcp"))
def test_without_icmp_the_transfer_hangs(narrow: Measure, transport: str) -> None:
    trial = narrow("icmp=blocked", f"transport={transport}")
    assert trial.record.outcome == "timeout", trial.record.reason
    found = finding("mss-above-path-mtu", trial)
    assert found.verdict == "found" and "ICMP is blocked" in found.summary
    assert int(found.evidence["mss_max_bytes"] or 0) > int(found.evidence["mss_fits_bytes"] or 0)


@pytest.mark.parametrize("mss", quick(["advmss", "clamp", "interface"], "clamp"))
def test_smaller_segments_pass(narrow: Measure, mss: str) -> None:
    trial = narrow("icmp=blocked", f"mss={mss}")
    assert trial.record.outcome == "done", trial.record.reason
    if mss != "interface":
        assert finding("mss-above-path-mtu", trial).verdict == "clear"


@pytest.mark.full
def test_a_sender_that_probes_finds_out(narrow: Measure) -> None:
    trial = narrow("icmp=blocked", "mss=probing", "limit_s=20")
    assert trial.record.outcome == "done", trial.record.reason
    assert finding("mss-above-path-mtu", trial).verdict == "found"


@pytest.mark.full
@pytest.mark.parametrize(("ordered", "verdict"), [("false", "found"), ("true", "clear")])
def test_jitter(narrow: Measure, ordered: str, verdict: str) -> None:
    """± 8 ms: many packets have a shorter delay than the ones ahead."""
    found = eventually(
        "jitter-reorders", verdict, narrow, "mss=interface", "path.jitter_ms=8", f"path.ordered={ordered}"
    )
    if verdict == "found":
        assert float(found.evidence["overtaken_percent"] or 0) > 5


@pytest.fixture
def cycle(measure: Measure) -> Measure:
    """One trial of `generation-cycle`: a small zone of which an eighth changes, over 20 ms without loss."""

    def one(primary: str, *settings: str) -> Trial:
        path = ("path.delay_ms=10", "path.loss_percent=0", "path.rate_mbit=10")
        usual = (f"server={primary}@forky", "congestion=cubic", "changed_percent=12.0", "baseline={}")
        return measure(*usual, *path, "options.generations=3", *settings, experiment="generation-cycle")

    return one


@pytest.mark.parametrize("primary", quick(["bind", "knot", "nsd"], "knot"))
def test_each_generation_in_its_cycle(cycle: Measure, primary: str) -> None:
    trial = cycle(primary, "options.cycle_s=4.0")
    assert (trial.record.outcome, trial.record.reason) == ("done", "")
    made, metrics = replication.of(trial), trial.metrics
    assert [each.served_serial for each in made] == [2, 3, 4]
    assert (metrics["generations_skipped"], metrics["generations_whole"]) == (0, 0)
    assert 0 < (metrics["generation_bytes_percent"] or 0) < 60, "by IXFR: less than the zone"
    assert finding("cycle-too-short", trial).verdict == "clear"


@pytest.mark.full
def test_a_cycle_that_is_too_short(cycle: Measure) -> None:
    """55 kB at 50 kbit/s take 9 s. The cycle is short for them, and long enough to begin in time on a busy machine."""
    slow = ("path.rate_mbit=0.05", "options.cycle_s=4.0", "changed_percent=50.0", "dataset.delegations=150")
    trial = cycle("knot", *slow)
    assert trial.record.outcome == "done", trial.record.reason
    assert (trial.metrics["cycle_share_percent"] or 0) > 100
    assert finding("cycle-too-short", trial).verdict == "found"
