"""The small network of one trial: its hosts (``host.py``) and what joins them (``links``).

Each host has one IPv4 address out of 198.18.0.0/15, the range that RFC 2544 sets aside for measuring, which is
routed nowhere. An interface is named after the host at its other end. If the server under test runs already, nothing is
made: all hosts use the network of the machine (`HostSpec.network`).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dnsrig import interruption
from dnsrig.errors import DnsrigError
from dnsrig.lab import host, host_calls, ledger, links, removal, tcp
from dnsrig.lab.host import Host
from dnsrig.lab.ledger import Ledger
from dnsrig.lab.links import Link, Plain, selftest
from dnsrig.lab.remote_machine import RemoteMachine
from dnsrig.rundir import OBSERVER, HostSpec, LinkSpec


@dataclass
class Network:
    """The hosts and links of one trial. A context manager: what it made is gone afterwards."""

    specs: dict[str, HostSpec]
    links: list[LinkSpec]
    hosts: dict[str, Host] = field(default_factory=dict)
    ledger: Ledger | None = None
    directory: Path | None = None
    """Where emulated links keep what they write; None: nowhere."""
    repeat: int = 0
    """Added to the seeds of the links."""
    made: list[tuple[LinkSpec, Link]] = field(default_factory=list)
    """In the order of ``links``."""
    machines: Mapping[str, RemoteMachine] = field(default_factory=dict)
    """Other machines, by the names that hosts have for them."""
    tcp: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Host -> TCP settings asked for and obtained, where any were asked for."""

    def __enter__(self) -> Network:
        try:
            if not self.specs or any(spec.network == "own" for spec in self.specs.values()):
                with interruption.deferred():  # or nobody would know of the ledger's file
                    self.ledger = Ledger.open_new()
            for name, spec in self.specs.items():
                self.hosts[name] = self._make(name, spec)
            for number, link in enumerate(self.links):
                self.made.append((link, self._join(link, number)))
            for one in self.hosts.values():
                if found := self._settle(one, [there for there in self.hosts.values() if self._joined(one, there)]):
                    self.tcp[one.name] = found
        except BaseException:
            self._take_down()
            raise
        return self

    def _make(self, name: str, spec: HostSpec) -> Host:
        if spec.network == "machine" and spec.machine is None:
            return Host(name, spec, namespace="")
        if spec.machine is None:
            assert self.ledger is not None
            return host.make(self.ledger, name, spec)
        machine = self.machines[spec.machine]
        made = machine.call(host_calls.make_host, name, spec)
        return Host(name, spec, machine=machine, cgroups=tuple(map(Path, made.pop("cgroups"))), **made)

    def _join(self, link: LinkSpec, number: int) -> Link:
        assert self.ledger is not None
        left, right = (self.hosts[end] for end in link.ends)
        if left.machine is not None and left.machine is right.machine:
            left.machine.call(host_calls.link, *link.ends, link, number)
            return Plain()
        carrier = self.hosts.get(OBSERVER, left)
        place = links.Place(self.ledger, carrier, number, link.seed + self.repeat, self.directory)
        return links.kinds()[link.kind].make(left, right, link, place)

    def _settle(self, one: Host, neighbours: list[Host]) -> dict[str, Any]:
        if one.machine is None:
            return tcp.settle(one, neighbours)
        return one.machine.call(host_calls.settle, one.name, [(there.name, there.spec) for there in neighbours])

    def _joined(self, one: Host, other: Host) -> bool:
        return any({one.name, other.name} == set(link.ends) for link in self.links)

    def check_links(self) -> list[dict[str, Any]]:
        """Each link as asked and as found (``links/selftest.py``)."""
        found = []
        for spec, link in self.made:
            left, right = (self.hosts[end] for end in spec.ends)
            if left.machine is not None:
                left, right = right, left  # from here, unless both are elsewhere
            if left.machine is not None:
                found.append(left.machine.call(host_calls.check_link, left.name, (right.name, right.spec), spec))
            else:
                found.append(selftest.check(left, right, spec, link.began_s))
        return found

    def check_running(self) -> None:
        """Raise DnsrigError if a program that makes a link has ended."""
        for _, link in self.made:
            link.check()

    def finish_links(self) -> dict[str, dict[str, Any]]:
        """End the emulated links and return their summaries, by ``link``, or with more than one by
        ``link-LEFT-RIGHT``.

        A link that ended before has no summary.
        """
        emulated = [(spec, link) for spec, link in self.made if spec.emulated]
        told = {f"link-{spec.name}": link.finish() for spec, link in emulated}
        found = {name: summary for name, summary in told.items() if summary is not None}
        return {"link": next(iter(found.values()))} if len(emulated) == len(found) == 1 else found

    def _take_down(self) -> list[str]:
        """End the links, then remove everything, also when an interrupt cuts the first short; returns what would not
        go."""
        try:
            for _, link in self.made:
                link.finish()
        finally:
            left = removal.remove(self.ledger) if self.ledger is not None else []
            for host in self.hosts.values():
                host.pid_namespace.close()
        return left

    @property
    def tag(self) -> str:
        """Names everything that this network made; empty: it makes nothing."""
        return self.ledger.tag if self.ledger else ""

    def folder_in_memory(self, wanted_bytes: int) -> Path:
        """A new folder in memory with room for ``wanted_bytes``, gone with this network."""
        assert self.ledger is not None
        free = shutil.disk_usage(ledger.MEMORY).free if os.path.ismount(ledger.MEMORY) else 0
        if free < wanted_bytes:
            raise DnsrigError(
                f"{ledger.MEMORY} has {free / 1e6:,.0f} MB free; servers may store {wanted_bytes / 1e6:,.0f} MB in this trial",
                hint="mount a larger tmpfs there, or measure with --set storage=disk",
            )
        folder = ledger.MEMORY / f"{ledger.PREFIX}{self.tag}"
        self.ledger.add(folder=str(folder))
        folder.mkdir(mode=0o700)
        return folder

    def __exit__(self, *_: object) -> None:
        if left := self._take_down():
            raise DnsrigError(f"could not remove {', '.join(left)}", hint="run `dnsrig clean` to try again")
