"""The exit status of every command. Scripts rely on it, so a status has one meaning in a command."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import typer

from dnsrig.errors import UsageError

EXIT_ERROR = 1
EXIT_REGRESSION = 1
"""A rule or a limit is broken. A command with rules or limits never ends with 1 because of an error (`failing_as`)."""
EXIT_USAGE = 2
EXIT_UNDECIDED = 3
"""The measurement does not answer the question, or could not be made."""
EXIT_INCOMPLETE = 4
"""A part of the result is missing, because something failed or was damaged, and this is reported."""
EXIT_NO_DIFFERENCE = 5
EXIT_NO_VALID_TRIAL = 6
"""All trials of a variant are invalid, so it has no result, and nothing can be compared with it."""
EXIT_SKIP = 125
"""`git bisect run` skips the commit."""
EXIT_STOP = 128
"""`git bisect run` stops at this status, and at all others above 127."""
EXIT_INTERRUPTED = 130
"""128 and the number of SIGINT, as in a shell; also after SIGTERM, SIGHUP and SIGQUIT."""
EXIT_BROKEN_PIPE = 141
"""128 and the number of SIGPIPE: the reader of standard output is gone."""

VERDICT: dict[str | None, int] = {"pass": 0, "regression": EXIT_REGRESSION, "undecided": EXIT_UNDECIDED, None: 0}
"""Decision of the rules of ``--fail-if``, None without rules -> exit status."""

EVERY = "every command"
STATUS: dict[str, dict[int, str]] = {
    EVERY: {
        0: "success. A server that failed, or a trial that reached its limit, is a result",
        EXIT_ERROR: "an error, with one sentence on standard error",
        EXIT_USAGE: "bad input: an unknown option, name, key or value",
        EXIT_INTERRUPTED: "interrupted by SIGINT, SIGTERM, SIGHUP or SIGQUIT; finished parts are kept",
        EXIT_BROKEN_PIPE: "the reader of standard output is gone",
    },
    "check": {EXIT_ERROR: "something is missing that dnsrig cannot work without"},
    "calibrate": {
        EXIT_ERROR: "something could not be measured, and there is no certificate",
        EXIT_INTERRUPTED: "interrupted; nothing is left behind",
    },
    "clean": {EXIT_ERROR: "something could not be removed"},
    "run": {
        EXIT_ERROR: "trials are missing because of dnsrig or the machine, or the run could not start or continue",
        EXIT_INCOMPLETE: "all trials are complete, but a part of the report failed and is missing, or a file is damaged",
        EXIT_NO_VALID_TRIAL: "no trial of some variant is valid",
    },
    "run --fail-if": {
        0: "every rule passes",
        EXIT_REGRESSION: "a regression",
        EXIT_UNDECIDED: "undecided; or trials are missing, or the run could not start or continue",
    },
    "history": {
        EXIT_ERROR: "trials are missing because of dnsrig or the machine, or the runs do not belong to one history"
    },
    "watch-branch": {
        0: "nothing is worse than the last time",
        EXIT_REGRESSION: "a regression, reported for the first time",
        EXIT_UNDECIDED: "it could not be measured: the commit cannot be built, or trials failed",
    },
    "report": {
        EXIT_INCOMPLETE: "written, but a metric, trap, chart or section failed and is missing, or a file is damaged",
        EXIT_NO_VALID_TRIAL: "written, but no trial of some variant is valid",
    },
    "export": {EXIT_INCOMPLETE: "written, but a part failed and is missing, or a file is damaged"},
    "compare": {
        0: "every rule passes, or no rule is given",
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
        EXIT_UNDECIDED: "undecided: a limit was reached before the answer was certain enough",
        EXIT_INCOMPLETE: "a range of commits that look alike",
        EXIT_NO_DIFFERENCE: "the ends do not differ as the criterion requires",
    },
    "plan": {
        0: "an answer, and --within is kept",
        EXIT_REGRESSION: "--within is not kept",
        EXIT_USAGE: "no answer: bad input, or a run that cannot be read",
        EXIT_UNDECIDED: "undecided: the interval contains --within",
    },
    "probe": {3: "not all zones were seen within --limit"},
    "propagation": {3: "not all changes were seen within --limit, or not all were accepted"},
    "transfer": {1: "some zone is neither transferred nor up to date (there is a summary), or another error"},
}
"""Command -> status -> meaning. A status that a command does not list has its meaning for every command."""


@contextlib.contextmanager
def failing_as(status: int, bad_input: int = EXIT_USAGE) -> Iterator[None]:
    """Errors end the command with ``status``, and bad input with ``bad_input``: for commands whose status 1 is an
    answer."""
    try:
        yield
    except typer.Exit:
        raise
    except Exception as error:
        error.exit_code = bad_input if isinstance(error, UsageError) else status  # type: ignore[attr-defined]
        raise
