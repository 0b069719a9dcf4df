"""What a database is: a server that carries zones from one site to another, and answers no queries.

A trial looks at it through a console: whether it is ready, how many zones it has, and on a replica whether all has
arrived.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Protocol

from dnsrig.errors import DnsrigError
from dnsrig.rundir import Address, Role, Scalar
from dnsrig.servers.driver import Driver

CONSOLE_LIMIT_S = 30.0
"""For one answer: a database that loads a large snapshot may be busy for seconds."""
ANSWER_BYTES_MOST = 1 << 26
"""Far above the largest answer that is asked for here: the list of a few million zones."""


class Refused(DnsrigError):
    """The database answered by an error, by what was not asked for, or not in time."""


class Console(Protocol):
    """A connection to a database that runs. Its methods raise OSError or DnsrigError where there is no answer.

    After that it is of no use any more: the caller closes it and connects again, from the network that it means.
    """

    def zones(self) -> int:
        """How many zones it has, each of them complete."""

    def position(self) -> int:
        """How much was written to it, in its own count."""

    def has_all(self, position: int) -> bool:
        """Whether it, a replica, is connected and has what was written up to ``position`` of its original."""

    def facts(self) -> dict[str, Scalar]:
        """What else is worth keeping with a trial: name (unit last) -> value."""

    def close(self) -> None: ...


class Database(Driver):
    """A kind of database."""

    roles: ClassVar[tuple[Role, ...]] = ("database",)
    capabilities = ()
    answers = False
    answers_zones = False
    port: ClassVar[int]
    tls_port: ClassVar[int]

    @abstractmethod
    def console(self, address: Address) -> Console:
        """Connect to the one that runs at ``address``, from the network that the calling thread sees.

        Raises OSError or DnsrigError as long as it is not ready.
        """
