"""Findings about a site, from recorded output."""

from __future__ import annotations

import pytest

from tests import hints
from yurt.backends.shell.doctor import Site, read, script
from yurt.contexts.doctor import site
from yurt.model.context import Context
from yurt.model.disk import Quota, Space, read_quotas

BIG = Context(name="big", type="slurm", slurm_url="alice@big.example", partition="gpu", account="lab")
GOOD = Site(
    written=True,
    slurm_version="23.02.7",
    partitions={"gpu": "up"},
    accounts=["lab"],
    tools={"git": "git version 2.39.5", "rsync": "rsync  version 3.2.7", "python3": "Python 3.9.2", "tar": "tar 1.30"},
)


def problems(found: Site, context: Context = BIG, base: str = "/scratch/alice/yurt") -> dict[str, str]:
    listed = site.check(found, context, base)
    assert all(each.remedy for each in listed if each.result in ("warning", "fault"))
    assert [problem for each in listed for problem in hints.wrong(each.remedy, ["big"])] == []
    return {each.check: each.result for each in listed if each.result in ("warning", "fault")}


def changed(**changes: object) -> Site:
    import msgspec

    return msgspec.structs.replace(GOOD, **changes)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, {}),
        ({"slurm": False}, {"Slurm": "fault"}),
        ({"slurm_error": "Unable to contact slurm controller"}, {"Slurm": "fault"}),
        ({"slurm_version": "19.05.5"}, {"Slurm": "warning"}),
        ({"partitions": {"cpu": "up"}}, {"partition": "fault"}),
        ({"partitions": {"gpu": "down"}}, {"partition": "fault"}),
        ({"accounts": ["other"]}, {"account": "fault"}),
        ({"accounts": []}, {}),
        ({"submit_error": "Job violates accounting/QOS policy"}, {"sbatch": "fault"}),
        ({"written": False}, {"storage": "fault"}),
        ({"owner_code": 40, "unsafe": "other users can write to /scratch/alice"}, {"storage safety": "fault"}),
        ({"real_storage": "/tmp/alice/yurt"}, {"storage place": "fault"}),
        ({"profile_code": 124}, {"profile": "warning"}),
        ({"profile_code": 1}, {"profile": "warning"}),
        ({"tools": {**GOOD.tools, "python3": "Python 3.5.1"}}, {"python3": "warning"}),
        ({"tools": {}}, {"git": "warning", "rsync": "warning", "python3": "warning", "tar": "fault"}),
        ({"missing_paths": {"venv": "/venv"}}, {"settings": "fault"}),
        ({"module_system": True, "missing_modules": ["cuda/99"]}, {"modules": "fault"}),
        ({"spaces": {"home": Space("/home/alice", 10**8, 1000, 10**6, 10**6)}}, {"home space": "warning"}),
        ({"spaces": {"home": Space("/home/alice", 10**8, 10**8, 10**6, 5)}}, {"home space": "warning"}),
        ({"spaces": {"home": Space("/home/alice", 10**8, 10**8, 0, 0)}}, {}),  # such as btrfs
        ({"quotas": [Quota("/home", 99, 100, 0, 0)]}, {"quota": "warning"}),
        ({"quotas": [Quota("/home", 101, 100, 0, 0)]}, {"quota": "fault"}),
        ({"quotas": [Quota("/home", 1, 100, 100, 100)]}, {"quota": "fault"}),
        ({"quotas": [Quota("/home", 1, 0, 1, 0)]}, {}),
    ],
)
def test_each_problem_is_one_finding(changes: dict[str, object], expected: dict[str, str]) -> None:
    assert problems(changed(**changes)) == expected


@pytest.mark.parametrize(
    ("ahead", "took", "result"),
    [
        (0, 0.1, "ok"),
        (4, 0.1, "ok"),
        (20, 0.1, "warning"),
        (-20, 0.1, "warning"),
        (20, 60, "warning"),
        (90, 1, "fault"),
    ],
)
def test_clock(ahead: int, took: float, result: str) -> None:
    sent, received = 1000.0, 1000.0 + took
    found = Site(began=int(sent + ahead), ended=int(received + ahead))
    assert site.clock(found, sent, received).result == result


def test_a_slow_connection_is_not_a_wrong_clock() -> None:
    """The connection took 30 s, then the script one."""
    assert site.clock(Site(began=1030, ended=1031), 1000.0, 1031.5).result == "ok"


def test_quota_of_linux_and_lustre() -> None:
    linux = ["     /dev/sda1  982336* 900000 1000000  6days   1234    5000   6000"]
    nfs = ["nas:/home  100 200 300  5 0 0"]
    wrapped = ["/lustre/a/very/long/path", "   512  0  1024  -  7  0  100  -"]
    assert read_quotas(linux) == [Quota("/dev/sda1", 982336, 900000, 1234, 5000)]
    assert read_quotas(nfs) == [Quota("nas:/home", 100, 200, 5, 0)]
    assert read_quotas(wrapped) == [Quota("/lustre/a/very/long/path", 512, 1024, 7, 100)]
    assert read_quotas(["none"]) == []


def test_sbatch_reason_and_partitions() -> None:
    found = read(
        {
            "sinfo": ["partition gpu up", "partition cpu drain"],
            "submit": ["sbatch: error: something", "allocation failure: Invalid account"],
        }
    )
    assert found.partitions == {"gpu": "up", "cpu": "drain"} and found.submit_error == "Invalid account"


def test_options_that_are_not_words_are_left_out() -> None:
    text = script(slurm=True, options=["--account=lab", "--qos=a b; rm -rf /"])
    assert "scheduler='--account=lab'" in text or "scheduler=--account=lab" in text
    assert "rm -rf /" not in text
