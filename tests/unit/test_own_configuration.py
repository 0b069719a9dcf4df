"""Configurations of the user's own: what is refused while an experiment is read, and what differs between two."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dnsrig.comparison import configurations
from dnsrig.comparison.run_differences import Pair, of_two_specs
from dnsrig.errors import UsageError
from dnsrig.experiment import model, trial_specs
from dnsrig.rundir import Manifest, TrialSpec
from dnsrig.servers import driver

EXPERIMENT = """\
title = "Mine"
question = "Which is faster?"
procedure = "{procedure}"
limit_s = 60
dataset = {{ kind = "tiny-zones", zones = 20 }}
hosts.primary.server = "nsd@forky"
hosts.{role}.server = "{kind}@forky"
{more}
"""


def specs(folder: Path, kind: str, more: str, *settings: str, role: str = "secondary") -> list[TrialSpec]:
    if role == "resolver":
        more = f'options.serve_as = "resolver"\n{more}'
    procedure = "latency" if role == "resolver" else "transfer"
    file = folder / "mine.toml"
    file.write_text(EXPERIMENT.format(kind=kind, more=more, role=role, procedure=procedure))
    document = model.load(file, "quick", [*settings])
    return [trial_specs.provisional("mine", point, [0, 1]) for point in model.points(document)]


def test_two_files_are_two_variants_by_what_they_contain(tmp_path: Path) -> None:
    ours = driver("bind").template("secondary")
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf/a.conf.j2").write_text(ours)
    (tmp_path / "b.conf.j2").write_text(ours.replace("notify no;", "notify no;\n    transfers-in 100;"))
    more = '[matrix]\n"hosts.secondary.config" = ["", "conf/a.conf.j2", "b.conf.j2"]'
    found = specs(tmp_path, "bind", more)
    assert [spec.variant.label for spec in found] == ["config=", "config=conf/a.conf.j2", "config=b.conf.j2"]
    config = found[2].hosts["secondary"].config
    assert config is not None and config.name == "b.conf.j2" and "transfers-in 100" in config.text
    before = found[2].variant.id
    (tmp_path / "b.conf.j2").write_text(ours)
    assert specs(tmp_path, "bind", more)[2].variant.id != before
    assert specs(tmp_path, "bind", more)[1].variant.id == found[1].variant.id


@pytest.mark.parametrize(
    ("kind", "text", "words"),
    [
        ("bind", None, r"hosts.secondary.config: .*mine.conf does not exist"),
        ("bind", b"\xff\xfe", "is not text in UTF-8"),
        ("bind", b"a\0b", "contains a zero byte"),
        ("bind", b"x" * (1 << 21), "has more than 1,048,576 bytes"),
        ("bind", "options {\n{% if %}\n};", "mine.conf line 2: Expected an expression"),
        ("bind", "\n\n{{ adress }}", "mine.conf line 3 uses adress"),
        ("bind", "options {\n  listen-on { 192.0.2.1; };\n};", "mine.conf line 2 sets where BIND 9 listens"),
        ("knot", "server:\n    listen: 192.0.2.1@53\n", "mine.conf line 2 sets where Knot DNS listens"),
        ("knot", "server:\n", "mine.conf does not set where Knot DNS listens"),
        ("transfer", "text", "has no configuration file"),
    ],
)
def test_what_is_no_configuration(tmp_path: Path, kind: str, text: str | bytes | None, words: str) -> None:
    if text is not None:
        (tmp_path / "mine.conf").write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(UsageError, match=words) as caught:
        server = 'hosts.secondary.config = "mine.conf"\n'
        specs(tmp_path, kind, server, *(["hosts.secondary.server=transfer@engine"] if kind == "transfer" else []))
    assert caught.value.hint or "UTF-8" in words or "zero" in words


def test_a_folder_is_no_configuration(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is a folder"):
        specs(tmp_path, "bind", 'hosts.secondary.config = "."')


def test_a_plain_file_works_if_the_address_can_be_set_beside_it(tmp_path: Path) -> None:
    (tmp_path / "mine.conf").write_text("# nothing\n")
    for kind in ("bind", "nsd", "powerdns"):
        assert specs(tmp_path, kind, 'hosts.secondary.config = "mine.conf"')
    assert specs(tmp_path, "knot-resolver", 'hosts.resolver.config = "mine.conf"', role="resolver")
    with pytest.raises(UsageError, match="does not set where Unbound listens") as caught:
        specs(tmp_path, "unbound", 'hosts.resolver.config = "mine.conf"', role="resolver")
    assert "interface: {{ address }}@{{ port }}" in caught.value.hint


def test_settings_that_a_file_does_not_use_are_refused(tmp_path: Path) -> None:
    more = 'hosts.secondary.config = "mine.conf"\nhosts.secondary.settings."transfers-in" = 20'
    (tmp_path / "mine.conf").write_text("options { };")
    with pytest.raises(UsageError, match=r"mine\.conf does not use them"):
        specs(tmp_path, "bind", more)
    (tmp_path / "mine.conf").write_text(driver("bind").template("secondary"))
    assert specs(tmp_path, "bind", more)
    (tmp_path / "mine.conf").write_text("options { };")
    with pytest.raises(UsageError, match=r"mine\.conf does not include it"):
        specs(tmp_path, "bind", 'hosts.secondary.config = "mine.conf"\nhosts.secondary.include = "mine.conf"')


class _Runs:
    """The parts of a manifest that a difference needs."""

    def __init__(self, found: list[TrialSpec]) -> None:
        self.specs = {spec.variant.id: spec for spec in found}
        self.variants = [spec.variant for spec in found]
        self.baseline: dict[str, Any] = {}


def test_what_differs_between_two_configurations(tmp_path: Path) -> None:
    (tmp_path / "a.conf").write_text("options {\n  notify no;\n};\n")
    (tmp_path / "b.conf").write_text("options {\n  notify \x1b[31myes;\n};\n")
    found = specs(tmp_path, "bind", '[matrix]\n"hosts.secondary.config" = ["a.conf", "b.conf"]')
    run: Manifest = _Runs(found)  # type: ignore[assignment]
    (difference,) = configurations.within(run)
    assert difference.title == "configuration of secondary: config=b.conf against config=a.conf"
    assert difference.lines[:2] == ["--- a.conf", "+++ b.conf"]
    assert "-  notify no;" in difference.lines and "+  notify \x1b[31myes;" in difference.lines
    assert configurations.differing(run, run, [Pair(found[0].variant, found[0].variant)]) == []
    (stated,) = (each for each in of_two_specs(*found) if each.what.startswith("hosts"))
    assert stated.what == "hosts.secondary.config" and stated.base.startswith("a.conf (")


def test_variants_differ_from_the_one_that_the_baseline_names(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / f"{name}.conf").write_text(f"options {{ {name} }};\n")
    found = specs(tmp_path, "bind", '[matrix]\n"hosts.secondary.config" = ["a.conf", "b.conf", "c.conf"]')
    run: Manifest = _Runs(found)  # type: ignore[assignment]

    def titles() -> list[str]:
        return [each.title.removeprefix("configuration of secondary: ") for each in configurations.within(run)]

    against_a = ["config=b.conf against config=a.conf", "config=c.conf against config=a.conf"]
    assert titles() == against_a, "the first one"
    run.baseline = found[1].variant.parameters
    assert titles() == ["config=a.conf against config=b.conf", "config=c.conf against config=b.conf"]
    run.baseline = {"config": "other.conf"}
    assert titles() == against_a


@pytest.mark.parametrize(("added", "shown", "more"), [(56, 59, ""), (57, 60, ""), (58, 61, "… 1 more lines")])
def test_a_long_difference_is_cut(added: int, shown: int, more: str) -> None:
    """Three lines say where it is, and the rest is shown up to sixty lines together."""
    text = "\n".join(map(str, range(added)))
    lines = configurations._diff(("a", ""), ("b", text))
    assert (len(lines), lines[2:4]) == (shown, [f"@@ -0,0 +1,{added} @@", "+0"])
    assert lines[-1] == (more or f"+{added - 1}")


def test_a_long_line_is_cut_and_files_of_dnsrig_are_not_compared() -> None:
    assert configurations._diff(("a", ""), ("b", 300 * "x"))[-1] == "+" + 199 * "x"
    assert configurations._diff(("a", "x"), ("a", "x")) == []
    ours = configurations.OURS
    assert configurations._diff((ours, "x"), (ours, "y")) == configurations._diff((ours, "x"), ("no snippet", "")) == []
    assert configurations._diff((ours, "x"), ("mine", "y"))[-2:] == ["-x", "+y"]
