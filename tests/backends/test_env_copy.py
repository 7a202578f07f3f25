"""The copy of an environment on the disk of a node: it works at its new path, and is complete or absent."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from yurt.backends import scripts
from yurt.backends.shell.envs import ShellEnvs
from yurt.backends.shell.removal import clear
from yurt.envs import uv_program
from yurt.errors import RefusedError
from yurt.model.env import EnvBuild, EnvState
from yurt.testing.waiting import eventually
from yurt.transport.local import LocalHost

HELLO = "import sys\nprint(sys.prefix)\n"


def unpack(pack: Path, copy: Path, old: Path, *, entries: int = 1, kilobytes: int = 1) -> tuple[int, str]:
    """Run the program that unpacks an environment on a node."""
    words = f'sh -c "$(unpacker)" sh "{pack}" "{copy}" "{old}" {entries} {kilobytes}'
    argv = ["sh", "-c", scripts.text("env_copy.sh", "job") + words]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.strip()


def packed(env: Path) -> Path:
    subprocess.run(["tar", "-c", "-f", f"{env}.tar", "-C", env, "."], check=True)
    return Path(f"{env}.tar")


@pytest.mark.parametrize("maker", ["uv", "venv"])
def test_programs_run_from_the_copy(tmp_path: Path, maker: str) -> None:
    env, copy = tmp_path / "a [1] place" / "env-1", tmp_path / "local" / "yurt-env-7"
    copy.parent.mkdir()
    if maker == "uv":
        words = ["venv", "--no-project", "--no-config", "--relocatable", "--python", sys.executable, str(env)]
        assert uv_program.run(words, folder=tmp_path, variables={}).code == 0
    else:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", env], check=True)
        (env / "bin" / "hello").write_text(f"#!/bin/sh\n'''exec' \"{env}/bin/python\" \"$0\" \"$@\"\n' '''\n{HELLO}")
        (env / "bin" / "hello").chmod(0o755)
    (package,) = env.glob("lib/python*/site-packages")
    (package / "some.py").write_text("x = 1\n")
    subprocess.run([env / "bin" / "python", "-m", "compileall", "-q", package], check=True)
    assert unpack(packed(env), copy, env, entries=20) == (0, "")
    assert [each.name for each in copy.iterdir()] == ["env"] and copy.stat().st_mode & 0o777 == 0o700
    program = ["python", "-c", HELLO] if maker == "uv" else ["hello"]
    activated = ["bash", "-c", f'. {copy}/env/bin/activate && echo $VIRTUAL_ENV && exec "$@"', "bash", *program]
    assert subprocess.check_output(activated, text=True).split() == [f"{copy}/env"] * 2
    argv = [f"{copy}/env/bin/python", "-v", "-c", "import some"]
    verbose = subprocess.check_output(argv, stderr=subprocess.STDOUT, text=True)
    assert f"matches {copy}/env/{package.relative_to(env)}/some.py" in verbose, "not compiled again"
    assert unpack(packed(env), copy, env) == (0, ""), "a later start of the same job"


def test_a_copy_is_complete_or_absent(tmp_path: Path) -> None:
    env, copy, node = tmp_path / "env-1", tmp_path / "local" / "yurt-env-7", os.uname().nodename
    (env / "bin").mkdir(parents=True)
    (env / "bin" / "large").write_bytes(bytes(100_000))
    pack = packed(env)
    assert unpack(pack, copy, env) == (1, f"{node} has no folder {copy.parent}")
    copy.parent.mkdir()
    assert unpack(pack, copy, env, kilobytes=1 << 50) == (1, f"the disk of {node} is full")
    assert unpack(pack, copy, env, entries=99) == (1, "it is packed incompletely")
    pack.write_bytes(pack.read_bytes()[:50_000])
    assert unpack(pack, copy, env) == (1, f"cannot unpack it on {node}")
    assert list(copy.parent.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give files to another user")
def test_a_folder_of_another_user_is_not_used(tmp_path: Path) -> None:
    env, copy = tmp_path / "env-1", tmp_path / "yurt-env-7"
    env.mkdir()
    (copy / "env").mkdir(parents=True)
    os.chown(copy, 12345, 12345)
    assert unpack(packed(env), copy, env) == (1, f"cannot create {copy} on {os.uname().nodename}")
    assert (copy / "env").exists()
    tmp_path.chmod(0o777)
    os.chown(tmp_path, 12345, 12345)
    refused = f"other users can replace folders in {tmp_path} on {os.uname().nodename}"
    assert unpack(packed(env), tmp_path / "yurt-env-8", env) == (1, refused)


@pytest.mark.parametrize(
    ("variables", "place"),
    [
        ({"TMPDIR": "/dev/shm"}, ""),  # memory, not a disk
        ({"SLURM_TMPDIR": "/dev/shm"}, "/dev/shm/yurt-env-7"),  # the site says so
        ({"SLURM_TMPDIR": "/dev/shm/none", "TMPDIR": "relative"}, ""),
    ],
)
def test_the_disk(tmp_path: Path, variables: dict[str, str], place: str) -> None:
    parts = scripts.text("own.sh", "job") + scripts.text("env_copy.sh", "job").replace(" /tmp;", ";")
    text = f'{parts}env_copy "{tmp_path}"'
    environment = {"PATH": os.environ["PATH"], "SLURM_JOB_ID": "7", **variables}
    done = subprocess.run(["sh", "-c", text], env=environment, capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.returncode) == (place, 0 if place else 1)


def test_an_open_home_folder_matters_only_if_it_is_used(tmp_path: Path) -> None:
    base, home = tmp_path / "scratch" / "yurt", tmp_path / "home" / ".yurt"
    base.mkdir(parents=True)
    home.parent.mkdir()
    for folder, mode in ((tmp_path, 0o700), (base, 0o700), (base.parent, 0o700), (home.parent, 0o777)):
        folder.chmod(mode)
    envs = ShellEnvs(LocalHost())
    assert envs.folders([str(base), str(home)]) == []
    home.mkdir(mode=0o700)
    with pytest.raises(RefusedError, match="other users can replace folders"):
        envs.folders([str(base), str(home)])
    home.parent.chmod(0o700)
    (home / "envs" / "0123" / "env-1").mkdir(parents=True)
    assert envs.folders([str(base), str(home)]) == [f"{home}/envs/0123"]


def test_prune_all_removes_environments_in_the_home_folder(tmp_path: Path) -> None:
    home, base = tmp_path / "home" / ".yurt", tmp_path / "scratch" / "yurt"
    for folder in (home / "envs" / "0123", home / "wheels", base / "projects", base / "envs" / "0123"):
        folder.mkdir(parents=True)
    tmp_path.chmod(0o700)
    assert clear(LocalHost(), str(base), [], str(home)).failed is None
    assert not home.exists() and not base.exists() and home.parent.exists()


@pytest.mark.parametrize(
    ("variables", "path", "warning"),
    [
        ({"yurt_recorded": "x", "SLURM_JOB_ID": ""}, "shared", ""),  # by hand, on a login node
        ({"yurt_recorded": "x"}, "copy", ""),
        ({"yurt_recorded": ""}, "shared", ""),  # `yurt shell`, before there is a copy
        ({"yurt_recorded": "x", "packed": "no"}, "shared", "it is not packed"),
        ({"yurt_recorded": "x", "YURT_ENV_COPY": "/none/yurt-env-7"}, "shared", " has no folder /none"),
        ({"yurt_recorded": "x", "SLURM_JOB_NUM_NODES": "2"}, "shared", "srun: n2 is down"),
        ({"yurt_recorded": "x", "SLURM_JOB_NUM_NODES": "2", "srun": "works"}, "copy", ""),
    ],
)
def test_a_job_uses_the_copy_or_says_why_not(
    tmp_path: Path, variables: dict[str, str], path: str, warning: str
) -> None:
    folder, copy, program = tmp_path / "0123", tmp_path / "yurt-env-7", tmp_path / "srun"
    (folder / "env-1").mkdir(parents=True)
    (folder / "ready").write_text("env-1 1 1\n")
    if "packed" not in variables:
        packed(folder / "env-1")
    works = 'while [ "${1#--}" != "$1" ]; do shift; done; exec "$@"' if "srun" in variables else "false"
    program.write_text(f"#!/bin/sh\n{works} || echo 'srun: n2 is down' >&2\nexit 1\n")
    program.chmod(0o755)
    parts = [scripts.text(name, "job") for name in ("own.sh", "env_state.sh", "env_copy.sh")]
    text = "".join(parts) + f'env_is_ready "{folder}"; use_copy "{folder}"; echo "$yurt_env_path"'
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "SLURM_JOB_ID": "7", "YURT_ENV_COPY": str(copy)}
    argv = ["sh", "-c", text]
    done = subprocess.run(argv, env=environment | variables, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == str(copy / "env" if path == "copy" else folder / "env-1"), done
    assert done.stderr.count("\n") == bool(warning) and done.stderr.endswith(f"{warning}\n" if warning else ""), done


@pytest.mark.parametrize("links", [True, False])
def test_the_builder_packs_once(tmp_path: Path, links: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also on a disk without hard links."""
    if not links:
        (tmp_path / "bin").mkdir()
        program = tmp_path / "bin" / "ln"
        program.write_text(f'#!/bin/sh\n[ "$1" = -s ] && exec {shutil.which("ln")} "$@"\nexit 1\n')
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    folder = tmp_path / "yurt" / "envs" / "0123"
    tmp_path.chmod(0o700)
    envs = ShellEnvs(LocalHost())
    build = EnvBuild(
        folder=str(folder), kind="lock", definition=b"{}", python=sys.executable, uv=uv_program.find(), lock=b"#\n"
    )

    def ended() -> EnvState:
        eventually(lambda: not envs.look([str(folder)])[0].phase)
        return envs.look([str(folder)])[0]

    assert not envs.start(build)
    first = ended()
    assert (first.condition, first.pack_kilobytes) == ("ready", 0), first
    (folder / "packing.dead").touch()
    assert not envs.start(msgspec.structs.replace(build, pack=True))
    second = ended()
    assert (second.condition, second.built) == ("ready", first.built) and second.pack_kilobytes > 0
    assert len([*folder.glob("env-*")]) == 2 and not [*folder.glob("packing.*")], "packed, not built again"
    assert envs.start(msgspec.structs.replace(build, pack=True))
    assert (folder / "ready.d").exists() != links and not [*folder.glob("builder*")]
    (python,) = folder.glob("env-*/bin/python")
    python.unlink()
    assert envs.look([str(folder)])[0].condition == "purged"
    assert not envs.start(build)
    third = ended()
    assert third.condition == "ready" and third.built != first.built, third


def test_a_builder_is_seen_at_every_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also between the end of the start and the first beat: nobody may take it for an environment without a builder."""
    folder = tmp_path / "yurt" / "envs" / "0123"
    tmp_path.chmod(0o700)
    paused = tmp_path / "bash_env"
    paused.write_text(
        f"""rm() {{
  command rm "$@"
  case "$*" in *starting*) touch {tmp_path}/paused; until [ -e {tmp_path}/go ]; do sleep 0.05; done ;; esac
}}
"""
    )
    monkeypatch.setenv("BASH_ENV", str(paused))
    envs = ShellEnvs(LocalHost())
    assert not envs.start(
        EnvBuild(
            folder=str(folder), kind="lock", definition=b"{}", python=sys.executable, uv=uv_program.find(), lock=b"#\n"
        )
    )
    eventually((tmp_path / "paused").exists)
    found = envs.look([str(folder)])[0]
    (tmp_path / "go").touch()
    assert (found.condition, found.phase) == ("building", "starting")
    eventually(lambda: envs.look([str(folder)])[0].condition == "ready")
