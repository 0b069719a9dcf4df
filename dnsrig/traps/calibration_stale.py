"""The certificate that this run cites no longer describes the rig.

`dnsrig calibrate` measures the floor of latency, the highest rates, and the noise from trial to trial, under the
conditions at that time. A different kernel, CPU, clock source, governor, network interface or engine changes these
figures; a reboot alone does not. Some changes are invisible to dnsrig: microcode, firmware, the hypervisor's host and
its other guests. So a certificate is valid for only 30 days.
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
GROUP = "the machine and its clocks"
TITLE = "the calibration is out of date"
SOURCE = "docs/reference/certificate.md: a certificate is valid for the conditions at the time of the calibration"
LONGEST = timedelta(days=30)
"""About the interval at which distributions and hosting companies change kernel, microcode or host. This is a
convention, not a measured value: a calibration takes ten minutes."""
SHORT = 12
"""Number of characters of a fingerprint that are shown."""
REMEDY = "Stop everything else on this machine and run `dnsrig calibrate`. Runs that begin afterwards cite the new certificate."


def before(manifest: Manifest, conditions: Mapping[str, Any]) -> Conclusion:
    cited = certificate.cited(conditions)
    if cited is None:
        return cannot_tell(
            "This rig was not calibrated when the run began, so its limits are not known: run `dnsrig calibrate`."
        )
    changed = {**_of_machine(cited, conditions), **_of_rig(cited, manifest)}
    age = _age(cited, manifest)
    if not changed and (age is None or age <= LONGEST):
        return CLEAR if age is not None else cannot_tell("The date of the certificate or of the run cannot be read.")
    told = [f"{what.replace('_', ' ')} was {then} and is now {now}" for what, (then, now) in changed.items()]
    evidence: dict[str, Scalar | None] = {"certificate": cited.id}
    if age is not None:
        evidence["age_days"] = round(age / timedelta(days=1), 1)
        if age > LONGEST:
            told.append(f"it was {age.days} days old; {LONGEST.days} are allowed")
    return Conclusion(
        "found",
        summary=f"The certificate {cited.id}{_path(cited)} was no longer valid when this run began: {'; '.join(told)}.",
        evidence=evidence | {what: f"{then}, {now}" for what, (then, now) in changed.items()},
        remedy=REMEDY,
    )


def _path(cited: Cited) -> str:
    """The network interface that the certificate covers, if any."""
    return f", also of {path}," if (path := cited.figures.get("nic_path")) else ""


def _of_machine(cited: Cited, conditions: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Conditions that both have recorded and that differ."""
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
    """Age of the certificate when the run began; None if a time cannot be read."""
    try:
        return datetime.fromisoformat(manifest.created) - datetime.fromisoformat(cited.created)
    except (ValueError, TypeError):
        return None
