"""Output of the suite: the running tests every few seconds, failures immediately, the slowest tests at the end."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

EVERY = 10.0
"""Seconds between two lines with the running tests."""

SLOWEST = 10
MANY_FILES = 25


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Reporter(config), "suite-reporter")


class Reporter:
    """Follows the tests of all workers; runs in the controlling process."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.began = time.monotonic()
        self.total = 0
        self.running: dict[str, float] = {}
        self.took: dict[str, float] = {}
        self.counts = {"passed": 0, "failed": 0, "skipped": 0}
        self.finished = threading.Event()
        self.lock = threading.Lock()

    def pytest_sessionstart(self) -> None:
        threading.Thread(target=self._print_running, daemon=True).start()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.total = len(session.items)

    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        self.total = len(ids)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        with self.lock:
            self.running[nodeid] = time.monotonic()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        with self.lock:
            self.took[report.nodeid] = self.took.get(report.nodeid, 0) + report.duration
            if report.when == "call" or report.outcome != "passed":
                self.counts[report.outcome] += 1
            if report.when == "teardown":
                self.running.pop(report.nodeid, None)
        if report.outcome == "failed":
            self._line(f"FAILED {_plain(report.nodeid)} ({report.when})")

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: object) -> tuple[str, str, str] | None:
        """Suppress pytest's dots."""
        if not isinstance(report, pytest.TestReport) or hasattr(report, "wasxfail"):
            return None
        if report.when == "call" or report.skipped:
            return (report.outcome, "", report.outcome.upper())
        return ("error", "", "ERROR") if report.failed else ("", "", "")

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        self.finished.set()
        slowest = sorted(self.took.items(), key=lambda each: -each[1])[:SLOWEST]
        if slowest and len(self.took) > 1:
            terminalreporter.section(f"the {len(slowest)} slowest of {len(self.took)} tests")
            for nodeid, seconds in slowest:
                terminalreporter.write_line(f"{seconds:7.1f} s  {_plain(nodeid)}")
        files: dict[str, float] = {}
        for nodeid, seconds in self.took.items():
            file = nodeid.partition("::")[0]
            files[file] = files.get(file, 0.0) + seconds
        if len(files) > MANY_FILES:
            terminalreporter.section(f"the {MANY_FILES} slowest of {len(files)} files")
            for file in sorted(files, key=lambda each: -files[each])[:MANY_FILES]:
                terminalreporter.write_line(f"{files[file]:7.1f} s  {file}")

    def _print_running(self) -> None:
        while not self.finished.wait(EVERY):
            with self.lock:
                now = time.monotonic()
                longest = sorted((began, nodeid) for nodeid, began in self.running.items())
                done = sum(self.counts.values())
                failed = f", {self.counts['failed']} failed" if self.counts["failed"] else ""
            shown = "  ".join(f"{_short(nodeid)} {now - began:.0f} s" for began, nodeid in longest)
            if self.total:
                self._line(f"[{_clock(now - self.began)} {done}/{self.total}{failed}] {shown}")

    def _line(self, text: str) -> None:
        reporter = self.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.ensure_newline()
            reporter.write_line(text)
            sys.stdout.flush()


def _short(nodeid: str) -> str:
    """Return the module and the function of a test."""
    path, _, name = _plain(nodeid).partition("::")
    return f"{Path(path).name.removesuffix('.py').removeprefix('test_')}::{name}"


def _plain(nodeid: str) -> str:
    """Return a test id without the group that pytest-xdist adds."""
    at = nodeid.rfind("@")
    return nodeid[:at] if at > nodeid.rfind("]") else nodeid


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
