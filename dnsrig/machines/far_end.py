"""The process on a machine that has hosts of a trial: it carries out calls, one line of JSON each.

It ends with its standard input, and removes what was made. Standard input ends with the trial, also after `kill -9`;
after 30 s of silence the network counts as gone.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

from pydantic import validate_call
from pydantic_core import to_jsonable_python

from dnsrig.errors import DnsrigError
from dnsrig.lab import host_calls
from dnsrig.machines import arrival, leases

OURS = "dnsrig."
_telling = threading.Lock()


def main(asked: dict[str, Any], is_ready: Callable[[], None]) -> None:
    lease, holder = str(asked["lease"]), str(asked["holder"])
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # standard input ends as well
    if other := leases.take(lease, holder):
        arrival.tell(error=f"it is taken by {other}", full=False, folder="")
        return
    gone = threading.Event()
    threading.Thread(target=_renew, args=(lease, holder, gone), daemon=True).start()
    try:
        host_calls.begin(tell)
        is_ready()
        for line in arrival.lines():
            answer(json.loads(line))
    finally:
        gone.set()
        try:
            host_calls.end()
        finally:
            leases.give_back(lease)


def answer(call: dict[str, Any]) -> None:
    """Carry out a call, and report its result. Arguments become what the function is annotated with."""
    module, _, name = str(call["call"]).partition(":")
    try:
        if not module.startswith(OURS):
            raise DnsrigError(f"{module} is not a part of dnsrig")
        function = validate_call(getattr(importlib.import_module(module), name))
        value = function(*call["arguments"], **call["named"])
        tell(answer=call["id"], value=to_jsonable_python(value, bytes_mode="base64"))
    except DnsrigError as error:
        tell(answer=call["id"], error=error.message, hint=error.hint)
    except Exception as error:
        tell(answer=call["id"], error=f"{type(error).__name__}: {error}"[:500], hint="")


def tell(**what: Any) -> None:
    with _telling, contextlib.suppress(OSError):  # whoever is gone hears nothing
        data = json.dumps(what).encode() + b"\n"
        while data:
            data = data[os.write(sys.stdout.fileno(), data) :]


def _renew(lease: str, holder: str, gone: threading.Event) -> None:
    while not gone.wait(leases.RENEWAL_S):
        with contextlib.suppress(DnsrigError):
            leases.renew(lease, holder)
