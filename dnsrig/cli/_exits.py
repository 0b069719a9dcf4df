"""The exit status of every command: scripts rely on it, so each has one meaning a command, and all stand here."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import typer

from dnsrig.errors import UsageError

EXIT_ERROR = 1
EXIT_REGRESSION = 1
"""A rule or a limit is broken. A command that has one never ends with 1 because of an error (`failing_as`)."""
EXIT_USAGE = 2
EXIT_UNDECIDED = 3
"""The measurement does not answer the question, or there could be none."""
EXIT_INCOMPLETE = 4
"""There is a result, but not all of it: something failed or was damaged, and is said to be missing."""
EXIT_NO_DIFFERENCE = 5
EXIT_NO_VALID_TRIAL = 6
"""All trials of a variant are invalid: nothing can be said of it, and of what is compared with it."""
EXIT_SKIP = 125
"""`git bisect run` takes it as: cannot be told of this commit, go on with another."""
EXIT_STOP = 128
"""`git bisect run` ends at it, as at all above 127."""
EXIT_INTERRUPTED = 130
"""128 and the number of SIGINT, as a shell has it; also after SIGTERM, SIGHUP and SIGQUIT."""
EXIT_BROKEN_PIPE = 141
"""128 and the number of SIGPIPE: who read standard output went away."""

VERDICT: dict[str | None, int] = {"pass": 0, "regression": EXIT_REGRESSION, "undecided": EXIT_UNDECIDED, None: 0}
"""What the rules of ``--fail-if`` decide, None without any."""

EVERY = "every command"
STATUS: dict[str, dict[int, str]] = {
    EVERY: {
        0: "it did what was asked. A server that failed, or a trial that reached its limit, is a result",
        EXIT_ERROR: "an error, with one sentence on standard error",
        EXIT_USAGE: "bad input: an unknown option, name, key or value",
        EXIT_INTERRUPTED: "interrupted by SIGINT, SIGTERM, SIGHUP or SIGQUIT; what was finished is kept",
        EXIT_BROKEN_PIPE: "the reader of standard output went away",
    },
    "check": {EXIT_ERROR: "something is missing without which dnsrig cannot work"},
    "calibrate": {
        EXIT_ERROR: "something could not be measured, and there is no certificate",
        EXIT_INTERRUPTED: "interrupted; nothing is left of it",
    },
    "clean": {EXIT_ERROR: "something could not be removed"},
    "run": {
        EXIT_ERROR: "trials failed by a fault of dnsrig or the machine and are missing, or the run could not begin or go on",
        EXIT_INCOMPLETE: "all trials are there; of the report something failed and is left out, or a file is damaged",
        EXIT_NO_VALID_TRIAL: "no trial of some variant is valid",
    },
    "run --fail-if": {
        0: "every rule passes",
        EXIT_REGRESSION: "a regression",
        EXIT_UNDECIDED: "undecided; or trials are missing, or the run could not begin or go on",
    },
    "history": {
        EXIT_ERROR: "trials failed by a fault of dnsrig or the machine and are missing, or runs do not belong into one history"
    },
    "watch-branch": {
        0: "nothing is worse than at the look before",
        EXIT_REGRESSION: "a regression, reported for the first time",
        EXIT_UNDECIDED: "it could not be measured: the commit cannot be built, or trials failed",
    },
    "report": {
        EXIT_INCOMPLETE: "written, but a metric, trap, chart or section failed and is left out, or a file is damaged",
        EXIT_NO_VALID_TRIAL: "written, but no trial of some variant is valid",
    },
    "export": {EXIT_INCOMPLETE: "what could be was written; something failed and is left out, or a file is damaged"},
    "compare": {
        0: "every rule passes, or there is none",
        EXIT_REGRESSION: "a regression",
        EXIT_USAGE: "bad input: runs that cannot be read or compared, an invalid rule; nothing is on standard output",
        EXIT_UNDECIDED: "undecided",
        EXIT_NO_VALID_TRIAL: "no trial of some variant is valid, and there is no rule",
    },
    "compare --bisect": {
        0: "every rule passes: good",
        1: "a regression: bad",
        EXIT_SKIP: "undecided: skip",
        EXIT_STOP: "the runs could not be compared: the search ends",
    },
    "bisect": {
        0: "one commit",
        EXIT_UNDECIDED: "undecided: a limit was reached before the answer was sure enough",
        EXIT_INCOMPLETE: "a range of commits that look alike",
        EXIT_NO_DIFFERENCE: "the ends do not differ as the criterion says",
    },
    "plan": {
        0: "an answer, and --within is kept",
        EXIT_REGRESSION: "--within is not kept",
        EXIT_USAGE: "no answer: bad input, or a run that cannot be read",
        EXIT_UNDECIDED: "undecided: the interval holds --within",
    },
    "probe": {3: "not all zones were seen within --limit-s"},
    "propagation": {3: "not all changes were seen within --limit-s, or not all accepted"},
    "transfer": {1: "not every zone is done or up to date, with a summary all the same; or another error"},
}
"""Command -> status -> meaning; what a command does not name is as of every command."""


@contextlib.contextmanager
def failing_as(status: int, bad_input: int = EXIT_USAGE) -> Iterator[None]:
    """Whatever goes wrong within ends the command with ``status``, bad input with ``bad_input``: for commands whose 1
    is an answer."""
    try:
        yield
    except typer.Exit:
        raise
    except Exception as error:
        error.exit_code = bad_input if isinstance(error, UsageError) else status  # type: ignore[attr-defined]
        raise
