"""The root of all errors that a user may see."""

from __future__ import annotations


class DnsrigError(Exception):
    """An error that one sentence describes.

    ``hint`` is what to do next; ``exit_code`` is the exit status of the command.
    """

    exit_code = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(DnsrigError):
    """A request that makes no sense: a wrong name, key, value or unit."""

    exit_code = 2
