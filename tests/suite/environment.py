"""Gives all tests the same environment, independent of the shell, job or venv that `make test` was started from."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

KEPT = frozenset(("YURT_TEST_HOME", "YURT_NODE_PYTHON", "YURT_LAB_ROOTS"))
"""Settings of the suite itself."""

FOREIGN = ("YURT_", "SLURM_", "SBATCH_", "SRUN_", "SQUEUE_", "SACCT_", "SALLOC_", "SCANCEL_", "GIT_", "XDG_", "HYDRA_")
"""Prefixes of variables that change the behaviour of yurt, git or Slurm."""

REMOVED = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "VIRTUAL_ENV", "PYTHONPATH", "SSH_AUTH_SOCK", "SSH_ASKPASS")

CLOCKS = "slow=14"
"""A busy machine needs more than the usual 3 seconds for many steps; yurt then says that it waits."""

ROOT = Path(__file__).parents[2]


def settle() -> None:
    """Set signals, umask, PATH and variables as in a new login shell with this virtual environment active."""
    # A shell starts `make test &` with SIGINT ignored, and all children inherit that.
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    os.umask(0o022)
    own = str(Path(sys.executable).parent)
    others = [part for part in os.environ.get("PATH", os.defpath).split(os.pathsep) if part != own]
    os.environ["PATH"] = os.pathsep.join([own, *others])
    for name in list(os.environ):
        if name in REMOVED or (name.startswith(FOREIGN) and name not in KEPT):
            del os.environ[name]
    os.environ["GIT_CONFIG_GLOBAL"] = os.devnull
    os.environ["YURT_CLOCKS"] = CLOCKS
    keep_bytecode()


def keep_bytecode() -> None:
    """Let Python write its caches: compiling all sources at each start of yurt doubles the time that it takes.

    Root writes none to the checkout of another user.
    """
    if ROOT.stat().st_uid == os.geteuid():
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        sys.dont_write_bytecode = False
