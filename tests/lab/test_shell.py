"""`yurt lab shell`: passes arguments unchanged, returns exit codes, and provides a terminal."""

from __future__ import annotations

import os

import pexpect
import pytest

from tests.calls import YURT, call
from yurt.lab import Lab

pytestmark = pytest.mark.lab
AWKWARD = ["a b", "$HOME", "it's", '"', "\\", "*", "", "ü\n;"]


@pytest.mark.parametrize("target", ["alpha", "alpha:n1"])
def test_arguments_are_passed_unchanged(lab: Lab, target: str) -> None:
    program = "import sys; print(sys.argv[1:])"
    answer = call("lab", "shell", target, "--", "python3", "-c", program, *AWKWARD)
    assert answer.code == 0 and answer.out == f"{AWKWARD!r}\n"


@pytest.mark.parametrize("target", ["alpha", "beta:ctl"])
def test_returns_the_exit_code(lab: Lab, target: str) -> None:
    assert call("lab", "shell", target, "--", "sh", "-c", "exit 7").code == 7


def test_default_user_and_host(lab: Lab) -> None:
    def ask(*arguments: str) -> str:
        return call("lab", "shell", *arguments, "--", "sh", "-c", "id -un; hostname").out.split()[-2:].__str__()

    assert ask("alpha") == "['alice', 'login']"
    assert ask("alpha", "--user", "bob") == "['bob', 'login']"
    assert ask("beta:login2") == "['alice', 'login2']"
    assert ask("alpha:n2") == "['root', 'n2']"
    assert ask("alpha:n2", "--user", "alice") == "['alice', 'n2']"


@pytest.mark.parametrize(("target", "name"), [("alpha", "login"), ("alpha:n1", "n1")])
def test_provides_a_terminal(lab: Lab, target: str, name: str) -> None:
    child = pexpect.spawn(
        YURT, ["lab", "shell", target], env=os.environ, timeout=120, encoding="utf8", dimensions=(33, 99)
    )
    child.sendline("tty; stty size; hostname | tr a-z A-Z")
    child.expect("/dev/pts/")
    child.expect("33 99")
    child.expect(name.upper())
    child.sendline("exit 3")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 3


def test_errors(lab: Lab) -> None:
    assert call("lab", "shell", "gamma").code == 3
    assert call("lab", "shell", "alpha:n7").code == 3
    nobody = call("lab", "shell", "beta", "--user", "carol")
    assert nobody.code == 2 and "user 'carol' not found on beta" in nobody.err
    down = call("lab", "shell", "alpha", "--instance", "never-up")
    assert down.code == 5 and "is not running" in down.err and "yurt lab up alpha" in down.err


def test_json_shows_the_command(lab: Lab) -> None:
    assert call("lab", "shell", "alpha", "--json").json["data"]["argv"][0] == "ssh"
