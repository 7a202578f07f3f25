"""Reading and writing contexts.yaml."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from yurt.config import contexts, paths
from yurt.errors import NotFoundError, UserError
from yurt.model.context import LOCAL, Context, ContextResources

MINE = """\
# my clusters
contexts:
  big:  # the one in the basement
    type: slurm
    slurm_url: me@big.example
    ssh_options: ["-J", 'gate']   # through the gate
current_context: big
"""

DOCUMENTED = """\
contexts:
  plgrid.plggluna.sandbox:
    name: plgrid.plggluna.sandbox
    type: slurm
    slurm_url: chnorris@pro.cyfronet.pl
    storage_dir: /storage
    partition: plgrid-testing
    user_id: pz
    scratch_dir: mrunner
    resources: {cpu: 4, gpu: 1, mem: 8G}
    neptune: true
    modules_to_load: plgrid/tools/python/3.6.0 plgrid/tools/ffmpeg/3.2.2
    after_module_load_cmd: 'export PATH=/net/anaconda2/bin:$PATH; source activate opensim-rl-2.7'
    venv: '/net/people/plghenrykm/ppo_tpu/ppo_env'
    time: 3600000
    ntasks: 2
current_context: plgrid.plggluna.sandbox
"""

REAL = """\
 contexts:
   plgrid_cpu:
     account: lsrl
     backend_type: slurm
     cmd_type: srun
     context_name: plgrid_cpu
     modules_to_load:
     - plgrid/tools/python/3.6.5
     neptune: no
     partition: plgrid
     resources:
       cpu: 2
     mem: 5G
     slurm_url: <username>@pro.cyfronet.pl
     storage_dir: /net/archive/groups/plggluna/<username>
     user_id: user
     venv: /net/people/<username>/mrunner_example_env
     scratch_subdir: sub
     singularity_container: image.sif
     env: {OMP_NUM_THREADS: 4, VERBOSE: true, LR: 1.10}
     sbatch_options: ["--nice=3", "--exclusive"]
     time: 12:00:00
 current_context: plgrid_cpu
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    found = tmp_path / "config" / "contexts.yaml"
    found.parent.mkdir()
    found.write_text(MINE)
    return found


def test_local_is_always_there(tmp_path: Path, file: Path) -> None:
    assert contexts.read(tmp_path / "none.yaml").contexts == {}
    assert contexts.load(tmp_path / "none.yaml").contexts == {"local": LOCAL}
    assert list(contexts.load(file).contexts) == ["local", "big"]
    file.write_text("contexts: {local: {type: local, venv: mine}}")
    assert contexts.load(file).contexts["local"].venv == "mine"


def test_put_and_remove_keep_every_comment(file: Path) -> None:
    new = Context(name="alpha", type="slurm", slurm_url="alice@alpha", ssh_options=("-F", "/a b/c"), lab="default")
    contexts.put(file, [new])
    assert contexts.load(file).contexts["alpha"] == new
    assert contexts.load(file).contexts["big"].ssh_options == ("-J", "gate")
    assert all(line in file.read_text() for line in MINE.splitlines())
    once = file.stat().st_mtime_ns, file.read_text()
    contexts.put(file, [new])
    assert file.read_text() == once[1]
    contexts.remove(file, ["alpha", "never-there"])
    assert file.read_text() == MINE


def test_removing_the_current_context_unsets_it(file: Path) -> None:
    contexts.remove(file, ["big"])
    assert contexts.load(file).current_context is None


def test_first_context_makes_a_private_file(tmp_path: Path) -> None:
    file = tmp_path / "new" / "contexts.yaml"
    contexts.put(file, [Context(name="x", type="local")])
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_a_write_that_fails_leaves_the_old_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match="No space left"):
        contexts.put(file, [Context(name="x", type="local")])
    assert file.read_text() == MINE and [*file.parent.iterdir()] == [file]


def test_homes_come_from_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("YURT_CONFIG_HOME", str(tmp_path / "c"))
    monkeypatch.setenv("YURT_DATA_HOME", "~/d")
    assert paths.config_home() == tmp_path / "c"
    assert paths.data_home() == Path("~/d").expanduser()
    monkeypatch.delenv("YURT_CONFIG_HOME")
    assert paths.config_home().name == "yurt"


def test_mrunner_file_with_documented_names(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(DOCUMENTED)
    found = contexts.read(file)
    assert found.current_context == "plgrid.plggluna.sandbox"
    assert found.contexts["plgrid.plggluna.sandbox"] == Context(
        name="plgrid.plggluna.sandbox",
        type="slurm",
        slurm_url="chnorris@pro.cyfronet.pl",
        storage_dir="/storage",
        partition="plgrid-testing",
        user_id="pz",
        scratch_dir="mrunner",
        resources=ContextResources(cpu=4, gpu=1, mem="8G"),
        modules_to_load=("plgrid/tools/python/3.6.0", "plgrid/tools/ffmpeg/3.2.2"),
        after_module_load_cmd="export PATH=/net/anaconda2/bin:$PATH; source activate opensim-rl-2.7",
        venv="/net/people/plghenrykm/ppo_tpu/ppo_env",
        time=3600000,
        ntasks=2,
        track=True,
    )


def test_mrunner_file_with_the_names_its_code_used(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(REAL)
    found = contexts.read(file)
    assert found.current_context == "plgrid_cpu"
    assert found.contexts["plgrid_cpu"] == Context(
        name="plgrid_cpu",
        type="slurm",
        account="lsrl",
        cmd_type="srun",
        modules_to_load=("plgrid/tools/python/3.6.5",),
        track=False,
        partition="plgrid",
        resources=ContextResources(cpu=2, mem="5G"),
        slurm_url="<username>@pro.cyfronet.pl",
        storage_dir="/net/archive/groups/plggluna/<username>",
        user_id="user",
        venv="/net/people/<username>/mrunner_example_env",
        scratch_dir="sub",
        container="image.sif",
        variables={"OMP_NUM_THREADS": "4", "VERBOSE": "true", "LR": "1.10"},
        sbatch_options={"nice": "3", "exclusive": None},
        time="12:00:00",
    )
    contexts.put(file, [Context(name="mine", type="local")])
    assert list(contexts.read(file).contexts) == ["plgrid_cpu", "mine"]
    assert file.read_text() == REAL.replace("\n current", "\n   mine:\n     type: local\n current")


def test_values_are_what_was_typed(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("contexts: {a: {type: local, time: 12:00:00, account: 0123, partition: no, qos: 1e3, venv: ~}}")
    found = contexts.read(file).contexts["a"]
    assert (found.time, found.account, found.partition, found.qos, found.venv) == (
        "12:00:00",
        "0123",
        "no",
        "1e3",
        None,
    )


def test_current_and_named(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YURT_CONFIG_HOME", str(file.parent))
    monkeypatch.delenv("YURT_CONTEXT", raising=False)
    assert contexts.current_name() == "big"
    monkeypatch.setenv("YURT_CONTEXT", "other")
    assert contexts.current_name() == "other"
    assert contexts.current_name("flag") == "flag"
    monkeypatch.setenv("YURT_CONTEXT", "")
    contexts.remove(file, ["big"])
    assert contexts.current_name() == "local"
    assert contexts.named("local") == LOCAL
    with pytest.raises(NotFoundError) as caught:
        contexts.named("locl")
    assert caught.value.message == "context 'locl' not found; did you mean 'local'?"
    assert caught.value.hint == "run `yurt context list` to see all contexts" and caught.value.exit_code == 3


def test_lines_of_keys(tmp_path: Path) -> None:
    file = tmp_path / "contexts.yaml"
    file.write_text(
        "contexts:\n  a: &a\n    backend_type: local\n    resources:\n      cpu: 1\n    mem: 3G\n"
        "  b:\n    <<: *a\n    env: {A: 1}\n"
    )
    assert contexts.key_lines(file, "a")["type"] == 3
    assert contexts.key_lines(file, "a")["resources"] == 4
    assert contexts.key_lines(file, "a")["resources.cpu"] == 5
    assert contexts.key_lines(file, "a")["resources.mem"] == 6
    assert contexts.key_lines(file, "b")["type"] == 3
    assert contexts.key_lines(file, "b")["variables"] == 9
    assert "env" not in contexts.key_lines(file, "b")
    assert "type" not in contexts.key_lines(file, "c")
    assert not contexts.key_lines(tmp_path / "none", "c")
