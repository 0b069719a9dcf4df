"""Packets as they come to a host, captured by tcpdump: a witness of what was sent that is no part of dnsrig."""

from __future__ import annotations

import re
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from dnsrig.confinement import ENVIRONMENT
from dnsrig.errors import DnsrigError
from dnsrig.lab import process
from dnsrig.lab.host import Host

START_LIMIT_S = 10.0
HELD_BACK_S = 1.5
"""The kernel hands packets to tcpdump up to a second late (its `--immediate-mode` costs CPU a packet instead)."""
BUFFER_KIB = 262_144
"""Buffer of the kernel: 1.5 s at 1 M packets a second, so that a short delay of tcpdump loses nothing."""
DROPPED = re.compile(r"^(\d+) packets dropped by kernel", re.MULTILINE)


@dataclass
class Capture:
    """A capture that is under way or has ended."""

    file: Path
    dropped: int | None = None
    """Packets that tcpdump missed; None: it has not ended, or did not say."""


def unavailable() -> str | None:
    """Why nothing can be captured here; None if it can."""
    found = shutil.which("tcpdump", path=ENVIRONMENT["PATH"])
    return None if found else "tcpdump is not installed: apt-get install tcpdump (or your distribution's package)"


@contextmanager
def capturing(
    host: Host, interface: str, expression: str, file: Path, direction: Literal["in", "out", "inout"] = "in"
) -> Iterator[Capture]:
    """Capture what comes to ``interface`` of ``host``, or leaves by it, and is as ``expression`` says (pcap-filter(7))
    while what is inside runs. tcpdump runs on the host's CPUs, and counts as its work."""
    if reason := unavailable():
        raise DnsrigError(reason)
    errors = file.with_suffix(".log")
    command = ["tcpdump", "-i", interface, "-n", "-s", "0", "-B", str(BUFFER_KIB), f"--direction={direction}"]
    command += ["--time-stamp-precision=nano", "-Z", "root", "-w", str(file), expression]
    capture = Capture(file)
    with errors.open("w") as output:
        tcpdump = process.start("tcpdump", host, command, stderr=output)
        tcpdump.stop_signal = signal.SIGINT
        try:
            _await_start(tcpdump, errors)
            yield capture
            time.sleep(HELD_BACK_S)
            if not tcpdump.running:
                raise DnsrigError(
                    f"tcpdump {tcpdump.how_it_ended()}: {errors.read_text(errors='replace')[-300:].strip()}"
                )
        finally:
            tcpdump.stop()
    said = DROPPED.search(errors.read_text(errors="replace"))
    capture.dropped = int(said[1]) if said else None


def _await_start(tcpdump: process.Process, errors: Path) -> None:
    deadline = time.monotonic() + START_LIMIT_S
    while "listening on" not in (said := errors.read_text(errors="replace")):
        if not tcpdump.running or time.monotonic() > deadline:
            raise DnsrigError(f"tcpdump did not start: {said.strip()[-300:]}")
        time.sleep(0.02)
