"""fetch of a run that has only outputs: looks at the run and fetches it in one session; otherwise as always."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.conftest import Ssh
from tests.laptop import Laptop
from yurt.backends.shell import pull
from yurt.hosts import Host
from yurt.lab import Lab

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
