"""Transfers broke off and started again: the data received until then was lost.

A transfer cannot be continued where it stopped. If a connection is closed, is reset or exceeds a timer in the middle of
a large zone, all data so far is lost, and the next attempt begins at the first record. Over a lossy path to a far site,
the zone may never arrive.

How it is detected: attempts that received records but did not end well.
"""

from __future__ import annotations

import polars as pl

from dnsrig.runs import transfers
from dnsrig.runs.trial import Trial
from dnsrig.text import digits
from dnsrig.traps import CLEAR, JUDGED, Conclusion

ORDER = 44
GROUP = "zone transfers"
OUTCOMES = JUDGED
CHART = "transfer-waterfall"
TITLE = "transfers broke off and started again"
SOURCE = "S4: M. Prause: transfers to far sites cancelled and begun again (2015); RFC 5936, 6, zone integrity"
WEIGHT = "explains"


def after(trial: Trial) -> Conclusion | None:
    rows = transfers.of(trial)
    if rows.is_empty():
        return None
    vain = transfers.in_vain(rows)
    return CLEAR if vain.is_empty() else _found(trial, vain)


def _found(trial: Trial, vain: pl.DataFrame) -> Conclusion:
    rows = transfers.of(trial)
    kinds, nbytes = transfers.counted(vain["outcome"]), int(vain["bytes"].sum())
    share = nbytes / max(1, int(rows["bytes"].sum()))
    wasted_s = int((vain["last_ns"] - vain["asked_ns"]).clip(0).sum()) / 1e9
    again = transfers.begun_again(rows, vain).height
    of_zone = ["secondary", "zone"]
    never = vain.select(of_zone).unique().join(rows.filter(transfers.good()), on=of_zone, how="anti").height
    in_the_end = f"; {never:,} of these zones were never completed" if never else ""
    return Conclusion(
        "found",
        summary=f"{vain.height:,} of {rows.height:,} attempts broke off ({transfers.told(kinds)}), {again:,} were started again: "
        f"{digits(nbytes / 1e6)} MB ({share:.1%} of all data received) and {digits(wasted_s)} s of transfers were wasted{in_the_end}.",
        evidence={
            "cut": vain.height,
            "begun_again": again,
            "attempts": rows.height,
            **{f"outcome_{kind}": count for kind, count in kinds.items()},
            "in_vain_bytes": nbytes,
            "in_vain_percent": round(100 * share, 2),
            "in_vain_s": round(wasted_s, 4),
            "zones_never_done": never,
        },
        metrics=(
            trial.record.spec.main_metric,
            "zones_per_s",
            "transferred_mb_per_s",
            "transfer_retries",
            "transfer_failures",
        ),
        remedy="Look at the primary's log and limits at that time (idle and total timeouts of transfers, restarts), and at loss on the link. "
        "With IXFR or smaller zones each break costs less.",
    )
