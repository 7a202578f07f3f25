"""Addresses: equal for what makes no difference, different for what does, and the same on every machine."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yurt.envs.declared import Broken, Declared
from yurt.envs.of_runs.prepare import address
from yurt.envs.target import Target
from yurt.errors import UserError

TARGET = Target("3.11.2", "x86_64", "glibc 2.36")
NAMES = st.from_regex(r"[a-z]{1,8}", fullmatch=True)
LINES = st.lists(st.builds("{}=={}".format, NAMES, st.integers(0, 9)), min_size=1, max_size=6)
NOISE = st.sampled_from(["", "  ", "# a comment", "   # more", "\t"])


def declared(*lines: str, end: str = "\n") -> Declared:
    return Declared(kind="requirements", files={"requirements.txt": end.join([*lines, ""]).encode()})


def test_it_is_the_same_on_every_machine() -> None:
    assert address(declared("six==1.17.0", "numpy"), TARGET, ["gcc/12"]) == "ceaab77e96204055"


@given(LINES, st.lists(NOISE, min_size=6, max_size=6), st.sampled_from(["\n", "\r\n", "\r"]))
def test_comments_blanks_and_line_ends_make_no_difference(lines: list[str], noise: list[str], end: str) -> None:
    noisy = [part for line, more in zip(lines, noise, strict=False) for part in (more, f"  {line}  # why")]
    assert address(declared(*noisy, end=end), TARGET, []) == address(declared(*lines), TARGET, [])


@given(LINES, LINES)
def test_other_requirements_have_another_address(one: list[str], other: list[str]) -> None:
    equal = address(declared(*one), TARGET, []) == address(declared(*other), TARGET, [])
    assert equal == (one == other)


@given(st.lists(NAMES, max_size=4), st.lists(NAMES, max_size=4))
def test_extras_are_a_set_and_modules_a_list(one: list[str], other: list[str]) -> None:
    def of(extras: list[str], modules: list[str]) -> str:
        return address(msgspec.structs.replace(declared("six"), extras=extras), TARGET, modules)

    assert of(one, []) == of(one[::-1], [])
    assert (of([], one) == of([], other)) == (one == other)
    assert not one or of(one, []) != of([], one)


@given(st.text(max_size=20), st.text(max_size=20))
def test_each_salt_has_its_address(one: str, other: str) -> None:
    found = {address(declared("six"), TARGET, [], salt=each) for each in (one, other)}
    assert len(found) == len({one, other})
    assert all(len(each) == 16 and int(each, 16) >= 0 for each in found)


@pytest.mark.parametrize(
    ("target", "equal"),
    [
        (Target("3.11.9", "x86_64", "glibc 2.17"), True),
        (Target("3.12.2", "x86_64", "glibc 2.36"), False),
        (Target("3.11.2", "aarch64", "glibc 2.36"), False),
        (Target("3.11.2", "x86_64", "musl 1.2"), False),
    ],
)
def test_the_target(target: Target, equal: bool) -> None:
    assert (address(declared("six"), target, []) == address(declared("six"), TARGET, [])) == equal


def test_a_pyproject_counts_by_what_it_says_about_packages() -> None:
    def of(text: str) -> str:
        return address(Declared(kind="pyproject", files={"pyproject.toml": text.encode()}), TARGET, [])

    plain = '[project]\nversion = "1"\ndependencies = ["six"]\n'
    assert of(plain) == of(plain.replace('"1"', '"2"') + "[tool.ruff]\nline-length = 99\n")
    assert of(plain) != of(plain.replace("six", "idna"))
    assert of(plain) != of(plain + '[dependency-groups]\ndev = ["idna"]\n')


def test_a_broken_declaration_has_none() -> None:
    broken = Broken("'requirements.txt' is invalid", "config-invalid", "correct it")
    with pytest.raises(UserError):
        address(msgspec.structs.replace(declared("six"), broken=broken), TARGET, [])
