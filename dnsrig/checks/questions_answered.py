"""Share of the questions to the primary whose answer allowed a conclusion."""

from __future__ import annotations

from dnsrig.checks import Seen, cannot_tell
from dnsrig.runs.trial import Trial

TITLE = "questions with an answer"
UNIT = "%"
LEAST_PERCENT = 50.0


def look(trial: Trial) -> Seen:
    features = trial.record.instruments.get("interrogate", {}).get("features") or []
    if not features:
        return cannot_tell("no question was asked")
    told = sum(feature["verdict"] != "cannot-tell" for feature in features)
    return Seen(100 * told / len(features), least=LEAST_PERCENT)
