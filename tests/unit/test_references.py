"""What follows the @ of ``bind@git:v9.18.10``."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsrig.errors import UsageError
from dnsrig.servers.builds.reference import Reference, parse


def test_a_ref_and_its_words() -> None:
    found = parse("git:v9.18.10 +libmaxminddb-dev --with-maxminddb debug=symbols suite=bullseye CFLAGS='-O3 -g'")
    options = ("--with-maxminddb", "CFLAGS=-O3 -g")
    assert found == Reference("v9.18.10", "", options, ("libmaxminddb-dev",), "bullseye", symbols=True)


def test_a_range() -> None:
    found = parse("git:v9.18.0..v9.18.13 steps=5 --enable-x")
    assert found.is_range and (found.ref, found.last, found.steps) == ("v9.18.0", "v9.18.13", "5")
    assert found.at("0123abcd").source == "git:0123abcd --enable-x"
    assert not parse("git:v9.18.10").is_range and not parse("git:HEAD~3").is_range


words = st.lists(st.text("abc-=' \"\\", min_size=1).map(lambda text: f"--{text}"), max_size=3)
packages = st.lists(st.sampled_from(["libuv1-dev", "gcc-12", "g++"]), unique=True, max_size=2)


@given(words, packages, st.booleans(), st.sampled_from(["", "bookworm"]), st.sampled_from(["", "b"]))
def test_what_is_written_is_read_back(
    options: list[str], more: list[str], symbols: bool, suite: str, last: str
) -> None:
    made = Reference("a/b.c", last, tuple(options), tuple(sorted(more)), suite, symbols, "tags" if last else "")
    assert parse(made.source) == made


def test_the_order_of_own_words_makes_no_other_build() -> None:
    assert parse("git:v1 debug=symbols +b-dev +a-dev").source == parse("git:v1 +a-dev +b-dev debug=symbols").source
    assert parse("git:v1 --b --a").source != parse("git:v1 --a --b").source, "configure may mind"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("git:", "names no commit"),
        ("git:--upload-pack=x", "is not a commit"),
        ("git:..v2", "is not a commit"),
        ("git:v1 'open", "No closing quotation"),
        ("git:v1 steps=3", "only a range has steps"),
        ("git:v1..v2 steps=0", "'steps=0' is not a valid word"),
        ("git:v1..v2 steps=some", "'steps=some' is not a valid word"),
        ("git:v1 debug=all", "'debug=all' is not a valid word"),
        ("git:v1 suite=../x", "is not a valid word"),
        ("git:v1 " + "--x " * 51, "is not a commit"),
    ],
)
def test_what_is_no_reference(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        parse(text)
    assert caught.value.hint
