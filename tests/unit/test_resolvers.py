"""Resolvers: their levels, what is equal for all of them, and what is refused."""

from __future__ import annotations

from ipaddress import IPv6Address
from pathlib import Path
from typing import Any

import pytest
from placement_data import placed

from dnsrig.errors import UsageError
from dnsrig.experiment import model, trial_specs
from dnsrig.rundir import Level, Resolving, ServerSource
from dnsrig.servers import all_drivers, driver, unbound
from dnsrig.servers.resolving import ANCHOR_FILE, read_anchor

RESOLVERS = {kind: server for kind, server in all_drivers().items() if server.as_resolver is not None}
FILES = {
    "bind": "named.conf",
    "knot-resolver": "kresd.conf",
    "powerdns-recursor": "recursor.yml",
    "unbound": "unbound.conf",
}
ANCHOR = """\
; of a world
. 3600 IN DNSKEY 257 3 13 mdsswUyr3DPW132mOi8V9xESWE8jTo0d xCjjnopKl+GqJxpVXckHAeF+KkxLbxIL
. 3600 IN DS 55648 13 2 b4c8c1fe2e7477127b27115656ad6256 f424625bf5c1e2770ce6d6e37df61d17
"""


def configured(folder: Path, kind: str, *, from_hints: bool = True, **said: object) -> str:
    place = placed(folder, kind, "resolver", from_hints=from_hints, resolving=Resolving(**said))  # type: ignore[arg-type]
    (place.directory / ANCHOR_FILE).write_text(ANCHOR)
    driver(kind).configure(place)
    return (place.directory / FILES[kind]).read_text()


def specs(*settings: str) -> list[trial_specs.TrialSpec]:
    document = model.load(model.find("resolver-cache"), "quick", ["transport=udp", "names=cached", *settings])
    return [trial_specs.provisional("resolver-cache", point, [0, 1]) for point in model.points(document)]


def test_each_is_known_to_all_parts() -> None:
    assert FILES.keys() == RESOLVERS.keys()
    levels: set[Level] = {"no-do", "do-unvalidated", "validating"}
    names = Resolving.model_fields.keys() - {"level"}
    for server in RESOLVERS.values():
        able = server.as_resolver
        assert able is not None and "resolver" in server.roles
        assert able.levels.keys() | able.lacking_levels.keys() == levels
        assert not able.levels.keys() & able.lacking_levels.keys()
        assert able.words.keys() | able.fixed.keys() == names and not able.words.keys() & able.fixed.keys()


@pytest.mark.parametrize("kind", FILES)
def test_every_setting_that_can_be_set_changes_the_configuration(tmp_path: Path, kind: str) -> None:
    able = RESOLVERS[kind].as_resolver
    assert able is not None
    before = configured(tmp_path / "before", kind)
    for name in able.words:
        default = getattr(Resolving(), name)
        other = "ipv4" if name == "upstream" else not default if isinstance(default, bool) else default * 2
        assert configured(tmp_path / name, kind, **{name: other}) != before, name
    texts = {level: configured(tmp_path / level, kind, level=level) for level in able.levels}
    assert len(set(texts.values())) == len(texts)


@pytest.mark.parametrize("kind", FILES)
def test_an_own_setting_goes_before_ours(tmp_path: Path, kind: str) -> None:
    own = {
        "bind": ("max-cache-size", "7M", "max-cache-size 7M;"),
        "knot-resolver": ("option.NO_0X20", True, "option('NO_0X20', true)"),
        "powerdns-recursor": ("outgoing.network_timeout", 900, "  network_timeout: 900"),
        "unbound": ("msg-cache-size", "7m", "msg-cache-size: 7m"),
    }
    name, value, line = own[kind]
    place = placed(tmp_path, kind, "resolver", settings={name: value})
    driver(kind).configure(place)
    text = (place.directory / FILES[kind]).read_text()
    assert line in text and text.count(name.rpartition(".")[2]) == 1


@pytest.mark.parametrize("kind", FILES)
def test_primaries_are_asked_where_there_are_no_hints(tmp_path: Path, kind: str) -> None:
    text = configured(tmp_path, kind, from_hints=False)
    assert "198.18.0.1" in text and "root.hints" not in text
    assert "root.hints" in configured(tmp_path / "hints", kind)


@pytest.mark.parametrize("kind", FILES)
def test_it_listens_on_both_families(tmp_path: Path, kind: str) -> None:
    place = placed(tmp_path, kind, "resolver", other_address=IPv6Address("2001:2::2"))
    driver(kind).configure(place)
    text = (place.directory / FILES[kind]).read_text()
    assert "198.18.0.2" in text and "2001:2::2" in text


def test_the_recursors_file_is_yaml_by_sections(tmp_path: Path) -> None:
    yaml = pytest.importorskip("yaml")
    said = yaml.safe_load(configured(tmp_path, "powerdns-recursor", level="validating", cache_mb=30))
    assert said["recordcache"]["max_entries"] == 2 * said["packetcache"]["max_entries"] == 20 * 1024
    assert said["dnssec"]["trustanchors"] == [
        {"name": ".", "dsrecords": ["55648 13 2 b4c8c1fe2e7477127b27115656ad6256f424625bf5c1e2770ce6d6e37df61d17"]}
    ]


def test_an_anchor_is_a_key_and_its_ds(tmp_path: Path) -> None:
    file = tmp_path / ANCHOR_FILE
    assert read_anchor(file) is None
    file.write_text(ANCHOR)
    anchor = read_anchor(file)
    assert anchor is not None and anchor.dnskey.split()[:3] == ["257", "3", "13"] and len(anchor.dnskey.split()) == 4
    assert len(anchor.ds) == 1
    for wrong in ("", ". 1 IN NS a.\n", "lab. 1 IN DS 1 2 3 ab\n", ANCHOR + ANCHOR):
        file.write_text(wrong)
        with pytest.raises(UsageError, match="is not a trust anchor"):
            read_anchor(file)


def test_a_resolver_has_the_same_settings_whatever_its_kind() -> None:
    found = [specs(f"hosts.resolver.server={kind}@forky")[0].hosts for kind in FILES]
    assert all(hosts["resolver"].resolving == Resolving() for hosts in found)
    assert all(hosts["primary"].resolving is None for hosts in found)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            ["hosts.resolver.server=bind@forky", "hosts.resolver.resolving.level=no-do"],
            "has no level no-do: it sets DO",
        ),
        (["hosts.resolver.server=knot-resolver@forky", "hosts.resolver.resolving.level=no-do"], "policy.STUB"),
        (
            ["hosts.resolver.server=knot-resolver@forky", "hosts.resolver.resolving.aggressive_nsec=false"],
            "no aggressive_nsec = False: it always does",
        ),
        (["hosts.resolver.resolving.level=validating"], "needs a trust anchor"),
        (["hosts.resolver.resolving.level=off"], "hosts.resolver.resolving.level = 'off'"),
        (["hosts.resolver.resolving.cache_mib=3"], "unknown key hosts.resolver.resolving.cache_mib"),
        (["hosts.primary.resolving.cache_mb=30"], "hosts.primary.resolving: this host is not a resolver"),
        (["hosts.resolver.server=nsd@forky"], "cannot be a resolver"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(settings: list[str], words: str) -> None:
    with pytest.raises(UsageError, match=words.replace("(", r"\(")):
        specs(*settings)


def test_one_process_of_knot_resolver_has_one_thread(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="one thread for each process"):
        driver("knot-resolver").configure(placed(tmp_path, "knot-resolver", "resolver", cpus=[0, 1]))


def test_settings_of_resolvers_are_part_of_the_identity() -> None:
    (point,) = model.points(model.load(model.find("resolver-cache"), "quick", ["transport=udp", "names=cached"]))
    changed = model.load(
        model.find("resolver-cache"), "quick", ["transport=udp", "names=cached", "hosts.resolver.resolving.cache_mb=99"]
    )
    assert trial_specs.variant(point).id != trial_specs.variant(model.points(changed)[0]).id


@pytest.mark.parametrize(
    ("changes", "differs"),
    [
        ({}, {}),
        ({"level": "no-do"}, {"disable-edns-do": True}),
        ({"level": "validating"}, {"module-config": '"validator iterator"'}),
        ({"upstream": "ipv4"}, {"do-not-query-address": "::/0"}),
        ({"upstream": "ipv6"}, {"do-not-query-address": "0.0.0.0/0"}),
        ({"cache_mb": 100}, {"msg-cache-size": "34133k", "rrset-cache-size": "68266k"}),
        ({"recursions": 1000}, {"num-queries-per-thread": 1000, "outgoing-range": 2000}),
        ({"query_timeout_ms": 700}, {"discard-timeout": 700}),
        ({"tcp_clients": 9}, {"incoming-num-tcp": 9}),
    ],
)
def test_what_unbound_is_told_of_a_resolver(tmp_path: Path, changes: dict[str, Any], differs: dict[str, Any]) -> None:
    """Beside defaults that are the same for all resolvers."""

    def ours(folder: Path, **said: Any) -> dict[str, Any]:
        place = placed(folder, "unbound", "resolver", from_hints=True, resolving=Resolving(**said))
        (place.directory / ANCHOR_FILE).write_text(ANCHOR)
        return unbound._ours(place)

    level = {"level": "do-unvalidated"}
    before = ours(tmp_path / "before", **level)
    assert (before["num-threads"], before["so-reuseport"], before["extended-statistics"]) == (1, True, True)
    assert before["module-config"] == '"iterator"' and "do-not-query-address" not in before
    assert ours(tmp_path / "after", **{**level, **changes}) == {**before, **differs}


@pytest.mark.parametrize(
    ("version", "discards"), [("1.19.3", False), ("1.20.0", True), ("1.22.0", True), ("2.0", True), ("", True)]
)
def test_unbound_discards_late_answers_from_1_20_on(tmp_path: Path, version: str, discards: bool) -> None:
    source = ServerSource(kind="unbound", source="forky", version=version, key="root")
    place = placed(tmp_path, "unbound", "resolver", server=source, resolving=Resolving())
    assert ("discard-timeout" in unbound._ours(place)) is discards


def test_a_server_has_the_settings_of_a_resolver_that_its_host_has(tmp_path: Path) -> None:
    assert placed(tmp_path / "a", "unbound", "resolver", resolving=Resolving(cache_mb=8)).resolving.cache_mb == 8
    assert placed(tmp_path / "b", "nsd", "secondary", resolving=None).resolving == Resolving()
