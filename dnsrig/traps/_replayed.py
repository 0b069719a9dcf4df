"""What traps of replays look at."""

from __future__ import annotations

from dnsrig.analysis import streamed
from dnsrig.analysis.read import Trial
from dnsrig.analysis.streamed import Stream
from dnsrig.traps import JUDGED


def replayed(trial: Trial) -> Stream | None:
    """The stream that was replayed; None where nothing was, or the trial ended so that traps do not speak of it."""
    return streamed.of(trial) if trial.record.outcome in JUDGED else None
