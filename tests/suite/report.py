"""Output of the suite: the running tests every few seconds, failures ; at the end the slowest and the skipped."""

from __future__ import annotations

import json
import os
import platform
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.suite.order import TIME_LEFT, TOOK
from tests.suite.slow import SLOW

EVERY = 10.0
"""Seconds between two lines with the running tests."""

SLOWEST = 10
MANY_FILES = 25

EXPECTED = (SLOW, TIME_LEFT, "needs a GPU", "needs macOS", "needs a Python with the tests")
"""How reasons of skips begin that every machine has, or that Debian 12 lacks."""

UNEXPECTED = "skipped unexpectedly"


def pytest_addoption(parser: pytest.Parser) -> None:
    text = "write the outcome of each test to this file, or add it to those there, as JSON"
    parser.getgroup("report", "output of the suite").addoption("--outcomes", type=Path, help=text)


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Reporter(config), "suite-reporter")


class Reporter:
    """Follows the tests of all workers; runs in the controlling process."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        # A copy: without workers, a test that captures the output of this process would capture these lines, too.
        self.terminal = os.fdopen(os.dup(1), "w")
        self.began = time.monotonic()
        self.total = 0
        self.running: dict[str, float] = {}
        self.took: dict[str, float] = {}
        self.counts = {"passed": 0, "failed": 0, "skipped": 0}
        self.outcomes: dict[str, str] = {}
        self.skipped: dict[str, list[str]] = {}
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
                if self.outcomes.get(_plain(report.nodeid)) != "failed":
                    self.outcomes[_plain(report.nodeid)] = report.outcome
            if report.when == "teardown":
                self.running.pop(report.nodeid, None)
        if report.outcome == "failed":
            self._line(f"FAILED {_plain(report.nodeid)} ({report.when})")
        self._note_skip(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._note_skip(report)

    def _note_skip(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.skipped:
            self.skipped.setdefault(_reason(report), []).append(_plain(report.nodeid))

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: object) -> tuple[str, str, str] | None:
        """Suppress pytest's dots; count the skips that nobody expects separately."""
        if not isinstance(report, pytest.TestReport) or hasattr(report, "wasxfail"):
            return None
        if report.skipped and has_all() and not _reason(report).startswith(EXPECTED):
            return (UNEXPECTED, "", "SKIPPED")
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
        if self.skipped:
            terminalreporter.section(f"{sum(map(len, self.skipped.values()))} skipped tests, and what they need")
            for line in skips(self.skipped):
                terminalreporter.write_line(line)
        if self.counts["failed"]:
            terminalreporter.write_line(f"pytest --seed {self.config.option.seed} repeats the order of these tests")
        self._keep()

    def _keep(self) -> None:
        """Save the outcomes if they are asked for, and how long each test took, for `make test CHANGED=1`."""
        file = self.config.option.outcomes
        if file is not None:
            before = json.loads(file.read_text()) if file.exists() else {}
            file.write_text(json.dumps({**before, **self.outcomes}))
        cache = getattr(self.config, "cache", None)  # -p no:cacheprovider
        if cache is not None:
            took = {_plain(nodeid): round(seconds, 1) for nodeid, seconds in self.took.items()}
            cache.set(TOOK, {**cache.get(TOOK, {}), **took})

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
        print(text, file=self.terminal, flush=True)


def skips(skipped: dict[str, list[str]]) -> Iterator[str]:
    """Yield a line for each reason: how many tests, what they need, and one of them if the reason is a rare one."""
    for reason, tests in sorted(skipped.items(), key=lambda each: -len(each[1])):
        if reason == TIME_LEFT:
            files = " ".join(sorted({test.partition("::")[0] for test in tests}))
            yield f'{len(tests):7d}  {reason}: make test ONLY="{files}"'
            continue
        example = "" if reason == SLOW else f" ({tests[0]}{', …' if len(tests) > 1 else ''})"
        yield f"{len(tests):7d}  {reason}{example}"


def has_all() -> bool:
    """Return whether this machine should skip nothing but slow tests: it runs CI, or is Debian 12 with root."""
    if os.environ.get("CI"):
        return True
    try:
        found = platform.freedesktop_os_release()
    except OSError:
        return False
    return os.geteuid() == 0 and (found.get("ID"), found.get("VERSION_ID")) == ("debian", "12")


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Return why a test was skipped, without pytest's prefix."""
    found = report.longrepr
    return (found[2] if isinstance(found, tuple) else str(found)).removeprefix("Skipped: ")


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
