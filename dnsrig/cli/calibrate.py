"""`dnsrig calibrate`: what can this rig tell?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console

from dnsrig.cli import _console
from dnsrig.cli._app import complain
from dnsrig.cli._exits import EXIT_INTERRUPTED

if TYPE_CHECKING:
    from dnsrig.experiment.calibration.through import Through


def add(app: typer.Typer) -> None:
    app.command("calibrate")(command)


def command(
    scale: Annotated[
        Literal["quick", "standard"],
        typer.Option(help="quick: about two minutes, one trial a figure; standard: ten minutes at most"),
    ] = "standard",
    nic: Annotated[
        str,
        typer.Option(metavar="NAME", help="a network interface of this machine; with --from it is measured through"),
    ] = "",
    other_end: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="MACHINE:INTERFACE",
            help="the other end of its cable: the floor is measured from there, too",
        ),
    ] = "",
    machines: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="where that machine is: a TOML file, as of `dnsrig run --machines`"),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="where certificates are kept; by default in the cache, where runs find them: elsewhere they are not cited",
        ),
    ] = None,
    shown: Annotated[
        bool, typer.Option("--list", help="show the certificates that there are, and measure nothing")
    ] = False,
) -> None:
    """Measure what this rig can tell, on this machine, and write a certificate that every later run cites.

    It tells: the floor under every latency, and how late the instrument sends, by rate and transport; the highest rates
    of queries, connections and handshakes, and which side bound them; what the clocks resolve; whether links are as
    asked; by how much trials differ of which nothing differs, and so the smallest difference that 3, 5, 10 and 20
    repeats would show; and what spoils all this, each with a command that helps.

    Stop what else runs on the machine before. The certificate is a page (certificate.html) and a file for programs
    (certificate.json), beside the runs that its figures come from. A run names the newest certificate of its machine,
    and the trap calibration-stale says when it no longer holds. Interrupted, nothing is left behind: start it again.

    With --nic and --from, latency and lag are measured over two paths: over veth on this machine, and through the
    interface from another machine. Side by side they tell what the interface adds. Both interfaces must be unused.

    Exit status 1 if something could not be measured: then there is no certificate.

    Examples: dnsrig calibrate; dnsrig calibrate --scale quick; dnsrig calibrate --list;
    dnsrig calibrate --nic eth1 --from rack-2:eth1 --machines machines.toml
    """
    from dnsrig.experiment import certificates

    where = folder or certificates.folder()
    if shown:
        _list(where)
        return
    from dnsrig.cli import run
    from dnsrig.experiment import calibration
    from dnsrig.experiment.calibration.through import wanted

    through = wanted(nic, other_end, machines)
    if through is None:
        calibration.check_nic(nic)
    run.need_root()
    console = _console.err()
    run.clean_machine(console)
    try:
        made = _measure(scale, nic, through, where, console)
    except KeyboardInterrupt:
        complain(
            "interrupted; nothing is left of it",
            f"start it again, with the same options (--scale {scale}), as one calibration is of one moment",
        )
        sys.exit(EXIT_INTERRUPTED)
    from dnsrig.report import certificate

    _console.out().print(certificate.terminal(certificate.write(made), made))


def _measure(
    scale: Literal["quick", "standard"], nic: str, through: Through | None, folder: Path, console: Console
) -> Path:
    import contextlib

    from dnsrig.cli._progress import LiveProgress, PlainProgress
    from dnsrig.experiment.calibration import calibrate

    with contextlib.ExitStack() as stack:
        progress = stack.enter_context(LiveProgress(console)) if console.is_terminal else PlainProgress(console)
        return calibrate(scale, nic, through, folder, progress)


def _list(folder: Path) -> None:
    from dnsrig.experiment import certificates
    from dnsrig.report import certificate

    console, found = _console.out(), False
    for path, each in certificates.known(folder):
        found = True
        console.print(f"{each.id}  {each.created}  {each.scale}  {path}", soft_wrap=True)
        for sentence in certificate.short(each):
            console.print(f"  {sentence}", soft_wrap=True)
    if not found:
        _console.err().print(f"no certificate in {folder}: `dnsrig calibrate` makes one", soft_wrap=True)
