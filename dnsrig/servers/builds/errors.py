"""How a build fails, as its log tells."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from dnsrig.errors import DnsrigError

SHOWN_LINES = 12
READ_BYTES, LINE_CHARACTERS = 1 << 16, 2_000
"""Of the end of a log, and of each of its lines: a search in one takes much longer the longer it is."""
KILLED_STATUS = 137
"""Of a shell whose command was ended by SIGKILL."""
NOT_ENTERED_STATUS = 125
"""Of the engine's `enter`, where a step before the script failed."""
FULL = "No space left on device"
_KILLED = re.compile(
    r"Killed signal terminated program|(fatal error|error): Killed|^Killed$|terminated by signal 9", re.M
)
_COMPLAINT = re.compile(r"error:|ERROR:|\berror\b.*:|not found|No such file|\*\*\*", re.IGNORECASE)
_LACKING = re.compile(
    r"(?P<header>[\w/.+-]+\.h(pp)?): No such file or directory"
    r"|(package|dependency|Package|Dependency) ['\"]?(?P<package>[\w.+-]+)['\"]?,? .*(not found|found: NO|required by)"
    r"|(?P<program>[\w.+-]+): (command )?not found"
    r"|cannot find -l(?P<library>[\w.+-]+)"
    r"|error: .*?(?P<what>\b(lib)?[\w.+-]+) (was )?(not found|is missing|is required|(is )?required but)"
)


class BuildFailed(DnsrigError):
    """This commit cannot be built with these options: whoever looks through versions skips it."""

    def __init__(self, message: str, *, log: Path, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.log = log


def explain(name: str, status: int, log: Path) -> DnsrigError:
    """Why the build of ``name`` ended with ``status``: `BuildFailed` where the commit or its options are the cause."""
    lines = end_of(log)
    text = "\n".join(lines)
    if FULL in text:
        return DnsrigError(
            f"building {name}: the disk is full",
            hint="free some space, or let fewer builds be kept: DNSRIG_BUILDS_GB; what is in the cache is whole",
        )
    if status == NOT_ENTERED_STATUS:
        return DnsrigError(
            f"building {name}: {lines[-1] if lines else 'its namespaces cannot be made'}", hint=_hint("", log)
        )
    if status < 0 or status == KILLED_STATUS or _KILLED.search(text):
        return DnsrigError(
            f"building {name}: a process of it was killed",
            hint="was there enough memory? dmesg tells; start it again, nothing is left behind",
        )
    last = "\n".join(f"  {line}" for line in lines[-SHOWN_LINES:])
    return BuildFailed(
        f"{name} cannot be built: {cause(lines) or f'status {status}'}\n{last}", log=log, hint=_hint(text, log)
    )


def cause(lines: Sequence[str]) -> str:
    """The first line at the end of a log that complains; empty where none does."""
    return next((line.strip()[:200] for line in lines if _COMPLAINT.search(line)), "")


def lacking(text: str) -> str:
    """What the build looked for and did not find; empty where it says nothing like that."""
    match = _LACKING.search(text)
    return next((value for value in match.groupdict().values() if value), "") if match else ""


def end_of(log: Path) -> list[str]:
    """The last lines of a log, without what a terminal does not show."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - READ_BYTES))
        text = file.read().decode(errors="replace")
    lines = (line[-LINE_CHARACTERS:] for line in text.splitlines() if line.strip())
    return ["".join(char for char in line if char.isprintable()) for line in lines]


def _hint(text: str, log: Path) -> str:
    whole = f"the whole log is {log}"
    if not (missing := lacking(text)):
        return whole
    return (
        f"its root has no {missing}: add the Debian package that has it to the build options, e.g. +libexample-dev, or leave "
        f"out the option that asks for it; {whole}"
    )
