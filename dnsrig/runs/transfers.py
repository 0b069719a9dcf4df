"""What the rows of the instrument `transfer` show: transfers under way, silence on connections, attempts in vain, TLS
handshakes (in full or of a resumed session, RFC 8446, 2.2), and how a change spread from a primary to many secondaries.

Pure functions over `Trial.transfers`, `Trial.connections` and `Trial.tcp_info`, whose columns are described there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from dnsrig.runs.trial import Trial

GOOD = ("done", "up-to-date")
"""Outcomes of an attempt that needs no other."""
REFUSALS = ("servfail", "refused")
"""Outcomes by which a server says that it will not transfer, or not now."""


NO_CONNECTION = (1 << 32) - 1
"""In the column connection: of a zone that never got one."""


def of(trial: Trial) -> pl.DataFrame:
    """The rows of `Trial.transfers` that are transfers: without the SOA queries before them."""
    return trial.transfers.filter(pl.col("asked") != "soa")


def number(value: object) -> float:
    """What an aggregate of a column came to: 0 of an empty one."""
    return float(value) if isinstance(value, int | float) else 0.0


def good() -> pl.Expr:
    return pl.col("outcome").is_in(GOOD)


def refused() -> pl.Expr:
    return pl.col("outcome").is_in(REFUSALS)


def round_trip_ms(trial: Trial) -> float | None:
    """The shortest round trip between instrument and primary that is known; None where nothing tells.

    From the kernel's own estimate, else from the TCP handshakes of connections without TLS, else from the links as
    checked before the start.
    """
    estimated = trial.tcp_info.filter(pl.col("rtt_us") > 0)["rtt_us"].min()
    if isinstance(estimated, int):
        return estimated / 1e3
    plain = trial.connections.filter((pl.col("handshake") == "none") & (pl.col("established_ns") > 0))
    shaken_ns = (plain["established_ns"] - plain["begun_ns"]).min()
    if isinstance(shaken_ns, int):
        return shaken_ns / 1e6
    checks = [check for check in trial.record.link_tests if check.get("rtt_median_us")]
    far = [check for check in checks if "forward" in check]  # emulated; what looks on is nearer
    checked = [float(check["rtt_median_us"]) for check in far or checks]
    return min(checked) / 1e3 if checked else None


def end_ns() -> pl.Expr:
    """When an attempt was over, as far as its row tells: a connection that never answered leaves no later time than the
    asking."""
    return pl.max_horizontal("asked_ns", "last_ns")


def outstanding(rows: pl.DataFrame, among: pl.DataFrame | None = None) -> pl.Series:
    """How many transfers of ``among`` (all of ``rows``) were asked for and not over, when each of ``rows`` was asked
    for.

    Of all connections and secondaries together; a row that is in ``among`` counts itself.
    """
    others = rows if among is None else among
    begun, over = others["asked_ns"].sort(), others.select(end_ns()).to_series().sort()
    asked = rows["asked_ns"]
    # What ended at the very moment was over: the instrument asks for the next one when it has the last one whole.
    counts = begun.search_sorted(asked, side="right").cast(pl.Int64) - over.search_sorted(asked, side="right").cast(
        pl.Int64
    )
    return counts.clip(0).alias("outstanding")


def silences(rows: pl.DataFrame) -> pl.DataFrame:
    """Stretches in which a connection brought nothing although a transfer on it was outstanding.

    Columns: connection, row (its place in ``rows``), wait_ns, first (before the first message of the transfer, or else
    between two of its messages). On one connection they do not overlap, as long as answers do not interleave; of a
    transfer's several pauses only the longest is known.
    """
    rows = rows.with_row_index("row").filter(pl.col("first_ns") > 0)
    return pl.concat([_before_first(rows), _between(rows)])


def _before_first(rows: pl.DataFrame) -> pl.DataFrame:
    """From the query, or whatever came last on that connection, to the first message; of those that came together
    one."""
    came = pl.concat([rows.select("connection", came_ns=column) for column in ("first_ns", "last_ns")])
    came = came.unique().sort("came_ns")
    waits = rows.sort("first_ns").join_asof(
        came, left_on="first_ns", right_on="came_ns", by="connection", allow_exact_matches=False, check_sortedness=False
    )
    waits = waits.with_columns(
        wait_ns=pl.col("first_ns") - pl.max_horizontal("asked_ns", pl.col("came_ns").fill_null(0))
    )
    waits = waits.sort("wait_ns", descending=True).unique(["connection", "first_ns"], keep="first", maintain_order=True)
    return waits.select("connection", "row", "wait_ns", first=pl.lit(True))


def _between(rows: pl.DataFrame) -> pl.DataFrame:
    alone = rows.filter((pl.col("foreign_messages") == 0) & (pl.col("pause_max_ns") > 0))
    return alone.select("connection", "row", wait_ns=pl.col("pause_max_ns"), first=pl.lit(False))


def connections_time_ns(rows: pl.DataFrame) -> int:
    """For how long connections had something to transfer: from the first query of each to its last message, summed."""
    spans = rows.group_by("connection").agg(span=pl.col("last_ns").max() - pl.col("asked_ns").min())
    return int(spans["span"].clip(0).sum())


def in_vain(rows: pl.DataFrame) -> pl.DataFrame:
    """Attempts that had brought records when they ended without the whole: what they brought was for nothing.

    An answer with an error alone brings none.
    """
    return rows.filter(~good() & (pl.col("records") > 0))


def begun_again(rows: pl.DataFrame, attempts: pl.DataFrame) -> pl.DataFrame:
    """The ``attempts`` after which the same secondary tried the same zone once more, by what ``rows`` has of
    it."""
    last = rows.group_by("secondary", "zone").agg(last_asked_ns=pl.col("asked_ns").max())
    return attempts.join(last, on=["secondary", "zone"]).filter(pl.col("asked_ns") < pl.col("last_asked_ns"))


def counted(outcomes: pl.Series) -> dict[str, int]:
    """How often each outcome is there, the most frequent first."""
    table = outcomes.value_counts(name="count").sort(["count", outcomes.name], descending=[True, False])
    return dict(table.iter_rows())


def told(counts: Mapping[str, int]) -> str:
    """``cut 12, reset 3``."""
    return ", ".join(f"{outcome} {count:,}" for outcome, count in counts.items())


def expects_resumption(trial: Trial) -> bool:
    """Whether TLS sessions were to be resumed in a trial over XoT."""
    options: Mapping[str, Any] = trial.record.spec.options
    return trial.record.spec.transfer.tls and options.get("resumption") is True


FEWEST = 3
"""Such handshakes, below which there is nothing to judge."""


@dataclass(frozen=True)
class Handshakes:
    """Handshakes of the connections with TLS that were established."""

    full: int
    resumed: int
    could_resume: int
    """Begun when another connection of the same secondary had been established."""
    could_resume_full: int
    """How many of those were full all the same."""
    full_ms: float | None
    """Median time from the begin of a connection to the end of its handshake."""
    resumed_ms: float | None


def handshakes_of(connections: pl.DataFrame) -> Handshakes:
    """``connections``: rows of `Trial.connections`."""
    shaken = connections.filter(pl.col("handshake").is_in(["full", "resumed"]) & (pl.col("established_ns") > 0))
    first = shaken.group_by("secondary").agg(first_ns=pl.col("established_ns").min())
    later = shaken.join(first, on="secondary").filter(pl.col("begun_ns") >= pl.col("first_ns"))
    full, resumed = (shaken.filter(pl.col("handshake") == kind) for kind in ("full", "resumed"))
    return Handshakes(
        full=full.height,
        resumed=resumed.height,
        could_resume=later.height,
        could_resume_full=later.filter(pl.col("handshake") == "full").height,
        full_ms=_median_ms(full),
        resumed_ms=_median_ms(resumed),
    )


def _median_ms(connections: pl.DataFrame) -> float | None:
    took_ns = connections["established_ns"] - connections["begun_ns"]
    return None if took_ns.is_empty() else number(took_ns.median()) / 1e6


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
