"""The wall clock was outside the time for which signatures are valid.

To a resolver that validates, everything signed is bogus then: SERVFAIL for all of it, at once and without a word to the
client, and only what is not signed is answered. That looks like a resolver that is broken, or, where few zones are
signed, like one that is fast. The check `resolver-level` makes such a trial invalid; this says why.

The clock may be wrong, or the signatures old: those of a world are valid from `signing.epoch_s` on, for
`signing.validity_days`. Who does not validate does not look at the time.
"""

from __future__ import annotations

from datetime import UTC, datetime

from dnsrig.analysis.read import Trial
from dnsrig.traps import CLEAR, JUDGED, Conclusion, cannot_tell

ORDER = 20
TITLE = "the clock is outside the validity of signatures"
SOURCE = "RFC 4035, 5.3.1: the validator's notion of the current time must be from inception to expiration"
WEIGHT = "invalidates"


def after(trial: Trial) -> Conclusion | None:
    spec = trial.record.spec
    asked, phase = spec.hosts[trial.subject].resolving, trial.measure
    if spec.world is None or asked is None or trial.record.outcome not in JUDGED:
        return None
    if asked.level != "validating":
        return CLEAR
    told = trial.record.instruments.get("signatures") or {}
    if phase is None or "valid_until_s" not in told:
        return cannot_tell("The trial did not record for how long signatures are valid.")
    begin_s, end_s = phase.start.realtime_ns // 10**9, phase.end.realtime_ns // 10**9
    if told["valid_from_s"] <= begin_s and end_s <= told["valid_until_s"]:
        return CLEAR
    valid = f"{_date(told['valid_from_s'])} to {_date(told['valid_until_s'])}"
    return Conclusion(
        "found",
        summary=f"The clock said {_date(begin_s)}, and signatures are valid from {valid}: a resolver that validates takes everything signed for bogus.",
        evidence={
            "clock_s": begin_s,
            "valid_from_s": told["valid_from_s"],
            "valid_until_s": told["valid_until_s"],
        },
        metrics=(spec.main_metric, "answered_qps"),
        remedy="Set the clock of the machine; or have signatures begin before today: `signing.epoch_s` and `signing.validity_days` in `dataset.set`.",
    )


def _date(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
