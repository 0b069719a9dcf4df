"""What can spoil the figures of a machine, each with a remedy: for `dnsrig check` and `dnsrig calibrate`.

Every look ends in a remark: that all is well, what to do, or that the machine does not report it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from dnsrig.lab import clock, conditions, idle, ledger, nics

CPUS = Path("/sys/devices/system/cpu")
NODES = Path("/sys/devices/system/node")
CLOCKSOURCE = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
STAT = Path("/proc/stat")
BUSY_LOAD = 0.5
"""Programs that run on average, from which something else uses the CPUs."""
STEAL_SHARE = 0.01
"""Share of the CPUs' time. A trial is disturbed from 5 % on; a calibration that lost 1 % had such trials."""
OTHERS_SHARE = 0.02
"""Share of the CPUs' time while dnsrig rests. The kernel and an idle system's services take less."""


Grade = Literal["good", "note", "bad", "not known"]


@dataclass(frozen=True)
class Remark:
    """A fact about a machine, how much it matters, and a remedy.

    ``bad`` keeps dnsrig from working; a ``note`` is something that results may depend on; ``not known`` means that the
    machine does not report it.
    """

    what: str
    grade: Grade
    says: str
    remedy: str = ""


def remarks() -> Iterator[Remark]:
    for look in LOOKS:
        yield from look()


def _cpus() -> Iterator[Remark]:
    available = len(os.sched_getaffinity(0))
    if available >= 2:
        yield Remark("CPUs", "good", f"{available}: the server under test has one for itself")
    else:
        yield Remark(
            "CPUs", "note", "one: server, instruments and peer share it", "use a machine with two or more CPUs"
        )


def _smt() -> Iterator[Remark]:
    active = conditions.read(CPUS / "smt/active")
    if active is None:
        yield Remark("SMT", "not known", "the kernel does not tell whether CPUs share cores")
    elif active == "0":
        yield Remark("SMT", "good", "no CPU shares its core with another one, as far as the kernel knows")
    else:
        yield Remark(
            "SMT",
            "note",
            "CPUs share cores: what runs on one slows the other",
            f"echo off > {CPUS}/smt/control",
        )


def _numa() -> Iterator[Remark]:
    nodes = sorted(folder.name for folder in NODES.glob("node[0-9]*"))
    if not nodes:
        yield Remark("NUMA", "not known", "the kernel does not tell how its memory is laid out")
    elif len(nodes) == 1:
        yield Remark("NUMA", "good", "one node: all memory is equally near")
    else:
        yield Remark(
            "NUMA",
            "note",
            f"{len(nodes)} nodes: the memory of another one is farther, and packets cross between them",
            "numactl --cpunodebind=0 --membind=0 dnsrig run EXPERIMENT",
        )


def _governor() -> Iterator[Remark]:
    governor = conditions.read(CPUS / "cpu0/cpufreq/scaling_governor")
    driver = conditions.read(CPUS / "cpu0/cpufreq/scaling_driver")
    if governor is None:
        yield Remark("CPU frequency", "not known", "the kernel does not set it here; a hypervisor or firmware may")
    elif governor == "performance":
        yield Remark("CPU frequency", "good", f"governor performance ({driver or 'driver not known'})")
    else:
        yield Remark(
            "CPU frequency",
            "note",
            f"governor {governor} ({driver or 'driver not known'}): the clock rate varies with load",
            "cpupower frequency-set -g performance",
        )


def _idle() -> Iterator[Remark]:
    deepest = _deepest_sleep()
    told = "C-states not known" if deepest is None else f"the deepest C-state wakes after {deepest:,} µs"
    if os.access(idle.DEVICE, os.W_OK):
        yield Remark("idle CPUs", "good", f"are kept awake in trials, so none wakes late ({told})")
    else:
        yield Remark(
            "idle CPUs",
            "note",
            f"may sleep, and wake late: {idle.DEVICE} cannot be written ({told})",
            f"run as root; in a container, pass it on (e.g. `--device {idle.DEVICE}`)",
        )


def _deepest_sleep() -> int | None:
    """How long waking from it takes, in µs; None where the kernel lists no C-states."""
    told = [conditions.read(file) for file in (CPUS / "cpu0/cpuidle").glob("state*/latency")]
    return max((int(latency) for latency in told if latency and latency.isdigit()), default=None)


def _interrupts() -> Iterator[Remark]:
    """Look at interrupts. veth has none: its packets are work of the sender."""
    found = nics.found()
    if not found:
        yield Remark("interrupts", "not known", "no physical network interface is seen here; veth has no interrupts")
    for nic in found:
        if not nic.interrupts:
            yield Remark(f"interrupts {nic.name}", "not known", "the kernel does not list those of this interface")
            continue
        number = next(iter(nic.interrupts))
        cpus = ", ".join(dict.fromkeys(nic.interrupts.values()))
        yield Remark(
            f"interrupts {nic.name}",
            "note",
            f"{len(nic.interrupts)} may go to CPUs {cpus}: traffic there takes time of whatever runs on them; veth has none",
            f"echo 0 > /proc/irq/{number}/smp_affinity_list (and so on for each), with irqbalance stopped",
        )


def _autogroups() -> Iterator[Remark]:
    if conditions.read(conditions.AUTOGROUPS) == "1":
        yield Remark(
            "autogroups",
            "note",
            "the kernel shares CPUs by session (sched(7)): a program of another one that is nice, or idle, is not",
            "sysctl -w kernel.sched_autogroup_enabled=0, if something has to run beside a measurement",
        )


def _load() -> Iterator[Remark]:
    load = os.getloadavg()[0]
    if load > BUSY_LOAD:
        yield Remark(
            "load",
            "note",
            f"{load:.1f} programs run on average: something else uses the CPUs",
            "`top` shows what it is; stop it",
        )
    if tags := ledger.live():
        yield Remark("other trials", "note", f"dnsrig is measuring already ({', '.join(tags)})", "wait until it ends")


def _virtual() -> Iterator[Remark]:
    if "hypervisor" in Path("/proc/cpuinfo").read_text():
        yield Remark(
            "hypervisor",
            "note",
            "a virtual machine: other guests may take CPU time",
            "trust ratios within one run, not absolute figures",
        )


def _clock() -> Iterator[Remark]:
    source = conditions.read(CLOCKSOURCE)
    if source is None:
        yield Remark("clock source", "not known", "the kernel does not tell what it reads the time from")
    elif source in ("tsc", "kvm-clock"):
        yield Remark("clock source", "good", f"{source}: reading the time is quick")
    else:
        yield Remark(
            "clock source",
            "note",
            f"{source}: reading the time is slow",
            "boot with clocksource=tsc if the CPU's is stable",
        )
    state = clock.synchronisation()
    if state is not None and not state.synchronised:
        yield Remark(
            "wall clock", "note", "not synchronised: times in logs may be off", "run an NTP client, e.g. chrony"
        )


LOOKS: tuple[Callable[[], Iterator[Remark]], ...] = (
    _cpus, _smt, _numa, _governor, _idle, _interrupts, _autogroups, _load, _virtual, _clock,
)  # fmt: skip


@dataclass(frozen=True)
class CpuTimes:
    """What the CPUs did since the start of the machine, all together, in ticks (proc(5), /proc/stat)."""

    busy: int
    """Without what the hypervisor took."""
    steal: int
    whole: int

    @staticmethod
    def now() -> CpuTimes | None:
        try:
            return times(STAT.read_text())
        except OSError:
            return None


def times(stat: str) -> CpuTimes | None:
    """Read the first line: user, nice, system, idle, iowait, irq, softirq, steal; the first two include guests."""
    name, _, rest = stat.partition("\n")[0].partition(" ")
    fields = rest.split()
    if name != "cpu" or len(fields) < 8 or not all(field.isdigit() for field in fields):
        return None
    user, nice, system, idle_, iowait, irq, softirq, steal = map(int, fields[:8])
    busy = user + nice + system + irq + softirq
    return CpuTimes(busy, steal, busy + idle_ + iowait + steal)


def steal(before: CpuTimes | None, after: CpuTimes | None) -> Remark:
    """Judge what the hypervisor took between two readings."""
    if before is None or after is None or after.whole <= before.whole:
        return Remark("steal", "not known", f"{STAT} does not tell")
    share = (after.steal - before.steal) / (after.whole - before.whole)
    if share < STEAL_SHARE:
        return Remark("steal", "good", f"the hypervisor took {share:.2%} of the CPUs' time meanwhile")
    return Remark(
        "steal",
        "note",
        f"the hypervisor took {share:.1%} of the CPUs' time meanwhile",
        "choose dedicated CPUs of the hypervisor, or measure at another time",
    )


def others(before: CpuTimes | None, after: CpuTimes | None) -> Remark:
    """Judge what all other programs did between two readings, while dnsrig rested."""
    if before is None or after is None or after.whole <= before.whole:
        return Remark("other load", "not known", f"{STAT} does not tell")
    share = (after.busy - before.busy) / (after.whole - before.whole)
    if share < OTHERS_SHARE:
        return Remark("other load", "good", f"others took {share:.1%} of the CPUs' time while dnsrig rested")
    return Remark(
        "other load",
        "note",
        f"others took {share:.0%} of the CPUs' time while dnsrig rested",
        "`top` shows what it is; stop it, and calibrate again",
    )
