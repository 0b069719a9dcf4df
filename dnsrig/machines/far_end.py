"""What runs on a machine that has hosts of a trial: it does what is called, a line of JSON each, until nobody is there.

Standard input is its lifeline: it ends with the trial, also by `kill -9`, and after 30 s of silence the network counts
as gone. Whatever was made is removed then.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

from dnsrig.errors import DnsrigError
from dnsrig.lab import host_calls
from dnsrig.machines import arrival, leases
from dnsrig.machines.arrival import SILENCE_LIMIT_S

READ_BYTES = 1 << 20
LINE_BYTES_MAX = 64 << 20
"""A part of a file is the longest that comes."""
OURS = "dnsrig."
_telling = threading.Lock()


def main(asked: dict[str, Any], is_ready: Callable[[], None]) -> None:
    lease, holder = str(asked["lease"]), str(asked["holder"])
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # the end of standard input tells
    if other := leases.take(lease, holder):
        arrival.tell(error=f"it is taken by {other}", full=False, folder="")
        return
    gone = threading.Event()
    threading.Thread(target=_renew, args=(lease, holder, gone), daemon=True).start()
    try:
        host_calls.begin(tell)
        is_ready()
        for line in lines():
            answer(json.loads(line))
    finally:
        gone.set()
        try:
            host_calls.end()
        finally:
            leases.give_back(lease)


def answer(call: dict[str, Any]) -> None:
    """Do what is called, and tell what came of it."""
    module, _, name = str(call["call"]).partition(":")
    try:
        if not module.startswith(OURS):
            raise DnsrigError(f"{module} is not a part of dnsrig")
        value = getattr(importlib.import_module(module), name)(*call["arguments"])
        tell(answer=call["id"], value=value)
    except DnsrigError as error:
        tell(answer=call["id"], error=error.message, hint=error.hint)
    except Exception as error:
        tell(answer=call["id"], error=f"{type(error).__name__}: {error}"[:500], hint="")


def tell(**what: Any) -> None:
    with _telling, contextlib.suppress(OSError):  # whoever is gone hears nothing
        data = json.dumps(what).encode() + b"\n"
        while data:
            data = data[os.write(sys.stdout.fileno(), data) :]


def lines() -> Iterator[bytes]:
    """Of standard input, until it ends or is silent. Dots between lines say that somebody is there."""
    pending = bytearray()
    while select.select([0], [], [], SILENCE_LIMIT_S)[0] and (data := os.read(0, READ_BYTES)):
        pending += data
        if b"\n" in data:  # else a part of a file is on its way, which is not looked through again and again
            *whole, rest = bytes(pending).split(b"\n")
            pending = bytearray(rest)
            yield from filter(None, (line.lstrip(b".") for line in whole))
        if len(pending) > LINE_BYTES_MAX:
            return


def _renew(lease: str, holder: str, gone: threading.Event) -> None:
    while not gone.wait(leases.RENEWAL_S):
        with contextlib.suppress(DnsrigError):
            leases.renew(lease, holder)
