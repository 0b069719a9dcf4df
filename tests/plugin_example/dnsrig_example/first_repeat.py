"""The first repeat was the slowest of its variant: something was cold that was warm afterwards."""

from collections.abc import Iterable
from statistics import median

from dnsrig.runs.run import Run
from dnsrig.traps import CLEAR, Conclusion, cannot_tell

TITLE = "the first repeat is slower than the others"
SOURCE = "an example"
FACTOR = 1.5
"""Slower by so much than the median of the others."""


def across(run: Run) -> Iterable[tuple[str, Conclusion]]:
    for variant in run.manifest.variants:
        times = {trial.key.repeat: trial.time_s for trial in run.of_variant(variant.id) if trial.time_s is not None}
        first, others = times.pop(1, None), list(times.values())
        if first is None or not others:
            yield variant.id, cannot_tell("There is no first repeat, or no other.")
            continue
        ratio = first / median(others)
        summary = f"The first repeat took {ratio:.2g} times as long as the others."
        evidence = {"first_s": first, "others_s": median(others)}
        yield variant.id, Conclusion("found", summary, evidence) if ratio >= FACTOR else CLEAR
