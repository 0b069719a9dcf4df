"""Replay: a stream of clients' queries, each sent at its own time, and each client from its own address.

The stream is the experiment's ``[stream]``. The server under test has all its zones before the first query. Options:

- ``serve_as``: role of the server under test: ``primary``, ``secondary`` or ``resolver``; its host has the same name
- ``resolve_from``: source of a resolver's answers: ``primaries``, the one host `primary`; or ``internet``, a world on
  the host `internet`, whose hints it gets, and its trust anchor if it validates
- ``duration_s``: duration of the replay in seconds; 0: the whole stream. ``interval_s``: interval of the distributions
- ``warmup_s``: number of seconds at the beginning of the stream that are also replayed before, without being counted;
  0: no warm-up, so that a resolver's cache is empty
- ``speed``: how many times as fast time passes
- ``transport``: ``as-captured``, or ``udp``, ``tcp``, ``dot``, ``doh``, ``doq`` for all queries;
  ``doh_path`` over DoH
- ``timeout_s``: time after which a client gives a query up
- ``retransmissions``: ``as-captured``, or ``off``: queries that clients had sent again are left out
- ``ports``: UDP sockets that the clients share; ``port``: ``fresh`` for each query, or ``kept`` by a client
- ``connections`` that may be open at a time, ``idle_timeout_s`` after which one is closed
- ``classes`` of clients with settings of their own, as `replay play --class` has them, with semicolons between them:
  ``share=20%,transport=dot,early-data=yes; share=5%,transport=tcp,reuse=no``; ``class_seed``: another one puts other
  clients into them
- ``capture``: whether tcpdump captures the queries at the server, for a comparison with the stream, byte by byte
- ``ramp_s``: before the trial, a twin of the server under test gets a quarter of the rate, half of it, and all of it,
  for this many seconds each, from the beginning of the stream. If the instrument does not keep up, or more than
  ``ramp_loss_percent`` of the queries have no answer within ``timeout_s``, the trial is `invalid` with the reason, and
  nothing is measured. 0: no ramp. A ramp does not show bursts later in the stream
- ``of_capacity``: 0: the stream's own rate; otherwise this share of the capacity, which a search finds instead of the
  ramp: the highest share of the stream's rate at which the loss in the first ``ramp_s`` seconds is within the same
  limit, to a tenth. Each step has its own twin, so caches are empty at first, as in the measurement. The rate is
  rounded down to two significant digits; the stream is replayed more slowly accordingly
- ``proxy_protocol``: whether the address of each client is announced with the PROXY protocol, version 2, and all
  queries are sent from the address of their host; the server must be set up for it
- ``threads`` of the instrument
- ``generators``: hosts that replay, `clients-1` and so on where there are several, each with its share of the clients,
  from one moment on; they can be on other machines (``hosts.clients-1.machine``)
- ``query_rows``: number of queries with a row in ``queries.arrow``: when it was due and sent, its latency
- ``settle_s``, ``drain_s``: the rest after the start and at the end
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dnsrig import engine, parameters, streams
from dnsrig.datasets import world
from dnsrig.errors import UsageError
from dnsrig.lab import addresses, capture
from dnsrig.procedures import HostRole, Result
from dnsrig.procedures.context import TrialContext
from dnsrig.procedures.instrument import Instrument
from dnsrig.procedures.parts import (
    client_classes,
    generators,
    load_arguments,
    replay_rate,
    resolver_level,
    resolver_statistics,
    serving,
)
from dnsrig.procedures.parts.generators import Led
from dnsrig.rundir import HostDuties, HostSpec, Scalar, TrialSpec
from dnsrig.runs.load_result import LoadResult
from dnsrig.servers import driver_of, running
from dnsrig.servers.placement import DNS_PORT, PROXY_PORTS

DESCRIPTION = "a stream of clients' queries at its own timing, each client from its own address: latency of each query"
MAIN_METRIC = "p99_ms"
OF_RUNNING_SERVER = True
REPLAYS = True
WHY_NO_OWN_QUERIES = 'it replays a stream; a capture is stream.kind = "capture"'
CLIENTS = "clients"
"""Host of the instrument."""
INTERNET = "internet"
"""Host of the world."""
OPTIONS: dict[str, Scalar] = {
    "serve_as": "primary",
    "resolve_from": "primaries",
    "duration_s": 10.0,
    "interval_s": 1.0,
    "warmup_s": 0.0,
    "speed": 1.0,
    "transport": "as-captured",
    "doh_path": load_arguments.OPTIONS["doh_path"],
    "timeout_s": 2.0,
    "retransmissions": "as-captured",
    "ports": 256,
    "port": "fresh",
    "connections": 2048,
    "idle_timeout_s": 10.0,
    "classes": "",
    "class_seed": 1,
    "capture": False,
    **replay_rate.OPTIONS,
    "proxy_protocol": False,
    "threads": 1,
    "generators": 1,
    "query_rows": 0,
    "settle_s": 0.5,
    "probe_rate_per_s": 1000,
    "ready_limit_s": 900,
    "drain_s": 0.3,
}
RANGES = {**load_arguments.RANGES, "duration_s": (0, parameters.DAY_S)}
"""``duration_s`` may be 0: the whole stream."""
CHOICES = {
    "serve_as": serving.BEHIND,
    "resolve_from": ("primaries", "internet"),
    "transport": client_classes.TRANSPORTS,
    "retransmissions": ("as-captured", "off"),
    "port": ("fresh", "kept"),
}
COMPARE_LIMIT_S = 600
"""Limit for the comparison of all packets of a trial: the engine reads about a million a second."""
GRACE_S = 30.0
"""How long `replay play` may take after its last query and time-out."""


def hosts(options: Mapping[str, Scalar]) -> dict[str, HostRole]:
    """The servers as in `latency`, or a world and its resolver; and the clients."""
    client_classes.parse(str(options["classes"]))
    replay_rate.check(options)
    return {**_servers(options), **_clients(int(options["generators"]))}


def _clients(count: int) -> dict[str, HostRole]:
    """The hosts of the clients. Several hosts share the clients and their addresses."""
    if count < 2:
        return {CLIENTS: HostRole(replays=True, asks=True)}
    return {
        f"{CLIENTS}-{number + 1}": HostRole(replays=True, asks=True, client_share=(number, count))
        for number in range(count)
    }


def _servers(options: Mapping[str, Scalar]) -> dict[str, HostRole]:
    if options["resolve_from"] == "primaries":
        return serving.servers(options)
    if options["serve_as"] != "resolver":
        raise UsageError(
            f"options.resolve_from: a {options['serve_as']} does not resolve", hint='set options.serve_as = "resolver"'
        )
    return {INTERNET: HostRole(role="world"), "resolver": HostRole(role="resolver", under_test=True)}


def links(hosts: Mapping[str, HostDuties]) -> list[tuple[str, str]]:
    """The clients reach only the server under test, which is the last one. It asks the first one."""
    servers = [name for name, host in hosts.items() if host.role is not None]
    asking = [name for name, host in hosts.items() if host.asks]
    return [*((servers[0], name) for name in servers[1:]), *((name, servers[-1]) for name in asking)]


def far(hosts: Mapping[str, HostDuties], options: Mapping[str, Scalar]) -> list[tuple[str, str]]:
    """The links from the authorities to the server under test."""
    subject = next(name for name, host in hosts.items() if host.under_test)
    return [(name, subject) for name, host in hosts.items() if host.role in ("primary", "world") and name != subject]


def validate(spec: TrialSpec) -> None:
    assert spec.stream is not None
    if spec.runs_already:
        _check_running(spec)
        return
    ranges = [spec.hosts[name].client_range for name in spec.generators]
    most = len(ranges) * min(map(addresses.most_clients, ranges))
    if spec.stream.clients > most:
        raise UsageError(
            f"the stream has {spec.stream.clients:,} clients, but there are only addresses for {most:,}",
            hint='use IPv6, which has more: family = "ipv6"; or keep a part of the clients: stream.keep_share = 0.5',
        )
    if spec.options["capture"] and len(ranges) > 1:
        raise UsageError("options.capture compares queries from one host only", hint="set options.generators = 1")
    if spec.options["capture"] and spec.options["proxy_protocol"]:
        raise UsageError(
            "options.capture compares the addresses of packets, but options.proxy_protocol sends all from one",
            hint="set one of them only",
        )
    if spec.options["capture"] and (
        spec.options["transport"] in ("dot", "doh", "doq") or spec.options["retransmissions"] == "off"
    ):
        raise UsageError(
            "options.capture compares all queries of the stream, but some are left out or encrypted",
            hint='options.transport = "as-captured", options.retransmissions = "as-captured"',
        )


def _check_running(spec: TrialSpec) -> None:
    """Refuse options that need a host for the clients, or a twin of the server."""
    serving.refuse_for_running(spec, {"capture": False, "resolve_from": "primaries", "ramp_s": 0.0, "of_capacity": 0.0})
    ports = spec.hosts[spec.subject].ports
    if ports["tcp"] != ports["udp"]:
        raise UsageError(
            f"hosts.{spec.subject}.server: a replay needs the same port for UDP and TCP", hint="leave tcp=PORT out"
        )


def checks(spec: TrialSpec) -> list[str]:
    server = spec.server
    provisioned = spec.options["serve_as"] == "secondary" and server and driver_of(server).answers_zones
    classes = str(spec.options["classes"])
    found = {
        "rate": True,
        "queries-arrived": True,
        "links-kept-up": spec.options["serve_as"] == "resolver",
        "stream-arrived": spec.options["capture"],
        "provisioning": provisioned,
        "resolver-level": resolver_level.able(spec),
        "upstream-do": spec.world and resolver_level.able(spec),
        "names-in-world": spec.world,
        "world-kept-up": spec.world,
        "world-signed-ahead": spec.world,
        "capacity-is-the-servers": spec.options["of_capacity"],
        "sessions-resumed": client_classes.asks_for(classes, "resumption", "early-data"),
        "early-data": client_classes.asks_for(classes, "early-data"),
    }
    return [name for name, applies in found.items() if applies]


def expected_s(options: Mapping[str, Any]) -> float:
    return replay_rate.expected_s(options) + float(options["warmup_s"]) + float(options["duration_s"])


def measure(context: TrialContext) -> Result:
    if reason := bring_up(context):
        return Result("invalid", reason)
    duration_s = float(context.option("duration_s"))
    captured = _captured(context, CLIENTS, duration_s) if context.option("capture") else nullcontext()
    with captured, context.profiled(), resolver_statistics.sampled(context), context.phase("measure"):
        play = start(context, "load", duration_s, replay_rate.share(context), out=context.directory)
        asked = ended(context, play, duration_s)
        context.servers.count_threads()
    drain(context)
    return serving.concluded(asked())


def drain(context: TrialContext) -> None:
    """The phase `drain`, after which a world has written all its counts."""
    serving.drain(context)
    if context.spec.world is not None:
        context.finish_server(context.spec.world, limit_s=0)


def bring_up(context: TrialContext) -> str:
    """The phases `setup` and `warmup`. Return why the rate is refused, if it is; then there is no warm-up."""
    assert context.spec.stream is not None
    context.summaries["stream"] = streams.facts(context.spec.stream.key)
    if context.spec.world is not None:
        context.summaries["signatures"] = world.signatures(context.workspace.dataset)

    def refusal(limit_s: float) -> str:
        return replay_rate.refusal(context, partial(_play, context), limit_s=limit_s)

    if reason := serving.bring_up(context, refusal):
        return reason
    with context.phase("warmup"):
        serving.settle(context)
        if warmup_s := float(context.option("warmup_s")):
            _play(context, "warmup", warmup_s, replay_rate.share(context))
    return ""


def _play(
    context: TrialContext, name: str, duration_s: float, share: float = 1.0, out: Path | None = None
) -> LoadResult:
    return ended(context, start(context, name, duration_s, share, out), duration_s)()


@dataclass
class Playing:
    """A replay that has begun, by one host or by several."""

    by: Instrument | Led
    out: Path | None


def start(context: TrialContext, name: str, duration_s: float, share: float = 1.0, out: Path | None = None) -> Playing:
    """Start the replay of the first ``duration_s`` of the stream (0: all of it) as the instrument ``name``, at this
    share of the rate."""

    def words(host: str) -> list[str]:
        rows = int(context.option("query_rows")) if out is not None else 0
        kept = [f"--rows={rows}"] if rows else []
        return ["replay", "play", *arguments(context.spec, host, duration_s, share), *kept]

    if generators.are_led(context.spec):
        led = generators.ready(context, name, words)
        led.begin()
        return Playing(led, out)
    to = [f"--out={out}"] if out is not None else []
    context.instruments.let_watch_go_first()
    return Playing(context.instruments.start(name, [*words(CLIENTS), *to, "--until-eof"], CLIENTS), out)


def ended(context: TrialContext, play: Playing, duration_s: float) -> Callable[[], LoadResult]:
    """Wait for the end of a replay. Return a function for its result, to be called when everything is measured."""
    stream = context.spec.stream
    assert stream is not None
    takes_s = duration_s or stream.span_s / float(context.option("speed")) / replay_rate.share(context)
    limit_s = takes_s + float(context.option("timeout_s")) + GRACE_S
    if isinstance(play.by, Led):
        play.by.wait(limit_s + generators.LEAD_NS / 1e9)
        return partial(play.by.merged, play.out)
    load = LoadResult.model_validate(context.wait(play.by, limit_s=limit_s))
    return lambda: load


def arguments(spec: TrialSpec, host: str, duration_s: float, share: float = 1.0) -> list[str]:
    """Arguments of `replay play` on ``host``, at this share of the rate."""
    options, stream = spec.options, spec.stream
    assert stream is not None
    words = [
        str(streams.file(stream.key)),
        *_server(spec.hosts[spec.subject], proxied=bool(options["proxy_protocol"])),
        *([f"--clients-from={clients}"] if (clients := spec.hosts[host].client_range) else []),
        f"--transport={options['transport']}",
        f"--doh-path={options['doh_path']}",
        f"--speed={float(options['speed']) * share}",
        f"--timeout-s={options['timeout_s']}",
        f"--retransmissions={options['retransmissions']}",
        f"--ports={options['ports']}",
        f"--port={options['port']}",
        f"--connections={options['connections']}",
        f"--idle-timeout-s={options['idle_timeout_s']}",
        *client_classes.arguments(str(options["classes"])),
        f"--class-seed={options['class_seed']}",
        *(["--proxy-protocol"] if options["proxy_protocol"] else []),
        f"--threads={options['threads']}",
        f"--interval-s={min(float(options['interval_s']), duration_s or float(options['interval_s']))}",
        "--real-time",
    ]
    return [*words, f"--duration-s={duration_s}"] if duration_s else words


def _server(host: HostSpec, *, proxied: bool) -> list[str]:
    """Arguments of `replay play` that name the server of ``host``. ``proxied``: clients announce themselves."""
    if proxied and host.proxy_protocol:
        place = running.endpoint(host.address, PROXY_PORTS["udp"])
        return [f"--server={place}", f"--dot-port={PROXY_PORTS['dot']}"]
    if not host.ports:
        return [f"--server={host.address}"]
    words = [f"--server={running.endpoint(host.address, host.ports['udp'])}"]
    words += [f"--{transport}-port={host.ports[transport]}" for transport in ("dot", "doh", "doq")]
    return [*words, f"--i-am-authorized={host.address}"] if host.authorized else words


@contextmanager
def _captured(context: TrialContext, clients: str, duration_s: float) -> Iterator[None]:
    """Capture the queries from the host ``clients`` while the code inside runs, and compare them with the stream at the
    end. The capture is not kept."""
    with TemporaryDirectory(dir=context.directory) as folder:
        file = Path(folder, "arrived.pcap")
        server = context.host(context.spec.subject)
        expression = f"dst host {server.address} and dst port {DNS_PORT}"
        with capture.capturing(server, clients, expression, file) as found:
            yield
        context.summaries["arrival"] = {**_compared(context, clients, duration_s, file), "dropped": found.dropped}


def _compared(context: TrialContext, clients: str, duration_s: float, file: Path) -> dict[str, Any]:
    spec, arrived = context.spec, file.with_suffix(".stream")
    assert spec.stream is not None
    prepare = [str(file), "--addresses", f"--server={spec.hosts[spec.subject].address}", f"--out={arrived}"]
    words = [str(streams.file(spec.stream.key)), str(arrived), f"--clients-from={spec.hosts[clients].client_range}"]
    words += [f"--speed={spec.options['speed']}", *([f"--duration-s={duration_s}"] if duration_s else [])]
    failure = "the capture could not be compared with the stream"
    engine.summary(["replay", "prepare", *prepare], failure, limit_s=COMPARE_LIMIT_S)
    return engine.summary(["replay", "compare", *words], failure, limit_s=COMPARE_LIMIT_S)
