"""The emulated link dropped packets because its own queue was too short, which no real path of that kind would have
done.

An emulated delay is a queue: all packets in flight wait in it. If it is shorter than bandwidth × delay, the link is
never full, and it drops packets that it should only delay. The throughput is then the emulation's. netem's default of
1,000 packets is 1.5 MB, enough for at most 60 Mbit/s over 200 ms.

How it is detected: the link counts packets that found no room while its limit is below bandwidth × delay; without a
rate, any such packet counts. If a longer queue overflows, the path is full, as the experiment asked for.
"""

from __future__ import annotations

import math
from typing import Any

from dnsrig.rundir import FULL_PACKET_BYTES, LinkSpec, PathSpec
from dnsrig.runs.sockets import in_flight_bytes
from dnsrig.runs.trial import Trial
from dnsrig.text import digits
from dnsrig.traps import CLEAR, JUDGED, Conclusion, cannot_tell

ORDER = 42
GROUP = "the network and TCP"
OUTCOMES = JUDGED
TITLE = "the emulated link's own queue was too short"
SOURCE = "tc-netem(8), limit; measured on this project's links: limit must exceed bandwidth × delay"


def after(trial: Trial) -> Conclusion | None:
    emulated = [link for link in trial.record.spec.links if link.emulated]
    if not emulated:
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
            "A queue is shorter than bandwidth × delay, but this kind of link does not count packets that found no room in it."
        )
    return CLEAR


def _overflowed(told: dict[str, Any], path: PathSpec) -> int | None:
    """Number of packets that found no room. netem counts them together with lost packets, so it is known only without
    emulated loss."""
    if "overflowed" in told:
        return int(told["overflowed"])
    lossless = not path.loss_percent and not path.loss_over_time
    return int(told["dropped"]) if lossless and "dropped" in told else None


def wanted_packets(path: PathSpec) -> int | None:
    """Number of full packets in flight when the path is full, at the longest delay; None without a rate."""
    nbytes = in_flight_bytes(path, path.longest_ms)
    return None if nbytes is None else math.ceil(nbytes / FULL_PACKET_BYTES)


def is_short(path: PathSpec) -> bool:
    """Whether the queue may be full before the path is; without a rate, it always may."""
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
        need = f"; over {path.delay_ms:g} ms it carries at most {digits(carries_mbit)} Mbit/s, and the path has no rate"
    else:
        need = f", but {path.rate_mbit:g} Mbit/s over {path.delay_ms:g} ms need {wanted:,}"
    return Conclusion(
        "found",
        summary=f"The link from {sender} to {receiver} dropped {overflowed:,} of {packets:,} packets because its own queue was full: it holds "
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
        else "Raise path.limit_packets, or set a rate.",
    )
