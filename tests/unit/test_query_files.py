"""Queries of the user's own: files are found, read once, and named in specs; what cannot be asked is refused."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from dnsrig import query_files
from dnsrig.errors import UsageError
from dnsrig.experiment import model, trial_specs
from dnsrig.procedures.parts import load_arguments, serving
from dnsrig.query_files import QueriesDocument
from dnsrig.rundir import QueriesSpec, TrialSpec

EXPERIMENT = """\
title = "t"
question = "q"
procedure = "latency"
limit_s = 60
dataset = { kind = "tiny-zones", zones = 10 }
hosts.primary.server = "knot@forky"
"""


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A cache of the test's own."""
    monkeypatch.setenv("DNSRIG_CACHE", str(tmp_path / "cache"))
    return tmp_path


def provide(**keys: Any) -> QueriesSpec:
    return query_files.provide(QueriesDocument(**keys), lambda text: None)


def spec(folder: Path, queries: str, **overlay: Any) -> TrialSpec:
    """The provisional spec of an experiment in ``folder`` with ``queries`` as its lines below ``[queries]``."""
    path = folder / "mine.toml"
    path.write_text(f"{EXPERIMENT}\n[queries]\n{queries}\n")
    settings = [f"{name}={value}" for name, value in overlay.items()]
    (point,) = model.points(model.load(path, "quick", settings))
    return trial_specs.provisional("mine", point, [0, 1])


def wire(name: bytes, rtype: int) -> bytes:
    """A query after its length, as `-B` of dnsperf and kxdpgun reads it."""
    message = (
        struct.pack("!6H", 7, 0x100, 1, 0, 0, 0) + bytes([len(name)]) + name + b"\0" + struct.pack("!2H", rtype, 1)
    )
    return struct.pack("!H", len(message)) + message


def test_a_file_is_read_once_and_known_by_its_content(cache: Path) -> None:
    file = cache / "mine.txt"
    file.write_text("www.example A\nb.example AAAA E\nc.example A\n")
    notes: list[str] = []
    found = query_files.provide(QueriesDocument(file=str(file)), notes.append)
    assert (found.name, found.format, found.queries, found.types) == ("mine.txt", "text", 3, {"A": 2, "AAAA": 1})
    again = query_files.provide(QueriesDocument(file=str(file), shuffle=True), notes.append)
    assert (again.key, len(notes)) == (found.key, 1), "another order needs no other copy"
    assert (query_files.folder(found.key) / "queries").read_text() == file.read_text()
    file.write_text("www.example A\n")
    assert provide(file=str(file)).key != found.key


def test_names_alone_binary_files_and_bad_lines(cache: Path) -> None:
    (names := cache / "names").write_bytes(b"\xef\xbb\xbfa.example\r\n# ours\r\nb.example.\r\n")
    assert provide(file=str(names), types=["A", "AAAA"]).types == {"A": 2, "AAAA": 2}
    (binary := cache / "binary").write_bytes(wire(b"a", 1) + wire(b"b", 65280))
    found = provide(file=str(binary))
    assert (found.format, found.types) == ("binary", {"A": 1, "TYPE65280": 1})
    (bad := cache / "bad").write_text("a A\nb\n..\nc A\n")
    notes: list[str] = []
    found = query_files.provide(QueriesDocument(file=str(bad), on_bad_line="skip"), notes.append)
    assert (found.queries, found.skipped) == (2, 2)
    assert "line 2: no type after the name `b`" in notes[-1] and "line 3" in notes[-1]


BAD_FILES = {
    "names": (b"a.example\n", "line 1: no type after the name `a.example`"),
    "junk": (b"\x7fELF\2\1\1\0", "neither text nor a sequence of queries"),
    "comments": (b"; nothing\n", "contains no query"),
    "any": (b"a.example ANY" + b" " * (10 << 20) + b"x\n", "line 1: a line of more than 65536 bytes"),
    "long": (b"a." * 128 + b" A\n", "line 1: `a.a.a."),
    "label": (b"a" * 64 + b".example A\n", "a label of more than 63 bytes"),
    "cut": (wire(b"a", 1) + wire(b"b", 1)[:-1], "query 2: the file ends in the middle of it"),
    "response": (wire(b"a", 1) + wire(b"b", 1).replace(b"\1\0\0\1", b"\x81\0\0\1"), "query 2: it is a response"),
}


@pytest.mark.parametrize("kind", BAD_FILES)
def test_what_cannot_be_read_is_named_with_its_place(cache: Path, kind: str) -> None:
    content, reason = BAD_FILES[kind]
    (file := cache / "bad.txt").write_bytes(content)
    with pytest.raises(UsageError) as refused:
        provide(file=str(file))
    assert "bad.txt" in str(refused.value) and reason in str(refused.value)
    assert str(cache / "cache") not in str(refused.value), "the name is the user's own"


def test_what_answers_must_be_is_checked_with_the_queries_and_known_by_its_content(cache: Path) -> None:
    (file := cache / "mine.txt").write_text("www.example A\n")
    (expected := cache / "expected.txt").write_text("www.example A 192.0.2.1\n")
    found = provide(file=str(file), expect=str(expected))
    kept = query_files.folder(found.key) / "expected"
    assert f"--expect={kept}" in query_files.arguments(found) and kept.read_text() == expected.read_text()
    expected.write_text("www.example A 192.0.2.2\n")
    again = provide(file=str(file), expect=str(expected))
    assert again.key != found.key and again.parameters["expect"] != found.parameters["expect"]
    nonempty = provide(expect="noerror-nonempty")
    assert query_files.arguments(nonempty) == ["--expect=noerror-nonempty"]
    assert not any("--expect" in word for word in query_files.arguments(provide(file=str(file))))
    for lines, reason in [
        ("www.example A 1.2.3\n", "line 1"),
        ("other.example A NODATA\n", "no line of queries.expect"),
    ]:
        expected.write_text(lines)
        with pytest.raises(UsageError, match=reason) as refused:
            provide(file=str(file), expect=str(expected))
        assert str(cache / "cache") not in str(refused.value)
    with pytest.raises(UsageError, match=r"queries\.expect: there is no file"):
        provide(expect="missing.txt")


def test_a_file_that_is_not_there_is_refused_before_the_start(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    for file, reason in [("missing.txt", "there is no file"), (str(tmp_path), "is a folder"), ("empty", "is empty")]:
        with pytest.raises(UsageError, match=reason):
            spec(tmp_path, f'file = "{file}"')
    with pytest.raises(UsageError, match=r"queries\.file is missing"):
        spec(tmp_path, "shuffle = true")
    with pytest.raises(UsageError, match=r"unknown key queries\.fiel"):
        spec(tmp_path, 'fiel = "a"')


def test_a_file_is_beside_its_experiment_or_in_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (beside := tmp_path / "beside").mkdir()
    (beside / "one.txt").write_text("a A\n")
    (tmp_path / "two.txt").write_text("a A\n")
    monkeypatch.chdir(tmp_path)
    for name in ("one.txt", "two.txt"):
        found = spec(beside, f'file = "{name}"').queries
        assert found is not None and found.name == name


def test_procedures_that_ask_for_the_zones_refuse_a_file(tmp_path: Path) -> None:
    (tmp_path / "q.txt").write_text("a A\n")
    for overlay, reason in [
        ({"procedure": "startup", "hosts": '{server.server="knot@forky"}'}, "asks only for the SOA of each zone"),
        ({"procedure": "transfer-load"}, "it transfers zones and asks nothing else"),
        ({"options.missing_share": 0.5}, "chooses names of the dataset, but q.txt has the queries"),
        ({"options.popularity": "zipf"}, r"queries\.popularity|chooses names"),
    ]:
        with pytest.raises(UsageError, match=reason):
            spec(tmp_path, 'file = "q.txt"', **overlay)
    with pytest.raises(UsageError, match="needs a fixed rate"):
        spec(tmp_path, 'file = "q.txt"\npasses = 2')
    with pytest.raises(UsageError, match="edns_bytes = 0 switches it off"):
        spec(tmp_path, "cookie = true", **{"options.edns_bytes": 0})
    assert spec(tmp_path, 'file = "q.txt"\npasses = 2', **{"options.rate_qps": 100.0}).queries is not None


def test_the_load_gets_the_copy_and_the_settings(cache: Path) -> None:
    (file := cache / "mine.txt").write_text("a A\n")
    (subnets := cache / "subnets").write_text("192.0.2.0/24\n")
    found = provide(
        file=str(file), shuffle=True, seed=3, client_subnet=str(subnets), cookie=True, edns_options=["65001:c0ffee"]
    )
    words = load_arguments.queries(load_arguments.OPTIONS, Path("zones.list"), seed=13, recursive=True, asked=found)
    copy = query_files.folder(found.key)
    assert words == [
        f"--client-subnet={copy / 'subnets'}",
        "--cookie",
        "--edns-option=65001:c0ffee",
        f"--queries={copy / 'queries'}",
        "--query-format=text",
        "--shuffle",
        "--seed=2013",
        "--edns=1232",
        "--recursion-desired",
    ]


def test_complete_queries_are_sent_as_they_are(cache: Path) -> None:
    (file := cache / "mine.bin").write_bytes(wire(b"a", 1))
    found = provide(file=str(file))
    words = load_arguments.queries(load_arguments.OPTIONS, Path("zones.list"), seed=13, recursive=True, asked=found)
    copy = query_files.folder(found.key) / "queries"
    assert words == [f"--queries={copy}", "--query-format=binary", "--seed=13"]
    made = spec(cache, 'file = "mine.bin"')
    for queries, options, key in [
        (provide(file=str(file), cookie=True), {}, "queries.cookie"),
        (found, {"edns_bytes": 4096}, "options.edns_bytes"),
    ]:
        wanted = made.model_copy(update={"queries": queries, "options": {**made.options, **options}})
        with pytest.raises(UsageError, match=f"{key}: the queries of mine.bin are complete"):
            serving.check_questions(wanted)


def test_a_file_of_complete_queries_refuses_edns_before_it_is_in_the_cache(cache: Path) -> None:
    (file := cache / "mine.bin").write_bytes(wire(b"a", 1))
    with pytest.raises(UsageError, match="--cookie: the queries of the file are complete"):
        provide(file=str(file), cookie=True)


def test_names_of_the_dataset_can_have_edns_of_clients(cache: Path) -> None:
    found = provide(do_share=0.7, nsid=True)
    words = load_arguments.queries(load_arguments.OPTIONS, cache / "zones.list", seed=13, recursive=False, asked=found)
    assert words[:3] == ["--do-share=0.7", "--nsid", f"--zones={cache / 'zones.list'}"]
    with pytest.raises(UsageError, match="CODE:HEX"):
        provide(edns_options=["65001"])
    with pytest.raises(UsageError, match="no prefix"):
        provide(client_subnet="192.0.2.0")


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        ({"queries": {"file": "q.txt"}}, {"queries": {"file": "HERE/q.txt"}}),
        ({"queries": {"file": "no.txt"}}, {"queries": {"file": "no.txt"}}),
        ({"queries": {"file": ""}}, {"queries": {"file": ""}}),
        ({"queries": {"file": 3, "types": ["q.txt"]}}, {"queries": {"file": 3, "types": ["q.txt"]}}),
        ({"queries": "q.txt"}, {"queries": "q.txt"}),
        ({"title": "q.txt"}, {"title": "q.txt"}),
        ({"matrix": {"queries.file": ["q.txt", "no"]}}, {"matrix": {"queries.file": ["HERE/q.txt", "no"]}}),
        ({"matrix": {"queries.expect": ["q.txt"]}}, {"matrix": {"queries.expect": ["HERE/q.txt"]}}),
        ({"matrix": {"queries.types": ["q.txt"]}}, {"matrix": {"queries.types": ["q.txt"]}}),
        ({"matrix": {"file": ["q.txt"]}}, {"matrix": {"file": ["q.txt"]}}),
        ({"matrix": {"dataset.file": ["q.txt"]}}, {"matrix": {"dataset.file": ["q.txt"]}}),
        (
            {"matrix": {"queries.file": {"one": {"queries": {"file": "q.txt"}}}}},
            {"matrix": {"queries.file": {"one": {"queries": {"file": "HERE/q.txt"}}}}},
        ),
        (
            {"matrix": {"asked": {"one": {"queries": {"file": "q.txt"}}, "two": {}}}},
            {"matrix": {"asked": {"one": {"queries": {"file": "HERE/q.txt"}}, "two": {}}}},
        ),
        ({"matrix": 3}, {"matrix": 3}),
    ],
)
def test_a_file_beside_the_experiment_has_its_whole_path(
    tmp_path: Path, raw: dict[str, Any], found: dict[str, Any]
) -> None:
    (tmp_path / "q.txt").touch()
    assert json.loads(json.dumps(query_files.anchored(raw, tmp_path)).replace(str(tmp_path), "HERE")) == found


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({}, []),
        ({"do_share": 0.25, "cookie": True, "nsid": True}, ["--do-share=0.25", "--cookie", "--nsid"]),
        (
            {"padding": True, "edns_options": ["65001:c0", "65002:ff"]},
            ["--padding", "--edns-option=65001:c0", "--edns-option=65002:ff"],
        ),
        ({"client_subnet": "192.0.2.0/24"}, ["--client-subnet=192.0.2.0/24"]),
    ],
)
def test_names_of_a_dataset_are_asked_with_settings_of_edns(
    cache: Path, keys: dict[str, Any], words: list[str]
) -> None:
    assert query_files.arguments(provide(**keys))[: len(words)] == words
    if not keys:
        assert query_files.arguments(provide(**keys)) == []


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({}, ["--query-format=text"]),
        ({"types": ["A", "MX"]}, ["--query-format=text", "--types=A,MX"]),
        ({"on_bad_line": "skip"}, ["--query-format=text", "--skip-bad-lines"]),
        ({"shuffle": True}, ["--query-format=text", "--shuffle"]),
        ({"popularity": "zipf:1.5"}, ["--query-format=text", "--popularity=zipf:1.5"]),
    ],
)
def test_a_file_is_asked_as_its_settings_say(cache: Path, keys: dict[str, Any], words: list[str]) -> None:
    (file := cache / "mine.txt").write_text("a.example\n" if "types" in keys else "a.example A\n")
    found = provide(file=str(file), **keys)
    assert query_files.arguments(found) == [f"--queries={query_files.folder(found.key) / 'queries'}", *words]
