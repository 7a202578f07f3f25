"""`make test`: set-up, lint, tests. What cannot run on this machine is left out, and said.

ONLY="PATH…" runs these tests alone, one after the other, on a lab that is kept for the next time.
SLOW=1 runs the tests of more than a minute too. WORKERS=N changes how many tests run side by side.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from tools import lint, packages

PYTEST = [sys.executable, "-m", "pytest"]
NO_TESTS = 5
"""pytest's exit code if it had nothing to run."""


def main() -> int:
    began = time.monotonic()
    if packages.main():
        return 1
    if os.environ.get("SLOW"):
        os.environ["SLOW_TESTS"] = "1"
    if only := os.environ.get("ONLY", "").split():
        return run_only(only)
    if lint.main():
        return 1
    code = run_all()
    minutes, seconds = divmod(round(time.monotonic() - began), 60)
    print(f"test: {'all well' if code == 0 else 'FAILED'} after {minutes} min {seconds} s", flush=True)
    return code


def run_all() -> int:
    workers = os.environ.get("WORKERS", "") or "4"
    together = ["-n", workers, "--dist", "loadgroup", "--no-loadscope-reorder"]
    codes = [pytest("not alone", *together), pytest("alone")]
    return next((code for code in codes if code not in (0, NO_TESTS)), 0)


def run_only(paths: list[str]) -> int:
    """Some tests, on a lab that stays up between two calls."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "yurt-test"
    os.environ["YURT_TEST_HOME"] = str(home)
    code = pytest("", "-v", *paths)
    if (home / "data" / "lab").exists():
        homes = f"YURT_CONFIG_HOME={home}/config YURT_DATA_HOME={home}/data"
        print(f"test: the lab stays up for the next time; to end it: {homes} yurt lab down --wipe")
    return code


def pytest(marks: str, *arguments: str) -> int:
    """Run the tests with these marks; those on the lab as root, or not at all."""
    if os.geteuid() == 0:
        return subprocess.call([*PYTEST, *(["-m", marks] if marks else []), *arguments, *sys.argv[1:]])
    both = f"({marks}) and " if marks else ""
    plain = subprocess.call([*PYTEST, "-m", f"{both}not lab", *arguments, *sys.argv[1:]])
    if packages.may_be_root() and packages.lab_packages_there():
        print("test: the lab's tests run as root, by sudo", flush=True)
        as_root = packages.as_root(["env", "PYTHONDONTWRITEBYTECODE=1", *PYTEST])
        on_lab = [*as_root, "-m", f"{both}lab", "-p", "no:cacheprovider", *arguments, *sys.argv[1:]]
        codes = (plain, subprocess.call(on_lab))
        return next((code for code in codes if code not in (0, NO_TESTS)), min(codes))
    print("test: LEFT OUT: every test on real Slurm (marked 'lab'): they need root, or sudo without a question")
    return plain


if __name__ == "__main__":
    sys.exit(main())
