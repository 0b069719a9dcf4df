"""What any load generator leaves of the queries that it put on a server. The engine's `load` says it in its summary."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Figures = dict[str, float | None]
"""Figures of a distribution, in ns: ``mean``, ``min``, ``p50``, ``p90``, ``p99``, ``p99_9``, ``p99_99``, ``max``."""


class _Said(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class Try(_Said):
    """One try of a rate in a ramp."""

    rate_qps: float
    holds: bool
    sent_qps: float = 0.0
    p50_ns: float | None = None
    p99_ns: float | None = None
    lag_p99_ns: float | None = None
    busy_share: float = 0.0
    instrument_failed: bool | None = None
    """Whether the instrument could not send the rate; None: earlier versions do not tell."""


class QuicCounts(_Said):
    """What QUIC counts of connections of a load."""

    packets_sent: int = 0
    packets_lost: int = 0
    retries: int = 0
    full_handshake_bytes_min: int = 0
    """The fewest bytes from the server until a full handshake was done; 0: none was, or an earlier version."""


class Connections(_Said):
    """Connections of a load, or of a class of its clients."""

    attempted: int = 0
    established: int = 0
    failed: int = 0
    handshakes: int = 0
    """Connections with TLS, including resumed ones."""
    resumed: int = 0
    returning: int = 0
    """Handshakes of clients that had made one before."""
    early_accepted: int = 0
    early_rejected: int = 0
    """Queries that were sent as early data (0-RTT). Those that the server rejected were sent again."""
    quic: QuicCounts = QuicCounts()


class ClassResult(_Said):
    """A class of clients of a replay. The first is the class of the clients that are in no other."""

    share: float = 0.0
    resumption: bool = False
    early_data: bool = False
    clients: int = 0
    answered: int = 0
    unanswered: int = 0
    latency_ns: Figures = Field(default_factory=dict)
    connections: Connections = Connections()


class WrongAnswer(_Said):
    """An answer that is not as expected."""

    query: str
    """Name and type."""
    kind: str
    rcode: str = ""


WRONG_KINDS = {
    "rcode": "another rcode",
    "empty": "no record of the type",
    "rrset": "other records",
    "truncated": "a truncated section",
    "damaged": "records that cannot be read",
}
"""How an answer is wrong, in words."""
EXAMPLES_SHOWN = 3
"""Number of wrong answers that a sentence names."""


class LoadResult(_Said):
    """The result of one load. A generator leaves out what it does not know."""

    model: Literal["rate", "closed", "ramp", "stream"] | None = None
    """At a rate, in a closed loop, a search of the highest rate, or when a stream has them. None: there was no load, or
    it said nothing."""
    transport: str = ""
    """``udp``, ``tcp``, ``dot``, ``doh`` or ``doq``; empty if queries had several, or if the generator does not say."""
    start_ns: int = 0
    end_ns: int = 0
    """Queries were due from ``start_ns`` to ``end_ns``."""
    sending_ns: int = 0
    """For how long they were sent."""
    asked_qps: float | None = None
    poisson: bool = False
    due: int = 0
    sent: int = 0
    unsent: int = 0
    """Queries that were due and never sent."""
    waited_for_id: int = 0
    """Queries that had to wait for a free message id, or were never sent for lack of one."""
    waited_for_stream: int = 0
    """Queries that had to wait until the server permitted another stream, or were never sent."""
    wrong_matches_max: int = 0
    """The largest possible number of answers that belong to an earlier query with the same message id."""
    answered: int = 0
    """Queries with an answer that is not wrong."""
    wrong: dict[str, int] = Field(default_factory=dict)
    """Answers that are not as expected, by how they differ; 0 if nothing was expected."""
    unlisted: int = 0
    """Answers without an expectation, if a file has expectations for other queries."""
    wrong_examples: list[WrongAnswer] = Field(default_factory=list)
    timeouts: int = 0
    lost: dict[str, int] = Field(default_factory=dict)
    """Queries that were lost with their connection, by the reason."""
    rcodes: dict[str, int] = Field(default_factory=dict)
    timeout_ns: int | None = None
    connections: Connections = Connections()
    handshake_ns: Figures | None = None
    """From the start of a connection until queries can be sent on it; None over UDP."""
    latency_ns: Figures = Field(default_factory=dict)
    """From the moment at which each query was due."""
    lower_latency_ns: Figures = Field(default_factory=dict)
    """What the server would have taken at least, had the instrument been in time; earlier versions do not tell."""
    sent_latency_ns: Figures = Field(default_factory=dict)
    """From the moment at which each query was sent."""
    lower_sent_latency_ns: Figures = Field(default_factory=dict)
    """The least that those can have been, of a tool that counts in wide buckets."""
    lag_ns: Figures = Field(default_factory=dict)
    """From the moment at which each was due to that at which it was sent."""
    threads: int = 1
    busy_share: float = 0.0
    """Share of the time in which the busiest thread had work."""
    real_time: bool = False
    intervals_lost: int = 0
    classes: list[ClassResult] = Field(default_factory=list)
    """The classes of a replay whose clients have some."""
    steps: list[Try] = Field(default_factory=list)
    """The tries of a ramp, in their order."""
    capacity_qps: float | None = None
    capacity_is_lower_bound: bool = False
    base_loss_share: float | None = None
    """The share of the queries that had no answer at every rate of a ramp up to its capacity, if that is more than its
    limit. Then a rate held if it lost no more than both together."""

    @property
    def ran(self) -> bool:
        return self.model is not None

    @property
    def wrong_in_words(self) -> str:
        """The wrong answers by kind, and the first of them; empty if there was none."""
        kinds = [f"{count:,} with {WRONG_KINDS.get(kind, kind)}" for kind, count in self.wrong.items() if count]
        examples = [
            f"{each.query}: {each.rcode if each.kind == 'rcode' else WRONG_KINDS.get(each.kind, each.kind)}"
            for each in self.wrong_examples[:EXAMPLES_SHOWN]
        ]
        return f"{', '.join(kinds)} ({'; '.join(examples)})" if examples else ", ".join(kinds)

    @property
    def has_latencies(self) -> bool:
        """Whether there was a load with a figure of latency: a ramp mixes the latencies of many rates."""
        return self.model in ("rate", "closed", "stream")

    @property
    def span_s(self) -> float:
        """For how long queries were due."""
        return (self.end_ns - self.start_ns) / 1e9

    @property
    def answered_qps(self) -> float | None:
        """None of a ramp, of a load that was over at once, and where it is not told how many there were."""
        return self.answered / self.span_s if self.has_latencies and self.span_s > 0 and self.sent else None

    @property
    def held_all_rates(self) -> bool:
        """Whether even the highest rate of a ramp held: the ramp ended at the rate that the user set as its limit."""
        tried = max((step.rate_qps for step in self.steps), default=0.0)
        return self.capacity_is_lower_bound and 0.0 < tried <= (self.capacity_qps or 0.0)

    @property
    def highest_qps(self) -> float | None:
        """What was answered where the generator asked for all that it could get."""
        return self.capacity_qps if self.model == "ramp" else self.answered_qps if self.model == "closed" else None
