"""Databases in a trial: they are started and filled, and a replica is watched until everything has arrived."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dnsrig.errors import DnsrigError
from dnsrig.lab import host
from dnsrig.procedures.context import TrialContext
from dnsrig.procedures.context.workspace import ServerFailed
from dnsrig.servers import driver_of
from dnsrig.servers.database import Console, Database

LOOK_EVERY_S = 0.02
"""Time between two looks at a database, and so the resolution of its moments."""
LOOK_SHARE_MOST = 0.2
"""Largest share of the time in which looks keep a database busy: a list of very many zones takes a while."""
CLOSE_LIMIT_S = 60.0


def console(context: TrialContext, name: str) -> Console:
    """Connect to the database of host ``name``, at that host's own address. Raises OSError or DnsrigError if it is not
    ready."""
    kind = driver_of(context.servers.placements[name].source)
    assert isinstance(kind, Database)
    with host.inside(context.host(name).namespace):
        return kind.console(context.host(name).address)


def start_ready(context: TrialContext, name: str, *, limit_s: float) -> None:
    """Configure and start the database of host ``name`` and wait until it can be used."""
    context.servers.prepare(name)
    context.servers.start(name)
    if why := _wait(context, name, lambda at: True, limit_s):
        raise ServerFailed(f"the database on host {name} was not ready within {limit_s:g} s{why}")


def wait_filled(context: TrialContext, name: str, *, limit_s: float) -> int:
    """Wait until the database has all zones of the dataset: its position then.

    Its content then is recorded as the summary ``name``.
    """
    wanted, seen = context.spec.dataset.zones, dict[str, Any]()

    def filled(at: Console) -> bool:
        if at.zones() < wanted:
            return False
        seen.update(zones=wanted, filled_ns=time.monotonic_ns(), position=at.position(), **at.facts())
        return True

    if why := _wait(context, name, filled, limit_s):
        raise ServerFailed(f"the database on host {name} did not get all {wanted:,} zones within {limit_s:g} s{why}")
    context.summaries[name] = seen
    return int(seen["position"])


class TooLate(Exception):
    """A database at the far site was not ready within the limit of the trial. This is a result."""


def wait_far(context: TrialContext, name: str) -> None:
    """Wait, within the limit of the trial, until the database of host ``name`` that was started can be used."""
    limit_s = context.spec.limit_s
    if why := _wait(context, name, lambda at: True, limit_s):
        raise TooLate(f"the database on host {name} was not ready after {limit_s:g} s{why}")


def _wait(context: TrialContext, name: str, holds: Callable[[Console], bool], limit_s: float) -> str | None:
    """Look at the database repeatedly until ``holds``. Return None, or after ``limit_s`` the reason from the last look.

    Each look has its own connection: after a late answer the old one is useless.
    """
    deadline, met = time.monotonic() + limit_s, " (no look was made)"
    while (begun := time.monotonic()) < deadline:
        try:
            with contextlib.closing(console(context, name)) as at:
                if holds(at):
                    return None
            met = " (it answers)"
        except (OSError, DnsrigError) as error:
            met = f" ({error})"  # not ready yet
        took_s = time.monotonic() - begun
        context.rest(max(LOOK_EVERY_S, took_s / LOOK_SHARE_MOST))
    return met


@dataclass
class Follower:
    """Looks at a replica, in a thread, and records when it has everything that its original had.

    The replica may not exist yet, and it answers late while it loads. A look that fails is repeated.
    """

    context: TrialContext
    name: str
    position: int
    """Position of the original before the replica was started."""
    _ended: threading.Event = field(default_factory=threading.Event)
    _seen: dict[str, Any] = field(default_factory=lambda: {"stored_ns": None, "unstored_ns": None, "looks": 0})
    _thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread, and record what it saw as the summary of the replica's name."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(CLOSE_LIMIT_S)
        self.context.summaries[self.name] = dict(self._seen)

    def _follow(self) -> None:
        at: Console | None = None
        while not self._ended.is_set():
            asked_ns = time.monotonic_ns()
            self._seen["looks"] += 1
            try:
                at = at or console(self.context, self.name)
                if at.has_all(self.position):
                    self._seen["stored_ns"] = time.monotonic_ns()
                    self._seen |= at.facts()
                    break
            except (OSError, DnsrigError):
                if self._seen["stored_ns"] is not None:
                    break  # it has all, and only its facts are missing
                if at is not None:
                    at.close()
                at = None
            self._seen["unstored_ns"] = asked_ns
            self._ended.wait(LOOK_EVERY_S)
        if at is not None:
            at.close()
