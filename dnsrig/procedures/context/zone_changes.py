"""Changes of the zones of a primary: a next version that it loads, or changes that it makes by itself."""

from __future__ import annotations

import shutil
import signal
import time
from dataclasses import dataclass
from typing import Any

from dnsrig.confinement import as_user
from dnsrig.errors import DnsrigError
from dnsrig.procedures.context.servers import Servers
from dnsrig.procedures.instrument import START_LIMIT_S, last_event
from dnsrig.servers import driver_of

NEXT = ".next"
"""Ending of a zone file that waits to take the place of the one without it."""


@dataclass
class ZoneChanges:
    servers: Servers

    def lay_out(self, name: str) -> None:
        """Copy the next version of the zones beside the zones of the primary of host ``name``. Nothing changes yet."""
        source, target = self.servers.workspace.next_dataset, self.servers.placements[name].dataset
        assert source is not None
        with as_user(source) as old, as_user(target) as new:
            for path in (path for path in old.rglob("*") if path.is_file()):
                made = new / path.relative_to(old)
                shutil.copyfile(path, made.with_name(made.name + NEXT))

    def load(self, name: str) -> None:
        """Put what was laid out in the place of the old version, by renaming, and tell the primary to load it."""
        placement = self.servers.placements[name]
        with as_user(placement.dataset) as dataset:
            for path in dataset.rglob(f"*{NEXT}"):
                path.replace(path.with_name(path.name.removesuffix(NEXT)))
        server = driver_of(placement.source)
        steps = server.load_changes(placement)
        for step in steps:
            self.servers.run(name, step)
        if not steps:
            self.servers.signal(name, server.reload_signal)

    def begin(self, name: str) -> int:
        """Have the primary of host ``name`` begin its own changes; return when it began (CLOCK_MONOTONIC, ns)."""
        self.servers.signal(name, signal.SIGUSR1)
        deadline = time.monotonic() + START_LIMIT_S
        while (begun := last_event(self.servers.started[name].log, "changes-begun")) is None:
            self.servers.check()
            if time.monotonic() > deadline:
                raise DnsrigError(f"the primary did not begin its changes in {START_LIMIT_S:g} s")
            time.sleep(0.01)
        return int(begun["begin_ns"])

    def end(self, name: str) -> None:
        """Have the primary of host ``name`` end its changes. `take` then knows what it made."""
        self.servers.signal(name, signal.SIGUSR2)

    def take(self) -> dict[str, Any]:
        """The summary of what primaries changed by themselves, after their end; empty if nothing. Take their rows."""
        found: dict[str, Any] = {}
        for name in self.servers.own_changes.keys() & self.servers.started.keys():
            server = self.servers.started[name]
            if (summary := last_event(server.log)) and (made := summary["changes"]):
                found = {**made, **{part: summary[part] for part in ("notify", "secondaries")}}
            self.servers.take_rows(name)
        return found
