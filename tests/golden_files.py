"""Files as they were: where a change of them is meant, ``DNSRIG_BLESS=1`` makes them anew."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import currently_in_test_context

CALLS: Counter[tuple[str, str]] = Counter()
"""Subject and test -> number of values that the test has compared."""


def same(golden: Path, text: str) -> bool:
    """Whether ``text`` is what the file ``golden`` has."""
    if "DNSRIG_BLESS" in os.environ:
        golden.parent.mkdir(parents=True, exist_ok=True)
        golden.write_text(text, encoding="utf-8")
    return text == golden.read_text(encoding="utf-8")


def text(held: Mapping[str, Sequence[Any]]) -> str:
    """The values of each test as JSON, each in a line of its own."""
    tests = (
        f" {json.dumps(test)}: [\n  " + ",\n  ".join(json.dumps(value, ensure_ascii=False) for value in values) + "\n ]"
        for test, values in sorted(held.items())
    )
    return "{\n" + ",\n".join(tests) + "\n}\n"


def rounded(value: Any) -> Any:
    """``value`` without the last digits of its numbers, which depend on the order of sums."""
    return json.loads(json.dumps(value), parse_float=lambda number: float(f"{float(number):.9g}"))


def hold(subject: str, value: Any) -> None:
    """Fail if the running test had another ``value`` here before. Examples that hypothesis draws are not compared.

    The values are in unit/golden/SUBJECT, a file for each file of tests. If a change is meant,
    ``DNSRIG_BLESS=1 pytest -n 0 FILE`` makes them anew.
    """
    if currently_in_test_context():
        return
    file, _, test = os.environ["PYTEST_CURRENT_TEST"].rpartition(" ")[0].partition("::")
    golden = Path(__file__).parent / "unit/golden" / subject / f"{Path(file).stem}.json"
    number, found = CALLS[subject, f"{file}::{test}"], rounded(value)
    CALLS[subject, f"{file}::{test}"] += 1
    if "DNSRIG_BLESS" in os.environ:
        known = json.loads(golden.read_text(encoding="utf-8")) if golden.exists() else {}
        known[test] = [*known.get(test, [])[:number], found]
        same(golden, text(known))
        return
    expected = (_read(golden) if golden.exists() else {}).get(test, [])[number : number + 1]
    assert [found] == expected, f"{test}, value {number}: expected {expected}, found {found}"


@cache
def _read(golden: Path) -> dict[str, list[Any]]:
    known: dict[str, list[Any]] = json.loads(golden.read_text(encoding="utf-8"))
    return known
