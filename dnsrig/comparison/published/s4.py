"""S4: network tuning for zone transfers over long fat lossy networks (M. Prause, DENIC, slides, 2015)."""

from __future__ import annotations

from collections.abc import Iterator

from dnsrig.comparison.published import Beside, Figure, Measured, beside, figures, holds, left_out
from dnsrig.comparison.summary import describe, variant_row
from dnsrig.rundir import TrialSpec
from dnsrig.runs.run import Run

METRIC = "throughput_kbytes_per_s"
AXIS = "congestion"
"""Label of the axis of the sender's congestion control."""
ROUND_TRIP_MS = 300
LOSS_PERCENT = 10
SAME = 0.1
"""Share by which a round trip or a loss may differ from the source's and still be called the same: it says
\"about\"."""
DATA_ONLY = "All loss is on the way of the data here; the source does not say on which way its was."


@holds("throughput", "lossy-long-fat", "cubic", "illinois", "hybla", run_of="congestion-control")
def _throughput(run: Run, figure: Figure) -> Iterator[Measured]:
    """Throughput of one connection whose sender used the published algorithm."""
    for variant in run.manifest.variants:
        if variant.parameters.get(AXIS) != figure.variant:
            continue
        row, spec = variant_row(run, variant, describe(METRIC)), run.manifest.specs[variant.id]
        if not row.outcomes:
            continue
        differs, carried = path(spec), f"Over the link {spec.link}, kernel {spec.kernel}."
        yield Measured(
            figure,
            variant.label,
            row.samples.spread,
            comparable=not differs and "server-failed" not in row.outcomes,
            differs=[*left_out(row), *differs, *rate(spec), DATA_ONLY, carried],
        )


@beside
def _algorithms(run: Run) -> Iterator[Beside]:
    """The figure of each variant's algorithm, if the path is the source's."""
    if run.manifest.experiment != "congestion-control" or any(path(spec) for spec in run.manifest.specs.values()):
        return
    for figure in figures():
        if (figure.source.id, figure.metric) == ("S4", "throughput"):
            same = (variant for variant in run.manifest.variants if variant.parameters.get(AXIS) == figure.variant)
            yield from (Beside(variant, METRIC, figure) for variant in same)


def path(spec: TrialSpec) -> list[str]:
    """A sentence each for what makes the path another than the source's."""
    link = next((link for link in spec.links if link.forward is not None), None)
    if link is None or link.forward is None:
        return ["Without an emulated path here."]
    delay_ms = link.forward.delay_ms + (link.reverse.delay_ms if link.reverse else 0.0)
    losses = [link.forward.loss_percent, link.reverse.loss_percent if link.reverse else 0.0]
    found = []
    if abs(delay_ms - ROUND_TRIP_MS) > SAME * ROUND_TRIP_MS:
        found.append(f"Round trip {delay_ms:g} ms here, about {ROUND_TRIP_MS} ms in the source.")
    if abs(max(losses) - LOSS_PERCENT) > SAME * LOSS_PERCENT:
        found.append(f"Loss {max(losses):g} % here, about {LOSS_PERCENT} % in the source.")
    return found


def rate(spec: TrialSpec) -> list[str]:
    """A sentence where the path has a rate: no difference that is known of, for the source says nothing of its own."""
    rates = [link.forward.rate_mbit for link in spec.links if link.forward is not None]
    return [f"Rate {one:g} Mbit/s here; the source names none." for one in rates if one is not None]
