"""The runs: what is done with an engine, each from a seed. One function each, over a `Bench`."""

from __future__ import annotations

from collections.abc import Callable

from behaviour.bench import Bench
from behaviour.runs import loading, serving, transferring, watching

_EACH = [
    serving.generate, serving.serve, serving.serve_faults, serving.serve_tsig, serving.serve_tls, serving.serve_notify,
    serving.echo, loading.load_udp, loading.load_stream, loading.load_closed, transferring.transfer,
    transferring.transfer_secure, transferring.transfer_faults, transferring.transfer_notified, transferring.interrogate,
    watching.probe, watching.change, watching.watch, watching.link,
    watching.refused,
]  # fmt: skip
RUNS: dict[str, Callable[[Bench], None]] = {run.__name__.replace("_", "-"): run for run in _EACH}
