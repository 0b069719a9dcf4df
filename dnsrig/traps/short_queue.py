"""The emulated link dropped packets because its own queue was short, which no real path of that kind would have done.

An emulated delay is a queue: all that is under way waits in it. If it takes fewer packets than bandwidth × delay, the
link is never full, and it drops what it was asked to delay: the throughput is that of the emulation. netem's default of
1,000 packets is 1.5 MB, which is enough for 60 Mbit/s over 200 ms and for no more.

How it is told: packets that found no room, as the link itself counts them, while its limit is below bandwidth × delay;
or without a rate, where any such packet is one. A queue that overflows although it holds more than that is a full path:
that is what was asked for.
"""

from __future__ import annotations

import math
from typing import Any

from dnsrig.analysis.read import Trial
from dnsrig.analysis.sockets import in_flight_bytes
from dnsrig.rundir import FULL_PACKET_BYTES, LinkSpec, PathSpec
from dnsrig.text import digits
from dnsrig.traps import CLEAR, JUDGED, Conclusion, cannot_tell

ORDER = 42
TITLE = "the emulated link's own queue was too short"
SOURCE = "tc-netem(8), limit; measured on this project's links: limit must exceed bandwidth × delay"


def after(trial: Trial) -> Conclusion | None:
    emulated = [link for link in trial.record.spec.links if link.emulated]
    if not emulated or trial.record.outcome not in JUDGED:
        return None
    unknown = False
    for link in emulated:
        told = trial.record.link_summary(link)
        for direction, path in (("forward", link.forward), ("reverse", link.reverse)):
            if path is None or not is_short(path):
                continue
            overflowed = _overflowed(told.get(direction, {}), path)
            if overflowed is None:
                unknown = True
            elif overflowed:
                return _found(link, trial.record.spec.main_metric, direction, path, told[direction], overflowed)
    if unknown:
        return cannot_tell(
            "A queue is shorter than bandwidth × delay, but this kind of link does not count what found no room in it."
        )
    return CLEAR


def _overflowed(told: dict[str, Any], path: PathSpec) -> int | None:
    """Packets that found no room; netem counts them together with those that it lost, so only where it is to lose
    none."""
    if "overflowed" in told:
        return int(told["overflowed"])
    lossless = not path.loss_percent and not path.loss_over_time
    return int(told["dropped"]) if lossless and "dropped" in told else None


def wanted_packets(path: PathSpec) -> int | None:
    """Full packets under way when the path is full, at the longest delay; None where no rate was asked for."""
    nbytes = in_flight_bytes(path, path.longest_ms)
    return None if nbytes is None else math.ceil(nbytes / FULL_PACKET_BYTES)


def is_short(path: PathSpec) -> bool:
    """Whether the queue may be full before the path is: always possible where nothing else bounds what is under way."""
    wanted = wanted_packets(path)
    return path.longest_ms > 0 and (wanted is None or path.limit_packets < wanted)


def _found(
    link: LinkSpec, main_metric: str, direction: str, path: PathSpec, told: dict[str, Any], overflowed: int
) -> Conclusion:
    sender, receiver = link.ends if direction == "forward" else link.ends[::-1]
    wanted = wanted_packets(path)
    packets = int(told["packets"] if "packets" in told else told.get("delivered_packets", 0) + overflowed)
    carries_mbit = path.limit_packets * FULL_PACKET_BYTES * 8 / max(path.delay_ms, path.jitter_ms) / 1e3
    if wanted is None:
        need = f"; over {path.delay_ms:g} ms it carries no more than {digits(carries_mbit)} Mbit/s, and no rate was asked for"
    else:
        need = f", where {path.rate_mbit:g} Mbit/s over {path.delay_ms:g} ms are {wanted:,}"
    return Conclusion(
        "found",
        summary=f"The link from {sender} to {receiver} dropped {overflowed:,} of {packets:,} packets for want of room in its own queue: it takes "
        f"{path.limit_packets:,}{need}.",
        evidence={
            "overflowed": overflowed,
            "packets": packets,
            "limit_packets": path.limit_packets,
            "bandwidth_delay_packets": wanted,
            "limit_carries_mbit": round(carries_mbit, 3),
        },
        metrics=(main_metric, "throughput_kbytes_per_s", "transfer_time_s", "retransmitted_percent"),
        remedy=f"Set path.limit_packets to {2 * wanted:,} or more, or leave it out."
        if wanted
        else "Raise path.limit_packets, or ask for a rate.",
    )
