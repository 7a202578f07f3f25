"""`make demo`: runs a short session of yurt commands in a temporary folder and removes it afterwards."""

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
TIMEOUT = 120
"""Seconds for one command."""

SESSION = (
    (
        "Run a training script and follow its output. yurt runs a snapshot of the files in this folder.",
        ("yurt run -f train.py -- --lr 0.1",),
    ),
    (
        "Start another run in the background, then wait until it has finished.",
        ("yurt run train.py -- --lr 0.01", "yurt wait -"),
    ),
    (
        "List all runs. Then show the newest run (-), the end of its output, and the file it wrote.",
        ("yurt ps", "yurt show -", "yurt logs --tail 5 -"),
    ),
)


def main() -> int:
    for program in ("git", "sh"):
        if shutil.which(program) is None:
            print(f"demo: yurt needs {program}, which is not installed on this machine", file=sys.stderr)
            return 1
    with tempfile.TemporaryDirectory(prefix="yurt-demo-", ignore_cleanup_errors=True) as home:
        print(f"This demo trains a small neural network ({_short(ROOT / 'examples' / 'digits' / 'train.py')})")
        print("on this machine. It needs no cluster and no root, and does not touch your runs or settings.")
        print(f"All files are in {home}, which is removed at the end.")
        if code := _session(Path(home)):
            return code
    _print_next_steps()
    return 0


def _session(home: Path) -> int:
    """Run all commands; return an exit code."""
    project, environment = home / "digits", _environment(home)
    shutil.copytree(ROOT / "examples" / "digits", project, ignore=shutil.ignore_patterns("model.json"))
    try:
        for about, commands in SESSION:
            print(f"\n{_styled('2', '# ' + about)}")
            for command in commands:
                if not _run(command, project, environment):
                    return 1
        newest = max(home.glob("data/projects/*/runs/*"), key=lambda folder: folder.name)
        return 0 if _run(f"ls -l {shlex.quote(str(newest / 'outputs'))}", project, environment) else 1
    except KeyboardInterrupt:
        argv = ["yurt", "--quiet", "cancel", "-"]
        subprocess.run(argv, cwd=project, env=environment, capture_output=True, timeout=TIMEOUT, check=False)
        return 130


def _environment(home: Path) -> dict[str, str]:
    """Return the caller's environment without its YURT_ variables, and with this yurt first in PATH."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("YURT_")}
    return {
        **kept,
        "PATH": f"{BIN}{os.pathsep}{kept.get('PATH', os.defpath)}",
        "YURT_CONFIG_HOME": str(home / "config"),
        "YURT_DATA_HOME": str(home / "data"),
    }


def _run(command: str, folder: Path, environment: dict[str, str]) -> bool:
    """Print and run a command; return whether it succeeded."""
    print(f"{_styled('32', '$')} {_styled('1', command)}", flush=True)
    try:
        done = subprocess.run(
            shlex.split(command),
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
            timeout=TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        print(f"demo: `{command}` timed out after {TIMEOUT} s", file=sys.stderr)
        return False
    if done.returncode:
        print(f"demo: `{command}` failed with exit code {done.returncode}", file=sys.stderr)
    return done.returncode == 0


def _styled(code: str, text: str) -> str:
    return f"\033[{code}m{text}\033[0m" if sys.stdout.isatty() and not os.environ.get("NO_COLOR") else text


def _short(path: Path) -> str:
    """Return a path relative to the working directory if it is inside it."""
    cwd = Path.cwd()
    return str(path.relative_to(cwd) if path.is_relative_to(cwd) else path)


def _print_next_steps() -> None:
    as_root = "" if os.geteuid() == 0 else "sudo env PATH=$PATH "
    lines = (
        (f"export PATH={shlex.quote(str(BIN))}:$PATH", "use yurt in this terminal"),
        ("cd YOUR-PROJECT && yurt run -f YOUR-SCRIPT.py", "run your code on this machine"),
        ("yurt context add big --slurm-url YOU@LOGIN-HOST", "add your cluster as the context 'big'"),
        ("yurt run --context big --time 2h YOUR-SCRIPT.py", "run your code on the cluster"),
        (f"{as_root}yurt lab up --install", "no cluster? start two on this machine (Linux, root)"),
    )
    width = max(len(command) for command, _about in lines)
    print(f"\n{_styled('1', 'Next steps')}")
    for command, about in lines:
        print(f"  {command:{width}}  {_styled('2', '# ' + about)}")
    print(f"For more, read {_short(ROOT / 'docs' / 'tutorial' / 'first-run.md')} and run yurt --help.")


if __name__ == "__main__":
    sys.exit(main())
