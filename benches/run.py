"""Runs benches one after the other, by default the benches of `make bench`. If one fails, the others still run.

    .venv/bin/python benches/run.py [BENCH ...]

The last lines show which benches passed, and how long each of them took. The exit status is 1 if a bench failed. The
environment variable DNSRIG_ENGINE names the engine to measure (default: the installed one).
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from smoke import SMOKE, parser

from dnsrig import paths

FOLDER = Path(__file__).parent
BENCHES = (
    "instruments",
    "load_accuracy",
    "send_lag",
    "load_speed",
    "transfer_speed",
    "link_speed",
    "world_speed",
    "bisect_simulated",
    "browse",
)
"""The benches of `make bench`."""


def main() -> int:
    asking = parser(__doc__)
    asking.add_argument("benches", nargs="*", metavar="BENCH", help=f"default: {', '.join(BENCHES)}")
    benches = [FOLDER / f"{name.removesuffix('.py')}.py" for name in asking.parse_args().benches or BENCHES]
    for path in benches:
        if not path.is_file():
            asking.error(f"{path} is missing")
    engine = paths.engine().resolve()
    os.environ["DNSRIG_ENGINE"] = str(engine)
    print(f"engine: {engine}")
    ended: list[tuple[str, int, float]] = []
    for path in benches:
        print(f"\n== {path.name}", flush=True)
        began_s = time.monotonic()
        done = subprocess.run([sys.executable, path, *(["--smoke"] if SMOKE else [])], check=False)
        ended.append((path.name, done.returncode, time.monotonic() - began_s))
    print()
    for name, code, took_s in ended:
        print(f"{name:24s} {took_s:7.1f} s  {'passed' if code == 0 else f'FAILED, exit status {code}'}")
    return int(any(code for _, code, _ in ended))


if __name__ == "__main__":
    sys.exit(main())
