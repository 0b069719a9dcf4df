"""`dnsrig calibrate`: how precise are measurements on this machine?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console

from dnsrig.cli import _console, _on, _options
from dnsrig.cli._app import complain
from dnsrig.cli._exits import EXIT_INTERRUPTED

if TYPE_CHECKING:
    from dnsrig.experiment.calibration.through import Through


def add(app: typer.Typer) -> None:
    app.command("calibrate")(command)


def command(
    scale: Annotated[
        Literal["quick", "standard"],
        typer.Option(
            metavar="SCALE", help="quick: about two minutes, one trial a figure; standard: ten minutes at most"
        ),
    ] = "standard",
    nic: Annotated[
        str,
        typer.Option(metavar="NAME", help="network interface of this machine to measure through, with --other-end"),
    ] = "",
    other_end: Annotated[
        str,
        typer.Option(
            metavar="MACHINE:INTERFACE",
            help="other end of the cable of --nic: the floor is measured from there, too",
        ),
    ] = "",
    machines: _on.Machines = None,
    kept: Annotated[
        Path | None,
        typer.Option(
            "--certificates",
            metavar="DIR",
            help="folder of the certificates; default: a folder of the cache, the only one where runs look for them",
        ),
    ] = None,
    shown: Annotated[bool, typer.Option("--list", help="list the certificates, and measure nothing")] = False,
    quiet: _options.Quiet = False,
) -> None:
    """Measure how precise measurements on this machine are.

    Examples:

        dnsrig calibrate
        dnsrig calibrate --scale quick
        dnsrig calibrate --list
        dnsrig calibrate --nic eth1 --other-end rack-2:eth1 \\
            --machines machines.toml

    Writes a certificate, which every later run cites. It contains: the smallest latency that can be measured, and how
    late the instrument sends, by rate and transport; the highest rates of queries, connections and handshakes, and
    which side limits them; the resolution of the clocks; whether links behave as configured; how much identical trials
    vary, and so the smallest difference that 3, 5, 10 and 20 repeats can show; and what disturbs measurements, each
    with a command that helps.

    Stop everything else on the machine first. The certificate is a page (certificate.html) and a file for programs
    (certificate.json), beside the runs that its figures come from. A run names the newest certificate of its machine.
    The trap calibration-stale reports a certificate that is no longer valid. An interrupted calibration leaves nothing
    behind: start it again.

    With --nic and --other-end, latency and lag are measured over two paths: over veth on this machine, and through the
    interface from another machine. The difference is what the interface adds. Both interfaces must be unused.

    Exit status: 1 something could not be measured, and there is no certificate.
    """
    from dnsrig.experiment import certificates

    where = kept or certificates.folder()
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
    console = _console.progress(quiet)
    run.clean_machine(console)
    try:
        made = _measure(scale, nic, through, where, console)
    except KeyboardInterrupt:
        complain(
            "interrupted; nothing is left behind",
            f"start it again with the same options (--scale {scale}): a calibration cannot be continued later",
        )
        sys.exit(EXIT_INTERRUPTED)
    from dnsrig.report import certificate

    _console.out().print(certificate.terminal(certificate.write(made), made))


def _measure(
    scale: Literal["quick", "standard"], nic: str, through: Through | None, folder: Path, console: Console
) -> Path:
    from dnsrig.cli._progress import watching
    from dnsrig.experiment.calibration import calibrate

    with watching(console) as progress:
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
