"""Zone transfer: a cold secondary fetches all zones of a primary.

The time is from exec of the secondary, which has nothing on disk, to the last zone answered with the expected serial, as
`probe` sees it from a third host: it polls only zones not yet seen, at a bounded rate, and states its resolution.
"""

from __future__ import annotations

import time

from dnsrig.procedures import HostRole
from dnsrig.procedures.stage import Result, ServerFailed, Stage

DESCRIPTION = "cold start of a secondary: from exec to the last zone answered with the expected serial"
HOSTS = {
    "primary": HostRole(role="primary"),
    "secondary": HostRole(role="secondary", under_test=True),
    "observer": HostRole(),
}
LINKS = [("primary", "secondary"), ("observer", "primary"), ("observer", "secondary")]
OPTIONS: dict[str, int | float | str | bool] = {
    "probe_rate_per_s": 1000,
    "primary_ready_limit_s": 900,
    "drain_s": 0.3,
}
SETTLE_S = 0.3
"""Between the primary being ready and the start of the secondary: several samples of a machine at rest."""


def measure(stage: Stage) -> Result:
    with stage.phase("setup"):
        stage.start_watch()
        stage.prepare_server("primary")
        stage.start_server("primary")
        ready_limit_s = float(stage.option("primary_ready_limit_s"))
        ready = stage.start_probe("probe-primary", "primary", limit_s=ready_limit_s)
        if stage.wait(ready, limit_s=ready_limit_s + 10)["outcome"] != "done":
            raise ServerFailed(f"the primary did not answer all its zones within {ready_limit_s:g} s")
        stage.prepare_server("secondary")
        time.sleep(SETTLE_S)
        limit_s = stage.spec.limit_s
        probe = stage.start_probe("probe", "secondary", limit_s=limit_s, out=stage.directory / "zones.arrow")
    with stage.phase("measure"):
        stage.start_server("secondary")
        seen = stage.wait(probe, limit_s=limit_s + 30)
        stage.count_threads()
    with stage.phase("drain"):
        time.sleep(float(stage.option("drain_s")))
        stage.check_servers()
    if seen["outcome"] == "limit":
        return Result("limit", f"{seen['seen']:,} of {seen['zones']:,} zones after {limit_s:g} s")
    return Result("done")
