"""Puts the commands together, and turns errors into one sentence, a hint and an exit status."""

from __future__ import annotations

import errno
import functools
import inspect
import os
import sys
import traceback
from collections.abc import Callable
from typing import NoReturn

import typer
from rich.text import Text

from dnsrig import discovery, interruption
from dnsrig.cli import _console
from dnsrig.cli._exits import EXIT_BROKEN_PIPE, EXIT_ERROR, EXIT_INTERRUPTED
from dnsrig.errors import DnsrigError
from dnsrig.text import visible

TRACEBACK = "DNSRIG_TRACEBACK"
HELP = """A test rig for DNS servers: real servers in a small network, real traffic, repeated, with the cause of odd results.

Begin with `dnsrig check` (is this machine fit?), then `dnsrig run tour`.
"""


def application() -> typer.Typer:
    app = typer.Typer(
        name="dnsrig",
        help=HELP,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(options)
    for module in discovery.modules("dnsrig.cli"):
        module.add(app)
    for group in (app, *(inner.typer_instance for inner in app.registered_groups)):
        for command in group.registered_commands if group else ():
            command.help = reflowed(command.help or inspect.getdoc(command.callback) or "")
    return app


@functools.cache
def _command() -> Callable[..., None]:
    """Put together once, however often a process calls `main`, as tests do."""
    return typer.main.get_command(application())


def options(
    version: bool = typer.Option(
        False, "--version", is_eager=True, callback=lambda wanted: wanted and print_version(), help="Print the version."
    ),
) -> None:
    """Take the options of dnsrig itself."""


def print_version() -> NoReturn:
    """Print version and commit of the package, and version and profile of the engine."""
    from dnsrig.version import engine, package

    typer.echo(package())
    typer.echo(engine())
    raise typer.Exit


def reflowed(text: str) -> str:
    """``text`` with each paragraph in one line: a terminal breaks it where it ends, and the lines of a source are
    longer than most terminals."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def complain(message: str, hint: str = "") -> None:
    console = _console.err(soft_wrap=True)
    console.print(Text("dnsrig: ", style="bold red") + Text(_visible(message), style=""))
    if hint:
        console.print(Text("hint: ", style="bold") + Text(_visible(hint), style=""))


def _visible(text: str) -> str:
    """Lines are kept: some exceptions have several."""
    return "\n".join(map(visible, text.split("\n")))


def _explain(error: Exception) -> NoReturn:
    """For who wants to see where it came from."""
    if os.environ.get(TRACEBACK):
        traceback.print_exception(error)
    sys.exit(getattr(error, "exit_code", EXIT_ERROR))


@interruption.caught()
def main() -> None:
    try:
        _command()(standalone_mode=True)
    except SystemExit as ended:
        # Typer makes an exit status of an interrupt, without a word.
        if isinstance(getattr(ended.__context__, "__cause__", None), KeyboardInterrupt):
            complain("interrupted")
        raise
    except DnsrigError as error:
        complain(error.message, error.hint)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        complain("interrupted")
        sys.exit(EXIT_INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_BROKEN_PIPE)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            complain(
                f"the disk is full ({error.filename or 'while writing'})",
                "free some space; a run goes on with --resume",
            )
            sys.exit(getattr(error, "exit_code", EXIT_ERROR))
        complain(f"{error.strerror or error} ({error.filename})" if error.filename else str(error))
        _explain(error)
    except Exception as error:
        complain(f"{type(error).__name__}: {error}", f"this should not happen; {TRACEBACK}=1 shows where it came from")
        _explain(error)
