"""Connections that are held to real servers with a small limit: what the instrument counts is what the server's
kernel counts, and the trap names the setting."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from suites import quick
from test_traps_provoked import finding

from dnsrig.runs import held
from dnsrig.runs.trial import Trial

SHORT = (
    "limits=raised",
    "options.duration_s=2",
    "options.hold_s=1",
    "options.warmup_s=0.5",
    "options.timeout_s=0.5",
    "baseline={}",
    "dataset.zones=10",
)
CASES = [("nsd", "tcp", 500, "tcp-count", 40), ("knot", "dot", 100, "server.tcp-max-clients", 20)]
"""Server, transport, connections to hold, the setting of the limit, the limit."""


def hold(measure: Callable[..., Trial], kind: str, transport: str, count: int, *settings: str) -> Trial:
    return measure(
        *SHORT,
        f"server={kind}@forky",
        f"transport={transport}",
        f"held={count}",
        "options.open_per_s=500",
        *settings,
        experiment="connections-held",
    )


@pytest.mark.parametrize(("kind", "transport", "count", "setting", "limit"), quick(CASES, *CASES))
def test_a_small_limit(
    measure: Callable[..., Trial], kind: str, transport: str, count: int, setting: str, limit: int
) -> None:
    trial = hold(
        measure, kind, transport, count, f'matrix.limits.raised.hosts.primary.settings.{kind}."{setting}"={limit}'
    )
    found = held.of(trial)
    assert found is not None
    permitted = limit * len(trial.record.spec.hosts["primary"].cpus)
    opening = found.opening
    assert opening.connections.attempted == opening.sent == count
    # NSD closes idle connections after 0.2 s when it is nearly full, and then has room for others.
    assert 0 < opening.answered <= permitted + sum(opening.connections.ended.values())
    if transport == "dot":
        # Beyond the limit the kernel accepts, but no server answers the handshake. A server without a CPU takes fewer.
        assert 0 < opening.answered <= opening.connections.established <= permitted
    assert sum(found.connections.ended.values()) + found.unanswered > 0
    trap = finding("connection-limit", trial)
    assert (trap.verdict, trap.evidence["setting"]) == ("found", setting)


@pytest.mark.parametrize("kind", quick(["knot", "nsd"], "nsd"))
def test_without_a_limit_all_are_kept(measure: Callable[..., Trial], kind: str) -> None:
    # A SYN that found the queue of a server without CPU full is sent again after 1 and 3 s, and must still be in time.
    trial = hold(measure, kind, "tcp", 500, "options.timeout_s=5")
    found = held.of(trial)
    assert found is not None and trial.record.outcome in ("done", "invalid"), trial.record.reason
    # A server that has no CPU for a moment does not accept some, and the kernel resets them; they are opened again.
    ended = sum(found.connections.ended.values())
    assert (found.connections.open, found.connections.attempted - ended) == (500, 500)
    assert ended < 50, found.connections.ended
    # The other client has a connection for each query, and closes it.
    established = trial.peak("primary", "tcp", "curr_estab")
    assert established is not None and 500 <= established <= 510
    assert finding("connection-limit", trial).verdict == "clear"
