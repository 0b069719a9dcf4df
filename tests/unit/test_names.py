"""Words that gave way to those of the field: no file, type or function is called so any more."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ENGINE = ROOT / "engine"
PACKAGE = ROOT / "dnsrig"

GONE_FROM_THE_ENGINE = {
    "Stationery": "SinkFactory",
    "Sheet": "AtomicFile",
    "Duty": "SendSchedule",
    "Ledger": "InFlight",
    "Meter": "IntervalStats",
    "Tally": "Counters",
    "Account": "Counters",
    "Journal": "RowBuffer",
    "Farewells": "LingeringCloses",
    "Carrier": "Forwarder",
    "Pen": "MessageWriter",
    "Places": "Listeners",
    "Reader": "Reporter",
    "Patience": "Timeout",
    "Remains": "WorkerResult",
    "Strays": "UnmatchedResponses",
    "Beat": "ProgressDue",
    "Rhythm": "ProgressTimer",
}
"""Type -> the one that took its place."""
FILES_GONE_FROM_THE_ENGINE = {
    "papers", "words", "duty", "ledger", "meter", "tally", "account", "journal", "farewells", "carrier", "pen", "places"
}  # fmt: skip
GONE_FROM_PYTHON = {"Stage": "TrialContext", "told": "summaries", "like": "inherits"}
"""Of classes and their attributes."""
FILES_GONE_FROM_PYTHON = {"pull", "carriers", "two_runs", "rules"}
PLACES_OF_RENAMES = ("procedures", "runs", "stats", "comparison", "prediction", "checks", "metrics")
OF_LIBRARIES = re.compile(r"\b(?:from|into)_octets\b|\.octets\(\)")
"""What `domain` and the standard library call so."""


def types_of_the_engine() -> Iterator[tuple[str, Path]]:
    for path in ENGINE.glob("dnsrig-*/src/**/*.rs"):
        for name in re.findall(r"\b(?:struct|enum|trait|type) (\w+)", path.read_text()):
            yield name, path


def attributes() -> Iterator[tuple[str, Path]]:
    """Names of classes and of what they declare."""
    for part in PLACES_OF_RENAMES:
        for path in (PACKAGE / part).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ClassDef):
                    yield node.name, path
                    for line in node.body:
                        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
                            yield line.target.id, path


@pytest.mark.parametrize(
    ("names", "gone"),
    [(types_of_the_engine, GONE_FROM_THE_ENGINE), (attributes, GONE_FROM_PYTHON)],
    ids=["engine", "package"],
)
def test_no_old_word_is_a_type_or_an_attribute(names, gone) -> None:  # type: ignore[no-untyped-def]
    found = [(name, path) for name, path in names() if name in gone]
    assert [f"{path.relative_to(ROOT)}: {name} is {gone[name]} now" for name, path in found] == []


def test_no_file_has_an_old_word_as_its_name() -> None:
    found = {path for path in ENGINE.glob("dnsrig-*/src/**/*.rs") if path.stem in FILES_GONE_FROM_THE_ENGINE}
    for part in PLACES_OF_RENAMES:
        found |= {path for path in (PACKAGE / part).rglob("*.py") if path.stem in FILES_GONE_FROM_PYTHON}
    assert found == set()


def test_the_look_sees_types_and_attributes() -> None:
    assert "SinkFactory" in dict(types_of_the_engine())
    assert "summary" in dict(attributes())


def test_bytes_are_bytes() -> None:
    sources = [*ENGINE.glob("dnsrig-*/src/**/*.rs"), *PACKAGE.rglob("*.py")]
    assert [path for path in sources if "octet" in OF_LIBRARIES.sub("", path.read_text()).lower()] == []
