"""The upload of the module: complete or absent, created once, found by scripts on every kind of context."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.calls import Yurt
from tests.laptop import Laptop
from yurt.backends import scripts
from yurt.backends.job import module, script

SCRIPT = """\
import sys, yurt
yurt.log(step=1, loss=0.5)
print(yurt.params(), yurt.__file__, sys.path[0])
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project as the working directory, where `python` is one without yurt."""
    project, programs = tmp_path / "my project", tmp_path / "programs"
    project.mkdir()
    programs.mkdir()
    for name in ("python", "python3"):
        (programs / name).symlink_to(Path(sys.base_prefix, "bin", "python3"))
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    (project / "train.py").write_text(SCRIPT)
    monkeypatch.chdir(project)
    return project


def local_run(yurt: Yurt, *words: str, **more: Any) -> dict[str, Any]:
    done = yurt("--context", "local", "--json", "run", "--wait", *words, **more)
    found: dict[str, Any] = json.loads(done.out)["data"]
    assert found["status"]["state"] == "completed", (Path(found["run"]["folder"]) / "err.log").read_text()
    return found


def output_of(found: dict[str, Any]) -> str:
    return (Path(found["run"]["folder"]) / "out.log").read_text()


def test_a_script_written_for_mrunner(yurt: Yurt, here: Path) -> None:
    (here / "basic.py").write_bytes((Path(__file__).parents[1] / "fixtures" / "mrunner" / "basic.py").read_bytes())
    found = local_run(yurt, "basic.py", "--", "--param1", "3")
    rows = [json.loads(line) for line in (Path(found["run"]["folder"]) / "metrics.jsonl").read_text().splitlines()]
    assert [(row["step"], row["test channel1"]) for row in rows] == [(0, 0), (1, 1), (2, 2)]


def test_on_this_machine(yurt: Yurt, here: Path, tmp_path: Path) -> None:
    found = local_run(yurt, "train.py", "--", "--lr", "0.1")
    folder = tmp_path / "data" / "node" / module.name()
    assert output_of(found).startswith(f"{{'lr': 0.1}} {folder}/yurt/__init__.py")
    (line,) = (Path(found["run"]["folder"]) / "metrics.jsonl").read_text().splitlines()
    row = json.loads(line)
    assert (row["step"], row["loss"]) == (1, 0.5)
    files = {str(each.relative_to(folder)): each for each in folder.rglob("*") if each.is_file()}
    assert {name: each.read_bytes() for name, each in files.items()} == module.files()
    assert {each.stat().st_mode & 0o777 for each in (folder, folder / "yurt", folder / "yurt" / "node")} == {0o700}
    assert {each.stat().st_mode & 0o777 for each in files.values()} == {0o600}
    before = [each.stat().st_ino for each in files.values()]
    local_run(yurt, "train.py")
    assert [each.stat().st_ino for each in files.values()] == before, "the existing module was created again"
    assert {each.name for each in folder.parent.iterdir()} == {module.name(), f"list-{module.name()}"}


def test_the_users_own_path_comes_first(yurt: Yurt, here: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "yurt.py").write_text("log = lambda **more: None\nparams = lambda: 'mine'\n")
    found = local_run(yurt, "--var", f"PYTHONPATH={mine}", "train.py")
    assert output_of(found).startswith(f"mine {mine}/yurt.py")
    (here / "yurt.py").write_text("log = lambda **more: None\nparams = lambda: 'the project'\n")
    assert output_of(local_run(yurt, "train.py")).startswith("the project ")


def test_user_variables_with_names_of_job_sh(yurt: Yurt, here: Path) -> None:
    """A user's variable with the name of one in job.sh changes nothing."""
    assert output_of(local_run(yurt, "--var", "imports=/nowhere", "--var", "run=/nowhere", "train.py"))


def make(
    folder: Path, content: bytes, *, size: int | None = None, nonce: str = "n", before: str = ""
) -> subprocess.CompletedProcess[bytes]:
    """Run the part of place.sh that unpacks a parcel."""
    placer = script.placer()
    functions = scripts.text("unchanged.sh") + placer[placer.index("list_of()") : placer.index("make_folder()")]
    text = f'{before}\numask 077; aside=$1/aside nonce=$2\n{functions}\nmake_module "$1/node/x" "$3"; echo done'
    arguments = [str(folder), nonce, str(len(content) if size is None else size)]
    return subprocess.run(["bash", "-c", text, "place", *arguments], input=content, capture_output=True, check=False)


@pytest.mark.parametrize("part", [0, 1, 100, 2000, -1])
def test_an_incomplete_upload(tmp_path: Path, part: int) -> None:
    (tmp_path / "aside").mkdir()
    done = make(tmp_path, module.parcel()[:part], size=len(module.parcel()))
    assert (done.returncode, done.stdout) == (45, b"")
    assert [each.name for each in tmp_path.iterdir()] == ["node"] and not list((tmp_path / "node").iterdir())
    assert make(tmp_path, module.parcel()).stdout == b"done\n"


def test_a_damaged_upload(tmp_path: Path) -> None:
    content = bytearray(module.parcel())
    content[1000] ^= 1
    assert make(tmp_path, bytes(content)).returncode == 45
    assert not list((tmp_path / "node").iterdir())


def test_a_full_disk(tmp_path: Path) -> None:
    done = make(tmp_path, module.parcel(), before='trap "" XFSZ; ulimit -f 5')
    assert done.returncode == 45 and b"File too large" in done.stderr
    assert not list((tmp_path / "node").iterdir())


def test_concurrent_uploads(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda number: make(tmp_path, module.parcel(), nonce=str(number)), range(8)))
    assert {(each.returncode, each.stdout, each.stderr) for each in results} == {(0, b"done\n", b"")}
    assert {each.name for each in (tmp_path / "node").iterdir()} == {"x", "list-x"}
    assert sorted(each.name for each in (tmp_path / "node" / "x").iterdir()) == ["mrunner", "munch", "yurt"]


def test_leftovers_of_a_killed_upload_are_removed(tmp_path: Path) -> None:
    old, young = tmp_path / "node" / "y.old", tmp_path / "node" / "y.young"
    for each in (old, young):
        each.mkdir(parents=True)
    os.utime(old, (0, 0))
    assert make(tmp_path, module.parcel()).stdout == b"done\n"
    assert sorted(each.name for each in (tmp_path / "node").iterdir()) == ["list-x", "x", "y.young"]


@pytest.fixture
def laptop(laptop: Laptop) -> Laptop:
    (laptop.project / "train.py").write_text(SCRIPT)
    return laptop


@pytest.mark.lab
@pytest.mark.parametrize("context", ["alpha", "beta"])
@pytest.mark.slow("beta")
def test_on_a_cluster(laptop: Laptop, context: str) -> None:
    """With the cluster's python3, for one task and several."""
    one = laptop.run(context, "train.py", "--", "--lr", "0.1")["run"]
    several = laptop.run(context, "--ntasks", "3", "python3", "train.py")["run"]
    for run in (one, several):
        assert laptop.ended(run["id"])["state"] == "completed", laptop("logs", run["id"])
    base = one["folder"].rpartition("/projects/")[0]
    out = laptop("logs", one["id"]).out
    assert out.startswith(f"{{'lr': 0.1}} {base}/node/{module.name()}/yurt/__init__.py")
    read = "import os, pathlib; print(pathlib.Path(os.environ['WHERE'], 'metrics.jsonl').read_text())"
    rows = {}
    for run in (one, several):
        shown = laptop.run(context, "--var", f"WHERE={run['folder']}", "python3", "-c", read)["run"]
        assert laptop.ended(shown["id"])["state"] == "completed"
        rows[run["id"]] = [json.loads(line) for line in laptop("logs", shown["id"]).out.split("\n") if line]
    assert [(row["step"], row["loss"]) for row in rows[one["id"]]] == [(1, 0.5)]
    assert sorted(row.get("rank", 0) for row in rows[several["id"]]) == [0, 1, 2]


CONF = """\
from mrunner.helpers.specification_helper import create_experiments_helper

experiments_list = create_experiments_helper(
    experiment_name="digits",
    project_name="lab/digits",
    script="python3 SCRIPT",
    base_config={"lr": 0.1, "name": "a 'b'"},
    params_grid={"seed": [1, 2]},
)
"""


@pytest.mark.lab
def test_spec_files_of_mrunner_on_a_cluster(laptop: Laptop) -> None:
    """Their parameters reach a script with get_configuration(), and one that reads its arguments."""
    calls = "import pickle, sys\nfrom mrunner.helpers.client_helper import get_configuration\n"
    calls += "given = get_configuration()\nprint(given.lr, given.seed, given.name)\n"
    calls += "with open(sys.argv[sys.argv.index('--config') + 1], 'rb') as file:\n"
    calls += "    print(pickle.load(file)['parameters'] == {'lr': given.lr, 'seed': given.seed, 'name': given.name})\n"
    for name, text in {"calls.py": calls, "reads.py": "import sys\nprint(sys.argv[1:])\n"}.items():
        (laptop.project / name).write_text(text)
        (laptop.project / f"conf_{name}").write_text(CONF.replace("SCRIPT", name))
    for name, expected in (
        ("calls.py", ["0.1 1 a 'b'\nTrue\n", "0.1 2 a 'b'\nTrue\n"]),
        ("reads.py", [str(["--lr", "0.1", "--name", "a 'b'", "--seed", seed]) + "\n" for seed in "12"]),
    ):
        run = laptop.run("alpha", "--spec", f"conf_{name}")["run"]
        assert laptop.ended(run["id"])["state"] == "completed", laptop("logs", run["id"])
        assert [laptop("logs", f"{run['id']}.{number}").out for number in (0, 1)] == expected


PIECES = """\
import yurt
with yurt.checkpointing() as saved:
    number = int(saved.load("number", b"0"))
    yurt.log(step=number, restarts=saved.restarts)
    if number < 3:
        saved.save("number", str(number + 1))
        saved.leave()
"""


def test_a_script_that_leaves_is_restarted(yurt: Yurt, here: Path) -> None:
    (here / "train.py").write_text(PIECES)
    found = local_run(yurt, "--requeue", "--time", "5m", "train.py")
    folder = Path(found["run"]["folder"])
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [(row["step"], row["restarts"]) for row in rows] == [(number, number) for number in range(4)]
    assert found["status"]["restarts"] == 3
