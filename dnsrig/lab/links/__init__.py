"""Links between two hosts, one file for each kind, and the test whether a link is as requested.

A kind is a module of this folder with the name of `LinkSpec.kind`, with

- ``make(left, right, spec, place) -> Link``: joins two hosts, after which packets pass between their addresses,
- ``available() -> bool``: whether this machine has what it needs.

The parts that all kinds share are in ``ends.py``. A new kind also needs its name in `dnsrig.rundir.LinkKind`, and a
rule in `dnsrig.experiment.path` that chooses it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from dnsrig import discovery
from dnsrig.lab.host import Host
from dnsrig.lab.ledger import Ledger


@dataclass(frozen=True)
class Place:
    """What a kind may need beside the ends of the link."""

    ledger: Ledger
    """Lists what it makes, before it makes it."""
    carrier: Host
    """The host on whose CPUs its own processes run."""
    number: int
    """Among the links of the network."""
    seed: int
    directory: Path | None = None
    """Where it keeps what it writes; None: nowhere."""


class Link(Protocol):
    """A link that exists. Its interfaces go with the namespaces of the hosts, or before."""

    @property
    def began_s(self) -> float:
        """CLOCK_REALTIME from which changes of its loss count."""

    def check(self) -> None:
        """Raise DnsrigError if a program that makes it has ended."""

    def finish(self) -> dict[str, Any] | None:
        """End the link, if it has not ended, and return its summary; None if it has none. Safe to call twice."""


@dataclass(frozen=True)
class Plain:
    """A link with no life of its own."""

    began_s: float = field(default_factory=lambda: time.clock_gettime(time.CLOCK_REALTIME))

    def check(self) -> None: ...

    def finish(self) -> dict[str, Any] | None:
        return None


@cache
def kinds() -> dict[str, ModuleType]:
    """Every kind of link by name."""
    return {m.__name__.rpartition(".")[2]: m for m in discovery.modules(__name__) if hasattr(m, "make")}
