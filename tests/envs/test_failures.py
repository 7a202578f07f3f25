"""Failures of real programs are explained. The recorded texts are output of uv, pip and conda."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.envs.conftest import make_wheel
from yurt.envs.failures import LONGEST, RULES, explain
from yurt.envs.target import Target

RECORDED = Path(__file__).parent.parent / "fixtures" / "envs"
TARGET = Target("3.11.2", "x86_64", "glibc 2.36")
EXPECTED = {
    "conda-create": ("conda", "no conda channel has nosuchpkg=1.0"),
    "conda-env": ("conda", "no conda channel has nosuchpkg=1.0"),
    "pip-compiler": ("compiler", "the compiler or build tool nosuchcc is missing"),
    "pip-disk": ("disk", "the disk is full"),
    "pip-hash": ("hash", "the index has another file than the locked one for a package"),
    "pip-headers": ("headers", "the header file nosuch.h is missing"),
    "pip-killed": ("killed", "the build was killed, probably by a limit on memory or CPU time"),
    "pip-no-internet": ("internet", "there is no internet: the name of a host cannot be resolved"),
    "pip-no-version": ("version", "no version of six==99 can be installed on x86_64 (glibc 2.36) with Python 3.11"),
    "pip-no-wheel": ("wheel", "docopt==0.6.2 has no wheel that can be used on x86_64 (glibc 2.36) with Python 3.11"),
    "pip-permission": ("permission", "a file or folder cannot be accessed"),
    "pip-proxy": ("internet", "the proxy cannot be reached"),
    "pip-python-old": (
        "version",
        "no version of numpy==2.4.6 can be installed on x86_64 (glibc 2.36) with Python 3.11",
    ),
    "uv-compiler": ("compiler", "the compiler or build tool nosuchcc is missing"),
    "uv-disk": ("disk", "the disk is full"),
    "uv-hash": ("hash", "the index has another file than the locked one for six==1.17.0"),
    "uv-headers": ("headers", "the header file nosuch.h is missing"),
    "uv-killed": ("killed", "the build was killed, probably by a limit on memory or CPU time"),
    "uv-no-index": ("version", "no package index has numpy"),
    "uv-no-internet": ("internet", "there is no internet: the name of a host cannot be resolved"),
    "uv-no-version": ("version", "no package index has six==99"),
    "uv-no-wheel": ("wheel", "docopt==0.6.2 has no wheel that can be used on x86_64 (glibc 2.36) with Python 3.11"),
    "uv-no-wheel-python": ("wheel", "torch==1.4.0 has no wheel for Python 3.11 on x86_64 (glibc 2.36)"),
    "uv-permission": ("permission", "a file or folder cannot be accessed"),
    "uv-proxy": ("internet", "the proxy cannot be reached"),
}


def test_every_recorded_text_is_expected() -> None:
    assert {file.stem for file in RECORDED.iterdir()} == EXPECTED.keys()


@pytest.mark.parametrize("name", EXPECTED)
def test_recorded_texts(name: str) -> None:
    failure = explain((RECORDED / f"{name}.txt").read_text(), TARGET)
    assert (failure.kind, failure.cause) == EXPECTED[name]
    assert failure.hint and 1 <= len(failure.lines) <= 5
    assert all(0 < len(line) <= LONGEST and "\n" not in line for line in failure.lines)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("OSError: [Errno 122] Disk quota exceeded: '/home/ada/x'", "quota"),
        ("c++: fatal error: Killed signal terminated program cc1plus", "killed"),
        ("job.sh: line 7: 4711 Killed                  uv pip install -r lock.txt", "killed"),
        ("job.sh: line 7: 4711 CPU time limit exceeded (core dumped) uv pip install", "killed"),
        ("/usr/bin/ld: cannot find -lhdf5: No such file or directory", "headers"),
        ("  error: can't find Rust compiler", "compiler"),
        (
            "`pyproject.toml` is using the `[project]` table, but the required `project.version` field is not set",
            "other",
        ),
        ("LibMambaUnsatisfiableError: Encountered problems\n  - nothing provides requested cudnn 99", "conda"),
        ("ssl.SSLCertVerificationError: certificate verify failed: self-signed certificate", "internet"),
        ("something\nelse\n\nValueError: it is Tuesday\n", "other"),
        ("", "other"),
    ],
)
def test_further_texts(text: str, kind: str) -> None:
    failure = explain(text)
    assert (failure.kind, bool(failure.cause), bool(failure.hint)) == (kind, True, True)


def test_a_warning_is_not_the_cause_if_there_is_an_error() -> None:
    warned = "WARNING: Retrying after connection broken by 'Name or service not known'\n"
    assert explain(warned + "x.c:1:10: fatal error: mpi.h: No such file or directory").kind == "headers"
    assert explain(warned + "ERROR: No matching distribution found for six").kind == "internet"


def test_passwords_and_colours_are_removed() -> None:
    failure = explain("\x1b[31merror\x1b[0m: Failed to fetch: https://ada:s3cret@host.example/x\n  dns error\n")
    assert failure.lines == ["Failed to fetch: https://host.example/x", "dns error"]


def test_a_real_pip_without_a_wheel_or_with_another_python(tmp_path: Path) -> None:
    make_wheel(tmp_path, "young", python=">=3.99")
    make_wheel(tmp_path, "other", tag="cp38-cp38-manylinux2014_s390x")
    causes = {}
    for wheel in tmp_path.glob("*.whl"):
        command = [sys.executable, "-m", "pip", "download", "--no-index", "--no-deps", "-d", str(tmp_path / "d")]
        done = subprocess.run([*command, str(wheel)], capture_output=True, text=True, check=False)
        causes[wheel.name.split("-")[0]] = explain(done.stdout + done.stderr, TARGET).cause
    assert causes == {
        "young": "young requires Python >=3.99, but the site has Python 3.11",
        "other": "other-1.0-cp38-cp38-manylinux2014_s390x.whl has no wheel for Python 3.11 on x86_64 (glibc 2.36)",
    }


def test_a_line_without_end() -> None:
    """A project chose it, as the name of a package. The rules took hours to search it."""
    failure = explain("error: " + "A" * 3_000_000 + "\nERROR: No space left on device\n")
    assert failure.kind == "disk"


def test_hints_differ_from_causes() -> None:
    assert all(rule.hint != rule.cause and not rule.hint.endswith(".") for rule in RULES)
