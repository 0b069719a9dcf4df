"""What transports and their connections cost: the page docs/results/transports.md, from runs of seven experiments.

    .venv/bin/python benches/transports.py [RUN...] > docs/results/transports.md

Without RUN it makes a run of each experiment in `PARTS` first, which needs root. Each row is a variant, each column a
metric: the median of the repeats and their range. The column of the loss has the loss to UDP and its interval. A trial
that is not `done` has no values; the last column has the number of these trials.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from smoke import new_run, parser, sized

from dnsrig.comparison.loss import losses
from dnsrig.rundir import Variant
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial

sys.path.insert(0, str(Path(__file__).parents[1] / "docs"))
from generate import table  # type: ignore[import-not-found]

Cells = Callable[[Run, Variant, Sequence[Trial]], str]
KILOBYTE = 1e3
REPEATS: list[str] = sized([], smoke=["--repeats", "1"])
SMOKE_SETTINGS = {
    "transports": ["server=echo@engine", 'matrix."options.transport"=["udp", "dot"]'],
    "resolver-transports": ["server=unbound@forky", "transport=udp"],
    "handshakes": ["server=echo@engine", "transport=doq", "handshake=full", "baseline={}"],
    "connection-memory": ['matrix."hosts.primary.server"=["echo@engine"]', 'matrix."options.transport"=["tcp"]'],
    "lossy-transports": ["loss_percent=1.0", "transport=udp", "outstanding=10 in 100 ms", "baseline={}"],
    "connections-held": ["server=nsd@forky", "transport=tcp", "held=1000", "limits=raised"],
    "xoq": [
        *("server=zones@engine", "case=many-zones", "site=s3", 'transport="xoq (pipelined)"', "baseline={}"),
        "matrix.case.many-zones.dataset.zones=20",
    ],
}


@dataclass(frozen=True)
class Part:
    """A section of the page."""

    title: str
    says: str
    columns: dict[str, Cells]


def figures(metric: str, unit: float = 1.0) -> Cells:
    """A cell with the median of a metric and its range, in ``unit``."""

    def cell(run: Run, variant: Variant, trials: Sequence[Trial]) -> str:
        found = [value / unit for trial in trials if (value := trial.value(metric)) is not None]
        if not found:
            return ""
        low, middle, high = (_digits(value) for value in (min(found), statistics.median(found), max(found)))
        return f"{middle} [{low}..{high}]" if len(found) > 1 else middle

    return cell


def at_least(run: Run, variant: Variant, trials: Sequence[Trial]) -> str:
    """A cell with the highest rate that a server held in trials that the generator ended: the server may hold more."""
    ended = [trial for trial in run.of_variant(variant.id) if trial.record.outcome == "invalid"]
    found = [held for trial in ended if (held := trial.ramp.capacity_qps or trial.load.capacity_qps)]
    return f"≥ {_digits(max(found))} ({len(found)})" if found else ""


def loss(run: Run, variant: Variant, trials: Sequence[Trial]) -> str:
    """A cell with the loss to UDP and its interval."""
    found = {each.variant.id: each for each in losses(run)}.get(variant.id)
    return "" if found is None else f"{found.text} [{found.low:.0f}..{found.high:.0f}]"


AT_HALF: dict[str, Cells] = {
    "capacity, q/s": figures("capacity_qps"),
    "loss to UDP, %": loss,
    "p50, ms": figures("p50_ms"),
    "p99, ms": figures("p99_ms"),
    "CPU a query, µs": figures("cpu_a_query_us"),
}
PARTS = {
    "transports": Part(
        "Authoritative servers",
        "Connections stay open. Latency and CPU time are at half of each variant's own capacity.",
        AT_HALF,
    ),
    "resolver-transports": Part("Resolvers", "All names are in the cache.", AT_HALF),
    "handshakes": Part(
        "New connections",
        "One query for each connection. Some connections with early data (0-RTT) begin with a full handshake, because"
        " their client has no ticket left: see the share that resumed a session.",
        {
            "connections a second": figures("handshakes_per_s"),
            "ended by the generator": at_least,
            "resumed, %": figures("resumed_handshakes_percent"),
            "early data accepted, %": figures("early_accepted_percent"),
        },
    ),
    "connection-memory": Part(
        "Memory of an open connection",
        "Anonymous memory of the server's processes and the kernel's memory for them, divided by the open connections. Data in the "
        "buffers of sockets is not in it.",
        {"memory a connection, kB": figures("memory_a_connection_bytes", KILOBYTE)},
    ),
    "lossy-transports": Part(
        "A lossy path",
        "Latency from the due time. UDP sends nothing again, so its lost queries are unanswered after the timeout.",
        {
            "p50, ms": figures("p50_ms"),
            "p99, ms": figures("p99_ms"),
            "unanswered, %": figures("unanswered_share_percent"),
        },
    ),
    "connections-held": Part(
        "Connections that are held",
        "Memory and CPU time that a connection adds, which asks once in some seconds. Another client asks meanwhile, with a new "
        "connection for each query.",
        {
            "memory of the server, kB": figures("held_memory_bytes", KILOBYTE),
            "memory of the kernel, kB": figures("held_kernel_memory_bytes", KILOBYTE),
            "CPU, µs a second": figures("held_cpu_us_per_s"),
            "open at the end, %": figures("held_open_percent"),
            "unanswered, %": figures("held_unanswered_percent"),
            "unanswered to the other client, %": figures("unanswered_share_percent"),
        },
    ),
    "xoq": Part(
        "Zones over QUIC",
        "All senders have CUBIC.",
        {
            "zones a second": figures("zones_per_s"),
            "MB a second": figures("transferred_mb_per_s"),
            "zones requested again": figures("transfer_retries"),
            "CPU a zone, client, µs": figures("client_cpu_us_per_zone"),
            "CPU a zone, primary, µs": figures("primary_cpu_us_per_zone"),
        },
    ),
}


def main() -> int:
    asking = parser(__doc__)
    asking.add_argument("runs", nargs="*", type=Path, metavar="RUN")
    print(page(list(map(Run.open, asking.parse_args().runs or measured()))))
    return 0


def measured() -> list[Path]:
    """The folders of new runs."""
    return [new_run(name, sized([], smoke=settings), *REPEATS) for name, settings in SMOKE_SETTINGS.items()]


def page(runs: Iterable[Run]) -> str:
    """The page in Markdown, with a section for each of ``runs``."""
    known = [run for run in runs if run.manifest.experiment in PARTS]
    labels = {trial.record.spec.server.label for run in known for trial in run.trials if trial.record.spec.server}
    lines = [
        "# Transports: what encryption and connections cost",
        f"- **Measured:** {min(run.manifest.created[:10] for run in known)}, "
        + "; ".join(f"`{run.manifest.experiment}` with {len(run.trials)} trials" for run in known)
        + ".",
        f"- **Servers:** {', '.join(sorted(labels))}.",
        "- **Command:** `dnsrig run NAME` for each experiment, then `benches/transports.py RUN...` for this page.",
    ]
    sections = [section(run, PARTS[run.manifest.experiment]) for run in known]
    return "\n\n".join([lines[0], "\n".join(lines[1:]), *sections])


def section(run: Run, part: Part) -> str:
    """A heading, a sentence and the table of a run."""
    axes = [axis for axis, values in run.manifest.axes.items() if len(values) > 1] or list(run.manifest.axes)
    rows = []
    for variant in run.manifest.variants:
        trials = list(run.of_variant(variant.id))
        done = [trial for trial in trials if trial.record.outcome == "done"]
        names = [str(variant.parameters.get(axis, "")) for axis in axes]
        cells = [cell(run, variant, done) for cell in part.columns.values()]
        rows.append([*names, *cells, str(len(trials) - len(done))])
    return f"## {part.title}\n\n{part.says}\n\n{table([*axes, *part.columns, 'not done'], rows)}"


def _digits(value: float) -> str:
    """
    >>> _digits(12345.6), _digits(0.01234)
    ('12,346', '0.0123')
    """
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


if __name__ == "__main__":
    raise SystemExit(main())
