"""The basis of a trial: its spec, its folders, its network and its keys."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from dnsrig import datasets
from dnsrig.lab import host_calls
from dnsrig.lab.host import Host, pids
from dnsrig.lab.network import Network
from dnsrig.rundir import TrialSpec
from dnsrig.servers import keys
from dnsrig.servers.keys import TransferKeys

STORED_BYTES_PER_ZONE = 32_768
STORED_BYTES_PER_RECORD = 500
"""Most that a server stores, as measured: zone file, journal, database. Storage in memory must have this size."""


class ServerFailed(Exception):
    """A server ended or never became ready. This is a result, not an error of dnsrig."""


@dataclass
class Workspace:
    """Shared by the parts of a `TrialContext`. The caller owns ``network``."""

    spec: TrialSpec
    directory: Path
    network: Network
    keys: TransferKeys = field(default_factory=keys.make)

    def __post_init__(self) -> None:
        self.dataset = datasets.folder(self.spec.dataset.key)
        """Folder of the zones at the beginning of the trial. A procedure may set another one before servers start."""
        following = self.spec.next_dataset
        self.next_dataset = datasets.folder(following.key) if following is not None else None
        """Folder of the next version of the zones, if the procedure needs one."""
        self.versions = [datasets.folder(version.key) for version in self.spec.versions]
        """Folders of all versions of the zones."""

    @cached_property
    def state(self) -> Path:
        """Folder of the files that servers store. It is removed after the trial."""
        if self.spec.storage == "disk":
            return self.directory / "state"
        servers = sum(host.server is not None for host in self.spec.hosts.values())
        data = self.spec.dataset
        wanted = servers * (data.zones * STORED_BYTES_PER_ZONE + data.records * STORED_BYTES_PER_RECORD)
        return self.network.folder_in_memory(wanted)

    def host(self, name: str) -> Host:
        return self.network.hosts[name]

    @property
    def elsewhere(self) -> dict[str, list[Host]]:
        """Other machine -> its hosts."""
        found: dict[str, list[Host]] = {}
        for host in self.network.hosts.values():
            if host.spec.machine is not None:
                found.setdefault(host.spec.machine, []).append(host)
        return found

    def pids(self, host: str) -> set[int]:
        """Processes of a host, from its cgroups."""
        one = self.host(host)
        return one.machine.call(host_calls.pids, host) if one.machine else pids(one)
