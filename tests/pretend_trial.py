"""Plays `dnsrig trial --until-eof SPEC DIRECTORY`: a trial that is done at once, or after PRETEND_S seconds.

Or it fails, as PRETEND_FAILS says.

It says which cache it had, so that a test knows where it was executed. Imports nothing of dnsrig: tests start it often.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
from pathlib import Path


def main() -> None:
    spec, target = json.loads(Path(sys.argv[-2]).read_text()), Path(sys.argv[-1])
    print(json.dumps({"event": "phase", "phase": "measure"}), flush=True)
    deadline = time.monotonic() + float(os.environ.get("PRETEND_S", "0"))
    while time.monotonic() < deadline:
        if select.select([sys.stdin], [], [], 0.05)[0] and not os.read(0, 1):
            sys.exit("dnsrig: interrupted")
    if reason := os.environ.get("PRETEND_FAILS"):
        aborted = target.with_name(f"{target.name}.aborted")
        aborted.mkdir(parents=True)
        (aborted / "log").write_text("of a trial that fails\n")
        sys.exit(f"dnsrig: {reason}")
    target.mkdir(parents=True)
    (target / "where").write_text(os.environ["DNSRIG_CACHE"])
    record = {"spec": spec, "outcome": "done", "phases": [], "servers": {}, "instruments": {}}
    (target / "trial.json").write_text(json.dumps(record | {"metrics": {spec["main_metric"]: 1.0 + spec["repeat"]}}))


if __name__ == "__main__":
    main()
