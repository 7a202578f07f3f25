"""Submits an ordinary run on this machine, as place.sh does, without a program for each step.

Whatever is not ordinary, or fails, is left to place.sh: it is safe to repeat, and says what is wrong.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from yurt import private
from yurt.backends.job import module, script
from yurt.backends.local import own
from yurt.model import layout
from yurt.model.run import Plan


def place(plan: Plan, nonce: str, files: Mapping[str, bytes], options: Sequence[str]) -> str:
    """Make the run folder and start the process of the run; return its id, or nothing if place.sh must do it.

    `files` are those of the run folder; `options`, the arguments of `launch` in launch.sh.
    """
    run, project = Path(plan.run.folder), Path(plan.project_folder)
    try:
        if not own.surely_own([*layout.chain(plan.run.folder), *script.used(plan)]) or run.exists():
            return ""
        if not _has_code(plan) or not _has_modules(plan):
            return ""
        aside = project / "incoming" / f"{plan.run.id}.{nonce}"
        _make_folder(aside, run, {**files, layout.CODE: f"{plan.run.code.tree}\n".encode()})
        if plan.run.code.tree and not os.path.isdir(layout.snapshot(plan.project_folder, plan.run.code.tree)):
            return ""  # it was removed before the run folder kept it
        return _launch(run, nonce, options)
    except (OSError, ValueError):
        return ""


def _has_code(plan: Plan) -> bool:
    """Return whether the checkout exists and its files are as they were uploaded; if so, it is not removed soon."""
    tree = plan.run.code.tree
    if not tree:
        return True
    checkout = layout.snapshot(plan.project_folder, tree)
    os.utime(checkout)
    lists = f"{plan.project_folder}/snapshots/.{tree}"
    return os.path.exists(f"{lists}.folders") and _is_unchanged(checkout, lists)


def _has_modules(plan: Plan) -> bool:
    folder = layout.module(plan.project_folder, module.name(module.needed(plan.run)))
    above, _, name = folder.rpartition("/")
    return _is_unchanged(folder, f"{above}/list-{name}", left_out=b"__pycache__")


def _is_unchanged(folder: str, saved: str, left_out: bytes = b"") -> bool:
    """Return whether the files of a folder are as in a list of `list_files` in unchanged.sh."""
    with open(saved, "rb") as file:
        expected = file.read().split(b"\0")
    return sorted(_entries(os.fsencode(folder), b"", left_out)) == sorted(expected[:-1])


def _entries(folder: bytes, below: bytes, left_out: bytes) -> list[bytes]:
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name == left_out:
                continue
            name = below + entry.name
            seen = entry.stat(follow_symlinks=False)
            mode = b"%o" % (seen.st_mode & 0o7777)
            if entry.is_symlink():
                found.append(b"l %s %s" % (os.readlink(entry.path), name))
            elif entry.is_dir(follow_symlinks=False):
                found.append(b"d %s %s" % (mode, name))
                found += _entries(entry.path, name + b"/", left_out)
            elif entry.is_file(follow_symlinks=False):
                seconds, rest = divmod(seen.st_mtime_ns, 10**9)
                found.append(b"f %s %d %d.%09d0 %s" % (mode, seen.st_size, seconds, rest, name))
            else:
                raise ValueError(f"{entry.path!r} is neither a file nor a folder")
    return found


def _make_folder(aside: Path, run: Path, files: Mapping[str, bytes]) -> None:
    """Make the run folder, complete or not at all."""
    try:
        private.make_folder(aside)
        private.make_folder(run.parent)
        for name, content in files.items():
            private.write(aside / name, content)
        try:
            os.link(aside / layout.CODE, aside / ".link")
            os.unlink(aside / ".link")
        except OSError:
            private.write(aside / layout.NO_LINKS, b"")
        aside.rename(run)
    except OSError:
        shutil.rmtree(aside, ignore_errors=True)
        raise


def _launch(run: Path, nonce: str, options: Sequence[str]) -> str:
    """Start the process of a run and return its id; nothing if it did not start, or the run was cancelled before."""
    if any((run / name).exists() for name in layout.written(layout.WINNER)):
        return ""
    python, program, *arguments = options
    with open(run / layout.ERR_LOG, "ab", opener=private.opener) as errors:
        started = subprocess.run(
            [python, "-I", "-S", "-c", program, *arguments, run.name, nonce, ""],
            cwd=run,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
            check=False,
        )
    job = ""
    with suppress(UnicodeDecodeError):
        job = started.stdout.decode().strip()
    return job if started.returncode == 0 and job.isdigit() else ""
