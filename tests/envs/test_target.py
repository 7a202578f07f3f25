"""Targets in the words of uv and pip, checked against pip's and uv's own rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.envs.conftest import TARGETS
from yurt.envs import uv_program
from yurt.envs.target import UV_GLIBC, Target
from yurt.errors import UserError


@pytest.mark.parametrize(
    ("machine", "libc", "platform"),
    [
        ("x86_64", "glibc 2.17", "x86_64-manylinux_2_17"),
        ("x86_64", "glibc 2.27", "x86_64-manylinux_2_17"),
        ("x86_64", "glibc 2.36", "x86_64-manylinux_2_36"),
        ("aarch64", "glibc 2.99", "aarch64-manylinux_2_40"),
        ("aarch64", "musl 1.2", "aarch64-unknown-linux-musl"),
        ("riscv64", "glibc 2.39", "riscv64-unknown-linux"),
    ],
)
def test_the_platform_for_uv(machine: str, libc: str, platform: str) -> None:
    assert Target("3.11.2", machine, libc).uv_platform == platform


@pytest.mark.parametrize(("machine", "libc"), [("x86_64", "glibc 2.12"), ("ppc64le", "glibc 2.36")])
def test_a_platform_that_uv_does_not_know(machine: str, libc: str) -> None:
    with pytest.raises(UserError, match=machine):
        _ = Target("3.11.2", machine, libc).uv_platform


def test_uv_knows_these_platforms(tmp_path: Path) -> None:
    said = uv_program.run(["pip", "compile", "--python-platform", "?", "x"], folder=tmp_path, variables={}).err
    assert all(f"{machine}-manylinux_2_{minor}," in said for machine in ("x86_64", "aarch64") for minor in UV_GLIBC)
    assert all(target.uv_platform in said for target in TARGETS)


def test_the_platforms_for_pip() -> None:
    assert Target("3.11.2", "x86_64", "glibc 2.18").pip_platforms == [
        *("manylinux_2_18_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64", "manylinux_2_16_x86_64"),
        *("manylinux_2_15_x86_64", "manylinux_2_14_x86_64", "manylinux_2_13_x86_64", "manylinux_2_12_x86_64"),
        *("manylinux2010_x86_64", "manylinux_2_11_x86_64", "manylinux_2_10_x86_64", "manylinux_2_9_x86_64"),
        *("manylinux_2_8_x86_64", "manylinux_2_7_x86_64", "manylinux_2_6_x86_64", "manylinux_2_5_x86_64"),
        *("manylinux1_x86_64", "linux_x86_64"),
    ]
    aarch64 = Target("3.11.2", "aarch64", "glibc 2.17").pip_platforms
    assert aarch64 == ["manylinux_2_17_aarch64", "manylinux2014_aarch64", "linux_aarch64"]
    musl = Target("3.11.2", "x86_64", "musl 1.2").pip_platforms
    assert musl == ["musllinux_1_2_x86_64", "musllinux_1_1_x86_64", "linux_x86_64"]


@pytest.mark.parametrize(
    ("specifier", "satisfied"),
    [("", True), (">=3.9", True), (">=3.9,<3.11", False), ("==3.11.*", True), ("~=3.11.3", False), (">3.11", True)],
)
def test_the_python(specifier: str, satisfied: bool) -> None:
    target = Target("3.11.2", "x86_64", "glibc 2.36")
    assert target.python_version == "3.11"
    assert target.satisfies(specifier) == satisfied


@pytest.mark.parametrize("libc", ["", "musl", "glibc"])
def test_a_site_that_does_not_tell_its_c_library(libc: str) -> None:
    target = Target("3.11.2", "ppc64le", libc)
    assert target.pip_platforms[-1] == "linux_ppc64le"
    with pytest.raises(UserError):
        target.uv_platform  # noqa: B018
