"""Runs whose disk is not mounted are not lost: yurt says that it cannot be read, and advises no retry."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.user import User
from yurt.backends import scripts
from yurt.backends.shell import ownership
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
