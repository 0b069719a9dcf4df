"""Databases: servers that carry zones from one site to another, and answer no queries.

A trial watches a database through a console: whether it is ready, how many zones it has, and whether everything has
arrived on a replica.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Protocol

from dnsrig.errors import DnsrigError
from dnsrig.rundir import Address, Role, Scalar
from dnsrig.servers.driver import Driver

CONSOLE_LIMIT_S = 30.0
"""Time limit for one answer: a database that loads a large snapshot may be busy for seconds."""
ANSWER_BYTES_MOST = 1 << 26
"""Far more than the largest answer that is requested here: the list of a few million zones."""


class Refused(DnsrigError):
    """The database answered with an error, with something else than requested, or not in time."""


class Console(Protocol):
    """A connection to a running database. Its methods raise OSError or DnsrigError if there is no answer.

    After that it is unusable: the caller closes it and connects again, from the network that it means.
    """

    def zones(self) -> int:
        """Number of complete zones in it."""

    def position(self) -> int:
        """Amount that was written to it, in its own units."""

    def has_all(self, position: int) -> bool:
        """Whether this replica is connected and has everything up to ``position`` of its original."""

    def facts(self) -> dict[str, Scalar]:
        """Other values to keep with a trial: name (unit last) -> value."""

    def close(self) -> None: ...


class Database(Driver, ABC):
    """A kind of database."""

    roles: ClassVar[tuple[Role, ...]] = ("database",)
    capabilities = ()
    answers = False
    answers_zones = False
    port: ClassVar[int]
    tls_port: ClassVar[int]

    @abstractmethod
    def console(self, address: Address) -> Console:
        """Connect to the database at ``address``, from the network that the calling thread sees.

        Raises OSError or DnsrigError as long as the database is not ready.
        """
