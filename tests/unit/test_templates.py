"""Configuration templates of users: what they may use, and what is refused with a reason."""

from __future__ import annotations

from pathlib import Path

import pytest
from placement_data import placed

from dnsrig.errors import UsageError
from dnsrig.servers import templates


def shape(value: object) -> object:
    """The keys of tables, down to values."""
    if isinstance(value, dict):
        return {key: shape(part) for key, part in value.items()}
    return [shape(part) for part in value[:1]] if isinstance(value, list) else type(value)


def test_the_example_has_the_variables_of_a_server(tmp_path: Path) -> None:
    place = placed(tmp_path, "nsd", "secondary")
    values = templates.variables(place)
    assert values.keys() == templates.EXAMPLE.keys()
    for name in values.keys() - {"secondaries", "settings"}:
        assert shape(values[name]) == shape(templates.EXAMPLE[name]), name


def test_a_template_gets_addresses_zones_and_primaries(tmp_path: Path) -> None:
    place = placed(tmp_path, "nsd", "secondary", settings={"depth": 3})
    text = (
        "{% for zone in zones %}\n{{ zone.name }} {{ zone.file }} {{ primaries[0] }}\n{% endfor %}\n"
        "{{ address }}#{{ port }} {{ settings.depth }}\n"
    )
    lines = templates.rendered(text, "mine.conf", templates.variables(place)).splitlines()
    assert lines[0] == f"{place.zones[0].name} {place.seen_zone_file(place.zones[0])} {place.routes[0].primary}"
    assert lines[-1] == f"{place.address}#53 3"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{% for zone in zones %}", "mine.conf line 1: Unexpected end of template"),
        ("{{ adress }}", "mine.conf uses adress, which is no variable"),
        ("{{ zones[0].nmae }}", "mine.conf cannot be rendered: .*no attribute 'nmae'"),
        ("{% include '/etc/passwd' %}", "mine.conf cannot be rendered: no loader"),
        ("{{ address.__class__.__mro__ }}", "mine.conf cannot be rendered: .*unsafe"),
        ("{% set _ = zones.append(1) %}", "mine.conf cannot be rendered: .*unsafe"),
        ("{% for a in range(10000000) %}a{% endfor %}", "mine.conf cannot be rendered: .*[Rr]ange too big"),
        ("{{ 1 // 0 }}", "mine.conf cannot be rendered"),
        ("x" * (templates.MOST_CHARACTERS + 1), "more than"),
    ],
)
def test_a_wrong_template_is_refused_before_the_start(text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        templates.check(text, "mine.conf", {})


def test_an_endless_configuration_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates, "MOST_RENDERED_CHARACTERS", 1000)
    with pytest.raises(UsageError, match="more than 1,000 characters"):
        templates.check("{% for a in range(2000) %}a{% endfor %}", "mine.conf", {})
