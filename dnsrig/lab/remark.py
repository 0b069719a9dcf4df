"""What is said of a machine: a fact, how much it matters, and what helps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Grade = Literal["good", "note", "bad", "not known"]


@dataclass(frozen=True)
class Remark:
    """``bad`` keeps dnsrig from working; a ``note`` is something that results may depend on; ``not known``: the machine
    does not tell."""

    what: str
    grade: Grade
    says: str
    remedy: str = ""
