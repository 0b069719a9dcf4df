"""Manipulation checks: was the stimulus there? One file each, pure functions over a finished trial.

A result says something of its variant only where the variant was what its name says: the catalog changed and the
secondary followed, the transfers were over TLS, the cache was cold. Each check looks for one such thing in what the
instruments recorded on the hosts while the trial measured. A procedure declares by name which checks apply to a spec
(its ``checks``, and `dnsrig.procedures._checks`); a trial of which one fails is `invalid`.

A check is a module of this folder, or of another package (`dnsrig.discovery`), with

- ``TITLE``: what is looked at, in a few words,
- ``UNIT`` ("" by default): of what is seen,
- ``look(trial) -> Seen``: what was seen, and within which limits it must be.

Its docstring says why the limits are what they are. The name of a check is the plug-in's. What nothing tells is
`cannot-tell`: that is shown, and a trial is not `invalid` for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from types import ModuleType

from dnsrig import discovery
from dnsrig.analysis.failures import RAISED
from dnsrig.analysis.read import Trial
from dnsrig.rundir import Check, Scalar
from dnsrig.text import digits


@dataclass(frozen=True)
class Seen:
    """What a check saw."""

    value: Scalar | None
    """None: nothing tells, and ``why`` says what is missing."""
    least: float | None = None
    most: float | None = None
    """Without both, ``value`` must be what was ``asked``."""
    asked: Scalar | None = None
    why: str = ""
    """A few words that go with the value where it is not as it must be."""
    series: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        if self.least is None and self.most is None:
            return self.value == self.asked
        value = self.value
        assert isinstance(value, int | float)
        return (self.least is None or value >= self.least) and (self.most is None or value <= self.most)


def cannot_tell(why: str) -> Seen:
    return Seen(None, why=why)


@cache
def all_checks() -> dict[str, ModuleType]:
    return discovery.plugins(__name__, discovery.having("TITLE", "look"))


def look(trial: Trial, names: Iterable[str]) -> list[Check]:
    """What the checks of these ``names`` say of ``trial``. One that fails by its own fault cannot tell, and says so."""
    return [_check(name, all_checks()[name], trial) for name in dict.fromkeys(names)]


def why_invalid(checks: Iterable[Check]) -> str:
    """A sentence where a check failed; empty otherwise."""
    failed = [check.reason for check in checks if check.verdict == "failed"]
    if not failed:
        return ""
    more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
    return f"not what its variant says: {failed[0]}{more}"


def _check(name: str, module: ModuleType, trial: Trial) -> Check:
    try:
        seen = module.look(trial)
    except RAISED as error:  # a check must not cost the trial
        seen = cannot_tell(f"the check itself failed: {type(error).__name__}: {error}")
    unit = getattr(module, "UNIT", "")
    found = Check(
        name=name,
        title=module.TITLE,
        verdict="cannot-tell" if seen.value is None else "passed" if seen.holds else "failed",
        asked=seen.asked,
        seen=round(seen.value, 4) if isinstance(seen.value, float) else seen.value,
        unit=unit,
        least=seen.least,
        most=seen.most,
        series=list(seen.series),
    )
    if found.verdict == "cannot-tell":
        found.reason = f"{module.TITLE}: {seen.why}"
    if found.verdict == "failed":
        found.reason = f"{module.TITLE}: {amount(found.seen, unit)}, and it must be {wanted(found)}"
        found.reason += f"; {seen.why}" if seen.why else ""
    return found


def amount(value: Scalar | None, unit: str) -> str:
    """``97.4 %``; text as it is."""
    if value is None:
        return "unknown"
    if isinstance(value, bool | str):
        return f"{value}"
    return f"{digits(value, 4)} {unit}".strip()


def wanted(check: Check) -> str:
    """``at least 80 %``, ``0.9 to 1.1``, or what was asked for."""
    least, most = check.least, check.most
    if least is not None and most is not None:
        return f"{amount(least, '')} to {amount(most, check.unit)}"
    if least is not None:
        return f"at least {amount(least, check.unit)}"
    return f"at most {amount(most, check.unit)}" if most is not None else amount(check.asked, check.unit)
