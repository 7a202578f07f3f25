"""`yurt dev restore --to FOLDER`: a version becomes a folder of this machine."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from yurt.dev import restore as dev_restore
from yurt.model.workspace import Version
from yurt.node.backup import Workspace


@pytest.mark.parametrize("paths", [(), ("d",)])
def test_the_modes_are_those_of_the_user(
    paths: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, backups = tmp_path / "work", tmp_path / "backups"
    (work / "d").mkdir(parents=True)
    for name, mode in {"d/tool": 0o6777, "d/open": 0o666, "d/closed": 0o400, "d": 0o700, ".": 0o777}.items():
        if name not in ("d", "."):
            (work / name).write_text(name)
        (work / name).chmod(mode)
    saved = Workspace(str(work), str(backups), str(tmp_path / "state")).save("asked")
    assert saved is not None
    version = Version(number=saved.number, time=saved.time)

    def bring(_there: Any, _number: int, target: Path, *_more: Any) -> None:
        shutil.copytree(backups, target, dirs_exist_ok=True)

    there = SimpleNamespace(context=SimpleNamespace(name="alpha"))
    monkeypatch.setattr(dev_restore, "find", lambda *_words, **_more: (there, version))
    monkeypatch.setattr(dev_restore, "bring", bring)
    target = tmp_path / "target"
    done = dev_restore.to_folder("main", "", paths, str(target)).data
    assert done.folder == str(target) and bool(done.paths) == bool(paths)
    modes = {name: (target / name).stat().st_mode & 0o7777 for name in ("d/tool", "d/open", "d/closed", "d", ".")}
    assert modes == {"d/tool": 0o755, "d/open": 0o644, "d/closed": 0o644, "d": 0o755, ".": 0o755}
    assert {each.name for each in tmp_path.iterdir()} == {"work", "backups", "state", "target"}
