"""Files as they were: where a change of them is meant, ``DNSRIG_BLESS=1`` makes them anew."""

from __future__ import annotations

import os
from pathlib import Path


def same(golden: Path, text: str) -> bool:
    """Whether ``text`` is what the file ``golden`` has."""
    if "DNSRIG_BLESS" in os.environ:
        golden.parent.mkdir(parents=True, exist_ok=True)
        golden.write_text(text, encoding="utf-8")
    return text == golden.read_text(encoding="utf-8")
