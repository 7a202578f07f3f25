"""Rounds of a star of homes: changes reach every place, nothing is overwritten, every failure is a sentence."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.homes.star import Star
from yurt.errors import UnreachableError, UserError
from yurt.homes import config, here, home_sync, ledger, rounds
from yurt.homes.outcomes import Outcome, Round
from yurt.homes.rounds import whole


@pytest.fixture
def star(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Star:
    return Star(tmp_path, monkeypatch)


def only(done: Round) -> Outcome:
    (outcome,) = done.outcomes
    return outcome


def test_changes_of_the_last_place_reach_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    star = Star(tmp_path, monkeypatch, ["alpha", "beta"])
    star.write("alpha", "from alpha", "a")
    star.write("beta", "from beta", "b")
    done = star.sync()
    assert done.code == 0
    for place in star.roots:
        assert star.read(place, "from alpha") == "a"
        assert star.read(place, "from beta") == "b"
    first, second = done.outcomes
    assert (first.to_hub, first.to_spoke, first.size) == (1, 1, 2)
    assert (second.to_hub, second.to_spoke) == (1, 1)
    assert [each.transferred for each in star.sync().outcomes] == [0, 0]


def test_names_of_all_kinds(star: Star) -> None:
    names = [
        b"new\nline",
        b"carriage\rreturn",
        b"bad\xff",
        b"back\\slash",
        b" lead and trail ",
        b"a ----> b",
        b"-rf",
        b"$(touch x)",
        b"'\"*",
    ]
    for name in names:
        (star.roots["alpha"] / os.fsdecode(name)).write_bytes(name)
    done = star.sync()
    assert done.code == 0 and only(done).to_hub == len(names), done
    found = {os.fsencode(each.name) for each in star.roots["local"].iterdir()}
    assert found == {*names, b".yurt-home"}
    star.write("local", "other", "x")
    for name in names:
        (star.roots["local"] / os.fsdecode(name)).unlink()
    done = star.sync()
    assert done.code == 0 and only(done).deleted == len(names), done
    assert {each.name for each in star.roots["alpha"].iterdir()} == {"other", ".unison", ".yurt-home"}


def test_a_conflict_keeps_both_versions_and_other_files_are_synced(star: Star) -> None:
    star.write("local", "odd (1)\nname", "first")
    star.sync()
    star.write("local", "odd (1)\nname", "mine")
    star.write("alpha", "odd (1)\nname", "theirs")
    star.write("alpha", "other", "x")
    outcome = only(star.sync())
    assert (outcome.code, outcome.transferred) == (1, 1)
    assert [each.path for each in outcome.skipped] == ["odd (1)\nname"]
    assert (star.read("local", "odd (1)\nname"), star.read("alpha", "odd (1)\nname")) == ("mine", "theirs")
    known = ledger.read()
    assert [each.path for each in known.conflicts()] == ["odd (1)\nname"]
    good = known.last_good("local-alpha")
    assert good is not None and good.ended < outcome.began


def test_replaced_and_deleted_versions_are_in_dated_backups_under_their_names(star: Star) -> None:
    for path in ("a/.hidden", "a/b", "c"):
        star.write("local", path, "old")
    star.sync()
    star.write("alpha", "a/.hidden", "new")  # as long as before, and within a second of it
    (star.roots["alpha"] / "c").unlink()
    (star.roots["local"] / "a" / "b").unlink()
    outcome = only(star.sync())
    assert outcome.code == 0
    found = {
        place: {str(each.relative_to(dated)) for dated in folders for each in Path(dated).rglob("*") if each.is_file()}
        for place, folders in outcome.backups.items()
    }
    assert found == {"local": {"a/.hidden", "c"}, "alpha": {"a/b"}}
    assert {Path(each).parent for each in outcome.backups["local"]} == {star.backups("local")}


def test_a_root_that_is_not_mounted_stops_the_sync(star: Star) -> None:
    star.write("alpha", "precious", "x")
    star.sync()
    shutil.move(star.roots["local"], f"{star.roots['local']}.away")
    star.roots["local"].mkdir()
    outcome = only(star.sync())
    assert (outcome.code, outcome.problem_code, outcome.problem_exit) == (3, "home-vanished", 5)
    assert "has lost its file .yurt-home" in outcome.problem
    assert star.read("alpha", "precious") == "x"
    star.roots["local"].rmdir()
    assert only(star.sync()).problem_code == "home-vanished"
    assert not star.roots["local"].exists()
    shutil.move(f"{star.roots['local']}.away", star.roots["local"])
    assert star.sync().code == 0


def test_a_second_sync_is_refused(star: Star) -> None:
    with here.locked():
        done = star.yurt("home", "sync", "--yes")
    assert done.code == 5 and "another sync of this machine is running" in done.err, done
    done = star.yurt("home", "sync", "--yes")
    assert done.code == 0, done


def test_a_site_without_unison_gets_this_machines_copy(star: Star, monkeypatch: pytest.MonkeyPatch) -> None:
    star.write("alpha", "a", "x")
    tools = star.roots["alpha"].parent / "tools"
    tools.mkdir()
    for folder in ("/usr/bin", "/bin"):
        for program in Path(folder).iterdir():
            if "unison" not in program.name and not (tools / program.name).is_symlink():
                (tools / program.name).symlink_to(program)
    monkeypatch.setattr(star.place("alpha").host, "path", str(tools))
    done = star.sync()
    assert done.code == 0, done
    assert (star.roots["alpha"] / ".unison" / "yurt" / "bin" / "unison").stat().st_mode & 0o777 == 0o700
    assert star.read("local", "a") == "x"


def test_an_old_unison_is_named_with_the_remedy(star: Star) -> None:
    old = star.roots["alpha"] / "old unison"
    old.write_text("#!/bin/sh\necho 'unison version 2.51.5 (ocaml 4.13.1)'\n")
    old.chmod(0o700)
    homes = config.Homes(places={"alpha": config.PlaceSettings(unison=str(old))}, folder=star.homes.folder)
    star.homes = homes
    outcome = only(star.sync())
    assert outcome.problem_code == "unison-missing"
    assert outcome.problem == f"alpha has no Unison 2.52 or newer: {old} 2.51.5 is too old"
    assert "homes.yaml" in outcome.hint


def test_the_protocol_of_an_older_unison_is_refused(star: Star) -> None:
    """Also by a server that says that it is newer: Unison loads the values of that protocol without checking them."""
    hostile = star.roots["alpha"] / "unison"
    hostile.write_text(
        "#!/bin/sh\n[ \"$1\" = -version ] || { echo 'Unison 2.51 with OCaml >= 4.01.2'; cat; exit; }\n"
        "echo 'unison version 2.53.3 (ocaml 4.14.1)'\n"
    )
    hostile.chmod(0o700)
    star.homes = config.Homes(places={"alpha": config.PlaceSettings(unison=str(hostile))}, folder=star.homes.folder)
    outcome = only(star.sync())
    assert outcome.problem_code == "unison-missing"
    assert outcome.problem == "alpha has no Unison 2.52 or newer: its protocol is too old"


def test_lost_archives_on_one_side_delete_nothing(star: Star) -> None:
    star.write("alpha", "a", "x")
    star.write("alpha", "b", "x")
    star.sync()
    (star.roots["alpha"] / "b").unlink()
    for archive in (star.roots["alpha"] / ".unison").glob("ar*"):
        archive.unlink()
    outcome = only(star.sync())
    assert outcome.code == 0 and outcome.warnings, outcome
    assert star.read("alpha", "a") == star.read("alpha", "b") == "x"


def test_a_new_folder_with_a_path_that_cannot_be_synced(star: Star) -> None:
    star.write("alpha", "new/file", "x")
    os.mkfifo(star.roots["alpha"] / "new" / "pipe")
    done = star.yurt("home", "sync", "--yes")
    assert done.code == 1 and "1 change to local" in done.out and "1 path not synced" in done.out, done
    assert star.read("local", "new/file") == "x"
    assert star.yurt("home", "sync").code == 0  # the pipe alone is no fault


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount a small disk")
def test_a_full_disk_is_named(star: Star, tmp_path: Path) -> None:
    disk = tmp_path / "unison"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48k,mode=700", "none", str(disk)], check=True)
    try:
        for number in range(900):
            star.write("local", f"a rather long name for a file, number {number}", "x" * number)
        outcome = only(star.sync())
        assert outcome.code == 3 and "a disk or quota may be full" in outcome.problem, outcome
        subprocess.run(["mount", "-o", "remount,size=4m", str(disk)], check=True)
        assert only(star.sync()).code == 0
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_sync_that_cannot_be_recorded_says_so(star: Star, monkeypatch: pytest.MonkeyPatch) -> None:
    star.write("local", "a", "x")
    full = OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr(ledger, "add", lambda _outcomes: (_ for _ in ()).throw(full))
    done = star.yurt("home", "sync", "--yes")
    assert done.code == 0 and "alpha: 1 change to alpha" in done.out, done
    assert "this sync is not recorded: cannot write" in done.err and "No space left on device" in done.err
    assert star.read("alpha", "a") == "x"


def test_a_lock_that_cannot_be_written_is_named(star: Star) -> None:
    star.write("local", "a", "x")
    star.sync()
    lock = star.roots["alpha"] / ".unison" / "yurt" / "lock"
    lock.unlink()
    lock.mkdir()
    outcome = only(star.sync())
    assert (outcome.problem_exit, outcome.problem_code) == (5, "site-refused"), outcome
    assert "alpha: cannot use the folder" in outcome.problem and "read or written" in outcome.problem


def test_a_root_that_cannot_be_written_is_named(star: Star) -> None:
    star.write("local", "a", "x")
    (star.roots["alpha"] / ".yurt-home").mkdir()
    outcome = only(star.sync())
    assert (outcome.problem_exit, outcome.problem_code) == (5, "site-refused"), outcome


def test_status_counts_what_is_pending_here(star: Star) -> None:
    star.write("local", "a", "x")
    star.sync()

    def pending() -> object:
        return star.yurt("home", "status", "--json").json["data"]["pairs"][0]["pending"]

    assert pending() == 0
    star.write("local", "a", "y")
    star.write("local", "odd\nname", "z")
    star.write("local", ".cache/ignored", "z")
    assert pending() == 2


def test_equal_files_with_different_times_are_no_conflict(star: Star) -> None:
    star.write("local", "a", "1", age=100)
    star.sync()
    for place, age in (("local", 50), ("alpha", 20)):
        star.write(place, "a", "same on both", age=age)
        star.write(place, "new", "same on both", age=age)
    star.write("local", "other", "mine", age=50)
    star.write("alpha", "other", "theirs", age=20)
    outcome = only(star.sync())
    assert (outcome.code, [each.path for each in outcome.skipped]) == (1, ["other"])
    times = {(star.roots[place] / name).stat().st_mtime for place in ("local", "alpha") for name in ("a", "new")}
    assert max(times) - min(times) < 1
    assert {place: star.read(place, "a") for place in ("local", "alpha")} == dict.fromkeys(
        ("local", "alpha"), "same on both"
    )


def test_pipes_are_no_conflict(star: Star) -> None:
    star.write("local", "a", "1", age=100)
    os.mkfifo(star.roots["local"] / "pipe")
    outcome = only(star.sync())
    assert (outcome.code, outcome.failed, outcome.skipped) == (0, [], []), outcome
    assert star.read("alpha", "a") == "1"


def test_files_that_a_failed_sync_did_not_copy_are_pending(star: Star, monkeypatch: pytest.MonkeyPatch) -> None:
    star.write("local", "a", "1", age=100)
    star.sync()
    star.write("local", "new", "1")
    with monkeypatch.context() as patch:
        patch.setattr("yurt.homes.client.run", refuse)
        assert only(star.sync()).code == 3
    assert star.yurt("home", "status", "--json").json["data"]["pairs"][0]["pending"] == 1


def refuse(*_arguments: object) -> None:
    raise UnreachableError("alpha: lost connection", code="connection-lost")


def test_another_hub_is_synced_with_all_places(star: Star) -> None:
    star.write("local", "a", "1", age=100)
    star.sync()
    planned = home_sync.plan(["alpha"], hub="alpha")
    assert (planned.homes.names, planned.only, planned.first) == (["alpha", "local"], [], ["local"])


def test_without_a_confirmation_the_other_homes_are_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    star = Star(tmp_path, monkeypatch, ["alpha", "beta"])
    star.write("local", "a", "1", age=100)
    rounds.run(star.homes, ["alpha"])
    star.write("local", "b", "1", age=100)
    done = star.yurt("home", "sync")
    assert done.code == 5 and "beta: nothing was synced: the first sync needs your confirmation" in done.out, done
    assert star.read("alpha", "b") == "1" and not (star.roots["beta"] / "b").exists()


def test_status_names_a_place_that_is_no_context(star: Star) -> None:
    done = star.yurt("home", "status")
    assert done.code == 1
    assert "homes.yaml names 'alpha', which is not a context" in done.err


def test_which_arguments_still_sync_everything() -> None:
    assert whole([]) and whole(["-batch", "-prefer", "newer", "-terse"])
    for words in (["-path", "a"], ["-testserver"], ["-batch", "-ignore", "Name x"], ["-batch", "-nodeletion", "x"]):
        assert not whole(words)


def test_a_home_that_lost_all_its_files_stops_the_sync(star: Star) -> None:
    """Its marker is still there, as if only the files had been deleted."""
    star.write("local", "a/b", "x")
    star.sync()
    shutil.rmtree(star.roots["local"] / "a")
    outcome = only(star.sync())
    assert (outcome.code, outcome.problem_code, outcome.problem_exit) == (3, "home-vanished", 5)
    assert "has no files any more" in outcome.problem and star.read("alpha", "a/b") == "x"
    (star.roots["local"] / ".yurt-home").write_text("")  # the user says that it is right
    assert only(star.sync()).code == 0
    assert not (star.roots["alpha"] / "a").exists()


def test_a_site_that_lost_its_whole_home_stops_the_sync(star: Star) -> None:
    """Also what it knew of earlier syncs is gone; this machine knows."""
    star.write("local", "precious", "x")
    star.sync()
    shutil.rmtree(star.roots["alpha"])
    star.roots["alpha"].mkdir()
    outcome = only(star.sync())
    assert (outcome.code, outcome.problem_code) == (3, "home-vanished"), outcome
    assert star.read("local", "precious") == "x" and not (star.roots["alpha"] / "precious").exists()


def test_an_older_archive_of_a_site_is_compared_again(star: Star) -> None:
    star.write("local", "a", "1", age=60)
    star.sync()
    archives = star.roots["alpha"] / ".unison"
    older = {each: each.read_bytes() for each in archives.glob("ar*")}
    star.write("local", "a", "22", age=30)
    star.sync()
    for file, content in older.items():
        file.write_bytes(content)
    outcome = only(star.sync())
    assert outcome.code == 0 and older, outcome
    assert star.read("alpha", "a") == "22"


@pytest.mark.parametrize("folder", ["/", "~/..", "~/.ssh/x"])
def test_a_folder_that_is_not_ones_own_is_refused(star: Star, folder: str) -> None:
    with pytest.raises(UserError, match="cannot be a home"):
        home_sync.plan([], folder=folder)


def test_an_unreadable_queue_is_said(star: Star) -> None:
    """The jobs that wait for the sync are not known then: nobody may think that it has released them."""
    star.write("local", "a", "x", age=100)
    squeue = star.roots["alpha"].with_name("alpha-tools") / "squeue"
    good = squeue.read_text()
    for _round in range(3):  # nor is a round left out because nothing has changed
        squeue.write_text("#!/bin/sh\necho 'slurm_load_jobs error' >&2; exit 1\n")
        outcome = only(star.sync())
        assert outcome.code == 0
        assert outcome.warnings == [
            "jobs on alpha that wait for this sync could not be listed; the next one releases them"
        ]
        squeue.write_text(good)
    assert only(star.sync()).warnings == []
    squeue.write_text("#!/bin/sh\necho 'squeue: fatal: Could not establish a configuration source' >&2; exit 1\n")
    for _round in range(2):
        assert only(star.sync()).warnings == [], "a host with Slurm's commands and no cluster has no jobs"
