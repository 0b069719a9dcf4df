"""The CPU profiles of each trial for speedscope (https://www.speedscope.app), by its file format's schema.

Of the server under test the samples are in the order in which they were taken, where that is known; elsewhere equal
stacks are one, in the order of their names. A sample weighs its CPU time, and 1 where the rate of
sampling is not known. A trial without a profile has no file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import dnsrig
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial
from dnsrig.text import visible

SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def write(run: Run, out: Path) -> list[Path]:
    paths = []
    for trial in run.as_far_as_whole().trials:
        with run.failures.isolate("export", "speedscope"):
            found = document(trial)
            if found["profiles"]:
                path = out / f"{trial.key.variant}-{trial.key.repeat}.speedscope.json"
                path.write_text(json.dumps(found) + "\n", encoding="utf-8")
                paths.append(path)
    return paths


def document(trial: Trial) -> dict[str, Any]:
    """All profiles of a trial; the server under test comes first."""
    frames: dict[str, int] = {}
    hosts = [trial.subject, *(host for host in trial.record.spec.hosts if host != trial.subject)]
    profiles = [_profile(trial, host, stacks, frames) for host in hosts if (stacks := _stacks(trial, host))]
    return {
        "$schema": SCHEMA,
        "name": visible(f"{trial.record.spec.variant.label}, repeat {trial.key.repeat}"),
        "exporter": f"dnsrig {dnsrig.__version__}",
        "activeProfileIndex": 0,
        "shared": {"frames": [{"name": visible(name)} for name in frames]},
        "profiles": profiles,
    }


def _stacks(trial: Trial, host: str) -> list[tuple[str, int]]:
    """Stack and how many samples."""
    if host == trial.subject:
        timed = trial.timed_stacks.drop_nulls().sort("time_ns", maintain_order=True)
        if not timed.is_empty():
            return [(stack, 1) for stack in timed["stack"]]
    return sorted(trial.stacks_of(host).items())


def _profile(trial: Trial, host: str, stacks: Iterable[tuple[str, int]], frames: dict[str, int]) -> dict[str, Any]:
    """``frames``: the number of each, in which new ones are put."""
    recorded = trial.record.profiles.get(host)
    rate = recorded.rate_per_s if recorded else 0.0
    sample_ns = round(1e9 / rate) if rate > 0 else 1
    samples = [[frames.setdefault(name, len(frames)) for name in stack.split(";")] for stack, _ in stacks]
    weights = [count * sample_ns for _, count in stacks]
    server = trial.record.servers.get(host)
    return {
        "type": "sampled",
        "name": visible(f"{host}: {server.server.label}" if server else host),
        "unit": "nanoseconds" if rate > 0 else "none",
        "startValue": 0,
        "endValue": sum(weights),
        "samples": samples,
        "weights": weights,
    }
