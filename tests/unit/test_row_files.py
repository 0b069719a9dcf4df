"""Row files as the engine writes them: polars reads their types, nulls and words."""

from __future__ import annotations

import io
import json
import subprocess
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest

from dnsrig import paths
from dnsrig.runs import rows
from dnsrig.runs.rows import chunks, messages, whole_messages

TYPES = {
    "zone": pl.String,
    "last_unseen_ns": pl.Int64,
    "seen_ns": pl.Int64,
    "serial": pl.UInt32,
    "polls": pl.UInt32,
    "outcome": pl.Categorical,
}


def probed(folder: Path) -> Path:
    """The rows of a probe for three zones, of which the server has two."""
    serve = [str(paths.engine()), "serve", "zones", "127.0.0.1:0", "--xot-port", "0", "--count", "2", "--until-eof"]
    (folder / "zones.list").write_text("".join(f"z00000{number}.example\tfile\n" for number in range(3)))
    with subprocess.Popen(serve, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        events = map(json.loads, server.stdout)
        address = next(event["udp"] for event in events if event["event"] == "ready")
        command = [str(paths.engine()), "probe", address, "--zones", "zones.list", "--limit-s", "1"]
        done = subprocess.run([*command, "--out", "zones.arrow"], cwd=folder, check=False, capture_output=True)
        assert done.returncode == 3, done.stderr.decode()
        server.communicate()
    return folder / "zones.arrow"


def test_types_nulls_and_words_are_read(tmp_path: Path) -> None:
    path = probed(tmp_path)
    frame = pl.read_ipc_stream(path)
    assert dict(frame.schema) == TYPES
    assert frame["zone"].to_list() == [f"z00000{number}.example" for number in range(3)]
    assert frame["serial"].to_list() == [1, 1, None]
    assert frame["seen_ns"].null_count() == 1 and (frame["polls"] > 0).all()
    assert frame["outcome"].to_list() == ["seen", "seen", "unseen"]
    with path.open("rb") as file:
        assert pl.concat(chunks(file)).equals(frame)


def test_rows_are_there_before_the_end_of_the_stream(tmp_path: Path) -> None:
    path = probed(tmp_path)
    whole = path.read_bytes()
    assert whole.endswith(b"\xff\xff\xff\xff\0\0\0\0")
    path.write_bytes(whole[:-8])
    assert pl.read_ipc_stream(path).height == 3


def batches(*heights: int) -> bytes:
    """An Arrow IPC stream with a batch for each of ``heights``: numbers from 0 on."""
    numbers, whole, end = iter(range(sum(heights))), b"", b""
    for height in heights:
        one = io.BytesIO()
        pl.DataFrame({"number": [next(numbers) for _ in range(height)]}).write_ipc_stream(one)
        data = one.getvalue()
        schema, batch, last = messages(one, len(data))
        whole += data[0 if not whole else schema.end : batch.end]
        end = data[last.start :]
    return whole + end


def heights(data: bytes, most_bytes: int) -> list[int]:
    return [frame.height for frame in chunks(io.BytesIO(data), most_bytes)]


def test_a_stream_is_a_schema_and_batches_and_its_end() -> None:
    data = batches(3, 2)
    found = list(messages(io.BytesIO(data), len(data)))
    assert [each.kind for each in found] == [rows.SCHEMA, rows.BATCH, rows.BATCH, rows.END]
    assert found[0].start == 0 and found[-1].end == len(data)
    assert all(one.end == other.start for one, other in pairwise(found))
    assert len(list(messages(io.BytesIO(data), len(data) - 9))) == 2, "the second batch is cut"
    assert len(list(messages(io.BytesIO(data), len(data) - 8))) == 3
    assert whole_messages(io.BytesIO(data), len(data) - 9) == found[1].end
    assert whole_messages(io.BytesIO(b""), 0) == 0


@pytest.mark.parametrize(("most_bytes", "expected"), [(1, [3, 2, 4]), (1 << 20, [9])])
def test_chunks_are_of_whole_batches(most_bytes: int, expected: list[int]) -> None:
    """The mark of the end is no chunk of its own."""
    data = batches(3, 2, 4)
    assert heights(data, most_bytes) == expected
    assert pl.concat(chunks(io.BytesIO(data), most_bytes))["number"].to_list() == list(range(9))


def test_a_chunk_is_full_with_the_batch_that_reaches_its_size() -> None:
    data = batches(3, 2, 4)
    _, first, second, *_ = messages(io.BytesIO(data), len(data))
    size = second.end - first.start
    assert heights(data, size) == [5, 4] and heights(data, size + 1) == [9]


def test_chunks_end_before_a_message_that_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    data = batches(3, 3000, 4)
    monkeypatch.setattr(rows, "MOST_MESSAGE_BYTES", 10_000)
    assert heights(data, 1) == [3]


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        (b"", 0),
        (b"abc", 3),
        (b"abc\n", 4),
        (b"abc\nde\nf", 8),
        (b"abc\nde\nfghi", 11),
        (b"abc\nde\nfghij", 7),  # a line is longer than allowed
        (b"abc\nde\nfghijk\nl\n", 7),
        (b"abcde", 0),
    ],
)
def test_lines_are_whole_up_to_one_that_is_too_long(text: bytes, whole: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "MOST_LINE_BYTES", 4)
    assert rows.whole_lines(io.BytesIO(text), len(text)) == whole


def test_no_more_of_a_file_is_looked_at_than_is_asked_for() -> None:
    assert rows.whole_lines(io.BytesIO(b"abc\nde\n"), 5) == 5
