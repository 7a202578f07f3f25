"""The settings table: it matches the hand-written structs, and everything generated from it is complete."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_type_hints

import msgspec
import pytest

from yurt.api.options import Options
from yurt.backends.slurm import options as sbatch
from yurt.config import project
from yurt.lifecycle.plan.scheduling import resources_of
from yurt.lifecycle.run import run_command
from yurt.model.context import Context, ContextResources
from yurt.model.context_check import check_body
from yurt.model.context_keys import KEYS
from yurt.model.run import Plan, Resources, Run
from yurt.model.settings import TABLE
from yurt.model.settings_row import Row

ROOT = Path(__file__).parent.parent.parent
REFERENCE = ROOT / "docs" / "reference"

OPTIONS = [row for row in TABLE if row.option]
OWN_KEYS = {row.key: row for row in TABLE if row.key}

IN_CONTEXT = {
    "seconds": "str | None",
    "wait": "str | None",
    "text": "str | None",
    "flag": "bool",
    "count": "int | None",
    "range": "str | None",
    "size": "str | None",
    "time": "str | int | None",
    "gpus": "int | str | None",
    "list": "tuple[str, ...]",
    "mapping": "dict[str, str]",
    "options": "dict[str, str | None]",
}

IN_PYTHON = {
    "text": "str",
    "choice": "str",
    "gres": "str",
    "flag": "bool",
    "number": "int",
    "seconds": "str",
    **dict.fromkeys(("count", "range", "size", "time", "gpus"), "int | str"),
    "list": "Sequence[str]",
    "mapping": "Mapping[str, str]",
    "options": "Mapping[str, str | int | None]",
}


def of(rows: list[Row]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("row", rows, ids=lambda row: row.option or row.key)


def test_no_two_rows_share_a_name() -> None:
    for names in (
        [row.option for row in OPTIONS],
        [row.key for row in TABLE if row.key],
        [row.resource for row in TABLE if row.resource],
        [row.sbatch for row in TABLE if row.sbatch],
        [word for row in OPTIONS for word in row.cli.split() if word.startswith("-")],
        [alias for row in TABLE for alias in row.aliases],
    ):
        assert len(names) == len(set(names))


def test_the_structs_have_the_fields_of_the_table() -> None:
    assert {*KEYS, *(f"resources.{key}" for key in ContextResources.__struct_fields__)} == set(OWN_KEYS)
    assert {*(row.resource for row in TABLE if row.resource), "gpu_type"} == set(Resources.__struct_fields__)
    assert list(Options.__annotations__) == [row.option for row in OPTIONS]


@of([row for row in TABLE if row.key and row.key != "name" and row.form not in ("choice", "group")])
def test_types_in_a_context(row: Row) -> None:
    struct = ContextResources if "." in row.key else Context
    kind = get_type_hints(struct)[row.key.rpartition(".")[2]]
    assert str(kind).replace("<class 'bool'>", "bool") == IN_CONTEXT[row.form]


@of(OPTIONS)
def test_types_in_python(row: Row) -> None:
    assert Options.__annotations__[row.option].__forward_arg__ == IN_PYTHON[row.form]


@of([row for row in TABLE if row.resource])
def test_types_in_resources(row: Row) -> None:
    assert str(get_type_hints(Resources)[row.resource]) == (
        "str | None" if row.form in ("text", "range") else "int | None"
    )


@of([row for row in TABLE if row.form == "choice"])
def test_choices(row: Row) -> None:
    assert all(f"'{word}'" in str(get_type_hints(Context)[row.key]) for word in row.choices)


@of(OPTIONS)
def test_an_option_is_on_the_command_line(row: Row) -> None:
    (option,) = [each for each in run_command.command.params if row.flag in each.opts]
    words = [word for word in row.cli.replace("/", " ").split() if word.startswith("-")]
    assert [*option.opts, *option.secondary_opts] == words
    assert option.name == ("no_snapshot" if row.option == "snapshot" else row.option)
    assert getattr(option, "help", None) == row.help and row.help
    page = (REFERENCE / "cli.md").read_text()
    section = " ".join(page[page.index("## yurt run\n") :].split())
    assert row.help in section and f"`{row.option}" in (REFERENCE / "python.md").read_text()


@of(list(OWN_KEYS.values()))
def test_a_key_is_in_the_reference(row: Row) -> None:
    assert row.about and row.example
    assert re.search(
        rf"^\| `{re.escape(row.key)}` \| {re.escape(row.about)} \| .* \| `{re.escape(row.example)}` \|$",
        (REFERENCE / "contexts.md").read_text(),
        re.MULTILINE,
    )


def test_keys_of_a_project() -> None:
    own = {key for key in OWN_KEYS if "." not in key and not OWN_KEYS[key].site}
    assert set(project.KEYS) == own and project.KEYS[0] == "name"


@of([row for row in TABLE if row.resource])
def test_a_resource_reaches_sbatch(row: Row) -> None:
    group, _, part = row.key.rpartition(".")
    body: dict[str, Any] = {group: {part: row.example}} if group else {part: row.example}
    values, faults = check_body(body, KEYS, "a context")
    assert not faults
    context = msgspec.convert({"name": "big", "type": "slurm", **values}, Context)
    about: dict[str, Any] = {"context": "big", "context_type": "slurm", "project": "p", "source": "/p", "command": []}
    asked = Run(id="r", created=0, folder="/r", resources=resources_of(context), **about)
    made = sbatch.arguments(Plan(run=asked, project_folder="/p", store="", words=[]))
    before = sbatch.arguments(
        Plan(run=msgspec.structs.replace(asked, resources=Resources()), project_folder="/p", store="", words=[])
    )
    (added,) = set(made) - set(before)
    assert added.startswith(f"--{row.sbatch}=")


def test_a_setting_is_named_only_where_it_is_declared_or_has_logic_of_its_own() -> None:
    declared = {"model/settings.py", "model/context.py", "model/run.py", "api/options.py"}
    source = ROOT / "src"
    for file in source.rglob("*.py"):
        text, place = file.read_text(), str(file.relative_to(source)).removeprefix("yurt/")
        if re.search(r"\bexclude_nodes\b", text) and place not in declared:
            assert "bad_nodes" in text + file.name or place == "dev/nodes.py", (
                f"{place} names exclude_nodes; read the table instead"
            )
