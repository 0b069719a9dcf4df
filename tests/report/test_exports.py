from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import polars as pl
import pytest

from dnsrig.errors import UsageError
from dnsrig.report import export
from dnsrig.runs.run import Run


def test_tables_hold_the_summary(small: Run, tmp_path: Path) -> None:
    (csv,) = export(small, "csv", tmp_path / "out")
    (parquet,) = export(small, "parquet", tmp_path / "out")
    assert pl.read_csv(csv).shape == pl.read_parquet(parquet).shape
    assert pl.read_csv(csv)["metric"].n_unique() > 5


def test_drawings_are_whole_documents(small: Run, tmp_path: Path) -> None:
    drawings = export(small, "svg", tmp_path)
    assert len({path.name for path in drawings}) == len(drawings) > 3
    for path in drawings:
        assert ElementTree.parse(path).getroot().tag.endswith("svg")


def test_pictures_are_png(small: Run, tmp_path: Path) -> None:
    pictures = export(small, "png", tmp_path)
    assert pictures
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in pictures)


def test_an_unknown_format_names_those_there_are(small: Run, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as raised:
        export(small, "xlsx", tmp_path)
    assert (
        "csv, dns-metrics, json, markdown, pairs, paper, parquet, perfetto, png, speedscope, svg" in raised.value.hint
    )
