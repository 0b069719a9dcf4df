"""Manipulation checks: was the trial what its variant's name says? Functions over a finished trial.

A result describes its variant only if the variant was real: the catalog changed and the secondary followed, the
transfers were over TLS, the cache was cold. Each check verifies one such fact from the instruments' records on the
hosts during the measurement. If a check fails, the trial is `invalid`. If data are missing, the verdict is
`cannot-tell`: it is shown, but does not make a trial `invalid`.

To add a check, add a function with ``@check`` to a file here, or to a module of another package (`dnsrig.discovery`). A
check applies to a trial if the procedure names it (the function `checks` of the procedure), or if the check itself
states so (``applies``).
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from types import ModuleType

from dnsrig import discovery
from dnsrig.rundir import Check, Scalar, TrialSpec
from dnsrig.runs.failures import RAISED
from dnsrig.runs.trial import Trial
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


@dataclass(frozen=True)
class ManipulationCheck:
    name: str
    title: str
    """The checked quantity, in a few words."""
    unit: str
    definition: str
    """What is checked, and the reasons for the limits."""
    look: Callable[[Trial], Seen]
    applies: Callable[[TrialSpec], bool] | None
    """Whether the check applies to a spec of any procedure. None: procedures name the check."""


_registry: dict[str, ManipulationCheck] = {}


def check(
    *, title: str, unit: str = "", applies: Callable[[TrialSpec], bool] | None = None
) -> Callable[[Callable[[Trial], Seen]], Callable[[Trial], Seen]]:
    """Register the decorated function; its name, with dashes, is the check's, its docstring the definition."""

    def register(function: Callable[[Trial], Seen]) -> Callable[[Trial], Seen]:
        name = function.__name__.replace("_", "-")
        if name in _registry:
            raise ValueError(f"check {name} is defined twice")
        _registry[name] = ManipulationCheck(name, title, unit, inspect.getdoc(function) or "", function, applies)
        return function

    return register


@cache
def all_checks() -> dict[str, ManipulationCheck]:
    """Every check by name, in the order of their definition."""
    discovery.plugins(__name__, _brings_checks)
    return dict(_registry)


def _brings_checks(name: str, module: ModuleType) -> ModuleType | None:
    return module if any(discovery.is_of(check.look, module) for check in _registry.values()) else None


def for_any_procedure(spec: TrialSpec) -> list[str]:
    """Names of the checks that apply to ``spec`` whatever its procedure."""
    return [name for name, check in all_checks().items() if _applies(check, spec)]


def _applies(check: ManipulationCheck, spec: TrialSpec) -> bool:
    try:
        return check.applies is not None and check.applies(spec)
    except RAISED as error:  # a check must not cost the trial
        logging.getLogger(__name__).warning("check %s left out: %s: %s", check.name, type(error).__name__, error)
        return False


def look(trial: Trial, names: Iterable[str]) -> list[Check]:
    """The verdicts of the named checks about ``trial``. A check that raises an exception reports `cannot-tell`."""
    return [_verdict(all_checks()[name], trial) for name in dict.fromkeys(names)]


def why_invalid(checks: Iterable[Check]) -> str:
    """A clause if a check failed; otherwise empty."""
    failed = [check.reason for check in checks if check.verdict == "failed"]
    if not failed:
        return ""
    more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
    return f"it does not match its variant: {failed[0]}{more}"


def _verdict(check: ManipulationCheck, trial: Trial) -> Check:
    try:
        seen = check.look(trial)
    except RAISED as error:  # a check must not cost the trial
        seen = cannot_tell(f"the check itself failed: {type(error).__name__}: {error}")
    found = Check(
        name=check.name,
        title=check.title,
        verdict="cannot-tell" if seen.value is None else "passed" if seen.holds else "failed",
        asked=seen.asked,
        seen=round(seen.value, 4) if isinstance(seen.value, float) else seen.value,
        unit=check.unit,
        least=seen.least,
        most=seen.most,
        series=list(seen.series),
    )
    if found.verdict == "cannot-tell":
        found.reason = f"{check.title}: {seen.why}"
    if found.verdict == "failed":
        found.reason = f"{check.title}: {amount(found.seen, check.unit)}, required: {wanted(found)}"
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
