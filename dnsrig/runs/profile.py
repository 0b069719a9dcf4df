"""What CPU stacks say: the share of frames among samples, as folded stacks ``outermost;…;innermost`` -> count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

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


@dataclass(frozen=True)
class Difference:
    """A function in two profiles: in how many samples it ran itself, and in how many anything that it called did,
    too."""

    name: str
    itself: int
    whole: int
    samples: int
    """All of the profile in question."""
    other_itself: int
    other_whole: int
    other_samples: int

    @property
    def share(self) -> float:
        """Share of the samples in which the function itself ran."""
        return self.itself / max(1, self.samples)

    @property
    def other_share(self) -> float:
        return self.other_itself / max(1, self.other_samples)

    @property
    def whole_share(self) -> float:
        """Share of the samples in which the function ran, or what it called."""
        return self.whole / max(1, self.samples)

    @property
    def other_whole_share(self) -> float:
        return self.other_whole / max(1, self.other_samples)


def differences(stacks: Mapping[str, int], other: Mapping[str, int]) -> list[Difference]:
    """All functions, that first whose own share is largest in ``stacks`` less its share in ``other``.

    By what they called as well, the outermost frames would always be first. Of equals that with the larger share of all
    it called.
    """
    (itself, whole, samples), (other_itself, other_whole, other_samples) = _counted(stacks), _counted(other)
    found = [
        Difference(name, itself[name], whole[name], samples, other_itself[name], other_whole[name], other_samples)
        for name in sorted({*whole, *other_whole})
    ]
    return sorted(found, key=lambda d: (d.other_share - d.share, d.other_whole_share - d.whole_share))


def _counted(stacks: Mapping[str, int]) -> tuple[Counter[str], Counter[str], int]:
    """How often each frame was the innermost, how often anywhere, and the samples."""
    itself: Counter[str] = Counter()
    whole: Counter[str] = Counter()
    for stack, count in stacks.items():
        frames = stack.split(";")
        itself[frames[-1]] += count
        for frame in set(frames):
            whole[frame] += count
    return itself, whole, sum(stacks.values())
