"""`make lint`: runs all static checks, several at a time, even if one fails."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile

from yurt.backends import scripts
from yurt.backends.job import script
from yurt.backends.shell import doctor
from yurt.backends.slurm import queries
from yurt.model.run import After, Plan, RestartPolicy, Run, Setup, Stage, StageOutput
from yurt.transport import base, tar

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent
CHECKS = (
    ("ruff", "check", "--quiet", "."),
    ("ruff", "format", "--check", "--quiet", "."),
    ("lint-imports", "--no-logo"),
)

PARTIAL_SCRIPT = "SC2034,SC2119,SC2120,SC2154"
"""shellcheck's codes for names that another part of the same script sets or uses."""


def main() -> int:
    with types() as failed:
        return int(quick() | failed())


@contextmanager
def types() -> Iterator[Callable[[], bool]]:
    """Check all types in the background, which takes longest; yield what waits and says if that failed."""
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(check, "mypy", [str(BIN / "mypy")], None).result


def quick() -> bool:
    """Run all other checks, several at a time; return whether one failed."""
    with ThreadPoolExecutor(max_workers=max(2, os.cpu_count() or 1)) as pool:
        return any(list(pool.map(lambda each: check(*each), checks())))


def checks() -> Iterator[tuple[str, list[str], str | None]]:
    """Yield name, command and input of each check."""
    for program, *arguments in CHECKS:
        yield f"{program} {' '.join(arguments)}", [str(BIN / program), *arguments], None
    yield "portability", [sys.executable, "-m", "tools.portability"], None
    if shutil.which("shellcheck") is None:
        print("lint: SKIPPED shellcheck: it is not installed (Debian package: shellcheck)")
        return
    for shell, names in files().items():
        yield f"shellcheck of {len(names)} {shell} files", shellcheck(shell, "-e", PARTIAL_SCRIPT, *names), None
    for name, text in complete_scripts():
        yield f"shellcheck of {name}", shellcheck("sh", "-"), text


def changed(paths: list[str]) -> bool:
    """Check files that changed with ruff and shellcheck; return whether a check failed."""
    there = [path for path in paths if (ROOT / path).is_file() and not path.startswith("tests/fixtures/")]
    python = [path for path in there if path.endswith(".py")]
    found: list[tuple[str, list[str]]] = []
    if python:
        found.append((f"ruff check of {len(python)} files", [str(BIN / "ruff"), "check", "--quiet", *python]))
        argv = [str(BIN / "ruff"), "format", "--check", "--quiet", *python]
        found.append((f"ruff format of {len(python)} files", argv))
    if shutil.which("shellcheck"):
        for shell, names in files().items():
            if mine := sorted(set(names) & set(there)):
                argv = shellcheck(shell, "-e", PARTIAL_SCRIPT, *mine)
                found.append((f"shellcheck of {len(mine)} {shell} files", argv))
    results = [check(name, argv, None) for name, argv in found]
    return any(results)


@contextmanager
def types_of(paths: list[str], until: float) -> Iterator[Callable[[], bool]]:
    """Check types in changed files in the background, if mypy has a cache; yield what waits and says if that failed."""
    python = [path for path in paths if path.endswith(".py") and (ROOT / path).is_file()]
    if not python or not (ROOT / ".mypy_cache").exists():
        if python:
            print("lint: left out mypy: without a cache it takes too long; run `make lint`", flush=True)
        yield lambda: False
        return
    with TemporaryFile("w+") as output:
        argv = [str(BIN / "mypy"), *python]
        process = subprocess.Popen(argv, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT)

        def failed() -> bool:
            try:
                code = process.wait(max(1.0, until - time.time()))
            except subprocess.TimeoutExpired:
                print("lint: mypy was stopped, it takes too long; run `make lint`", flush=True)
                return False
            output.seek(0)
            print(f"lint: mypy of {len(python)} files: {'FAILED' if code else 'ok'}", flush=True)
            if code:
                print(output.read(), flush=True)
            return code != 0

        try:
            yield failed
        finally:
            process.kill()
            process.wait()


def check(name: str, argv: list[str], text: str | None) -> bool:
    """Run one check and print its result; return whether it failed."""
    done = subprocess.run(argv, cwd=ROOT, input=text, capture_output=True, text=True, check=False)
    result = f"lint: {name.strip()}: {'ok' if done.returncode == 0 else 'FAILED'}\n"
    sys.stdout.write(result if done.returncode == 0 else f"{result}{done.stdout}{done.stderr}\n")
    sys.stdout.flush()
    return done.returncode != 0


def shellcheck(shell: str, *arguments: str) -> list[str]:
    return ["shellcheck", "-f", "gcc", "-s", shell, *arguments]


def files() -> dict[str, list[str]]:
    """Return the repository's shell scripts by shell: bash if the first line names it, otherwise sh.

    Skips golden files: they contain only the first part of job.sh.
    """
    listed = subprocess.run(["git", "ls-files", "*.sh"], cwd=ROOT, capture_output=True, text=True, check=True)
    found: dict[str, list[str]] = {"sh": [], "bash": []}
    for name in listed.stdout.split():
        if "/golden/" not in name and (ROOT / name).exists():
            first = (ROOT / name).read_text().partition("\n")[0]
            found["bash" if "bash" in first else "sh"].append(name)
    return found


def complete_scripts() -> Iterator[tuple[str, str]]:
    """Yield name and text of scripts assembled from several parts, as they are sent to a site."""
    for kind in ("local", "slurm"):
        yield f"job.sh ({kind})", job(kind)
        launcher = scripts.text("launch.sh", kind)
        text = script.gate() + scripts.receiver() + launcher + script.placer()
        yield f"the submit script ({kind})", text
    yield "the poll script (slurm)", script.gate() + queries.poll_script()
    yield "the doctor script (slurm)", doctor.script(slurm=True)
    for name, text in (("PUT", base.PUT), ("GET", base.GET), ("LIST", tar.LIST), ("SEND", tar.SEND)):
        yield f"the {name} script of hosts", text


def job(kind: str) -> str:
    """Return a job.sh that uses all features of a run; for Slurm, that of a sweep."""
    run = Run(
        id="1nfjkdg-9k3rq",
        context="big",
        context_type=kind,
        project="p",
        source="/p",
        created=0,
        command=["train"],
        folder="/base/projects/p/runs/1nfjkdg-9k3rq",
        tasks=3 if kind == "slurm" else 0,
        restart_policy=RestartPolicy(max_requeues=2, retries=2, retry_errors=True),
        after=[After(run="1nfjkdg-8k3rq", folder="/base/projects/p/runs/1nfjkdg-8k3rq")],
        secrets=["KEY"],
        stage=Stage(outputs=[StageOutput(name="tables")], seconds=60, kill_wait=30) if kind == "slurm" else None,
    )
    setup = Setup(modules=["python/3.11"], modules_init="/opt/lmod", venv="/venv", conda="torch", container="torch.sif")
    plan = Plan(run=run, project_folder="/base/projects/p", store="", words=[b"train"], setup=setup, use_srun=True)
    return script.job(plan, submitted_as="sbatch", next_start="sbatch --parsable" if kind == "slurm" else "")


if __name__ == "__main__":
    sys.exit(main())
