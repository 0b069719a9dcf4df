"""Runs of the engine that end by themselves. Instruments, which run beside a trial, are in `dnsrig.procedures`."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from typing import Any

from dnsrig import paths
from dnsrig.errors import DnsrigError

LINE_MOST_CHARACTERS = 500
"""The most characters of the first line and of the last line of a reason: a hint is in the last one."""


def run(arguments: Sequence[str], failure: str, *, text: str | None = None, limit_s: float | None = None) -> str:
    """Output of ``dnsrig-engine ARGUMENTS``, which reads ``text``.

    Raises DnsrigError with ``failure`` and the reason if it fails, and subprocess.TimeoutExpired after ``limit_s``.
    """
    command = [str(paths.engine()), *arguments]
    result = subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=limit_s)
    if result.returncode != 0:
        lines = result.stderr.strip().splitlines() or [f"exit status {result.returncode}"]
        reason = "\n".join(line[:LINE_MOST_CHARACTERS] for line in dict.fromkeys((lines[0], lines[-1])))
        raise DnsrigError(f"{failure}: {reason}")
    return result.stdout


def summary(arguments: Sequence[str], failure: str, *, limit_s: float | None = None) -> dict[str, Any]:
    """The last event of ``dnsrig-engine ARGUMENTS``. Raises as `run` does."""
    return json.loads(run(arguments, failure, limit_s=limit_s).splitlines()[-1])  # type: ignore[no-any-return]
