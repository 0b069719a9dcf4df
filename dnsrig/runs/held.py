"""What `load --hold` leaves of the connections that it held: in its summary, under the name `held`."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from dnsrig.runs.load_result import Figures
from dnsrig.runs.trial import Trial

INSTRUMENT = "held"
"""The name of the load that holds connections."""


class _Said(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class Connections(_Said):
    """Connections since the start of the load."""

    attempted: int = 0
    established: int = 0
    open: int = 0
    no_port: int = 0
    ended: dict[str, int] = Field(default_factory=dict)
    """Connections that the server ended or did not accept: `refused`, `reset`, `closed`, `tls` or `http`."""


class Opening(_Said):
    """The time in which all connections were opened, each with a query."""

    start_ns: int
    duration_s: float
    sent: int = 0
    answered: int = 0
    timeouts: int = 0
    connections: Connections = Connections()
    handshake_ns: Figures | None = None
    memory_per_connection_bytes: float | None = None
    """Memory of the instrument."""


class Lifetimes(_Said):
    """For how long connections were open that the server ended."""

    count: int
    min_s: float
    p50_s: float
    max_s: float


class _Held(_Said):
    held_as: str
    every_s: float
    opening: Opening


class Held(_Said):
    """The summary of the load that held connections."""

    clients: int
    sent: int
    answered: int
    timeouts: int
    lost: dict[str, int] = Field(default_factory=dict)
    connections: Connections
    lifetimes: Lifetimes | None = None
    held: _Held

    @property
    def opening(self) -> Opening:
        return self.held.opening

    @property
    def unanswered(self) -> int:
        """Queries without an answer, since the start of the measured time."""
        return self.timeouts + sum(self.lost.values())

    @property
    def kept(self) -> float:
        """Number of connections that were open while the trial measured: the mean of begin and end."""
        return (self.opening.connections.open + self.connections.open) / 2


def of(trial: Trial) -> Held | None:
    """The connections that the trial held; None if it held none."""
    told = trial.record.instruments.get(INSTRUMENT)
    return None if told is None else Held.model_validate(told)
