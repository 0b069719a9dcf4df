"""Whether CPUs that have nothing to do may sleep.

The deeper a CPU sleeps the later it wakes. A virtual one is given back to the hypervisor, which may take milliseconds
to bring it back; each query that finds the server idle waits for that. Whoever holds /dev/cpu_dma_latency open says how
long waking may take (the kernel's Documentation/power/pm_qos_interface.rst): for 0 an idle CPU polls.
"""

from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import Iterator
from pathlib import Path

from dnsrig.lab import uml

DEVICE = Path("/dev/cpu_dma_latency")
LATENCY = struct.Struct("=i")
"""Microseconds, as written to the device and read from it."""


@contextlib.contextmanager
def awake(wanted: bool = True) -> Iterator[None]:
    """While this lasts idle CPUs poll, if it is ``wanted`` and allowed; `wakeup_latency_us` tells whether they do."""
    with contextlib.ExitStack() as held:
        if wanted:
            with contextlib.suppress(OSError):
                device = os.open(DEVICE, os.O_WRONLY | os.O_CLOEXEC)
                held.callback(os.close, device)
                os.write(device, LATENCY.pack(0))
        yield


def wakeup_latency_us() -> int | None:
    """How long waking may take at present; None where the kernel does not tell, as one in User-mode Linux."""
    if uml.inside():
        return None
    try:
        return int(LATENCY.unpack(DEVICE.read_bytes()[: LATENCY.size])[0])
    except (OSError, struct.error):
        return None
