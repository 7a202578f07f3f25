"""Edits that Unison does not see, because they keep the size and the second of a file."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.homes.star import Star
from yurt.homes import client, doubts, finish, install, ledger, places, profile, scripts
from yurt.homes.ledger import Ledger
from yurt.homes.outcomes import Outcome


@pytest.fixture
def star(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Star:
    return Star(tmp_path, monkeypatch)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The arguments of each Unison."""
    found: list[list[str]] = []
    run = client.run

    def noted(pair: places.Pair, start: client.Start, arguments: list[str], *rest: object) -> client.Finished:
        found.append([*arguments])
        return run(pair, start, arguments, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(client, "run", noted)
    return found


def edit(file: Path, text: str) -> None:
    """Edit a file so that Unison takes it for unchanged: in place, in the same second, to the same size."""
    at = int(file.stat().st_mtime) * 10**9 + 500_000_123
    with file.open("r+") as stream:
        stream.write(text)
    os.utime(file, ns=(at, at))


@pytest.mark.parametrize("edited", ["alpha", "local"])
@pytest.mark.parametrize("source", ["alpha", "local"])
def test_an_edit_of_the_same_length_within_a_second_is_seen(star: Star, source: str, edited: str) -> None:
    star.write(source, "counter", "1")
    assert star.sync().outcomes[0].unsure == ["counter"]
    edit(star.roots[edited] / "counter", "2")
    assert star.sync().code == 0
    assert [star.read(place, "counter") for place in ("alpha", "local")] == ["2", "2"]


def test_nothing_is_compared_if_nothing_was_edited(star: Star, runs: list[list[str]]) -> None:
    star.write("alpha", "from there", "1")
    star.write("local", "odd\nname", "1")
    assert sorted(star.sync().outcomes[0].unsure) == ["from there", "odd\nname"]
    assert star.sync().code == 0
    assert len(runs) == 2


def test_an_edit_during_the_sync_is_seen(star: Star, monkeypatch: pytest.MonkeyPatch) -> None:
    star.write("alpha", "counter", "1")
    end = finish.run

    def slow(*arguments: object, **options: object) -> list[Outcome]:
        edit(star.roots["alpha"] / "counter", "2")
        return end(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(finish, "run", slow)
    star.sync()
    monkeypatch.setattr(finish, "run", end)
    star.sync()
    assert star.read("local", "counter") == "2"


def test_an_edit_after_a_killed_sync_is_seen(star: Star, monkeypatch: pytest.MonkeyPatch) -> None:
    star.write("local", "counter", "1")
    star.write("local", "old", "1", age=100)
    end = finish.run

    def killed(*_arguments: object, **_options: object) -> list[Outcome]:
        raise KeyboardInterrupt

    monkeypatch.setattr(finish, "run", killed)
    with pytest.raises(KeyboardInterrupt):
        star.sync()
    monkeypatch.setattr(finish, "run", end)
    edit(star.roots["local"] / "counter", "2")
    found = doubts.find(places.pairs(star.homes)[0], _identity(), ledger.read())
    assert (found.paths, found.noted) == (["counter"], False)
    star.sync()
    assert star.read("alpha", "counter") == "2"


def test_an_edit_during_home_sync_is_seen(star: Star) -> None:
    from yurt.homes import direct

    star.write("local", "counter", "1")
    assert direct.run(star.homes, ["-batch", "-auto"]) == 0
    edit(star.roots["local"] / "counter", "2")
    assert direct.run(star.homes, ["-batch", "-auto"]) == 0
    assert star.read("alpha", "counter") == "2"


SSH = """\
#!/bin/sh
# Runs a command as sshd does, with the home of the host.
while [ $# -gt 1 ]; do
    case $1 in -o) shift 2 ;; -*) shift ;; *) break ;; esac
done
host=$1 && shift
exec env HOME=@FOLDER@/"$host" UNISON=@FOLDER@/"$host"/.unison sh -c "$*"
"""


@pytest.mark.parametrize("edited", ["alpha", "beta"])
@pytest.mark.parametrize("source", ["alpha", "beta"])
def test_an_edit_is_seen_by_the_installed_home_sync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, edited: str
) -> None:
    star = Star(tmp_path, monkeypatch, ["alpha", "beta"])
    ssh = tmp_path / "bin" / "ssh"
    ssh.parent.mkdir()
    ssh.write_text(SSH.replace("@FOLDER@", str(tmp_path)))
    ssh.chmod(0o700)
    script = tmp_path / "home_sync"
    script.write_text(install.text(star.homes, star.place("alpha"), {"beta": "beta"}))
    home = tmp_path / "alpha"
    profile.ensure(star.place("alpha"))
    variables = {"HOME": str(home), "UNISON": str(home / ".unison"), "PATH": f"{ssh.parent}:{os.environ['PATH']}"}

    def home_sync() -> str:
        done = subprocess.run(["sh", str(script)], env=variables, text=True, capture_output=True, check=False)
        assert done.returncode == 0, done
        return done.stdout + done.stderr

    star.write(source, "counter's", "1")
    assert "edited" not in home_sync()
    edit(star.roots[edited] / "counter's", "2")
    assert f"files on {edited} were edited during the last sync\n" in home_sync()
    assert [star.read(place, "counter's") for place in ("alpha", "beta")] == ["2", "2"]
    assert "edited" not in home_sync()
    for place in ("alpha", "beta"):
        left = {file.name.split(".")[0] for file in (star.roots[place] / ".unison" / "yurt").iterdir()}
        assert left <= {"began", "last", "link", "lock", "owner", "roots", "unsure"}


def _identity() -> str:
    return (Path(os.environ["UNISON"]) / "yurt" / "id").read_text().strip()


def test_of_many_files_their_folders_are_looked_at(star: Star) -> None:
    for number in range(doubts.MOST_PATHS + 1):
        star.write("local", f"many/below/{number}", "1")
    star.sync()
    for number in range(doubts.MOST_PATHS + 1):
        star.write("local", f"many/below/{number}", "22")
    assert star.sync().outcomes[0].unsure == ["many"]


@pytest.mark.parametrize("knows", [True, False])
def test_without_gnu_find_contents_are_always_compared(tmp_path: Path, knows: bool) -> None:
    (tmp_path / "yurt").mkdir()
    (tmp_path / "file").write_text("1")
    other = 'find() { case "$*" in *printf*) return 1 ;; esac; command find "$@"; }\n'
    script = f"""\
UNISON={tmp_path}
{"" if knows else other}
{scripts.text("sure.sh")}
while [ ! yurt/began.r -nt file ]; do sure_begin r token; done # the clock of the file system ticks slowly
sure_save r {tmp_path} ./file
sure_check r {tmp_path} required && echo same
"""
    done = subprocess.run(["sh", "-c", script], cwd=tmp_path, text=True, capture_output=True, check=False)
    assert done.stdout == ("unsure r\nsame\n" if knows else "unsure r\n")


def outcome(began: float, ended: float, code: int = 0, **more: object) -> Outcome:
    return Outcome(hub="local", spoke="alpha", began=began, ended=ended, code=code, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("later", "unsure"),
    [
        ([], ["a"]),
        ([outcome(12, 13)], ["a"]),
        ([outcome(14, 15)], []),
        ([outcome(14, 15, code=3)], ["a"]),
        ([outcome(14, 15, paths=["b"])], ["a"]),
        ([outcome(14, 15, code=3, unsure=["b"])], ["a", "b"]),
    ],
)
def test_when_a_file_is_no_longer_doubtful(later: list[Outcome], unsure: list[str]) -> None:
    """When a sync of everything began so late that another edit has another time."""
    first = outcome(10, 11, unsure=["a"])
    assert Ledger({first.pair: [first, *later]}).unsure(first.pair) == unsure
