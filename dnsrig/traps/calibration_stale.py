"""The certificate that this run cites no longer says what the rig can tell.

`dnsrig calibrate` measures the floor of latency, the highest rates and the noise from trial to trial under the
conditions of its day. With another kernel, CPU, clock source, governor, network interface or engine they are other
figures. A boot alone changes none of them. What changes unseen is not among the conditions: microcode, firmware, the
hypervisor's host and its other guests. So a certificate counts for 30 days only.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from dnsrig import certificate
from dnsrig.certificate import LASTING, Cited
from dnsrig.rundir import Manifest, Scalar
from dnsrig.traps import CLEAR, Conclusion, cannot_tell

ORDER = 85
TITLE = "the calibration no longer holds"
SOURCE = "docs/reference/certificate.md: a certificate holds for the conditions of its day"
LONGEST = timedelta(days=30)
"""About as often as distributions and hosting companies bring a new kernel, microcode or host. It is a convention, and
no measured one: recalibrating takes ten minutes."""
SHORT = 12
"""Characters of a fingerprint that are told."""
REMEDY = (
    "Stop what else runs on this machine, and `dnsrig calibrate`; runs that begin afterwards cite the new certificate."
)


def before(manifest: Manifest, conditions: Mapping[str, Any]) -> Conclusion:
    cited = certificate.cited(conditions)
    if cited is None:
        return cannot_tell(
            "This rig was not calibrated when the run began, so what it can tell is not known: `dnsrig calibrate`."
        )
    changed = {**_of_machine(cited, conditions), **_of_rig(cited, manifest)}
    age = _age(cited, manifest)
    if not changed and (age is None or age <= LONGEST):
        return CLEAR if age is not None else cannot_tell("When the certificate was made, or the run, cannot be read.")
    told = [f"{what.replace('_', ' ')} was {then}, and is {now}" for what, (then, now) in changed.items()]
    evidence: dict[str, Scalar | None] = {"certificate": cited.id}
    if age is not None:
        evidence["age_days"] = round(age / timedelta(days=1), 1)
        if age > LONGEST:
            told.append(f"it was {age.days} days old, where {LONGEST.days} are allowed")
    return Conclusion(
        "found",
        summary=f"The certificate {cited.id}{_path(cited)} no longer held when this run began: {'; '.join(told)}.",
        evidence=evidence | {what: f"{then}, {now}" for what, (then, now) in changed.items()},
        remedy=REMEDY,
    )


def _path(cited: Cited) -> str:
    """The interface that was measured through, where one was."""
    return f", also of {path}," if (path := cited.figures.get("nic_path")) else ""


def _of_machine(cited: Cited, conditions: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """What was another one, of what both tell."""
    both = [name for name in LASTING if name in cited.conditions and name in conditions]
    unlike = [name for name in both if cited.conditions[name] != conditions[name]]
    return {name: (_shown(cited.conditions[name]), _shown(conditions[name])) for name in unlike}


def _of_rig(cited: Cited, manifest: Manifest) -> dict[str, tuple[str, str]]:
    rig = {
        "dnsrig_version": (cited.dnsrig_version, manifest.dnsrig_version),
        "engine": (cited.engine_fingerprint[:SHORT], manifest.engine_fingerprint[:SHORT]),
    }
    return {name: (then, now) for name, (then, now) in rig.items() if then != now}


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {what}" for name, what in value.items()) or "none"
    return "not known" if value is None else str(value)


def _age(cited: Cited, manifest: Manifest) -> timedelta | None:
    """When the run began; None where a time cannot be read."""
    try:
        return datetime.fromisoformat(manifest.created) - datetime.fromisoformat(cited.created)
    except (ValueError, TypeError):
        return None
