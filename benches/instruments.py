"""What dnsrig's own instruments cost and can do: `make bench`.

Every figure is printed with its spread over repeats. Needs root and the server nsd@forky for `probe`; all traffic stays
on hosts that this bench makes.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from smoke import parser, sized

from dnsrig import paths
from dnsrig.experiment import preparation, trial
from dnsrig.lab.ledger import MEMORY
from dnsrig.rundir import TrialRecord

REPEATS = sized(3, smoke=1)
TLD_DELEGATIONS = sized(2_570_000, smoke=1_000)
"""S1's .ch: 14 million records."""
ZONES = sized(100_000, smoke=1_000)
PROBED_ZONES = sized(20_000, smoke=1_000)
SETTINGS = [
    "server=nsd@forky", "hosts.primary.server=nsd@forky", f"zones={PROBED_ZONES}", "provisioning=static", "transport=tcp",
    "limit_s=60",
]  # fmt: skip
"""One variant of `many-zones`. `probe` asks the primary, so its server decides how fast zones are seen."""


def summary(*arguments: str) -> dict[str, float]:
    """The last event that the engine prints."""
    output = subprocess.run([paths.engine(), *arguments], capture_output=True, text=True, check=True).stdout
    return json.loads(output.splitlines()[-1])  # type: ignore[no-any-return]


def show(what: str, unit: str, values: list[float]) -> None:
    low, middle, high = min(values), statistics.median(values), max(values)
    print(f"{what:55s} {middle:10.3g} {unit:10s} [{low:.3g}..{high:.3g}] n={len(values)}", flush=True)


def generate(folder: Path, *arguments: str) -> Iterator[float]:
    """Seconds to make a dataset. ``folder`` is in memory: on a disk, 100,000 files measure the disk."""
    for repeat in range(REPEATS):
        yield summary("generate", *arguments, "--out", str(folder / f"{arguments[0]}-{repeat}"))["elapsed_ns"] / 1e9


def measured(folder: Path) -> list[TrialRecord]:
    """Trials in which NSD serves many zones from the start, so that `probe` and `watch` are what is measured."""
    request = preparation.Request("many-zones", settings=SETTINGS)
    (spec,) = preparation.prepare(request, lambda text: print(text, file=sys.stderr)).specs.values()
    return [
        trial.run_trial(spec.model_copy(update={"repeat": n}), folder / f"trial-{n}", lambda event: None)
        for n in range(REPEATS)
    ]


def per_poll_us(record: TrialRecord) -> float:
    probe = record.instruments["probe-primary"]
    return float(probe["cpu_ns"] / probe["polls"] / 1000)


def seen_per_s(record: TrialRecord) -> float:
    probe = record.instruments["probe-primary"]
    return float(probe["zones"] / ((probe["last_seen_ns"] - probe["first_seen_ns"]) / 1e9))


def watch_percent(record: TrialRecord) -> float:
    watch, phases = record.instruments["watch"], record.phases
    span_ns = phases[-1].end.monotonic_ns - phases[0].start.monotonic_ns
    return float(100 * watch["cpu_ns"] / span_ns)


def main() -> None:
    parser(__doc__).parse_args()
    with tempfile.TemporaryDirectory(prefix="dnsrig-bench-", dir=MEMORY) as memory:
        zones = generate(Path(memory), "zones", f"--count={ZONES}")
        tld = generate(Path(memory), "tld", f"--delegations={TLD_DELEGATIONS}")
        show(f"generate zones, {ZONES:,}", "s", list(zones))
        show(f"generate tld, {TLD_DELEGATIONS:,} delegations", "s", list(tld))
    with tempfile.TemporaryDirectory(prefix="dnsrig-bench-") as disk:
        records = measured(Path(disk))
    figures: list[tuple[str, str, Callable[[TrialRecord], float]]] = [
        ("probe, CPU a poll", "µs", per_poll_us),
        ("probe, zones seen a second when all are ready", "zones/s", seen_per_s),
        ("watch, CPU at 10 samples a second, 3 hosts", "% of core", watch_percent),
    ]
    for what, unit, figure in figures:
        show(what, unit, [figure(record) for record in records])


if __name__ == "__main__":
    main()
