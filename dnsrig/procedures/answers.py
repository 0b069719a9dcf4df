"""Answers: do two servers answer the same queries alike?

Both servers load the same zones. Then the engine's `compare-answers` asks both, as fast as they answer, compares each
answer, and asks both once again if the answers differ. The server under test is compared with the server of the host
``reference``. Latency is not measured.

Options: ``outstanding`` queries at a time; ``timeout_s`` after which an answer is missing; ``ttl_limit_s``, the largest
difference of TTLs that does not count; ``popularity``, ``missing_share`` and ``edns_bytes`` as for `latency`.
``drain_s``: the rest at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dnsrig.errors import UsageError
from dnsrig.procedures import HostRole, Result
from dnsrig.procedures.context import TrialContext
from dnsrig.procedures.parts import load_arguments, serving
from dnsrig.rundir import Scalar, TrialSpec

DESCRIPTION = "queries that two servers with the same zones do not answer alike: rcodes, records, flags and TTLs"
MAIN_METRIC = "answers_different"
OWN_QUERIES = True
OPTIONS: dict[str, Scalar] = {
    "outstanding": 100,
    "timeout_s": 1.0,
    "ttl_limit_s": 0,
    "popularity": "uniform",
    "missing_share": 0.0,
    "edns_bytes": 1232,
    "probe_rate_per_s": 1000,
    "ready_limit_s": 900,
    "drain_s": 0.3,
}
RANGES = {**load_arguments.RANGES, "outstanding": (1, 1000), "ttl_limit_s": (0, 2**31)}
INSTRUMENT = "compare-answers"


def hosts(options: Mapping[str, Scalar]) -> dict[str, HostRole]:
    return {"primary": HostRole(role="primary", under_test=True), "reference": HostRole(role="primary")}


def links(hosts: Iterable[str]) -> list[tuple[str, str]]:
    return [("primary", "reference")]


def expected_s(options: Mapping[str, Any]) -> float:
    return 2.0


def validate(spec: TrialSpec) -> None:
    if spec.queries is not None:
        serving.check_own_queries(spec, spec.queries)
    if spec.queries is not None and spec.queries.parameters.get("expect"):
        raise UsageError(
            "queries.expect: two servers are compared with each other here, and not with what you expect",
            hint="leave it out, or use the procedure latency",
        )


def checks(spec: TrialSpec) -> list[str]:
    return []


def measure(context: TrialContext) -> Result:
    spec = context.spec
    with context.phase("setup"):
        context.start_watch()
        for name in ("reference", "primary"):
            context.start_ready(name, limit_s=float(context.option("ready_limit_s")))
    servers = [context.instruments.address(name) for name in ("reference", "primary")]
    zones = context.workspace.dataset / "zones.list"
    words = [
        *load_arguments.queries(spec.options, zones, seed=1, recursive=False, asked=spec.queries),
        f"--outstanding={spec.options['outstanding']}",
        f"--timeout={spec.options['timeout_s']}s",
        f"--ttl-limit={spec.options['ttl_limit_s']}",
        "--until-eof",
    ]
    with context.phase("measure"):
        asking = context.instruments.start(INSTRUMENT, [INSTRUMENT, *servers, *words])
        summary = context.wait(asking, limit_s=spec.limit_s)
    context.drain()
    if summary["unanswered"] == summary["queries"]:
        return Result("server-failed", "neither server answered any query")
    return Result("done")
