"""What a trial replayed: what the engine said when it made the stream, and what it says that the stream holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dnsrig.runs.trial import Trial


@dataclass(frozen=True)
class Heavy:
    """One of the clients that ask most."""

    queries: int
    questions: int
    """Different ones: names with their types."""

    @property
    def diversity(self) -> float:
        return self.questions / max(1, self.queries)


@dataclass(frozen=True)
class HitRatio:
    """Hit ratio of a cache that forgets nothing, asked by a share of the clients: in the middle and at the ends of
    several such shares."""

    share: float
    lowest: float
    middle: float
    highest: float


@dataclass(frozen=True)
class Stream:
    """A stream that was replayed. What an engine did not say is 0 or empty."""

    kind: str
    parameters: Mapping[str, Any]
    made: Mapping[str, Any]
    """The summary of `replay prepare`, or of whatever made it."""
    holds: Mapping[str, Any]
    """The summary of `replay describe`."""

    @property
    def accounting(self) -> Mapping[str, Mapping[str, Any]]:
        return self.made.get("ledger") or {}

    @property
    def captures(self) -> list[Mapping[str, Any]]:
        return self.made.get("captures") or []

    @property
    def queries(self) -> int:
        return int(self.holds.get("stream", {}).get("queries", 0))

    @property
    def clients(self) -> int:
        return int(self.holds.get("stream", {}).get("clients", 0))

    @property
    def spread(self) -> Mapping[str, int]:
        """``median``, ``largest``, ``heaviest_1_percent``, ``heaviest_10_percent``: queries."""
        return self.holds.get("clients") or {}

    @property
    def retransmissions(self) -> int:
        return int(self.holds.get("retransmissions", 0))

    @property
    def heaviest(self) -> list[Heavy]:
        return [Heavy(one["queries"], one["questions"]) for one in self.holds.get("heaviest") or []]

    @property
    def hit_ratios(self) -> list[HitRatio]:
        """By share of the clients, the last of all of them."""
        return [HitRatio(**one) for one in self.holds.get("hit_ratios") or []]

    @property
    def diversity(self) -> float:
        """Different questions, a query."""
        return int(self.holds.get("distinct_questions", 0)) / max(1, self.queries)

    @property
    def kept_share(self) -> float:
        """Share of the clients that are kept."""
        return float(self.parameters.get("keep_share", 1.0))

    @property
    def kept_queries_share(self) -> float:
        """Share of the queries of each client that are kept."""
        return float(self.parameters.get("keep_queries", 1.0))


def of(trial: Trial) -> Stream | None:
    """None where the trial replayed nothing."""
    spec = trial.record.spec.stream
    if spec is None:
        return None
    facts = trial.record.instruments.get("stream") or {}
    return Stream(spec.kind, spec.parameters, facts.get("made") or {}, facts.get("holds") or {})
