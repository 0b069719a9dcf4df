"""For all tests: the closing lines say how many could not be judged because the machine was busy."""

from __future__ import annotations

import others
import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in others.closing_lines(terminalreporter.stats.get("skipped", [])):
        terminalreporter.write_line(line)
