"""Links that the kernel emulates (netem, tc-netem(8))."""

from __future__ import annotations

from functools import cache


@cache
def available() -> bool:
    return False
