"""How the queries of a replay arrive at the server: a capture of its host, compared with the stream."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dnsrig import paths, streams
from dnsrig.errors import DnsrigError
from dnsrig.lab import capture
from dnsrig.procedures.context import TrialContext
from dnsrig.servers.placement import DNS_PORT

LIMIT_S = 600
"""For all packets of a trial: the engine reads about a million a second."""


@contextmanager
def compared(context: TrialContext, clients: str, duration_s: float) -> Iterator[None]:
    """Capture what comes from the host ``clients`` while what is inside runs, and say at its end how that differs from
    the stream. The capture is not kept."""
    with TemporaryDirectory(dir=context.directory) as folder:
        file = Path(folder, "arrived.pcap")
        server = context.host(context.spec.subject)
        expression = f"dst host {server.address} and dst port {DNS_PORT}"
        with capture.capturing(server, clients, expression, file) as found:
            yield
        context.summaries["arrival"] = {**_compare(context, clients, duration_s, file), "dropped": found.dropped}


def _compare(context: TrialContext, clients: str, duration_s: float, file: Path) -> dict[str, Any]:
    spec, arrived = context.spec, file.with_suffix(".stream")
    assert spec.stream is not None
    prepare = [str(file), "--addresses", f"--server={spec.hosts[spec.subject].address}", f"--out={arrived}"]
    words = [str(streams.file(spec.stream.key)), str(arrived), f"--clients-from={spec.hosts[clients].client_range}"]
    words += [f"--speed={spec.options['speed']}", *([f"--duration-s={duration_s}"] if duration_s else [])]
    _engine("prepare", prepare)
    return _engine("compare", words)


def _engine(step: str, words: Sequence[str]) -> dict[str, Any]:
    command = [str(paths.engine()), "replay", step, *words]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    if result.returncode != 0:
        raise DnsrigError(f"the capture could not be compared with the stream: {result.stderr.strip()}")
    return json.loads(result.stdout.splitlines()[-1])  # type: ignore[no-any-return]
