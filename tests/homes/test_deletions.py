"""Large deletions: a sync copies them only after the user has confirmed them, and everything else at once."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.homes.star import Star
from tests.homes.test_doubts import SSH
from yurt.errors import UnreachableError
from yurt.homes import client, deletions, doubts, gate, install, places, profile
from yurt.homes.outcomes import Deletion, Outcome


@pytest.fixture
def star(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Star:
    return Star(tmp_path, monkeypatch)


def fill(star: Star, folder: str, number: int, place: str = "local") -> None:
    for each in range(number):
        star.write(place, f"{folder}/{each}", "x", age=100)


def files(star: Star, place: str, folder: str = "") -> int:
    found = (star.roots[place] / folder).rglob("*")
    return sum(each.is_file() and not str(each.relative_to(star.roots[place])).startswith(".") for each in found)


def only(star: Star) -> Outcome:
    (outcome,) = star.sync().outcomes
    return outcome


@pytest.mark.parametrize(
    ("deleted", "home", "large"),
    [(101, 150, True), (100, 150, False), (100, 1000, False), (21, 200, True), (20, 200, False), (21, 199, False)],
)
def test_what_is_a_large_deletion(deleted: int, home: int, large: bool) -> None:
    assert deletions.is_large(deleted, home) == large


def test_the_largest_folders_are_kept_until_the_rest_is_no_large_deletion() -> None:
    files = {"data/run7": 304, "data/old.txt": 1, "notes": 1, "paper": 60, "code/a": 39}
    assert deletions.groups(files, 5000) == [["data/run7", "data/old.txt"]]
    assert deletions.groups(files, 600) == [["data/run7", "data/old.txt"], ["paper"]]
    assert deletions.groups({str(number): 1 for number in range(101)}, 0) == [[str(number) for number in range(101)]]
    assert deletions.groups({"a": 100}, 0) == []


def test_a_large_deletion_is_not_copied_without_a_question(star: Star) -> None:
    fill(star, "data/it's run 7", 304)
    star.write("local", "note", "x", age=100)
    assert only(star).code == 0
    shutil.rmtree(star.roots["local"] / "data" / "it's run 7")
    (star.roots["local"] / "note").unlink()
    star.write("local", "new", "x")
    outcome = only(star)
    assert outcome.deletions == [Deletion(path="data/it's run 7", place="local", other="alpha", files=304)]
    assert (outcome.code, outcome.conflicts, outcome.to_spoke) == (1, [], 2), outcome
    assert files(star, "alpha") == 305 and star.read("alpha", "new") == "x"
    words = "large deletion on local not copied to alpha: 304 files in 'data/it's run 7'"
    assert gate.problem(outcome) == words

    again = star.yurt("home", "sync")
    assert again.code == 1 and words in again.out, again
    assert "`yurt home sync --yes` deletes them on alpha" in again.out
    status = star.yurt("home", "status")
    assert words in " ".join(status.out.split()) and status.code == 1
    assert "see the conflicts with `yurt home conflicts`" in status.out, "it waits for the user, too"
    done = star.yurt("home", "sync", "--yes")
    assert done.code == 0 and "1 change to alpha, 304 files deleted, " in done.out, done
    assert files(star, "alpha") == 1


@pytest.mark.parametrize("answer", [True, False])
def test_on_a_terminal_a_large_deletion_is_a_question(
    star: Star, monkeypatch: pytest.MonkeyPatch, answer: bool
) -> None:
    fill(star, "data", 101)
    star.write("local", "note", "x", age=100)
    only(star)
    shutil.rmtree(star.roots["local"] / "data")
    asked: list[str] = []

    def confirm(text: str, **_options: object) -> bool:
        asked.append(text)
        return answer

    monkeypatch.setattr("yurt.homes.home_sync._on_terminal", lambda: True)
    monkeypatch.setattr("click.confirm", confirm)
    done = star.yurt("home", "sync")
    assert asked == ["delete these files on alpha, too? Backups are kept."], done
    assert (done.code, files(star, "alpha")) == ((0, 1) if answer else (1, 102)), done


def test_the_conflicts_show_a_large_deletion_and_undo_it(star: Star) -> None:
    fill(star, "data/run7", 101)
    star.write("local", "note", "x", age=100)
    only(star)
    for lost, other in (("alpha", "local"), ("local", "alpha")):
        shutil.rmtree(star.roots[lost] / "data" / "run7")
        hint = only(star).hint
        assert f"`yurt home conflicts --keep {other} data/run7` brings them back" in hint
        shown = star.yurt("home", "conflicts")
        assert "folder, 101 files" in shown.out and "deleted with many files" in shown.out, shown
        assert star.yurt("home", "conflicts", "--keep", other, "data/run7", "--yes").code == 0
        assert files(star, "alpha") == files(star, "local") == 102
    shutil.rmtree(star.roots["local"] / "data" / "run7")
    only(star)
    assert star.yurt("home", "conflicts", "--keep", "local", "data/run7", "--yes").code == 0
    assert files(star, "alpha") == files(star, "local") == 1
    assert only(star).code == 0


def test_many_deleted_files_of_a_folder_are_one_deletion(star: Star) -> None:
    fill(star, "data/deep/er", 250)
    only(star)
    for each in range(26):
        (star.roots["alpha"] / "data" / "deep" / "er" / str(each)).unlink()
    assert only(star).deletions == [Deletion(path="data/deep/er", place="alpha", other="local", files=26)]
    assert files(star, "local") == 250
    for each in range(24):
        star.write("alpha", f"data/deep/er/{each}", "x")
    outcome = only(star)
    assert (outcome.code, outcome.deletions) == (0, []), outcome
    assert files(star, "local") == 248


def test_a_confirmed_deletion_goes_on_to_all_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    star = Star(tmp_path, monkeypatch, ["alpha", "beta"])
    fill(star, "data", 150)
    star.write("beta", "note", "x", age=100)
    star.sync()
    shutil.rmtree(star.roots["beta"] / "data")
    outcomes = star.sync().outcomes
    assert [each.code for each in outcomes] == [0, 1]
    from yurt.homes import home_sync

    done = home_sync.delete_too(home_sync.plan([]), outcomes)
    assert done.exit_code == 0, done
    assert [files(star, place) for place in star.roots] == [1, 1, 1]


def test_a_folder_that_became_a_file_is_a_large_deletion(star: Star) -> None:
    fill(star, "data", 150)
    only(star)
    shutil.rmtree(star.roots["local"] / "data")
    star.write("local", "data", "a file")
    assert [each.files for each in only(star).deletions] == [150]
    assert files(star, "alpha", "data") == 150


def test_a_large_deletion_of_files_whose_contents_are_compared(star: Star) -> None:
    """Of many new files, the next sync compares whole folders first."""
    for each in range(doubts.MOST_PATHS + 1):
        star.write("local", f"many/{each}", "1")
    star.write("local", "other", "1")
    assert only(star).unsure == ["many", "other"]
    shutil.rmtree(star.roots["local"] / "many")
    (star.roots["alpha"] / "other").write_text("2")
    outcome = only(star)
    assert outcome.code == 1 and files(star, "alpha", "many") == doubts.MOST_PATHS + 1, outcome
    assert star.read("local", "other") == "2"


@pytest.mark.parametrize("age", [0, 100])
@pytest.mark.parametrize("lost", ["local", "alpha"])
def test_a_home_without_files_is_filled_again(star: Star, lost: str, age: int) -> None:
    for each in range(5):
        star.write("local", f"data/{each}", "x", age=age)  # the last sync is unsure of files that were new then
    only(star)
    shutil.rmtree(star.roots[lost] / "data")
    refused = star.yurt("home", "sync", "--yes")
    assert refused.code == 5 and f"`yurt home sync --refill {lost}`" in refused.out, refused
    done = star.yurt("home", "sync", "--refill", lost)
    assert done.code == 0 and f"warning: {lost} had no files any more" in done.err, done
    assert files(star, "local") == files(star, "alpha") == 5
    assert f"{lost} has not lost all its files" in star.yurt("home", "sync", "--refill", lost).err
    shutil.rmtree(star.roots[lost] / "data")
    assert only(star).problem_code == "home-vanished"


def test_a_refill_that_is_cut_off_deletes_nothing(star: Star, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(star, "data", 5)
    only(star)
    shutil.rmtree(star.roots["local"])
    star.roots["local"].mkdir()
    run = client.run

    def cut(pair: places.Pair, start: client.Start, *rest: object) -> client.Finished:
        if not start.refilling:
            return run(pair, start, *rest)  # type: ignore[arg-type]
        folders = (Path(os.environ["UNISON"]), star.roots["alpha"] / ".unison")
        archives = {file: file.read_bytes() for folder in folders for file in folder.glob("ar*")}
        run(pair, start, *rest)  # type: ignore[arg-type]
        for file, content in archives.items():
            file.write_bytes(content)
        for each in range(3):
            (star.roots["local"] / "data" / str(each)).unlink()
        raise UnreachableError("cut", code="connection-lost")

    monkeypatch.setattr(client, "run", cut)
    done = star.yurt("home", "sync", "--refill", "local")
    assert done.code == 4, done
    monkeypatch.setattr(client, "run", run)
    assert only(star).code == 0
    assert files(star, "local") == files(star, "alpha") == 5


def test_the_installed_home_sync_keeps_large_deletions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    star = Star(tmp_path, monkeypatch, ["alpha", "beta"])
    ssh = tmp_path / "bin" / "ssh"
    ssh.parent.mkdir()
    ssh.write_text(SSH.replace("@FOLDER@", str(tmp_path)))
    ssh.chmod(0o700)
    script, home = tmp_path / "home_sync", tmp_path / "alpha"
    rules = profile.ensure(star.place("alpha")).decode()
    script.write_text(install.text(star.homes, star.place("alpha"), {"beta": "beta"}, rules))
    variables = {"HOME": str(home), "UNISON": str(home / ".unison"), "PATH": f"{ssh.parent}:{os.environ['PATH']}"}

    def home_sync(*words: str) -> subprocess.CompletedProcess[str]:
        command = ["sh", str(script), *words]
        return subprocess.run(command, env=variables, text=True, capture_output=True, check=False)

    fill(star, "data/it's one", 150, "alpha")
    star.write("beta", "small/inside", "x", age=100)
    star.write("beta", "note", "x", age=100)
    assert home_sync().returncode == 0
    (star.roots["alpha"] / "note").unlink()
    shutil.rmtree(star.roots["beta"] / "small")
    done = home_sync()
    assert done.returncode == 0 and files(star, "alpha") == files(star, "beta") == 150, done
    star.write("alpha", "other", "x", age=100)
    assert home_sync().returncode == 0
    (star.roots["beta"] / "other").unlink()
    reaches = ssh.read_text()
    ssh.write_text(reaches.replace("host=$1", "case $* in *' sh') exit 255 ;; esac\nhost=$1"))
    done = home_sync()
    assert done.returncode == 1 and "cannot count the files" in done.stderr and files(star, "alpha") == 151, done
    ssh.write_text(reaches)
    assert home_sync().returncode == 0 and files(star, "alpha") == 150
    shutil.rmtree(star.roots["beta"] / "data" / "it's one")
    star.write("beta", "new", "x", age=100)
    done = home_sync()
    assert done.returncode == 1 and "150 files are deleted on one side only" in done.stderr, done
    assert files(star, "alpha") == 151
    assert home_sync("-batch").returncode == 0
    assert files(star, "alpha") == files(star, "beta") == 1
