"""fetch of a run that has only outputs: looks at the run and fetches it in one session; otherwise as always."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.lab.conftest import Ssh
from tests.laptop import Laptop
from yurt.backends.shell import pull
from yurt.lab import Lab
from yurt.transport.base import Host

pytestmark = pytest.mark.lab


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many folders each separate request for contents was about."""
    seen: list[int] = []
    usual = pull.contents

    def contents(host: Host, folders: list[str]) -> object:
        seen.append(len(folders))
        return usual(host, folders)

    monkeypatch.setattr(pull, "contents", contents)
    return seen


def finished(laptop: Laptop, command: str) -> tuple[str, str]:
    run = laptop.run("alpha", "--time", "5m", "sh", "-c", command)["run"]
    assert laptop.quick("wait", run["id"], "--timeout", "120").code == 0
    return run["id"], run["folder"]


def test_outputs_take_one_session(shared_laptop: Laptop, lab: Lab, looks: list[int], tmp_path: Path) -> None:
    laptop, ssh = shared_laptop, Ssh(lab)
    run, folder = finished(laptop, 'echo one > "$YURT_OUTPUTS/it\'s 1"')
    words = ["fetch", run, "--json", "--to"]
    assert laptop.quick(*words, str(tmp_path / "first")).code == 0
    looks.clear()
    done = laptop.quick(*words, str(tmp_path / "second")).json["data"][0]
    assert (done["files"], done["method"], done["complete"], looks) == (1, "rsync", True, [])
    assert (tmp_path / "second" / "it's 1").read_text() == "one\n"
    done = laptop.quick(*words, str(tmp_path / "second")).json["data"][0]
    assert (done["files"], done["complete"], looks) == (0, True, [])
    kept = "for each in .cache/yurt/scripts/*; do echo 'touch evil' >> \"$each\"; done"
    ssh("alpha", kept)
    done = laptop.quick(*words, str(tmp_path / "third")).json["data"][0]
    assert (done["files"], looks) == (1, [1]), "a script that was changed is not executed"
    assert ssh("alpha", "ls evil 2> /dev/null || echo none").strip().endswith("none")
    looks.clear()
    unmatched = laptop.quick(*words, str(tmp_path / "fourth"), "--only", "*.txt")
    assert (unmatched.code, (tmp_path / "fourth").exists(), looks) == (3, False, [])
    ssh("alpha", f"rm -rf {folder}")
    gone = laptop.quick(*words, str(tmp_path / "fifth"))
    assert (gone.code, "was deleted" in gone.err + gone.out, (tmp_path / "fifth").exists()) == (3, True, False)


def test_other_results_do_not(shared_laptop: Laptop, looks: list[int], tmp_path: Path) -> None:
    laptop = shared_laptop
    both, _folder = finished(laptop, 'echo one > "$YURT_OUTPUTS/one"; echo two > two; echo no > one')
    nothing, _folder = finished(laptop, "true")
    for again in ("first", "second"):
        done = laptop.quick("fetch", both, "--json", "--to", str(tmp_path / again)).json["data"][0]
        assert (done["files"], done["hidden"]) == (2, 1)
        found = {each.name: each.read_text() for each in (tmp_path / again).iterdir()}
        assert found == {"one": "one\n", "two": "two\n"}
        done = laptop.quick("fetch", nothing, "--json", "--to", str(tmp_path / "no")).json["data"][0]
        assert (done["target"], done["complete"], (tmp_path / "no").exists()) == ("", True, False)


def test_a_repeated_fetch(shared_laptop: Laptop, lab: Lab, tmp_path: Path) -> None:
    """What changed here or on the site since the last fetch is noticed."""
    laptop, ssh = shared_laptop, Ssh(lab)
    run, folder = finished(laptop, 'echo one > "$YURT_OUTPUTS/one"; echo two > "$YURT_OUTPUTS/two"')
    target = tmp_path / "to"
    files = {"one": "one\n", "two": "two\n"}

    def fetch() -> tuple[int, dict[str, str]]:
        done = laptop.quick("fetch", run, "--json", "--to", str(target))
        assert done.code == 0, done
        (each,) = done.json["data"]
        assert (each["target"], each["method"], each["complete"]) == (str(target), "rsync", True)
        return each["files"], {each.name: each.read_text() for each in target.iterdir()}

    assert laptop.quick("fetch", run, "--to", str(tmp_path / "first")).code == 0  # the site keeps the script
    assert fetch() == (2, files)
    assert fetch() == (0, files)
    (target / "one").unlink()
    (target / "two").write_text("changed\n")
    assert fetch() == (2, files)
    shutil.rmtree(target)
    assert fetch() == (2, files)
    ssh("alpha", f"echo three > {folder}/outputs/three; rm {folder}/outputs/one")
    files["three"] = "three\n"
    assert fetch() == (1, files), "what was deleted on the site is kept here"
    ssh("alpha", "rm .cache/yurt/scripts/*")
    assert fetch() == (0, files), "the site has lost the script"
    assert fetch() == (0, files)
    ssh("alpha", f"mkdir -p {folder}/work; echo more > {folder}/work/more")
    files["more"] = "more\n"
    assert fetch() == (1, files), "results that are not outputs"
    ssh("alpha", f"rm -rf {folder}")
    gone = laptop.quick("fetch", run, "--json", "--to", str(target))
    assert (gone.code, "was deleted" in gone.json["error"]["message"]) == (3, True)
    assert {each.name: each.read_text() for each in target.iterdir()} == files


def test_only_some_of_the_files_clash(shared_laptop: Laptop, tmp_path: Path) -> None:
    laptop = shared_laptop
    run, _folder = finished(
        laptop, 'for each in a b; do echo 1 > "$YURT_OUTPUTS/$each"; echo 2 > $each; done; echo > c'
    )
    for words, clashes in (([], 2), (["--only", "a"], 1), (["--only", "c"], 0)):
        done = laptop.quick("fetch", run, "--json", "--to", str(tmp_path / "".join(words)), *words)
        assert (done.code, done.json["data"][0]["hidden"], len(done.json["warnings"])) == (0, clashes, bool(clashes))


def test_a_folder_in_the_way_of_a_file(shared_laptop: Laptop, tmp_path: Path) -> None:
    laptop = shared_laptop
    run, _folder = finished(laptop, 'for each in a b; do echo 1 > "$YURT_OUTPUTS/$each"; done; echo 2 > c')
    (tmp_path / "a" / "mine").mkdir(parents=True)
    done = laptop.quick("fetch", run, "--json", "--to", str(tmp_path))
    assert (done.code, done.json["error"]["code"]) == (5, "cannot-write")
    assert f"'{tmp_path}/a' is a folder with files" in done.json["error"]["message"]
    assert "--to" in done.json["error"]["hint"]
    assert {each.name for each in tmp_path.iterdir()} == {"a", "b", "c"} and (tmp_path / "a" / "mine").is_dir()


def test_an_rsync_that_only_exits(shared_laptop: Laptop, lab: Lab, tmp_path: Path) -> None:
    laptop, ssh = shared_laptop, Ssh(lab)
    run, _folder = finished(laptop, 'echo one > "$YURT_OUTPUTS/one"')
    assert laptop.quick("fetch", run, "--to", str(tmp_path / "first")).code == 0  # the site has the script now
    ssh("alpha", "mkdir -p bin-only && printf '#!/bin/sh\\nexit 0\\n' > bin-only/rsync && chmod 755 bin-only/rsync")
    ssh("alpha", "cp -p .bashrc .bashrc.kept; sed -i '1i PATH=$HOME/bin-only:$PATH' .bashrc")
    try:
        done = laptop.quick("fetch", run, "--to", str(tmp_path / "second"))
    finally:
        ssh("alpha", "mv .bashrc.kept .bashrc; rm -r bin-only")
    assert "internal error" not in done.err and done.code in (0, 5), done
    assert (done.code == 0) == (tmp_path / "second" / "one").is_file()
