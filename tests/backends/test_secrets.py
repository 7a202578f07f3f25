"""Secrets are split by yurt and joined by real shells: no byte changes, and a share alone is noise."""

from __future__ import annotations

import base64
import os
import resource
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from yurt.backends import scripts
from yurt.model import secrets

SHELLS = ["dash", "bash", "bash --posix"]
AWKS = ["mawk", "gawk"]
EVERY_BYTE = bytes(range(1, 256))

VALUES = st.binary(max_size=300).map(lambda value: value.replace(b"\0", b"\n"))

SHOW = """\
fail() { echo "yurt: $*" >&2; exit 78; }
run=$PWD secrets=$1 shares=${SHARES-stay}
bring_secrets "$2"
eval "give_secrets $secrets"
shift 2
exec "$@"
"""


def joined(
    folder: Path,
    shares: secrets.Shares,
    names: str,
    *command: str,
    shell: str = "dash",
    nonce: str = "n1",
    **environment: str,
) -> subprocess.CompletedProcess[bytes]:
    """Start a command with the secrets `names`, by the same lines as in a job."""
    (folder / "secret.n1").write_bytes(shares.folder)
    lines = (line.split() for line in shares.environment.decode().splitlines())
    inherited = {name: value for name, value in os.environ.items() if name != "LC_ALL"}
    environment = {**inherited, **{f"YURT_SHARE_{name}": text for name, text in lines}, **environment}
    environment = {"YURT_SHARE": f"secret.{nonce}", **environment}
    argv = [*shell.split(), "-c", scripts.text("secrets.sh", "job") + SHOW, "job", names, nonce, *command]
    return subprocess.run(argv, cwd=folder, env=environment, capture_output=True, check=False)


def value_of(done: subprocess.CompletedProcess[bytes], name: str) -> bytes:
    """Return the value of a variable in the output of `env -0`."""
    assert done.returncode == 0, done.stderr
    return dict(each.split(b"=", 1) for each in done.stdout.split(b"\0") if each)[name.encode()]


@pytest.fixture(params=AWKS)
def awk(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A PATH with that awk first."""
    import shutil

    found = shutil.which(request.param)
    if found is None and not os.environ.get("CI"):
        pytest.skip(f"needs the Debian package {request.param}")
    assert found, f"{request.param} is not installed"
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "awk").symlink_to(found)
    return f"{tmp_path}/bin:{os.environ['PATH']}"


@pytest.mark.parametrize("shell", SHELLS)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(first=VALUES, second=VALUES)
def test_any_bytes_arrive(tmp_path: Path, shell: str, first: bytes, second: bytes) -> None:
    shares = secrets.shares({"FIRST": first, "SECOND": second}, os.urandom)
    done = joined(tmp_path, shares, "FIRST SECOND", "env", "-0", shell=shell)
    assert (value_of(done, "FIRST"), value_of(done, "SECOND")) == (first, second)


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("locale", ["C", "C.UTF-8", None])
@pytest.mark.parametrize(
    "value", [EVERY_BYTE * 3, b"", b"\n\n", b"x", b"%s\\n$(id)`id`'\"", b"\x81\x88x\n", "żółć\n".encode()]
)
def test_awkward_values_arrive(tmp_path: Path, awk: str, shell: str, locale: str | None, value: bytes) -> None:
    own = {} if locale is None else {"LC_ALL": locale}
    done = joined(
        tmp_path, secrets.shares({"KEY": value}, os.urandom), "KEY", "env", "-0", shell=shell, PATH=awk, **own
    )
    assert value_of(done, "KEY") == value
    assert (b"\0LC_ALL=" in b"\0" + done.stdout) == (locale is not None)
    if locale:
        assert value_of(done, "LC_ALL").decode() == locale


@pytest.mark.parametrize("shell", SHELLS)
def test_the_largest_value_arrives_in_time(tmp_path: Path, awk: str, shell: str) -> None:
    value = (EVERY_BYTE * 300)[: secrets.LARGEST]
    shares = secrets.shares({"KEY": value}, os.urandom)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = joined(tmp_path, shares, "KEY", "env", "-0", shell=shell, PATH=awk)
    assert value_of(done, "KEY") == value
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 4, (
        "the time grows with the square of the size"
    )


@pytest.mark.parametrize("shell", SHELLS)
def test_of_yurt_only_the_value_is_left_in_the_environment(tmp_path: Path, shell: str) -> None:
    done = joined(tmp_path, secrets.shares({"KEY": b"v"}, os.urandom), "KEY", "sh", "-c", "env; ulimit -c", shell=shell)
    assert not [line for line in done.stdout.decode().splitlines() if line.lower().startswith(("yurt_s", "share_"))]
    assert done.stdout.endswith(b"\n0\n"), "a core file would contain the value"


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("stays", [True, False])
def test_a_share_is_spent_by_a_start_that_no_other_follows(tmp_path: Path, shell: str, stays: bool) -> None:
    shares = secrets.shares({"KEY": b"v"}, os.urandom)
    done = joined(tmp_path, shares, "KEY", "true", shell=shell, SHARES="stay" if stays else "go")
    assert (done.returncode, (tmp_path / "secret.n1").exists()) == (0, stays)


@pytest.mark.parametrize("shell", SHELLS)
def test_nothing_starts_without_both_shares(tmp_path: Path, shell: str) -> None:
    shares = secrets.shares({"KEY": b"value"}, os.urandom)
    others = secrets.shares({"KEY": b"value"}, os.urandom)
    cases = [
        (
            joined(tmp_path, secrets.Shares(shares.folder, b""), "KEY", "echo", "on", shell=shell),
            "secret KEY is missing: this site does not pass the environment",
        ),
        (
            joined(tmp_path, shares, "KEY", "echo", "on", shell=shell, nonce="n2"),
            f"secret KEY is missing: cannot read {tmp_path}/secret.n2\n",
        ),
        (
            joined(tmp_path, secrets.Shares(others.folder, shares.environment), "KEY", "echo", "on", shell=shell),
            "secret KEY is incomplete",
        ),
        (
            joined(tmp_path, secrets.Shares(shares.folder[:9], shares.environment), "KEY", "echo", "on", shell=shell),
            "secret KEY is incomplete",
        ),
        (
            joined(tmp_path, secrets.Shares(b"", shares.environment), "KEY", "echo", "on", shell=shell),
            "secret KEY is incomplete",
        ),
    ]
    for done, message in cases:
        assert (done.returncode, done.stdout) == (78, b"")
        assert done.stderr.decode().startswith(f"yurt: {message}")
        assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize("shell", SHELLS)
def test_no_program_is_given_the_value_and_no_trace_shows_it(tmp_path: Path, shell: str) -> None:
    """A PATH of wrappers records the arguments of every program, in place of strace."""
    (tmp_path / "bin").mkdir()
    for name in ("awk", "env", "printf", "sh", "cat", "rm"):
        wrapper = tmp_path / "bin" / name
        wrapper.write_text(
            f'#!/bin/dash\nfor each; do printf "%s " "$each"; done >> {tmp_path}/seen\nexec /usr/bin/{name} "$@"\n'
        )
        wrapper.chmod(0o755)
    value = b"not-in-arguments"
    shares = secrets.shares({"KEY": value}, os.urandom)
    path = f"{tmp_path}/bin:{os.environ['PATH']}"
    done = joined(tmp_path, shares, "KEY", "env", "-0", shell=f"{shell} -x", PATH=path)
    assert value_of(done, "KEY") == value
    assert "name=KEY" in (tmp_path / "seen").read_text(), "the wrappers saw nothing"
    assert value not in (tmp_path / "seen").read_bytes() and value not in done.stderr


@pytest.mark.parametrize("shell", SHELLS)
def test_by_hand_the_terminals_own_values_are_taken(tmp_path: Path, shell: str) -> None:
    nothing = secrets.Shares(b"", b"")
    done = joined(tmp_path, nothing, "KEY", "env", "-0", shell=shell, nonce="", KEY="mine")
    assert value_of(done, "KEY") == b"mine"
    done = joined(tmp_path, nothing, "KEY OTHER", "echo", "on", shell=shell, nonce="", KEY="mine")
    assert (done.returncode, done.stdout) == (78, b"")
    assert done.stderr.decode().endswith("secret OTHER is not set; export it to run this script by hand\n")


def test_a_shell_inside_a_run_has_no_secrets(tmp_path: Path) -> None:
    done = joined(tmp_path, secrets.Shares(b"", b""), "KEY", "env", "-0", nonce="", YURT_INSTEAD="bash")
    assert b"\0KEY=" not in done.stdout and done.returncode == 0
    assert done.stderr == b"yurt: secrets of the run are not set in this shell: KEY\n"


@pytest.mark.parametrize("shell", SHELLS)
def test_shares_are_hidden_and_handed_on(tmp_path: Path, shell: str) -> None:
    text = (
        scripts.text("secrets.sh", "job")
        + "secrets='A B'; hide_shares; env; echo ---; (with_shares env); echo ---; env"
    )
    own = {"YURT_SHARE": "secret.n1", "YURT_SHARE_A": "one", "YURT_SHARE_B": "t/w+o"}
    done = subprocess.run(
        [*shell.split(), "-c", text], env={**os.environ, **own}, capture_output=True, text=True, check=True
    )
    before, within, after = done.stdout.split("---\n")
    assert "YURT_SHARE" not in before + after and "YURT_SHARE=secret.n1\n" in within
    assert "YURT_SHARE_A=one\n" in within and "YURT_SHARE_B=t/w+o\n" in within


@given(VALUES)
def test_shares_add_up_and_differ_each_time(value: bytes) -> None:
    pad, rest = secrets.split(value, os.urandom)
    whole = bytes((one + other) % 256 for one, other in zip(pad, rest, strict=True))
    assert whole.rstrip(b"\0") == value and len(whole) % secrets.BLOCK == 0 and len(whole) - len(value) >= secrets.CHECK
    assert secrets.split(value, os.urandom)[0] != pad


def test_a_share_alone_is_noise() -> None:
    """For a million equal characters, the bytes of each share are uniformly distributed."""
    for share in secrets.split(b"a" * 1_000_000, os.urandom):
        counts = Counter(share[:1_000_000])
        expected = 1_000_000 / 256
        assert sum((counts[byte] - expected) ** 2 / expected for byte in range(256)) < 400, "chi-squared, 255 degrees"


def test_shares_do_not_show_themselves() -> None:
    made = secrets.shares({"KEY": b"value"}, os.urandom)
    assert repr(made) == str(made) == f"{made}" == "Shares(…)"
    assert base64.b64encode(b"value") not in made.folder + made.environment


@pytest.mark.parametrize(
    "name",
    ["", "1A", "A-B", "A B", "ŻÓŁĆ", "A=B", "A\n", "PATH", "LD_PRELOAD", "YURT_RUN_ID", "yurt_secret_x", "IFS", "_"],
)
def test_names_that_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"is not a valid variable name|is reserved for|give only the name"):
        secrets.check_name(name)


@pytest.mark.parametrize("name", ["HF_TOKEN", "a", "_x1", "PATHS", "HOME_KEY"])
def test_names_that_are_taken(name: str) -> None:
    secrets.check_name(name)


def test_values_that_are_refused_are_not_shown() -> None:
    for values in (
        {"KEY": b"so\0hidden"},
        {"KEY": b"hidden" * 20_000},
        {f"K{n}": b"hidden" * 10_000 for n in range(6)},
    ):
        with pytest.raises(ValueError, match=r"maximum is|cannot contain") as caught:
            secrets.check_values(values)
        assert "hidden" not in str(caught.value)
