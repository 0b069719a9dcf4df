"""Overload: a resolver whose clients are replayed, while a flood of queries costs it the most: for names that do not
exist, or names of broken zones.

`measure` replays the stream as `replay` does, with the same options except ``capture``. From ``flood_after_s`` on, for
``flood_s`` seconds, another host sends queries, too. The results are the share of the clients' queries that are
answered meanwhile, and the time after the flood until their latency is the same as before. More options:

- ``flood_names``: ``missing``: random names below the zones of the dataset, none twice, so that the resolver has to ask
  for each; ``faulty``: addresses of the names of zones with a fault, of a world with ``faulty_apart``; or ``own``: the
  queries of the file of ``[queries]``
- ``flood_qps``: queries a second of the flood; ``flood_clients``: sockets from which they come
- ``flood_after_s``, ``flood_s``: when it begins, in seconds since the replay began, and how long it lasts
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dnsrig import parameters
from dnsrig.datasets import world
from dnsrig.errors import UsageError
from dnsrig.procedures import HostRole, Result, replay
from dnsrig.procedures.context import TrialContext
from dnsrig.procedures.parts import load_arguments, replay_rate, resolver_statistics, serving
from dnsrig.rundir import HostDuties, Scalar, TrialSpec
from dnsrig.runs.load_result import LoadResult

DESCRIPTION = "a replayed stream during and after a flood of queries for names that do not exist or are broken"
MAIN_METRIC = "goodput_percent"
OF_RUNNING_SERVER = True
REPLAYS = True
OWN_QUERIES = True
FLOOD = "flood"
"""Name of the host of the flood, and of its instrument."""
OPTIONS: dict[str, Scalar] = {
    **replay.OPTIONS,
    "serve_as": "resolver",
    "interval_s": 0.1,
    "warmup_s": 2.0,
    "flood_names": "missing",
    "flood_qps": 20_000.0,
    "flood_clients": 256,
    "flood_after_s": 3.0,
    "flood_s": 3.0,
}
RANGES = {**load_arguments.RANGES, "flood_after_s": (0.001, parameters.DAY_S)}
CHOICES = {**replay.CHOICES, "flood_names": ("missing", "faulty", "own")}
GRACE_S = 30.0
SEED = 21
"""Seed of the flood's names, which differ from the names in other queries."""
FLOOD_TIMEOUT_S = 1.0
expected_s = replay.expected_s


def hosts(options: Mapping[str, Scalar]) -> dict[str, HostRole]:
    """The hosts of `replay`, and the host of the flood."""
    if options["capture"]:
        raise UsageError("options.capture: the server gets more than the stream", hint="set capture = false")
    if 0 < float(options["duration_s"]) <= float(options["flood_after_s"]) + float(options["flood_s"]):
        raise UsageError(
            "the replay ends before the flood does, so nothing would show how the server recovers",
            hint="raise options.duration_s above flood_after_s + flood_s",
        )
    return {**replay.hosts(options), FLOOD: HostRole()}


def links(hosts: Mapping[str, HostDuties]) -> list[tuple[str, str]]:
    """The flood reaches the server under test, as the clients do."""
    found = replay.links({name: host for name, host in hosts.items() if name != FLOOD})
    return [*found, (FLOOD, found[-1][1])]


far = replay.far


def validate(spec: TrialSpec) -> None:
    replay.validate(spec)
    if spec.options["flood_names"] == "faulty" and not spec.dataset.parameters.get("faulty_apart"):
        raise UsageError(
            'options.flood_names = "faulty" needs a world that lists the names of faulty zones separately',
            hint='set dataset.kind = "world", dataset.faulty_apart = true',
        )

    if (spec.options["flood_names"] == "own") != (spec.queries is not None and bool(spec.queries.name)):
        raise UsageError(
            'options.flood_names = "own" asks the queries of [queries], and only the flood asks them',
            hint='set both: flood_names = "own", and queries.file',
        )


def checks(spec: TrialSpec) -> list[str]:
    """The checks of `replay` without the check for signatures made ahead: no stream contains the flood's names."""
    found = [name for name in replay.checks(spec) if name != "world-signed-ahead"]
    return [*found, "flood-sent", *(["faults-met"] if spec.options["flood_names"] == "faulty" else [])]


def measure(context: TrialContext) -> Result:
    duration_s = float(context.option("duration_s"))
    if reason := replay.bring_up(context):
        return Result("invalid", reason)
    with context.profiled(), resolver_statistics.sampled(context), context.phase("measure"):
        play = replay.start(context, "load", duration_s, replay_rate.share(context), out=context.directory)
        context.rest(float(context.option("flood_after_s")))
        flood = _flood(context)
        asked = replay.ended(context, play, duration_s)
        context.servers.count_threads()
    replay.drain(context)
    load = asked()
    result = serving.concluded(load)
    if result.outcome == "done" and flood.end_ns > load.end_ns:
        return Result("invalid", "the flood ended after the replay, so nothing shows how the server recovers")
    return result


def _flood(context: TrialContext) -> LoadResult:
    """Send the flood and wait for its end."""
    flood_s, flood_qps, own = float(context.option("flood_s")), float(context.option("flood_qps")), context.spec.queries
    asked: dict[str, Any] = {
        **load_arguments.OPTIONS,
        "missing_share": float(context.option("flood_names") == "missing"),
        "clients": context.option("flood_clients"),
        "timeout_s": FLOOD_TIMEOUT_S,
    }
    words = [
        *load_arguments.queries(asked, _zones(context), seed=SEED, recursive=True, asked=own),
        # So that no missing name is asked twice.
        *([] if own is not None and own.name else [f"--sequence={math.ceil(flood_qps * flood_s) + 1}"]),
        *load_arguments.clients(asked),
        *load_arguments.fixed_rate(flood_qps, duration_s=flood_s, interval_s=flood_s, poisson=False),
    ]
    load = context.instruments.start_load(FLOOD, context.spec.subject, words, host=FLOOD)
    return LoadResult.model_validate(context.wait(load, limit_s=flood_s + FLOOD_TIMEOUT_S + GRACE_S))


def _zones(context: TrialContext) -> Path:
    """List of the names to query, or of the zones below which names are invented: the zones of the dataset, or the
    second-level zones of a simulated Internet."""
    if context.spec.world is None:
        return context.workspace.dataset / "zones.list"
    listed = context.workspace.state / "flooded.list"
    listed.parent.mkdir(parents=True, exist_ok=True)
    is_faulty = context.option("flood_names") == "faulty"
    table = world.FAULTY_NAMES_FILE if is_faulty else world.NAMES_FILE
    with (context.workspace.dataset / table).open() as names:
        owners = (line.partition("\t")[0] for line in names)
        asked = owners if is_faulty else (owner.removeprefix("www.") for owner in owners)
        listed.write_text("".join(f"{owner}\n" for owner in dict.fromkeys(asked)))
    return listed
