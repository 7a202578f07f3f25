"""Runs every static check; all of them, so that one run shows all there is to mend."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from yurt.backends import scripts
from yurt.backends.job import script
from yurt.hosts import base, tar
from yurt.model.run import After, Plan, RestartPolicy, Run, Setup

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent
CHECKS = (
    ("ruff", "check", "--quiet", "."),
    ("ruff", "format", "--check", "--quiet", "."),
    ("mypy",),
    ("lint-imports", "--no-logo"),
)


OF_OTHER_PARTS = "SC2034,SC2119,SC2120,SC2154"
"""What shellcheck finds where a file is one part of a script: names that the other parts set, or use."""


def main() -> int:
    failed = False
    for program, *arguments in CHECKS:
        failed |= check(f"{program} {' '.join(arguments)}", [str(BIN / program), *arguments])
    if shutil.which("shellcheck") is None:
        print("lint: LEFT OUT: shellcheck; it is the Debian package of this name")
        return int(failed)
    for shell, names in files().items():
        failed |= check(f"shellcheck of {len(names)} {shell} files", shellcheck(shell, "-e", OF_OTHER_PARTS, *names))
    for name, text in whole():
        failed |= check(f"shellcheck of {name}", shellcheck("sh", "-"), text)
    return int(failed)


def check(name: str, argv: list[str], text: str | None = None) -> bool:
    """Run one check and say what it found; True if something."""
    done = subprocess.run(argv, cwd=ROOT, input=text, capture_output=True, text=True, check=False)
    print(f"lint: {name.strip()}: {'ok' if done.returncode == 0 else 'FAILED'}", flush=True)
    if done.returncode:
        print(done.stdout + done.stderr)
    return done.returncode != 0


def shellcheck(shell: str, *arguments: str) -> list[str]:
    return ["shellcheck", "-f", "gcc", "-s", shell, *arguments]


def files() -> dict[str, list[str]]:
    """Every sh script in the repository, by its shell: the first line names bash, or it is for any sh.

    The heads of job.sh that tests compare are left out: without what follows them they are no scripts.
    """
    listed = subprocess.run(["git", "ls-files", "*.sh"], cwd=ROOT, capture_output=True, text=True, check=True)
    found: dict[str, list[str]] = {"sh": [], "bash": []}
    for name in listed.stdout.split():
        if "/golden/" not in name and (ROOT / name).exists():
            first = (ROOT / name).read_text().partition("\n")[0]
            found["bash" if "bash" in first else "sh"].append(name)
    return found


def whole() -> Iterator[tuple[str, str]]:
    """Scripts that are put together of several parts, as they are sent: name and text."""
    for kind in ("local", "slurm"):
        yield f"a job.sh ({kind})", job(kind)
        launcher = scripts.text("launch.sh", kind)
        yield f"a submission ({kind})", script.gate() + scripts.text("receive.sh") + "\n" + launcher + script.placer()
    yield "a look (slurm)", script.gate() + scripts.text("poll.sh", "slurm")
    for name, text in (("PUT", base.PUT), ("GET", base.GET), ("LIST", tar.LIST), ("SEND", tar.SEND)):
        yield f"{name} of a host", text


def job(kind: str) -> str:
    """A job.sh with everything a run can ask for; on Slurm, that of a sweep."""
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
    )
    setup = Setup(modules=["python/3.11"], modules_init="/opt/lmod", venv="/venv", conda="torch", container="torch.sif")
    plan = Plan(run=run, project_folder="/base/projects/p", store="", words=[b"train"], setup=setup, use_srun=True)
    return script.job(plan, submitted_as="sbatch", next_start="sbatch --parsable" if kind == "slurm" else "")


if __name__ == "__main__":
    sys.exit(main())
