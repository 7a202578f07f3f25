"""Requirements files are read as pip reads them."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yurt.envs import requirements
from yurt.envs.requirements import Invalid, canonical, read


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("six", "requirement", "six"),
        ("six>=1,<2", "requirement", "six>=1,<2"),
        ("a[b,c] ~= 1.0 ; python_version < '3.9'", "requirement", "a[b,c] ~= 1.0 ; python_version < '3.9'"),
        ("six==1 --hash=sha256:00", "requirement", "six==1"),
        ("six @ https://host.example/six.zip", "requirement", "six @ https://host.example/six.zip"),
        ("git+ssh://git@host.example/a.git@main", "requirement", "git+ssh://git@host.example/a.git@main"),
        (
            "https://host.example/six-1.0-py3-none-any.whl",
            "requirement",
            "https://host.example/six-1.0-py3-none-any.whl",
        ),
        ("-e git+https://host.example/a", "requirement", "git+https://host.example/a"),
        ("-e .", "local", "."),
        ("--editable=./a[x]", "local", "./a[x]"),
        (".[dev] ; python_version > '3'", "local", ".[dev]"),
        ("a/b", "local", "a/b"),
        ("a @ ../a", "local", "a @ ../a"),
        ("a.whl", "local", "a.whl"),
        ("~/a", "local", "~/a"),
        ("-f ./wheels", "local", "./wheels"),
        ("-f https://host.example/wheels", "index", "https://host.example/wheels"),
        ("-i https://host.example/simple", "index", "https://host.example/simple"),
        ("--extra-index-url=https://host.example", "index", "https://host.example"),
        ("-rbase.txt", "include", "base.txt"),
        ("-c 'a b.txt'", "constraint", "a b.txt"),
        ("--pre", "option", ""),
        ("--only-binary :all:", "option", ":all:"),
    ],
)
def test_kinds_of_lines(text: str, kind: str, value: str) -> None:
    (line,) = read(f"# first\n\n{text}  # why\n")
    assert (line.number, line.kind, line.value) == (3, kind, value)


def test_continued_lines_and_addresses_with_a_hash() -> None:
    lines = read("six==1 \\\n   --hash=sha256:00 \\\n --hash=sha256:11\n# a \\\nidna\nx @ https://a.example/b#egg=x\n")
    assert [(each.number, each.text) for each in lines] == [
        (1, "six==1 --hash=sha256:00 --hash=sha256:11"),
        (5, "idna"),
        (6, "x @ https://a.example/b#egg=x"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "six==1 --hash=sha256:00 --index-url http://host.example",
        "six==1 --hash=sha256:00 -i http://host.example",
        "six==1 \\\n --hash=sha256:00 \\\n -f http://host.example",
        "six==1 --hash=sha256:00 evil @ http://host.example/evil-1.0.tar.gz",
        "six==1 --hash=sha256:00 -r other.txt",
        "http://own.example/six.whl -i http://host.example",
        "http://own.example/six.whl ; python_version > '3' -i http://host.example",
        "--index-url http://own.example evil @ http://host.example/evil-1.0.tar.gz",
        "-r other.txt -i //host.example",
    ],
)
def test_one_line_says_one_thing(text: str) -> None:
    """uv takes what follows a hash or an address for the next line."""
    with pytest.raises(Invalid):
        read(text)


@pytest.mark.parametrize(
    ("value", "extras"), [("-e .", []), (".[a, b]", ["a", "b"]), ("-e ./", []), ("./lib", None), ("six", None)]
)
def test_the_project_itself(value: str, extras: list[str] | None) -> None:
    assert requirements.extras_of_itself(read(value)[0]) == extras


@given(st.text(alphabet="ab1 .-=<>~!#\\\n\r;@[]'\"/:,$", max_size=40))
def test_any_text_is_read_or_invalid(text: str) -> None:
    with contextlib.suppress(Invalid):
        assert canonical(canonical(text)) == canonical(text)


WORDS = st.sampled_from(["a", "1", ".", "*", "-", "_", "==", "~=", "!=", ">", "<=", ",", " ", "[", "]", "1.0", "1.*"])


@given(st.lists(WORDS, min_size=1, max_size=9).map("".join))
def test_plain_requirements_are_valid_without_a_parser(text: str) -> None:
    from packaging.requirements import Requirement

    if requirements.PLAIN.fullmatch(text):
        Requirement(text)
