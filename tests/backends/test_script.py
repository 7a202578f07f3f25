"""job.sh as it is uploaded, compared with golden files, which show reviewers what changes on users' clusters.

A golden file is the head of a job.sh and its data; below the head every job.sh is the same.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from yurt.backends import scripts
from yurt.backends.job import module, script
from yurt.config import facts as kept
from yurt.contexts import connect
from yurt.lifecycle.plan.plan import plan
from yurt.lifecycle.plan.request import Request
from yurt.model.context import Context, ContextResources
from yurt.model.facts import Facts, NodeKind, Partition
from yurt.model.run import Plan, RestartPolicy, Run, Setup

GOLDEN = Path(__file__).parent / "golden"
REWRITE = "REWRITE_GOLDEN"
SAME = "# From here on the script is the same for every run.\n"

FACTS = Facts(
    probed_at=0,
    user="alice",
    host="login",
    slurm_version="22.05.8",
    accounting=True,
    partitions=[
        Partition(
            name="main",
            default=True,
            max_minutes=1440,
            default_minutes=60,
            nodes=[NodeKind(count=2, cpus=8, memory_mb=8000, gpu_type="a100", gpus=2)],
        )
    ],
    variables={"HOME": "/home/alice", "SCRATCH": "/scratch/alice", "USER": "alice"},
    modules="lmod",
    modules_init="/opt/lmod",
)

BIG = Context(name="big", type="slurm", slurm_url="alice@big.example", storage_dir="$SCRATCH", partition="main")

SBATCH = """\
#!/bin/bash -e
#SBATCH --time=10 --mem=1G
#SBATCH -J mine
#SBATCH --comment="two words"  # a remark

echo "$1"
#SBATCH --too-late
"""


def with_(context: Context, **changes: object) -> Context:
    return msgspec.structs.replace(context, **changes)


CASES: dict[str, tuple[Context, Request]] = {
    "local": (
        Context(name="local", type="local"),
        Request(words=["train.py"], arguments=["--lr", "0.1"], name="a 'name'", flags={"time": "90s"}),
    ),
    "modules": (
        with_(
            BIG,
            modules_to_load=("python/3.11", "it's odd"),
            after_module_load_cmd="source ~/setup.sh\nulimit -c 0",
            venv="~/venvs/my torch",
            scratch_dir="short lived",
            variables={"GREETING": "it's $HOME\n`id`"},
            resources=ContextResources(cpu=4, gpu="a100:2", mem="4G"),
        ),
        Request(words=["train.py"], arguments=["--lr", "0.1"], params={"fast": True, "none": None, "l": [1, "b"]}),
    ),
    "container": (
        with_(BIG, conda="torch", container="$HOME/images/torch.sif", resources=ContextResources(gpu=1)),
        Request(words=["python", "-m", "pkg.train"], flags={"time": "0-12:00:00", "partition": "main"}, copy=True),
    ),
    "pyxis": (
        with_(BIG, container="docker://nvcr.io/nvidia/pytorch:24.01-py3", resources=ContextResources(gpu=1), ntasks=2),
        Request(words=["train.py"]),
    ),
    "sbatch": (
        with_(BIG, time="2h", account="lab", resources=ContextResources(cpu=2, mem="4G")),
        Request(words=["job.sbatch", "hello world"], flags={"time": "30m"}),
    ),
    "tasks": (with_(BIG, ntasks=4), Request(words=["./mpi", "$x"], flags={"sbatch_options": {"exclusive": None}})),
    "restarts": (
        BIG,
        Request(words=["train.py"], restart_policy=RestartPolicy(max_requeues=3), hold=True, snapshot=False),
    ),
}

TOOLS: dict[str, dict[str, str]] = {"pyxis": {"pyxis": "/usr/bin/srun"}}
"""Programs that the site of a case has."""


class Made(NamedTuple):
    script: str
    data: bytes
    params: bytes


@pytest.fixture
def made(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Made:
    """A plan with stable ids, paths and code."""
    context, asked = CASES[request.param]
    monkeypatch.setenv("YURT_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("YURT_DATA_HOME", str(tmp_path / "data"))
    project = tmp_path / "proj"
    project.mkdir()
    for name, text in {"train.py": "pass\n", "job.sbatch": SBATCH}.items():
        (project / name).write_text(text)
        (project / name).chmod(0o644)
    monkeypatch.chdir(project)
    kept.save(context, msgspec.structs.replace(FACTS, probed_at=time.time(), tools=TOOLS.get(request.param, {})))
    found = plan(context, asked).plan
    files = connect.backend(context).runs.preview(found).files

    def stable(text: str) -> str:
        text = text.replace(found.run.id, "1nfjkdg-9k3rq").replace(found.run.project, "proj-0000")
        return text.replace(str(tmp_path), "/home/me").replace(module.name(), "MODULE")

    return Made(stable(files["job.sh"].decode()), stable(files["data"].decode()).encode(), files["params.json"])


def head(text: str) -> str:
    return text.partition(SAME)[0] + SAME


@pytest.mark.parametrize("made", CASES, indirect=True)
def test_golden_files(made: Made, request: pytest.FixtureRequest) -> None:
    name = request.node.callspec.id
    for kind, content in (("sh", head(made.script).encode()), ("data", made.data), ("json", made.params)):
        file = GOLDEN / f"{name}.{kind}"
        if os.environ.get(REWRITE):
            file.write_bytes(content)
        assert file.is_file() and content == file.read_bytes(), (
            f"if the change is intended: {REWRITE}=1 pytest {__file__}"
        )


@pytest.mark.parametrize("made", CASES, indirect=True)
def test_below_the_head_all_are_the_same(made: Made) -> None:
    assert made.script == head(made.script) + script.below_the_head()


def test_there_is_a_case_for_each_golden_file() -> None:
    assert {file.stem for file in GOLDEN.iterdir()} == set(CASES)


@pytest.mark.parametrize("shell", ["sh", "bash", "dash", "bash --posix"])
@pytest.mark.parametrize("made", CASES, indirect=True)
def test_shells_understand_it(made: Made, shell: str) -> None:
    for text in (made.script.encode(), made.data):
        done = subprocess.run([*shell.split(), "-n"], input=text, capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, b"")


def test_sbatch_finds_only_the_lines_of_the_users_script(tmp_path: Path) -> None:
    """sbatch reads #SBATCH lines up to the first command: no value of the user may add one."""
    run = Run(
        id="1nfjkdg-9k3rq",
        context="big",
        context_type="slurm",
        project="p",
        source="/p",
        created=0,
        command=["echo", "a\n#SBATCH --exclusive\r#SBATCH -N9\u2028#SBATCH --x"],
        folder="/a\n#SBATCH --evil",
    )
    lines = ["#SBATCH --mem=1G"]
    made = Plan(run=run, project_folder="", store="", words=[b"echo"], native_lines=lines)
    text = script.job(made, submitted_as="x\n#SBATCH --evil")
    comments = []
    for line in text.split("\n"):
        if line and not line.startswith("#"):
            break
        comments.append(line)
    assert [line for line in comments if line.startswith("#SBATCH")] == lines


CONDA = """\
#!/bin/sh
# the part of conda that job.sh uses: a hook that defines a shell function of the same name
[ "$1 $2" = "shell.posix hook" ] || exit 1
echo 'conda() { [ "$1 $2" = "activate torch" ] && export CONDA_DEFAULT_ENV=$2; }'
"""

APPTAINER = '#!/bin/sh\nfor word in "$@"; do printf "[%s]" "$word"; done\n'


def by_hand(folder: Path, setup: Setup, *argv: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `sh job.sh` in a run folder, with `folder/bin` first in PATH."""
    run = Run(
        id="r",
        context="local",
        context_type="local",
        project="p",
        source="/p",
        created=0,
        command=["x"],
        folder=str(folder),
    )
    words = [word.encode() for word in argv]
    project = f"{folder}/projects/p"
    made = Plan(run=run, project_folder=project, store="", words=words, setup=setup, variables={"MINE": b"my value"})
    (folder / "job.sh").write_text(script.job(made, submitted_as="x"))
    (folder / "data").write_bytes(script.data(made))
    path = f"{folder}/bin:{os.environ['PATH']}"
    return subprocess.run(
        ["sh", str(folder / "job.sh")],
        env={**os.environ, "PATH": path, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    (tmp_path / "bin").mkdir()
    for name, text in {"conda": CONDA, "apptainer": APPTAINER}.items():
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    return tmp_path


def test_an_environment_is_made_in_order(programs: Path) -> None:
    (programs / "init").mkdir()
    (programs / "init" / "sh").write_text('module() { echo "$*"; [ "$2" != missing ]; }\n')
    venv = programs / "my venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin" / "activate").write_text('echo "venv $LINE"\n')
    (venv / "bin" / "python").symlink_to(sys.executable)
    setup = Setup(
        modules=["cuda/12", "two words"],
        modules_init=str(programs),
        after_modules="LINE=$MINE\r\necho after",
        venv=str(venv),
        conda="torch",
    )
    done = by_hand(programs, setup, "sh", "-c", 'echo "$CONDA_DEFAULT_ENV in $PWD"')
    assert done.stdout.splitlines() == [
        "load cuda/12",
        "load two words",
        "after",
        "venv my value",
        f"torch in {programs}/work",
    ]
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("setup", "message"),
    [
        (Setup(venv="/no/venv"), "yurt: virtual environment /no/venv not found\n"),
        (Setup(conda="other"), "yurt: conda environment other not found, or not usable\n"),
        (Setup(modules=["no/such"]), "yurt: (module no/such not found|command 'module' not found on this node)\n"),
    ],
)
def test_an_environment_that_does_not_exist(programs: Path, setup: Setup, message: str) -> None:
    done = by_hand(programs, setup, "echo", "started")
    assert done.returncode == 78 and done.stdout == ""
    assert re.search(message, done.stderr)


def test_a_container_gets_the_command_as_it_is(programs: Path) -> None:
    done = by_hand(programs, Setup(container="docker://torch"), "echo", "a b", "", "$x")
    work = f"{programs}/work"
    assert done.stdout == (f"[exec][--bind][{programs}][--pwd][{work}][docker://torch][echo][a b][][$x]")


def test_the_module_for_python_is_in_the_container_too(programs: Path) -> None:
    imports = programs / "node" / module.name()
    imports.mkdir(parents=True)
    (programs / "bin" / "apptainer").write_text(APPTAINER + 'echo; echo "$PYTHONPATH"\n')
    done = by_hand(programs, Setup(container="torch.sif"), "echo", PYTHONPATH="/mine:")
    bound = f"[exec][--bind][{programs}][--bind][{imports}][--pwd][{programs}/work][torch.sif][echo]"
    assert done.stdout.splitlines() == [bound, f"/mine::{imports}"]


def test_a_container_without_an_engine(programs: Path) -> None:
    (programs / "bin" / "apptainer").unlink()
    done = by_hand(programs, Setup(container="torch.sif"), "echo", "started")
    assert (done.returncode, done.stdout) == (78, "")
    assert done.stderr == "yurt: neither apptainer nor singularity found on this node\n"


@pytest.mark.parametrize("shell", ["bash", "dash"])
@pytest.mark.parametrize("links", [True, False])
def test_write_once_keeps_one_of_many_texts(tmp_path: Path, shell: str, links: bool) -> None:
    if not links:
        (tmp_path / "no-links").touch()
    text = script.gate() + 'me=$1; write_once winner "text of $1"\n'
    racers = [
        subprocess.Popen([shell, "-c", text, "put", str(number)], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
        for number in range(16)
    ]
    answers = [racer.communicate()[0] for racer in racers]
    assert len(set(answers)) == 1 and re.fullmatch(r"text of \d+\n", answers[0])
    late = subprocess.run([shell, "-c", text, "put", "late"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert late.stdout == answers[0] and late.stderr == ""
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == (["winner"] if links else ["no-links", "winner.d"])


def test_the_process_of_the_command_has_the_functions_that_it_calls() -> None:
    """Its shell reads job.sh only up to inside.sh."""
    at = script.PARTS.index("inside.sh") + 1
    texts = {name: scripts.text(name, "job") for name in (*script.PARTS, "stage.sh")}
    late = {found for name in script.PARTS[at:] for found in re.findall(r"^(\w+)\(\) \{", texts[name], re.MULTILINE)}
    use_stage = re.search(r"^use_stage\(\) \{.*?^\}", texts["stage.sh"], re.MULTILINE | re.DOTALL)
    assert use_stage is not None and "is_cancelled" in late
    for text in (*(texts[name] for name in script.PARTS[:at]), use_stage[0]):
        lines = [re.split(r'(?:^|\s)#|"yurt: ', line)[0] for line in text.splitlines()]
        called = {word for line in lines for word in re.findall(r"(?<![\w@$./'-])\w+(?![\w=(.-])", line)}
        assert not called & late
