"""What a sync starts on this machine writes only in the home, Unison's folder and the folder for temporary files."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import msgspec
import pytest

from tests.homes.star import Star
from yurt.errors import RefusedError
from yurt.homes import confined, finish, here, output, profile, resolve, versions
from yurt.homes.config import PlaceSettings

needs_landlock = pytest.mark.skipif(confined.version() < confined.OLDEST, reason="needs Landlock of Linux 5.19")

HOSTILE = """\
#!/bin/sh
if [ "$1" = -version ]; then
    echo 'unison version 2.53.3 (ocaml 4.14.1)'
    exit
fi
echo bad > {outside}/new; echo bad > {outside}/own; rm {outside}/own; mkdir {outside}/folder
ln -s / {outside}/link; mv {outside}/own {home}/stolen; truncate -s 0 {outside}/own
echo inside > {home}/inside
"""


def run(script: str, *folders: Path) -> bool:
    return confined.call(lambda: subprocess.run(["sh", "-c", script], check=False), [str(each) for each in folders])


@needs_landlock
def test_writes_below_the_folders_only(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    for each in (inside, outside):
        each.mkdir()
        (each / "own").write_text("own")
    for each in (outside, inside):
        assert run(f"cd {each}; echo x > new; mkdir d; ln own hard; mv own d/; echo x > /dev/null && : > null", inside)
    assert [each.name for each in outside.iterdir()] == ["own"]
    assert {each.name for each in inside.iterdir()} == {"new", "d", "hard", "null"} and (inside / "d" / "own").exists()
    (outside / "after").write_text("this process keeps its rights")


def test_an_error_reaches_the_caller(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        confined.call(lambda: subprocess.Popen([str(tmp_path / "none")]) and None, [str(tmp_path)])


@needs_landlock
@pytest.mark.parametrize("writes", ["home", "anywhere"])
def test_a_hostile_unison(writes: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other side has made this machine's Unison do what it wants."""
    star = Star(tmp_path / "star", monkeypatch)
    outside, temporary = tmp_path / "outside", tmp_path / "tmp"
    for each in (outside, temporary):
        each.mkdir()
    (outside / "own").write_text("own")
    monkeypatch.setenv("TMPDIR", str(temporary))
    unison = tmp_path / "unison"
    unison.write_text(HOSTILE.format(outside=outside, home=star.roots["local"]))
    unison.chmod(0o755)
    star.homes.places["local"] = PlaceSettings(unison=str(unison))
    star.homes = msgspec.structs.replace(star.homes, unison_writes=writes)
    assert [each.code for each in star.sync().outcomes] == [3]
    assert (star.roots["local"] / "inside").exists()
    free = writes == "anywhere"
    assert {each.name for each in outside.iterdir()} == ({"new", "folder", "link", "own"} if free else {"own"})
    assert free or (outside / "own").read_text() == "own"


@needs_landlock
def test_a_first_sync_creates_its_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    star = Star(tmp_path / "star", monkeypatch)
    star.roots["local"].rmdir()
    star.write("alpha", "a", "text")
    assert [each.code for each in star.sync().outcomes] == [0] and star.read("local", "a") == "text"


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("follow = Path data", "follow"),
        ("  follow=Name x", "follow"),
        ("include other", "include"),
        ("logfile = /x", "logfile"),
        ("-follow", "follow"),
        ("-backupdir=/x", "backupdir"),
        ("# follow = x", ""),
        ("ignore = Path follow", ""),
        ("-batch", ""),
        ("followed = x", ""),
    ],
)
def test_settings_that_lead_out_of_the_home(line: str, found: str) -> None:
    argument = line.startswith("-")
    assert profile.writes_elsewhere(b"" if argument else os.fsencode(line), [line] if argument else []) == found


def test_such_a_setting_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unison may write its own profile: the next one would not be confined."""
    star = Star(tmp_path, monkeypatch)
    star.profile("merge = Name * -> id\n")
    (outcome,) = star.sync().outcomes
    assert outcome.problem == "the setting 'merge' lets Unison write outside of the home", outcome
    star.homes = msgspec.structs.replace(star.homes, unison_writes="anywhere")
    assert [each.code for each in star.sync().outcomes] == [0]


@needs_landlock
def test_links_in_the_folder_of_unison_lead_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A confined Unison can put them there, for what yurt runs after it."""
    star, outside = Star(tmp_path / "star", monkeypatch), tmp_path / "own"
    outside.write_text("own")
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    star.backups("local").mkdir(parents=True)
    (star.backups("local") / ".expired").symlink_to(outside)
    finish._run(star.place("local"), ["", "", "20000101000000", "token", "", str(star.roots["local"])])
    assert outside.read_text() == "own"
    unison = Path(os.environ["UNISON"])
    (unison / "yurt").mkdir(exist_ok=True)
    (unison / "yurt" / "id").write_text("../../x")
    assert "/" not in here.identity()


LEADS_AWAY = "link/own"


def link_out(star: Star, place: str, outside: Path) -> None:
    """Put a link into a home, as another home may have sent it."""
    outside.mkdir()
    (outside / "own").write_text("own")
    (outside / "own").chmod(0o600)
    (star.roots[place] / "link").symlink_to(outside)


def test_resolving_writes_nothing_behind_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    star, outside = Star(tmp_path / "star", monkeypatch), tmp_path / "outside"
    link_out(star, "local", outside)
    run_here, links = star.place("local").run, resolve.LINKS.read_text()
    root = str(star.roots["local"])
    assert run_here(links + resolve.SCRIPT.read_text(), root, LEADS_AWAY, "link/own.alpha", "").code
    assert run_here(links + resolve.MODES, root, "777", LEADS_AWAY).code
    assert [each.name for each in outside.iterdir()] == ["own"] and (outside / "own").stat().st_mode & 0o777 == 0o600


def test_a_link_in_the_backups_is_no_way_to_other_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    star, outside = Star(tmp_path / "star", monkeypatch), tmp_path / "outside"
    dated = star.backups("local") / "20261117T035512Z-k3x"
    dated.mkdir(parents=True)
    star.roots["dated"] = dated
    link_out(star, "dated", outside)
    done = star.yurt("home", "restore", LEADS_AWAY)
    assert done.code == 3 and f"there is no backup of '{LEADS_AWAY}'" in done.err, done
    assert "link/" not in star.yurt("home", "backups", LEADS_AWAY).out
    done = star.yurt("home", "restore", "link")
    assert done.code == 0 and (star.roots["local"] / "link").is_symlink(), done


@pytest.mark.parametrize("path", ["../x", "a/../../x", "/x", "a//x", "."])
def test_a_path_of_unison_that_leads_out_of_the_home(path: str) -> None:
    out = f"new file ---->            {path}  \n".encode()
    summary = b"Synchronization complete at 1:00:00  (1 item transferred, 0 skipped, 0 failed)\n"
    with pytest.raises(RefusedError, match="is not a path below the home"):
        output.read(out, summary, "token")


@pytest.mark.parametrize("digits", [b"777x", b"-R", b"77777", b"u+s"])
def test_a_mode_of_a_site(digits: bytes) -> None:
    with pytest.raises(ValueError, match="is not a mode"):
        versions._mode(digits)
    assert versions._mode(b"4755") == "755"
