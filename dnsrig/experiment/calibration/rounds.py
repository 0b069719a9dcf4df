"""One part of a calibration: rounds of an experiment, as many as its time allows."""

from __future__ import annotations

import time
from pathlib import Path

from dnsrig.errors import DnsrigError
from dnsrig.experiment import preparation, runner
from dnsrig.experiment.runner import Progress
from dnsrig.rundir import write_json
from dnsrig.runs.run import Run


def execute(
    part: str,
    scale: str,
    settings: list[str],
    runs: Path,
    progress: Progress,
    fewest: int,
    until_s: float,
    machines: Path | None = None,
) -> Run:
    """``fewest`` rounds of ``part`` at least, and no other that would end after ``until_s`` of the monotonic clock.
    ``machines``: the file of those that hosts are on, beside this one.

    Raises DnsrigError where a trial fails by a fault of dnsrig or the machine: a certificate has all its figures.
    """
    request = preparation.Request(str(Path(__file__).with_name(f"{part}.toml")), scale, settings, machines=machines)
    manifest = preparation.prepare(request, progress.note)
    progress.note(f"{part}: {manifest.title}")
    directory = runner.create(manifest, runs)
    number, longest_s = 0, 0.0
    while number < manifest.repeats and (number < fewest or time.monotonic() + longest_s < until_s):
        number, began_s = number + 1, time.monotonic()
        so_far = manifest.order[: number * len(manifest.variants)]
        done = manifest.model_copy(update={"order": so_far, "repeats": number})
        if errors := runner.execute(done, directory, progress):
            raise DnsrigError(
                f"{errors} trial(s) of the part {part} failed because of dnsrig or the machine",
                hint=f"their logs are in {directory}/trials/*/*.aborted until the next calibration; `dnsrig check` may show what is missing",
            )
        write_json(directory / "manifest.json", done)
        longest_s = max(longest_s, time.monotonic() - began_s)
    return Run.open(directory)
