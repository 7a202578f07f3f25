"""Examines this machine: programs, keys, yurt's own files, variables and terminal."""

from __future__ import annotations

import locale
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from yurt.config import contexts, paths
from yurt.config.precedence import FIXED, KEYS
from yurt.contexts import folders
from yurt.contexts.doctor import keys, programs
from yurt.contexts.doctor.finding import Examined, Finding, chmod, fault, ok, skipped, warning
from yurt.errors import YurtError
from yurt.model.context_check import nearest
from yurt.store.connection import check as check_index
from yurt.transport import sockets

LEAST_FREE = 1 << 30
VARIABLES = {
    "YURT_CONFIG_HOME",
    "YURT_DATA_HOME",
    "YURT_RUNTIME_DIR",
    "YURT_CONTEXT",
    "YURT_CLOCKS",
    "YURT_PLAIN",
    "YURT_LAB",
    "YURT_LAB_ROOTS",
    "YURT_LOCAL_CPUS",
    "YURT_LOCAL_GPUS",
    "YURT_TEST_HOME",
    "YURT_NODE_PYTHON",
}
"""The variables that yurt and its test suite read, besides those of settings."""
OF_RUNS = (
    *("RUN_ID", "RUN_DIR", "RUN_NAME", "OUTPUTS", "CHECKPOINTS", "RESTARTS", "SWEEP_ID", "TASK_INDEX", "PARAM"),
    "STAGE",
)
"""The variables that a run gets begin with one of these after `YURT_`."""


def examine() -> Examined:
    """Examine this machine. Changes nothing."""
    found = [*programs.check(), *keys.check(), *_ssh_config(), *_files(), *_index(), *_contexts(), *_environment()]
    return Examined(context="", findings=found)


def _ssh_config() -> Iterator[Finding]:
    if shutil.which("ssh") is None:
        return
    done = keys.run(["ssh", "-G", "yurt.invalid"])
    if done is None:
        remedy = "look for `Match exec` in ~/.ssh/config; `ssh -G HOST` runs its command"
        yield fault("ssh config", "ssh does not read its configuration within 10 s", remedy)
    elif done.returncode:
        reason = next(iter(done.stderr.strip().splitlines()), "")
        remedy = "correct ~/.ssh/config; `ssh -G HOST` shows the error"
        yield fault("ssh config", "ssh rejects its configuration", remedy, detail=reason)
    else:
        yield ok("ssh config", "ssh can read its configuration")
    try:
        yield ok("sockets", "the folder for connection sockets is private", str(sockets.folder()))
    except YurtError as error:
        yield fault("sockets", "the folder for connection sockets is not usable", error.hint, detail=error.message)


def _files() -> Iterator[Finding]:
    """Check the modes of yurt's folders and files, whether they are writable, and the free space."""
    for name, folder in (("config", paths.config_home()), ("data", paths.data_home())):
        check = f"{name} folder"
        typed = paths.as_typed(folder)
        if not folder.exists():
            yield skipped(check, f"{typed} does not exist yet")
            continue
        if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
            yield fault(check, f"{typed} is not readable and writable", f"check it with `ls -ld {typed}`")
            continue
        wrong = list(_open_paths(folder))
        for path in wrong:
            mode = "700" if path.is_dir() else "600"
            text = f"{paths.as_typed(path)}: other users can read or change it"
            yield warning(check, text, f"run `chmod {mode} {paths.as_typed(path)}`", fix=chmod(mode, str(path)))
        free = shutil.disk_usage(folder).free
        if free < LEAST_FREE:
            remedy = "free some space on this machine; `yurt prune` does not help: it removes files of sites"
            yield warning(check, f"{typed} has {free >> 20} MB of free space", remedy)
        elif not wrong:
            yield ok(check, f"{typed} is private and writable")


def _open_paths(folder: Path) -> Iterator[Path]:
    """Yield the folder and the files directly in it that have a mode for other users."""
    for path in (folder, *sorted(folder.iterdir())):
        about = path.lstat()
        if path != folder and not stat.S_ISREG(about.st_mode):
            continue
        if about.st_mode & 0o077 and about.st_uid == os.getuid():
            yield path


def _index() -> Iterator[Finding]:
    file = paths.data_home() / "yurt.db"
    if not os.access(file, os.F_OK):  # Path.exists fails if the folder is not readable
        yield skipped("run index", "there is no run yet")
        return
    try:
        check_index(str(file))
        store = folders.store()
        names = store.contexts_of_unfinished()
        saved = {name: len(store.outbox(name)) for name in names}
    except YurtError as error:
        yield fault("run index", "the run index cannot be used", error.hint, detail=error.message)
        return
    yield ok("run index", "the run index is intact")
    for name, count in saved.items():
        if count:
            text = f"runs that are saved and not submitted yet: {count}"
            remedy = "run `yurt agent once` to submit them; `yurt ps` shows the reason if that fails"
            yield warning("saved runs", text, remedy, detail=name)


def _contexts() -> Iterator[Finding]:
    file = contexts.default_file()
    try:
        found = contexts.load(file)
    except YurtError as error:
        yield fault("contexts", "contexts.yaml cannot be used", error.hint, detail=error.message)
        return
    names = sorted(found.invalid)
    for name, why in zip(names, contexts.all_invalid(file, names), strict=True):
        yield fault("contexts", "a context is invalid", f"run `yurt context edit {name}`", detail=why.message)
    if not found.invalid:
        yield ok("contexts", f"contexts.yaml is valid: {len(found.contexts)} contexts")


def _environment() -> Iterator[Finding]:
    known = VARIABLES | {f"YURT_{key.upper()}" for key in KEYS if key not in FIXED}
    for name in sorted(os.environ):
        if name.startswith("YURT_") and name not in known and not name[5:].startswith(OF_RUNS):
            near = nearest(name, sorted(known))
            hint = f"if you mean {near}, correct the name; otherwise " if near else ""
            yield warning("variables", "yurt does not know a variable", f"{hint}run `unset {name}`", detail=name)
    if locale.getpreferredencoding(False).lower().replace("-", "") not in ("utf8", "utf8mb4"):
        remedy = "set a UTF-8 locale: `export LC_ALL=C.UTF-8`"
        yield warning("locale", "the locale of this terminal is not UTF-8", remedy)
