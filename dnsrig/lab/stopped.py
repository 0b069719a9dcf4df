"""Whether this process was stopped (SIGSTOP) and continued: what it was to do meanwhile was done too late."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator

from dnsrig.errors import DnsrigError

TICK_S = 0.25
STOPPED_LEAST_S = 1.0
"""A shorter stop is no worse than what a busy CPU does."""


class Stops:
    def __init__(self) -> None:
        self.longest_s = 0.0
        """The longest time in which no thread could run, beyond a tick."""
        self.continued = False

    def check(self) -> None:
        """Raise DnsrigError if this process was stopped for long."""
        if self.continued and self.longest_s >= STOPPED_LEAST_S:
            raise DnsrigError(
                f"the process of this trial was stopped for {self.longest_s:.1f} s (SIGSTOP), so it was late",
                hint="do not stop it; --resume repeats the trial",
            )


@contextlib.contextmanager
def noticed() -> Iterator[Stops]:
    """Notice each stop of this process meanwhile. A thread's late ticks tell how long it was; SIGCONT tells them from a
    busy CPU."""
    found, over = Stops(), threading.Event()

    def continued(*_: object) -> None:
        found.continued = True

    def tick() -> None:
        last_s = time.monotonic()
        while not over.wait(TICK_S):
            now_s = time.monotonic()
            found.longest_s = max(found.longest_s, now_s - last_s - TICK_S)
            last_s = now_s

    before = signal.signal(signal.SIGCONT, continued)
    thread = threading.Thread(target=tick, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join()
        signal.signal(signal.SIGCONT, before)
