"""Runs whose disk is not mounted are not lost: yurt says that it cannot be read, and advises no retry."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.user import User
from yurt.backends import scripts
from yurt.backends.shell import envs, listing, ownership
from yurt.testing.waiting import eventually


@pytest.fixture
def storage(user: User) -> Path:
    folder = user.home / "disk"
    file = user.home / "config" / "contexts.yaml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"contexts:\n  local: {{type: local, storage_dir: {folder}}}\n")
    return folder


def test_every_verb(user: User, storage: Path) -> None:
    go, words = user.home / "go", ["sh", "-c", ': > "$0.begun"; until [ -e "$0" ]; do sleep 0.1; done; echo out']
    ended = user("--json", "run", "--wait", "sh", "-c", 'echo x > "$YURT_OUTPUTS/x"; echo out').json["data"]["run"][
        "id"
    ]
    begun = user("--json", "run", *words, str(go)).json["data"]["run"]["id"]
    away = user.home / "away"
    eventually(user.home.joinpath("go.begun").exists)  # a run whose disk vanishes before its command starts is lost
    assert user.quick("show", begun, "--json").json["data"]["status"]["state"] == "running"
    storage.rename(away)
    storage.mkdir()
    unknown = f"{storage} cannot be read now, so nothing is known about the runs in it"
    try:
        for verb in (
            ["ps"],
            ["show", begun],
            ["why", begun],
            ["fetch", ended],
            ["prune", "--yes", "--unfetched", ended],
            ["metrics", begun],
        ):
            done = user.quick(*verb)
            said = done.out + done.err
            assert unknown in said or verb[0] in ("ps", "show", "why"), (verb, done)
            assert "deleted" not in said and "gone" not in said and "yurt retry" not in said, (verb, done)
        shown = user.quick("show", begun, "--json").json["data"]["status"]
        assert shown["state"] == "running"
        assert any(unknown in each for each in user.quick("ps", "--json").json["warnings"])
        assert user.quick("show", ended, "--json").json["data"]["status"]["state"] == "completed"
    finally:
        storage.rmdir()
        away.rename(storage)
        go.touch()
    assert user.quick("wait", begun, "--timeout", "60").code == 0
    assert user.quick("fetch", ended).code == 0


@pytest.mark.parametrize(("script", "empty"), [(listing.LIST, 44), (envs.LIST, 0)], ids=["runs", "environments"])
def test_an_unreadable_folder_is_not_an_empty_one(script: str, empty: int) -> None:
    as_user = ["setpriv", "--reuid=65534", "--clear-groups"] if os.geteuid() == 0 else []  # root may read everything
    with tempfile.TemporaryDirectory() as folder:  # below /tmp, which every user may enter
        Path(folder).chmod(0o755)
        storage = Path(folder, "disk")
        storage.mkdir()
        for mode, code, said in ((0o755, empty, ""), (0, 42, f"{storage} cannot be read now\n")):
            storage.chmod(mode)
            argv = [*as_user, "sh", "-c", ownership.MOUNTED + script, "sh", f"{storage}/yurt"]
            done = subprocess.run(argv, capture_output=True, text=True, check=False)
            assert (done.returncode, done.stdout, done.stderr) == (code, "", said)


@pytest.mark.parametrize(
    ("make", "code"),
    [
        ("mkdir -p disk/yurt", 0),
        ("mkdir -p disk", 42),
        (":", 42),
        ("mkdir -p disk && touch disk/other", 0),  # only yurt's folder was removed
    ],
)
@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_which_disks_are_there(tmp_path: Path, make: str, code: int, shell: str) -> None:
    text = f"{make}\n{ownership.MOUNTED}mounted {scripts.own_arguments([f'{tmp_path}/disk/yurt'])}"
    assert subprocess.run([shell, "-c", text], cwd=tmp_path, check=False).returncode == code
