"""Makes scenarios of the model from the options of `dnsrig plan`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import get_args

from dnsrig import rundir
from dnsrig.errors import UsageError
from dnsrig.lab import conditions
from dnsrig.prediction import congestion, fit, primaries, scenario, secondaries
from dnsrig.prediction import path as measured_path
from dnsrig.prediction.held_out import Row, wall_s
from dnsrig.prediction.round_trips import POLICIES
from dnsrig.prediction.scenario import Path, Scenario
from dnsrig.prediction.secondaries import RECORDS_MEASURED, WORK_FACTOR, WORK_SOURCE
from dnsrig.rundir import Role, Scalar
from dnsrig.servers import all_drivers
from dnsrig.servers.behaviour import AsSecondary, Policy, Transport
from dnsrig.text import digits

RECORDS = 4.0
"""Records of a zone in the dataset tiny-zones."""
CONGESTION = "net.ipv4.tcp_congestion_control"
FROM_DISTANCE = 0.5
"""Smallest number of round trips for each zone with which the times of a run are attributed to distance."""


@dataclass(frozen=True)
class Asked:
    """Options that several scenarios share; None: not given."""

    path: Path
    sites: int
    uplink_bytes_per_s: float | None
    congestion: str | None
    bytes_per_record: float | None
    window_bytes: float | None
    policy: str | None
    transport: str | None
    workers: int | None
    connections: int | None
    settings: Mapping[str, Scalar]
    primary: str | None = None
    primary_zone_s: float | None = None
    """Measured by the run that is the source, not an option."""


def path(site: str | None, measures: Mapping[str, float | None], *, ordered: bool) -> Path:
    """The path to a named site, or none; ``measures`` replace its values: ``rtt``, ``jitter`` (s), ``loss`` (share),
    ``bandwidth`` (bytes a second)."""
    found = _site(site) if site else Path()
    if (rtt_s := measures["rtt"]) is not None:
        found = Path(rtt_s=rtt_s, loss=found.loss, rate_bytes_per_s=found.rate_bytes_per_s)
    if (jitter_s := measures["jitter"]) is not None:
        found = replace(found, jitter_s=jitter_s)
    if (loss := measures["loss"]) is not None:
        found = replace(found, loss=loss)
    if (bandwidth := measures["bandwidth"]) is not None:
        found = replace(found, rate_bytes_per_s=bandwidth)
    return found if ordered else replace(found, ordered=False)


def _site(name: str) -> Path:
    """The path in the table of sites, in the direction in which zones go."""
    from dnsrig.lab import sites

    known = sites.site(name)
    forward, reverse = known.forward, {**known.forward, **known.reverse}
    rate_mbit = forward.get("rate_mbit")
    return Path(
        rtt_s=(forward.get("delay_ms", 0.0) + reverse.get("delay_ms", 0.0)) / 1e3,
        jitter_s=forward.get("jitter_ms", 0.0) / 1e3,
        ordered=forward.get("ordered", True),
        loss=forward.get("loss_percent", 0.0) / 100,
        rate_bytes_per_s=None if rate_mbit is None else rate_mbit * 1e6 / 8,
    )


def settings(given: list[str]) -> dict[str, Scalar]:
    """Name -> value, from ``NAME=VALUE`` each; a value of digits is a number."""
    found: dict[str, Scalar] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"--setting {text!r}", hint="write NAME=VALUE, e.g. --setting serial-query-rate=10000")
        found[name] = int(value) if value.isascii() and value.isdecimal() and len(value) < 10 else value
    return found


def build(asked: Asked, kind: str | None, zones: int, records: float | None) -> tuple[Scenario, list[str]]:
    """The scenario, and notes to print with its prediction."""
    server = _server(kind)
    transport, tsig = _transport(asked.transport)
    policy = _policy(asked, server, transport)
    _check_possible(kind, asked.primary, policy, transport)
    notes: list[str] = []
    algorithm = asked.congestion or _machines_congestion()
    default_workers = (
        server.workers(asked.settings) if server and policy not in ("replica", "remote") else scenario.WINDOW
    )
    default_connections = server.connections(asked.settings) if server else 1
    found = Scenario(
        zones=zones,
        records=RECORDS if records is None else records,
        path=asked.path,
        policy=policy,
        workers=default_workers if asked.workers is None else asked.workers,
        transport=transport,
        tsig=tsig,
        congestion=algorithm,
        connections=default_connections if asked.connections is None else asked.connections,
        sites=asked.sites,
        uplink_bytes_per_s=asked.uplink_bytes_per_s,
        primary=asked.primary or (primaries.cheapest() if asked.sites > 1 else None),
        primary_zone_s=asked.primary_zone_s,
    )
    if asked.bytes_per_record is not None:
        found = replace(found, bytes_per_record=asked.bytes_per_record)
    if asked.window_bytes is not None:
        found = replace(found, window_bytes=asked.window_bytes)
    if kind and server and policy not in ("replica", "remote"):
        found, notes = _as_server(found, kind, server, asked)
    if asked.congestion is None and asked.path.loss:
        notes.append(
            f"congestion control {algorithm} is the default of this machine ({CONGESTION}); give --congestion if the sender has another"
        )
    if tsig:
        notes.append(
            "TSIG: its bytes are counted, but not the CPU time of signing: one large zone took 2 to 12 % longer (docs/results/transfers.md)"
        )
    if asked.path.loss > congestion.HELD_LOSS_MAX:
        notes.append(
            f"the laws of congestion control were compared with measurements up to {congestion.HELD_LOSS_MAX:.0%} of loss: beyond that, "
            "the answer is an order of magnitude"
        )
    notes += _of_primary(asked, found)
    if asked.sites > 1:
        notes.append("many far sites at a time were not measured: it is assumed that they share the primary equally")
    if asked.sites > 1 and asked.uplink_bytes_per_s is None:
        notes.append(
            "without --uplink each site has a path of its own: the traffic to all sites together is not counted"
        )
    return found, notes


def _of_primary(asked: Asked, found: Scenario) -> list[str]:
    """Notes on the primary's work, unless a run measured it."""
    if found.primary is None or found.primary_zone_s is not None:
        return []
    if primaries.zone_s(found.primary, found.policy, found.transport) is None:
        return [
            f"the cost of policy {found.policy} over {found.transport} for the sender was not measured: its CPU is not counted"
        ]
    title = primaries.known()[found.primary].title
    assumed = f"the primary is assumed to be {title} with one CPU, which needs the least CPU time with pipelining: give --primary to change that"
    return [] if asked.primary else [assumed]


def without_effect(asked: Asked, kind: str, zones: int, records: float | None) -> list[str]:
    """Notes on settings without effect: misspelt, without a usable value, or not in the model."""
    found, _ = build(asked, kind, zones, records)
    notes = []
    for name in asked.settings:
        others = {other: value for other, value in asked.settings.items() if other != name}
        if build(replace(asked, settings=others), kind, zones, records)[0] == found:
            notes.append(
                f"the setting {name} = {asked.settings[name]} makes no difference here: is it a setting of {kind}?"
            )
    return notes


def _as_server(found: Scenario, kind: str, server: AsSecondary, asked: Asked) -> tuple[Scenario, list[str]]:
    """The scenario with the server's own behaviour: its limits, how it asks for the SOA, its work."""
    limits = tuple(all_drivers()[kind].limits("secondary", asked.settings))
    own = server.policy(asked.settings, found.transport)
    notes = (
        [f"{server.title} with these settings has the policy {own}, not {found.policy}"] if own != found.policy else []
    )
    for limit in limits:
        if limit.timer_s:
            notes.append(f"{server.title} waits for {limit.setting} ({limit.timer_s:g} s): {limit.remedy}")
        elif limit.effect == "silent-start":
            notes.append(f"{server.title} answers nothing before all zones are there ({limit.setting}): {limit.remedy}")
    return replace(
        found,
        soa=server.soa(found.transport),
        secondary=server.title,
        workers_setting=server.workers_setting,
        time_wait=server.time_wait(found.transport),
        policies=_policies(kind, server, asked.settings, found.transport),
        zone_s=server.zone_s if found.zones > 1 or server.record_s is not None else None,
        record_s=server.record_s,
        work_source=WORK_SOURCE,
        work_factor=WORK_FACTOR,
        limits=limits,
    ), notes


def _policies(kind: str, server: AsSecondary, given: Mapping[str, Scalar], transport: Transport) -> frozenset[Policy]:
    """The policies that this server can have, with these settings or others."""
    found: set[Policy] = {server.policy(given, transport)}
    if server.connections_setting:
        found |= {server.policy({server.connections_setting: keep}, transport) for keep in (0, 1)}
    if all_drivers()[kind].databases:
        found.add("replica")
    return frozenset(found)


def of_row(asked: Asked, row: Row, zones: int, records: float | None) -> tuple[Scenario, list[str]]:
    """The scenario of a measured series: its server, settings and transport, and the times of its trials."""
    spec = row.example.record.spec
    host = spec.hosts[spec.subject]
    kind = host.server.kind if host.server and host.server.kind in secondaries.known() else None
    far = asked.path
    if row.rtt_s and not asked.path.rtt_s:
        far = replace(far, rtt_s=row.rtt_s, jitter_s=min(measured_path.jitter_s(row.example), row.rtt_s / 2))
    as_run = replace(
        asked,
        path=far,
        settings={**host.settings, **asked.settings},
        transport=asked.transport or spec.transfer.transport,
        congestion=asked.congestion or _congestion_of(row),
        policy=asked.policy or (None if kind else "pipelined"),
        primary=asked.primary or (_primary_of(row) if asked.sites > 1 else None),
        # With one site, the times of the run already contain the primary's work.
        primary_zone_s=row.primary_zone_s
        if asked.sites > 1 and row.unit == "zones" and asked.primary is None
        else None,
    )
    of_each = records if records is not None else spec.dataset.records / spec.dataset.zones
    found, notes = build(as_run, kind, zones, of_each)
    found = replace(found, secondary=row.label)
    size = zones if row.unit == "zones" else round(zones * of_each)
    seen = fit.forecast(row.fitted, size)
    if seen is None:
        return found, [
            *notes,
            f"{row.label}: too few trials to fit, so the known figures of this kind of server are used",
        ]
    if row.off > 1:
        missed = (
            f"{row.unseen[0].size:,} {row.unit} took {digits(row.measured_s)} s, but the fit predicts {digits(row.forecast.time_s)} s"
            if row.forecast
            else ""
        )
        notes.append(
            f"{missed}: something else decides at this size and above; measure larger sizes, and read what the traps report"
        )
    if size > row.unseen[0].size:
        notes.append(
            f"{size:,} {row.unit} are extrapolated: the largest size that the run has measured is {row.unseen[0].size:,}"
        )
    if not seen.is_narrow:
        notes.append(f"the interval of the fit is wider than ±{fit.WIDEST:.0%}: more repeats, or larger sizes")
    factor = max(row.off, seen.high_s / seen.time_s, seen.time_s / seen.low_s)
    if row.round_trips is not None and row.round_trips >= FROM_DISTANCE:
        wrong = max(found.round_trips_factor, factor)
        counted = replace(found, measured_round_trips=row.round_trips, round_trips_factor=wrong)
        return replace(counted, zone_s=None, record_s=None), notes
    if found.time_wait and row.unit == "zones" and not wall_s(row.example, zones):
        found = replace(found, time_wait=False)  # the server did not open a connection for each zone
    return replace(
        found,
        start_s=seen.line.start_s,
        zone_s=seen.line.each_s if row.unit == "zones" else 0.0,
        record_s=seen.line.each_s if row.unit == "records" else None,
        work_source="fitted on the run",
        work_factor=factor,
    ), notes


def _primary_of(row: Row) -> str | None:
    """The kind of the trials' primary, if its costs are known."""
    spec = row.example.record.spec
    servers = [spec.hosts[name].server for name in spec.primaries]
    return next((server.kind for server in servers if server and server.kind in primaries.known()), None)


def _congestion_of(row: Row) -> str | None:
    """The congestion control of the trials' primary, if there is a law for it."""
    record = row.example.record
    for name in record.spec.primaries:
        sysctls = record.read_back.get("hosts", {}).get(name, {}).get("sysctls", {})
        found = record.spec.hosts[name].congestion or sysctls.get(CONGESTION)
        return found if found in congestion.ALGORITHMS else None
    return None


def of_work(found: Scenario, kind: str | None) -> list[str]:
    """Notes if a secondary's work is not counted, or was measured with fewer zones or records; for a fit see
    `of_row`."""
    if kind is None or found.zone_s is None:
        return [
            "the work of a secondary is not counted here: the path decides, and what the sites share at the primary"
        ]
    server = secondaries.known()[kind]
    zones = found.zones > server.zones_measured
    if not (zones or found.zones * found.records > RECORDS_MEASURED):
        return []
    measured = f"{server.zones_measured:,} zones" if zones else f"{RECORDS_MEASURED:,} records"
    return [
        f"the work of {server.title} is measured up to {measured}, and extrapolated beyond by a straight line: compare it with a run (--from-run)"
    ]


def _check_possible(kind: str | None, primary: str | None, policy: Policy, transport: Transport) -> None:
    """Refuse what the named servers cannot do in any version."""
    from_database = policy in ("replica", "remote")
    if kind and from_database and not all_drivers()[kind].databases:
        raise UsageError(
            f"{kind} cannot take zones from a database, so it has no policy {policy}",
            hint=f"servers that can: {', '.join(name for name in secondaries.known() if all_drivers()[name].databases)}",
        )
    if transport == "xot" and not from_database:
        roles: list[tuple[str | None, Role]] = [(kind, "secondary"), (primary, "primary")]
        for name, role in roles:
            if name in all_drivers() and all_drivers()[name].support("XoT").since(role) is None:
                raise UsageError(f"{name} has no XoT as a {role}", hint="use --transport tcp, or another server")


def _server(kind: str | None) -> AsSecondary | None:
    known = secondaries.known()
    if kind is not None and kind not in known:
        raise UsageError(f"no figures are known of {kind!r} as a secondary", hint=f"use one of {', '.join(known)}")
    return known[kind] if kind else None


def _transport(name: str | None) -> tuple[Transport, bool]:
    """The carrier of messages, and whether TSIG signs them."""
    if name is not None and name not in get_args(rundir.Transport):
        raise UsageError(f"there is no transport {name!r}", hint=f"use one of {', '.join(get_args(rundir.Transport))}")
    carrier, _, tsig = (name or "tcp").partition("+")
    return ("xot" if carrier == "xot" else "tcp"), bool(tsig)


def _machines_congestion() -> str:
    """The default of this machine."""
    found = conditions.sysctl(CONGESTION)
    if found in congestion.ALGORITHMS:
        return found
    raise UsageError(
        f"there is no law for this machine's default congestion control, {found}"
        if found
        else f"this machine has no {CONGESTION}",
        hint=f"name the sender's: --congestion with one of {', '.join(congestion.ALGORITHMS)}",
    )


def _policy(asked: Asked, server: AsSecondary | None, transport: Transport) -> Policy:
    if asked.policy is None:
        return server.policy(asked.settings, transport) if server else "one"
    for known in POLICIES:
        if asked.policy == known:
            return known
    raise UsageError(f"there is no policy {asked.policy!r}", hint=f"use one of {', '.join(POLICIES)}")
