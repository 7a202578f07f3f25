"""`make test`: install packages, lint, test. Prints what it skips because this machine cannot run it.

ONLY="PATH…" runs only these tests, one at a time, on a lab that stays up for the next run. AGAIN=N repeats them on a
busy machine (tools/again.py). CHANGED=1 runs the tests of what changed against main (tools/changed.py).
SLOW=1 includes tests marked as slow, and runs the suites below on every version of Slurm. WORKERS=N sets the number of
parallel workers. LAB_SLURM=VERSION runs all tests on that version. SEED=N repeats the order of an earlier run.
"""

from __future__ import annotations

import itertools
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.suite.environment import keep_bytecode
from tools import again, changed, lint, packages
from yurt.lab import versions

PYTEST = [sys.executable, "-m", "pytest"]
IN_PARALLEL = ["--dist", "loadgroup", "--no-loadscope-reorder", "-n"]
VERSIONS = ("22.05", "24.11", "26.05")
"""The versions of Slurm that a lab can have: the keys of yurt.lab.versions.RELEASES."""

ON_EVERY_VERSION = [
    "tests/backends",
    "tests/api",
    *(f"tests/lab/test_{name}.py" for name in ("alpha", "beta", "faults", "people")),
    *(f"tests/transport/test_{name}.py" for name in ("contract", "ssh")),
    *(f"tests/lifecycle/test_{name}.py" for name in ("cancelled_outside", "dependencies", "many_logs", "node_down")),
    *(f"tests/lifecycle/test_{name}.py" for name in ("out_of_memory", "outbox", "races", "rejected", "restarts")),
    *(f"tests/lifecycle/test_{name}.py" for name in ("secrets", "select", "sweeps")),
    *(f"tests/lifecycle/test_{name}.py" for name in ("hold", "run", "sbatch_scripts", "shell", "stage", "why")),
    *(f"tests/contexts/test_{name}.py" for name in ("cluster", "sites")),
]
"""What depends on Slurm: the contracts, exactly one start, requeues, preemption, sweeps, secrets, the executor."""

NO_TESTS = 5
"""pytest's exit code if it collected no tests."""

CHANGED_SECONDS = 80.0
"""Time after which `make test CHANGED=1` starts no test: the last one and the lab need the rest of two minutes."""


def main() -> int:
    started = time.monotonic()
    keep_bytecode()
    only, times = os.environ.get("ONLY", "").split(), int(os.environ.get("AGAIN") or 0)
    if times and not only:
        print('test: AGAIN repeats some tests; name them: make test AGAIN=5 ONLY="tests/cli/test_frame.py"')
        return 2
    if packages.main():
        return 1
    if os.environ.get("SLOW"):
        os.environ["SLOW_TESTS"] = "1"
    seed = int(os.environ.get("SEED") or random.randrange(10**6))
    if times:
        return run_again(times, seed, only)
    print(f"test: the order of the tests is drawn from SEED={seed}", flush=True)
    if only:
        code = run_only(seed, only)
    elif os.environ.get("CHANGED"):
        code = run_changed(seed, time.time() - time.monotonic() + started + CHANGED_SECONDS)
    else:
        with lint.types() as wrong_types:  # the tests on clusters leave time for it
            with collecting():
                if lint.quick():
                    return 1
            code = worst([run_all(seed), int(wrong_types())])
    minutes, seconds = divmod(round(time.monotonic() - started), 60)
    order = "" if code == 0 else f"; SEED={seed} repeats the order"
    print(f"test: {'passed' if code == 0 else 'FAILED'} after {minutes} min {seconds} s{order}", flush=True)
    return code


def run_all(seed: int) -> int:
    workers = os.environ.get("WORKERS", "") or "4"
    in_order = ["--seed", str(seed)]
    in_parallel = [*in_order, *IN_PARALLEL, workers]
    codes = [pytest("not alone", *in_parallel), pytest("alone", *in_order, *files_with("mark.alone"))]
    if os.environ.get("SLOW_TESTS") and not os.environ.get("LAB_SLURM"):
        codes += [run_version(version, in_parallel) for version in VERSIONS if version != own_version()]
    return worst(codes)


def run_changed(seed: int, until: float) -> int:
    """Check what changed, and run its tests as long as there is time: first those without the lab, in parallel."""
    commit = changed.base(lint.ROOT)
    files = changed.changed_since(lint.ROOT, commit)
    tree = changed.Tree(lint.ROOT)
    chosen = tree.choose(files)
    print(f"test: {len(files)} files changed since {commit[:8]}; files of tests for them: {len(chosen)}")
    for line in changed.lines(chosen):
        print(f"test:   {line}")
    if rest := [path for path in files if tree.unmapped(path)]:
        print(f"test:   none: {' '.join(rest)}")
    if rest or not files:
        print("test:   `make test` runs all tests", flush=True)
    with lint.types_of(files, until) as failed:
        codes = [int(lint.changed(files))]
        if chosen:
            in_order = ["--seed", str(seed), "--until", str(until), *pages(files, chosen), *chosen]
            codes.append(pytest("not lab and not alone", *IN_PARALLEL, str(os.cpu_count() or 1), *in_order))
            with lab_that_stays_up():
                codes.append(pytest("lab or alone", *in_order))
        codes.append(int(failed()))
    return worst(codes)


def pages(files: list[str], chosen: dict[str, str]) -> list[str]:
    """Return the arguments that select the blocks of the changed pages: each page takes long, and is a test."""
    test = "tests/docs/test_docs.py"
    names = [Path(file).name for file in files if file.endswith(".md")]
    if test not in chosen or test in files:
        return []
    return ["-k", " or ".join(["not test_blocks_run", *names])]


def worst(codes: list[int]) -> int:
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


def run_only(seed: int, paths: list[str]) -> int:
    """Run some tests on a lab that stays up between calls."""
    with lab_that_stays_up():
        return pytest("", "-v", "--seed", str(seed), *paths)


def run_again(times: int, seed: int, paths: list[str]) -> int:
    """Run some tests several times, each time in another order, unless SEED is given."""
    quota = float(os.environ.get("QUOTA") or 0)
    load = float(os.environ.get("LOAD") or (0 if quota else again.LOAD))
    seeds = itertools.repeat(seed) if os.environ.get("SEED") else itertools.count(seed)

    def run(words: list[str], outcomes: Path) -> int:
        drawn = next(seeds)
        print(f"test: SEED={drawn}", flush=True)
        return pytest("", "--seed", str(drawn), "--outcomes", str(outcomes), *paths, before=words)

    with lab_that_stays_up():
        try:
            return again.repeat(times, load, quota, run)
        except again.NoQuotaError as error:
            print(f"test: {error}")
            return 2


@contextmanager
def lab_that_stays_up() -> Iterator[None]:
    """Let the tests keep their lab for the next run, and say how to stop it."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "yurt-test"
    os.environ["YURT_TEST_HOME"] = str(home)
    yield
    if (home / "data" / "lab").exists():
        homes = f"YURT_CONFIG_HOME={home}/config YURT_DATA_HOME={home}/data"
        print(f"test: the lab stays up for the next run; stop it with: {homes} yurt lab down --wipe")


def pytest(marks: str, *arguments: str, before: Sequence[str] = ()) -> int:
    """Run the tests that match a mark expression. Tests on the lab run as root or are skipped."""
    if os.geteuid() == 0:
        return subprocess.call([*before, *PYTEST, *(["-m", marks] if marks else []), *arguments, *sys.argv[1:]])
    both = f"({marks}) and " if marks else ""
    plain = subprocess.call([*before, *PYTEST, "-m", f"{both}not lab", *arguments, *sys.argv[1:]])
    if packages.can_be_root() and packages.lab_packages_installed():
        print("test: running the lab's tests as root with sudo", flush=True)
        as_root = packages.as_root(["env", "PYTHONDONTWRITEBYTECODE=1", *PYTEST])
        on_lab = [*as_root, "-m", f"{both}lab", "-p", "no:cacheprovider", *arguments, *sys.argv[1:]]
        codes = (plain, subprocess.call([*before, *on_lab]))
        return next((code for code in codes if code not in (0, NO_TESTS)), min(codes))
    print("test: SKIPPED all tests on real Slurm (marked 'lab'): they need root or passwordless sudo")
    return plain


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:  # pytest has printed what it did until then
        sys.exit(130)
