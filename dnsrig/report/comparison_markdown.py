"""Two runs side by side, as Markdown to paste into an issue or a pull request."""

from __future__ import annotations

from itertools import groupby

from dnsrig.comparison.compare import TwoRuns
from dnsrig.report import comparison
from dnsrig.report.markdown import code, table, text
from dnsrig.rundir import Manifest
from dnsrig.text import visible


def as_markdown(found: TwoRuns) -> str:
    """A table a metric; what else differs; what each rule says; the whole in one line."""
    lines = [f"base: {_run(found.base)}  ", f"new: {_run(found.new)}", ""]
    if found.within:
        base = ", ".join(code(f"{axis}={value}") for axis, value in found.within.items())
        lines = [f"run: {_run(found.new)}  ", f"base: {base}", ""]
    axes = [text(axis) for axis in found.new.axes]
    for metric, of_metric in groupby(found.lines, key=lambda line: line.metric):
        rows = [[text(" ".join(cell)) for cell in comparison.cells(found.new, metric, line)] for line in of_metric]
        lines += [f"**{text(metric.title)}** ({code(metric.name)}){comparison.better(metric)}", ""]
        lines += [*table([*axes, *comparison.COLUMNS], rows, len(axes)), ""]
    for difference in comparison.configurations_of(found):
        lines += [text(difference.title), "", *(f"    {visible(line)}" for line in difference.lines), ""]
    lines += [f"- {text(sentence)}" for sentence in [*comparison.warnings(found), *comparison.sentences(found)]]
    if result := comparison.whole_in_a_line(found):
        lines += ["", f"**{text(result)}**"]
    return "\n".join(lines).rstrip() + "\n"


def _run(manifest: Manifest) -> str:
    servers = ", ".join(text(server.label) for server in manifest.servers.values())
    parts = [code(manifest.run), servers, f"dnsrig {text(manifest.dnsrig_version)}", text(manifest.created)]
    return ", ".join(part for part in parts if part)
