"""Options that several commands have. An option name has one meaning in all commands."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dnsrig.errors import UsageError
from dnsrig.stats.statistics import FEWEST_REPEATS

if TYPE_CHECKING:
    from dnsrig.rundir import Until

Scale = Annotated[
    str, typer.Option(metavar="SCALE", help="size of the experiment: quick, standard or published (the source's own)")
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="PATH=VALUE", help="change a value of the experiment, or an axis; repeatable"),
]
Seed = Annotated[int | None, typer.Option(help="seed of the order of trials; recorded in the run in any case")]
MaxTrials = Annotated[int, typer.Option(help="refuse to plan more trials than this")]
Precision = Annotated[
    str,
    typer.Option(
        metavar="PERCENT",
        help="repeat until each interval of the main metric is within PERCENT of its middle; --repeats (5) is then the "
        "least number",
    ),
]
Most = Annotated[
    int, typer.Option(min=1, max=1000, metavar="N", help="with --precision: the largest number of repeats")
]
Within = Annotated[
    str,
    typer.Option(
        metavar="TIME",
        help="with --precision: add no round that would end later than TIME after the start; the least number of repeats "
        "is measured in any case",
    ),
]
Authorized = Annotated[
    list[str] | None,
    typer.Option(
        "--i-am-authorized",
        metavar="ADDRESS",
        help="address of a server that you may load, or ask for your zones; needed unless it is loopback or of the rig; "
        "repeatable",
    ),
]
Runs = Annotated[Path, typer.Option(metavar="DIR", help="folder of the runs")]
Metrics = Annotated[
    list[str] | None,
    typer.Option(
        "--metric",
        metavar="NAME",
        help="metric to show, with or without its unit (`dnsrig list metrics`); repeatable",
    ),
]
MayDiffer = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="condition that may differ between the runs, by its name or the beginning of it (`links`, "
        "`machine.kernel`); repeatable",
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="print what would be measured, and how long it takes")]
Json = Annotated[bool, typer.Option("--json", help="print one JSON document (docs/reference/json.md)")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="print no progress")]


def until(precision: str, repeats: int | None, most: int, within: str = "") -> Until | None:
    """What --precision, --repeats, --most and --within ask for together; None without --precision."""
    from dnsrig.cli import _units
    from dnsrig.rundir import Until

    if not precision:
        if within:
            raise UsageError("--within has no meaning without --precision", hint="add e.g. --precision 5%")
        return None
    try:
        percent = float(precision.strip().removesuffix("%"))
    except ValueError:
        percent = math.nan
    if not 0.1 <= percent <= 100:
        raise UsageError(f"--precision {precision!r} is not a percentage from 0.1 to 100", hint="e.g. --precision 5%")
    least = repeats or FEWEST_REPEATS
    if least < FEWEST_REPEATS or most < least:
        raise UsageError(
            f"--precision: at least {least} and at most {most} repeats are asked for",
            hint=f"fewer than {FEWEST_REPEATS} repeats have no interval, and --most is not below --repeats",
        )
    within_s = _units.duration_s(within, "--within", 0, 1e6) if within else None
    return Until(percent=percent, least=least, most=most, within_s=within_s)


def given(context: typer.Context) -> dict[str, str]:
    """The parameters on the command line, without those at a default: name -> longest name of the option."""
    words = {each.name: max(each.opts, key=len) for each in context.command.params if each.name}
    source = {name: context.get_parameter_source(name) for name in words}
    return {name: word for name, word in words.items() if (s := source[name]) and s.name == "COMMANDLINE"}


def addresses(texts: list[str]) -> list[str]:
    """The addresses of --i-am-authorized. Raises UsageError on any other text."""
    from ipaddress import ip_address

    for text in texts:
        try:
            ip_address(text)
        except ValueError:
            raise UsageError(
                f"--i-am-authorized {text!r} is not an IP address", hint="without a port, e.g. 192.0.2.53"
            ) from None
    return texts


def experiments(incomplete: str) -> list[str]:
    """Names that a shell offers for an experiment."""
    from dnsrig.experiment import model

    return [name for name in model.builtin() if name.startswith(incomplete)]
