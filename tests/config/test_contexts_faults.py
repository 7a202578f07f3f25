"""Every fault of contexts.yaml: its exact message, and an unchanged file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.calls import Yurt
from yurt.config import contexts, yaml_text
from yurt.errors import UserError
from yurt.model.context import Context
from yurt.model.context_keys import KEYS

FILE_EXAMPLE = "contexts: {big: {type: slurm, slurm_url: alice@big.example}}"

ONE_FAULT = {
    "unknown key": (
        "contexts:\n  big:\n    type: local\n    partitoin: x\n",
        "4: contexts.big.partitoin is not a key of a context; did you mean 'partition'? (example: `partition: main`)",
    ),
    "wrong type": (
        "contexts:\n  big:\n    type: local\n    resources:\n      cpu: 1\n      mem: [8G]\n",
        "6: contexts.big.resources.mem must be a memory size such as 4096 (MB), 512M, 8G or 1T, not a list "
        "(example: `mem: 8G`)",
    ),
    "unknown type": (
        "contexts:\n  big: {type: cloud}\n",
        "2: contexts.big.type must be local, slurm or kubernetes, not 'cloud' (example: `type: slurm`)",
    ),
    "no type": ("# x\ncontexts:\n  big: {}\n", "3: contexts.big.type is missing (example: `type: slurm`)"),
    "no slurm_url": (
        "contexts:\n  big:\n    type: slurm\n",
        "2: contexts.big.slurm_url is missing (example: `slurm_url: alice@login.big.example`)",
    ),
    "no body": (
        "contexts:\n  big:\n",
        "2: contexts.big must be a mapping of keys to values, not an empty value (example: `type: slurm`)",
    ),
    "bad name": (
        "contexts:\n  a b: {type: local}\n",
        "2: contexts.a b is not a valid context name: use letters, digits, '.', '_' and '-', starting with a letter or "
        "a digit (example: `big-gpu: {type: slurm, slurm_url: alice@big.example}`)",
    ),
    "other name inside": (
        "contexts:\n  big:\n    type: local\n    name: small\n",
        "4: contexts.big.name is 'small', but the context is named 'big'; remove the key",
    ),
    "key twice": (
        "contexts:\n  big:\n    type: local\n    venv: a\n    venv: b\n",
        "5: contexts.big.venv is set twice, in lines 4 and 5; keep one",
    ),
    "context twice": (
        "contexts:\n  big: {type: local}\n  big: {type: local}\n",
        "3: contexts.big is set twice, in lines 2 and 3; keep one",
    ),
    "current context that does not exist": (
        "contexts:\n  big: {type: local}\ncurrent_context: bgi\n",
        "3: current_context is 'bgi', which does not exist; did you mean 'big'?",
    ),
    "current is a list": (
        "current_context: [local]\n",
        "1: current_context must be the name of a context, not a list (example: `current_context: big`)",
    ),
    "unknown key of the file": (
        "context:\n  big: {type: local}\n",
        f"1: context is not a key of a contexts file; did you mean 'contexts'? (example: `{FILE_EXAMPLE}`)",
    ),
    "nothing near": (
        "a: 1\n",
        "1: a is not a key of a contexts file; valid keys: contexts, current_context",
    ),
    "list": (
        "- a\n- b\n",
        f"1: the file must be a mapping with the key contexts, not a list (example: `{FILE_EXAMPLE}`)",
    ),
    "text": (
        "hello\n",
        f"1: the file must be a mapping with the key contexts, not 'hello' (example: `{FILE_EXAMPLE}`)",
    ),
    "contexts a list": (
        "contexts:\n- big\n",
        f"1: contexts must be a mapping of names to contexts, not a list (example: `{FILE_EXAMPLE}`)",
    ),
    "tab": (
        "contexts:\n  big:\n\ttype: local\n",
        "3: the file is not valid YAML: the indentation contains a tab; indent with spaces",
    ),
    "bracket": (
        "contexts:\n  big: [\n",
        "3: the file is not valid YAML: while parsing a flow node, did not find expected node content",
    ),
    "colon": (
        "contexts:\n  big: a: b\n",
        "2: the file is not valid YAML: mapping values are not allowed in this context",
    ),
    "control character": (
        "contexts:\n  # é\n  big: {venv: \x01}\n",
        "3: the file is not valid YAML: control characters are not allowed",
    ),
    "undefined alias": ("contexts:\n  big: *a\n", "2: the file is not valid YAML: found undefined alias"),
    "two documents": (
        "contexts: {}\n---\ncontexts: {}\n",
        "2: the file is not valid YAML: expected a single document in the stream, but found another document",
    ),
    "code in a tag": (
        "contexts:\n  big: !!python/object:os.system x\n",
        "2: the file is not valid YAML: could not determine a constructor for the tag "
        "'tag:yaml.org,2002:python/object:os.system'",
    ),
    "a list that contains itself": (
        "contexts:\n  big:\n    type: local\n    tags: &a [*a]\n",
        "4: contexts.big.tags must be a list of strings, not a list (example: `tags: [baseline, paper]`)",
    ),
}


OF_A_CONTEXT = {key: each for key, each in ONE_FAULT.items() if re.match(r"\d+: contexts\.", each[1])}
OF_THE_FILE = {key: each for key, each in ONE_FAULT.items() if key not in OF_A_CONTEXT}


@pytest.mark.parametrize(("text", "message"), OF_A_CONTEXT.values(), ids=OF_A_CONTEXT)
def test_a_fault_of_one_context_blocks_no_other(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "contexts.yaml"
    file.write_text(text + "  good: {type: local}\n")
    found = contexts.load(file)
    (name,) = found.invalid
    assert list(found.contexts) == ["local", "good"]
    error = contexts.why_invalid(file, name)
    assert error.message == f"{file}:{message}" and (error.code, error.exit_code) == ("config-invalid", 2)
    with pytest.raises(UserError) as caught:
        contexts.use(file, name)
    assert caught.value.message == error.message
    with pytest.raises(UserError) as caught:
        contexts.copy(file, name, "new")
    assert caught.value.message == error.message
    contexts.use(file, "good")
    contexts.put(file, [Context(name="x", type="local")])
    contexts.copy(file, "good", "new")
    assert file.read_text().startswith(text) and contexts.load(file).invalid == {name}
    if "twice" not in message:
        contexts.remove(file, [name])
        assert list(contexts.load(file).contexts) == ["local", "good", "x", "new"] and not contexts.load(file).invalid


@pytest.mark.parametrize(("text", "message"), OF_THE_FILE.values(), ids=OF_THE_FILE)
def test_a_fault_of_the_file(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "contexts.yaml"
    file.write_text(text)
    for call in (
        lambda: contexts.load(file),
        lambda: contexts.put(file, [Context(name="x", type="local")]),
        lambda: contexts.remove(file, ["big"]),
        lambda: contexts.use(file, "local"),
        lambda: contexts.copy(file, "local", "new"),
    ):
        with pytest.raises(UserError) as caught:
            call()
        assert caught.value.message == f"{file}:{message}"
        assert caught.value.code == "config-invalid" and caught.value.exit_code == 2
        assert file.read_bytes() == text.encode() and [*tmp_path.iterdir()] == [file]


MANY = """\
contexts:
  big:
    type: slurm
    ntasks: many
    resources: {cpu: x, gpus: 1}
    ntasks: 3
  small:
    colour: red
current_context: middle
"""


def test_many_faults_as_a_user_sees_them(yurt: Yurt, tmp_path: Path) -> None:
    file = tmp_path / "config" / "contexts.yaml"
    file.parent.mkdir()
    file.write_text(MANY)
    lines = [
        f"yurt: {file} has 7 errors:",
        "  line 2: contexts.big.slurm_url is missing (example: `slurm_url: alice@login.big.example`)",
        "  line 5: contexts.big.resources.cpu must be a positive integer, not 'x' (example: `cpu: 4`)",
        "  line 5: contexts.big.resources.gpus is not a key of resources; did you mean 'gpu'? (example: `gpu: a100:2`)",
        "  line 6: contexts.big.ntasks is set twice, in lines 4 and 6; keep one",
        "  line 7: contexts.small.type is missing (example: `type: slurm`)",
        f"  line 8: contexts.small.colour is not a key of a context; valid keys: {', '.join(KEYS)}",
        "  line 9: current_context is 'middle', which does not exist",
    ]
    answer = yurt("context", "list", environment={"EDITOR": "nano", "VISUAL": ""})
    assert answer.code == 2 and answer.out == ""
    assert "Traceback" not in answer.err
    printed = answer.err.splitlines()
    assert printed[-1] == f"  hint: edit the file with `nano {file}`"
    assert printed[:-1] == lines
    assert file.read_text() == MANY and [*file.parent.iterdir()] == [file]


BAD_AND_GOOD = """\
contexts:
  good:
    type: local
  bad:
    type: slurm
    partitoin: gpu
current_context: good
"""


def test_an_invalid_context_as_a_user_sees_it(yurt: Yurt, tmp_path: Path) -> None:
    file = tmp_path / "config" / "contexts.yaml"
    file.parent.mkdir()
    file.write_text(BAD_AND_GOOD)
    assert yurt("run", "--no-snapshot", "--wait", "true").code == 0
    listed = yurt("context", "list")
    assert listed.code == 0 and "good" in listed.out
    faults = [
        "  line 4: contexts.bad.slurm_url is missing (example: `slurm_url: alice@login.big.example`)",
        "  line 6: contexts.bad.partitoin is not a key of a context; did you mean 'partition'? "
        "(example: `partition: main`)",
    ]
    assert listed.err.splitlines() == [f"yurt: warning: {file} has 2 errors:", *faults]
    for words in (
        ["context", "show", "bad"],
        ["context", "use", "bad"],
        ["run", "--context", "bad", "true"],
        ["login", "bad"],
        ["ps", "--context", "bad"],
    ):
        named = yurt(*words)
        assert (named.code, named.err.splitlines()[:3]) == (2, [f"yurt: {file} has 2 errors:", *faults])
    assert "'good'" in yurt("context", "show", "god").err
    exists = yurt("context", "add", "bad", "--slurm-url", "me@bad", "--no-probe")
    assert exists.code == 2 and "context 'bad' already exists" in exists.err
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nprintf "type: local\\n" > "$1"\n')
    editor.chmod(0o700)
    assert yurt("context", "edit", "bad", environment={"VISUAL": str(editor)}).out == "context 'bad' changed\n"
    assert yurt("context", "show", "bad").out == "bad:\n  type: local\n"
    file.write_text(BAD_AND_GOOD.replace("current_context: good", "current_context: bad"))
    assert yurt("run", "true").err.startswith(f"yurt: {file} has 2 errors:")
    assert yurt("context", "remove", "bad").out == "context 'bad' removed\nthe current context is now 'local'\n"


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    file = tmp_path / "contexts.yaml"
    file.write_bytes(b"contexts: \xff\n")
    with pytest.raises(UserError, match=r"cannot read .*contexts\.yaml: line 1 is not UTF-8 text"):
        contexts.load(file)
    with pytest.raises(UserError, match=r"cannot read .*: Is a directory"):
        contexts.load(tmp_path)


def test_deep_nesting_is_a_fault(tmp_path: Path) -> None:
    file = tmp_path / "contexts.yaml"
    file.write_text("contexts: " + "[" * 5000 + "]" * 5000)
    with pytest.raises(
        UserError, match=r"is nested more than 200 levels|is nested too deeply|must be a mapping of names"
    ):
        contexts.load(file)


def test_the_faults_of_many_contexts_take_one_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "contexts.yaml"
    file.write_text("contexts:\n" + "".join(f"  c{number}: {{key{number}: x}}\n" for number in range(50)))
    read = yaml_text.parse_with_lines
    calls: list[str] = []

    def counted(text: str) -> object:
        calls.append(text)
        return read(text)

    monkeypatch.setattr(yaml_text, "parse_with_lines", counted)
    names = sorted(contexts.load(file).invalid)
    found = contexts.all_invalid(file, names)
    assert len(names) == 50 and len(calls) <= 4
    assert [each.message for each in found] == [contexts.why_invalid(file, name).message for name in names]
    assert all(f"key{name[1:]}" in each.message for name, each in zip(names, found, strict=True))
