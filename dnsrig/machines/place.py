"""One machine, as a run sees it: a place where functions are called, one at a time."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Protocol

from dnsrig.errors import DnsrigError


class Place(Protocol):
    """What another way to reach machines has to offer: ``submit`` is that of a `concurrent.futures.Executor`."""

    @property
    def name(self) -> str: ...

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Future[Any]:
        """Call ``function``, which the machine imports by its name, there. The future has what it returns or raises, or
        `Lost`."""

    def execute(self, spec_json: str, lease: str, report: Callable[[dict[str, Any]], None]) -> Future[Any]:
        """Call `there.execute`. What the trial says is reported from some thread, where the way there can tell."""

    def at_once(self, function: Callable[..., Any], /, *arguments: Any) -> Any:
        """The same beside what is running there, for what takes no time; returns what it returns."""


class Lost(DnsrigError):
    """The machine does not answer any more."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"the machine {name} does not answer", hint="look at it and its worker; then go on with --resume"
        )
