"""The Unison profile: the user's lines are kept byte for byte; the filters leave out what they should."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.homes.star import Star
from yurt.errors import UserError
from yurt.homes import profile


def test_the_users_lines_are_kept() -> None:
    first = profile.merged(b"")
    assert first.startswith(profile.BEGIN) and first.endswith(profile.END)
    mine = b"# mine\nignore = Path data\n" + first + b"\nignorenot = Path .config \xff\r\nno newline at the end"
    assert profile.merged(mine) == mine
    outdated = mine.replace(b"mountpoint = .yurt-home\n", b"")
    assert profile.merged(outdated) == mine
    assert profile.merged(b"ignore = Path data") == first + b"\nignore = Path data"


@pytest.mark.parametrize("line", [profile.BEGIN, profile.END])
def test_a_broken_part_is_an_error(line: bytes) -> None:
    with pytest.raises(UserError, match="lacks the line at the"):
        profile.merged(profile.merged(b"").replace(line, b""))


def test_what_is_synced_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    star = Star(tmp_path, monkeypatch)
    star.profile("ignorenot = Path .config\nignorenot = Path .vimrc\nignore = Path data\n")
    synced = [
        "a.txt",
        "project/.git/config",
        "project/.env",
        ".config/nvim/init.lua",
        ".vimrc",
        "x~",
        "project/scratch/y",
    ]
    ignored = [
        ".bashrc",
        ".ssh/id_ed25519",
        ".config/yurt/homes.yaml",
        ".cache/x",
        "data/large",
        "project/.venv/bin/python",
        "project/__pycache__/a.pyc",
        "project/node_modules/b/c.js",
        "project/tmux.sock",
        "miniconda3/pkgs/p",
        "scratch/x",
        "yurt/projects/p",
    ]
    for path in [*synced, *ignored]:
        star.write("alpha", path, path)
    done = star.sync()
    assert done.code == 0, done
    found = {str(file.relative_to(star.roots["local"])) for file in star.roots["local"].rglob("*") if file.is_file()}
    assert found - {".yurt-home"} == set(synced)


def test_the_profile_is_shown_and_edited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    star = Star(tmp_path, monkeypatch)
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", "sed -i '$a ignore = Path big'")
    path = tmp_path / "unison" / "yurt-homes.prf"
    assert star.yurt("home", "profile", "--path").out == f"{path}\n"
    done = star.yurt("home", "profile", "--edit")
    assert (done.code, done.out) == (0, f"{path} changed\n")
    assert path.read_bytes() == profile.merged(b"") + b"ignore = Path big\n"
    shown = star.yurt("home", "profile").out
    assert shown.startswith(f"# {path}\n") and shown.endswith("ignore = Path big\n")
    monkeypatch.setenv("EDITOR", "true")
    assert star.yurt("home", "profile", "--edit").out == f"{path} unchanged\n"
    assert star.yurt("home", "profile", "--json").json["data"]["text"] == path.read_text()
