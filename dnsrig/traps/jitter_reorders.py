"""The emulated jitter lets packets overtake each other, which most real paths do not.

netem gives each packet its own delay. With a rate it keeps their order. Without a rate, or if so configured, a packet
with a short delay overtakes the packets before it. After a few packets TCP takes the missing one for lost, sends it
again and halves its window. So the measurement shows how well the sender distinguishes reordering from loss (RACK, RFC
8985), not how it copes with a varying delay. If a source states jitter together with a rate, its packets were in order.

How it is detected: the experiment has jitter without order. The trap is not found if no packets overtook each other in
the link's self-test, and no more segments were sent again than the link dropped.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from dnsrig.rundir import LinkSpec, PathSpec
from dnsrig.runs.trial import Trial
from dnsrig.text import digits
from dnsrig.traps import CLEAR, JUDGED, Conclusion

ORDER = 43
GROUP = "the network and TCP"
OUTCOMES = JUDGED
TITLE = "the emulated jitter reorders packets"
SOURCE = "tc-netem(8), delay and reorder; RFC 4737; RFC 8985, RACK; S3 and S4 state links with jitter"


@dataclass(frozen=True)
class Free:
    """A direction of a link in which packets may overtake each other, with observations; None: not known."""

    sender: str
    receiver: str
    path: PathSpec
    overtaken_percent: float | None
    resent: int | None
    """Segments sent again by the sender's host, to anyone, during `measure`."""
    lost: int | None
    """Packets that the link did not deliver, in the same time."""

    @property
    def needless(self) -> int:
        """Segments sent again beyond those that were lost."""
        return max(0, (self.resent or 0) - (self.lost or 0)) if self.lost is not None else 0

    @property
    def is_clean(self) -> bool:
        """Whether packets stayed in order anyway: the jitter is smaller than the distance between packets."""
        return self.overtaken_percent == 0 and not self.needless


def after(trial: Trial) -> Conclusion | None:
    if not any(path.jitter_ms for _, _, path in _ways(trial)):
        return None
    free = [
        Free(*ends, path, _overtaken(trial, link, direction), *_resent_and_lost(trial, link, direction, ends[0]))
        for link, direction, path in _ways(trial)
        if path.jitter_ms and not path.ordered
        for ends in [link.ends if direction == "forward" else link.ends[::-1]]
    ]
    met = [one for one in free if not one.is_clean]
    return _found(trial, max(met, key=lambda one: one.needless)) if met else CLEAR


def _ways(trial: Trial) -> Iterator[tuple[LinkSpec, str, PathSpec]]:
    for link in trial.record.spec.links:
        for direction, path in (("forward", link.forward), ("reverse", link.reverse)):
            if path is not None:
                yield link, direction, path


def _overtaken(trial: Trial, link: LinkSpec, direction: str) -> float | None:
    """Percentage of the self-test's packets that were overtaken."""
    for check in trial.record.link_tests:
        if (check.get("from"), check.get("to")) == link.ends:
            found: dict[str, Any] = (check.get(direction) or {}).get("found", {})
            return found.get("overtaken_percent")
    return None


def _resent_and_lost(trial: Trial, link: LinkSpec, direction: str, sender: str) -> tuple[int | None, int | None]:
    resent, rows, phase = trial.growth(sender, "tcp", "retrans_segs"), trial.links().get(link.name), trial.measure
    lost = None
    if rows is not None and phase is not None and not rows.is_empty():
        during = pl.col("time_ns").is_between(phase.start.monotonic_ns, phase.end.monotonic_ns)
        rows = rows.filter(during & (pl.col("direction") == direction))
        lost = sum(int(rows[name].sum()) for name in ("lost", "overflowed", "too_big"))
    return None if resent is None else int(resent), lost


def _found(trial: Trial, met: Free) -> Conclusion:
    seen = (
        []
        if met.overtaken_percent is None
        else [f"{digits(met.overtaken_percent)} % of the packets of its self-test were overtaken"]
    )
    if met.resent is not None and met.lost is not None:
        seen.append(f"the {met.sender} sent {met.resent:,} segments again, while {met.lost:,} packets were dropped")
    detail = f": {', and '.join(seen)}" if seen else ""
    return Conclusion(
        "found",
        summary=f"Packets from {met.sender} to {met.receiver} have a delay of {met.path.delay_ms:g} ± {met.path.jitter_ms:g} ms, "
        f"independent of each other, and overtake each other{detail}. TCP takes such packets for lost.",
        evidence={
            "jitter_ms": met.path.jitter_ms,
            "delay_ms": met.path.delay_ms,
            "overtaken_percent": met.overtaken_percent,
            "retransmissions": met.resent,
            "dropped_packets": met.lost,
            "needless_retransmissions": met.needless if met.lost is not None else None,
        },
        metrics=(trial.record.spec.main_metric, "throughput_kbytes_per_s", "transfer_time_s", "retransmissions"),
        remedy="Set path.ordered = true, unless the path that you emulate really reorders packets (parallel paths, some radio links).",
    )
