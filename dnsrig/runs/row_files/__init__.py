"""The files of rows that instruments leave with a trial: one file here an instrument, with the columns as it writes
them.

`Trial.rows` reads any `RowFile`, so an instrument of another package declares its own beside the metrics that read it.
Times are CLOCK_MONOTONIC ns of the machine that measured, unless a name says otherwise.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import polars as pl

Schema = Mapping[str, type[pl.DataType]]


@dataclass(frozen=True)
class RowFile:
    """An Arrow IPC stream in the directory of a trial."""

    name: str
    schema: Schema
    later: Collection[str] = ()
    """Columns that runs of earlier versions do not have; they are 0 there."""
