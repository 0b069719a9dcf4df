"""Replay: a stream of clients' queries, each put on a server when it came, each client from an address of its own.

The stream is the experiment's ``[stream]``. The server under test has all its zones before anything is asked. Options:

- ``serve_as``: what the server under test is: ``primary``, ``secondary`` or ``resolver``; its host has that name
- ``duration_s``: the first so many seconds of the replay; 0: the whole stream. ``interval_s``: for which distributions
  are kept
- ``warmup_s``: the first so many seconds are replayed before as well, and not counted; 0: none, so that a resolver's
  cache is empty
- ``speed``: how many times as fast time passes
- ``transport``: ``as-captured``, or ``udp``, ``tcp``, ``dot`` for all queries
- ``timeout_s``: after which a client gives a query up
- ``retransmissions``: ``as-captured``, or ``off``: queries that clients had sent again are left out
- ``ports``: UDP sockets that the clients share; ``port``: ``fresh`` for each query, or ``kept`` by a client
- ``connections`` that may be open at a time, ``idle_timeout_s`` after which one is closed
- ``threads`` of the instrument
- ``settle_s``, ``drain_s``: the rest after the start and at the end
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from dnsrig import streams
from dnsrig.analysis.load_result import LoadResult
from dnsrig.errors import UsageError
from dnsrig.lab import addresses
from dnsrig.procedures import HostRole, _kept_up, _serving
from dnsrig.procedures.context import Result, TrialContext
from dnsrig.rundir import TrialSpec
from dnsrig.servers import driver

DESCRIPTION = "a stream of clients' queries at its own timing, each client from its own address: latency of each query"
MAIN_METRIC = "p99_ms"
REPLAYS = True
CLIENTS = "clients"
"""The host that the instrument stands on."""
OPTIONS: dict[str, int | float | str | bool] = {
    "serve_as": "primary",
    "duration_s": 10.0,
    "interval_s": 1.0,
    "warmup_s": 0.0,
    "speed": 1.0,
    "transport": "as-captured",
    "timeout_s": 2.0,
    "retransmissions": "as-captured",
    "ports": 256,
    "port": "fresh",
    "connections": 2048,
    "idle_timeout_s": 10.0,
    "threads": 1,
    "settle_s": 0.5,
    "probe_rate_per_s": 1000,
    "ready_limit_s": 900,
    "drain_s": 0.3,
}
CHOICES = {
    "transport": ("as-captured", "udp", "tcp", "dot"),
    "retransmissions": ("as-captured", "off"),
    "port": ("fresh", "kept"),
}
GRACE_S = 30.0
"""How long `replay play` may take beyond what it sends and the last time-out."""


def hosts(options: Mapping[str, int | float | str | bool]) -> dict[str, HostRole]:
    """The servers as in `latency`, and the clients."""
    for name, known in CHOICES.items():
        if options[name] not in known:
            raise UsageError(f"options.{name} = {options[name]!r}", hint=f"one of {', '.join(known)}")
    for name in ("speed", "timeout_s", "interval_s"):
        if float(options[name]) <= 0:
            raise UsageError(f"options.{name} = {options[name]}", hint="a number above 0")
    return {**_serving.servers(options), CLIENTS: HostRole(replays=True)}


def links(hosts: Iterable[str]) -> list[tuple[str, str]]:
    """The clients reach the server under test alone, which is the last one."""
    servers = [name for name in hosts if name != CLIENTS]
    return [*(("primary", name) for name in servers if name != "primary"), (CLIENTS, servers[-1])]


def check(spec: TrialSpec) -> None:
    assert spec.stream is not None
    if spec.stream.clients > addresses.MOST_CLIENTS:
        raise UsageError(
            f"the stream has {spec.stream.clients:,} clients, and there are addresses for {addresses.MOST_CLIENTS:,}",
            hint="keep a share of them: stream.keep_share = 0.5",
        )


def checks(spec: TrialSpec) -> list[str]:
    server = spec.hosts[spec.subject].server
    provisioned = spec.options["serve_as"] == "secondary" and server and driver(server.kind).answers_zones
    return ["rate", "queries-arrived", *(["provisioning"] if provisioned else [])]


def expected_s(options: Mapping[str, Any]) -> float:
    return float(options["warmup_s"]) + float(options["duration_s"])


def measure(context: TrialContext) -> Result:
    spec = context.spec
    assert spec.stream is not None
    context.summaries["stream"] = streams.facts(spec.stream.key)
    _serving.bring_up(context)
    with context.phase("warmup"):
        _serving.settle(context)
        if warmup_s := float(context.option("warmup_s")):
            _play(context, "warmup", warmup_s)
    with context.profiled(), context.phase("measure"):
        load = _play(context, "load", float(context.option("duration_s")), out=context.directory)
        context.servers.count_threads()
    _serving.drain(context)
    if not load.answered:
        return Result("server-failed", f"none of {load.sent:,} queries was answered")
    if reason := _kept_up.why_not(load):
        return Result("invalid", reason)
    return Result("done")


def _play(context: TrialContext, name: str, duration_s: float, out: Path | None = None) -> LoadResult:
    """Replay the first ``duration_s`` of the stream, or all of it where that is 0, as the instrument ``name``."""
    stream = context.spec.stream
    assert stream is not None
    words = arguments(context.spec, duration_s)
    if out is not None:
        words.append(f"--out={out}")
    context.instruments.let_watch_go_first()
    play = context.instruments.start(name, ["replay", "play", *words, "--until-eof"], CLIENTS)
    takes_s = duration_s or stream.span_s / float(context.option("speed"))
    limit_s = takes_s + float(context.option("timeout_s")) + GRACE_S
    return LoadResult.model_validate(context.wait(play, limit_s=limit_s))


def arguments(spec: TrialSpec, duration_s: float) -> list[str]:
    """Of `replay play`."""
    options, stream = spec.options, spec.stream
    assert stream is not None
    words = [
        str(streams.file(stream.key)),
        f"--server={spec.hosts[spec.subject].address}",
        f"--clients-from={spec.hosts[CLIENTS].client_range}",
        f"--transport={options['transport']}",
        f"--speed={options['speed']}",
        f"--timeout-s={options['timeout_s']}",
        f"--retransmissions={options['retransmissions']}",
        f"--ports={options['ports']}",
        f"--port={options['port']}",
        f"--connections={options['connections']}",
        f"--idle-timeout-s={options['idle_timeout_s']}",
        f"--threads={options['threads']}",
        f"--interval-s={min(float(options['interval_s']), duration_s or float(options['interval_s']))}",
        "--real-time",
    ]
    return [*words, f"--duration-s={duration_s}"] if duration_s else words
