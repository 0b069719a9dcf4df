"""Each trap of measurements of resolvers is provoked for real, and is silent where nothing is wrong."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from conftest import specs
from test_traps_provoked import executed_here, finding

from dnsrig.experiment import preparation
from dnsrig.procedures import replay
from dnsrig.procedures.context import TrialContext
from dnsrig.procedures.parts import serving
from dnsrig.runs.trial import Trial
from dnsrig.traps.unequal_settings import before

Measure = Callable[..., Trial]
KINDS = ["bind", "knot-resolver", "powerdns-recursor", "unbound"]
SHORT = ("dataset.zones=500", "stream.qps=400", "cache=empty", "baseline={}")
SECONDS = ("stream.duration_s=6", "options.duration_s=6")


FEW = "tlds.count = 11"


def server(kind: str) -> str:
    return f"server={kind}@forky"


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
def test_a_cache_that_somebody_filled_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """Somebody asks before `measure`, and the experiment says nothing of it."""
    (spec,) = specs("cold-minute", *SHORT, *SECONDS, server(kind))

    def settle(context: TrialContext) -> None:
        replay._play(context, "somebody", 6.0)

    monkeypatch.setattr(serving, "settle", settle)
    trial = executed_here(spec, tmp_path / "trial", lambda event: None)
    assert finding("warm-cache", trial).verdict == "found", finding("warm-cache", trial)


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_cache_is_not_called_warm(measure: Measure, kind: str) -> None:
    assert finding("warm-cache", measure(*SHORT, *SECONDS, server(kind), experiment="cold-minute")).verdict == "clear"


@pytest.mark.full
@pytest.mark.parametrize("kind", ["bind", "unbound"])
def test_signatures_of_another_time_are_found(measure: Measure, kind: str) -> None:
    ended = 'dataset.set="signing.epoch_s = 1000000000\\nsigning.validity_days = 30"'
    wanted = partial(measure, *SHORT, *SECONDS, "stream.qps=100", server(kind), experiment="cold-minute")
    trial = wanted("hosts.resolver.resolving.level=validating", ended)
    assert trial.record.outcome == "invalid"
    found = finding("clock-outside-validity", trial)
    assert found.verdict == "found" and found.evidence["valid_until_s"] == 1_000_000_000 + 30 * 86_400
    assert finding("clock-outside-validity", wanted("hosts.resolver.resolving.level=validating")).verdict == "clear"


@pytest.mark.full
@pytest.mark.parametrize("kind", ["bind", "unbound"])
def test_ttls_that_expire_together_are_found(measure: Measure, kind: str) -> None:
    """A few names, all of which are soon in the cache, each asked for many times while it is there."""
    longer = ("dataset.zones=20", "stream.qps=2000", "stream.duration_s=40", "options.duration_s=40")
    wanted = partial(measure, *SHORT[2:], *longer, server(kind), "stream.missing=0.0", experiment="cold-minute")
    found = finding("ttls-expire-together", wanted(f'dataset.set="{FEW}\\nttls.hosts_s = 8"'))
    assert found.verdict == "found" and found.evidence["period_s"] in (8, 9), found
    assert finding("ttls-expire-together", wanted(f'dataset.set="{FEW}"')).verdict == "clear"


def test_unequal_settings_are_found_before_anything_runs() -> None:
    def judged(*settings: str) -> str:
        request = preparation.Request("cold-minute", settings=[*SHORT, *SECONDS, *settings])
        return before(preparation.prepare(request, lambda _: None), {}).verdict

    assert judged() == "clear"
    assert judged('hosts.resolver.settings.unbound={ "qname-minimisation" = false }') == "found"
