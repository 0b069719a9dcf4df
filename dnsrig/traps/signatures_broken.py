"""Signed zones of the user changed without new signatures, because the experiment wants it (``unsigned_changes``).

Transfers and their times stay what they are, but a validating resolver refuses what changed, and a server that checks
signatures or digests (RFC 8976) of what it receives refuses the zone.

How it is detected: the dataset has zones with records of DNSSEC or with a digest, and dnsrig made their next version,
or the primary took dynamic updates of them.
"""

from __future__ import annotations

from dnsrig.rundir import TrialSpec
from dnsrig.runs.trial import Trial
from dnsrig.traps import CLEAR, Conclusion

ORDER = 46
GROUP = "zone transfers"
TITLE = "signed zones were changed without new signatures"
SOURCE = "RFC 4035 §5.3: signatures cover an RRset with its TTL; RFC 8976 §4: a digest covers the whole zone"
WEIGHT = "explains"


def after(trial: Trial) -> Conclusion | None:
    spec = trial.record.spec
    if "unsigned_changes" not in spec.dataset.parameters or not _changes(spec):
        return None
    if not spec.dataset.signed_zones:
        return CLEAR
    return Conclusion(
        "found",
        summary=f"{spec.dataset.signed_zones:,} of {spec.dataset.zones:,} zones are signed, or have a digest, and were "
        "changed without new signatures (unsigned_changes).",
        evidence={"signed_zones": spec.dataset.signed_zones},
        remedy="Take the later versions of the zones from their signer: dataset.next.",
    )


def _changes(spec: TrialSpec) -> bool:
    """Whether dnsrig changes zones in the trial."""
    made = len(spec.versions) > 1 and not spec.dataset.parameters.get("next")
    return made or (spec.transfer.updates and spec.options.get("changes") not in ("none", "catalog"))
