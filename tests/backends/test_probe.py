"""Parsing the output of probes: rows as different Slurm versions and sites print them."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yurt.backends.slurm import deep_probe, probe
from yurt.model.facts import Facts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1-00:00:00", 1440),
        ("00:02:00", 2),
        ("2:00", 2),
        ("0:30", 1),
        ("7-0", 7 * 1440),
        ("90", 90),
        ("UNLIMITED", None),
        ("infinite", None),
        ("NONE", None),
        ("n/a", None),
        ("", None),
        ("what", None),
    ],
)
def test_durations(text: str, expected: int | None) -> None:
    assert probe.minutes(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gpu:a100:2", ("a100", 2)),
        ("gpu:a100:4(S:0-1)", ("a100", 4)),
        ("gpu:8", ("", 8)),
        ("gpu:tesla_v100-sxm2:4(S:0),nvme:1", ("tesla_v100-sxm2", 4)),
        ("craynetwork:4,gpu:h100:4", ("h100", 4)),
        ("(null)", ("", 0)),
        ("tmp:100G", ("", 0)),
    ],
)
def test_gres(text: str, expected: tuple[str, int]) -> None:
    assert probe.read_gres(text) == expected


def test_accounts_with_a_row_for_each_partition() -> None:
    rows = ["physics||normal,long|normal|", "physics|gpu|gpu||20", "chem||normal||"]
    chem, physics = probe.read_accounts(rows, "physics")
    assert (physics.default, physics.qos, physics.default_qos) == (True, ["gpu", "long", "normal"], "normal")
    assert (chem.default, chem.qos) == (False, ["normal"])


def test_partition_of_another_site() -> None:
    line = (
        "PartitionName=gpu AllowGroups=ALL AllowAccounts=physics,chem Default=NO DefaultTime=NONE GraceTime=120 "
        "MaxNodes=4 MaxTime=UNLIMITED PreemptMode=GANG,SUSPEND State=DRAIN"
    )
    found = probe.read_partition(line, {})
    assert found.accounts == ["physics", "chem"] and found.max_minutes is None and found.max_nodes == 4
    assert found.preempt == "suspend" and found.grace_seconds == 120 and not found.up


def test_module_systems() -> None:
    assert probe.read_modules(["lmod /opt/lmod"]) == ("lmod", "/opt/lmod")
    assert probe.read_modules([" /usr/share/modules"]) == ("environment-modules", "/usr/share/modules")
    assert probe.read_modules([]) == ("", "")


def test_a_site_that_refuses_everything_may_allow_requeue() -> None:
    said = "refused sbatch: error: invalid account\nallocation failure: no"
    text = "\n".join(f"m {name}\n{said}" for name in ("submit", "submit-requeue", "submit-home"))
    found = probe.read("m", text, now=0)
    assert found.requeue and not found.home_refusal


@given(st.text())
def test_any_output_is_parsed(text: str) -> None:
    assert isinstance(probe.read("m", text, now=0), Facts)
    wrapped = "\n".join(
        f"m {name}\n{text}" for name in ("config", "partitions", "nodes", "qos", "tiers", "associations")
    )
    assert isinstance(probe.read("m", wrapped, now=0), Facts)
    assert deep_probe.read("m", f"m node\n{text}", now=0).internet in (True, False)


def test_the_driver_of_a_node() -> None:
    assert deep_probe.read("m", "m node\nnode n1\ncuda 12.4\ntool git /usr/bin/git\n", now=0).cuda == "12.4"


def test_expansion_is_by_name_only() -> None:
    facts = Facts(probed_at=0, user="a", host="h", variables={"SCRATCH": "/s", "USER": "a", "HOME": "/home/a"})
    assert facts.expand("$SCRATCH/${USER}/x") == "/s/a/x"
    assert facts.expand("~/runs") == "/home/a/runs" and facts.expand("~") == "/home/a"
    assert facts.expand("/plain/$(id)/`id`") == "/plain/$(id)/`id`"
    with pytest.raises(KeyError, match="NOWHERE"):
        facts.expand("$NOWHERE/x")


@pytest.mark.parametrize("script", [probe.script, deep_probe.script])
@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_scripts_are_valid_shell(script: object, shell: str) -> None:
    text = script()  # type: ignore[operator]
    done = subprocess.run([shell, "-n"], input=text, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
