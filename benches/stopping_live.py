"""How often `dnsrig bench` claims a difference between servers that are equal, and between servers that are not: live.

    .venv/bin/python benches/stopping_live.py [--results FILE] [PART...]

Needs root and about 70 minutes. Each run is a `dnsrig bench` of two servers with its own rule, in a shorter
time: `--within 20s`. Both servers of the parts `rate`, `max` and `transfer` are the same NSD with another NSID, which
nobody asks for. The second server of the part `slower` answers 10 % later than the first.

Each run adds a line of JSON to FILE, `stopping-live.jsonl` by default. Runs that it has are not repeated, so an
interrupted bench goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import smoke
import tomli_w
from false_alarms import Quiet
from smoke import sized
from stopping_simulated import wilson

from dnsrig.comparison import summary
from dnsrig.experiment import preparation, runner, sequential
from dnsrig.experiment.bench import Question, experiment
from dnsrig.rundir import Until
from dnsrig.runs.run import Run

UNTIL = Until(percent=5, least=sized(5, smoke=2), most=sized(30, smoke=2), within_s=20)
SAME = ("settings.nsid", ["ascii_a", "ascii_b"])
PARTS: dict[str, tuple[int, Question, tuple[str, list[str]]]] = {
    "rate": (40, Question(["nsd@forky"], rates_qps=[10_000], duration_s=1), SAME),
    "slower": (40, Question(["echo@engine"], rates_qps=[10_000], duration_s=1), ("settings.delay", ["1ms", "1100us"])),
    "max": (20, Question(["nsd@forky"], measure="max"), SAME),
    "transfer": (20, Question(["nsd@forky"], measure="transfer"), SAME),
}
"""Name -> number of runs, what is measured, and what differs."""


def document(part: str) -> dict[str, Any]:
    _, question, (setting, values) = PARTS[part]
    made = experiment(question)
    role = "secondary" if question.measure == "transfer" else "primary"
    made["matrix"] |= {f"hosts.{role}.{setting}": values}
    made["baseline"] = {setting.rpartition(".")[2]: values[0]}
    if question.measure == "max":
        made["options"] |= sized({}, smoke={"ramp_step_s": 0.1, "ramp_precision_percent": 50.0, "ramp_most_qps": 2_000})
    return made


def executed(part: str) -> dict[str, Any]:
    """One run: what it claims, its interval in percent of the first server, its repeats and its time."""
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="dnsrig-stopping-") as temporary:
        folder = Path(temporary)
        (folder / "bench.toml").write_text(tomli_w.dumps(document(part)))
        request = preparation.Request(str(folder / "bench.toml"), until=UNTIL)
        manifest = preparation.prepare(request, lambda _: None)
        directory = runner.create(manifest, folder)
        sequential.execute_until_narrow(
            manifest, directory, lambda more: runner.execute(more, directory, Quiet()), lambda: None
        )
        run = Run.open(directory)
        rows = summary.variant_table(run, summary.main_metric(run))
        found = next(row.comparison for row in rows if row.against is not None)
        outcomes = [trial.record.outcome for trial in run.trials]
    return {
        "part": part,
        "change": found.change if found else "undecided",
        "percent": found.percent if found else None,
        "interval": [found.interval.low, found.interval.high] if found and found.interval else None,
        "repeats": len(outcomes) // 2,
        "not_done": sum(outcome != "done" for outcome in outcomes),
        "seconds": round(time.monotonic() - began_s, 1),
    }


def main() -> None:
    asking: argparse.ArgumentParser = smoke.parser(__doc__)
    asking.add_argument("--results", type=Path, metavar="FILE", default=Path("stopping-live.jsonl"))
    smoke.add_parts(asking, PARTS)
    options = asking.parse_args()
    options.results.touch()
    known = [json.loads(line) for line in options.results.read_text().splitlines()]
    for part in options.parts:
        wanted = sized(PARTS[part][0], smoke=1)
        while sum(one["part"] == part for one in known) < wanted:
            known.append(executed(part))
            print(known[-1], file=sys.stderr, flush=True)
            with options.results.open("a") as file:
                file.write(json.dumps(known[-1]) + "\n")
    print("| part | runs | claims | of the second as faster | repeats: median, most |")
    print("| --- | --- | --- | --- | --- |")
    for part in options.parts:
        runs = [one for one in known if one["part"] == part]
        claims = [one["change"] for one in runs if one["change"] != "undecided"]
        wrong = claims.count("better")
        repeats = sorted(one["repeats"] for one in runs)
        print(
            f"| {part} | {len(runs)} | {len(claims)}, {wilson(len(claims), len(runs))} | {wrong} "
            f"| {repeats[len(repeats) // 2]}, {repeats[-1]} |"
        )


if __name__ == "__main__":
    main()
