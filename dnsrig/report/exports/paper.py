"""What a paper hands in beside its figures: every chart as SVG and PDF, what it was drawn of, and how it was measured.

::

    paper/
      README.md           what is what
      experiment.toml     what `dnsrig run` takes to measure it again
      conditions.json     versions, and the machine
      summary.csv         one row a trial and metric
      figures/
        NAME.svg NAME.pdf
        NAME-1.csv …      the rows of each layer
        NAME.txt          the caption: what is shown, repeats, spread, conditions
        NAME.tex          figure and caption for ``\\input``

Bytes of a PDF may differ from one export to the next: the library that makes it orders its fonts by chance.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import tomli_w

from dnsrig.comparison.summary import measured_metrics, summarise, variant_table
from dnsrig.report import figures, svg, wording
from dnsrig.report.comparison import run_as_json
from dnsrig.report.draw import Rendered, draw_all
from dnsrig.report.figures import count as counted
from dnsrig.report.latex import latex
from dnsrig.report.markdown import code, table, text
from dnsrig.report.setting import setting
from dnsrig.rundir import Outcome
from dnsrig.runs.run import Run
from dnsrig.text import visible

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What makes a cell a formula when a spreadsheet opens the file."""
MOST_VARIANTS = 8
"""Variants whose medians a caption names; summary.csv has all."""


def write(run: Run, out: Path) -> list[Path]:
    folder = out / "paper"
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    figures = draw_all(run)
    paths: list[Path] = []
    for name, content in (("experiment.toml", _experiment), ("conditions.json", _conditions)):
        with run.failures.isolate("export", f"paper {name}"):
            paths.append(_written(folder / name, content(run)))
    summarise(run).write_csv(folder / "summary.csv")
    paths.append(folder / "summary.csv")
    for figure in figures:
        with run.failures.isolate("chart", figure.name):
            paths += _figure(run, figure, folder / "figures")
    paths.append(_written(folder / "README.md", _readme(run, figures)))
    return paths


def _written(path: Path, content: str) -> Path:
    path.write_text(content, encoding="utf-8")
    return path


def _experiment(run: Run) -> str:
    """Its TOML with scale and --set applied: each scale measures the same. TOML has no null: it is left out."""
    return tomli_w.dumps(_without_null(run.manifest.document))


def _without_null(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _without_null(part) for name, part in value.items() if part is not None}
    return [_without_null(part) for part in value if part is not None] if isinstance(value, list) else value


def _conditions(run: Run) -> str:
    manifest = run.manifest
    servers = {name: server.model_dump() for name, server in manifest.servers.items()}
    machines = {machine.name: machine.conditions for machine in manifest.machines}
    found = run_as_json(manifest) | {"servers": servers, "conditions": manifest.conditions, "machines": machines}
    return json.dumps(found, indent=2) + "\n"


def _figure(run: Run, figure: Rendered, folder: Path) -> list[Path]:
    caption = _caption(run, figure)
    paths = [
        _written(folder / f"{figure.name}.svg", figure.svg),
        _written(folder / f"{figure.name}.txt", caption + "\n"),
        _written(folder / f"{figure.name}.tex", _environment(figure.name, caption)),
    ]
    pdf = folder / f"{figure.name}.pdf"
    pdf.write_bytes(svg.pdf(figure.svg))
    datasets: dict[str, list[dict[str, Any]]] = figure.drawing.chart.to_dict().get("datasets", {})
    for number, rows in enumerate(datasets.values(), 1):
        path = folder / f"{figure.name}-{number}.csv"
        _rows(path, rows)
        paths.append(path)
    return [*paths, pdf]


def _rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Columns in the order in which they come first; what has parts is JSON."""
    cells = [{name: _cell(value) for name, value in row.items()} for row in rows]
    columns = list(dict.fromkeys(name for row in cells for name in row))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(cells)


def _cell(value: Any) -> Any:
    if isinstance(value, list | dict):
        return json.dumps(value)
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value


def _environment(name: str, caption: str) -> str:
    """``name`` has letters, digits, dots, dashes and underscores only (`Rendered.name`)."""
    return (
        "\\begin{figure}\n  \\centering\n"
        f"  \\includegraphics[width=\\linewidth]{{{name}.pdf}}\n"
        f"  \\caption{{{latex(caption)}}}\n  \\label{{fig:{name}}}\n\\end{{figure}}\n"
    )


def _readme(run: Run, figures: Iterable[Rendered]) -> str:
    manifest = run.manifest
    files = [
        ["`experiment.toml`", "the experiment, with the scale and all settings of this run applied"],
        ["`conditions.json`", "versions of dnsrig and of the servers, and what the machine was"],
        ["`summary.csv`", "one row a trial and metric"],
        ["`figures/NAME.svg`, `.pdf`", "a figure"],
        [
            "`figures/NAME-1.csv` …",
            "what it was drawn of, a file a layer; a text that begins like a formula has `'` first",
        ],
        ["`figures/NAME.txt`", "its caption"],
        [
            "`figures/NAME.tex`",
            "figure and caption for LaTeX: `\\graphicspath{{figures/}}`, then `\\input{figures/NAME}`",
        ],
    ]
    of = f"{counted(manifest.repeats, 'repeat')}, {setting(run)}"
    lines = [f"# {text(manifest.title)}", "", text(manifest.question), ""]
    lines += [f"Run {code(manifest.run)} of experiment {code(manifest.experiment)}: {text(of)}", ""]
    lines += [*table(["file", "what it is"], files, 2), ""]
    lines += ["To measure it again, as root, with the servers that it names:", ""]
    lines += ["```sh", f"dnsrig run experiment.toml --repeats {manifest.repeats}", "```", "", "## Figures", ""]
    lines += [*table(["figure", "what it shows"], [[code(each.name), text(each.chart.title)] for each in figures], 2)]
    return "\n".join(lines) + "\n"


def _caption(run: Run, figure: Rendered) -> str:
    """Sentences on one line."""
    title = ": ".join(dict.fromkeys(part for part in (figure.chart.title, figure.drawing.title) if part))
    sentences = [
        title if title.endswith("?") else f"{title}.",
        figure.caption,
        _repeats(run),
        _spread(run, figure),
        f"Measured at {setting(run)}.",
    ]
    # A character at a time, because a caption may be longer than one text from outside.
    return "".join(map(visible, " ".join(sentence for sentence in sentences if sentence)))


def _repeats(run: Run) -> str:
    """``5 repeats of each variant (19 done, 1 timeout)``."""
    outcomes: Counter[Outcome] = Counter(trial.record.outcome for trial in run.trials)
    return f"{figures.count(run.manifest.repeats, 'repeat')} of each variant ({_counted(outcomes)})."


def _counted(outcomes: Counter[Outcome]) -> str:
    return ", ".join(f"{number} {outcome}" for outcome, number in sorted(outcomes.items())) or "none done"


def _spread(run: Run, figure: Rendered) -> str:
    """Median, smallest and largest repeat of each variant, for the first metric that the figure shows."""
    shown = next((metric for metric in measured_metrics(run) if metric.name in figure.metrics), None)
    if shown is None:
        return ""
    rows = [row for row in variant_table(run, shown.name) if row.samples.spread is not None]
    told = [f"{row.variant.label} {wording.measured(row)}" for row in rows[:MOST_VARIANTS]]
    more = f"; and {len(rows) - MOST_VARIANTS} more" if len(rows) > MOST_VARIANTS else ""
    return f"Median [smallest..largest] repeat, {shown.title}: {'; '.join(told)}{more}."
