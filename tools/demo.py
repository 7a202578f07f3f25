"""Shows yurt at work on this machine: a session typed for you, in a temporary folder, with nothing left behind."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
PATIENCE = 120
"""Seconds for one command."""

SESSION = (
    (
        "Run a training script and watch it. yurt takes the files of this folder as they are now.",
        ("yurt run -f train.py -- --lr 0.1",),
    ),
    (
        "Another one, in the background: your terminal is free meanwhile. yurt wait stays until it has ended.",
        ("yurt run train.py -- --lr 0.01", "yurt wait -"),
    ),
    (
        "All runs; then the newest one (-), the end of what it printed, and the file it wrote.",
        ("yurt ps", "yurt show -", "yurt logs --tail 5 -"),
    ),
)


def main() -> int:
    for program in ("git", "sh"):
        if shutil.which(program) is None:
            print(f"demo: there is no {program} on this machine, and yurt needs it", file=sys.stderr)
            return 1
    with tempfile.TemporaryDirectory(prefix="yurt-demo-", ignore_cleanup_errors=True) as home:
        print(f"A small neural network learns to read digits ({_short(ROOT / 'examples' / 'digits' / 'train.py')}),")
        print("on this machine: no cluster, no root. Your own runs and settings are not touched;")
        print(f"all of this is in {home}, which is removed at the end.")
        if code := _session(Path(home)):
            return code
    _say_what_next()
    return 0


def _session(home: Path) -> int:
    """Type everything; returns an exit code."""
    project, environment = home / "digits", _environment(home)
    shutil.copytree(ROOT / "examples" / "digits", project, ignore=shutil.ignore_patterns("model.json"))
    try:
        for about, commands in SESSION:
            print(f"\n{_painted('2', '# ' + about)}")
            for command in commands:
                if not _type(command, project, environment):
                    return 1
        newest = max(home.glob("data/projects/*/runs/*"), key=lambda folder: folder.name)
        return 0 if _type(f"ls -l {shlex.quote(str(newest / 'outputs'))}", project, environment) else 1
    except KeyboardInterrupt:
        argv = ["yurt", "--quiet", "cancel", "-"]
        subprocess.run(argv, cwd=project, env=environment, capture_output=True, timeout=PATIENCE, check=False)
        return 130


def _environment(home: Path) -> dict[str, str]:
    """The caller's, with this yurt first and none of the caller's settings of yurt."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("YURT_")}
    return {
        **kept,
        "PATH": f"{BIN}{os.pathsep}{kept.get('PATH', os.defpath)}",
        "YURT_CONFIG_HOME": str(home / "config"),
        "YURT_DATA_HOME": str(home / "data"),
    }


def _type(command: str, folder: Path, environment: dict[str, str]) -> bool:
    print(f"{_painted('32', '$')} {_painted('1', command)}", flush=True)
    try:
        done = subprocess.run(
            shlex.split(command),
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
            timeout=PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        print(f"demo: this took longer than {PATIENCE} s", file=sys.stderr)
        return False
    if done.returncode:
        print(f"demo: this failed, with exit code {done.returncode}", file=sys.stderr)
    return done.returncode == 0


def _painted(code: str, text: str) -> str:
    return f"\033[{code}m{text}\033[0m" if sys.stdout.isatty() and not os.environ.get("NO_COLOR") else text


def _short(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _say_what_next() -> None:
    as_root = "" if os.geteuid() == 0 else "sudo env PATH=$PATH "
    lines = (
        (f"export PATH={shlex.quote(str(BIN))}:$PATH", "yurt, in this terminal"),
        ("cd YOUR-PROJECT && yurt run -f YOUR-SCRIPT.py", "your own code, on this machine"),
        ("yurt context add big --slurm-url YOU@LOGIN-HOST", "your cluster: yurt looks at it and writes it down"),
        ("yurt run --context big --time 2h YOUR-SCRIPT.py", "the same run, there"),
        (f"{as_root}yurt lab up --install", "no cluster? two real ones on this machine (Linux, root)"),
    )
    width = max(len(typed) for typed, _about in lines)
    print(f"\n{_painted('1', 'What to type next')}")
    for typed, about in lines:
        print(f"  {typed:{width}}  {_painted('2', '# ' + about)}")
    print(f"More: {_short(ROOT / 'docs' / 'tutorial' / 'first-run.md')}, and yurt --help.")


if __name__ == "__main__":
    sys.exit(main())
