"""What transports and their connections cost: the page docs/results/transports.md, from runs of seven experiments.

    .venv/bin/python benches/transports.py [RUN...] [--pictures FOLDER] > docs/results/transports.md

Without RUN it makes a run of each experiment in `PARTS` first, which needs root. Each row is a variant, each column a
metric: the median of the repeats and their range. The column of the loss has the loss to UDP and its interval. A trial
that is not `done` has no values; the last column has the number of these trials. The pictures have a mark for each
trial, a tick for each median, and a line from one to the next where they are of numbers.
"""

from __future__ import annotations

import re
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import altair as alt
import polars as pl
from smoke import new_run, parser, scratch, sized

from dnsrig.comparison.loss import losses
from dnsrig.report import svg
from dnsrig.report.charts import _look
from dnsrig.rundir import Variant
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial

sys.path.insert(0, str(Path(__file__).parents[1] / "docs"))
from generate import table  # type: ignore[import-not-found]

Cells = Callable[[Run, Variant, Sequence[Trial]], str]
KILOBYTE = 1e3
MEASURED, AT_LEAST = "measured", "at least: the generator was the limit"
LEGEND = alt.Legend(orient="top", symbolOpacity=1)
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
class Picture:
    """A chart of a metric: panels side by side, and in each an axis of the run from left to right."""

    metric: str
    title: str
    """What the metric is called on the axis, with its unit."""
    x: str
    colour: str
    column: str
    row: str = ""
    """These four are axes of the run."""
    unit: float = 1.0
    where: Mapping[str, object] = field(default_factory=dict)
    """Only variants with these values of their axes."""
    panel_px: int = 150
    in_a_row: int = 9
    logarithmic: bool = True

    def draw(self, run: Run) -> alt.TopLevelMixin:
        rows = [row for trial in run.trials for row in self._rows(run, trial)]
        order = {axis: sorted(map(str, values), key=_numbers) for axis, values in run.manifest.axes.items()}
        names = order[self.colour]
        least, most = min(row["value"] for row in rows), max(row["value"] for row in rows)
        scale = alt.Scale(type="log", domain=[least / 1.2, most * 1.2], nice=False) if self.logarithmic else alt.Scale()
        axis = _look.axis_of(scale, 4) if self.logarithmic else alt.Axis(tickCount=4)
        base = alt.Chart(pl.DataFrame(rows)).encode(
            alt.X(f"{self.x}:N", sort=order[self.x], title=self.x.replace("_", " "), axis=alt.Axis(labelAngle=-40)),
            alt.Color(f"{self.colour}:N", sort=names, scale=_look.colours(names), title=None, legend=LEGEND),
        )
        title = f"{self.title}{' (log scale)' * self.logarithmic}"
        y, middle = (alt.Y(f"{what}:Q", scale=scale, axis=axis, title=title) for what in ("value", "median(value)"))
        shape = alt.Shape(
            "known:N",
            title=None,
            legend=LEGEND if any(row["known"] != MEASURED for row in rows) else None,
            scale=alt.Scale(domain=[MEASURED, AT_LEAST], range=["circle", "triangle-up"]),
        )
        joined = [base.mark_line(strokeWidth=1.4).encode(middle)] if _numbers(order[self.x][-1]) else []
        marks = base.mark_point(size=34, opacity=0.8).encode(y, shape)
        panel = alt.layer(*joined, base.mark_tick(thickness=2, size=16).encode(middle), marks)
        sized = panel.properties(width=self.panel_px, height=self.panel_px)
        if self.row:
            rows_of = alt.Row(f"{self.row}:N", sort=order[self.row], title=None)
            return sized.facet(row=rows_of, column=alt.Column(f"{self.column}:N", sort=order[self.column], title=None))
        return sized.facet(alt.Facet(f"{self.column}:N", sort=order[self.column], title=None), columns=self.in_a_row)

    def _rows(self, run: Run, trial: Trial) -> Iterator[dict[str, Any]]:
        """One of a trial with a value."""
        parameters = next(v.parameters for v in run.manifest.variants if v.id == trial.record.spec.variant.id)
        ended = trial.ramp.capacity_qps or trial.load.capacity_qps or None
        bound = ended if trial.record.outcome == "invalid" else None
        value = bound or (trial.value(self.metric) if trial.record.outcome == "done" else None)
        if value is not None and all(parameters.get(axis) == wanted for axis, wanted in self.where.items()):
            told = {axis: str(value) for axis, value in parameters.items()}
            yield {**told, "value": value / self.unit, "known": AT_LEAST if bound else MEASURED}


@dataclass(frozen=True)
class Part:
    """A section of the page."""

    title: str
    says: str
    columns: dict[str, Cells]
    picture: Picture | None = None


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
        Picture("capacity_qps", "capacity, queries/s", x="transport", colour="transport", column="server"),
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
        Picture(
            "p99_ms", "p99, ms", x="loss_percent", colour="transport", column="outstanding", in_a_row=3, panel_px=190
        ),
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
        Picture(
            *("held_memory_bytes", "memory of the server for a connection, kB"),
            *("held", "server", "transport"),
            unit=KILOBYTE,
            where={"limits": "raised"},
            panel_px=230,
            logarithmic=False,
        ),
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
        Picture("transferred_mb_per_s", "MB a second", "transport", "server", "site", "case", panel_px=230),
    ),
}


def main() -> int:
    asking = parser(__doc__)
    asking.add_argument("runs", nargs="*", type=Path, metavar="RUN")
    asking.add_argument("--pictures", type=Path, default=scratch(), metavar="FOLDER", help="write the charts there")
    asked = asking.parse_args()
    runs = list(map(Run.open, asked.runs or measured()))
    print(page(runs))
    for run in runs if asked.pictures else []:
        part = PARTS.get(run.manifest.experiment)
        if part and part.picture:
            picture = asked.pictures / f"{run.manifest.experiment}.png"
            picture.write_bytes(svg.png(svg.render(part.picture.draw(run))))
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


def _numbers(name: str) -> list[float]:
    """The numbers in a name, from the last: by these the panels are sorted. Names without stay in their order.

    >>> sorted(["10 in 20 ms", "1 in 100 ms", "1 in 20 ms"], key=_numbers)
    ['1 in 20 ms', '10 in 20 ms', '1 in 100 ms']
    """
    return [float(number) for number in re.findall(r"[0-9.]+", name)][::-1]


def _digits(value: float) -> str:
    """
    >>> _digits(12345.6), _digits(0.01234)
    ('12,346', '0.0123')
    """
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


if __name__ == "__main__":
    raise SystemExit(main())
