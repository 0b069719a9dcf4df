"""The trap of a server that stands still as a whole, provoked for real: by the echo server, and by the BIND of its
source."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from test_traps_provoked import eventually, finding

from dnsrig.lab.profile import Profiler
from dnsrig.runs.trial import Trial

Measure = Callable[..., Trial]
pytestmark = pytest.mark.alone
ECHO = ("transport=udp", "rate_qps=3000", "options.duration_s=2.5", "options.warmup_s=0", "options.clients=32")
BIND = Path(os.environ.get("DNSRIG_BIND_9_18_10", "/opt/bind-9.18.10"))
"""The user's own build of 9.18.10, with symbols (docs/how-to/latency.md)."""


@pytest.mark.full
def test_an_echo_server_that_stands_still(measure: Measure) -> None:
    still = 'hosts.primary.settings={threads=4, stall="200ms", "stall-every"="700ms"}'
    trial = measure(*ECHO, still, experiment="echo-baseline")
    found = finding("stalled-server", trial)
    assert found.verdict == "found"
    assert 3 <= int(found.evidence["stalls"] or 0) <= 5
    assert 195 <= float(found.evidence["median_ms"] or 0) <= 300
    assert float(found.evidence["cpu_percent"] or 0) < 50, "it sleeps"
    assert finding("blocked-thread", trial).verdict != "found"


@pytest.mark.full
def test_one_thread_that_stands_still_is_not_the_server(measure: Measure) -> None:
    still = 'hosts.primary.settings={threads=4, stall="200ms", "stall-every"="700ms", "stall-threads"=1}'
    eventually("stalled-server", "clear", lambda *more: measure(*ECHO, still, *more, experiment="echo-baseline"))


@pytest.mark.full
def test_bind_9_18_10_while_its_catalog_changes(measure: Measure) -> None:
    """S2's hash table of members: while the catalog is taken over, nothing is answered, and its functions are what
    runs."""
    if not (BIND / "sbin/named").exists():
        pytest.skip(f"no build of BIND 9.18.10 at {BIND}: docs/how-to/latency.md says how to make one")
    server = f'matrix.server={{built={{hosts.secondary.server="bind@{BIND}"}}}}'
    which = ("server=built", "changes=catalog", "baseline={}", "dataset.zones=10000", "limit_s=100")
    load = ("options.rate_qps=1000", "options.duration_s=8", "hosts.secondary.profile=true")
    trial = measure(server, *which, *load, experiment="catalog-churn")
    found = finding("stalled-server", trial)
    assert found.verdict == "found"
    assert found.evidence["before"] == "update of its members by the catalog, in the server's log"
    if Profiler.unavailable() is None:
        ran = {found.evidence.get(f"function_{number}") for number in (1, 2, 3)}
        assert "isc_ht_find" in ran
