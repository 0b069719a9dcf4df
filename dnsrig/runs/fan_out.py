"""How one change spread from a primary to many secondaries, from the rows of the instrument `transfer` that played
them."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

ARRIVED = "done"
"""The outcome of a transfer that ended well and brought a version."""
SERIALS = 1 << 32
HALF = 1 << 31


@dataclass(frozen=True)
class Spread:
    """Times are CLOCK_MONOTONIC ns."""

    asked_ns: list[int]
    """When each secondary that did ask first asked after the change, rising: just after its NOTIFY."""
    arrived_ns: list[int]
    """When each secondary that has it had the last of its zones in the new version, rising."""
    failures: dict[str, int]
    """Attempts that brought nothing, by what became of them, the most frequent first."""

    @property
    def zero_ns(self) -> int | None:
        """When the first secondary knew of the change: it asked as soon as a NOTIFY came."""
        return self.asked_ns[0] if self.asked_ns else None


def spread(transfers: pl.DataFrame, *, zones: int, serial: int, since_ns: int) -> Spread:
    """What became of a change of ``zones`` zones to ``serial``, made at ``since_ns``.

    ``transfers``: rows as `transfer` writes them. A secondary has the change when all
    its zones came with ``serial`` or a later one (RFC 1982); transfers of the version before, which some primaries send
    NOTIFY of when they start, count for nothing.
    """
    after = transfers.filter(pl.col("asked_ns") >= since_ns)
    asked = after.group_by("secondary").agg(pl.col("asked_ns").min())
    ahead = (pl.col("serial").cast(pl.Int64) - serial) % SERIALS
    new = after.filter((pl.col("outcome") == ARRIVED) & (ahead < HALF) & (pl.col("asked") != "soa"))
    each = new.group_by("secondary", "zone").agg(pl.col("last_ns").min())
    whole = each.group_by("secondary").agg(pl.len().alias("zones"), pl.col("last_ns").max())
    failed = after.filter(~pl.col("outcome").is_in([ARRIVED, "up-to-date"])).group_by("outcome").len()
    return Spread(
        asked_ns=asked["asked_ns"].sort().to_list(),
        arrived_ns=whole.filter(pl.col("zones") >= zones)["last_ns"].sort().to_list(),
        failures=dict(failed.sort("len", "outcome", descending=[True, False]).iter_rows()),
    )
