"""Reports that tests share, and findings that no trap has made, for tests of how findings are shown."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import altair as alt
import pytest
from synthetic import Plan, build

from dnsrig import report, traps
from dnsrig.report import svg
from dnsrig.rundir import Finding
from dnsrig.runs.run import Run


def made_up_findings(run: Run) -> list[Finding]:
    """One of each verdict, and one trap that says the same of every repeat of a variant."""
    variant = run.manifest.variants[1].id
    ports = [
        Finding(
            trap="ports-exhausted",
            verdict="found",
            variant=variant,
            repeat=repeat,
            summary=f"the ports ran out after {30 + repeat} s",
            evidence={"first_failure_s": 30 + repeat, "ports": 28_232},
            series=["secondary/sockets/tcp_time_wait"],
            metrics=["transfer_time_s"],
            remedy="Reuse connections.",
            source="S1",
        )
        for repeat in range(1, run.manifest.repeats + 1)
    ]
    unsure = Finding(trap="cold-cache", verdict="cannot-tell", variant=variant, repeat=1, summary="no io.pressure")
    clear = [Finding(trap="clock-step", verdict="clear", variant=v.id, summary="") for v in run.manifest.variants]
    return [*clear, unsure, *ports]


def validated(chart: alt.TopLevelMixin) -> str:
    """``chart`` as an SVG document, after it was compared with the schema of Vega-Lite."""
    return svg.render_spec(chart.to_dict())


def once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """Folder ``name`` of this session, which one worker makes for all workers."""
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            unfinished = folder.with_suffix(".unfinished")
            make(unfinished)
            unfinished.rename(folder)
    return folder


def reported(plan: Plan, findings: Callable[[Run], list[Finding]], folder: Path) -> None:
    """Make a synthetic run in ``folder``, with a report that has made-up findings."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(traps, "examine", findings)
        patch.setattr(svg, "render", validated)
        report.write_report(build(folder, plan))
