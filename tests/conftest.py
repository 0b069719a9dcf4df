"""For all tests: property tests have no time limit an example, which a busy machine would break; the closing lines say
how many could not be judged because the machine was busy."""

from __future__ import annotations

import others
import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in others.closing_lines(terminalreporter.stats.get("skipped", [])):
        terminalreporter.write_line(line)
