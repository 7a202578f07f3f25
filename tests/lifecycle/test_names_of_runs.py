"""How a run is named on the command line: by id, prefix, name or job; `-` and `@last`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.laptop import Laptop
from tests.user import User


def submit(user: User, *options: str, cwd: Path | None = None) -> str:
    done = user("--json", "run", "--no-snapshot", *options, "true", cwd=cwd)
    assert done.code == 0, done
    return str(done.json["data"]["run"]["id"])


def shown(user: User, word: str, cwd: Path | None = None) -> str:
    done = user("show", word, "--json", cwd=cwd)
    assert done.code == 0, done
    return str(done.json["data"]["run"]["id"])


@pytest.fixture
def other(tmp_path: Path) -> Path:
    folder = tmp_path / "other project"
    folder.mkdir()
    return folder


def test_the_newest_of_this_project_and_of_all(user: User, other: Path) -> None:
    mine = submit(user)
    done = user("show", "-", cwd=other)
    assert done.code == 3 and "there are no runs of this project yet" in done.err and f"`@last`: {mine}" in done.err
    theirs = submit(user, cwd=other)
    assert (shown(user, "-"), shown(user, "-", other)) == (mine, theirs)
    assert shown(user, "@last") == shown(user, "@last", other) == theirs


def test_by_name(user: User, other: Path) -> None:
    first, newest = submit(user, "--name", "base line"), submit(user, "--name", "base line")
    theirs = submit(user, "--name", "base line", cwd=other)
    assert shown(user, "base line") == newest != first, "the newest one of this project"
    assert shown(user, "base line", other) == theirs
    only = submit(user, "--name", "only", cwd=other)
    assert shown(user, "only") == only, "of another project if this one has none"
    sweep = submit(user, "--grid", "n=1,2", "--name", "grid")
    assert shown(user, "grid") == sweep and shown(user, "grid.1") == f"{sweep}.1"
    assert user("wait", "base line", "only", "grid").code == 0
    missing = user("show", "nothing")
    assert missing.code == 3 and missing.err == "yurt: run 'nothing' not found\n  hint: list runs with `yurt ps`\n"


@pytest.mark.slow
def test_names_with_the_prefix_of_an_id_of_another_project(user: User, other: Path) -> None:
    theirs, mine = submit(user, cwd=other), submit(user)
    prefix = theirs.partition("-")[2][:4]
    assert user("show", prefix).err == ""
    submit(user, "--name", f"{prefix}-1")
    about = f"'{prefix}' is a prefix of the id {theirs}, a run of project "
    for verb in ("show", "wait"):
        done = user(verb, prefix, "--json").json
        (warning,) = done["warnings"]
        assert warning.startswith(about) and warning.endswith(f"; names with this prefix: {prefix}-1")
    assert user("show", prefix, cwd=other).err == "", "its own project"
    assert user("show", f"{prefix}-1").err == user("show", theirs).err == user("show", mine[:9]).err == ""


def test_an_id_goes_before_a_name(user: User) -> None:
    first = submit(user)
    submit(user, "--name", first)
    assert shown(user, first) == first


@pytest.mark.lab
def test_by_job(laptop: Laptop) -> None:
    ids = {}
    for context in ("alpha", "beta"):
        row = laptop.run(context, "true")["run"]["id"]
        laptop.ended(row)
        ids[f"{context}:{laptop.row(row)['job']}"] = row
    for word, run in ids.items():
        assert shown(laptop, word) == run
    sweep = laptop.run("alpha", "--grid", "n=1..3", "true")["run"]["id"]
    assert laptop.ended(sweep)["state"] == "completed"
    job = laptop.row(sweep)["job"]
    assert shown(laptop, f"alpha:{job}") == sweep and shown(laptop, f"alpha:{job}_2") == f"{sweep}.2"
    assert laptop("show", f"beta:{job}9").code == 3 and laptop("show", "gamma:1").code == 3
    later = [laptop.run("alpha", "true")["run"]["id"] for _each in range(9)][-1]
    number = laptop.row(later)["job"]
    assert shown(laptop, number) == later, "a number of two digits that only one run has"


def test_a_name_that_ends_with_a_number(user: User) -> None:
    run = user.quick("--json", "run", "--name", "lr0.1", "true").json["data"]["run"]["id"]
    assert user.quick("show", "lr0.1", "--json").json["data"]["run"]["id"] == run
    assert user.quick("show", "lr0.2").code == 3
