"""Links that the engine emulates: a TUN interface on each host, and `link` between them."""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dnsrig import paths
from dnsrig.errors import DnsrigError
from dnsrig.lab import process
from dnsrig.lab.host import Host
from dnsrig.lab.links import Place, ends
from dnsrig.lab.process import Process
from dnsrig.rundir import FarSpec, LinkSpec, PathSpec

READY_LIMIT_S = 10.0
STOP_LIMIT_S = 10.0
TUN_DEVICE = Path("/dev/net/tun")

DESCRIPTION = "the engine emulates paths, at up to some hundred Mbit/s"
ORDER = 2
EMULATES = FAR_DELAYS = WRITES_ROWS = True
BETWEEN_MACHINES = False
HEADER_BYTES = 0
"""A TUN interface has none."""
REMEDY = f"`modprobe tun`; in a container also `mkdir -p {TUN_DEVICE.parent} && mknod {TUN_DEVICE} c 10 200`"


def unavailable() -> str | None:
    """Why this kernel cannot make a TUN device, if so. The engine is there in any case."""
    return None if TUN_DEVICE.exists() else f"there is no {TUN_DEVICE}"


@dataclass
class TunLink:
    """`link` at work."""

    name: str
    process: Process
    events: Path
    errors: Path
    scratch: tempfile.TemporaryDirectory[str] | None = None
    summary: dict[str, Any] | None = None
    ended_early: bool = False
    began_s: float = 0.0

    def check(self) -> None:
        if not self.process.running and not self.process.stopped_by_us:
            raise self._failed()

    def finish(self) -> dict[str, Any] | None:
        if not self.process.stopped_by_us and not self.ended_early:
            self.ended_early = not self.process.running
            self.process.stop(limit_s=STOP_LIMIT_S)
            self.summary = None if self.ended_early else self.last("summary")
            if self.scratch is not None:
                self.scratch.cleanup()
        return self.summary

    def last(self, kind: str) -> dict[str, Any] | None:
        """The last event of this kind so far."""
        found = None
        for line in self.events.read_text(errors="replace").splitlines():
            try:
                event = json.loads(line)
            except ValueError:
                continue  # it is being written
            if isinstance(event, dict) and event.get("event") == kind:
                found = event
        return found

    def await_ready(self) -> None:
        """Until both interfaces are there."""
        deadline = time.monotonic() + READY_LIMIT_S
        while (ready := self.last("ready")) is None:
            if not self.process.running or time.monotonic() > deadline:
                raise self._failed()
            time.sleep(0.005)
        ago_s = time.monotonic() - ready["monotonic_ns"] / 1e9
        self.began_s = time.clock_gettime(time.CLOCK_REALTIME) - ago_s

    def _failed(self) -> DnsrigError:
        how = self.process.how_it_ended() if not self.process.running else f"was not ready in {READY_LIMIT_S:g} s"
        sentence, _, hint = self.errors.read_text(errors="replace").strip()[-600:].partition("\nhint: ")
        return DnsrigError(f"the link {self.name} {how}: {sentence}", hint=hint)


def make(left: Host, right: Host, spec: LinkSpec, place: Place) -> TunLink:
    """Join two hosts by the engine's `link`, which has its place on the carrier's CPUs and goes first there."""
    name = f"link-{spec.name}"
    scratch = tempfile.TemporaryDirectory(prefix="dnsrig-") if place.directory is None else None
    folder = Path(scratch.name) if scratch else Path(place.directory or "", "instruments")
    folder.mkdir(exist_ok=True)
    events, errors = folder / f"{name}.jsonl", folder / f"{name}.stderr"
    command = [str(paths.engine()), "link", *arguments(left, right, spec, place.seed)]
    if place.directory is not None:
        command.append(f"--out={place.directory / name}.arrow")
    with events.open("wb") as output, errors.open("wb") as complaints:
        # Standard input is a pipe that closes with us, which ends it.
        started = process.start(name, place.carrier, command, stdin=subprocess.PIPE, stdout=output, stderr=complaints)
    link = TunLink(name, started, events, errors, scratch)
    try:
        link.await_ready()
        started.go_first()
        for here, there in ((left, right), (right, left)):
            ends.set_up(here, there, mtu_bytes=spec.mtu_bytes)
    except BaseException:
        link.finish()
        raise
    return link


def arguments(left: Host, right: Host, spec: LinkSpec, seed: int) -> list[str]:
    """Make the arguments of `link` from ``spec``."""
    found = [
        f"--left={left.namespace_path},{right.name}",
        f"--right={right.namespace_path},{left.name}",
        f"--mtu={spec.mtu_bytes}",
        f"--seed={seed}",
        "--until-eof",
    ]
    for option, path in (("forward", spec.forward), ("reverse", spec.reverse)):
        if path is not None and (words := direction(path)):
            found.append(f"--{option}={words}")
    return found


def direction(path: PathSpec) -> str:
    """A direction as `link` takes it.

    >>> direction(PathSpec(rate_mbit=20, delay_ms=125, jitter_ms=50))
    'rate=20mbit,delay=125ms,jitter=50ms,order=kept,loss=0%,limit=1000'
    """
    words = [f"rate={_number(path.rate_mbit)}mbit"] if path.rate_mbit is not None else []
    words += [f"delay={_number(path.delay_ms)}ms", f"jitter={_number(path.jitter_ms)}ms"]
    words.append(f"order={'kept' if path.ordered else 'free'}")
    words.append(f"loss={_number(path.loss_percent_at(0))}%")
    words += [f"loss-at={_number(after_s)}s:{_number(percent)}%" for after_s, percent in path.loss_over_time if after_s]
    words.append(f"limit={path.limit_packets}")
    if path.mtu_bytes is not None:
        words += [f"mtu={path.mtu_bytes}", f"icmp={'sent' if path.icmp else 'blocked'}"]
    return ",".join(words + (_far(path.far) if path.far is not None else []))


def _far(far: FarSpec) -> list[str]:
    """Each direction has half of a round trip."""
    classes = (
        f"{_number(low / 2)}ms..{_number(high / 2)}ms:{_number(weight)}" for low, high, weight in far.rtt_classes
    )
    return [*(f"far={prefix}" for prefix in far.prefixes), f"far-delay={'+'.join(classes)}", f"far-seed={far.seed}"]


def _number(value: float) -> str:
    """Without an exponent: 0.00001, not 1e-05."""
    return f"{value:.9f}".rstrip("0").rstrip(".")
