"""`make test`: install packages, lint, test. Prints what it skips because this machine cannot run it.

ONLY="PATH…" runs only these tests, one at a time, on a lab that stays up for the next run.
SLOW=1 includes tests marked as slow, and runs the suites below on every version of Slurm. WORKERS=N sets the number of
parallel workers. LAB_SLURM=VERSION runs all tests on that version.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.suite.environment import keep_bytecode
from tools import lint, packages
from yurt.lab import versions

PYTEST = [sys.executable, "-m", "pytest"]
VERSIONS = ("22.05", "24.11", "26.05")
"""The versions of Slurm that a lab can have: the keys of yurt.lab.versions.RELEASES."""

ON_EVERY_VERSION = [
    "tests/backends",
    "tests/api",
    *(f"tests/lab/test_{name}.py" for name in ("alpha", "beta", "faults", "people")),
    *(f"tests/hosts/test_{name}.py" for name in ("contract", "ssh")),
    *(f"tests/lifecycle/test_{name}.py" for name in ("cancelled_outside", "dependencies", "many_logs", "node_down")),
    *(f"tests/lifecycle/test_{name}.py" for name in ("out_of_memory", "outbox", "races", "rejected", "restarts")),
    *(f"tests/lifecycle/test_{name}.py" for name in ("secrets", "select", "sweeps")),
    *(f"tests/cli/test_{name}.py" for name in ("hold", "run", "sbatch_scripts")),
    *(f"tests/verbs/test_{name}.py" for name in ("cluster", "shell", "sites", "stage", "why")),
]
"""What depends on Slurm: the contracts, exactly one start, requeues, preemption, sweeps, secrets, the executor."""

NO_TESTS = 5
"""pytest's exit code if it collected no tests."""


def main() -> int:
    started = time.monotonic()
    keep_bytecode()
    if packages.main():
        return 1
    if os.environ.get("SLOW"):
        os.environ["SLOW_TESTS"] = "1"
    if only := os.environ.get("ONLY", "").split():
        return run_only(only)
    with collecting():
        if lint.main():
            return 1
    code = run_all()
    minutes, seconds = divmod(round(time.monotonic() - started), 60)
    print(f"test: {'passed' if code == 0 else 'FAILED'} after {minutes} min {seconds} s", flush=True)
    return code


def run_all() -> int:
    workers = os.environ.get("WORKERS", "") or "4"
    in_parallel = ["-n", workers, "--dist", "loadgroup", "--no-loadscope-reorder"]
    codes = [pytest("not alone", *in_parallel), pytest("alone", *files_with("mark.alone"))]
    if os.environ.get("SLOW_TESTS") and not os.environ.get("LAB_SLURM"):
        codes += [run_version(version, in_parallel) for version in VERSIONS if version != own_version()]
    return next((code for code in codes if code not in (0, NO_TESTS)), 0)


@contextmanager
def collecting() -> Iterator[None]:
    """Collect the tests in the background, so that Python's caches are written once and each worker reads them."""
    argv = [*PYTEST, "--collect-only", "-p", "no:cacheprovider"]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as collector:
        try:
            yield
        except BaseException:
            collector.kill()
            raise


def files_with(text: str) -> list[str]:
    """Return the test files that contain a text: pytest then collects only these."""
    return [str(file) for file in sorted(Path("tests").rglob("test_*.py")) if text in file.read_text()]


def own_version() -> str:
    """Return the version of Slurm of this machine, on which all tests run."""
    return versions.series(versions.installed())


def run_version(version: str, arguments: list[str]) -> int:
    """Run the suites that depend on Slurm on a lab with another version."""
    print(f"test: Slurm {version}", flush=True)
    os.environ["LAB_SLURM"] = version
    try:
        return pytest("lab and not alone", *arguments, *ON_EVERY_VERSION)
    finally:
        del os.environ["LAB_SLURM"]


def run_only(paths: list[str]) -> int:
    """Run some tests on a lab that stays up between calls."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "yurt-test"
    os.environ["YURT_TEST_HOME"] = str(home)
    code = pytest("", "-v", *paths)
    if (home / "data" / "lab").exists():
        homes = f"YURT_CONFIG_HOME={home}/config YURT_DATA_HOME={home}/data"
        print(f"test: the lab stays up for the next run; stop it with: {homes} yurt lab down --wipe")
    return code


def pytest(marks: str, *arguments: str) -> int:
    """Run the tests that match a mark expression. Tests on the lab run as root or are skipped."""
    if os.geteuid() == 0:
        return subprocess.call([*PYTEST, *(["-m", marks] if marks else []), *arguments, *sys.argv[1:]])
    both = f"({marks}) and " if marks else ""
    plain = subprocess.call([*PYTEST, "-m", f"{both}not lab", *arguments, *sys.argv[1:]])
    if packages.can_be_root() and packages.lab_packages_installed():
        print("test: running the lab's tests as root with sudo", flush=True)
        as_root = packages.as_root(["env", "PYTHONDONTWRITEBYTECODE=1", *PYTEST])
        on_lab = [*as_root, "-m", f"{both}lab", "-p", "no:cacheprovider", *arguments, *sys.argv[1:]]
        codes = (plain, subprocess.call(on_lab))
        return next((code for code in codes if code not in (0, NO_TESTS)), min(codes))
    print("test: SKIPPED all tests on real Slurm (marked 'lab'): they need root or passwordless sudo")
    return plain


if __name__ == "__main__":
    sys.exit(main())
