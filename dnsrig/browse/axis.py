"""A trial on one axis of time: panels below each other that move and zoom together."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator, Sequence

import altair as alt
import polars as pl

from dnsrig import files
from dnsrig.browse import panels_of
from dnsrig.browse.panels_of import Range
from dnsrig.browse.thin import Samples, Series
from dnsrig.report.charts import Drawing, _look, _over_time, _split
from dnsrig.report.charts._over_time import Panel
from dnsrig.report.figures import visible
from dnsrig.runs.rows import chunks
from dnsrig.runs.trial import Trial

MOST_SERIES = 8
"""Most series that an address may ask for."""
AROUND = 0.05
"""Share of the length of `measure` that is shown before and after it, by default."""


def of_trial(trial: Trial, from_s: float | None = None, to_s: float | None = None) -> Range | None:
    """From ``from_s`` to ``to_s`` within its phases; by default `measure` and a little around it. None without any
    phase."""
    phases = trial.record.phases
    if not phases:
        return None
    first, last = phases[0].start.monotonic_ns, phases[-1].end.monotonic_ns
    zero = trial.zero_ns if trial.zero_ns is not None else first
    start, end = first, last
    if trial.measure is not None:
        around = int(AROUND * (trial.measure.end.monotonic_ns - trial.measure.start.monotonic_ns))
        start, end = trial.measure.start.monotonic_ns - around, trial.measure.end.monotonic_ns + around
    start = start if from_s is None else zero + int(from_s * 1e9)
    end = end if to_s is None else zero + int(to_s * 1e9)
    start, end = max(first, min(start, last - 1)), min(last, end)
    return Range(zero, start, max(end, start + 1))


def drawing(
    trial: Trial, within: Range, asked: Sequence[tuple[str, str, str]] = (), *, nothing_else: bool = False
) -> Drawing:
    """All panels of ``trial``; first the series ``asked`` for (host, source, metric), and ``nothing_else``."""
    if nothing_else:
        panels = list(_sampled(trial, within, _of_address(asked), len(asked)))
        return Drawing("axis", _look.stack(_drawn(trial, within, panels, [panels_of.phases(trial, within)]), 8))
    wanted = _of_address(asked) | _wanted(trial)
    sampled = [*_sampled(trial, within, wanted, len(asked)), *panels_of.seen(trial, within)]
    panels = [*panels_of.percentiles(trial, within), *sampled]
    above = [panels_of.phases(trial, within), *panels_of.heat_map(trial, within), *panels_of.events(trial, within)]
    return Drawing("axis", _look.stack(_drawn(trial, within, panels, above), 8))


def _drawn(trial: Trial, within: Range, panels: Sequence[Panel], above: Sequence[alt.Chart]) -> list[alt.Chart]:
    """``panels`` below what is ``above``; the lowest says what the time is."""
    names = dict.fromkeys(name for panel in panels for name in panel.rows["line"].unique(maintain_order=True) if name)
    lines = sorted(names, key=[*trial.record.spec.hosts, *names].index)  # hosts have the same colours in every trial
    since = f"seconds since {_split.since(trial)}"
    below = [_over_time.panel(each, lines, within.extent, since if each is panels[-1] else None) for each in panels]
    return [*above, *below]


def _sampled(trial: Trial, within: Range, wanted: dict[str, list[Series]], always: int) -> Iterator[Panel]:
    """Panels of samples.arrow, read piece by piece; the first so many ``always``, others unless they are nothing but
    zero."""
    samples = Samples(wanted, within.start_ns, within.end_ns)
    with contextlib.suppress(OSError), files.opened(trial.directory / "samples.arrow", trial.run_dir) as file:
        for rows in chunks(file):
            samples.add(rows)
    for title, rows in samples.panels().items():
        if title in list(wanted)[:always] or rows["value"].cast(pl.Boolean).any():
            yield Panel(title, within.seconds(rows).with_columns(pl.col("value").round_sig_figs(5)))


def _of_address(asked: Iterable[tuple[str, str, str]]) -> dict[str, list[Series]]:
    """A panel each, as sampled: a counter rises."""
    series = itertools.islice(dict.fromkeys(asked), MOST_SERIES)
    return {visible("/".join(key)): [Series(visible(key[0]), *key)] for key in series}


def _wanted(trial: Trial) -> dict[str, list[Series]]:
    spec = trial.record.spec
    found: dict[str, list[Series]] = {}
    per_host = {
        "CPU, % of one core": ("cgroup", "cpu_usage_us", True, 1e-4),
        "Anonymous memory, MB": ("cgroup", "memory_anonymous_bytes", False, 1e-6),
        "Waiting for reads and writes, % of the time": ("psi", "io_some_us", True, 1e-4),
        "Sockets in TIME_WAIT": ("sockets", "tcp_time_wait", False, 1.0),
        "TCP sockets in use": ("sockets", "tcp_inuse", False, 1.0),
        "TCP connections opened, a second": ("tcp", "active_opens", True, 1.0),
    }
    for title, (source, metric, counter, factor) in per_host.items():
        found[title] = [Series(host, host, source, metric, counter, factor) for host in spec.hosts]
    links = {spec.interface(trial.subject, other): other for other in spec.hosts if other != trial.subject}
    for title, metric in (("Received by the server under test, MB/s", "rx_bytes"), ("Sent by it, MB/s", "tx_bytes")):
        found[title] = [
            Series(f"link {other}", trial.subject, link, metric, True, 1e-6) for link, other in links.items()
        ]
    return found
