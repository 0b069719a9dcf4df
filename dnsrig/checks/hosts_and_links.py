"""Checks of the hosts and links, as the experiment sets them. Each applies to every procedure, if the spec has what it
verifies; `page-cache` belongs to one."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

import polars as pl

from dnsrig.checks import Seen, cannot_tell, check
from dnsrig.rundir import LinkSpec, PathSpec, Scalar, TrialSpec
from dnsrig.runs import sockets
from dnsrig.runs.trial import Trial
from dnsrig.servers import all_drivers
from dnsrig.text import digits


def _paths(spec: TrialSpec) -> Iterator[tuple[LinkSpec, PathSpec]]:
    """Each emulated direction of each link."""
    return ((link, path) for link in spec.links for path in (link.forward, link.reverse) if path is not None)


def _limits_segments(spec: TrialSpec) -> bool:
    return any(host.advmss_bytes or host.mss_clamp_bytes for host in spec.hosts.values())


def _has_small_mtu(spec: TrialSpec) -> bool:
    return any((path.mtu_bytes or math.inf) < link.mtu_bytes for link, path in _paths(spec))


@check(title="emulated links as requested", unit="%", applies=lambda spec: any(link.emulated for link in spec.links))
def path(trial: Trial) -> Seen:
    """Share of the emulated links that behaved as requested in a test before the trial: delay, loss, order, MTU
    (docs/explanation/network.md)."""
    ends = [set(link.ends) for link in trial.record.spec.links if link.emulated]
    found = [tested for tested in trial.record.link_tests if {tested.get("from"), tested.get("to")} in ends]
    if not found:
        return cannot_tell("no emulated link was tested before the start")
    good = [tested for tested in found if tested.get("works") and not tested.get("wrong")]
    trips = ", ".join(
        f"{digits(tested['rtt_median_us'] / 1e3, 4)} ms" for tested in found if tested.get("rtt_median_us")
    )
    return Seen(100 * len(good) / len(found), least=100.0, why=f"round trips {trips}" if trips else "")


@check(
    title="congestion control of the sender",
    applies=lambda spec: any(host.congestion for host in spec.hosts.values()),
)
def congestion(trial: Trial) -> Seen:
    """Congestion control of the socket that sent most, as reported by the kernel (TCP_INFO). It must be the one that
    the experiment set for its host.

    If there is an emulated path, only connections over it count. The congestion control of the other side does not
    affect what this side sends.
    """
    flow = sockets.largest(trial)
    if flow is None:
        return cannot_tell("no listed socket sent anything (sockets.arrow)")
    asked = trial.record.spec.hosts[flow.sender].congestion
    if asked is None:
        return cannot_tell(f"{flow.sender} sent most, and the experiment sets no congestion control for it")
    return Seen(flow.congestion, asked=asked, series=(f"{flow.sender}/sockets/congestion",))


@check(title="largest segment of the sender", unit="bytes", applies=_limits_segments)
def mss(trial: Trial) -> Seen:
    """Largest segment of the main sender (TCP_INFO): at most the size that a host requested or that a router on the
    path allows.

    The kernel counts a segment without its options, so it may be some bytes smaller. The size that a host requests
    applies to data sent to it. A short transfer may be listed when only its question was acknowledged; then the other
    side sent most, and the check cannot decide.
    """
    flow = sockets.largest(trial)
    if flow is None:
        return cannot_tell("no listed socket sent anything (sockets.arrow)")
    seen = flow.sent["mss_bytes"].max()
    if not isinstance(seen, int) or not seen:
        return cannot_tell("the kernel did not report it")
    limit = sockets.agreed_mss(trial, flow.sender, flow.receiver)
    if limit is None:
        return cannot_tell(f"{flow.sender} sent most, and nothing limits its segments")
    return Seen(seen, most=limit, asked=limit, series=(f"{flow.sender}/sockets/mss_bytes",))


@check(
    title="packets dropped because of their size",
    applies=lambda spec: _has_small_mtu(spec) and not _limits_segments(spec),
)
def packets_too_large(trial: Trial) -> Seen:
    """Number of packets that were dropped because they exceeded the MTU of the path, which is smaller than the
    interface MTU. Without such packets, the path MTU had no effect."""
    rows, phase = [rows for rows in trial.links().values() if not rows.is_empty()], trial.measure
    if not rows or phase is None:
        return cannot_tell("the link did not count them (only `tun` does)")
    measured = pl.col("time_ns").is_between(phase.start.monotonic_ns, phase.end.monotonic_ns)
    return Seen(sum(int(each.filter(measured)["too_big"].sum()) for each in rows), least=1, series=("link/too_big",))


@check(
    title="effective sysctls",
    unit="% of configured sysctls",
    applies=lambda spec: any(host.sysctls for host in spec.hosts.values()),
)
def sysctls(trial: Trial) -> Seen:
    """Share of the hosts' configured sysctls that had the configured value when read back."""
    read_back = trial.record.read_back.get("hosts", {})
    asked = [
        (host, name, value) for host, spec in trial.record.spec.hosts.items() for name, value in spec.sysctls.items()
    ]
    if not asked or not all(host in read_back for host, _, _ in asked):
        return cannot_tell("they were not read back")
    wrong = [
        f"{host}: {name} = {sockets.sysctl_of(trial, host, name)}"
        for host, name, value in asked
        if (sockets.sysctl_of(trial, host, name) or "").split() != value.split()
    ]
    return Seen(100 * (len(asked) - len(wrong)) / len(asked), least=100.0, why="; ".join(wrong))


@check(
    title="unsigned transfer",
    applies=lambda spec: spec.transfer.tsig and any(host.role == "primary" for host in spec.hosts.values()),
)
def unsigned_refused(trial: Trial) -> Seen:
    """The primary's answer to an unsigned AXFR when transfers must be signed (TSIG, RFC 8945): it must not send the
    zone.

    The check asks once, over TCP, after the measurement. If the primary refuses, the secondary got its zones with a
    signature.
    """
    if not (answer := trial.record.instruments.get("unsigned", {}).get("answer")):
        return cannot_tell("no unsigned transfer was requested")
    return Seen("sent" if answer == "NOERROR" else "refused", asked="refused", why=f"the primary answered {answer}")


@check(
    title="storage of the servers",
    applies=lambda spec: any(host.server is not None for host in spec.hosts.values()),
)
def storage(trial: Trial) -> Seen:
    """Storage of the servers: a tmpfs for memory, another file system for disk."""
    system = trial.record.instruments.get("storage", {}).get("file_system")
    if not system:
        return cannot_tell("the file system was not examined")
    return Seen("memory" if system == "tmpfs" else "disk", asked=trial.record.spec.storage, why=f"it is {system}")


WORDS = {"true": "yes", "on": "yes", "false": "no", "off": "no"}
UNITS = {
    "": [1],
    "s": [1],
    "m": [60, 1 << 20],
    "h": [3600],
    "d": [86_400],
    "w": [604_800],
    "k": [1 << 10],
    "g": [1 << 30],
}
"""Factors of units of times and sizes: `m` may be either."""


def _shows_settings(spec: TrialSpec) -> bool:
    """Whether the spec sets something of the server under test, and the server can report it."""
    subject = spec.hosts[spec.subject]
    known = all_drivers().get(subject.server.kind) if subject.server else None
    return bool(subject.settings and known and known.settings_command)


@check(title="settings effective on the server under test", unit="% of reported settings", applies=_shows_settings)
def settings_in_force(trial: Trial) -> Seen:
    """Share of the variant's settings for the server under test that the server then reported as effective.

    A running Knot DNS or PowerDNS is asked after the measurement. For BIND and NSD, their own `named-checkconf` and
    `nsd-checkconf` show how they read the configuration. Settings that they do not show, or show in a different
    notation, do not count. A variant without settings has no such check.
    """
    shown = trial.record.instruments.get("settings", {})
    named = trial.record.spec.hosts[trial.subject].settings
    compared = {name: same(value, str(shown[name])) for name, value in named.items() if name in shown}
    reported = [name for name, value in compared.items() if value is not None]
    if not reported:
        return cannot_tell("the server did not report them")
    others = [f"{name} is {shown[name]}, not {named[name]}" for name in reported if not compared[name]]
    return Seen(100 * (len(reported) - len(others)) / len(reported), least=100.0, why="; ".join(others))


def same(named: Scalar, shown: str) -> bool | None:
    """Whether both are the same value; None if only one is a number.

    >>> same(True, "on"), same("2w", "1209600"), same("4m", "4194304"), same(1, "PT1S"), same("none", "all")
    (True, True, True, None, False)
    """
    asked, found = (readings(text) for text in (str(named), shown))
    if isinstance(asked, set) != isinstance(found, set):
        return None
    return bool(asked & found) if isinstance(asked, set) and isinstance(found, set) else asked == found


def readings(text: str) -> set[float] | str:
    """The numbers that ``text`` may mean, or its words."""
    word = " ".join(text.strip().strip('"').lower().split())
    if match := re.fullmatch(r"(-?\d+(?:\.\d+)?) ?([smhdwkg]?)", word):
        return {float(match[1]) * factor for factor in UNITS[match[2]]}
    return WORDS.get(word, word)


@check(title="kernel of the trial", applies=lambda spec: True)
def kernel(trial: Trial) -> Seen:
    """Kernel of the trial: the machine's own, or a stock kernel in User-mode Linux."""
    kind = trial.record.read_back.get("kernel", {}).get("kind")
    return Seen(kind, asked=trial.record.spec.kernel) if kind else cannot_tell("it was not recorded")


@check(title="files in the page cache at the start", unit="% of their pages")
def page_cache(trial: Trial) -> Seen:
    """Share of the pages of the server's files that were in the page cache (mincore(2)) at its start. A cold start must
    read them from disk.

    For a cold start at most 2 % may be there: the check itself reads a few pages. For a warm start at least 95 %: the
    kernel may drop pages if it lacks memory.
    """
    share = trial.record.instruments.get("page-cache", {}).get("cached_share")
    if share is None:
        return cannot_tell("the page cache was not examined")
    if trial.record.spec.options["page_cache"] == "cold":
        return Seen(100 * share, most=2.0, asked="cold")
    return Seen(100 * share, least=95.0, asked="warm")
