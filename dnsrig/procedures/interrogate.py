"""Interrogate: the engine's `interrogate` finds out which features of zone transfer a primary supports, by requests
alone; its version is not used.

The primary has all its zones before, and a large zone (``large_records``; 0: none), because some questions are about
transfers behind a large zone. A primary that runs already gets none. With `transfer.transport` = "tcp+tsig" or
"xot+tsig" all transfers are signed. A server without XoT gets the same questions, and its answer is no. ``drain_s``:
the rest at the end.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from dnsrig.procedures import HostRole, Result
from dnsrig.procedures.context import TrialContext
from dnsrig.procedures.parts import serving
from dnsrig.rundir import Scalar, TrialSpec
from dnsrig.servers import driver_of

DESCRIPTION = (
    "what a primary supports of zone transfer: pipelining, order, limits, resumption and more, found by asking it"
)
MAIN_METRIC = "checks_answered"
OF_RUNNING_SERVER = True
OPTIONS: dict[str, Scalar] = {
    "large_records": 20_000,
    "probe_rate_per_s": 10_000,
    "ready_limit_s": 900,
    "drain_s": 0.3,
}
EXPECTED_S = 30.0
"""Usual duration; among others, it waits until idle connections are closed."""
LARGE_ZONE = "large.example"


def hosts(options: Mapping[str, Scalar]) -> dict[str, HostRole]:
    return {"primary": HostRole(role="primary", under_test=True), "client": HostRole()}


def links(hosts: Iterable[str]) -> list[tuple[str, str]]:
    return [("client", "primary")]


def expected_s(options: Mapping[str, Any]) -> float:
    return EXPECTED_S


def validate(spec: TrialSpec) -> None:
    if spec.runs_already:
        serving.check_transfers(spec)


def checks(spec: TrialSpec) -> list[str]:
    return ["questions-answered"]


def measure(context: TrialContext) -> Result:
    with context.phase("setup"):
        context.start_watch()
        _add_large_zone(context)
        context.start_ready("primary", limit_s=float(context.option("ready_limit_s")))
    with context.phase("measure"):
        asking = context.instruments.start_interrogation("interrogate", "client", "primary")
        summary = context.wait(asking, limit_s=context.spec.limit_s)
    context.drain()
    if all(feature["verdict"] == "cannot-tell" for feature in summary["features"]):
        return Result("server-failed", "it answered none of the questions")
    return Result("done")


def _add_large_zone(context: TrialContext) -> None:
    """Let the primary serve a copy of the dataset with one more zone, which is larger than all buffers on the path.

    A synthetic primary reads no files; it has a setting for large zones.
    """
    spec, records = context.spec, int(context.option("large_records"))
    server = spec.hosts["primary"].server
    if not records or spec.runs_already or (server is not None and driver_of(server).changes_itself):
        return
    copied = shutil.copytree(context.workspace.dataset, context.workspace.state.resolve() / "dataset")
    (copied / "large.zone").write_text(large_zone(records, spec.dataset.serial))
    with Path(copied, "zones.list").open("a") as zones:
        zones.write(f"{LARGE_ZONE}\tlarge.zone\n")
    context.workspace.dataset = copied


def large_zone(records: int, serial: int) -> str:
    """A master file (RFC 1035 section 5) of ``records`` addresses: some 50 bytes each in a transfer."""
    head = (
        f"$ORIGIN {LARGE_ZONE}.\n$TTL 3600\n@ IN SOA ns1.example. hostmaster.example. {serial} 3600 900 1209600 300\n"
    )
    body = "".join(f"h{number} IN A 192.0.2.{number % 256}\n" for number in range(records))
    return f"{head}@ IN NS ns1.example.\n{body}"
