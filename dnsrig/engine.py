"""Runs of the engine that end by themselves. Instruments, which run beside a trial, are in `dnsrig.procedures`."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from dnsrig import paths
from dnsrig.errors import DnsrigError

PROGRESS = "progress: "
"""Beginning of a line on standard error that is no error."""
LINES_MOST = 100
"""Most lines of standard error that are kept."""
LINE_MOST_CHARACTERS = 500
"""The most characters of the first line and of the last line of a reason: a hint is in the last one."""


def run(arguments: Sequence[str], failure: str, *, text: str | None = None, limit_s: float | None = None) -> str:
    """Output of ``dnsrig-engine ARGUMENTS``, which reads ``text``.

    Raises DnsrigError with ``failure`` and the reason if it fails, and subprocess.TimeoutExpired after ``limit_s``.
    """
    command = [str(paths.engine()), *arguments]
    result = subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=limit_s)
    if result.returncode != 0:
        raise _failed(failure, result.stderr, result.returncode)
    return result.stdout


def watched(arguments: Sequence[str], failure: str, *, text: str, note: Callable[[str], None]) -> None:
    """Run ``dnsrig-engine ARGUMENTS``, which reads ``text``, and call ``note`` with each line of its progress.

    Raises DnsrigError as `run` does.
    """
    errors: deque[str] = deque(maxlen=LINES_MOST)
    with tempfile.TemporaryFile("w+") as given, tempfile.TemporaryFile("w+") as output:
        given.write(text)
        given.seek(0)
        command = [str(paths.engine()), *arguments]
        with subprocess.Popen(command, stdin=given, stdout=output, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            try:
                for line in process.stderr:
                    if line.startswith(PROGRESS):
                        note(line.removeprefix(PROGRESS).strip())
                    else:
                        errors.append(line)
            except BaseException:
                process.kill()
                raise
    if process.returncode != 0:
        raise _failed(failure, "".join(errors), process.returncode)


def _failed(failure: str, errors: str, status: int) -> DnsrigError:
    lines = errors.strip().splitlines() or [f"exit status {status}"]
    reason = "\n".join(line[:LINE_MOST_CHARACTERS] for line in dict.fromkeys((lines[0], lines[-1])))
    return DnsrigError(f"{failure}: {reason}")


def summary(arguments: Sequence[str], failure: str, *, limit_s: float | None = None) -> dict[str, Any]:
    """The last event of ``dnsrig-engine ARGUMENTS``. Raises as `run` does."""
    return json.loads(run(arguments, failure, limit_s=limit_s).splitlines()[-1])  # type: ignore[no-any-return]
