"""Runs in a container, with a real Apptainer on alpha. Its image is a folder with busybox."""

from __future__ import annotations

import secrets
import subprocess
from collections.abc import Callable

import pytest

from tests.lab.conftest import Ssh
from tests.laptop import Laptop
from yurt.lab import Lab
from yurt.testing.waiting import eventually

pytestmark = pytest.mark.lab

FOLDER = "/lustre/scratch/alice/images"
IMAGE = f"{FOLDER}/box"
MAKE = f"""
set -e
rm -rf {FOLDER} && mkdir -p {IMAGE} && cd {IMAGE} && mkdir -p bin etc dev proc sys tmp var/tmp
echo junk > {FOLDER}/junk.sif
touch etc/passwd etc/group
cp /bin/busybox bin && for name in sh echo pwd cat env sleep; do ln -s busybox bin/$name; done
for library in $(ldd /bin/busybox | grep -o '/[^ ]*'); do mkdir -p .${{library%/*}} && cp -L $library .$library; done
"""


@pytest.fixture(scope="module")
def ssh(lab: Lab, apptainer: Callable[[str], None]) -> Ssh:
    """ssh to a cluster with Apptainer and an image."""
    apptainer("alpha")
    found = Ssh(lab)
    found("alpha", MAKE)
    return found


@pytest.fixture
def in_container(laptop: Laptop, ssh: Ssh) -> Callable[..., dict[str, object]]:
    """A function that runs a command in a container and waits for it; its result includes the text of the logs."""

    def run(image: str, *command: str) -> dict[str, object]:
        row = laptop.ended(laptop.run("alpha", "--container", image, *command)["run"]["id"])
        return {**row, "out": laptop.quick("logs", row["id"]).out}

    return run


InContainer = Callable[..., dict[str, object]]


def test_a_command_in_a_container(in_container: InContainer) -> None:
    script = (
        'echo in $(cat /etc/motd 2> /dev/null || echo busybox); pwd; echo $YURT_PARAM_X; echo x > "$YURT_OUTPUTS/x"'
    )
    row = in_container(IMAGE, "sh", "-c", script)
    assert row["state"] == "completed"
    first, folder, *_rest = str(row["out"]).splitlines()
    assert first == "in busybox" and folder == f"{row['folder']}/work"


@pytest.mark.parametrize(
    ("image", "command", "reason"),
    [
        (f"{FOLDER}/none.sif", "true", f"container image {FOLDER}/none.sif not found"),
        (f"{FOLDER}/junk.sif", "true", f"{FOLDER}/junk.sif is not a container image"),
        (IMAGE, "no-such-program", f"command 'no-such-program' not found in container image {IMAGE}"),
        (IMAGE, "/no/such program", f"command '/no/such program' not found in container image {IMAGE}"),
        (IMAGE, "/etc", "the container did not start: is a directory"),
        (
            "docker://10.77.1.2:9/torch",  # nothing listens on that port
            "true",
            "the registry of container image docker://10.77.1.2:9/torch is unreachable from this node",
        ),
    ],
    ids=["image", "no image", "command", "path", "folder", "registry"],
)
def test_the_reason(in_container: InContainer, image: str, command: str, reason: str) -> None:
    row = in_container(image, command)
    assert (row["state"], row["exit_code"], row["signal"], row["reason"]) == ("failed", 255, None, reason)


def test_a_command_that_exits_with_the_same_code(in_container: InContainer) -> None:
    row = in_container(IMAGE, "sh", "-c", "echo 'error: FATAL: mine' >&2; exit 255")
    assert (row["exit_code"], row["reason"]) == (255, "exit code 255")


def test_a_command_killed_by_a_signal(in_container: InContainer) -> None:
    assert in_container(IMAGE, "sh", "-c", "kill -9 $$")["reason"] == "killed by signal 9 (KILL)"


@pytest.mark.parametrize("options", [["--ntasks", "2"], ["--grid", "n=1,2"]], ids=["srun", "sweep"])
def test_the_reason_of_several(laptop: Laptop, ssh: Ssh, options: list[str]) -> None:
    run = laptop.run("alpha", "--container", f"{FOLDER}/none.sif", *options, "true")["run"]["id"]
    assert laptop.ended(run)["state"] == "failed"
    shown = laptop.quick("show", run if "--ntasks" in options else f"{run}.1", "--json").json["data"]
    assert shown["status"]["reason"] == f"container image {FOLDER}/none.sif not found"


def test_cancel_leaves_nothing(laptop: Laptop, ssh: Ssh) -> None:
    mark = f"sleep {secrets.randbelow(10**9) + 10**6}"
    run = laptop.run("alpha", "--container", IMAGE, "sh", "-c", f"echo begun; {mark} & wait")["run"]["id"]
    eventually(lambda: laptop.quick("logs", run).out == "begun\n" and running(mark))
    assert laptop.quick("cancel", run).code == 0
    assert laptop.ended(run)["state"] == "cancelled"
    eventually(lambda: not running(mark))


def running(command: str) -> bool:
    """Return whether a process with this command line runs on any host of the lab."""
    return subprocess.run(["pgrep", "-x", "-f", command], capture_output=True, check=False).returncode == 0
