"""Containers that Pyxis starts: the image as Pyxis names it, the options of srun, and failures in words."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import msgspec
import pytest

from tests.backends.test_script import FACTS, by_hand
from yurt.backends import scripts
from yurt.backends.job import module
from yurt.lifecycle.plan.settle import pyxis_image
from yurt.model.facts import Facts, NodeFacts
from yurt.model.run import Setup


def site(*tools: str, node: str = "") -> Facts:
    on_node = NodeFacts(node="n1", probed_at=0, internet=False, ssh=False, tools={node: "/x"}) if node else None
    return msgspec.structs.replace(FACTS, tools=dict.fromkeys(tools, "/x"), node=on_node)


@pytest.mark.parametrize(
    ("image", "facts", "name"),
    [
        ("docker://ubuntu:22.04", site("pyxis"), "ubuntu:22.04"),
        ("ubuntu", site("pyxis"), "ubuntu"),
        ("docker://alice/study", site("pyxis"), "alice/study"),
        ("docker://docker.io/library/ubuntu", site("pyxis"), "library/ubuntu"),
        ("docker://nvcr.io/nvidia/pytorch:24.01", site("pyxis"), "nvcr.io#nvidia/pytorch:24.01"),
        ("docker://localhost:5000/mine", site("pyxis"), "localhost:5000#mine"),
        ("nvcr.io#nvidia/pytorch", site("pyxis", "apptainer"), "nvcr.io#nvidia/pytorch"),
        ("/images/torch.sqsh", site("pyxis", "apptainer"), "/images/torch.sqsh"),
        ("images/torch.sqsh", site("pyxis"), "./images/torch.sqsh"),
        ("docker://ubuntu", site("pyxis", "apptainer"), ""),
        ("docker://ubuntu", site("pyxis", node="singularity"), ""),
        ("/images/torch.sif", site("pyxis"), ""),
        ("oras://registry.example/torch", site("pyxis"), ""),
        ("docker://ubuntu", site("apptainer"), ""),
        ("docker://ubuntu", None, ""),
        ("", site("pyxis"), ""),
    ],
)
def test_the_image_as_pyxis_names_it(image: str, facts: Facts | None, name: str) -> None:
    assert pyxis_image(image, facts) == name


def test_the_probe_finds_pyxis(srun: Path) -> None:
    def tools() -> set[str]:
        text = re.search(r"^section tools\n.*?(?=\n\n)", scripts.text("probe.sh", "slurm"), re.DOTALL | re.MULTILINE)
        assert text is not None
        head = f'PATH={srun}/bin:$PATH; section() {{ :; }}; limited() {{ "$@"; }}\n'
        done = subprocess.run(["sh", "-c", head + text[0]], capture_output=True, text=True, check=True)
        return {line.split(" ")[0] for line in done.stdout.splitlines()}

    assert "pyxis" not in tools()
    (srun / "bin" / "srun").write_text("#!/bin/sh\necho '      --container-image=[USER@][REGISTRY#]IMAGE[:TAG]|PATH'\n")
    assert "pyxis" in tools()


@pytest.fixture
def srun(tmp_path: Path) -> Path:
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "srun"
    program.write_text('#!/bin/sh\nprintf "[%s]" "$@"\n')
    program.chmod(0o755)
    return tmp_path


def test_srun_starts_the_container(srun: Path) -> None:
    imports = srun / "node" / module.name()
    imports.mkdir(parents=True)
    setup = Setup(container="docker://torch", pyxis="torch")
    done = by_hand(srun, setup, "python", "a b", "", "$x", SLURM_CPUS_PER_TASK="4")
    assert done.stdout == (
        "[--cpus-per-task=4][--nodes=1][--ntasks=1][--container-image=torch]"
        f"[--container-mounts={srun}:{srun},{imports}:{imports}:ro][--container-workdir={srun}/work]"
        "[python][a b][][$x]"
    )


FAILED = """\
slurmstepd: error: pyxis: couldn't start container
slurmstepd: error: spank: required plugin spank_pyxis.so: task_init() failed with rc=-1
slurmstepd: error: Failed to invoke spank plugin stack
srun: error: n1: task 0: Exited with exit code 1
"""

IMPORT = """\
pyxis: importing docker image: study
slurmstepd: error: pyxis: child 12004 failed with error code: 1
slurmstepd: error: pyxis: failed to import docker image
slurmstepd: error: pyxis: printing enroot log file:
slurmstepd: error: pyxis:     [INFO] Querying registry for permission grant
slurmstepd: error: pyxis:     [ERROR] {}
"""

START = """\
slurmstepd: error: pyxis: container start failed with error code: 1
slurmstepd: error: pyxis: printing contents of log file ...
slurmstepd: error: pyxis:     {}
"""


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (
            IMPORT.format("URL https://registry.example/v2/study/manifests/1 returned error code: 401 Unauthorized"),
            "the registry has no container image IMAGE, or does not allow you to use it",
        ),
        (
            IMPORT.format("curl: (6) Could not resolve host: registry.example"),
            "the registry of container image IMAGE is unreachable from this node",
        ),
        (START.format("[ERROR] No such file or directory: /images/a.sqsh"), "container image IMAGE not found"),
        (START.format("[ERROR] Invalid image format: /images/a.sqsh"), "IMAGE is not a container image"),
        (
            START.format("enroot-switchroot: failed to execute: /bin/bash: No such file or directory"),
            "the container did not start: enroot-switchroot: failed to execute: /bin/bash: No such file or directory",
        ),
        (
            IMPORT.format("").replace("[ERROR] ", "mkdir: cannot create directory '/run/enroot': Permission denied"),
            "the container did not start: mkdir: cannot create directory '/run/enroot': Permission denied",
        ),
    ],
)
def test_why_the_container_did_not_start(tmp_path: Path, said: str, why: str) -> None:
    assert explained(tmp_path, said + FAILED) == why.replace("IMAGE", "docker://study")


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (
            "slurmstepd: error: execve(): trian: No such file or directory\nsrun: error: n1: task 0: exited\n",
            "command 'trian' not found in container image docker://study",
        ),
        (
            "srun: unrecognized option '--container-image=study'\nTry \"srun --help\" for more information\n",
            "srun on this node has no Pyxis, which starts container image docker://study",
        ),
        ("pyxis: importing docker image: study\npyxis: imported docker image: study\nValueError: x timed out\n", ""),
    ],
)
def test_other_failures(tmp_path: Path, said: str, why: str) -> None:
    assert explained(tmp_path, said) == why


def explained(folder: Path, said: str) -> str:
    (folder / "err.log").write_text(said)
    text = scripts.text("ending.sh", "job") + "container=docker://study\npyxis_failed\n"
    return subprocess.run(["sh", "-c", text], cwd=folder, capture_output=True, text=True, check=False).stdout.strip()
