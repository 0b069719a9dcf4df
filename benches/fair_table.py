"""One table of several runs with the same servers, e.g. of the experiment `fair-table` with several procedures.

    .venv/bin/python benches/fair_table.py [RUN...]

Without RUN it makes the three runs of `fair-table` first, which needs root. Each row is a server in one variant, each
column a metric: the median of the repeats and their range. A trial that is not `done` has no values; the last column
has the number of these trials.
"""

from __future__ import annotations

import statistics
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from smoke import new_run, parser, sized

from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial

sys.path.insert(0, str(Path(__file__).parents[1] / "docs"))
from generate import table  # type: ignore[import-not-found]

METRICS = {
    "capacity_qps": "capacity, q/s",
    "cpu_a_query_us": "CPU a query, µs",
    "p50_ms": "p50, ms",
    "p99_ms": "p99, ms",
    "load_time_s": "start, s",
    "primary_memory_peak_bytes": "memory, MiB",
    "resolver_memory_peak_bytes": "memory, MiB",
}
QUESTIONS: tuple[list[str], ...] = (
    [],
    ["procedure=latency", "options.rate_qps=2000"],
    ["procedure=zone-load", "options={}"],
)
"""Settings of each run: capacity, latency at a rate that all servers hold, start."""
SMALL: list[str] = sized([], smoke=["dataset.zones=10", 'matrix."hosts.primary.server"=["hickory@forky", "nsd@forky"]'])
REPEATS = sized(5, smoke=1)
MEBIBYTE = 1 << 20
Values = dict[str, dict[str, list[float]]]
"""Variant -> metric -> its values; the metric ``""`` has a zero for each trial that is not `done`."""


def main() -> int:
    asking = parser(__doc__)
    asking.add_argument("runs", nargs="*", type=Path, metavar="RUN")
    print(table_of(values(map(Run.open, asking.parse_args().runs or measured()))))
    return 0


def measured() -> list[Path]:
    """The folders of new runs."""
    repeats = ("--repeats", str(REPEATS))
    return [new_run("fair-table", [*settings, *SMALL], *repeats) for settings in QUESTIONS]


def values(runs: Iterable[Run]) -> Values:
    """The values of each metric come from the first run that has it: CPU time and memory depend on the load."""
    found: Values = defaultdict(lambda: defaultdict(list))
    for run in runs:
        known = {(name, metric) for name, of_variant in found.items() for metric in of_variant}
        for trial in run.trials:
            of_variant = found[_name(trial)]
            if trial.record.outcome != "done":
                of_variant[""].append(0.0)
                continue
            for metric in METRICS:
                if (_name(trial), metric) not in known and (value := trial.value(metric)) is not None:
                    of_variant[metric].append(value)
    return found


def table_of(found: Values) -> str:
    """The table in Markdown, without columns that have no value. Of a forwarder's upstream nothing is shown."""
    shown = [metric for metric in METRICS if any(metric in of_variant for of_variant in found.values())]
    if "resolver_memory_peak_bytes" in shown:
        shown.remove("primary_memory_peak_bytes")
    lines = [
        [name, *(_cell(metric, of_variant.get(metric, [])) for metric in shown), str(len(of_variant.get("", [])))]
        for name, of_variant in sorted(found.items())
    ]
    return str(table(["server", *(METRICS[metric] for metric in shown), "not done"], lines))


def _name(trial: Trial) -> str:
    """The server with its version, and the values of the other axes."""
    spec = trial.record.spec
    others = [f"{axis} {value}" for axis, value in spec.variant.parameters.items() if axis != "server"]
    return ", ".join([spec.server.label if spec.server else "", *others])


def _cell(metric: str, of_metric: Sequence[float]) -> str:
    if not of_metric:
        return ""
    scale = MEBIBYTE if metric.endswith("_bytes") else 1
    least, middle, most = (
        _digits(value / scale) for value in (min(of_metric), statistics.median(of_metric), max(of_metric))
    )
    return f"{middle} [{least}..{most}]"


def _digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


if __name__ == "__main__":
    raise SystemExit(main())
