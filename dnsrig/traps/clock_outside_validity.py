"""The wall clock was outside the time for which signatures are valid.

A validating resolver then takes everything signed for bogus. It answers SERVFAIL at once, without a reason, and answers
only names that are not signed. It looks like a broken resolver or, if few zones are signed, like a fast one. The check
`resolver-level` makes such a trial invalid; this trap states the reason.

The clock may be wrong, or the signatures old: the signatures of a simulated world are valid from `signing.epoch_s` on,
for `signing.validity_days`. A resolver that does not validate ignores the time.
"""

from __future__ import annotations

from datetime import UTC, datetime

from dnsrig.runs.trial import Trial
from dnsrig.traps import CLEAR, JUDGED, Conclusion, cannot_tell

ORDER = 20
GROUP = "the machine and its clocks"
OUTCOMES = JUDGED
TITLE = "the clock is outside the validity of signatures"
SOURCE = "RFC 4035, 5.3.1: the validator's notion of the current time must be from inception to expiration"
WEIGHT = "invalidates"


def after(trial: Trial) -> Conclusion | None:
    spec = trial.record.spec
    asked, phase = spec.hosts[trial.subject].resolving, trial.measure
    if spec.world is None or asked is None:
        return None
    if asked.level != "validating":
        return CLEAR
    told = trial.record.instruments.get("signatures") or {}
    if phase is None or "valid_until_s" not in told:
        return cannot_tell("The trial did not record how long signatures are valid.")
    begin_s, end_s = phase.start.realtime_ns // 10**9, phase.end.realtime_ns // 10**9
    if told["valid_from_s"] <= begin_s and end_s <= told["valid_until_s"]:
        return CLEAR
    valid = f"{_date(told['valid_from_s'])} to {_date(told['valid_until_s'])}"
    return Conclusion(
        "found",
        summary=f"The clock was at {_date(begin_s)}, but signatures are valid from {valid}: a validating resolver takes everything signed for bogus.",
        evidence={
            "clock_s": begin_s,
            "valid_from_s": told["valid_from_s"],
            "valid_until_s": told["valid_until_s"],
        },
        metrics=(spec.main_metric, "answered_qps"),
        remedy="Set the clock of the machine, or let signatures be valid today: `signing.epoch_s` and `signing.validity_days` in `dataset.set`.",
    )


def _date(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
