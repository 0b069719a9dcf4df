"""Each manipulation check, provoked: it passes where the stimulus was there, fails where it was not, and says so where
nothing tells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import polars as pl
import pytest
import socket_data
import trial_data
import world_data
from golden_files import hold
from lacking import without_parts
from trial_data import SECOND, clean_trial, series

from dnsrig import checks
from dnsrig.checks import all_checks, amount, wanted
from dnsrig.checks.hosts_and_links import readings, same
from dnsrig.experiment import model, trial_specs
from dnsrig.experiment.trial import declared_checks
from dnsrig.lab import links
from dnsrig.procedures.parts import readback
from dnsrig.rundir import Check, Level, LinkSpec, PathSpec, QueriesSpec, Resolving, Scalar
from dnsrig.runs.row_files.probe import PROPAGATION
from dnsrig.runs.row_files.transfer import CONNECTIONS, TRANSFERS
from dnsrig.runs.trial import Trial

ELSEWHERE = {"changes-made", "changes-served", "change-delay", "connections-opened"}
"""Provoked in test_checks.py, and the last in test_held_connections.py."""
Make = Callable[[Trial], None]


def options(trial: Trial, **values: Any) -> None:
    defaults = {"transport": "udp", "transfers": "none", "changes": "none", "clients": 16, "missing_share": 0.0}
    trial.record.spec.options = {**defaults, **values}


def told(name: str, /, **summary: Any) -> Make:
    def make(trial: Trial) -> None:
        trial.record.instruments[name] = summary

    return make


def with_options(make: Make, **values: Any) -> Make:
    def made(trial: Trial) -> None:
        options(trial, **values)
        make(trial)

    return made


def counted(**columns: list[int]) -> Make:
    """Samples a second, from the begin of `measure`."""

    def make(trial: Trial) -> None:
        assert trial.measure is not None
        trial_data.use(trial, series(trial.measure.start.monotonic_ns, **columns))

    return make


def both(*makes: Make) -> Make:
    def make(trial: Trial) -> None:
        for each in makes:
            each(trial)

    return make


def transferred(policy_handshakes: list[str], answered: str = "axfr", overlap: int = 1, **transfer: Any) -> Make:
    """A zone a second over connections with these handshakes, ``overlap`` of them under way at a time."""

    def make(trial: Trial) -> None:
        for name, value in transfer.items():
            setattr(trial.record.spec.transfer, name, value)
        count = 20
        asked = [(number // overlap) * 1000 for number in range(count)]
        rows = {"zone": [f"z{n}" for n in range(count)], "asked_ns": asked, "last_ns": [at + 900 for at in asked]}
        rows |= {"asked": ["axfr"] * count, "answered": [answered] * count, "outcome": ["done"] * count}
        trial.__dict__["transfers"] = pl.DataFrame(rows, schema={name: TRANSFERS.schema[name] for name in rows})
        made = list(enumerate(policy_handshakes))
        listed = {
            "connection": [number for number, _ in made],
            "secondary": [0] * len(made),
            "begun_ns": [1000 * number + 1 for number, _ in made],
            "established_ns": [1000 * number + 500 for number, _ in made],
            "handshake": [handshake for _, handshake in made],
        }
        trial.__dict__["connections"] = pl.DataFrame(listed, schema={name: CONNECTIONS.schema[name] for name in listed})

    return make


def over_sockets(**values: Any) -> Make:
    """One connection over an emulated path, whose sender was given bbr and whose receiver asks for segments of 1,260
    bytes."""

    def make(trial: Trial) -> None:
        socket_data.bulk(trial, **values)
        trial.record.spec.hosts["primary"].congestion = "bbr"
        trial.record.spec.hosts["client"].advmss_bytes = 1260

    return make


def path(works: bool = True, wrong: str = "") -> Make:
    def make(trial: Trial) -> None:
        trial.record.spec.links = [LinkSpec(ends=("primary", "secondary"), kind="tun", forward=PathSpec(delay_ms=10))]
        found: dict[str, Any] = {"from": "primary", "to": "secondary", "works": works, "rtt_median_us": 20_000}
        trial.record.link_tests = [{**found, **({"wrong": [wrong]} if wrong else {})}]

    return make


def too_big(count: int) -> Make:
    """So many during `measure`, and more when the link was looked at before the start."""

    def make(trial: Trial) -> None:
        assert trial.measure is not None
        start_ns = trial.measure.start.monotonic_ns
        rows = pl.DataFrame({"time_ns": [start_ns - 1, start_ns + 1], "too_big": [8, count]})
        trial.__dict__["_links"] = {"primary-secondary": rows}

    return make


def sysctl(read_back: str) -> Make:
    def make(trial: Trial) -> None:
        for host in trial.record.spec.hosts.values():
            host.sysctls = {}
        trial.record.spec.hosts[trial.subject].sysctls = {"net.ipv4.tcp_tw_reuse": "1"}
        trial.record.read_back["hosts"] = {trial.subject: {"sysctls": {"net.ipv4.tcp_tw_reuse": read_back}}}

    return make


def listed(sources: int = 1, **ports: int) -> Make:
    def make(trial: Trial) -> None:
        trial.record.spec.hosts[trial.subject].source_addresses = ["198.19.0.1", "198.19.0.2"]
        numbered = {name.removeprefix("p"): count for name, count in ports.items()}
        hosts = {trial.subject: {"ports": numbered, "sources": sources}}
        trial.record.instruments["connections"] = {"hosts": hosts}

    return make


def over(**transfer: Any) -> Make:
    def make(trial: Trial) -> None:
        for name, value in transfer.items():
            setattr(trial.record.spec.transfer, name, value)

    return make


def came(nbytes: int, seen: int = 100) -> Make:
    return both(counted(secondary__link_primary__rx_bytes=[0, nbytes, nbytes]), told("probe", seen=seen))


def from_two(first: int, second: int) -> Make:
    def make(trial: Trial) -> None:
        spec = trial.record.spec
        spec.hosts["primary2"] = spec.hosts["primary"].model_copy(update={"address": "198.18.0.9"})
        rows = {"secondary__link_primary__rx_bytes": [0, first], "secondary__link_primary2__rx_bytes": [0, second]}
        counted(**rows)(trial)

    return make


def changed_by(nbytes: int, ixfr: bool) -> Make:
    """The whole zones took 1,000,000 bytes before `measure`."""

    def make(trial: Trial) -> None:
        assert trial.measure is not None
        rows = [0, 1_000_000, 1_000_000 + nbytes, 1_000_000 + nbytes]
        trial_data.use(trial, series(trial.measure.start.monotonic_ns - 10**9, secondary__link_primary__rx_bytes=rows))
        trial.record.spec.transfer.ixfr = ixfr

    return make


def of_zones(count: int, otherwise: Make) -> Make:
    def make(trial: Trial) -> None:
        otherwise(trial)
        trial.record.spec.dataset.zones = count

    return make


def of_own_zones(otherwise: Make) -> Make:
    def make(trial: Trial) -> None:
        otherwise(trial)
        trial.record.spec.dataset.kind = "files"

    return make


def nothing_arrived(otherwise: Make) -> Make:
    def make(trial: Trial) -> None:
        otherwise(trial)
        trial.record.instruments["probe"] = {"seen": 0}

    return make


def carried(nbytes: int) -> Make:
    def make(trial: Trial) -> None:
        trial.record.spec.procedure = "replication"
        trial.record.spec.options = {"carrier": "axfr"}
        came(nbytes)(trial)

    return make


def database(zones: int) -> Make:
    def make(trial: Trial) -> None:
        trial.record.spec.hosts["database"] = trial.record.spec.hosts["primary"]
        told("database", zones=zones)(trial)

    return make


def kernel(kind: str) -> Make:
    def make(trial: Trial) -> None:
        trial.record.read_back["kernel"] = {"kind": kind} if kind else {}

    return make


def resolved(packets: int, missing_share: float) -> Make:
    sent = counted(secondary__link_primary__tx_packets=[0, packets, packets])
    return with_options(both(told("load", answered=1000), sent), missing_share=missing_share)


def replayed(arrived: int) -> Make:
    """A thousand queries, so many of whose packets arrived."""

    def make(trial: Trial) -> None:
        clients = trial.record.spec.hosts["primary"].model_copy(update={"client_range": "198.19.0.0/16"})
        trial.record.spec.hosts["clients"] = clients

    return both(make, told("load", sent=1000), counted(secondary__link_clients__rx_packets=[0, arrived, arrived]))


def captured(missing: int, dropped: int | None = 0, encrypted: int = 0) -> Make:
    """Of a thousand queries."""
    times = {name: {} for name in ("due_gap_ns", "gap_ns", "gap_deviation_ns")}
    counts = {"queries": 1000, "arrived": 1000 - missing, "missing": missing, "encrypted": encrypted, "unknown": 0}
    return told("arrival", **counts, **times, out_of_order=0, dropped=dropped)


def classes(**connections: int) -> Make:
    """Two classes of clients, one of which resumes sessions, with early data."""
    rest = {"resumption": False, "early_data": False, "connections": {"returning": 0}}
    return told("load", classes=[rest, {"resumption": True, "early_data": True, "connections": connections}])


def connected(*, resumption: bool = True, early_data: bool = False, **connections: int) -> Make:
    """A load of two clients with a connection for each query."""
    options = {"clients": 2, "resumption": resumption, "early_data": early_data}
    return with_options(told("load", model="ramp", connections=connections), **options)


def settings(named: dict[str, Any], **shown: str) -> Make:
    def make(trial: Trial) -> None:
        trial.record.spec.hosts[trial.subject].settings = named
        trial.record.instruments["settings"] = {name.replace("_", "-"): value for name, value in shown.items()}

    return make


def provisioned(how: str, configured: int, seen: int = 100) -> Make:
    return both(over(provisioning=how), told("probe", seen=seen), told("configured", zones=configured))


def notified(notify: bool, notifies: int, followed: int, unprompted: int = 0, served: int = 8) -> Make:
    """Of eight changes."""

    def make(trial: Trial) -> None:
        over(notify=notify)(trial)
        trial.record.instruments["propagation"] = {"changes": 8}
        trial.record.instruments["told"] = {"notifies": notifies, "followed": followed, "unprompted": unprompted}
        address = trial.record.spec.hosts[trial.subject].address
        rows = {"secondary": [f"{address}:53"] * 8, "seen_ns": [*range(served), *[None] * (8 - served)]}
        trial.__dict__["propagation"] = pl.DataFrame(rows, schema={name: PROPAGATION.schema[name] for name in rows})

    return make


XOT = {"transport": "xot"}
ANSWER = {"rcode": 0, "ad": False, "records": 1}
NOTHING: Make = lambda trial: None  # noqa: E731


def leveled(
    level: Level, *, ad: bool = False, broken: int | None = 0, do: int = 3, rcode: int = 0, **more: Any
) -> Make:
    """A resolver that was asked for ``level``, and its answers, the same from its twin and from itself."""

    def make(trial: Trial) -> None:
        trial.record.spec.hosts[trial.subject].resolving = Resolving(level=level)
        answers: dict[str, Any] = {"good": {"rcode": rcode, "ad": ad, "records": 1}}
        if broken is not None:
            answers["broken"] = {"rcode": broken, "ad": False, "records": more.get("records", int(not broken))}
        queries = {} if more.get("queries", 3) is None else {"queries": more.get("queries", 3), "edns": 3, "do": do}
        told("level", twin={**answers, **queries}, server=more.get("server", answers))(trial)

    return make


def in_world(
    *, cpu_percent: int = 10, waited_percent: int = 0, level: Level = "do-unvalidated", do: int = 100, **told_of: Any
) -> Make:
    """A resolver that sent a hundred queries to a world, so many with DO; the world's host used this share of its
    CPU, and waited for it."""

    def make(trial: Trial) -> None:
        spec, phase = trial.record.spec, trial.measure
        assert phase is not None
        trial_data.measured(trial, 10)
        spec.hosts["internet"] = spec.hosts["primary"].model_copy(update={"role": "world", "cpus": [0]})
        spec.hosts[trial.subject].resolving = Resolving(level=level)
        used, waited = ([second * share * 10_000 for second in range(12)] for share in (cpu_percent, waited_percent))
        counted(internet__cgroup__cpu_usage_us=used, internet__psi__cpu_some_us=waited)(trial)
        begun_ns = phase.start.monotonic_ns
        early = {"time_ns": 0, "dnssec_ok": level == "no-do", "queries": 1_000}
        with_do = {"time_ns": begun_ns, "queries": do}
        world_data.write_queries(trial, early, with_do, {**with_do, "dnssec_ok": False, "queries": 100 - do})
        world_data.write_not_in_world(trial, absent=3)
        told("world", **{"not_in_world": 0, **told_of})(trial)

    return make


def met(*faults: str) -> Make:
    """A query to a server with each of these faults, and one before `measure`."""

    def make(trial: Trial) -> None:
        begun_ns = trial_data.measured(trial, 10)
        rows = [{"time_ns": begun_ns, "queries": 1, "fault": fault} for fault in faults]
        world_data.write_queries(trial, {"time_ns": 0, "queries": 1, "fault": "wrong-ds"}, *rows)

    return make


def searched(percent: int, *, waited_percent: int = 0, holds: bool = False) -> Make:
    """Three seconds of a search of the capacity, in the second of which the server used so much of its CPU and waited
    for it, and held the rate or did not."""

    def make(trial: Trial) -> None:
        trial.record.spec.hosts[trial.subject].cpus = [1]
        begun_ns = trial_data.measured(trial, 10)
        used, waited = ([0, 0, share * 10_000, share * 10_000] for share in (percent, waited_percent))
        name = trial.subject
        counted(**{f"{name}__cgroup__cpu_usage_us": used, f"{name}__psi__cpu_some_us": waited})(trial)
        step = {"holds": True, "instrument_failed": False, "start_ns": begun_ns, "end_ns": begun_ns + SECOND}
        second = {"start_ns": begun_ns + SECOND, "end_ns": begun_ns + 2 * SECOND, "holds": holds}
        told("ramp", steps=[step, {**step, **second}])(trial)

    return make


def over_links(
    kind: Literal["veth", "tun", "netem"] = "veth",
    *,
    busiest_bytes: int = 0,
    dropped: int = 0,
    overflowed: int = 0,
    flood_dropped: int = 0,
    model: str = "stream",
) -> Make:
    """A link to whom the server under test asks, of 8 Mbit/s where it is emulated, that carried so much in one second,
    in 1,000 packets; and one from a flood, on which others were dropped."""

    def make(trial: Trial) -> None:
        spec, phase = trial.record.spec, trial.measure
        assert phase is not None
        spec.hosts["flood"] = spec.hosts["primary"].model_copy(update={"role": None})
        path = None if kind == "veth" else PathSpec(rate_mbit=8.0)
        ends = ("primary", trial.subject)
        spec.links = [links.joined(ends, kind, forward=path), LinkSpec(ends=("flood", trial.subject))]
        before, after = [0] * 3, [1] * 9
        counted(
            secondary__link_primary__rx_bytes=[*before, *(busiest_bytes * one for one in after)],
            secondary__link_primary__rx_packets=[*before, *(1_000 * one for one in after)],
            secondary__link_primary__tx_dropped=[0] * 12,
            primary__link_secondary__tx_dropped=[*before, *(dropped * one for one in after)],
            flood__link_secondary__tx_dropped=[*before, *(flood_dropped * one for one in after)],
        )(trial)
        start_ns = phase.start.monotonic_ns
        rows = {"time_ns": [start_ns - 1, start_ns + 1], "direction": ["forward"] * 2, "overflowed": [9, overflowed]}
        trial.__dict__["_links"] = {"primary-secondary": pl.DataFrame(rows)}
        told("load", model=model)(trial)

    return make


def expecting(make: Make) -> Make:
    """The trial of ``make``, whose answers must have data."""

    def made(trial: Trial) -> None:
        trial.record.spec.queries = QueriesSpec(parameters={"expect": "noerror-nonempty"})
        make(trial)

    return made


def link_says_nothing(trial: Trial) -> None:
    trial.__dict__["_links"] = {"primary-secondary": pl.DataFrame()}


def no_samples(trial: Trial) -> None:
    trial.__dict__["samples"] = trial.samples.clear()


CASES: dict[str, tuple[list[Make], list[Make], list[Make]]] = {
    # name: where it passes, where it fails, where nothing tells
    "answers-good": (
        [
            told("load", rcodes={"NOERROR": 99, "NXDOMAIN": 1}),
            expecting(told("load", answered=99, wrong={"empty": 1}, rcodes={"REFUSED": 100})),
            expecting(told("load", answered=199, unlisted=100, wrong={"empty": 1}, rcodes={"NOERROR": 200})),
        ],
        [
            told("load", rcodes={"NOERROR": 90, "REFUSED": 10}),
            expecting(told("load", answered=98, wrong={"empty": 1, "rrset": 1}, rcodes={"NOERROR": 100})),
            # All answers that were judged are wrong, or all others are refusals.
            expecting(told("load", answered=199, unlisted=199, wrong={"rrset": 1}, rcodes={"NOERROR": 200})),
            expecting(told("load", answered=200, unlisted=199, rcodes={"NOERROR": 1, "REFUSED": 199})),
        ],
        [told("load", rcodes={})],
    ),
    "names-missing": (
        [with_options(told("load", rcodes={"NXDOMAIN": 99, "NOERROR": 1}), missing_share=1.0)],
        [with_options(told("load", rcodes={"NXDOMAIN": 50, "NOERROR": 50}), missing_share=1.0)],
        [with_options(told("load"), missing_share=1.0)],
    ),
    "rate": ([told("load", due=100, sent=100)], [told("load", due=100, sent=90)], [told("load")]),
    "flood-sent": (
        [told("flood", due=100, sent=90, rcodes={"NXDOMAIN": 50, "SERVFAIL": 9})],
        [told("flood", due=100, sent=89), told("flood", due=100, sent=100, answered=50, rcodes={"NOERROR": 26})],
        [NOTHING],
    ),
    "faults-met": ([met("lame"), met("none", "silent")], [met("none"), met()], [NOTHING]),
    "capacity-is-the-servers": (
        [searched(90), searched(50, waited_percent=40)],
        [searched(70), searched(40, waited_percent=30)],
        [NOTHING, searched(90, holds=True)],
    ),
    "queries-arrived": ([replayed(1000)], [replayed(500)], [told("load", sent=1000)]),
    "stream-arrived": (
        [captured(0), captured(10)],
        [captured(11)],
        [NOTHING, captured(0, dropped=1), captured(0, dropped=None), captured(0, encrypted=1000)],
    ),
    "query-transport": (
        [
            with_options(counted(secondary__tcp__passive_opens=[0, 16, 16]), transport="tcp"),
            with_options(counted(secondary__tcp__passive_opens=[0, 0, 0])),
            with_options(both(counted(secondary__tcp__passive_opens=[0, 3, 3]), told("statistics", connections=3))),
            with_options(
                counted(secondary__tcp__passive_opens=[0, 0, 0], secondary__udp__in_datagrams=[0, 99, 99]),
                transport="doq",
            ),
        ],
        [
            with_options(counted(secondary__tcp__passive_opens=[0, 0, 0]), transport="tcp"),
            with_options(counted(secondary__tcp__passive_opens=[0, 16, 16])),
            with_options(
                counted(secondary__tcp__passive_opens=[0, 16, 16], secondary__udp__in_datagrams=[0, 99, 99]),
                transport="doq",
            ),
            with_options(
                counted(secondary__tcp__passive_opens=[0, 0, 0], secondary__udp__in_datagrams=[0, 0, 0]),
                transport="doq",
            ),
        ],
        [
            with_options(counted(other__tcp__passive_opens=[0, 1, 1])),
            with_options(counted(secondary__tcp__passive_opens=[0, 0, 0]), transport="doq"),
        ],
    ),
    "resolver-level": (
        [
            leveled("no-do", do=0),
            leveled("do-unvalidated"),
            leveled("do-unvalidated", broken=None),
            leveled("validating", ad=True, broken=2),
        ],
        [
            leveled("no-do"),
            leveled("do-unvalidated", do=0),
            leveled("validating"),
            leveled("do-unvalidated", ad=True, broken=2),
            leveled("validating", ad=True, broken=0),
            leveled("validating", ad=False, broken=2),
            leveled("validating", ad=True, broken=None),
            leveled("do-unvalidated", broken=3),
            leveled("do-unvalidated", records=0),
            leveled("validating", ad=True, broken=2, server={}),
            leveled("validating", ad=True, broken=2, server={"good": ANSWER, "broken": ANSWER}),
            leveled("do-unvalidated", queries=0, do=0),
            leveled("do-unvalidated", rcode=2),
        ],
        [NOTHING, leveled("no-do", queries=None)],
    ),
    "world-signed-ahead": (
        [in_world(signatures={"given": 200, "made": 2}), in_world(signatures={"given": 0, "made": 0})],
        [in_world(signatures={"given": 200, "made": 3})],
        [NOTHING],
    ),
    "names-in-world": ([in_world()], [in_world(not_in_world=3)], [NOTHING]),
    "upstream-do": (
        [in_world(), in_world(do=90), in_world(level="no-do", do=0), in_world(level="validating")],
        [in_world(do=89), in_world(level="no-do", do=1)],
        [NOTHING],
    ),
    "world-kept-up": (
        [in_world(), in_world(cpu_percent=69), in_world(cpu_percent=30, waited_percent=39)],
        [
            in_world(cpu_percent=72),
            in_world(cpu_percent=30, waited_percent=42),
            in_world(unsent=1),
            in_world(receive_buffer_drops=1),
            in_world(seconds_dropped=1),
        ],
        [NOTHING, both(in_world(), counted(internet__cgroup__cpu_usage_us=[0]))],
    ),
    "links-kept-up": (
        [
            over_links(),
            over_links(flood_dropped=7),
            over_links(dropped=7, model="ramp"),
            over_links("tun", busiest_bytes=690_000),
            over_links("netem", busiest_bytes=690_000 + 14_000),
        ],
        [
            over_links(dropped=1),
            over_links("tun", overflowed=1),
            over_links("tun", busiest_bytes=710_000),
            over_links("netem", busiest_bytes=710_000 + 14_000),
        ],
        [NOTHING, both(over_links("tun"), no_samples), both(over_links("tun"), link_says_nothing)],
    ),
    "cache": (
        [resolved(10, 0.0), resolved(1000, 1.0)],
        [resolved(900, 0.0), resolved(10, 1.0)],
        [with_options(NOTHING)],
    ),
    "transfers-meanwhile": (
        [with_options(counted(client__link_secondary__rx_bytes=[0, 5_000, 10_000, 10_000]), transfers="one")],
        [with_options(counted(client__link_secondary__rx_bytes=[0, 5_000, 5_000, 5_000]), transfers="one")],
        [with_options(counted(other__link_secondary__rx_bytes=[0]), transfers="one")],
    ),
    "connections-per-zone": (
        [
            with_options(told("transfer", done=100, connections={"established": 100}), policy="one"),
            with_options(told("transfer", done=100, connections={"established": 1}), policy="pipelined"),
        ],
        [
            with_options(told("transfer", done=100, connections={"established": 3}), policy="one"),
            with_options(told("transfer", done=100, connections={"established": 99}), policy="reused"),
        ],
        [with_options(told("transfer", done=2, connections={"established": 2}), policy="one")],
    ),
    "outstanding": ([transferred(["none"], overlap=5)], [transferred(["none"])], [NOTHING]),
    "connections-tls": (
        [transferred(["full"] * 5, **XOT), transferred(["none"] * 5)],
        [transferred(["none"] * 5, **XOT), transferred(["full"] * 5)],
        [NOTHING],
    ),
    "sessions-resumed": (
        [
            with_options(transferred(["full", *["resumed"] * 9], **XOT), resumption=True),
            with_options(transferred(["full"] * 10, **XOT), resumption=False),
            classes(returning=20, resumed=20),
            connected(handshakes=22, resumed=20),
            connected(resumption=False, handshakes=22),
        ],
        [
            with_options(transferred(["full"] * 10, **XOT), resumption=True),
            with_options(transferred(["full", *["resumed"] * 9], **XOT), resumption=False),
            classes(returning=20, resumed=0),
            connected(handshakes=22, resumed=2),
            connected(resumption=False, handshakes=22, resumed=5),
        ],
        [
            with_options(transferred(["full"], **XOT), resumption=True),
            with_options(NOTHING, resumption=True),
            classes(returning=2, resumed=2),
            connected(handshakes=2),
        ],
    ),
    "early-data": (
        [classes(resumed=20, early_accepted=20), connected(early_data=True, resumed=20, early_accepted=20)],
        [classes(resumed=20, early_rejected=20), classes(resumed=20), connected(early_data=True, resumed=20)],
        [classes(resumed=2, early_accepted=2), NOTHING],
    ),
    "transfer-port": (
        [listed(p53=10), both(listed(p853=10), over(**XOT))],
        [listed(p53=1, p853=9), both(listed(p53=10), over(**XOT))],
        [listed(), NOTHING],
    ),
    "unsigned-refused": (
        [told("unsigned", answer="REFUSED"), told("unsigned", answer="by closing")],
        [told("unsigned", answer="NOERROR")],
        [NOTHING],
    ),
    "zones-came": ([came(100_000)], [came(100)], [NOTHING, came(100_000, seen=0)]),
    "primaries-used": ([from_two(900, 1_000)], [from_two(1_900, 10)], [from_two(0, 0)]),
    "ixfr-size": (
        [changed_by(2_000, ixfr=True), changed_by(900_000, ixfr=False)],
        [changed_by(900_000, ixfr=True), changed_by(2_000, ixfr=False)],
        [
            counted(secondary__link_primary__rx_bytes=[0]),
            nothing_arrived(changed_by(0, ixfr=False)),
            of_own_zones(changed_by(900_000, ixfr=True)),
            of_zones(1_000, changed_by(900_000, ixfr=True)),
            of_zones(1_000, changed_by(900_000, ixfr=False)),
        ],
    ),
    "answered-by": (
        [transferred(["none"]), transferred(["none"], answered="ixfr", ixfr=True)],
        [transferred(["none"], ixfr=True), transferred(["none"], answered="ixfr")],
        [NOTHING],
    ),
    "axfr-answered": ([told("axfr", done=9, axfr=9)], [told("axfr", done=9, axfr=0)], [told("axfr", done=0)]),
    "notifies": (
        [with_options(told("transfer", notifies=20), secondaries=10)],
        [with_options(told("transfer", notifies=2), secondaries=10)],
        [with_options(NOTHING, secondaries=10)],
    ),
    "updates-accepted": (
        [told("propagation", changes=8, refused=0, accept_timeouts=0)],
        [told("propagation", changes=8, refused=0, accept_timeouts=3)],
        [told("propagation", changes=0)],
    ),
    "generations-published": (
        [told("cycle", generations=[{"published_ns": 5}])],
        [told("cycle", generations=[{"published_ns": 5}, {"published_ns": None}])],
        [NOTHING],
    ),
    "page-cache": (
        [
            with_options(told("page-cache", cached_share=0.0), page_cache="cold"),
            with_options(told("page-cache", cached_share=1.0), page_cache="warm"),
        ],
        [
            with_options(told("page-cache", cached_share=0.4), page_cache="cold"),
            with_options(told("page-cache", cached_share=0.4), page_cache="warm"),
        ],
        [with_options(NOTHING, page_cache="cold")],
    ),
    "carried": ([carried(100_000)], [carried(10)], [NOTHING]),
    "database-filled": ([database(100)], [database(60)], [NOTHING]),
    "questions-answered": (
        [told("interrogate", features=[{"verdict": "yes"}, {"verdict": "no"}])],
        [told("interrogate", features=[{"verdict": "cannot-tell"}, {"verdict": "cannot-tell"}, {"verdict": "yes"}])],
        [NOTHING],
    ),
    "told-by-notify": (
        [notified(True, 8, 8), notified(True, 5, 5), notified(False, 0, 0)],
        [notified(True, 8, 3), notified(True, 0, 0), notified(False, 1, 1)],
        [NOTHING, both(notified(False, 0, 0), told("told", notifies=0, followed=0, dropped=2))],
    ),
    "asked-by-timer": (
        [notified(False, 0, 0, unprompted=40)],
        [notified(False, 8, 8, unprompted=2)],
        [NOTHING, notified(False, 0, 0, unprompted=40, served=0)],
    ),
    "settings-in-force": (
        [settings({"transfers-in": 100, "notify": True}, transfers_in="100", notify="yes")],
        [settings({"transfers-in": 100}, transfers_in="10"), settings({"notify": False}, notify="on")],
        [settings({"transfers-in": 100}), settings({"timer": 1}, timer="PT1S")],
    ),
    "provisioning": (
        [provisioned("catalog", 0), provisioned("static", 100), provisioned("static", 100, seen=60)],
        [provisioned("catalog", 100), provisioned("catalog", 1), provisioned("static", 0)],
        [NOTHING, provisioned("catalog", 0, seen=0)],
    ),
    "congestion": ([over_sockets(congestion="bbr")], [over_sockets(congestion="cubic")], [NOTHING]),
    # Nothing of the zone is acknowledged: the question is all that was, and it comes from the side that asks for small
    # segments.
    "mss": (
        [over_sockets(mss_bytes=1248)],
        [over_sockets(mss_bytes=1448)],
        [NOTHING, over_sockets(mss_bytes=1448, kb_per_s=0)],
    ),
    "packets-too-large": ([too_big(3)], [too_big(0)], [NOTHING]),
    "path": ([path()], [path(wrong="a delay of 3 ms"), path(works=False)], [NOTHING]),
    "sysctls": ([sysctl("1")], [sysctl("2")], [NOTHING]),
    "source-addresses": ([listed(sources=3, p53=9)], [listed(sources=1, p53=9)], [listed()]),
    "storage": ([told("storage", file_system="ext2/ext3")], [told("storage", file_system="tmpfs")], [NOTHING]),
    "kernel": ([kernel("running")], [kernel("uml")], [kernel("")]),
}


def cases() -> list[Any]:
    verdicts = ("passed", "failed", "cannot-tell")
    return [
        pytest.param(name, make, verdict, id=f"{name}-{verdict}-{number}")
        for name, makes in CASES.items()
        for verdict, group in zip(verdicts, makes, strict=True)
        for number, make in enumerate(group)
    ]


@pytest.mark.parametrize(("name", "make", "verdict"), cases())
def test_a_check(tmp_path: Path, name: str, make: Make, verdict: str) -> None:
    trial = clean_trial(tmp_path / "run")
    trial_data.measured(trial, 10)
    trial.__dict__["samples"] = trial.samples.clear()
    trial.record.instruments.pop("probe", None)
    make(trial)
    check = trial_data.check(name, trial)
    assert check.verdict == verdict, check
    assert "itself failed" not in check.reason, check.reason


@pytest.mark.parametrize("name", CASES)
def test_a_check_that_lacks_a_part_does_not_fail_itself(tmp_path: Path, name: str) -> None:
    """The verdicts are in unit/golden/checks."""
    trial = clean_trial(tmp_path / "run")
    trial_data.measured(trial, 10)
    CASES[name][0][0](trial)
    verdicts: dict[str, str] = {}
    for lacking, of in without_parts(trial):
        if lacking != "no phases" and not lacking.startswith("outcome"):  # checks are for trials with a measurement
            (check,) = checks.look(of, [name])
            assert "itself failed" not in check.reason, f"{lacking}: {check.reason}"
            verdicts[lacking] = check.verdict
    hold("checks", verdicts)


def one_by_one(count: int) -> Make:
    """This number of transfers, one after another."""

    def make(trial: Trial) -> None:
        transferred(["none"])(trial)
        trial.__dict__["transfers"] = trial.transfers.head(count)

    return make


AT_LIMITS: list[tuple[str, Make, str]] = [
    ("rate", told("load", due=100, sent=99), "passed"),
    ("rate", told("load", due=100, sent=98), "failed"),
    ("queries-arrived", replayed(990), "passed"),
    ("queries-arrived", replayed(989), "failed"),
    ("answers-good", told("load", rcodes={"NOERROR": 98, "NXDOMAIN": 1, "REFUSED": 1}), "passed"),
    ("answers-good", told("load", rcodes={"NOERROR": 98, "REFUSED": 2}), "failed"),
    ("names-missing", with_options(told("load", rcodes={"NXDOMAIN": 52, "NOERROR": 48}), missing_share=0.5), "passed"),
    ("names-missing", with_options(told("load", rcodes={"NXDOMAIN": 53, "NOERROR": 47}), missing_share=0.5), "failed"),
    ("names-missing", with_options(told("load", rcodes={"NXDOMAIN": 48, "NOERROR": 52}), missing_share=0.5), "passed"),
    ("names-missing", with_options(told("load", rcodes={"NXDOMAIN": 47, "NOERROR": 53}), missing_share=0.5), "failed"),
    ("query-transport", with_options(counted(secondary__tcp__passive_opens=[0, 15, 15]), transport="tcp"), "failed"),
    ("sessions-resumed", connected(handshakes=5, resumed=3), "passed"),
    ("sessions-resumed", connected(handshakes=4, resumed=2), "cannot-tell"),
    ("sessions-resumed", connected(handshakes=22, resumed=10), "passed"),
    ("sessions-resumed", connected(handshakes=22, resumed=9), "failed"),
    ("early-data", classes(resumed=3, early_accepted=3), "passed"),
    ("early-data", classes(resumed=20, early_accepted=10), "passed"),
    ("early-data", classes(resumed=20, early_accepted=9), "failed"),
    ("flood-sent", told("flood", due=100, sent=100, answered=50, rcodes={"NOERROR": 25}), "passed"),
    ("axfr-answered", told("axfr", done=9), "failed"),
    ("ixfr-size", changed_by(500_000, ixfr=True), "passed"),
    ("ixfr-size", changed_by(500_001, ixfr=True), "failed"),
    ("ixfr-size", changed_by(500_000, ixfr=False), "passed"),
    ("ixfr-size", changed_by(499_999, ixfr=False), "failed"),
    ("ixfr-size", of_zones(101, changed_by(2_000, ixfr=True)), "cannot-tell"),
    ("zones-came", came(8 * 400), "passed"),
    ("zones-came", came(8 * 400 - 1), "failed"),
    ("primaries-used", from_two(250, 750), "passed"),
    ("primaries-used", from_two(249, 751), "failed"),
    (
        "connections-per-zone",
        with_options(told("transfer", done=10, connections={"established": 9}), policy="one"),
        "passed",
    ),
    (
        "connections-per-zone",
        with_options(told("transfer", done=10, connections={"established": 5}), policy="reused"),
        "passed",
    ),
    (
        "connections-per-zone",
        with_options(told("transfer", done=9, connections={"established": 9}), policy="one"),
        "cannot-tell",
    ),
    ("outstanding", one_by_one(10), "failed"),
    ("outstanding", one_by_one(9), "cannot-tell"),
    (
        "transfers-meanwhile",
        with_options(counted(client__link_secondary__rx_bytes=[0, 1_000, 1_999]), transfers="one"),
        "passed",
    ),
    (
        "transfers-meanwhile",
        with_options(counted(client__link_secondary__rx_bytes=[0, 999, 1_998]), transfers="one"),
        "failed",
    ),
    (
        "transfers-meanwhile",
        with_options(counted(client__link_secondary__rx_bytes=[0]), transfers="one"),
        "cannot-tell",
    ),
    ("told-by-notify", notified(True, 8, 4), "passed"),
    ("asked-by-timer", notified(False, 0, 0, unprompted=8), "passed"),
    ("asked-by-timer", notified(False, 0, 0, unprompted=7), "failed"),
    ("notifies", with_options(told("transfer", notifies=9), secondaries=10), "failed"),
    ("notifies", with_options(told("transfer", notifies=10), secondaries=10), "passed"),
    ("cache", resolved(50, 0.0), "passed"),
    ("cache", resolved(51, 0.0), "failed"),
    ("cache", resolved(450, 0.5), "passed"),
    ("cache", resolved(449, 0.5), "failed"),
    ("questions-answered", told("interrogate", features=[{"verdict": "no"}, {"verdict": "cannot-tell"}]), "passed"),
    ("page-cache", with_options(told("page-cache", cached_share=0.02), page_cache="cold"), "passed"),
    ("page-cache", with_options(told("page-cache", cached_share=0.021), page_cache="cold"), "failed"),
    ("page-cache", with_options(told("page-cache", cached_share=0.95), page_cache="warm"), "passed"),
    ("page-cache", with_options(told("page-cache", cached_share=0.949), page_cache="warm"), "failed"),
    ("path", both(path(), lambda trial: trial.record.link_tests.append(trial.record.link_tests[0])), "passed"),
    ("mss", over_sockets(mss_bytes=0), "cannot-tell"),
    ("mss", over_sockets(mss_bytes=1260), "passed"),
    ("mss", over_sockets(mss_bytes=1261), "failed"),
    ("packets-too-large", too_big(1), "passed"),
    ("faults-met", met("silent"), "passed"),
]


@pytest.mark.parametrize(("name", "make", "verdict"), AT_LIMITS)
def test_a_check_on_both_sides_of_its_limit(tmp_path: Path, name: str, make: Make, verdict: str) -> None:
    test_a_check(tmp_path, name, make, verdict)


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("7", {7}), ("-1.5", {-1.5}), ("3s", {3}), ("3 s", {3}), ("4m", {240, 4_194_304}), ("4M", {240, 4_194_304}), ("2h", {7_200}),
        ("2d", {172_800}), ("2w", {1_209_600}), ("8k", {8_192}), ("2g", {2_147_483_648}), ('"5"', {5}), ("true", "yes"), ("On", "yes"),
        ("false", "no"), ("off", "no"), ("  Two   Words ", "two words"), ("PT1S", "pt1s"), ("", ""),
    ],
)  # fmt: skip
def test_what_a_server_writes_for_a_setting(text: str, means: set[float] | str) -> None:
    assert readings(text) == means


@pytest.mark.parametrize(
    ("named", "shown", "expected"),
    [(100, "100", True), (100, "101", False), (True, "no", False), ("all", "ALL", True), ("all", "none", False),
     (60, "1m", True), (1, "PT1S", None), ("none", "0", None)],
)  # fmt: skip
def test_whether_a_setting_is_in_force(named: Scalar, shown: str, expected: bool | None) -> None:
    assert same(named, shown) is expected


def test_a_value_is_written_with_its_unit_and_its_limits() -> None:
    assert [amount(value, "%") for value in (None, True, "tmpfs", 0, 97.44, 12)] == [
        "unknown", "True", "tmpfs", "0 %", "97.44 %", "12 %",
    ]  # fmt: skip
    limits = [(80, None), (None, 2), (0.9, 1.1), (None, None)]
    wanted_of = [
        wanted(Check(name="x", title="x", verdict="passed", asked="bbr", unit="%", least=least, most=most))
        for least, most in limits
    ]
    assert wanted_of == ["at least 80 %", "at most 2 %", "0.9 to 1.1 %", "bbr"]


@pytest.mark.parametrize(
    ("forgotten", "remedy"),
    [({}, "signing.share in dataset.set"), ({"forgotten": 0}, "signing.share in dataset.set"),
     ({"forgotten": 2}, "2 found no room, so raise hosts.internet.settings.signature-cache-mib")],
)  # fmt: skip
def test_what_the_world_signed_late_has_a_remedy(tmp_path: Path, forgotten: dict[str, int], remedy: str) -> None:
    trial = clean_trial(tmp_path / "run")
    in_world(signatures={"given": 200, "made": 3, **forgotten})(trial)
    check = trial_data.check("world-signed-ahead", trial)
    assert "3 of 200" in check.reason and remedy in check.reason


def test_every_check_is_provoked() -> None:
    assert set(CASES) | ELSEWHERE == set(all_checks())


def test_every_check_has_an_experiment_and_every_experiment_its_checks() -> None:
    """How many variants of an experiment have a check is in unit/golden/declared."""
    declared: dict[str, Counter[str]] = {}
    for name, file in model.builtin().items():
        points = model.points(model.load(file, "quick", []))
        declared[name] = Counter(
            check for point in points for check in declared_checks(trial_specs.provisional(name, point, [0, 1]))
        )
    assert set().union(*declared.values()) == set(all_checks())
    assert not [name for name, found in declared.items() if not set(found) - {"storage", "kernel"}]
    hold("declared", declared)


def test_connections_of_a_host_by_port() -> None:
    lines = [
        "0: 020012C6:9C40 010012C6:0355 06 more",
        "1: 030013C6:9C41 010012C6:0355 01 more",
        "2: 020012C6:9C42 010012C6:0016 01 more",
        "3: 00000000:0035 00000000:0000 0A more",
        "4: 020012C6:0035 010012C6:9C43 01 a NOTIFY",
    ]
    assert readback.counted(lines, asked=False) == {"ports": {"853": 2}, "sources": 2}
    assert readback.counted(lines, asked=True) == {"ports": {"53": 1}, "sources": 1}
