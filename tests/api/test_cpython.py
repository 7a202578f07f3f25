"""The standard library's own tests of executors, with `yurt.executor("local")`.

They belong to the test suite of the interpreter. Python 3.13 installs them; 3.11 and the first versions of 3.12 do not.
"""

from __future__ import annotations

import unittest
from importlib import import_module
from typing import Any

import pytest

import yurt
from tests.api.conftest import Here

SUITE = "test.test_concurrent_futures"
pytest.importorskip(f"{SUITE}.util", reason="needs a Python with the tests of the standard library, such as 3.13")

MIXINS = {
    "executor": ["ExecutorTest"],
    "test_as_completed": ["AsCompletedTests"],
    "test_init": ["InitializerMixin", "FailingInitializerMixin"],
    "test_process_pool": ["ProcessPoolExecutorTest"],
    "test_shutdown": ["ExecutorShutdownTest"],
    "test_thread_pool": ["ThreadPoolExecutorTest"],
    "test_wait": ["WaitTests"],
}
"""The classes with tests, by module of the suite. `test_deadlock` is about the pipes and workers of a process pool."""

WORKERS = "looks at the threads or processes of a pool; yurt has none, each task is a process of its own"
NAMED = "starts a program that imports the executor from concurrent.futures; see test_executor.py"
SHARED = "the call changes objects of this process, which a task in another process cannot do"

NOT_APPLICABLE = {
    "test_cancel_futures": "needs a call that runs at once; yurt has not submitted any when the test cancels them",
    "test_default_workers": "yurt sets no limit by default",
    "test_executor_map_current_future_cancel": SHARED,
    "test_hang_gh83386": NAMED,
    "test_hang_global_shutdown_lock": "tests the lock of a thread pool",
    "test_idle_process_reuse_multiple": WORKERS,
    "test_idle_process_reuse_one": WORKERS,
    "test_idle_thread_reuse": WORKERS,
    "test_interpreter_shutdown": NAMED,
    "test_killed_child": WORKERS,
    "test_map_submits_without_iteration": SHARED,
    "test_max_tasks_early_shutdown": WORKERS,
    "test_max_tasks_per_child": WORKERS,
    "test_max_tasks_per_child_defaults_to_spawn_context": WORKERS,
    "test_max_workers_too_large": "is for Windows",
    "test_python_finalization_error": WORKERS,
    "test_ressources_gced_in_workers": WORKERS,
    "test_saturation": WORKERS,
    "test_submit_after_interpreter_shutdown": NAMED,
    "test_traceback": "compares the private class of the cause; see test_executor.py",
}


@pytest.fixture(autouse=True)
def _home(here: Here) -> None:
    """Every test has a home of its own."""


def executor(**options: Any) -> Any:
    return yurt.executor("local", snapshot=False, **options)


def case(module: str, mixin: str) -> type[unittest.TestCase]:
    """Return the tests that one class of the suite defines, without those that do not apply to yurt."""
    tests = getattr(import_module(f"{SUITE}.{module}"), mixin)
    bases = (import_module(f"{SUITE}.util").ExecutorMixin, unittest.TestCase)
    unwanted = [name for name in dir(tests) if name in NOT_APPLICABLE or name not in vars(tests)]
    members: dict[str, Any] = {name: None for name in unwanted if name.startswith("test_")}
    members["executor_type"] = staticmethod(executor)
    return type(mixin, (tests, *(each for each in bases if not issubclass(tests, each))), members)


for _module, _mixins in MIXINS.items():
    for _mixin in _mixins:
        globals()[f"Test{_mixin}"] = case(_module, _mixin)
