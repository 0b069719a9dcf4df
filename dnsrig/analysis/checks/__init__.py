"""Manipulation checks: was the trial what its variant's name says? One file each, pure functions over a finished trial.

A result describes its variant only if the variant was real: the catalog changed and the secondary followed, the
transfers were over TLS, the cache was cold. Each check verifies one such fact from the instruments' records on the
hosts during the measurement. A procedure declares which checks apply to a spec (its ``checks``, and
`dnsrig.procedures.declared_checks`). If a check fails, the trial is `invalid`.

A check is a module of this folder, or of another package (`dnsrig.discovery`), with

- ``TITLE``: the checked quantity, in a few words,
- ``UNIT`` ("" by default): its unit,
- ``look(trial) -> Seen``: the observed value and its limits.

Its docstring explains the limits. The name of a check is the plug-in's. If data are missing, the verdict is
`cannot-tell`: it is shown, but does not make a trial `invalid`.
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
    """An observed value and its limits."""

    value: Scalar | None
    """None: unknown, and ``why`` states what is missing."""
    least: float | None = None
    most: float | None = None
    """Without both limits, ``value`` must equal ``asked``."""
    asked: Scalar | None = None
    why: str = ""
    """A few words to show with a value outside its limits."""
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
    """The verdicts of the named checks about ``trial``. A check that raises an exception reports `cannot-tell`."""
    return [_check(name, all_checks()[name], trial) for name in dict.fromkeys(names)]


def why_invalid(checks: Iterable[Check]) -> str:
    """A clause if a check failed; otherwise empty."""
    failed = [check.reason for check in checks if check.verdict == "failed"]
    if not failed:
        return ""
    more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
    return f"it does not match its variant: {failed[0]}{more}"


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
        found.reason = f"{module.TITLE}: {amount(found.seen, unit)}, required: {wanted(found)}"
        found.reason += f"; {seen.why}" if seen.why else ""
    return found


def amount(value: Scalar | None, unit: str) -> str:
    """``97.4 %``; text is unchanged."""
    if value is None:
        return "unknown"
    if isinstance(value, bool | str):
        return f"{value}"
    return f"{digits(value, 4)} {unit}".strip()


def wanted(check: Check) -> str:
    """``at least 80 %``, ``0.9 to 1.1``, or the requested value."""
    least, most = check.least, check.most
    if least is not None and most is not None:
        return f"{amount(least, '')} to {amount(most, check.unit)}"
    if least is not None:
        return f"at least {amount(least, check.unit)}"
    return f"at most {amount(most, check.unit)}" if most is not None else amount(check.asked, check.unit)
