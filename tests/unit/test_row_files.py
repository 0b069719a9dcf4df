"""Row files as the engine writes them: polars reads their types, nulls and words."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import polars as pl

from dnsrig import paths
from dnsrig.runs.rows import chunks

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
