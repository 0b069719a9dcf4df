"""What CPU stacks say: the share of frames among samples, as folded stacks ``outermost;…;innermost`` -> count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

PORT_SEARCH_FRAMES = frozenset(
    {
        "inet_hash_connect",
        "__inet_hash_connect",
        "inet_csk_find_open_port",
        "inet_csk_get_port",
        "__inet_check_established",
    }
)
"""Where Linux looks for a free local port: in ``connect()`` of an unbound socket (net/ipv4/inet_hashtables.c), in
``bind()`` to port 0 (net/ipv4/inet_connection_sock.c), and the check of each candidate against TIME_WAIT."""


def share(stacks: Mapping[str, int], frames: Collection[str]) -> float | None:
    """The part of all samples, 0..1, that have any of ``frames`` on their stack; None without samples."""
    total = sum(stacks.values())
    if total <= 0:
        return None
    inside = sum(count for stack, count in stacks.items() if any(frame in frames for frame in stack.split(";")))
    return inside / total


def hottest(stacks: Mapping[str, int]) -> tuple[str, float] | None:
    """The frame that was itself running in most samples, and the part of them, 0..1; None without samples.

    Itself: the innermost of its stack. By what it called as well, the outermost frame would always win.
    """
    total = sum(stacks.values())
    if total <= 0:
        return None
    itself: Counter[str] = Counter()
    for stack, count in stacks.items():
        itself[stack.rpartition(";")[2]] += count
    # Of equals the first by name, so that the answer does not depend on the order of the file.
    frame, count = min(itself.items(), key=lambda item: (-item[1], item[0]))
    return frame, count / total
