"""Secrets with a real keyring and local runs: the value is in no other place."""

from __future__ import annotations

import contextlib
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
from tests.user import User
from yurt.model.state import ATTEMPTS
from yurt.store import Store
from yurt.testing.waiting import eventually

VALUE = "tok-4f9a; $(id) it's\n\twith a line and a half żółw\n"


def containing(folder: Path, value: bytes) -> list[Path]:
    """Return the files below a folder that contain a value. Files may vanish: a run removes its empty folders."""
    found = []
    for top, _folders, names in os.walk(folder):
        for file in (Path(top, name) for name in names):
            with contextlib.suppress(OSError):
                if value in file.read_bytes():
                    found.append(file)
    return found


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Home folders and a project for one test, in a session without a keyring."""
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
    """A session with its own unlocked keyring."""

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
        pytest.skip("needs the Debian packages dbus and gnome-keyring")
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
    assert not containing(home, VALUE.encode()) and not containing(home, b"tok-4f9a")
    (home / "planted").write_text(f"x{VALUE}y")
    assert containing(home, VALUE.encode()), "the search finds nothing"


def test_cancel_removes_the_share_of_a_queued_run(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", VALUE)
    monkeypatch.setenv("YURT_LOCAL_CPUS", "1")
    assert call("run", "--no-snapshot", "sleep", "60").code == 0
    hog = call("ps", "--json").json["data"][0]["id"]
    waits = call("run", "--no-snapshot", "--secret", "TOKEN", "--json", "true").json["data"]["run"]
    (share,) = Path(waits["folder"]).glob("secret.*")
    assert share.stat().st_mode & 0o777 == 0o600 and not containing(home, b"tok-4f9a")
    assert call("cancel", waits["id"]).code == 0
    assert not share.exists()
    assert call("cancel", hog).code == 0


@pytest.mark.parametrize(("options", "stays"), [([], False), (["--requeue"], True)])
def test_the_share_of_a_lost_run_is_removed_unless_it_can_restart(
    home: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], stays: bool
) -> None:
    """A run that can restart may still be running unnoticed, and its next start needs the share."""
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


def test_cancel_removes_the_share_of_a_sweep(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", VALUE)
    monkeypatch.setenv("YURT_LOCAL_CPUS", "1")
    words = ["run", "--no-snapshot", "--secret", "TOKEN", "--json", "--grid", "n=60,61,62", "sleep"]
    run = call(*words).json["data"]["run"]
    assert [*Path(run["folder"]).glob("secret.*")]
    assert call("cancel", run["id"]).code == 0
    assert not [*Path(run["folder"]).glob("secret.*")]


def test_a_sweep_waits_for_a_yurt_that_has_its_secret(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_retry_reads_the_value_again(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", VALUE)
    assert call("run", "--no-snapshot", "--secret", "TOKEN", "--wait", "sh", "-c", 'echo "$TOKEN"; exit 1').code == 1
    monkeypatch.setenv("TOKEN", "another")
    assert call("retry", "-").code == 0
    assert call("wait", "-", "--timeout", "240").code == 1 and call("logs", "-").out == "another\n"
    monkeypatch.delenv("TOKEN")
    done = call("retry", "-")
    assert done.code == 2 and "secret 'TOKEN' is neither" in done.err


def test_invalid_secrets_are_refused_before_anything_is_saved(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONG", "secretive" * 8000)
    monkeypatch.setenv("TOKEN", VALUE)
    for words, said in (
        (["--secret", "NOWHERE", "true"], "secret 'NOWHERE' is neither in the environment nor in the keyring"),
        (["--secret", "NOWHERE", "--dry-run", "true"], "secret 'NOWHERE' is neither"),
        (["--secret", "LD_PRELOAD", "true"], "'LD_PRELOAD' is reserved for the system"),
        (["--secret", "a b", "true"], "'a b' is not a valid variable name"),
        (["--secret", "LONG", "true"], "the value of secret 'LONG' is 72000 bytes; the maximum is 65536"),
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


def test_a_job_script_started_by_hand_reports_missing_secrets(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", VALUE)
    assert call("run", "--secret", "TOKEN", "--wait", "sh", "-c", 'printf "[%s]" "$TOKEN" > /dev/null').code == 0
    folder = call("show", "-", "--json").json["data"]["run"]["folder"]
    monkeypatch.delenv("TOKEN")
    done = subprocess.run(["sh", f"{folder}/job.sh"], capture_output=True, text=True, check=False)
    assert done.returncode == 78
    assert done.stderr == "yurt: secret TOKEN is not set; export it to run this script by hand\n"


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
    assert call("logs", run["id"]).err.startswith("yurt: secret TOKEN is incomplete\n")
    assert not (home / "started").exists() and not [*Path(run["folder"]).glob("secret.*")]


def test_a_missing_keyring_is_reported_once(home: Path) -> None:
    listed = call("secret", "list", "--json")
    assert (listed.code, listed.json["data"]) == (0, []) and "this machine has no keyring" in listed.json["warnings"][0]
    people = call("secret", "list")
    assert (people.code, people.out) == (0, "") and "gnome-keyring" in people.err and "export" in people.err
    for words in (["set", "TOKEN"], ["remove", "TOKEN"]):
        done = call("secret", *words)
        assert done.code == 5, done
        assert done.err == "yurt: this machine has no keyring\n  hint: set the variable with `export TOKEN=...`\n"
    child = pexpect.spawn(YURT, ["secret", "set", "TOKEN"], encoding="utf8", timeout=120)
    child.expect(pexpect.EOF)
    assert "value of" not in child.before, "prompted although the value cannot be stored"


def test_a_keyring_that_stores_nothing_is_detected(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
    done = subprocess.run([YURT, "secret", "set", "TOKEN"], input=b"tok-4f9a", capture_output=True, check=False)
    assert done.returncode == 5 and b"did not store secret 'TOKEN'" in done.stderr and b"tok-4f9a" not in done.stderr


def test_set_list_use_and_remove(ring: Ring, home: Path) -> None:
    assert ring("secret", "list", "--json").json["data"] == []
    done = ring("secret", "set", "TOKEN", value=VALUE.encode() + b"\n")
    assert (done.code, done.out) == (0, "TOKEN stored in the keyring\n")
    done = ring("secret", "set", "BYTES", "--json", value=b"\xff\x01\n\n")
    assert done.code == 0 and done.json["data"]["name"] == "BYTES", done
    assert ring("secret", "set", "CODED", value=b"base64:eA==").code == 0
    assert ring("secret", "list").out == "BYTES\nCODED\nTOKEN\n"
    names = [word for name in ("TOKEN", "BYTES", "CODED") for word in ("--secret", name)]
    done = ring("run", *names, "--wait", "sh", "-c", 'printf %s "$TOKEN|$BYTES|$CODED" | sha256sum')
    assert done.code == 0, done
    expected = VALUE.encode() + b"|\xff\x01\n|base64:eA=="
    assert ring("logs", "-").out.split()[0] == sha256(expected).hexdigest()
    assert not containing(home / "data", b"tok-4f9a") and not containing(home / "home", b"tok-4f9a")
    assert ring("secret", "set", "TOKEN", value=b"newer").code == 0
    assert ring("secret", "remove", "BYTES").code == 0
    assert ring("secret", "list").out == "CODED\nTOKEN\n"
    assert ring("run", "--secret", "BYTES", "true").code == 2
    for name in ("TOKEN", "CODED"):
        assert ring("secret", "remove", name).code == 0
    assert ring("secret", "list").out == ""


def test_wrong_names_and_values(ring: Ring) -> None:
    assert ring("secret", "set", "TOKEN", value=b"kept").code == 0
    done = ring("secret", "remove", "BYTES")
    assert done.code == 3 and "secret 'BYTES' not found in the keyring" in done.err
    done = ring("secret", "set", "TOKEN", value=b"\n")
    assert done.code == 2 and "the value of secret 'TOKEN' is empty" in done.err
    done = ring("secret", "set", "TOKEN", value=b"a\0b")
    assert done.code == 2 and "NUL" in done.err
    assert ring("secret", "list").out == "TOKEN\n"


def test_the_environment_takes_precedence_over_the_keyring(ring: Ring, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ring("secret", "set", "TOKEN", value=b"kept").code == 0
    for value, expected in ((None, "kept"), ("own", "own"), ("", "")):
        if value is not None:
            monkeypatch.setenv("TOKEN", value)
            assert ring("secret", "list").out == "TOKEN; the environment variable with this name takes precedence\n"
        assert ring("run", "--secret", "TOKEN", "--wait", "sh", "-c", 'echo "[$TOKEN]"').code == 0
        assert ring("logs", "-").out == f"[{expected}]\n"


def test_the_prompt_does_not_echo(ring: Ring) -> None:
    environment = {**os.environ, **ring.environment}
    child = pexpect.spawn(YURT, ["secret", "set", "TOKEN"], encoding="utf8", timeout=120, env=environment)
    child.expect("value for TOKEN: ")
    child.sendline("tok-typed")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0 and "tok-typed" not in child.before
    assert "TOKEN stored in the keyring" in child.before
    child = pexpect.spawn(YURT, ["secret", "set", "TOKEN"], encoding="utf8", timeout=120, env=environment)
    child.expect("value for TOKEN: ")
    child.sendintr()
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 130 and "Traceback" not in child.before


def test_a_bug_report_contains_no_values(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bug report contains a traceback, but no values of secrets."""
    monkeypatch.setenv("TOKEN", VALUE)
    program = (
        "import sys; from yurt.cli import main; from yurt.backends.local.backend import LocalBackend\n"
        "LocalBackend.submit = lambda *_plan, **_shares: 1 / 0\n"
        "sys.exit(main.run(['run', '--no-snapshot', '--secret', 'TOKEN', 'true']))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 70 and "ZeroDivisionError" in done.stderr, done
    assert (home / "data" / "bug-report.txt").exists() and not containing(home, b"tok-4f9a")
    assert "tok-4f9a" not in done.stdout + done.stderr


def test_a_run_without_secrets_does_not_load_keyring(home: Path) -> None:
    program = "import sys; from yurt.cli import main; main.run(['run', '--no-snapshot', 'true']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert "yurt.lifecycle.outbox.outbox" in loaded
    other = "yurt.snapshot.secrets"  # names of files
    assert not [name for name in loaded if name.startswith("keyring") or (name.endswith(".secrets") and name != other)]


def test_each_start_of_a_local_run_has_its_secrets(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last start removes the share itself, without another yurt command."""
    monkeypatch.setenv("TOKEN", VALUE)
    proof = 'printf %s "$TOKEN" | sha256sum; date > "$YURT_CHECKPOINTS/$YURT_RESTARTS"'
    command = f'{proof}; sleep 0.5; ls "$YURT_RUN_DIR" | grep -c ^secret; [ "$YURT_RESTARTS" = 2 ] || exit 85'
    run = call("run", "--requeue", "--secret", "TOKEN", "--json", "sh", "-c", command).json["data"]["run"]
    folder = Path(run["folder"])
    eventually((folder / "exit.json").exists)
    eventually(lambda: not [*folder.glob("secret.*")])
    assert (folder / "out.log").read_text().split() == [sha256(VALUE.encode()).hexdigest(), "-", "1"] * 3
    assert not containing(home, b"tok-4f9a")


@pytest.mark.parametrize(
    "words", [["run", "--secret", "HF_TOKEN=hunter2", "true"], ["secret", "set", "HF_TOKEN=hunter2"]]
)
def test_a_value_instead_of_a_name_is_not_echoed(user: User, words: list[str]) -> None:
    plain, as_json = user(*words), user(*words, "--json")
    assert plain.code == 2 and "HF_TOKEN" in plain.err and "give only the name" in plain.err
    assert "hunter2" not in plain.err + plain.out + as_json.out + as_json.err
