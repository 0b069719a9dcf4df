"""The stream of a replay, which several traps examine."""

from __future__ import annotations

from dnsrig.runs import streamed
from dnsrig.runs.streamed import Stream
from dnsrig.runs.trial import Trial
from dnsrig.traps import JUDGED


def replayed(trial: Trial) -> Stream | None:
    """The stream that was replayed; None without a replay, or if traps do not examine trials with this outcome."""
    return streamed.of(trial) if trial.record.outcome in JUDGED else None
