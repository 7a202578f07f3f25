"""Secrets as a user has them: a real keyring, runs on this machine, and nothing of the value anywhere else."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import msgspec
import pexpect
import pytest

from tests.calls import YURT, Called, call
from yurt.model.state import ATTEMPTS
from yurt.store import Store
from yurt.testing.waiting import eventually

VALUE = "tok-4f9a; $(id) it's\n\twith a line and a half żółw\n"


def holding(folder: Path, value: bytes) -> list[Path]:
    """Files below a folder that hold a value."""
    return [file for file in folder.rglob("*") if file.is_file() and value in file.read_bytes()]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Homes and a project of the test's own, in a session without a keyring."""
    for name, folder in {"YURT_CONFIG_HOME": "config", "YURT_DATA_HOME": "data", "HOME": "home"}.items():
        monkeypatch.setenv(name, str(tmp_path / folder))
    for name in ("DBUS_SESSION_BUS_ADDRESS", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    (tmp_path / "proj").mkdir()
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path / "proj")
    return tmp_path


class Ring:
    """A session with a keyring of its own, unlocked."""

    def __init__(self, address: str) -> None:
        self.environment = {"DBUS_SESSION_BUS_ADDRESS": address}

    def __call__(self, *arguments: str, value: bytes | None = None) -> Called:
        if value is None:
            return call(*arguments, environment=self.environment)
        done = subprocess.run(
            [YURT, *arguments], env={**os.environ, **self.environment}, input=value, capture_output=True, check=False
        )
        return Called(done.returncode, done.stdout.decode(), done.stderr.decode())

    def works(self) -> bool:
        listed = self("secret", "list", "--json")
        return listed.code == 0 and not listed.json["warnings"]


@pytest.fixture
def ring(home: Path) -> Iterator[Ring]:
    if not (shutil.which("dbus-run-session") and shutil.which("gnome-keyring-daemon")) and not os.environ.get("CI"):
        pytest.skip("not installed: apt-get install dbus gnome-keyring")
    script = (
        "printf password | gnome-keyring-daemon --foreground --unlock --components=secrets > /dev/null & "
        'echo "$DBUS_SESSION_BUS_ADDRESS" > address.new && mv address.new address && read -r _end; kill $!; wait'
    )
    argv = ["dbus-run-session", "--", "sh", "-c", script]
    with subprocess.Popen(argv, cwd=home, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as session:
        eventually((home / "address").exists)
        made = Ring((home / "address").read_text().strip())
        eventually(made.works)
        yield made
        assert session.stdin is not None
        session.stdin.close()


def test_a_secret_from_the_environment_reaches_the_run_and_no_file(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", VALUE)
    monkeypatch.setenv("run", "a name of job.sh's own")
    words = ["run", "--secret", "TOKEN", "--secret", "run", "--wait", "sh", "-c", 'printf %s "$TOKEN$run" | sha256sum']
    assert call(*words).code == 0
    assert call("logs", "-").out.split()[0] == sha256((VALUE + "a name of job.sh's own").encode()).hexdigest()
    shown = call("show", "-", "--json").json["data"]["run"]
    assert shown["secrets"] == ["TOKEN", "run"]
    assert re.search(r"^secrets +TOKEN, run$", call("show", "-").out, re.MULTILINE)
    folder = Path(shown["folder"])
    assert not [*folder.glob("secret.*")]
    assert not holding(home, VALUE.encode()) and not holding(home, b"tok-4f9a")
    (home / "planted").write_text(f"x{VALUE}y")
    assert holding(home, VALUE.encode()), "the search finds nothing"


def test_a_share_waits_with_a_run_and_goes_when_it_is_cancelled(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", VALUE)
    monkeypatch.setenv("YURT_LOCAL_CPUS", "1")
    assert call("run", "--no-snapshot", "sleep", "60").code == 0
    hog = call("ps", "--json").json["data"][0]["id"]
    waits = call("run", "--no-snapshot", "--secret", "TOKEN", "--json", "true").json["data"]["run"]
    (share,) = Path(waits["folder"]).glob("secret.*")
    assert share.stat().st_mode & 0o777 == 0o600 and not holding(home, b"tok-4f9a")
    assert call("cancel", waits["id"]).code == 0
    assert not share.exists()
    assert call("cancel", hog).code == 0


@pytest.mark.parametrize(("options", "stays"), [([], False), (["--requeue"], True)])
def test_a_share_goes_with_a_run_that_is_lost_for_good(
    home: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], stays: bool
) -> None:
    """But one that may be started again may be going on unseen, and need it for its next start."""
    monkeypatch.setenv("TOKEN", VALUE)
    monkeypatch.setenv("YURT_LOCAL_CPUS", "1")
    hog = call("run", "--no-snapshot", "--json", "sleep", "60").json["data"]["run"]["id"]
    words = ["run", "--no-snapshot", *options, "--secret", "TOKEN", "--json", "true"]
    lost = call(*words).json["data"]
    (share,) = Path(lost["run"]["folder"]).glob("secret.*")
    with Store(str(home / "data" / "yurt.db")) as index:
        then = time.time() - 1000
        index.change(
            [lost["run"]["id"]],
            lambda _run, status: msgspec.structs.replace(status, attempts=ATTEMPTS, missing_since=then),
        )
    os.kill(int(lost["status"]["job"]), signal.SIGKILL)
    eventually(lambda: call("show", lost["run"]["id"], "--json").json["data"]["status"]["state"] == "lost")
    assert share.exists() == stays
    assert call("cancel", hog).code == 0


def test_the_share_of_a_sweep_goes_when_it_is_cancelled(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", VALUE)
    monkeypatch.setenv("YURT_LOCAL_CPUS", "1")
    words = ["run", "--no-snapshot", "--secret", "TOKEN", "--json", "--grid", "n=60,61,62", "sleep"]
    run = call(*words).json["data"]["run"]
    assert [*Path(run["folder"]).glob("secret.*")]
    assert call("cancel", run["id"]).code == 0
    assert not [*Path(run["folder"]).glob("secret.*")]


def test_a_sweep_waits_for_a_yurt_that_knows_its_secret(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", VALUE)
    words = ["run", "--no-snapshot", "--json", "--grid"]
    patient = f"until [ -e {home}/go ]; do sleep 0.1; done"
    first = call(*words, "n=1,2", "sh", "-c", patient, "sh").json["data"]["run"]["id"]
    second = call(*words, "n=1,2", "--after-any", first, "--secret", "TOKEN", "sh", "-c", 'echo "$TOKEN"').json["data"]
    assert second["status"]["state"] == "waiting"
    (home / "go").touch()
    monkeypatch.delenv("TOKEN")
    assert call("wait", first, "--timeout", "240").code == 0
    for _look in range(2):
        (row,) = (row for row in call("ps", "--json").json["data"] if row["id"] == second["run"]["id"])
        assert (row["state"], row["task_states"]) == ("waiting", {"waiting": 2}) and "TOKEN" in row["reason"]
    monkeypatch.setenv("TOKEN", VALUE)
    assert call("wait", second["run"]["id"], "--timeout", "240").code == 0
    assert call("logs", f"{second['run']['id']}.1").out == f"{VALUE}\n"


def test_a_retry_reads_the_value_anew(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", VALUE)
    assert call("run", "--no-snapshot", "--secret", "TOKEN", "--wait", "sh", "-c", 'echo "$TOKEN"; exit 1').code == 1
    monkeypatch.setenv("TOKEN", "another")
    assert call("retry", "-").code == 0
    assert call("wait", "-", "--timeout", "240").code == 1 and call("logs", "-").out == "another\n"
    monkeypatch.delenv("TOKEN")
    done = call("retry", "-")
    assert done.code == 2 and "secret TOKEN is neither" in done.err


def test_what_cannot_be_is_refused_before_anything_is_kept(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONG", "secretive" * 8000)
    monkeypatch.setenv("TOKEN", VALUE)
    for words, said in (
        (["--secret", "NOWHERE", "true"], "secret NOWHERE is neither in the environment nor in the keyring"),
        (["--secret", "NOWHERE", "--dry-run", "true"], "secret NOWHERE is neither"),
        (["--secret", "LD_PRELOAD", "true"], "'LD_PRELOAD' is reserved for the system"),
        (["--secret", "a b", "true"], "'a b' is not a valid variable name"),
        (["--secret", "LONG", "true"], "the value of LONG is 72000 bytes; the maximum is 65536"),
        (["--secret", "TOKEN", "--var", "TOKEN=x", "true"], "both a secret and a variable"),
    ):
        done = call("run", *words)
        assert (done.code, done.out) == (2, "") and said in done.err, done
        assert "tok-4f9a" not in done.err and "secretive" not in done.err
    assert call("ps", "--json").json["data"] == []


def test_a_dry_run_shows_names_only(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", VALUE)
    for form in ([], ["--json"]):
        done = call("run", "--secret", "TOKEN", "--dry-run", *form, "true")
        assert done.code == 0 and "TOKEN" in done.out and "tok-4f9a" not in done.out + done.err


def test_by_hand_it_says_that_secrets_are_not_there(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", VALUE)
    assert call("run", "--secret", "TOKEN", "--wait", "sh", "-c", 'printf "[%s]" "$TOKEN" > /dev/null').code == 0
    folder = call("show", "-", "--json").json["data"]["run"]["folder"]
    monkeypatch.delenv("TOKEN")
    done = subprocess.run(["sh", f"{folder}/job.sh"], capture_output=True, text=True, check=False)
    assert done.returncode == 78
    assert done.stderr == "yurt: the secrets of this run are not available by hand: set and export TOKEN\n"


def test_a_run_whose_share_is_lost_starts_nothing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", VALUE)
    monkeypatch.setenv("YURT_LOCAL_CPUS", "1")
    hog = call("run", "--no-snapshot", "--json", "sh", "-c", 'until [ -e "$YURT_RUN_DIR/go" ]; do sleep 0.1; done')
    run = call("run", "--no-snapshot", "--secret", "TOKEN", "--json", "touch", str(home / "started")).json["data"][
        "run"
    ]
    (share,) = Path(run["folder"]).glob("secret.*")
    share.write_bytes(share.read_bytes()[:40])
    (Path(hog.json["data"]["run"]["folder"]) / "go").touch()
    assert call("wait", run["id"], "--timeout", "240").code == 1
    row = next(row for row in call("ps", "--json").json["data"] if row["id"] == run["id"])
    assert (row["state"], row["exit_code"]) == ("failed", 78)
    assert call("logs", run["id"]).err.startswith("yurt: the secret TOKEN did not arrive whole\n")
    assert not (home / "started").exists() and not [*Path(run["folder"]).glob("secret.*")]


def test_without_a_keyring_it_is_said_once(home: Path) -> None:
    listed = call("secret", "list", "--json")
    assert (listed.code, listed.json["data"]) == (0, []) and "there is no keyring" in listed.json["warnings"][0]
    people = call("secret", "list")
    assert (people.code, people.out) == (0, "") and "gnome-keyring" in people.err and "export" in people.err
    for words in (["set", "TOKEN"], ["remove", "TOKEN"]):
        done = call("secret", *words)
        assert done.code == 5, done
        assert done.err == "yurt: this machine has no keyring\n  hint: set the variable with `export TOKEN=...`\n"
    child = pexpect.spawn(YURT, ["secret", "set", "TOKEN"], encoding="utf8", timeout=120)
    child.expect(pexpect.EOF)
    assert "value of" not in child.before, "asked for what could not be kept"


def test_a_keyring_that_keeps_nothing_is_noticed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
    done = subprocess.run([YURT, "secret", "set", "TOKEN"], input=b"tok-4f9a", capture_output=True, check=False)
    assert done.returncode == 5 and b"did not store TOKEN" in done.stderr and b"tok-4f9a" not in done.stderr


def test_a_keyrings_life(ring: Ring, home: Path) -> None:
    assert ring("secret", "list", "--json").json["data"] == []
    done = ring("secret", "set", "TOKEN", value=VALUE.encode() + b"\n")
    assert (done.code, done.out) == (0, "TOKEN is in the keyring\n")
    assert ring("secret", "set", "BYTES", "--json", value=b"\xff\x01\n\n").json["data"]["name"] == "BYTES"
    assert ring("secret", "set", "CODED", value=b"base64:eA==").code == 0
    assert ring("secret", "list").out == "BYTES\nCODED\nTOKEN\n"
    names = [word for name in ("TOKEN", "BYTES", "CODED") for word in ("--secret", name)]
    done = ring("run", *names, "--wait", "sh", "-c", 'printf %s "$TOKEN|$BYTES|$CODED" | sha256sum')
    assert done.code == 0, done
    expected = VALUE.encode() + b"|\xff\x01\n|base64:eA=="
    assert ring("logs", "-").out.split()[0] == sha256(expected).hexdigest()
    assert not holding(home / "data", b"tok-4f9a") and not holding(home / "home", b"tok-4f9a")
    assert ring("secret", "set", "TOKEN", value=b"newer").code == 0
    assert ring("secret", "remove", "BYTES").code == 0
    assert ring("secret", "list").out == "CODED\nTOKEN\n"
    assert ring("run", "--secret", "BYTES", "true").code == 2
    for name in ("TOKEN", "CODED"):
        assert ring("secret", "remove", name).code == 0
    assert ring("secret", "list").out == ""


def test_what_a_keyring_does_not_take(ring: Ring) -> None:
    assert ring("secret", "set", "TOKEN", value=b"kept").code == 0
    done = ring("secret", "remove", "BYTES")
    assert done.code == 3 and "the keyring has no secret BYTES" in done.err
    done = ring("secret", "set", "TOKEN", value=b"\n")
    assert done.code == 2 and "no value for TOKEN" in done.err
    done = ring("secret", "set", "TOKEN", value=b"a\0b")
    assert done.code == 2 and "NUL" in done.err
    assert ring("secret", "list").out == "TOKEN\n"


def test_the_environment_goes_before_the_keyring(ring: Ring, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ring("secret", "set", "TOKEN", value=b"kept").code == 0
    for value, expected in ((None, "kept"), ("own", "own"), ("", "")):
        if value is not None:
            monkeypatch.setenv("TOKEN", value)
            assert ring("secret", "list").out == "TOKEN; here the variable of that name goes before it\n"
        assert ring("run", "--secret", "TOKEN", "--wait", "sh", "-c", 'echo "[$TOKEN]"').code == 0
        assert ring("logs", "-").out == f"[{expected}]\n"


def test_a_terminal_is_asked_without_echo(ring: Ring) -> None:
    environment = {**os.environ, **ring.environment}
    child = pexpect.spawn(YURT, ["secret", "set", "TOKEN"], encoding="utf8", timeout=120, env=environment)
    child.expect("value of TOKEN: ")
    child.sendline("tok-typed")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0 and "tok-typed" not in child.before
    assert "TOKEN is in the keyring" in child.before
    child = pexpect.spawn(YURT, ["secret", "set", "TOKEN"], encoding="utf8", timeout=120, env=environment)
    child.expect("value of TOKEN: ")
    child.sendintr()
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 130 and "Traceback" not in child.before


def test_an_unforeseen_error_tells_nothing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bug's report holds a traceback; values are in no message of it."""
    monkeypatch.setenv("TOKEN", VALUE)
    (home / "data").mkdir()
    (home / "data" / "outbox").write_text("no folder")
    done = call("run", "--secret", "TOKEN", "true")
    assert done.code == 70, done
    assert (home / "data" / "bug-report.txt").exists() and not holding(home, b"tok-4f9a")
    assert "tok-4f9a" not in done.out + done.err


def test_a_run_without_secrets_loads_nothing_of_this(home: Path) -> None:
    program = "import sys; from yurt.cli import main; main.run(['run', '--no-snapshot', 'true']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert "yurt.lifecycle.outbox.outbox" in loaded
    assert not [name for name in loaded if name.startswith("keyring") or name.endswith(".secrets")]


def test_each_piece_of_a_run_here_has_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the last removes the share itself, though no yurt looks."""
    monkeypatch.setenv("TOKEN", VALUE)
    proof = 'printf %s "$TOKEN" | sha256sum; date > "$YURT_CHECKPOINTS/$YURT_RESTARTS"'
    command = f'{proof}; sleep 0.5; ls "$YURT_RUN_DIR" | grep -c ^secret; [ "$YURT_RESTARTS" = 2 ] || exit 85'
    run = call("run", "--requeue", "--secret", "TOKEN", "--json", "sh", "-c", command).json["data"]["run"]
    folder = Path(run["folder"])
    eventually((folder / "exit.json").exists)
    eventually(lambda: not [*folder.glob("secret.*")])
    assert (folder / "out.log").read_text().split() == [sha256(VALUE.encode()).hexdigest(), "-", "1"] * 3
    assert not holding(home, b"tok-4f9a")
