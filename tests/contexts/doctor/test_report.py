"""A bug report contains no secret, and nothing that identifies the user or a site."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.user import User
from yurt.contexts.doctor import report
from yurt.contexts.doctor.finding import Examined, fault, ok
from yurt.contexts.doctor.mask import masked, names

WORD = st.from_regex(r"zq[a-z]{4,10}", fullmatch=True)
"""Words that the report itself does not use."""


def planted(person: str, host: str, secret: str) -> str:
    """Return contexts.yaml with these words in every kind of value."""
    keys = {
        "type": "slurm",
        "slurm_url": f"{person}@{host}.site.example",
        "ssh_options": ["-o", f"ProxyCommand=proxy --token {secret}"],
        "account": f"acc{person}",
        "partition": f"part{host}",
        "storage_dir": f"/lustre/{person}/{secret}",
        "after_module_load_cmd": f"export TOKEN={secret}",
        "registry_url": f"https://{person}:{secret}@registry.example",
        "variables": {"TOKEN": secret, "OTHER": f"a {secret} b"},
        "tags": [secret],
    }
    return json.dumps({"contexts": {f"ctx{host}": keys}})


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(WORD, WORD, WORD)
def test_nothing_planted_is_in_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, person: str, host: str, secret: str
) -> None:
    config = tmp_path / "config"
    config.mkdir(exist_ok=True, mode=0o700)
    monkeypatch.setenv("YURT_CONFIG_HOME", str(config))
    monkeypatch.setenv("SOME_TOKEN", f"token{secret}")
    (config / "contexts.yaml").write_text(planted(person, host, secret))
    address = f"{person}@{host}.site.example"
    found = [
        Examined(context="", findings=[ok("ssh key", f"~/.ssh/{secret}: ED25519", secret)]),
        Examined(
            context=f"ctx{host}",
            findings=[
                fault("login", f"cannot log in to {address}", f"run `ssh {address}`", detail=f"{secret} {host}"),
                ok("account", f"acc{person} on part{host}, token{secret}, /home/{person}/{secret}", secret),
            ],
        ),
    ]
    traceback = (
        f"yurt 0.1.0, python 3.11\narguments: ['--token', '{secret}']\n\nTraceback (most recent call last):\n"
        f'  File "/home/{person}/yurt/cli/main.py", line 70, in run\n    code = _call(arguments)\n'
        f'  File "/home/{person}/{secret}.py", line 3, in {secret}\n    use("{secret}")\n'
        f"KeyError: '{secret} of {address}'\n"
    )
    text = report.text(found, traceback)
    for word in (person, host, secret):
        assert word not in text.lower(), text
    assert "cli/main.py:70 in run" in text and "KeyError" in text and "- fault: login: cannot log in" in text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("alice@login.big.example failed", "ADDRESS failed"),
        ("alice on n1", "USER on HOST1"),
        ("ALICE's malice", "USER's malice"),
        ("key ghp_0123456789abcdefABCDEF here", "key TOKEN here"),
        ("in /home/alice/x, or ~/y", "in PATH, or PATH"),
        ("~/'My Files/x' is the user's", "QUOTED is the user's"),
        ("https://user:pw@example.com/x?t=1 and 10.0.0.1", "URL and ADDRESS"),
        ("login.big.example responds", "HOST responds"),
        ("Slurm 22.05.8 and git 2.39.5", "Slurm 22.05.8 and git 2.39.5"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n", "KEY"),
    ],
)
def test_mask(text: str, expected: str) -> None:
    assert masked(text, names({"USER": ["alice"], "HOST": ["n1"]})) == expected


def test_secrets_go_even_inside_words() -> None:
    assert masked("xxhunter2xx", {}, ["hunter2"]) == "xxSECRETxx"


def test_the_command_writes_a_private_file(user: User, tmp_path: Path) -> None:
    target = tmp_path / "report.md"
    done = user.quick("doctor", "local", "--report", str(target), MY_TOKEN="hunter2hunter2")
    assert f"wrote {target}; read it before you send it" in done.out
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    text = target.read_text()
    assert "hunter2" not in text and str(tmp_path) not in text and "# Bug report" in text and "- ok: git: git 2" in text


def test_a_report_replaces_nothing_else(user: User, tmp_path: Path) -> None:
    mine = tmp_path / "mine.txt"
    mine.write_text("my text")
    done = user.quick("doctor", "local", "--report", str(mine))
    assert done.code == 2 and "exists and is not a bug report" in done.err and mine.read_text() == "my text"
    done = user.quick("doctor", "--report", "local")
    assert done.code == 2 and "'local' is a context, not a file" in done.err
    assert user.quick("doctor", "--report", "/dev/null").code == 2


def test_an_error_names_the_file_and_a_report_no_variables(user: User, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = user.quick("doctor", "local", "--report", YURT_DATA_HOME=str(tmp_path / "file"))
    assert done.code != 0 and "None" not in done.err
    user.quick("doctor", "local", "--report", str(tmp_path / "r.md"), YURT_OF_ZQALICE="1")
    assert "ZQALICE" not in (tmp_path / "r.md").read_text()
