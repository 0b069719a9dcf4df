"""The clock of another machine as a line over this machine's clock, by which its times are converted."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl


@dataclass(frozen=True)
class Line:
    """``their clock = ours + offset_ns + drift_ppb × (ours − at_ns)``, to ± ``error_ns``."""

    at_ns: int
    offset_ns: int
    drift_ppb: float
    error_ns: int

    def there(self, here_ns: int) -> int:
        """A moment of our clock in theirs.

        >>> Line(1_000, 50, 0.0, 3).there(2_000)
        2050
        """
        return here_ns + self.offset_ns + round(self.drift_ppb * 1e-9 * (here_ns - self.at_ns))

    def here(self, there_ns: int) -> int:
        """A moment of their clock in ours."""
        without_drift = there_ns - self.offset_ns
        return without_drift - round(self.drift_ppb * 1e-9 / (1 + self.drift_ppb * 1e-9) * (without_drift - self.at_ns))

    def rows_here(self, frame: pl.DataFrame, *columns: str) -> pl.DataFrame:
        """Rows with moments of their clock, as moments of ours. A moment of 0, which means that it never came, is
        kept."""
        share = self.drift_ppb * 1e-9 / (1 + self.drift_ppb * 1e-9)
        moved = [
            pl.when(pl.col(name) == 0)
            .then(0)
            .otherwise(
                pl.col(name)
                - self.offset_ns
                - ((pl.col(name) - self.offset_ns - self.at_ns).cast(pl.Float64) * share).round().cast(pl.Int64)
            )
            .alias(name)
            for name in columns
        ]
        return frame.with_columns(moved)


SAME = Line(0, 0, 0.0, 0)
"""The line of this machine itself."""
