"""The plan: identities, CPUs, the order of trials, limits on size."""

from __future__ import annotations

from collections import Counter
from ipaddress import ip_address
from pathlib import Path

import pytest

from dnsrig.errors import UsageError
from dnsrig.experiment import estimate, hosts, model, preparation, trial_specs
from dnsrig.procedures import procedure
from dnsrig.rundir import DatasetSpec, HostDuties, HostOptions, ServerSource

ROLES = {"primary": False, "secondary": True, "observer": False}


def points(*settings: str) -> list[model.Point]:
    return model.points(model.load(model.find("tour"), "quick", list(settings)))


def test_variants_are_unique_and_stable() -> None:
    first = [trial_specs.variant(point).id for point in points()]
    assert len(set(first)) == len(first) == 8
    assert first == [trial_specs.variant(point).id for point in points("repeats=7")], (
        "repeats are not part of the identity"
    )
    assert first == [trial_specs.variant(point).id for point in points("baseline={}")], (
        "nor is the variant that others are compared with"
    )
    assert first != [trial_specs.variant(point).id for point in points("limit_s=61")]


@pytest.mark.parametrize(
    ("experiment", "variant"),
    [
        ("tour", "server-bind-forky-zones-30-821c26"),
        ("long-distance", "case-one-large-zone-carrier-axfr-congestion-cubic-5e2ec9"),
    ],
)
def test_the_folder_of_a_variant_has_the_same_name_in_each_version(experiment: str, variant: str) -> None:
    """A changed id would separate the runs of two versions of dnsrig."""
    document = model.load(model.find(experiment), "quick", [])
    assert trial_specs.variant(model.points(document)[0]).id == variant


def test_the_family_is_part_of_the_identity() -> None:
    assert {trial_specs.variant(point).id for point in points("family=ipv6")}.isdisjoint(
        trial_specs.variant(p).id for p in points()
    )


def test_the_family_is_an_axis_of_any_experiment() -> None:
    both = points("server=bind@forky", "zones=3", 'matrix.family=["ipv4", "ipv6"]')
    assert (
        [point.parameters["family"] for point in both] == [point.document.family for point in both] == ["ipv4", "ipv6"]
    )
    assert len({trial_specs.variant(point).id for point in both}) == 2


def test_everything_goes_over_the_family_asked_for() -> None:
    (point,) = points("server=bind@forky", "zones=100", "hosts.secondary.source_addresses=3", "family=ipv6")
    made = trial_specs.provisional("tour", point, [0, 1])
    secondary = made.hosts["secondary"]
    assert made.family == "ipv6" and spec().family == "ipv4"
    assert {ip_address(text).version for text in (secondary.address, *secondary.source_addresses)} == {6}


def test_a_host_has_all_that_is_said_and_demanded_of_it() -> None:
    said = {"profile": "true", "congestion": "cubic", "advmss_bytes": "500", "mss_clamp_bytes": "600", "nic": "eth1"}
    said["proxy_protocol"] = "true"
    assert said.keys() == HostOptions.model_fields.keys() - {"machine"}  # a host with a server stays here
    (point, *_) = points(*(f"hosts.secondary.{name}={value}" for name, value in said.items()))
    document, kind = point.document, procedure(point.document.procedure)
    found = hosts.resolve(document, kind, kind.OPTIONS, SERVERS, [0, 1])["secondary"]
    for demanded in (document.hosts["secondary"], kind.hosts(kind.OPTIONS)["secondary"]):
        for name in {**HostOptions.model_fields, **HostDuties.model_fields}:
            assert getattr(demanded, name, None) in (None, getattr(found, name)), name


@pytest.mark.parametrize(
    ("available", "expected"),
    [
        ([0], {"primary": [0], "secondary": [0], "observer": [0]}),
        ([0, 1], {"primary": [0], "secondary": [1], "observer": [0]}),
        ([0, 1, 2, 3], {"primary": [1], "secondary": [3], "observer": [2]}),
        ([4, 6], {"primary": [4], "secondary": [6], "observer": [4]}),
    ],
)
def test_server_under_test_has_a_cpu_of_its_own(available: list[int], expected: dict[str, list[int]]) -> None:
    assert hosts.cpus(ROLES, available) == expected


def test_order_is_interleaved_and_repeatable() -> None:
    names = [f"v{n}" for n in range(6)]
    order = trial_specs.order(names, 10, seed=42)
    assert order == trial_specs.order(names, 10, seed=42) != trial_specs.order(names, 10, seed=43)
    for round_ in range(10):
        part = order[round_ * 6 : round_ * 6 + 6]
        assert {key.variant for key in part} == set(names), "each variant once a round"
        assert {key.repeat for key in part} == {round_ + 1}
    first = Counter(order[round_ * 6].variant for round_ in range(10))
    assert len(first) > 1, "rounds are shuffled anew"


def test_matrix_by_mistake_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        trial_specs.check_size(10_000, 1_000)
    assert "10,000 trials" in caught.value.message
    trial_specs.check_size(1_000, 1_000)


RESOLVERS = ['server=["bind@forky","unbound@forky"]', 'level=["do-unvalidated","validating"]', "path.rtts=near"]


@pytest.mark.parametrize(
    ("experiment", "settings", "trials", "took_s"),
    [
        ("dnssec-validation", [*RESOLVERS, "options.duration_s=20", "stream.duration_s=20"], 24, 14 * 60),
        ("signed-share", ["exclude=[]"], 48, 17 * 60),
        ("resolver-overload", [], 12, 8 * 60),
    ],
)
def test_an_estimate_is_near_what_such_runs_took(
    experiment: str, settings: list[str], trials: int, took_s: float
) -> None:
    """Runs of resolvers whose times are in docs/explanation/resolvers.md and docs/results/resolvers.md."""
    points = preparation.draft(preparation.Request(experiment, settings=settings)).points
    specs = [trial_specs.provisional(experiment, point, [0, 1]) for point in points]
    assert trials % len(specs) == 0
    expected_s = estimate.of_run(specs * (trials // len(specs))).expected_s
    assert expected_s == pytest.approx(took_s, rel=0.15)


SERVERS = {
    n: ServerSource(kind=n.split("@")[0], source="forky", version="1", key="r") for n in ("nsd@forky", "bind@forky")
}
DATASET = DatasetSpec(kind="tiny-zones", key="d", zones=3, records=12, serial=1)


def spec(*settings: str):  # type: ignore[no-untyped-def]
    point = points("server=bind@forky", "zones=3", *settings)[0]
    return trial_specs.spec("r", "tour", point, SERVERS, [DATASET], [0, 1])


def test_spec_holds_everything() -> None:
    made = spec('hosts.secondary.sysctls."net.ipv4.tcp_tw_reuse"=1', "options.probe_rate_per_s=500")
    assert made.hosts["secondary"].server == SERVERS["bind@forky"]
    assert made.hosts["secondary"].sysctls == {"net.ipv4.tcp_tw_reuse": "1"}
    assert made.hosts["observer"].server is None
    assert made.options["probe_rate_per_s"] == 500
    assert len({host.address for host in made.hosts.values()}) == 3
    assert type(made).model_validate_json(made.model_dump_json()) == made


@pytest.mark.parametrize(
    ("setting", "message"),
    [("hosts.tertiary.server=bind@forky", "no host 'tertiary'"), ("options.speed=1", "no option 'speed'")],
)
def test_names_that_the_procedure_does_not_know(setting: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        spec(setting)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("server=djbdns@forky", "no server called 'djbdns'"),
        ("hosts.secondary.cpus=[99]", "there is no CPU 99"),
        ('hosts.secondary.sysctls."kernel.pid_max"=1', "not a sysctl of a host"),
        ("options.probe_rate_per_s=fast", "must be a whole number"),
        ("procedure=latent", "no procedure 'latent'"),
        ("dataset.kind=huge", "no dataset of kind 'huge'"),
    ],
)
def test_bad_input_is_told_before_anything_is_made(setting: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        preparation.draft(preparation.Request("tour", settings=[setting]))


def test_draft_needs_no_servers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DNSRIG_CACHE", str(tmp_path / "empty"))
    made = preparation.draft(preparation.Request("tour"))
    assert (len(made.points), made.repeats) == (8, 2)
    assert not (tmp_path / "empty").exists()


def drafted(*settings: str, experiment: str = "tour") -> list[model.Point]:
    return preparation.draft(preparation.Request(experiment, settings=list(settings))).points


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["server=powerdns@forky", "transfer.transport=xot"], "as secondary (host secondary) has no XoT"),
        (["server=bind@forky", "hosts.primary.server=powerdns@forky", "transfer.transport=xot"], "has no XoT"),
        (["hosts.primary.server=powerdns@forky", "transfer.ixfr=true"], "as primary (host primary) has no IXFR"),
        (
            ["server=powerdns@forky", "transfer.transport=tcp+tsig", "transfer.provisioning=catalog"],
            "does not have TSIG and catalog zones together",
        ),
        (["options.primaries=2", "transfer.provisioning=catalog"], "cannot be divided"),
        (["options.primaries=99"], "options.primaries = 99"),
        (["transfer.transport=udp"], "transfer.transport"),
        (["hosts.secondary.settings.tinydns.x=1"], "settings.tinydns is a table"),
    ],
)
def test_the_impossible_is_refused_before_it_starts(settings: list[str], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        drafted(*settings)
    assert message in caught.value.message
    assert caught.value.hint


PROXIED = """
title = "Announced clients"
question = "Are announced clients answered?"
procedure = "latency"
limit_s = 60
dataset = { kind = "tiny-zones", zones = 3 }
options = { proxy_protocol = true }
"""


BEHIND_DNSDIST = [
    "options.serve_as=frontend",
    "options.proxy_protocol=false",
    "hosts.frontend.server=dnsdist@forky",
    "hosts.primary.proxy_protocol=true",
]


@pytest.mark.parametrize(
    ("server", "settings", "message"),
    [
        ("nsd", [], "the server on the host primary does not expect it"),
        ("knot", ["hosts.primary.proxy_protocol=true", "options.transport=dot"], "over dot: its `proxy-allowlist`"),
        ("powerdns", ["hosts.primary.proxy_protocol=true"], "demands a header on all ports"),
        ("nsd", ["hosts.primary.proxy_protocol=true", "options.transport=doq"], "no client is announced over DoQ"),
        ("knot", [*BEHIND_DNSDIST, "options.transport=dot"], "over tcp: its `proxy-allowlist`"),
    ],
)
def test_who_does_not_take_the_proxy_protocol_is_refused(
    server: str, settings: list[str], message: str, tmp_path: Path
) -> None:
    (tmp_path / "announced.toml").write_text(PROXIED)
    with pytest.raises(UsageError) as caught:
        drafted(f"hosts.primary.server={server}@forky", *settings, experiment=str(tmp_path / "announced.toml"))
    assert message in caught.value.message and caught.value.hint


def test_a_version_that_is_too_old_is_refused() -> None:
    (point,) = points("server=bind@bullseye", "zones=100", "transfer.transport=xot")
    servers = {
        name: ServerSource(kind=name.partition("@")[0], source="x", version=version, key="x")
        for name, version in (("nsd@forky", "4.15.4"), ("bind@bullseye", "9.16.50"))
    }
    dataset = DatasetSpec(kind="tiny-zones", key="x", zones=100, records=400, serial=1)
    with pytest.raises(UsageError, match=r"has no XoT before 9.18 \(this is 9.16.50\)"):
        trial_specs.spec("run", "tour", point, servers, [dataset], [0, 1])


def test_settings_of_a_kind_are_for_that_kind() -> None:
    said = model.HostDocument.model_validate(
        {"settings": {"any": 1, "bind": {"serial-query-rate": 9}, "knot": {"server.x": 2}}}
    )
    assert hosts.settings_of(said, "bind") == {"any": 1, "serial-query-rate": 9}
    assert hosts.settings_of(said, "nsd") == {"any": 1}


def test_several_primaries_are_alike() -> None:
    (point,) = points("server=bind@forky", "zones=100", "options.primaries=3", "hosts.primary.settings.x=1")
    spec = trial_specs.provisional("tour", point, [0, 1])
    assert spec.primaries == ["primary", "primary2", "primary3"]
    assert all(spec.hosts[name].settings == {"x": 1} for name in spec.primaries)
    assert len({host.address for host in spec.hosts.values()}) == len(spec.hosts)
    assert spec.subject == "secondary"


def test_source_addresses_are_distinct() -> None:
    (point,) = points("server=bind@forky", "zones=100", "hosts.secondary.source_addresses=3")
    host = trial_specs.provisional("tour", point, [0, 1]).hosts["secondary"]
    assert len({host.address, *host.source_addresses}) == 4


@pytest.mark.parametrize(
    ("repeats", "machines", "hint"),
    [
        (1, 1, ""),
        (5, 1, ""),
        (4, 2, ""),
        (3, 3, ""),
        (5, 2, "--repeats 4 or 6"),
        (11, 3, "--repeats 9 or 12"),
        (1, 2, "--repeats 2"),
        (2, 3, "--repeats 3"),
    ],
)
def test_machines_measure_equally_often(repeats: int, machines: int, hint: str) -> None:
    if not hint:
        trial_specs.check_rounds(repeats, machines)
        return
    with pytest.raises(UsageError) as refused:
        trial_specs.check_rounds(repeats, machines)
    assert refused.value.hint == hint


def test_as_many_trials_as_are_allowed_are_not_too_many() -> None:
    trial_specs.check_size(1000, 1000)
    with pytest.raises(UsageError, match="that would be 1,001 trials, more than 1,000"):
        trial_specs.check_size(1001, 1000)


def test_rounds_go_on_where_others_ended() -> None:
    whole, later = trial_specs.order(["b", "a", "c"], 3, 7), trial_specs.order(["c", "b", "a"], 3, 7, first=3)
    assert [key.repeat for key in whole] == [1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert [key.repeat for key in later] == [3, 3, 3] and trial_specs.order(["a"], 2, 7, first=3) == []
    assert [sorted(key.variant for key in whole[at : at + 3]) for at in (0, 3, 6)] == [["a", "b", "c"]] * 3
    assert [key.variant for key in later] == [key.variant for key in whole[:3]], "each seed shuffles alike"
