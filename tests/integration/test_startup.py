"""Start-up: every server as a primary with zone files, and as a secondary that is restarted."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from suites import quick

from dnsrig.runs.trial import Trial
from dnsrig.servers import all_drivers

DRIVERS = all_drivers()
ZONES = 40
STARTS = [
    (kind, role)
    for kind, server in sorted(DRIVERS.items())
    if server.packages and server.support("NOTIFY").secondary is not None
    for role in ("primary", "secondary")
]
QUICK = [("nsd", "secondary"), ("powerdns", "primary")]
"""Each role."""


@pytest.mark.parametrize(("kind", "role"), quick(STARTS, *QUICK))
def test_server_starts_with_its_zones(measure: Callable[..., Trial], kind: str, role: str) -> None:
    trial = measure(f"server={kind}@forky", f"zones={ZONES}", f"as={role}", experiment="startup")
    record = trial.record
    assert (record.outcome, record.reason) == ("done", "")
    assert [phase.name for phase in record.phases] == ["setup", "measure", "drain"]
    assert trial.metrics["zones_seen"] == ZONES
    assert 0 < (trial.metrics["first_answer_s"] or 0) <= (trial.metrics["startup_time_s"] or 0)
    assert trial.metrics["transfer_time_s"] is None, "it is no cold start"
    logs = trial.directory / "servers" / "server"
    assert (logs / "server-before.log").exists() == (role == "secondary"), "the log of the life before is kept"
