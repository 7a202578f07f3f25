"""cancel: variables of Slurm in dotfiles do not mislead it, and it says so if a job is not seen ending."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.conftest import Ssh
from tests.laptop import Laptop
from yurt.backends import scripts
from yurt.backends.job import script
from yurt.lab import Lab
from yurt.testing.waiting import eventually

VARIABLES = (
    "SQUEUE_STATES=CD",
    "SQUEUE_PARTITION=none",
    "SQUEUE_FORMAT=%i",
    "SCANCEL_STATE=PENDING",
    "SCANCEL_USER=bob",
    "SACCT_FORMAT=JobID",
    "SLURM_TIME_FORMAT=relative",
    "SLURM_LABELIO=1",
    "SBATCH_ARRAY_INX=0-1",
    "SBATCH_WAIT=1",
    "SBATCH_EXPORT=NONE",
    "SBATCH_ERROR=elsewhere",
)
CLEAR = "env -u SQUEUE_STATES -u SQUEUE_PARTITION"
SQUEUE = """\
#!/bin/sh
echo "$*" >> queries
cat queue
"""
SCANCEL = """\
#!/bin/sh
[ ! -e works ] || sed -i 's/RUNNING/COMPLETING/' queue
"""


@pytest.fixture
def dotfiles(lab: Lab) -> Iterator[Ssh]:
    ssh = Ssh(lab)
    ssh("alpha", "cp ~/.bashrc ~/.bashrc.was 2> /dev/null || : > ~/.bashrc.was")
    try:
        yield ssh
    finally:
        ssh(
            "alpha",
            "mv -f ~/.bashrc.was ~/.bashrc; rm -rf ~/bin; unset SCANCEL_STATE SCANCEL_USER; /usr/bin/scancel -u alice",
        )


def lead(ssh: Ssh, text: str) -> None:
    ssh("alpha", f"{{ printf '%s\\n' '{text}'; cat ~/.bashrc.was; }} > ~/.bashrc")


def started(laptop: Laptop, *words: str) -> str:
    run: str = laptop.run("alpha", "--time", "5m", *words, "sleep", "300")["run"]["id"]
    eventually(lambda: laptop.row(run)["state"] == "running")
    return run


@pytest.mark.lab
def test_variables_in_dotfiles(laptop: Laptop, dotfiles: Ssh) -> None:
    lead(dotfiles, "\n".join(f"export {each}" for each in (*VARIABLES, "SBATCH_TIMELIMIT=7")))
    laptop.environment["CANARY"] = "a secret"
    runs = [
        started(laptop, "--secret", "CANARY"),
        laptop.run("alpha", "--grid", "n=1..2", "sh", "-c", "sleep 300")["run"]["id"],
    ]
    assert laptop("shell", runs[0], "--", "echo", "hello").out.splitlines()[-1] == "hello"
    laptop.quick("context", "probe", "alpha")
    planned = laptop("-v", "--context", "alpha", "run", "--dry-run", "true").out
    assert "# SBATCH_TIMELIMIT: 7 (environment on alpha" in planned and "# SBATCH_WAIT" not in planned
    jobs = dotfiles("alpha", f"{CLEAR} squeue -h -u alice -o '%j %l'")
    assert f"yurt-{runs[0]} 5:00" in jobs and f"yurt-{runs[1]}+0 7:00" in jobs, "an option of yurt comes first"
    assert laptop.quick("cancel", *runs).code == 0
    left = dotfiles("alpha", f"{CLEAR} squeue -h -u alice -t PD,R -o %j")
    assert not any(run in left for run in runs)


@pytest.mark.lab
def test_a_site_whose_queue_or_scancel_is_broken(laptop: Laptop, dotfiles: Ssh) -> None:
    run = started(laptop)
    lead(dotfiles, "export PATH=$HOME/bin:$PATH")
    for name, text, said in (
        ("squeue", "exit 0", "squeue printed no table)"),
        ("squeue", "echo slurm_load_jobs: 7 of 9 lost", "squeue printed no table"),
        ("scancel", "exit 0", f"the cancellation of {run} is not confirmed: Slurm still lists job"),
    ):
        dotfiles("alpha", f"rm -rf ~/bin; mkdir ~/bin; printf '#!/bin/sh\\n{text}\\n' > ~/bin/{name}; chmod +x ~/bin/*")
        if name == "squeue":  # or the job would end
            dotfiles("alpha", "printf '#!/bin/sh\\n' > ~/bin/scancel; chmod +x ~/bin/scancel")
        done = laptop.quick("cancel", run)
        assert done.code == 4 and said in done.out and "not cancelled yet" in done.out, done
        shown = laptop.quick("show", run, "--cached", "--json").json["data"]
        assert shown["status"]["state"] == "running"
        assert "running: you cancelled it, but its site has not confirmed that yet" in laptop.quick("show", run).out
    dotfiles("alpha", "rm -rf ~/bin")
    assert laptop.ended(run)["state"] == "cancelled", "the next command repeats it"


def cancelled(folder: Path, queue: str, works: bool, name: str = "cancel.sh") -> subprocess.CompletedProcess[str]:
    """Run a script that cancels the run x, with a Slurm that has this queue, and whose scancel may do nothing."""
    run, programs = folder / "runs" / "x", folder / "bin"
    for each in (run, programs):
        each.mkdir(parents=True, exist_ok=True)
    for program, text in {
        "squeue": SQUEUE,
        "scancel": SCANCEL,
        "scontrol": "#!/bin/sh\necho 'Invalid job id'\n",
    }.items():
        (programs / program).write_text(
            text.replace("queue\n", f"{folder}/queue\n").replace("works", f"{folder}/works")
        )
        (programs / program).chmod(0o755)
    (folder / "queue").write_text(queue)
    (run / "winner").write_text("cafe.7\n")
    if works:
        (folder / "works").touch()
    text = scripts.plain_slurm() + script.closer() + scripts.text("end_jobs.sh", "slurm") + scripts.text(name, "slurm")
    path = f"{programs}:/usr/bin:/bin"
    return subprocess.run(
        ["sh", "-c", text, "sh", str(run), "x"],
        input=f"x {run}\n",
        cwd=folder,
        env={"PATH": path, "SQUEUE_STATES": "CD"},
        capture_output=True,
        text=True,
        check=False,
    )


HEAD = "JOBID|STATE|NAME\n"
"""What squeue prints first."""


@pytest.mark.parametrize("name", ["cancel.sh", "cancel_runs.sh"])
def test_the_queue_is_read_again_until_the_job_ends(tmp_path: Path, name: str) -> None:
    done = cancelled(tmp_path, f"{HEAD}7|RUNNING|yurt-x\n8|RUNNING|other\n", works=True, name=name)
    assert (done.returncode, done.stdout.split()[-1]) == (0, "cafe.7"), done
    done = cancelled(tmp_path, "", works=True, name=name)
    assert done.returncode == 7 and "squeue printed no table" in done.stderr


def test_a_job_that_goes_on(tmp_path: Path) -> None:
    queue = f"{HEAD}7|RUNNING|yurt-x\n"
    done = cancelled(tmp_path, queue, works=False)
    assert (done.returncode, done.stdout, done.stderr) == (9, "", "7 RUNNING x\n")
    done = cancelled(tmp_path, queue, works=False, name="cancel_runs.sh")
    assert (done.returncode, done.stdout) == (0, ""), "cancel.sh tells why"
