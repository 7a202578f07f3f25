"""Adds the yurt commands of a failed test and their output to its report."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from tests.calls import calls


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    calls.clear()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed and calls:
        report.sections.append((f"yurt commands before {report.when} failed", "\n".join(calls)))
    return report
