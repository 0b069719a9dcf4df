"""`dnsrig trial`: execute one trial from its spec."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from dnsrig.cli._app import complain
from dnsrig.cli._exits import EXIT_INTERRUPTED


def add(app: typer.Typer) -> None:
    app.command("trial", hidden=True)(command)


def command(
    spec: Annotated[Path, typer.Argument(help="spec of the trial, from `specs` in manifest.json or from a trial.json")],
    directory: Annotated[Path, typer.Argument(help="directory of the trial, which must not exist")],
    until_eof: Annotated[bool, typer.Option("--until-eof", help="end when standard input closes")] = False,
) -> None:
    """Execute one trial from its spec.

    Example: dnsrig trial spec.json trial

    Makes the network, starts the servers, measures, and removes everything again. If SPEC contains kernel = "uml", the
    trial runs under another kernel, in User-mode Linux. Reads nothing but SPEC. Phases and progress go to standard
    output as JSON lines.

    Exit status: 0 for every result, also `timeout` and `server-failed`.
    """
    from dnsrig import files, interruption
    from dnsrig.experiment import trial
    from dnsrig.experiment.executors import executor
    from dnsrig.lab import removal
    from dnsrig.rundir import TrialSpec, read_json

    removal.clean()
    if until_eof:
        trial.end_with_stdin()
    wanted = read_json(spec if spec.parent == files.DESCRIPTORS else spec.resolve(), TrialSpec)
    try:
        record = executor(wanted.kernel).run_trial(wanted, directory, _print_event)
    except interruption.Interrupted:
        complain("interrupted; everything that this trial made was removed")
        sys.exit(EXIT_INTERRUPTED)
    _print_event({"event": "ended", "outcome": record.outcome, "reason": record.reason})


def _print_event(event: dict[str, Any]) -> None:
    print(json.dumps(event), flush=True)
