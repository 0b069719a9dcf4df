"""The result of a law for a scenario: a time, how wrong it may be, and what would lift it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limit:
    """The time that one limit alone would ask for."""

    name: str
    time_s: float
    factor: float
    """From 1 on: the truth is expected between ``time_s / factor`` and ``time_s * factor``."""
    says: str
    """One sentence with the numbers that the time comes from."""
    remedy: str
    source: str
    at_least: bool = False
    """Whether the law is a lower bound only: what makes the time longer still is known, but not by how much."""
    at_most: bool = False
    """Whether the law is an upper bound only: how much less it may take is not known."""
    low_factor: float | None = None
    """In the place of ``factor`` downwards, where the truth cannot lie as far below as above."""

    def __post_init__(self) -> None:
        if self.time_s < 0 or min(self.factor, self.low_factor or 1.0) < 1:
            raise ValueError(f"{self.name}: {self.time_s} s within a factor of {self.factor}")

    @property
    def low_s(self) -> float:
        if self.at_most:
            return 0.0
        return self.time_s if self.at_least else self.time_s / (self.low_factor or self.factor)

    @property
    def high_s(self) -> float:
        return self.time_s * self.factor
