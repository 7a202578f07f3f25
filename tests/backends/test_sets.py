"""The values of a task, from a parameter set through files to a shell: nothing changes on the way."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from yurt.backends.job import script
from yurt.model import params
from yurt.model.run import Plan, Run

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30) | st.sampled_from(
    ["", "it's", "$(id) `id` $HOME", "a;b&c|d>e", "\n", "\n\n", "'\"'\"'", "\\", "--x", "-n", "null", "1", "#", "\r"]
)
SCALAR = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False, allow_infinity=False) | TEXT
)
VALUE = st.recursive(
    SCALAR, lambda each: st.lists(each, max_size=3) | st.dictionaries(TEXT, each, max_size=3), max_leaves=6
)
SETS = st.lists(st.dictionaries(st.sampled_from(["a", "b-c", "d.e", "F_1"]), VALUE), min_size=1, max_size=4)

SHOW = """cd "$1" && shift && set -- first && . ./set && for each; do printf '%s\\0' "$each"; done
printf 'that was all\\0'; env -0"""


def plan(sets: list[dict[str, Any]]) -> Plan:
    run = Run(
        id="s1-x",
        context="c",
        context_type="local",
        project="p",
        source="/p",
        created=0,
        command=[],
        folder="/f",
        tasks=len(sets),
    )
    return Plan(run=run, project_folder="/p", store="/s", words=[], sets=sets)


@settings(max_examples=60, deadline=None)
@given(SETS)
def test_a_shell_reads_what_was_written(sets: list[dict[str, Any]]) -> None:
    texts, offsets = script.sets(plan(sets))
    lines = offsets.decode().splitlines(keepends=True)
    assert [len(line) for line in lines] == [22] * len(sets), "the job reads line K at 22 * K"
    for number, each in enumerate(sets):
        at, size = map(int, lines[number].split())
        own = texts[at : at + size]
        first, _, _rest = own.partition(b"\n")
        assert repr(msgspec.json.decode(first[1:])) == repr(each)
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "set").write_bytes(own)
            output = subprocess.run(["sh", "-c", SHOW, "sh", folder], capture_output=True, check=True).stdout.decode()
        words, _, variables = output.partition("that was all\0")
        seen = dict(word.split("=", 1) for word in variables.split("\0") if word.startswith("YURT_PARAM_"))
        assert words.split("\0")[:-1] == ["first", *params.words(each)]
        assert seen == params.variables(each)
    assert sum(int(line.split()[1]) for line in lines) == len(texts)
