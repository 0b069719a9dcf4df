"""Hosts on other machines, their interfaces and clocks, and generators, as rows of tables: column -> cell. All is
empty of a run that has none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dnsrig.report import conditions, figures
from dnsrig.report.conditions import text, value_range
from dnsrig.rundir import ClockRecord
from dnsrig.runs.load_result import LoadResult
from dnsrig.runs.run import Run

HERE = "this machine"
FOLDED_FROM = 3
"""Entries of a list from which it is folded away."""


@dataclass(frozen=True)
class Folded:
    """A cell of which the rest is shown on demand."""

    summary: str
    rest: str


Row = dict[str, str | Folded]


def other_machines(run: Run) -> list[Row]:
    """One entry a machine; `differing` tells in what else it is not as this one."""
    return [
        {
            "machine": name,
            "hosts": ", ".join(_hosts_on(run).get(name, [])),
            "kernel": text(told.get("kernel")),
            "CPU": text(told.get("cpu_model")),
            "CPUs": text(told.get("cpus")),
        }
        for name, told in _told(run).items()
    ]


def differing(run: Run) -> dict[str, dict[str, str]]:
    """Machine, this one first -> what is not the same on all, but for what `other_machines` says and every boot
    changes."""
    said = ("other_machines", "boot_id", "kernel", "cpu_model", "cpus", "plugins")
    machines = {HERE: run.manifest.conditions, **_told(run)}
    columns = {
        name: conditions.flatten({fact: value for fact, value in told.items() if fact not in said})
        for name, told in machines.items()
    }
    return conditions.differing(columns) if len(columns) > 1 else {}


def interfaces(run: Run) -> list[Row]:
    """One entry an interface; hosts of a machine with the same one stand together."""
    found: dict[str, tuple[str, dict[str, Any], list[str]]] = {}
    for trial in run.trials:
        for host, facts in trial.record.read_back.get("nics", {}).items():
            spec = trial.record.spec.hosts.get(host)
            machine = (spec.machine if spec else None) or HERE
            hosts = found.setdefault(f"{machine} {facts!r}", (machine, facts, []))[2]
            hosts.extend([host] if host not in hosts else [])
    return [
        {"hosts": ", ".join(hosts), "machine": machine, **_interface(facts)} for machine, facts, hosts in found.values()
    ]


def clocks(run: Run) -> list[Row]:
    """One entry a machine, over all trials."""
    return [_clock(name, [clock for clock in found if clock]) for name, found in _clocks(run).items()]


def generators(run: Run) -> list[Row]:
    """One entry a host that had its share of a load, over all trials."""
    found: dict[tuple[str, str], list[LoadResult]] = {}
    for trial in run.trials:
        for host, load in trial.loads.items():
            if f"load-{host}" in trial.record.instruments:
                machine = trial.record.spec.hosts[host].machine or HERE
                found.setdefault((host, machine), []).append(load)
    return [
        {
            "host": host,
            "machine": machine,
            "sent": _range("queries", [load.sent for load in loads]),
            "send lag, p99": _range("lag_ns", [p99 for load in loads if (p99 := load.lag_ns.get("p99")) is not None]),
            "busiest thread": _range("busy_percent", [100 * load.busy_share for load in loads]),
            "real time": value_range("real_time", [load.real_time for load in loads])[1],
        }
        for (host, machine), loads in found.items()
    ]


def summary(run: Run) -> str:
    """One line; empty without hosts on other machines."""
    by_machine = _hosts_on(run)
    if not by_machine:
        return ""
    hosts = sum(map(len, by_machine.values()))
    known = [clock.error_ns for found in _clocks(run).values() for clock in found if clock]
    clocks = f"; their clocks are known to ± {figures.figure(max(known) / 1e9, 's')}" if known else ""
    return f"{figures.count(hosts, 'host')} on other machines ({', '.join(by_machine)}){clocks}"


def _told(run: Run) -> Mapping[str, Mapping[str, Any]]:
    """Other machine -> its conditions."""
    found: Mapping[str, Mapping[str, Any]] = run.manifest.conditions.get("other_machines", {})
    return found


def _hosts_on(run: Run) -> dict[str, list[str]]:
    """Other machine -> the hosts there, in any variant."""
    found: dict[str, dict[str, None]] = {}
    for spec in run.manifest.specs.values():
        for name, host in spec.hosts.items():
            if host.machine is not None:
                found.setdefault(host.machine, {})[name] = None
    return {machine: list(hosts) for machine, hosts in found.items()}


def _clocks(run: Run) -> dict[str, list[ClockRecord | None]]:
    found: dict[str, list[ClockRecord | None]] = {}
    for trial in run.trials:
        for name, seen in trial.record.machines.items():
            found.setdefault(name, []).append(seen.clock)
    return found


def _interface(facts: Mapping[str, Any]) -> Row:
    channels = {name: count for name, count in facts.get("channels", {}).items() if count and name != "other"}
    queues = channels or {way: facts[key] for way, key in (("rx", "queues_rx"), ("tx", "queues_tx")) if facts.get(key)}
    rings = f"; rings {text(facts['rings'])}" if facts.get("rings") else ""
    steering = f"; RPS {text(facts['receive_packet_steering'])}" if facts.get("receive_packet_steering") else ""
    speed = f"{facts['speed_mbit']:,} Mbit/s" if facts.get("speed_mbit") else figures.NONE
    half = ", half duplex" if facts.get("duplex") == "half" else ""
    irqs, offloads = facts.get("irqs", {}), facts.get("offloads", [])
    on_cpus = f"{len(irqs):,} on CPUs {_runs(irqs.values())}"
    return {
        "interface": text(facts.get("name")),
        "driver": text(facts.get("driver")),
        "speed": f"{speed}{half}",
        "queues": f"{text(queues)}{rings}",
        "RSS": f"{figures.count(facts['rss_rings'], 'ring') if facts.get('rss_rings') else figures.NONE}{steering}",
        "NUMA node": text(facts.get("numa_node")),
        "interrupts": _folded(on_cpus, [f"{number}: CPU {cpus}" for number, cpus in irqs.items()]),
        "offloads": _folded(f"{len(offloads):,} on", offloads),
    }


def _folded(summary: str, entries: list[str]) -> str | Folded:
    return Folded(summary, ", ".join(entries)) if len(entries) >= FOLDED_FROM else ", ".join(entries) or figures.NONE


def _runs(cpus: Iterable[str]) -> str:
    """
    >>> _runs(["0", "1", "2", "5", "1"]), _runs(["0-3", "8"])
    ('0-2, 5', '0-3, 8')
    """
    listed = list(dict.fromkeys(cpus))
    if not all(each.isascii() and each.isdecimal() for each in listed):
        return ", ".join(listed)
    runs: list[list[int]] = []
    for cpu in sorted(map(int, listed)):
        if runs and runs[-1][-1] == cpu - 1:
            runs[-1].append(cpu)
        else:
            runs.append([cpu])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def _clock(machine: str, found: list[ClockRecord]) -> Row:
    """``offset``: its clock less this machine's."""
    return {
        "machine": machine,
        "offset": _ends([_ahead(ns) for ns in sorted(clock.offset_ns for clock in found)]),
        "±": _range("error_ns", [clock.error_ns for clock in found]),
        "drift, ppm": _ends([f"{ppb / 1e3:+.2f}" for ppb in sorted(clock.drift_ppb for clock in found)]),
        "wall clock": _ends([_ahead(ns) for ns in sorted(clock.realtime_offset_ns for clock in found)]),
        "wall clock ±": _range("error_ns", [clock.realtime_error_ns for clock in found]),
        "comparisons": _range("comparisons", [clock.comparisons for clock in found]),
        "trials": f"{len(found):,}",
    }


def _ahead(ns: int) -> str:
    """
    >>> _ahead(2_780), _ahead(-3_700_000_000), _ahead(86_400_000_000_657)
    ('+2.78 µs', '-3.700 s', '+1 d 0:00:00.000')
    """
    sign, ms = "-" if ns < 0 else "+", round(abs(ns) / 1e6)
    if ms < 1_000:
        return f"{sign}{figures.figure(abs(ns) / 1e9, 's')}"
    if ms < 60_000:
        return f"{sign}{ms / 1e3:.3f} s"
    days, rest = divmod(ms, 86_400_000)
    hours, minutes = rest // 3_600_000, rest // 60_000 % 60
    return f"{sign}{f'{days:,} d ' if days else ''}{hours}:{minutes:02}:{rest % 60_000 / 1e3:06.3f}"


def _ends(sorted_texts: list[str]) -> str:
    """``low..high``, or what both are."""
    return "..".join(dict.fromkeys([*sorted_texts[:1], *sorted_texts[-1:]])) or figures.NONE


def _range(name: str, values: Iterable[float]) -> str:
    return value_range(name, list(values))[1]
