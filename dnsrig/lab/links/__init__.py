"""Links between two hosts, one file for each `Kind`, and the test whether a link is as requested.

The parts that all kinds share are in ``ends.py``.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, cast

from dnsrig import discovery
from dnsrig.errors import UsageError
from dnsrig.lab.host import Host
from dnsrig.lab.ledger import Ledger
from dnsrig.rundir import LinkSpec


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


class Kind(Protocol):
    """A module of this folder, or of another package (`dnsrig.discovery`), that joins hosts. ``LinkSpec.kind`` is its
    name."""

    DESCRIPTION: str
    """What the kind does with packets, as a clause."""
    ORDER: int
    """Place among the kinds that ``link = "auto"`` tries. It takes the first one that can do what the path needs."""
    EMULATES: bool
    """Whether it emulates a path."""
    FAR_DELAYS: bool
    """Whether it can delay each far address separately."""
    BETWEEN_MACHINES: bool
    """Whether it joins hosts of two machines, by their interfaces; otherwise it joins hosts of one machine."""
    HEADER_BYTES: int
    """Link-layer header that the counters of its interfaces include with each packet."""
    WRITES_ROWS: bool
    """Whether it records its traffic in the rows of `link`."""
    REMEDY: str
    """What to do if this machine does not have the kind, as a clause; empty if every machine has it."""

    def unavailable(self) -> str | None:
        """Why this machine does not have the kind, as a clause; None if it has it."""

    def make(self, left: Host, right: Host, spec: LinkSpec, place: Place) -> Link:
        """Join two hosts. Then packets pass between their addresses."""


WANTED = (
    "DESCRIPTION",
    "ORDER",
    "EMULATES",
    "FAR_DELAYS",
    "BETWEEN_MACHINES",
    "HEADER_BYTES",
    "WRITES_ROWS",
    "REMEDY",
    "unavailable",
    "make",
)


@cache
def kinds() -> dict[str, Kind]:
    """Every kind of link by name, in the order in which ``link = "auto"`` tries them."""

    def made(name: str, module: ModuleType) -> Kind | None:
        return cast(Kind, discovery.having(*WANTED)(name, module)) if hasattr(module, "make") else None

    return dict(sorted(discovery.plugins(__name__, made).items(), key=lambda found: (found[1].ORDER, found[0])))


def within_machine() -> dict[str, Kind]:
    """The kinds that join hosts of one machine, of which an experiment chooses one."""
    return {name: kind for name, kind in kinds().items() if not kind.BETWEEN_MACHINES}


def between_machines() -> str:
    """The kind that joins hosts of two machines: the first in the order of `kinds`."""
    return next(name for name, kind in kinds().items() if kind.BETWEEN_MACHINES)


def joined(ends: tuple[str, str], name: str, **more: Any) -> LinkSpec:
    """The specification of a link of the kind ``name``, with what readers of its counters must know."""
    kind = kinds()[name]
    return LinkSpec(ends=ends, kind=name, header_bytes=kind.HEADER_BYTES, writes_rows=kind.WRITES_ROWS, **more)


def chosen(name: str, *, path: bool, far_delays: bool, stock_kernel: bool) -> str:
    """The kind of link for a path: the kind that an experiment names, or with ``auto`` the first one that can do it.

    ``path``: whether a path is emulated; ``far_delays``: whether each far address has a delay of its own;
    ``stock_kernel``: whether the trial runs under a kernel that has every kind, so that this machine's kernel does not
    matter. Raises UsageError if the kind does not exist, or cannot do it.
    """
    known = within_machine()
    able = [one for one, kind in known.items() if (kind.EMULATES or not path) and (kind.FAR_DELAYS or not far_delays)]
    if name == "auto":  # if this machine has none of them, making the link reports what is missing
        return next((one for one in able if stock_kernel or not known[one].unavailable()), able[0])
    there = [one for one in able if stock_kernel or not known[one].unavailable()]
    if name not in known:
        raise UsageError(f"there is no link {name!r}", hint=f"use auto or one of {', '.join(known)}")
    kind, others = known[name], [f'set link = "{one}"' for one in there if one != name][-1:]
    if path and not kind.EMULATES:
        raise UsageError(f"{name} emulates no path", hint=", or ".join(["leave [path] out", *others]))
    if not stock_kernel and (why := kind.unavailable()):
        raise UsageError(why, hint=", or ".join([*others, kind.REMEDY, 'set kernel = "uml"']))
    if far_delays and not kind.FAR_DELAYS:
        raise UsageError(
            f"{name} delays all packets of a link alike, but path.rtts needs a separate delay for each address",
            hint=", or ".join(others or ["leave path.rtts out"]),
        )
    return name
