"""What a TOML file means: overlays, axes, --set, and errors that help."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from dnsrig.errors import UsageError
from dnsrig.experiment import model
from dnsrig.query_files import QueriesDocument
from dnsrig.rundir import Resolving, ServerDescription, TransferSpec

MINIMAL = """
title = "t"
question = "q?"
procedure = "transfer"
limit_s = 60
[dataset]
kind = "tiny-zones"
[hosts.primary]
server = "nsd@forky"
[hosts.secondary]
server = "bind@forky"
"""


@pytest.fixture
def document(tmp_path: Path):  # type: ignore[no-untyped-def]
    def load(text: str = "", *settings: str, scale: str = "quick") -> model.Document:
        path = tmp_path / "x.toml"
        path.write_text(MINIMAL + text)
        return model.load(path, scale, list(settings))

    return load


def test_without_matrix_there_is_one_point(document) -> None:  # type: ignore[no-untyped-def]
    (point,) = model.points(document())
    assert point.parameters == {}
    assert point.document.repeats == 10


def test_matrix_is_the_product_in_its_order(document) -> None:  # type: ignore[no-untyped-def]
    text = '[matrix]\n"hosts.secondary.server" = ["bind@forky", "knot@forky"]\n"dataset.zones" = [1, 2]\n'
    points = model.points(document(text))
    assert [tuple(p.parameters.values()) for p in points] == [
        ("bind@forky", 1), ("bind@forky", 2), ("knot@forky", 1), ("knot@forky", 2),
    ]  # fmt: skip
    assert points[3].document.hosts["secondary"].server == "knot@forky"
    assert points[3].document.dataset == {"kind": "tiny-zones", "zones": 2}


def test_labels_grow_where_short_ones_clash(document) -> None:  # type: ignore[no-untyped-def]
    text = '[matrix]\n"hosts.secondary.server" = ["bind@forky"]\n"hosts.primary.server" = ["nsd@forky"]\n'
    assert model.labels(document(text)) == ["secondary-server", "primary-server"]


def test_labels_grow_until_unique(document) -> None:  # type: ignore[no-untyped-def]
    text = "[matrix]\n" + "".join(f'"hosts.{host}.settings.x" = [1]\n' for host in ("primary", "secondary"))
    assert model.labels(document(text)) == ["primary-settings-x", "secondary-settings-x"]


@pytest.mark.parametrize("values", ["[]", "[100, 100]"])
def test_axis_of_nothing_or_of_twice_the_same(document, values: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(UsageError, match=r"axis dataset\.zones has no values, or one of them twice"):
        model.count(document(f'[matrix]\n"dataset.zones" = {values}\n'))


def test_huge_matrix_is_counted_without_being_made(document) -> None:  # type: ignore[no-untyped-def]
    axis = list(range(1000))
    text = "[matrix]\n" + "".join(f'"hosts.secondary.settings.x{n}" = {axis}\n' for n in range(4))
    assert model.count(document(text)) == 10**12


def test_set_to_an_empty_table_empties_it(document) -> None:  # type: ignore[no-untyped-def]
    text = '[matrix]\n"dataset.zones" = [1, 2]\n[baseline]\nzones = 1\n'
    assert document(text).baseline == {"zones": 1}
    assert document(text, "baseline={}").baseline == {}


def test_named_overlays(document) -> None:  # type: ignore[no-untyped-def]
    text = '[matrix.ports]\ndefault = {}\nwide.hosts.secondary.sysctls."net.ipv4.ip_local_port_range" = "1024 65535"\n'
    default, wide = model.points(document(text))
    assert default.document.hosts["secondary"].sysctls == {}
    assert wide.parameters == {"ports": "wide"}
    assert wide.document.hosts["secondary"].sysctls == {"net.ipv4.ip_local_port_range": "1024 65535"}


def test_scale_overlays(document) -> None:  # type: ignore[no-untyped-def]
    text = "[scale.standard]\nlimit_s = 600\ndataset.zones = 7\n"
    assert document(text).limit_s == 60
    assert document(text, scale="standard").limit_s == 600
    assert document(text, scale="standard").dataset == {"kind": "tiny-zones", "zones": 7}


def test_set_changes_values_and_axes(document) -> None:  # type: ignore[no-untyped-def]
    text = '[matrix]\n"dataset.zones" = [1, 2]\n'
    assert document(text, "zones=9").matrix["dataset.zones"] == [9]
    assert document(text, "dataset.zones=[3,4]").matrix["dataset.zones"] == [3, 4]
    assert document("", "hosts.secondary.server=knot@trixie").hosts["secondary"].server == "knot@trixie"
    changed = document("", 'hosts.secondary.settings."server.udp-workers"=2')
    assert changed.hosts["secondary"].settings == {"server.udp-workers": 2}


@pytest.mark.parametrize(
    ("text", "settings", "message", "hint"),
    [
        ("", ["limit=3"], "unknown key limit", "did you mean limit_s?"),
        ("", ["limit_s=60 s"], "limit_s = '60 s'", "number of seconds"),
        ("", ["hosts.secondary.setings.x=1"], "unknown key hosts.secondary.setings", "did you mean settings?"),
        ("", ["repeats=0"], "repeats = 0", ""),
        ("", ["zones"], "not PATH=VALUE", "dataset.zones"),
        ("", ["a b=1"], "not a path", ""),
        ("[scale.huge]\nrepeats = 1\n", [], "unknown scale 'huge'", "quick, standard, published"),
        ("[", [], "not TOML", ""),
        ("[matrix.ports]\na = {}\n", ["ports=b"], "axis ports has no b", "it has: a"),
        ("[scale]\nquick = 5\n", [], "a scale must be a table", "[scale.quick]"),
        ("", ["matrix=5"], "matrix = 5", ""),
        ('[matrix]\n"dataset.zones" = [1]\n', ["baseline.zoned=1"], "baseline.zoned is not an axis", "axes are zones"),
        ('[matrix]\n"dataset.zones" = [1]\n', ["baseline.zones=2"], "zones = 2 is not measured", "one of [1]"),
    ],
)
def test_errors_help(document, text: str, settings: list[str], message: str, hint: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(UsageError) as caught:
        model.points(document(text, *settings))
    assert message in caught.value.message
    assert hint in caught.value.hint


@pytest.mark.parametrize("setting", ["server=['knot@forky', 'nsd@forky']", "server=knot@forky"])
def test_a_baseline_that_the_user_takes_out_of_the_matrix_is_no_longer_compared_with(setting: str) -> None:
    path = model.find("tour")
    assert model.load(path, "quick", []).baseline == {"server": "bind@forky"}
    narrowed = model.load(path, "quick", [setting])
    assert narrowed.baseline == {} and model.points(narrowed)
    assert model.load(path, "quick", ["zones=30"]).baseline == {"server": "bind@forky"}


@pytest.mark.parametrize("baseline", ["zoned = 1", "zones = 2"])
def test_a_wrong_baseline_of_a_file_is_refused_whatever_is_set(document, baseline: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(UsageError, match="baseline"):
        model.points(document(f'[matrix]\n"dataset.zones" = [1]\n[baseline]\n{baseline}\n', "repeats=2"))


def test_unknown_experiment_suggests() -> None:
    with pytest.raises(UsageError) as caught:
        model.find("tuor")
    assert caught.value.hint == "did you mean tour?"


@pytest.mark.parametrize("name", sorted(model.builtin()))
@pytest.mark.parametrize("scale", model.SCALES)
def test_builtin_experiments_are_valid_at_every_scale(name: str, scale: str) -> None:
    document = model.load(model.find(name), scale, [])
    assert document.sources and document.question.endswith("?")
    assert model.points(document)


values = st.recursive(
    st.integers() | st.text(max_size=3),
    lambda inner: st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=8,
)
tables = st.dictionaries(st.text(max_size=3), values, max_size=4)


@given(tables, tables)
def test_merged_changes_neither_and_prefers_the_overlay(base: dict[str, object], overlay: dict[str, object]) -> None:
    before = repr(base), repr(overlay)
    result = model.merged(base, overlay)
    assert (repr(base), repr(overlay)) == before
    assert model.merged(result, overlay) == result
    assert set(result) == set(base) | set(overlay)


@given(st.text(max_size=40))
def test_any_setting_is_a_document_or_a_usage_error(text: str) -> None:
    try:
        model.load(model.find("tour"), "quick", [text])
    except UsageError as error:
        assert error.message


AXES = '[matrix]\n"hosts.secondary.server" = ["bind@forky", "knot@forky"]\n"dataset.zones" = [1, 2, 3]\n'


def test_excluded_points_are_left_out(document) -> None:  # type: ignore[no-untyped-def]
    text = AXES + '[[exclude]]\nserver = "knot@forky"\nzones = [2, 3]\n[[exclude]]\nzones = 1\nserver = "bind@forky"\n'
    found = [tuple(p.parameters.values()) for p in model.points(document(text))]
    assert found == [("bind@forky", 2), ("bind@forky", 3), ("knot@forky", 1)]


def test_excluding_an_unknown_axis_or_everything_is_told(document) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(UsageError, match="exclude: transport is not an axis"):
        model.points(document(AXES + '[[exclude]]\ntransport = "xot"\n'))
    with pytest.raises(UsageError, match="every point of the matrix is excluded"):
        model.points(document(AXES + "[[exclude]]\nzones = [1, 2, 3]\n"))


def test_every_builtin_experiment_is_in_the_list_of_its_audience() -> None:
    listed = [name for group in model.by_audience().values() for name in group]
    assert sorted(listed) == sorted(model.builtin())
    assert "" not in model.by_audience(), "a built-in experiment declares its audience"


@pytest.mark.parametrize(
    ("path", "part"),
    [
        ("limit_s", model.Document),
        ("servers.mine", model.Document),
        ("servers.mine.command", ServerDescription),
        ("hosts.primary", model.Document),
        ("hosts.primary.server", model.HostDocument),
        ("hosts.primary.resolving", model.HostDocument),
        ("hosts.resolving.server", model.HostDocument),
        ("hosts.primary.resolving.level", Resolving),
        ("path", model.Document),
        ("path.delay_ms", model.PathDocument),
        ("path.reverse", model.PathDocument),
        ("path.reverse.delay_ms", model.DirectionDocument),
        ("path.forward.delay_ms", model.PathDocument),
        ("queries", model.Document),
        ("queries.file", QueriesDocument),
        ("transfer", model.Document),
        ("transfer.ixfr", TransferSpec),
    ],
)
def test_a_key_is_explained_by_the_part_that_has_it(path: str, part: type[BaseModel]) -> None:
    assert model._part(path.split(".")) is part


@pytest.mark.parametrize(
    ("paths", "labels"),
    [
        (["dataset.zones"], ["zones"]),
        (["dataset.zones", "options.zones"], ["dataset-zones", "options-zones"]),
        (["hosts.a.settings.x", "hosts.b.settings.x", "dataset.x"], ["a-settings-x", "b-settings-x", "dataset-x"]),
        (["options.rate_qps", "hosts.a.server"], ["rate_qps", "server"]),
    ],
)
def test_a_label_is_the_shortest_end_that_no_other_axis_has(document, paths: list[str], labels: list[str]) -> None:  # type: ignore[no-untyped-def]
    text = "[matrix]\n" + "".join(f'"{path}" = [1]\n' for path in paths)
    assert model.labels(document(text)) == labels
