"""The program that keeps staged files on a node: inputs, outputs, several runs at once, kills, full disks."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import tarfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.node.stage.conftest import Node
from yurt.testing.waiting import eventually

root = pytest.mark.skipif(os.getuid() != 0, reason="needs root, to mount a disk")


@pytest.fixture
def cifar(node: Node) -> Path:
    folder = node.data / "cifar"
    (folder / "train").mkdir(parents=True)
    (folder / "labels").write_text("cat\n")
    (folder / "train" / "one").write_bytes(b"1" * 5000)
    (folder / "latest").symlink_to("train/one")
    (node.data / "elsewhere").write_text("far")
    (folder / "far").symlink_to(node.data / "elsewhere")
    return folder


def test_inputs_are_private_read_only_links(node: Node, cifar: Path) -> None:
    (node.data / "weights.pt").write_text("w")
    keeper = node.keep("one", {"cifar": cifar, "weights.pt": node.data / "weights.pt"}, ["tables", "model.pt"])
    stage = keeper.ready()
    assert (stage / "cifar").is_symlink() and (stage / "cifar" / "labels").read_text() == "cat\n"
    assert os.readlink(stage / "cifar" / "latest") == "train/one"
    assert not (stage / "cifar" / "far").is_symlink() and (stage / "cifar" / "far").read_text() == "far"
    assert (stage / "weights.pt").read_text() == "w"
    assert (stage / "cifar" / "labels").stat().st_mode & 0o222 == 0
    assert (stage / "cifar").stat().st_mode & 0o777 == 0o500
    assert node.base.stat().st_mode & 0o777 == 0o700 and stage.stat().st_mode & 0o777 == 0o700
    assert (stage / "tables").is_dir() and not (stage / "model.pt").exists()
    assert keeper.end() == "out 0"
    assert keeper.errors.read_text() == "yurt: output tables is empty\nyurt: output model.pt was not made\n"
    assert node.copies() == [] and list((node.base / "runs").iterdir()) == []


@pytest.mark.parametrize("kind", ["tar.gz", "tgz", "tar", "zip", "tar.zst"])
def test_archives_are_unpacked(node: Node, cifar: Path, kind: str) -> None:
    archive = node.data / f"c.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(archive, "w") as made:
            made.write(cifar / "labels", "labels")
    elif kind == "tar.zst":
        plain = node.data / "plain"
        subprocess.run(["tar", "-C", cifar, "-cf", plain, "labels"], check=True)
        subprocess.run(["zstd", "-q", plain, "-o", archive], check=True)
    else:
        subprocess.run(["tar", "-C", cifar, "-caf" if kind != "tar" else "-cf", archive, "labels"], check=True)
    keeper = node.keep("one", {"packed": archive})
    assert (keeper.ready() / "packed" / "labels").read_text() == "cat\n"


def test_an_archive_cannot_write_elsewhere(node: Node) -> None:
    archive = node.data / "bad.tar"
    (node.data / "x").write_text("evil")
    with tarfile.open(archive, "w") as made:
        made.add(node.data / "x", f"../../../../../../../../../../{node.folder}/escaped")
        made.add(node.data / "x", "good")
    keeper = node.keep("one", {"bad": archive})
    eventually(lambda: keeper.reply() != "")
    assert not (node.folder / "escaped").exists()


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("none", None, "input it: {path} does not exist"),
        ("bad.tar.gz", b"\x1f\x8bnonsense", "input it: archive {path} "),
        ("bad.zip", b"nonsense", "input it: {path} is damaged, or not a zip archive"),
    ],
)
def test_an_input_that_cannot_be(node: Node, name: str, content: bytes | None, said: str) -> None:
    path = node.data / name
    if content is not None:
        path.write_bytes(content)
    keeper = node.keep("one", {"it": path}, ["tables"])
    keeper.process.wait(30)
    assert keeper.reply().startswith("no " + said.format(path=path))
    assert node.copies() == [] and list((node.base / "runs").iterdir()) == []


def test_runs_share_a_copy_and_the_last_removes_it(node: Node, cifar: Path) -> None:
    keepers = [node.keep(f"run{number}", {"cifar": cifar}) for number in range(4)]
    copies = {(each.ready() / "cifar").resolve() for each in keepers}
    assert len(copies) == 1 and len(node.copies()) == 1
    for each in keepers[:3]:
        each.end()
    assert (keepers[3].ready() / "cifar" / "labels").read_text() == "cat\n"
    keepers[3].end()
    assert node.copies() == []


def test_a_changed_source_gets_a_new_copy(node: Node, cifar: Path) -> None:
    first = node.keep("one", {"cifar": cifar})
    before = (first.ready() / "cifar").resolve()
    (cifar / "labels").write_text("dog\n")
    second = node.keep("two", {"cifar": cifar})
    assert (second.ready() / "cifar" / "labels").read_text() == "dog\n"
    assert (before / "labels").read_text() == "cat\n"


def test_a_sweep_keeps_its_copy_until_its_last_task_has_started(node: Node, cifar: Path) -> None:
    sweep = node.folder / "sweep"
    (sweep / "tasks" / "0").mkdir(parents=True)
    task = node.keep("s.0", {"cifar": cifar}, sweep=str(sweep))
    task.ready()
    task.end()
    assert len(node.copies()) == 1
    for number in (1, 2):
        (sweep / "tasks" / str(number)).mkdir()
    task = node.keep("s.2", {"cifar": cifar}, sweep=str(sweep))
    task.ready()
    task.end()
    assert node.copies() == []


def test_outputs_are_copied_back_once(node: Node) -> None:
    results = node.folder / "results"
    keeper = node.keep("one", None, ["tables"], places={"model.pt": results})
    stage = keeper.ready()
    (stage / "tables" / "sub").mkdir()
    (stage / "tables" / "sub" / "a").write_text("a")
    (stage / "tables" / "latest").symlink_to(stage / "tables" / "sub" / "a")
    (stage / "model.pt").write_text("model")
    os.utime(stage / "model.pt", (1000, 1000))
    assert keeper.end() == "out 2"
    outputs = keeper.folder / "outputs"
    assert (outputs / "tables" / "latest").read_text() == "a" and os.readlink(outputs / "tables" / "latest") == "sub/a"
    model = results / "one" / "model.pt"
    assert model.read_text() == "model" and model.stat().st_mtime == 1000
    again = node.keep("one", None, ["tables"], places={"model.pt": results}, start=2)
    stage = again.ready()
    assert (stage / "model.pt").read_text() == "model" and (stage / "tables" / "sub" / "a").read_text() == "a"
    (stage / "tables" / "b").write_text("b")
    assert again.end() == "out 1" and (outputs / "tables" / "b").read_text() == "b"


def test_links_in_outputs(node: Node, cifar: Path) -> None:
    (cifar / "self").symlink_to(".")
    keeper = node.keep("one", {"cifar": cifar}, ["o", "other"])
    stage = keeper.ready()
    subprocess.run(["cp", "-r", stage / "cifar", stage / "o" / "data"], check=True)
    assert (stage / "o" / "data").is_symlink()
    (stage / "o" / "best").symlink_to(stage / "cifar" / "labels")
    (stage / "o" / "up").symlink_to("../cifar/train")
    (stage / "other" / "x").write_text("x")
    (stage / "o" / "x").symlink_to(stage / "other" / "x")
    (stage / "o" / "o").symlink_to(stage / "o")
    (stage / "private").write_text("p")
    (stage / "o" / "private").symlink_to(stage / "private")
    (stage / "o" / "sh").symlink_to("/bin/sh")
    (stage / "o" / "dead").symlink_to(stage / "cifar" / "none")
    os.mkfifo(stage / "o" / "pipe")
    assert keeper.end() == "out 7", keeper.reply()
    outputs = keeper.folder / "outputs" / "o"
    assert not (outputs / "data").is_symlink() and (outputs / "data" / "labels").read_text() == "cat\n"
    assert os.readlink(outputs / "data" / "latest") == "train/one" and os.readlink(outputs / "data" / "self") == "."
    assert (outputs / "best").read_text() == "cat\n" and not (outputs / "best").is_symlink()
    assert (outputs / "up" / "one").stat().st_size == 5000 and (outputs / "x").read_text() == "x"
    assert os.readlink(outputs / "o") == "." and os.readlink(outputs / "sh") == "/bin/sh"
    said = keeper.errors.read_text().splitlines()
    assert said[0].startswith("yurt: o/dead is a link to ") and said[0].endswith("/none, which is only on this node")
    assert said[1:] == [
        "yurt: o/pipe was not copied: it is neither a file nor a folder",
        f"yurt: o/private is a link to {stage}/private, which is only on this node",
    ]


def test_links_that_lead_in_circles(node: Node) -> None:
    folder = node.data / "in"
    (folder / "a").mkdir(parents=True)
    (folder / "a" / "f").write_text("f")
    (folder / "a" / "up").symlink_to("..")
    keeper = node.keep("one", {"in": folder}, ["o"])
    stage = keeper.ready()
    (stage / "o" / "a").symlink_to(stage / "in" / "a")
    assert keeper.end().startswith("out 1"), keeper.reply()
    assert (keeper.folder / "outputs" / "o" / "a" / "f").read_text() == "f"
    assert "its links lead to a folder above it" in keeper.errors.read_text()


@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_an_archive_that_leads_out_of_its_folder(node: Node, kind: str) -> None:
    archive = node.data / f"bad.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(archive, "w") as zipped:
            zipped.writestr("good", "x")
            zipped.writestr("../escaped", "x")
    else:
        (node.data / "x").write_text("x")
        with tarfile.open(archive, "w") as made:
            member = made.gettarinfo(node.data / "x")
            for name in ("/absolute", "../escaped"):
                member.name = name
                with (node.data / "x").open("rb") as stream:
                    made.addfile(member, stream)
    keeper = node.keep("one", {"bad": archive})
    keeper.process.wait(30)
    assert keeper.reply().startswith(f"no input bad: archive {archive} cannot be unpacked: "), keeper.reply()
    assert "../escaped" in keeper.reply() and "Removing" not in keeper.reply()


def test_a_start_that_was_killed_leaves_its_outputs_to_the_next(node: Node) -> None:
    keeper = node.keep("one", None, ["tables"])
    (keeper.ready() / "tables" / "a").write_text("a")
    keeper.process.kill()
    keeper.process.wait()
    again = node.keep("one", None, ["tables"], start=2)
    assert (again.ready() / "tables" / "a").read_text() == "a"
    again.process.kill()
    again.process.wait()
    other = node.keep("two")
    other.ready()
    assert [each.name for each in (node.base / "runs").iterdir()] == ["two"]


def test_the_window_after_term(node: Node) -> None:
    keeper = node.keep("one", None, ["tables"], window=0.5)
    stage = keeper.ready()
    (stage / "tables" / "small").write_text("s")
    (stage / "tables" / "big").write_bytes(b"b" * 3_000_000)
    keeper.process.send_signal(signal.SIGTERM)
    time.sleep(0.6)  # the window itself
    report = keeper.end()
    assert report.startswith("out 0 2 files of the outputs (3.0 MB, such as tables/big) were not copied back from ")
    assert "the job was killed before it was complete; the outputs stay in" in report
    assert (stage / "tables" / "big").stat().st_size == 3_000_000
    other = node.keep("two")
    other.ready()
    assert (stage / "tables" / "small").exists()


def test_an_output_that_cannot_be_written_is_in_the_run_instead(node: Node) -> None:
    place = node.folder / "file"
    place.write_text("not a folder")
    keeper = node.keep("one", None, places={"tables": place})
    (keeper.ready() / "tables" / "a").write_text("a")
    report = keeper.end()
    assert report.startswith(f"out 0 output tables/a (1 B) could not be copied to {place}: "), report
    assert report.endswith("; it is in the outputs of the run instead"), report
    assert (keeper.folder / "outputs" / "tables" / "a").read_text() == "a"


def test_the_end_comes_while_inputs_are_copied(node: Node, cifar: Path) -> None:
    with (cifar / "large").open("wb") as stream:
        stream.truncate(4_000_000_000)
    keeper = node.keep("one", {"cifar": cifar})
    eventually(lambda: list((node.base / "copies").glob("*.aside")))
    keeper.end()
    assert keeper.reply() == "out 0" and not list((node.base / "copies").glob("*.aside"))


def test_nobody_else_can_prepare_the_folder(node: Node, cifar: Path) -> None:
    node.base.symlink_to(node.data)
    keeper = node.keep("one", {"cifar": cifar}, variable="SLURM_TMPDIR")
    keeper.process.wait(30)
    assert keeper.reply().startswith("no ") and "is not a folder; remove it" in keeper.reply()


@pytest.fixture
def small(node: Node) -> Iterator[Path]:
    """A disk of 30 MB in place of the node's disk."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=30m,mode=1777", "none", node.disk], check=True)
    yield node.disk
    for each in node.keepers:
        each.process.kill()
        each.process.wait()
    subprocess.run(["umount", "-l", node.disk], check=True)


@root
def test_a_full_node(node: Node, small: Path) -> None:
    for name in ("a", "b", "c"):
        (node.data / name).write_bytes(os.urandom(8_000_000))
    first = node.keep("one", {"a": node.data / "a"}, sweep=str(node.data), variable="SLURM_TMPDIR")
    (node.data / "tasks").mkdir()
    first.ready()
    first.end()
    assert len(node.copies()) == 1  # for later tasks
    second = node.keep("two", {"b": node.data / "b"}, variable="SLURM_TMPDIR")
    second.ready()
    assert len(node.copies()) == 1  # the unused copy made room
    third = node.keep("three", {"c": node.data / "c"}, variable="SLURM_TMPDIR")
    third.process.wait(30)
    assert third.reply().startswith("no input c (8.0 MB) does not fit onto the disk of "), third.reply()
    assert len(node.copies()) == 1 and not list((node.base / "copies").glob("*.aside"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(25))
def test_killed_at_any_moment(node: Node, cifar: Path, seed: int) -> None:
    """After a kill at a drawn moment, the next start has complete inputs, and its outputs are complete or old."""
    drawn = random.Random(seed)
    for number in range(300):
        (cifar / "train" / f"n{number}").write_bytes(b"x" * drawn.randrange(20_000))
    whole = sorted((each.name, each.stat().st_size) for each in (cifar / "train").iterdir())
    for start in range(1, 5):
        keeper = node.keep("one", {"cifar": cifar}, ["tables"], start=start)
        if drawn.random() < 0.5:
            time.sleep(drawn.random() * 0.3)
        else:
            stage = keeper.ready()
            assert sorted((each.name, each.stat().st_size) for each in (stage / "cifar" / "train").iterdir()) == whole
            for number in range(200):
                (stage / "tables" / f"t{number}").write_text(f"{start}" * 5000)
            keeper.process.send_signal(signal.SIGUSR2)
            time.sleep(drawn.random() * 0.1)
        keeper.process.kill()
        keeper.process.wait()
        for each in (keeper.folder / "outputs").rglob("t*"):
            assert each.is_dir() or each.name.endswith("-aside") or len(set(each.read_text())) == 1
    last = node.keep("one", {"cifar": cifar}, ["tables"], start=5)
    stage = last.ready()
    assert sorted((each.name, each.stat().st_size) for each in (stage / "cifar" / "train").iterdir()) == whole
    assert last.end().startswith("out ")
    assert not list((last.folder / "outputs").rglob("*aside"))
    assert node.copies() == [] and not list((node.base / "runs").iterdir())
