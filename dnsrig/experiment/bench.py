"""Makes an experiment of a question that fits on one command line: which of these servers is faster?

The experiment can be printed, saved and changed; it has nothing that a file of your own could not have.
"""

from __future__ import annotations

import contextlib
import glob
import ipaddress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from dnsrig import query_files
from dnsrig.errors import UsageError
from dnsrig.experiment import running_servers
from dnsrig.experiment.running_servers import is_running
from dnsrig.servers import driver, sources
from dnsrig.servers import running as servers_that_run

Raw = dict[str, Any]
Measure = Literal["rate", "max", "transfer", "answers"]
ZONES, ZONES_TRANSFERRED = 1_000, 100
"""Number of made zones; fewer are transferred, because some servers begin only 20 transfers a second."""
LIMIT_S = 120
USUAL_RATE_QPS = 10_000.0
TRANSPORTS: dict[Measure, tuple[str, ...]] = {
    "rate": ("udp", "tcp", "dot", "doh", "doq"),
    "max": ("udp", "tcp", "dot", "doh", "doq"),
    "transfer": ("tcp", "xot", "xoq"),
    "answers": (),
}
PRIMARY = "nsd@forky"
"""The server that sends zones to secondaries and answers resolvers. It is not under test."""
PRIMARY_OVER_QUIC = "zones@engine"
"""The server that sends zones if a transport is XoQ, which NSD does not have."""


@dataclass(frozen=True)
class Question:
    """The options of `dnsrig bench`."""

    servers: list[str]
    measure: Measure = "rate"
    rates_qps: list[float] = field(default_factory=list)
    """Queries a second; an axis if there are several."""
    transports: list[str] = field(default_factory=list)
    """Names of transports, an axis if there are several; empty: UDP, or TCP for transfers."""
    zones: list[Path] = field(default_factory=list)
    """The user's zone files; empty: made zones."""
    queries: Path | None = None
    """The user's query file; None: names of the zones."""
    capture: Path | None = None
    """A capture whose queries are replayed."""
    expect: str = ""
    """What each answer must be: ``noerror-nonempty``, or the path of a file."""
    duration_s: float = 2.0
    as_resolvers: bool = False
    """Ask servers that run already as resolvers: queries ask for recursion."""
    rtt_ms: float = 0.0
    loss_percent: float = 0.0
    """The emulated path of a transfer; the loss is that of each direction."""


def experiment(asked: Question) -> Raw:
    """The experiment as a document, ready to be written as TOML. Raises UsageError on what cannot be asked together."""
    asked = replace(asked, servers=[named(server) for server in asked.servers])
    _check(asked)
    role = _role(asked)
    if asked.capture and role == "primary" and not asked.zones and not _run_already(asked):
        raise UsageError(
            "a capture asks for zones that dnsrig does not have", hint="name the zones that it asks for: --zone FILE"
        )
    made: Raw = {
        "title": f"bench: {', '.join(asked.servers)}",
        "question": _question(asked),
        "procedure": _procedure(asked),
        "limit_s": LIMIT_S,
        "dataset": _dataset(asked, role),
        "hosts": {},
        "transfer": {},
        "options": _options(asked, role),
        "matrix": {f"hosts.{role}.server": asked.servers},
    }
    if asked.measure == "answers":
        made["hosts"]["reference"] = {"server": asked.servers[0]}
        made["matrix"] = {f"hosts.{role}.server": asked.servers[1:]}
    if not _run_already(asked):
        made["storage"] = "memory"
    if role == "secondary" or (role == "resolver" and asked.capture is None and not _run_already(asked)):
        made["hosts"]["primary"] = {"server": PRIMARY_OVER_QUIC if "xoq" in asked.transports else PRIMARY}
    if asked.capture is not None:
        made["stream"] = {"kind": "capture", "file": str(asked.capture.resolve())}
        if role == "resolver" and not _run_already(asked):
            made["hosts"]["internet"] = {"server": "world@engine"}
    if asked.queries is not None or asked.expect:
        made["queries"] = {
            **({"file": str(asked.queries.resolve())} if asked.queries is not None else {}),
            **({"expect": _expectation(asked.expect)} if asked.expect else {}),
        }
    if asked.rtt_ms or asked.loss_percent:
        made["path"] = {"delay_ms": asked.rtt_ms / 2, "loss_percent": asked.loss_percent}
    _vary(made, "options", "rate_qps", asked.rates_qps if asked.measure == "rate" and asked.capture is None else [])
    _vary(made, "transfer" if asked.measure == "transfer" else "options", "transport", asked.transports)
    if len(asked.servers) > 1 and asked.measure != "answers":
        made["baseline"] = {"server": asked.servers[0]}
    return {key: value for key, value in made.items() if value != {}}


def _expectation(text: str) -> str:
    return text if text == query_files.NOERROR_NONEMPTY else str(Path(text).resolve())


def named(server: str) -> str:
    """A server as experiments name it: an address with or without a port is one that runs already."""
    address = server.partition(",")[0]
    address = address.removeprefix("[").partition("]")[0] if address.startswith("[") else address
    for text in (address, address.rpartition(":")[0]):
        with contextlib.suppress(ValueError):
            ipaddress.ip_address(text)
            return f"running@{server}"
    return server


def usual_rate_qps(servers: list[str]) -> float:
    """The rate if the user names none: what is no server of the user's own gets no more than `load` sends by itself."""
    running = [name.partition("@")[2] for name in map(named, servers) if is_running(name)]
    outside = any(not running_servers.is_free(servers_that_run.parse(source).address) for source in running)
    return running_servers.QPS_MOST if outside else USUAL_RATE_QPS


def _run_already(asked: Question) -> bool:
    return all(map(is_running, asked.servers))


def _vary(made: Raw, table: str, key: str, values: list[Any]) -> None:
    """Set ``key`` to the only one of ``values``, or make it an axis of several."""
    if len(values) == 1:
        made[table][key] = values[0]
    elif values:
        made["matrix"][f"{table}.{key}"] = values


def _check(asked: Question) -> None:
    if len(set(asked.servers)) != len(asked.servers):
        raise UsageError(
            "a server is named twice", hint="name each once; `dnsrig calibrate` compares a server with itself"
        )
    known = TRANSPORTS[asked.measure]
    if asked.measure == "answers" and (len(asked.servers) < 2 or asked.transports or asked.expect or asked.capture):
        raise UsageError(
            "--compare-answers needs two servers or more, and asks them the same queries over UDP",
            hint="name the servers, the first of which the others are compared with; leave --transport, --expect and --capture out",
        )
    running = [is_running(server) for server in asked.servers]
    if any(running) and not all(running):
        raise UsageError(
            "servers that run already and servers that dnsrig starts are asked over different networks",
            hint="make a run of each, and compare them with `dnsrig compare`",
        )
    if any(running) and asked.measure == "transfer":
        raise UsageError(
            "--transfer starts each server with nothing on disk, and these run already",
            hint="`dnsrig transfer` takes zones from a running primary",
        )
    if any(running) and not (asked.queries or asked.zones or asked.capture):
        raise UsageError(
            "dnsrig does not know what a running server serves",
            hint="name a query file (--queries) or its zones (--zone)",
        )
    if wrong := next((name for name in asked.transports if name not in known), None):
        raise UsageError(f"--transport {wrong}", hint=f"one or more of {', '.join(known)}, with commas between them")
    if asked.measure == "transfer" and (asked.queries or asked.capture):
        raise UsageError("--transfer sends no queries", hint="leave --queries and --capture out")
    if asked.capture and (asked.queries or asked.measure == "max" or asked.rates_qps):
        raise UsageError("--capture replays queries at their own times", hint="leave --queries, --rate and --max out")
    if asked.expect and (asked.measure == "transfer" or asked.capture):
        raise UsageError(
            "--expect is about the answers to queries of a file, or for names of the zones",
            hint="leave --transfer and --capture out, or --expect",
        )
    if asked.measure != "transfer" and (asked.rtt_ms or asked.loss_percent):
        raise UsageError("--rtt and --loss emulate the path of a transfer", hint="add --transfer, or leave them out")


def _role(asked: Question) -> str:
    """The role that all servers take: that of a primary where they can."""
    if _run_already(asked):
        return "resolver" if asked.as_resolvers else "primary"
    roles = [driver(sources.parse(name)[0].kind).roles for name in asked.servers]
    wanted = {"transfer": ("secondary",), "answers": ("primary",)}.get(asked.measure, ("primary", "resolver"))
    for role in wanted:
        if all(role in each for each in roles):
            return role
    names = ", ".join(f"{name} ({' or '.join(each)})" for name, each in zip(asked.servers, roles, strict=True))
    raise UsageError(
        f"these servers have no role in common that this measures: {names}",
        hint=f"they must all be able to be a {' or a '.join(wanted)}",
    )


def _procedure(asked: Question) -> str:
    if asked.capture is not None:
        return "replay"
    return {"rate": "latency", "max": "capacity", "transfer": "transfer", "answers": "answers"}[asked.measure]


def _question(asked: Question) -> str:
    if asked.capture is not None:
        return "How long do these clients wait with each server?"
    if asked.measure == "transfer":
        return "How long does each server, as a secondary with nothing on disk, take to serve all zones?"
    if asked.measure == "answers":
        return f"Which queries do servers answer differently than {asked.servers[0]}?"
    if asked.measure == "max":
        return "How many queries a second can each server answer?"
    rates = " and ".join(f"{rate:,.10g}" for rate in asked.rates_qps)
    return f"How long do the slowest 1 % of queries wait at {rates} queries a second?"


def _dataset(asked: Question, role: str) -> Raw:
    if _run_already(asked) and not asked.zones:
        return {}
    if asked.capture is not None and role == "resolver" and not _run_already(asked):
        return {"kind": "world", "from_stream": True, "zones": ZONES}
    if asked.zones:
        return {"kind": "files", "files": "\n".join(glob.escape(str(path.resolve())) for path in asked.zones)}
    return {"kind": "tiny-zones", "zones": ZONES_TRANSFERRED if asked.measure == "transfer" else ZONES}


def _options(asked: Question, role: str) -> Raw:
    if asked.measure in ("transfer", "answers"):
        return {}
    found: Raw = {"serve_as": role, "settle_s": 0.2}
    if asked.capture is not None:
        in_a_world = role == "resolver" and not _run_already(asked)
        return found | ({"resolve_from": "internet"} if in_a_world else {})
    if asked.measure == "max":
        return found | {"warmup_s": 0.5, "ramp_step_s": 0.5, "ramp_repeats": 1, "ramp_precision_percent": 5.0}
    return found | {"warmup_s": 0.5, "duration_s": asked.duration_s}
