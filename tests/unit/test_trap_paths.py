"""Traps of emulated paths: each provoked on made-up rows of the link, and silent without its cause.

Each is provoked for real in tests/integration/test_mtu_and_order.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import synthetic
from path_data import link_rows, over_path, resent, sockets
from trial_data import clean_trial, judge

from dnsrig.rundir import LinkSpec, PathSpec
from dnsrig.runs.trial import Trial
from dnsrig.traps import all_traps

NARROW = PathSpec(delay_ms=50, mtu_bytes=1300)
TRAPS = ("mss-above-path-mtu", "jitter-reorders")


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    return clean_trial(tmp_path / "run", synthetic.Plan(servers=["knot@system"], repeats=1))


@pytest.mark.parametrize("trap", TRAPS)
def test_they_say_nothing_without_such_a_path(trial: Trial, trap: str) -> None:
    assert all_traps()[trap].after(trial) is None, "a plain link"
    over_path(trial, PathSpec(delay_ms=50))
    assert all_traps()[trap].after(trial) is None
    trial.record.outcome = "error"
    assert all_traps()[trap].after(trial) is None


@pytest.mark.parametrize(("icmp", "words"), [(True, "ICMP reported this"), (False, "ICMP is blocked")])
def test_packets_that_were_too_large(trial: Trial, icmp: bool, words: str) -> None:
    over_path(trial, NARROW.model_copy(update={"icmp": icmp}))
    link_rows(trial, too_big=23)
    sockets(trial, 1448)
    found = judge("mss-above-path-mtu", trial)
    assert found.verdict == "found" and words in found.summary
    assert found.evidence["too_big_packets"] == 23, "without those of the self-test"
    assert (found.evidence["mss_max_bytes"], found.evidence["mss_fits_bytes"]) == (1448, 1260)
    assert int(found.evidence["retransmissions"] or 0) > 0
    assert "hosts.secondary.advmss_bytes = 1260" in found.remedy


def test_over_ipv6_less_fits_behind_the_headers(trial: Trial) -> None:
    trial.record.spec.family = "ipv6"
    over_path(trial, NARROW, kind="netem")
    trial.record.spec.hosts["secondary"].mss_clamp_bytes = 1260
    sockets(trial, 1248)
    found = judge("mss-above-path-mtu", trial)
    assert (found.verdict, found.evidence["mss_fits_bytes"]) == ("found", 1240)


def test_segments_that_fit(trial: Trial) -> None:
    over_path(trial, NARROW)
    link_rows(trial, packets=1000)
    sockets(trial, 1248)
    assert judge("mss-above-path-mtu", trial).verdict == "clear"


@pytest.mark.parametrize(
    ("mss_bytes", "clamp", "verdict"),
    [
        (1448, None, "found"),
        (1248, 1260, "clear"),
        (1248, None, "cannot-tell"),  # told so by ICMP, before it was listed
        (1388, 1400, "found"),
        (None, 1260, "cannot-tell"),
    ],
)
def test_where_the_link_does_not_count_them(
    trial: Trial, mss_bytes: int | None, clamp: int | None, verdict: str
) -> None:
    over_path(trial, NARROW, kind="netem")
    trial.record.spec.hosts["secondary"].mss_clamp_bytes = clamp
    if mss_bytes is not None:
        sockets(trial, mss_bytes)
    assert judge("mss-above-path-mtu", trial).verdict == verdict


def test_of_two_directions_the_worse(trial: Trial) -> None:
    over_path(trial, PathSpec())
    trial.record.spec.links[0] = LinkSpec(ends=("secondary", "primary"), kind="netem", forward=NARROW, reverse=NARROW)
    sockets(trial, 1448)
    assert judge("mss-above-path-mtu", trial).evidence["mss_max_bytes"] == 1448


def free(trial: Trial, *, overtaken_percent: float | None, ordered: bool = False) -> Trial:
    over_path(trial, PathSpec(delay_ms=125, jitter_ms=50, ordered=ordered))
    found = {} if overtaken_percent is None else {"overtaken_percent": overtaken_percent}
    trial.record.link_tests = [{"from": "primary", "to": "secondary", "works": True, "forward": {"found": found}}]
    return trial


def test_packets_that_overtake(trial: Trial) -> None:
    free(trial, overtaken_percent=44.0)
    link_rows(trial, lost=10)
    resent(trial, 250)
    found = judge("jitter-reorders", trial)
    assert found.verdict == "found"
    assert (found.evidence["retransmissions"], found.evidence["needless_retransmissions"]) == (250, 240)
    assert "44 %" in found.summary and "path.ordered = true" in found.remedy


def test_the_document_says_so(trial: Trial) -> None:
    assert judge("jitter-reorders", free(trial, overtaken_percent=None)).verdict == "found"


@pytest.mark.parametrize(("overtaken_percent", "ordered"), [(0.0, False), (0.0, True), (None, True)])
def test_packets_that_keep_their_order(trial: Trial, overtaken_percent: float | None, ordered: bool) -> None:
    free(trial, overtaken_percent=overtaken_percent, ordered=ordered)
    link_rows(trial, lost=10)
    resent(trial, 10)
    assert judge("jitter-reorders", trial).verdict == "clear"
