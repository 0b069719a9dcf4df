"""For all tests: property tests have no time limit an example, which a busy machine would break, and fewer examples
than in `make test-full`; the closing lines say how many could not be judged because the machine was busy."""

from __future__ import annotations

import os
import signal

import others
import pytest
import suites
from hypothesis import HealthCheck, settings

# Without a store of examples: what the first run of a clone leaves there makes all units of later runs 40 % dearer.
settings.register_profile(
    "thorough", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=70, database=None
)
settings.register_profile("quick", settings.get_profile("thorough"), max_examples=40)
settings.load_profile("quick")

# A shell ignores SIGINT and SIGQUIT for what it starts in the background (POSIX, XCU 2.9.3.1), and nohup(1) SIGHUP.
# Programs that tests start and interrupt would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
for number in (signal.SIGHUP, signal.SIGQUIT):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)

FULL_LIMIT_S = 900
"""For a test that only `make test-full` runs, and that names no limit of its own: some wait minutes for resolvers."""


@pytest.hookimpl(trylast=True)  # when the tests that are not wanted are gone
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    with_own_limit = [item for item in items if item.get_closest_marker("timeout")]
    for item in items:
        if item.get_closest_marker("full") and item not in with_own_limit:
            item.add_marker(pytest.mark.timeout(FULL_LIMIT_S))
    items[:] = suites.first_of_each_worker(with_own_limit, items, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """A report without charts: drawing takes most of its time, and tests of words and of exit statuses see none."""
    monkeypatch.setattr("dnsrig.report.draw_all", lambda run, findings: [])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in others.closing_lines(terminalreporter.stats.get("skipped", [])):
        terminalreporter.write_line(line)
