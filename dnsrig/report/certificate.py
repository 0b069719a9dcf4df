"""A certificate for people: as one page, and as a summary on a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from markupsafe import Markup
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from dnsrig import certificate, files
from dnsrig.certificate import (
    PAGE,
    VETH,
    Capacity,
    Certificate,
    Floor,
    LinkTest,
    Measured,
    NicPath,
    Noise,
    Smallest,
    Step,
)
from dnsrig.comparison import calibration
from dnsrig.report import certificate_charts, conditions, figures, svg
from dnsrig.report.charts import _look
from dnsrig.report.page import environment
from dnsrig.rundir import ClockRecord
from dnsrig.stats import statistics
from dnsrig.stats.statistics import Spread
from dnsrig.text import digits

GRADES = {"good": "green", "note": "yellow", "bad": "red", "not known": "dim"}
BOUND = {"instrument": "the instrument", "server": "the reflector", "not known": "not known"}

Row = list[str]


def write(folder: Path) -> Certificate:
    """Draw the page beside the certificate in ``folder``, and return it."""
    found = certificate.read(folder)
    files.write(folder / PAGE, render(found).encode())
    return found


def render(found: Certificate) -> str:
    """The page: one file, without scripts and without any request."""
    drawn = {name: svg.render(chart) for name, chart in certificate_charts.charts(found).items()}
    return (
        environment()
        .get_template("certificate.html.j2")
        .render(
            found=found,
            charts={name: svg.embed(each, f"svg-{name}", name) for name, each in drawn.items()},
            captions=certificate_charts.CAPTIONS,
            tables=tables(found),
            short=short(found),
            facts=conditions.flatten(found.conditions),
            machine_facts=conditions.flatten(found.nic_path.machine_conditions) if found.nic_path else {},
            neutrals=_look.NEUTRALS,
            font=Markup(_look.FONT),
            figures=figures,
        )
    )


def tables(found: Certificate) -> dict[str, tuple[Row, list[Row]]]:
    """Name -> head and rows; of interfaces on the page alone."""
    return {
        "floor": (
            [
                "transport",
                "path",
                "queries/s",
                "p50",
                "p99",
                "p99.9",
                "lag p50",
                "lag p99",
                "lag max",
                "trials",
                "not done",
            ],
            [_floor(each) for each in _side_by_side(found)],
        ),
        "capacity": (["what", "highest rate", "bound by", "trials"], [_capacity(each) for each in found.capacities]),
        "clock": (["clock", "seen"], list(_clock(found))),
        "links": (["link", "asked", "found", "verdict"], [row for each in found.links for row in _link(each)]),
        "noise": (
            ["server", "p99 of the trials", *(f"{n} repeats" for n in _numbers(found))],
            [_noise(each) for each in found.noise],
        ),
        "disturbances": (
            ["what", "", "says", "remedy"],
            [[each.what, each.grade, each.says, each.remedy] for each in found.disturbances],
        ),
        **({"interfaces": _interfaces(found.nic_path)} if found.nic_path else {}),
    }


def _us(found: Measured | None) -> str:
    """``38.2 µs [35.1..44.0]``, in the unit that fits; no range of a single trial."""
    if found is None:
        return figures.NONE
    low, median, high = (1e-6 * value for value in (found.low, found.median, found.high))
    return figures.spread(Spread(found.trials, median, median, low, high), "s").removesuffix(" [±0]")


def _floor(each: Floor) -> Row:
    told = [each.p50_us, each.p99_us, each.p99_9_us, each.lag_p50_us, each.lag_p99_us, each.lag_max_us]
    return [each.transport, each.path, f"{each.rate_qps:,.0f}", *map(_us, told), str(each.trials), each.not_done]


def _side_by_side(found: Certificate) -> list[Floor]:
    """The floors; floors that differ only in the path are next to each other."""
    order = [each.transport for each in found.floors]
    return sorted(found.floors, key=lambda each: (order.index(each.transport), each.rate_qps))


def paths(found: Certificate) -> list[str]:
    return [VETH, *([found.nic_path.label] if found.nic_path else [])]


def _narrow_floor(floors: list[Floor]) -> tuple[Row, list[Row]]:
    """Medians alone, for 80 columns; the ranges are on the page."""
    head = ["", "queries/s", "p50", "p99", "p99.9", "lag p50", "p99", "max"]
    rows = [[each.transport, *(cell.partition(" [")[0] for cell in _floor(each)[2:-2])] for each in floors]
    return head, rows


def _what(each: Capacity) -> str:
    if not each.new_connections:
        return f"queries a second over {each.transport}"
    return f"{'full handshakes' if each.transport == 'dot' else 'new connections'} a second over {each.transport}"


def _capacity(each: Capacity) -> Row:
    rate = figures.NONE
    if each.qps is not None:
        spread = "" if each.trials == 1 else f" [{each.qps.low:,.0f}..{each.qps.high:,.0f}]"
        rate = f"{each.qps.median:,.0f}/s{spread}"
    why = f": {each.why}" if each.why else ""
    return [_what(each), rate, f"{BOUND[each.bound_by]}{why}", each.not_done or str(each.trials)]


def _clock(found: Certificate) -> Iterator[Row]:
    clock = found.clock
    yield ["source", clock.source or "not known"]
    yield ["CLOCK_MONOTONIC", _step(clock.monotonic)]
    yield ["CLOCK_REALTIME", _step(clock.realtime)]
    error = clock.anchor_error_ns
    yield ["error of an anchor pair", f"± {error.median:,.0f} ns [{error.low:,.0f}..{error.high:,.0f}]"]
    bound = "" if clock.error_bound_us is None else f", wrong by {clock.error_bound_us:,} µs at most"
    told = {True: f"synchronised{bound}", False: "not synchronised: its error is not known", None: "not known"}
    yield ["wall clock", told[clock.synchronised]]
    if found.nic_path is not None:
        yield [f"clock of {found.nic_path.machine}", _other_clock(found.nic_path.clock)]


def _other_clock(clock: ClockRecord | None) -> str:
    if clock is None:
        return "not compared with this machine's"
    wall = f"wall clock {_ms(clock.realtime_offset_ns)} ± {figures.microseconds(clock.realtime_error_ns / 1e3)}"
    ahead = f"{_ms(clock.offset_ns)} ± {figures.microseconds(clock.error_ns / 1e3)} ahead of this machine's"
    return f"CLOCK_MONOTONIC {ahead}, drift {clock.drift_ppb:,.0f} ppb; {wall}; by {clock.comparisons} comparisons"


def _ms(ns: int) -> str:
    return f"{ns / 1e6:+,.3f} ms"


def _interfaces(path: NicPath) -> tuple[Row, list[Row]]:
    ends = {"this machine": path.nic, path.machine: path.machine_nic}
    rows, _ = conditions.as_table({name: conditions.flatten(facts) for name, facts in ends.items()})
    return ["", *ends], [[name, *cells] for name, cells in rows.items()]


def _step(step: Step) -> str:
    return f"smallest step seen {step.smallest_ns:,} ns, including the time of a reading; resolution {step.resolution_ns:,} ns"


def _link(each: LinkTest) -> Iterator[Row]:
    verdict = "as asked" if each.works else each.missing or "not as asked: " + "; ".join(each.wrong)
    rtt = f"RTT {_us(each.rtt_us)}" if each.rtt_us else figures.NONE
    asked = "nothing" if each.rtt_asked_us is None else f"RTT {figures.microseconds(each.rtt_asked_us)}"
    yield [each.kind, figures.NONE if each.missing else asked, rtt, verdict]
    for name, way in each.ways.items():
        yield [f"{each.kind} {name}", _asked(way.asked), _found(way.found), ""]


def _asked(asked: dict[str, Any]) -> str:
    names = (("delay_ms", "delay {:g} ms"), ("jitter_ms", "± {:g} ms"), ("loss_percent", "loss {:g} %"))
    told = [text.format(asked[name]) for name, text in (*names, ("rate_mbit", "{:g} Mbit/s")) if name in asked]
    return ", ".join(told)


def _found(found: dict[str, Any]) -> str:
    told = []
    if "delay_median_ms" in found:
        ends = f"{digits(found['delay_p5_ms'], 4)}..{digits(found['delay_p95_ms'], 4)}"
        told.append(f"delay {digits(found['delay_median_ms'], 4)} ms [5 to 95 %: {ends}]")
    if "lost_packets" in found:
        told.append(f"lost {found['lost_packets']:,} of {found['packets']:,}")
    if "rate_mbit" in found:
        told.append(f"{digits(found['rate_mbit'], 4)} Mbit/s")
    return ", ".join(told)


def _numbers(found: Certificate) -> list[int]:
    return [each.repeats for each in found.noise[0].smallest] if found.noise else []


def _noise(each: Noise) -> Row:
    middle = figures.NONE
    if each.values:
        middle = f"{figures.spread(statistics.spread(each.values), each.unit)}, {len(each.values)} trials"
    if each.not_done:
        middle += f" ({each.not_done})"
    return [each.server, middle, *map(smallest, each.smallest)]


def smallest(each: Smallest) -> str:
    """``10.0 % [8.6..10.6]``."""
    if each.percent is None:
        return "none visible"
    ends = "" if each.low is None or each.high is None else f" [{_between(each.low, each.high)}]"
    return f"{figures.slower(each.percent)}{ends}"


def _between(low: float, high: float) -> str:
    """``8.6..11 %``: the unit once, where both have one."""
    one, other = figures.slower(low), figures.slower(high)
    return f"{one.partition(' ')[0] if one.split()[1] == other.split()[1] else one}..{other}"


def short(found: Certificate) -> list[str]:
    """The answer in a few sentences."""
    told = []
    if disturbed := calibration.disturbed_by(found):
        said = "; ".join(each.says for each in found.disturbances if each.what in disturbed)
        told.append(f"These are figures of a disturbed machine: {said}. Calibrate again when it is quiet.")
    for each in found.floors:
        if each.path == VETH and each.transport == "udp" and each.p99_us and not each.not_done:
            lag = f", lag p99 {_us(each.lag_p99_us)}" if each.lag_p99_us else ""
            told.append(
                f"At {each.rate_qps:,.0f} queries a second over UDP the floor of p99 is {_us(each.p99_us)}{lag}."
            )
    told += _added(found)
    for each_noise in found.noise:
        shown = [
            f"{smallest(s).partition(' [')[0]} with {s.repeats}" for s in each_noise.smallest if s.percent is not None
        ]
        if shown:
            told.append(
                f"Smallest visible slowdown in p99 of {each_noise.server}: {', '.join(shown)} repeats on each side."
            )
    return told


def _added(found: Certificate) -> Iterator[str]:
    """What the interface adds over UDP."""
    over_veth = {each.rate_qps: each for each in found.floors if each.path == VETH and each.transport == "udp"}
    for each in found.floors:
        if each.path == VETH or each.transport != "udp" or each.not_done or not (each.p50_us and each.p99_us):
            continue
        told = (
            f"Through {each.path} p50 is {_us(each.p50_us)} and p99 {_us(each.p99_us)} at {each.rate_qps:,.0f} a second"
        )
        veth = over_veth.get(each.rate_qps)
        if veth is not None and veth.p50_us and veth.p99_us:
            told += f": {_more(each.p50_us, veth.p50_us)} and {_more(each.p99_us, veth.p99_us)} than over veth"
        yield f"{told}."


def _more(here: Measured, there: Measured) -> str:
    us = here.median - there.median
    return f"{figures.microseconds(abs(us))} {'less' if us < 0 else 'more'}"


def terminal(found: Certificate, where: Path) -> RenderableType:
    """Readable without colour."""
    titles = {
        "capacity": "highest rates against echo@engine",
        "clock": "clocks",
        "links": "links, by their self-test",
        "noise": "smallest visible difference: 80 % power at the 5 % level",
        "disturbances": "disturbances",
    }
    parts: list[RenderableType] = []
    for path in paths(found):
        title = f"floor of latency and lag: echo@engine over {path}, from the moment at which each query was due"
        parts += [_table(title, *_narrow_floor([each for each in found.floors if each.path == path])), Text()]
    shown = tables(found)
    for name, title in titles.items():
        parts += [_table(title, *shown[name], grade=name == "disturbances"), Text()]
    told = [Text(figures.visible(sentence)) for sentence in [*_not_done(found), *short(found)]]
    taken = f"certificate {found.id}, {found.scale}, {found.duration_s:.0f} s: {where / PAGE}"
    return Group(*parts, *told, Text(figures.visible(taken)))


def _not_done(found: Certificate) -> list[str]:
    of = [
        (f"floor over {each.path}, {each.transport} at {each.rate_qps:,.0f}/s", each.not_done) for each in found.floors
    ]
    of += [(f"noise of {each.server}", each.not_done) for each in found.noise]
    return [f"{what}: {why}." for what, why in of if why]


def _table(title: str, head: Row, rows: list[Row], *, grade: bool = False) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    shown = [place for place, name in enumerate(head) if not (grade and name == "remedy")]
    for place in shown:
        table.add_column(head[place], overflow="fold")
    for row in rows:
        cells: list[Text] = [Text(figures.visible(row[place])) for place in shown]
        if grade:
            cells[1].stylize(GRADES[row[1]])
            if row[3]:
                cells[2].append(f"\nremedy: {figures.visible(row[3])}")
        table.add_row(*cells)
    return table
