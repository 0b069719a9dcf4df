"""Explains failed builds from their logs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from dnsrig.errors import DnsrigError

SHOWN_LINES = 12
READ_BYTES, LINE_CHARACTERS = 1 << 16, 2_000
"""Limits for the end of a log, and for each of its lines: searches take much longer in long lines."""
KILLED_STATUS = 137
"""Exit status of a shell whose command was ended by SIGKILL."""
NOT_ENTERED_STATUS = 125
"""Exit status of the engine's `enter` if a step before the script failed."""
FULL = "No space left on device"
_KILLED = re.compile(
    r"Killed signal terminated program|(fatal error|error): Killed|^Killed$|terminated by signal 9", re.M
)
_HARMLESS = re.compile(r"^checking |^-- |found: NO|\bwarning: (?!.* is missing on your system)", re.IGNORECASE)
"""Lines about optional parts, and warnings: every build prints such lines."""
_COMPLAINTS = (
    re.compile(r"error: |cannot find -l", re.IGNORECASE),
    re.compile(r"not found|No such file|\*\*\*|\berror\b.*:", re.IGNORECASE),
)
"""Patterns of complaints, the clearest first."""
_LACKING = re.compile(
    r"(?P<header>[\w/.+-]+\.h(pp|h)?): No such file or directory"
    r"|(package|dependency|program) ['\"]?(?P<package>[\w.+-]+)['\"]?,? .*(not found|required by)"
    r"|no package '(?P<requirement>[\w.+-]+)' found"
    r"|no module named '(?P<module>[\w.]+)'"
    r"|(?P<program>[\w.+-]+): (command )?not found"
    r"|make(\[\d+\])?: (?P<tool>[\w.+-]+): No such file or directory"
    r"|warning: '(?P<generator>[\w.+-]+)' is missing on your system"
    r"|cannot find -l(?P<library>[\w.+-]+)"
    r"|error: could not find (?P<something>[\w.+-]+)"
    r"|error: .*?(?P<what>\b(lib)?[\w.+-]+) (was )?(not found|is missing|is required|(is )?required but)",
    re.IGNORECASE,
)
_TOO_OLD = re.compile(
    r"Requested '(?P<asked>[\w.+-]+ >=? [\w.]+)' but version of .+? is (?P<found>[\w.]+)"
    r"|Invalid version(?: of dependency)?, need '(?P<name>[\w.+-]+)' \['>=? ?(?P<least>[\w.]+)'\] found '(?P<got>[\w.]+)'"
)
"""Messages of pkg-config and meson."""


class BuildFailed(DnsrigError):
    """This commit cannot be built with these options; a search through versions skips it."""

    def __init__(self, message: str, *, log: Path, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.log = log


def explain(name: str, status: int, log: Path) -> DnsrigError:
    """Why the build of ``name`` ended with ``status``: `BuildFailed` if the commit or its options are the cause."""
    lines = end_of(log)
    text = "\n".join(lines)
    if FULL in text:
        return DnsrigError(
            f"building {name}: the disk is full",
            hint="free some space, or keep fewer builds: DNSRIG_BUILDS_GB; finished builds in the cache are intact",
        )
    if status == NOT_ENTERED_STATUS:
        return DnsrigError(
            f"building {name}: {lines[-1] if lines else 'its namespaces cannot be made'}", hint=_hint([], log)
        )
    if status < 0 or status == KILLED_STATUS or _KILLED.search(text):
        return DnsrigError(
            f"building {name}: a process of it was killed",
            hint="was there enough memory? dmesg shows it; then start the build again",
        )
    last = "\n".join(f"  {line}" for line in lines[-SHOWN_LINES:])
    return BuildFailed(
        f"{name} cannot be built: {cause(lines) or f'status {status}'}\n{last}", log=log, hint=_hint(lines, log)
    )


def cause(lines: Sequence[str]) -> str:
    """The first of the clearest complaints at the end of a log; empty without a complaint."""
    said = [line for line in lines if not _HARMLESS.search(line)]
    found = (line for complaint in _COMPLAINTS for line in said if complaint.search(line))
    return next(found, "").strip()[:200]


def lacking(lines: Sequence[str]) -> str:
    """What the build looked for and did not find; empty without such a line."""
    matches = (_LACKING.search(line) for line in lines if not _HARMLESS.search(line))
    match = next(filter(None, matches), None)
    return next((value for value in match.groupdict().values() if value), "") if match else ""


def too_old(lines: Sequence[str]) -> str:
    """The library of the root that is too old for the build, in words; empty without such a line."""
    if (match := next(filter(None, map(_TOO_OLD.search, lines)), None)) is None:
        return ""
    asked = match["asked"] or f"{match['name']} >= {match['least']}"
    return f"{asked}, and its root has {match['found'] or match['got']}"


def end_of(log: Path) -> list[str]:
    """The last lines of a log, without unprintable characters."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - READ_BYTES))
        text = file.read().decode(errors="replace")
    lines = (line[-LINE_CHARACTERS:] for line in text.splitlines() if line.strip())
    return ["".join(char for char in line if char.isprintable()) for line in lines]


def _hint(lines: Sequence[str], log: Path) -> str:
    whole = f"the whole log is {log}"
    if old := too_old(lines):
        return f"it needs {old}: suite=trixie or a later suite may have a newer one; {whole}"
    if missing := lacking(lines):
        return (
            f"its root has no {missing}: add the Debian package that has it to the build options, e.g. +libexample-dev, "
            f"or leave out the option that asks for it; {whole}"
        )
    return whole
