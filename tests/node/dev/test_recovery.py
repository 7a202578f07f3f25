"""A version that cannot be restored: damaged, or too large for the disk of the node."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from yurt.node import backup
from yurt.node.dev import recovery
from yurt.node.dev.config import Config, read
from yurt.node.dev.desk import Desk
from yurt.node.dev.layer import Layer
from yurt.node.dev.place import Place
from yurt.node.dev.status import Status
from yurt.node.files import NodeError


class Nodes:
    """Desks of one dev node on several nodes."""

    def __init__(self, top: Path) -> None:
        self.top, self.lines = top, list[str]()
        self.backups = top / "backups"

    def config(self, name: str = "default", restore: int = 0) -> Config:
        given = {"name": name, "backups": str(self.backups), "context": "big", "restore": restore}
        return read({"YURT_DEV": json.dumps(given), "YURT_RUN_DIR": str(self.top / "run")})

    def open(self, node: str, restore: int = 0) -> Desk:
        root = self.top / node
        place = Place(str(root / "work"), str(root / ".own"), str(root / ".beside"))
        for folder in (Path(place.folder), Path(place.beside), self.top / "run"):
            folder.mkdir(parents=True, exist_ok=True)
        desk = Desk(
            self.config(restore=restore), place, Layer(place, {}), Status(str(self.top / "run")), self.lines.append
        )
        desk.open()
        return desk


@pytest.fixture
def nodes(tmp_path: Path) -> Nodes:
    return Nodes(tmp_path)


def write(desk: Desk, text: str) -> Path:
    file = Path(desk.place.workspace, "a.txt")
    file.write_text(text)
    return file


def full_beside(copies: int) -> Callable[..., tuple[int, int]]:
    """A disk with room for one copy of the workspace, less `copies`."""

    def room(place: Place, *_more: object) -> tuple[int, int]:
        return 100, 100 * (copies - Path(place.workspace).is_dir())

    return room


def test_an_older_copy_makes_room(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    """If all its files are in a version, and the newest one is whole; else nothing is touched."""
    first = nodes.open("n1")
    file = write(first, "one")
    first.save("down")
    second = nodes.open("n2")
    write(second, "two")
    second.save("down")
    monkeypatch.setattr(recovery, "room", full_beside(1))
    (pack,) = nodes.backups.glob("p3-*")
    content = pack.read_bytes()
    pack.write_bytes(content[:-9] + b"x" + content[-8:])
    with pytest.raises(
        NodeError, match=r"v3 cannot be restored: .*p3-.*; v2 of .* is the newest without damage: .* --restore v2`"
    ):
        nodes.open("n1")
    assert file.read_text() == "one"
    pack.write_bytes(content)
    nodes.open("n1")
    assert file.read_text() == "two" and "removed the older copy of the workspace (v2)" in " ".join(nodes.lines)
    assert sorted(each.name for each in (nodes.top / "n1").iterdir()) == [".beside", ".own", "work"]


def test_no_room(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said before anything is written, with the copies that the user may remove."""
    first = nodes.open("n1")
    write(first, "x" * 100_000)
    first.save("down")
    needed, free = recovery.room(first.place, first.config, 2)
    assert 90_000 < needed <= 100_000 and free > 0
    monkeypatch.setattr(recovery, "room", full_beside(0))
    (nodes.top / "n2" / "work.fork-v1").mkdir(parents=True)
    with pytest.raises(NodeError, match=r"v2 needs 100 B, and .*n2 on \S+ has 0 B free; .*, such as work.fork-v1$"):
        nodes.open("n2")


def test_a_copy_whose_version_is_damaged_is_kept(nodes: Nodes) -> None:
    """Its files may be the only ones: they are saved again, and stay aside."""
    first = nodes.open("n1")
    write(first, "one")
    first.save("down")
    second = nodes.open("n2")
    write(second, "two")
    second.save("down")
    (pack,) = nodes.backups.glob("p2-*")
    pack.unlink()
    third = nodes.open("n1")
    assert Path(third.place.workspace, "a.txt").read_text() == "two"
    assert (nodes.top / "n1" / "work.fork-v2" / "a.txt").read_text() == "one"
    assert "files of v2 whose backups are damaged; see v4" in third.status.get("fork")


@pytest.mark.parametrize(
    ("name", "running", "host", "ways"),
    [
        (
            "default",
            False,
            "n7.site",
            ["files: `yurt dev up --context big --node n7`", "up --context big --restore v1`"],
        ),
        ("gpu", False, os.uname().nodename, ["up gpu --context big --restore v1`"]),
        ("gpu", True, "n7", ["dev restore --name gpu --at v1 'my data/x'`"]),
    ],
)
def test_what_to_do_about_damage(nodes: Nodes, name: str, running: bool, host: str, ways: list[str]) -> None:
    work = nodes.top / "work"
    work.mkdir()
    workspace = backup.Workspace(str(work), str(nodes.backups), str(nodes.top / "state"))
    first = workspace.save("first")
    (work / "a").touch()
    workspace.save("down", host=host)
    error = backup.DamagedError("/b/p2-x")
    paths = ["my data/x"] if running else []
    text = str(recovery.damaged(error, nodes.config(name), 2, first, running=running, paths=paths))
    parts = text.split("; ")
    assert parts[0] == "v2 cannot be restored: its file p2-x is damaged"
    assert len(parts) == 1 + len(ways) and all(part.endswith(way) for part, way in zip(parts[1:], ways, strict=True))
    assert len(text) < 300, "job.sh keeps so much of a reason"


def test_the_copy_of_another_node_is_named_and_used(nodes: Nodes) -> None:
    """The packs of two nodes are damaged, and the one with the newest files does not come back."""
    first = nodes.open("n1")
    file = write(first, "one")
    first.save("down")
    second = nodes.open("n2")
    write(second, "two")
    second.save("down")
    for pack in nodes.backups.glob("p[23]-*"):
        pack.unlink()
    with pytest.raises(NodeError, match=r"v3 cannot be restored: .*; v1 of .* is the newest without damage"):
        nodes.open("n3")
    write(first, "one, and more")
    again = nodes.open("n1", restore=2)
    assert file.read_text() == "one, and more" and again.status.get("version") == 4
    assert Path(nodes.open("n3").place.workspace, "a.txt").read_text() == "one, and more"
    again = nodes.open("n1", restore=2)
    assert again.status.get("version") == 4, "a second start of the run does not go back again"


def test_an_error_names_the_copies_of_two_nodes(nodes: Nodes) -> None:
    work = nodes.top / "work"
    work.mkdir()
    workspace = backup.Workspace(str(work), str(nodes.backups), str(nodes.top / "state"))
    first = workspace.save("first", host="n1")
    for number, host in enumerate(["n3", "n1", "n2.site"]):
        (work / str(number)).touch()
        workspace.save("down", host=host)
    text = str(recovery.damaged(backup.DamagedError("/b/p3-x"), nodes.config("gpu"), 4, first, running=False))
    up = "`yurt dev up gpu --context big"
    assert f"; n2 may still have its files: {up} --node n2`; n1 may still have those of v3: {up} --node n1" in text
    assert " --node n1 --restore v3`; v1 of " in text and "n3" not in text


def test_a_damaged_backup_of_a_node_that_lost_power(nodes: Nodes) -> None:
    """The files on the node may be damaged too, but there are no others."""
    first = nodes.open("n1")
    file = write(first, "one")
    first.save("down")
    Path(first.place.folder, "unwritten").write_text('{"boot": "an earlier one"}')
    next(nodes.backups.glob("p2-*")).unlink()
    again = nodes.open("n1")
    assert file.read_text() == "one" and "look at your files" in again.status.get("fork")
    again.save("interval")
    assert Path(nodes.open("n2").place.workspace, "a.txt").read_text() == "one"


def test_the_file_of_the_newest_version_is_damaged(nodes: Nodes) -> None:
    first = nodes.open("n1")
    write(first, "one")
    first.save("down")
    file = nodes.backups / "v2"
    file.write_bytes(b"{" + file.read_bytes())
    second = nodes.open("n2")
    assert second.status.get("fork") == "v2 cannot be read, as its file is damaged; v1 was restored"
    again = nodes.open("n1")
    version = again.save("interval")
    assert version is not None and (version.number, version.fork) == (3, False)
    assert Path(nodes.open("n3").place.workspace, "a.txt").read_text() == "one"
