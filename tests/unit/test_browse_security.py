"""Who may ask, and what an answer says to the browser."""

from __future__ import annotations

from pathlib import Path

import pytest
from browsing import ACCESS, ADDRESS, FIRST, HOSTILE, address, client, form_token, runs
from starlette.testclient import TestClient

from dnsrig.browse import notes
from dnsrig.browse.security import Access, is_loopback


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return runs(tmp_path / "runs")


@pytest.fixture
def entered(root: Path, tmp_path: Path) -> TestClient:
    return client(root, tmp_path)


def test_nothing_is_shown_without_the_token(root: Path, tmp_path: Path) -> None:
    stranger = client(root, tmp_path, enter=False)
    for path in ("/", address(FIRST), "/compare", "/nothing"):
        assert stranger.get(path).status_code == 403
    assert stranger.get("/", params={"token": "wrong"}).status_code == 403
    stranger.cookies.set(ACCESS.cookie, "wrong")
    assert stranger.get("/").status_code == 403


def test_the_token_becomes_a_strict_cookie_and_leaves_the_address(root: Path, tmp_path: Path) -> None:
    answer = client(root, tmp_path, enter=False).get(
        f"{ADDRESS}//evil.example/", params={"token": ACCESS.token, "q": '"><b'}
    )
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie
    assert 'url=/evil.example/?q=%22%3E%3Cb"' in answer.text and ACCESS.token not in answer.text


@pytest.mark.parametrize("host", ["evil.example:8053", "127.0.0.1", "127.0.0.1:80", "", "[::1", "localhost.evil:8053"])
def test_other_names_are_refused(entered: TestClient, host: str) -> None:
    """DNS rebinding: the browser thinks it talks to somebody else."""
    assert entered.get("/", headers={"host": host}).status_code == 421


@pytest.mark.parametrize("host", ["localhost:8053", "127.0.0.1:8053", "[::1]:8053"])
def test_own_names_pass(host: str) -> None:
    assert ACCESS.is_host(host)


def test_where_others_may_ask_addresses_pass_and_names_do_not() -> None:
    access = Access("t", "0.0.0.0", 8053)
    assert access.is_host("192.0.2.7:8053") and not access.is_host("rebound.example:8053")
    assert is_loopback("127.3.4.5") and is_loopback("::1") and not is_loopback("0.0.0.0") and not is_loopback("name")


def test_every_answer_is_hardened(entered: TestClient) -> None:
    for path in ("/", address(FIRST), "/nothing", "/static/style.css"):
        headers = entered.get(path).headers
        policy = headers["content-security-policy"]
        assert "unsafe" not in policy and "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "path",
    [
        "/run/..%2f..%2fetc",
        "/run/%2e%2e/trial/%2e%2e/1",
        f"{address(FIRST)}/trial/..%2f..%2f..%2fetc/1",
        f"{address(FIRST)}/trial/v00/1%2f..%2f..",
        f"{address(FIRST)}/chart/..%2f..%2fmanifest.json",
        "/static/..%2f__init__.py",
        "/static/%2e%2e%2fapp.py",
    ],
)
def test_no_address_leads_out(entered: TestClient, path: str) -> None:
    assert entered.get(path).status_code == 404


def test_a_note_is_kept_and_shown_as_text(entered: TestClient, root: Path) -> None:
    where = address(FIRST)
    form = {"form_token": form_token(entered.get(where).text), "note": HOSTILE, "tags": HOSTILE[:30], "baseline": "yes"}
    answer = entered.post(f"{where}/notes", data=form, headers={"origin": ADDRESS})
    assert answer.status_code == 200 and notes.read(root / FIRST).baseline
    for page in (answer.text, entered.get("/").text):
        assert "<script>alert" not in page and "&lt;script&gt;alert(1)" in page and "\u202e" not in page


@pytest.mark.parametrize(
    ("headers", "change", "status"),
    [
        ({}, {}, 403),
        ({"origin": "http://evil.example"}, {}, 403),
        ({"origin": "null"}, {}, 403),
        ({"origin": ADDRESS}, {"form_token": "wrong"}, 403),
        ({"origin": ADDRESS}, {"note": "n" * 4_001}, 422),
        ({"origin": ADDRESS}, {"note": "n" * 40_000}, 413),
        ({"origin": ADDRESS}, {f"field{number}": "x" for number in range(9)}, 400),
    ],
)
def test_other_forms_are_refused(
    entered: TestClient, root: Path, headers: dict[str, str], change: dict[str, str], status: int
) -> None:
    form = {"form_token": ACCESS.form_token, "note": "mine"} | change
    assert entered.post(f"{address(FIRST)}/notes", data=form, headers=headers).status_code == status
    assert notes.read(root / FIRST) == notes.Notes()


def test_nothing_else_takes_a_form(entered: TestClient) -> None:
    for path in ("/", address(FIRST), "/compare"):
        assert (
            entered.post(path, data={"form_token": ACCESS.form_token}, headers={"origin": ADDRESS}).status_code == 405
        )
    assert entered.request("DELETE", address(FIRST)).status_code == 405
