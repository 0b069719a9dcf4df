"""Zones that are transferred once: what is known before a server is asked, and copies of zones of a primary on
loopback."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from dnsrig import paths
from dnsrig.datasets import transferred
from dnsrig.errors import DnsrigError, UsageError
from dnsrig.rundir import Scalar

SECRET = "c2VjcmV0IG9mIGEga2V5"
KEY = f"hmac-sha256:transfer:{SECRET}"
KEY_FILES = {
    "one line": f"{KEY}\n",
    "named.conf": f'key "transfer" {{\n\talgorithm hmac-sha256;\n\tsecret "{SECRET}";\n}};\n',
    "nsd.conf": f'key:\n  name: "transfer"\n  algorithm: hmac-sha256\n  secret: "{SECRET}"\n',
    "knot.conf": f"# {KEY}\nkey:\n- id: transfer\n  algorithm: hmac-sha256\n  secret: {SECRET}\n",
}


def parameters(**chosen: Scalar) -> dict[str, Scalar]:
    return {**transferred.DEFAULTS, "from": "192.0.2.1", "zones": "example", **chosen}


@pytest.fixture(autouse=True)
def a_cache_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "cache", lambda: tmp_path / "cache")


@pytest.mark.parametrize("text", KEY_FILES.values(), ids=KEY_FILES)
def test_a_key_is_read_as_servers_write_it(tmp_path: Path, text: str) -> None:
    (tmp_path / "key").write_text(text)
    assert transferred.read_key(tmp_path / "key") == KEY


@pytest.mark.parametrize("text", ["", "secret\n", 2 * KEY_FILES["one line"], 2 * KEY_FILES["named.conf"], "key { }"])
def test_a_file_without_exactly_one_key_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "key").write_text(text)
    with pytest.raises(UsageError) as refused:
        transferred.size(parameters(key=str(tmp_path / "key")))
    assert SECRET not in f"{refused.value.message} {refused.value.hint}"


def test_a_key_that_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        transferred.size(parameters(key="/nonexistent/key"))


@pytest.mark.parametrize("text", ["192.0.2.1", "192.0.2.1:5300", "2001:db8::1", "[2001:db8::1]:5300", "[2001:db8::1]"])
def test_an_address_may_have_a_port(text: str) -> None:
    assert transferred.size(parameters(**{"from": text})) == (1, 0)
    assert transferred._address(parameters(**{"from": text})) in ("192.0.2.1", "2001:db8::1")


@pytest.mark.parametrize("text", ["", "ns.example", "192.0.2", "192.0.2.1:0", "192.0.2.1:70000", "[::1", "::1]:53"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"dataset\.from"):
        transferred.size(parameters(**{"from": text}))


def test_zones_are_names_with_commas_or_spaces_between_them() -> None:
    assert transferred.size(parameters(zones="Example., example.org\nexample"))[0] == 2
    with pytest.raises(UsageError, match=r"dataset\.zones is missing"):
        transferred.size(parameters(zones=" "))
    with pytest.raises(UsageError, match="more than 1,000"):
        transferred.size(parameters(zones=" ".join(f"z{number}" for number in range(1_001))))


def test_an_address_that_the_user_did_not_allow_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transferred, "_allowed", set())
    with pytest.raises(UsageError) as refused:
        list(transferred.listed(parameters()))
    assert "192.0.2.1 is neither loopback nor" in refused.value.message
    assert refused.value.hint and "--i-am-authorized 192.0.2.1" in refused.value.hint


@pytest.mark.parametrize("outcome", [*transferred.ANSWERS, *transferred.CUT, "behind-the-end"])
def test_each_outcome_is_a_sentence_with_a_hint(outcome: str) -> None:
    error = transferred._why(parameters(), "example", outcome, "")
    assert error.message and "{" not in error.message
    assert error.hint


def test_the_engine_knows_these_outcomes() -> None:
    """The words are those of the engine's transfers."""
    text = Path(paths.engine()).read_bytes()
    assert [word for word in (*transferred.ANSWERS, *transferred.CUT) if word.encode() not in text] == []


@contextlib.contextmanager
def primary(*words: str, zone: str = "z000000.example") -> Iterator[dict[str, Scalar]]:
    """The parameters of zones of the engine's own primary on loopback."""
    command = [str(paths.engine()), "serve", "zones", "127.0.0.1:0", "--xot-port", "0", "--count", "1", "--until-eof"]
    with subprocess.Popen([*command, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdin is not None and running.stdout is not None
        try:
            ready = next(event for event in map(json.loads, running.stdout) if event["event"] == "ready")
            yield parameters(**{"from": ready["tcp"], "zones": zone})
        finally:
            running.stdin.close()


def copies(chosen: Mapping[str, Scalar]) -> list[Path]:
    """The copies of the zones, as in another process."""
    transferred._copies.cache_clear()
    return [Path(line.rstrip("\n").split("\t")[1]) for line in transferred.listed(chosen)]


def test_a_newer_serial_replaces_the_copy_and_one_before_it_stays() -> None:
    with primary("--serial=7") as chosen:
        (old,) = copies(chosen)
        assert copies(chosen) == [old] and old.name == "7.zone"
    folder = old.parent
    for serial, kept in [(8, ["7.zone", "8.zone"]), (9, ["8.zone", "9.zone"]), (10, ["10.zone", "9.zone"])]:
        with primary(f"--serial={serial}") as later:
            folder = folder.rename(transferred._folder(later, "z000000.example"))
            (new,) = copies(later)
            # A process that asked before may read its copy now.
            assert (new.name, sorted(path.name for path in folder.glob("*.zone"))) == (f"{serial}.zone", kept)


def test_copies_are_read_once_for_their_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    with primary() as chosen:
        (copy,) = copies(chosen)
        first = transferred.identity(chosen)
        copy.unlink()
        assert transferred.identity(chosen) == first


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("refused-after=0", "refuses to transfer"),
        ("cut-after=1", "broke off"),
        ("soa-missing", "answers without a zone"),
    ],
)
def test_a_faulty_primary_is_named(fault: str, words: str) -> None:
    with primary(f"--fault={fault}", "--records-per-message=2") as chosen, pytest.raises(DnsrigError, match=words):
        copies(chosen)


def test_a_zone_above_the_limit_is_refused() -> None:
    with primary("--records=60000") as chosen, pytest.raises(DnsrigError, match="is larger than 1 MB") as refused:
        copies({**chosen, "largest_mb": 1})
    assert refused.value.hint and "dataset.largest_mb" in refused.value.hint


def test_a_later_version_is_another_dataset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transferred, "_copies", lambda source: [("example", Path("7.zone"), "digest")])
    first = parameters()
    assert transferred.identity(first) == [2, [("example", "digest")]]
    assert list(transferred.listed(first)) == ["example\t7.zone\n"]
    second = transferred.following({**first, "changed_share": 0.5})
    assert second["version"] == 1 and transferred.following(second)["version"] == 2
    assert transferred.identity(second) == [2, [("example", "digest")], 1, 0.5, False]


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        ({}, []),
        ({"ca": "/ca.pem"}, ["--verify=ca", "--ca=/ca.pem"]),
        ({"pin": "cGlu", "ca": "/ca.pem"}, ["--verify=pin", "--pin=cGlu"]),
        ({"server_name": "ns.example"}, ["--server-name=ns.example"]),
        ({"ca": "/ca.pem", "server_name": "ns.example"}, ["--verify=ca", "--ca=/ca.pem", "--server-name=ns.example"]),
    ],
)
def test_what_is_verified_over_tls(chosen: dict[str, Scalar], words: list[str]) -> None:
    assert transferred._tls(parameters(**chosen)) == ["--transport=xot", *words]


def test_copies_that_are_kept_give_the_number_of_records(tmp_path: Path) -> None:
    """Copies have 50 bytes each; the newest one of each zone counts."""
    chosen = parameters(zones="one.example two.example three.example")
    for zone, sizes in {"one.example": (5_000, 1_000), "two.example": (99,)}.items():
        folder = transferred._folder(chosen, zone)
        folder.mkdir(parents=True)
        for number, size in enumerate(sizes):
            (folder / f"{number}.zone").write_bytes(bytes(size))
            os.utime(folder / f"{number}.zone", ns=(number, number))
    assert transferred.size(chosen) == (3, 21)
    assert transferred.size({**chosen, "tls": True}) == (3, 0), "another view of the server"


@pytest.mark.parametrize(
    ("said", "message", "hint"),
    [
        ("error: no route\nhint: try again\n", "no route", "try again"),
        ("error: no route\n", "no route", ""),
        ("", "the transfer failed", ""),
    ],
)
def test_arguments_that_the_engine_refuses_are_told_in_its_words(said: str, message: str, hint: str) -> None:
    error = transferred._why(parameters(), "example", "", said)
    assert (type(error), error.message, error.hint) == (UsageError, message, hint)
