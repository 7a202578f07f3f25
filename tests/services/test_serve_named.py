"""serve NAME: services of yurt.yaml."""

from __future__ import annotations

import http.cookiejar
import json
import subprocess
import urllib.request

import pytest

from tests.calls import YURT
from tests.user import User, said
from yurt.services import named_service as serve_named

APP = """\
import http.server, json, os, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps([sys.argv[1:-1], os.environ["A"], os.environ["B"]]).encode())
http.server.HTTPServer(("127.0.0.1", int(sys.argv[-1])), Handler).serve_forever()
"""

YAML = """\
variables: {A: one, B: one}
time: 3h
services:
  app:
    command: python3 app.py "two words" {port}
    time: 2h
    env: {B: two}
  other: python3 app.py {port}
  tensorboard: {logdir: /nowhere/logs}
  mlflow: {store: /nowhere/store.db}
  jupyter: {folder: $HOME/notebooks}
"""


@pytest.fixture
def user_with_services(user: User) -> User:
    (user.project / "app.py").write_text(APP)
    (user.project / "yurt.yaml").write_text(YAML)
    return user


def test_a_named_service(user_with_services: User) -> None:
    user = user_with_services
    process = subprocess.Popen(
        [YURT, "serve", "app", "--no-browser", "--time", "1h", "--json"],
        env={"PATH": "/usr/bin:/bin", **user.environment},
        cwd=user.project,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, process.communicate()
        data = json.loads(line)["data"]
        assert data["name"] == "app"
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))
        with browser.open(data["url"], timeout=60) as answer:
            assert json.load(answer) == [["two words"], "one", "two"]
        shown = user.quick("show", data["run"]).out
        assert "time: 1h  (flag)" in shown and "(yurt.yaml:7, yurt.yaml:1)" in shown
    finally:
        stopped = user.quick("serve", "stop", "app")
        _out, err = process.communicate(timeout=60)
    assert stopped.code == 0 and "service 'app' has ended" in err


def test_names_that_do_not_exist(user_with_services: User) -> None:
    user = user_with_services
    wrong = user.quick("serve", "ap")
    assert "service 'ap' not found in yurt.yaml; its services: app, other" in said(wrong, 3)
    assert "did you mean `yurt serve app`?" in wrong.err
    assert "did you mean `yurt serve jupyter`?" in user.quick("serve", "jupiter").err
    assert "`yurt serve -- nothing 'a b'`" in user.quick("serve", "nothing", "a b").err
    assert "service 'app' takes no arguments, but 'x' follows" in said(user.quick("serve", "app", "x"), 2)
    assert "use `yurt serve jupyter`" in user.quick("serve", "run", "jupyter").err
    (user.project / "yurt.yaml").unlink()
    assert "service 'app' not found because there is no yurt.yaml" in said(user.quick("serve", "app"), 3)


def test_a_fault_in_the_file(user_with_services: User) -> None:
    (user_with_services.project / "yurt.yaml").write_text("services: {app: python app.py}\n")
    assert "yurt.yaml:1: services.app.command must say where to listen" in said(
        user_with_services.quick("serve", "app"), 2
    )


def test_names_are_completed(user_with_services: User) -> None:
    user = user_with_services

    def completed(words: str, place: int) -> list[str]:
        variables = {"_YURT_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(place)}
        return [line.partition(",")[2] for line in user(**variables).out.splitlines()]

    assert completed("yurt serve ap", 2) == ["app"]
    assert completed("yurt serve o", 2) == ["open", "other"]
    assert completed("yurt serve run ", 3) == ["app", "other"]
    (user.project / "yurt.yaml").write_text("services: nothing\n")
    assert "app" not in completed("yurt serve ap", 2)


def test_files_of_known_programs(user_with_services: User, monkeypatch: pytest.MonkeyPatch) -> None:
    from yurt.services.service_logs import logs_of, notebooks_of, store_of

    monkeypatch.chdir(user_with_services.project)
    for name, value in {**user_with_services.environment, "HOME": "/home/me"}.items():
        monkeypatch.setenv(name, value)
    assert notebooks_of("", "local").folder == "/home/me/notebooks"
    assert notebooks_of("/elsewhere", "local").folder == "/elsewhere"
    assert logs_of([], "", "local")[0].folder == "/nowhere/logs"
    assert logs_of([], "/elsewhere", "local")[0].folder == "/elsewhere"
    assert store_of("", "", "local")[0].folder == "/nowhere/store.db"
    assert serve_named.names() == ["app", "other"]
