"""What ran more in one version of a server than in another: differential flame graphs (B. Gregg, Differential Flame
Graphs, 2014) of all repeats, whole and within stalls."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import altair as alt

from dnsrig.comparison.pairs import STANDARD_ERRORS, WHOLE, Profiles, VersionPair, is_told, pairs, profiles
from dnsrig.report import figures
from dnsrig.report.charts import Drawing, _differences, _flames, _look
from dnsrig.report.charts._flames import LEAST_PERCENT, Frame
from dnsrig.runs.profile import Difference
from dnsrig.runs.run import Run

TITLE = "Which functions ran more in one version than in the other?"
ORDER = 35
METRICS = ("secondary_cpu_s", "primary_cpu_s", "resolver_cpu_s", "user_cpu_an_answer_us", "kernel_cpu_an_answer_us")
FUNCTIONS = 8
"""Number of functions that are named above the flame graphs."""


def applies(run: Run) -> bool:
    return any(True for pair in pairs(run) for _ in profiles(run, pair))


def caption(run: Run) -> str:
    return (
        "CPU samples of all repeats of two versions, `from → to`. Above: the functions whose own share of the samples differs"
        " most. Below: the flame graph of the second version, and then the flame graph of the first, with the functions that are gone."
        f" A frame is orange if its share is larger in the second version ({_differences.STEPS}), blue if it is smaller, and"
        f" grey if the difference is within {STANDARD_ERRORS} standard errors of the sampling. Frames with a dark edge are"
        " functions named above. Shares are shares of each version's own samples; the total cost is `CPU time` under"
        f" “What did it?”. Frames in less than {LEAST_PERCENT:g} % of the samples are left out. Functions have names only"
        " if the build has symbols (`--debug symbols`): compare builds that both have them."
    )


def draw(run: Run) -> list[Drawing]:
    return [
        drawing
        for place, (pair, found, number) in enumerate(_found(run))
        for drawing in _drawings(pair, found, number, in_sight=place == 0)
    ]


def _found(run: Run) -> list[tuple[VersionPair, Profiles, int]]:
    return [(pair, found, number) for pair in pairs(run) for number, found in enumerate(profiles(run, pair))]


def _drawings(pair: VersionPair, found: Profiles, number: int, *, in_sight: bool) -> list[Drawing]:
    """The functions with the second version's flame graph, and the first one's: together they are taller than a
    screen."""
    told = found.functions
    first = told[:FUNCTIONS]
    named = {each.name for each in first[:3]}
    new, base = _names(pair, found)
    panels: list[alt.LayerChart | alt.FacetChart] = [_differences.functions(first, (new, base))] if first else []
    ours, theirs = found.new.total(), found.base.total()
    upper, lower = _look_of(1, ours, theirs, named), _look_of(-1, theirs, ours, named)
    panels.append(_flames.panel(_flames.layout(found.new, found.base), _axis(ours, new), upper))
    before = _flames.panel(_flames.layout(found.base, found.new), _axis(theirs, base), lower)
    title, label = figures.visible(in_words(told, new, base)), figures.visible(f"{pair.label}{_part(found)}")
    name, group = f"{pair.new.id}-against-{pair.base.id}-{number}", "" if in_sight else label
    return [
        Drawing(name, _look.stack(panels), f"{label}. {title}" if in_sight else title, group),
        Drawing(f"{name}-before", _look.stack([before]), f"The flame graph of {base}, before", group),
    ]


def in_words(told: Sequence[Difference], new: str, base: str) -> str:
    """What the picture shows, for a title."""
    if not told:
        return "no function's own share differs by more than sampling brings about"
    most = told[0]
    return (
        f"{most.name} ran in {most.share:.0%} of {most.samples:,} samples of {new}, and in {most.other_share:.0%} of"
        f" {most.other_samples:,} of {base}"
    )


def _names(pair: VersionPair, found: Profiles) -> list[str]:
    """Names of the second version and the first one; if both have one number, the names of their variants."""
    servers, variants = (pair.new_server, pair.base_server), (pair.new, pair.base)
    same = servers[0].version == servers[1].version
    names = [variant.label if same else server.version for server, variant in zip(servers, variants, strict=True)]
    parts = found.new_part, found.base_part
    return [figures.visible(f"{name}{'' if part == WHOLE else f', {part}'}") for name, part in zip(names, parts)]


def _part(found: Profiles) -> str:
    return "" if found.new_part == found.base_part == WHOLE else ", in stalls"


def _axis(samples: int, name: str) -> str:
    return f"percent of the {figures.count(samples, 'sample')} of {name}"


def _look_of(sign: int, samples: int, others: int, named: set[str]) -> Callable[[Frame], _flames.Look]:
    """How a frame looks among ``samples`` where ``sign`` is 1 for the second version's, and -1 for the first's."""

    def look(frame: Frame) -> _flames.Look:
        width = frame.end - frame.start
        told = is_told(min(width, 100.0) / 100, min(frame.other, 100.0) / 100, samples, others)
        return _differences.look(sign * (width - frame.other) if told else 0.0, named=frame.name in named)

    return look
