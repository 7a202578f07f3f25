"""Names of services, and commands that say where they listen."""

from __future__ import annotations

import pytest

from yurt.errors import UserError
from yurt.services.programs import Wanted, check, check_name, name


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("python app.py --port {port}", "app"),
        ("python3.11 -m http.server {port}", "http.server"),
        ("./bin/serve.sh {socket}", "serve"),
        ("sh -c {port}", "port"),
        ("-x --y", "command"),
        ("..", "command"),
    ],
)
def test_a_service_without_a_name(command: str, expected: str) -> None:
    assert name(Wanted(program="command", words=command.split())) == expected


@pytest.mark.parametrize("text", ["../x", "a/b", "a b", "-x", "", "x" * 41, "a\nb", "é"])
def test_names_that_cannot_be(text: str) -> None:
    with pytest.raises(UserError) as raised:
        check_name(text)
    assert "is not a valid name of a service" in raised.value.message


def test_where_a_command_listens() -> None:
    check(["python", "app.py", "--bind=127.0.0.1:{port}"])
    check(["app", "unix:{socket}"])
    for words in (["app"], ["app", "{port}", "{socket}"]):
        with pytest.raises(UserError):
            check(words)
