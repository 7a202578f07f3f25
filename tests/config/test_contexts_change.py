"""Changes to contexts.yaml: unrelated text stays unchanged, and concurrent writers lose nothing."""

from __future__ import annotations

import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from yurt.config import contexts, lock, splice, yaml_text
from yurt.errors import NotFoundError, UserError
from yurt.model.context import Context, ContextResources, ContextsFile

MINE = """\
# my clusters

contexts:
    # the one in the basement
    big:   # ask bob
        type:      slurm   # of course
        slurm_url: "me@big.example"
        after_module_load_cmd: |
            # not a comment
            source x
        # see the wiki

    # the small one
    small: &s
        type: local
        tags: [a,
            b]  # two

    # derived
    third:
        <<: *s
        partition:   'x'
    fourth: {type: local, name: fourth}

# what I use
current_context:   big    # for now
# the end
"""

BIG = MINE[MINE.index("    big:") : MINE.index("\n    # the small one")]
THIRD = MINE[MINE.index("    third:") : MINE.index("    fourth:")]
FOURTH = "    fourth: {type: local, name: fourth}\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    found = tmp_path / "contexts.yaml"
    found.write_text(MINE)
    return found


def new(name: str = "new", **keys: object) -> Context:
    return Context(name=name, type="local", **keys)  # type: ignore[arg-type]


def test_put_adds_after_the_last_and_touches_nothing_else(file: Path) -> None:
    contexts.put(file, [new(tags=("a", "b"), resources=ContextResources(cpu=1))])
    added = "    new:\n      type: local\n      resources:\n        cpu: 1\n      tags:\n        - a\n        - b\n"
    assert file.read_text() == MINE.replace(FOURTH, FOURTH + added)


def test_put_replaces_the_body_alone(file: Path) -> None:
    contexts.put(file, [new("big", venv="v"), new("fourth", venv="w")])
    made = MINE.replace(BIG, "    big:   # ask bob\n        type: local\n        venv: v\n")
    assert file.read_text() == made.replace(FOURTH, "    fourth:\n      type: local\n      venv: w\n")


def test_put_of_what_is_there_writes_nothing(file: Path) -> None:
    before = file.stat()
    contexts.put(file, contexts.read(file).contexts.values())
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_remove_leaves_the_comments_above_others(file: Path) -> None:
    contexts.remove(file, ["big"])
    assert file.read_text() == MINE.replace(BIG, "").replace("current_context:   big    # for now\n", "")
    contexts.remove(file, ["third", "fourth"])
    contexts.remove(file, ["small"])
    assert contexts.read(file) == ContextsFile()
    assert "# the small one" in file.read_text() and "# derived" in file.read_text()
    contexts.put(file, [new()])
    assert contexts.read(file).contexts == {"new": new()}


def test_removing_what_others_share_is_refused(file: Path) -> None:
    with pytest.raises(UserError) as caught:
        contexts.remove(file, ["small"])
    assert caught.value.code == "config-unwritable" and "contexts that share a YAML anchor" in caught.value.message
    assert file.read_text() == MINE and [*file.parent.iterdir()] == [file]


@pytest.mark.parametrize(
    ("text", "act"),
    [
        ("contexts:\n  a: &a {type: local}\n  b: *a\n", lambda file: contexts.remove(file, ["a"])),
        ("contexts:\n  <<: {a: {type: local}}\n", lambda file: contexts.remove(file, ["a"])),
        ("contexts:\n  a: {type: local, venv: &n a}\ncurrent_context: *n\n", lambda file: contexts.use(file, "local")),
        ("contexts:\n  ? a\n  : type: local\n", lambda file: contexts.put(file, [new()])),
    ],
)
def test_text_that_yurt_cannot_change(tmp_path: Path, text: str, act: Callable[[Path], None]) -> None:
    file = tmp_path / "contexts.yaml"
    file.write_text(text)
    with pytest.raises(UserError, match="the change would affect other parts") as caught:
        act(file)
    assert caught.value.code == "config-unwritable" and f"{file}`" in caught.value.hint
    assert file.read_text() == text and [*tmp_path.iterdir()] == [file]


@pytest.mark.parametrize(
    ("text", "act", "made"),
    [
        (
            "contexts:\n  a: &a {type: local}\n  b: *a\n",
            lambda file: contexts.remove(file, ["b"]),
            "contexts:\n  a: &a {type: local}\n",
        ),
        (
            "contexts:\n  a: &a {type: local}\n  b: *a\n",
            lambda file: contexts.copy(file, "b", "c"),
            "contexts:\n  a: &a {type: local}\n  b: *a\n  c: *a\n",
        ),
        (
            "contexts:\n  a: {type: local}\n  b: {type: local}\ncurrent_context: a",
            lambda file: contexts.remove(file, ["a", "b"]),
            "contexts:\n",
        ),
        (
            "contexts:\n  a: {type: local}\ncurrent_context:\n",
            lambda file: contexts.use(file, "a"),
            "contexts:\n  a: {type: local}\ncurrent_context: a\n",
        ),
    ],
)
def test_anchors_and_edges(tmp_path: Path, text: str, act: Callable[[Path], None], made: str) -> None:
    file = tmp_path / "contexts.yaml"
    file.write_text(text)
    act(file)
    assert file.read_text() == made


def test_copy_includes_the_comments(file: Path) -> None:
    contexts.copy(file, "big", "big2")
    assert file.read_text() == MINE.replace(FOURTH, FOURTH + BIG.replace("big: ", "big2: ", 1))
    contexts.copy(file, "third", "third2")
    assert THIRD.replace("third", "third2") in file.read_text()


def test_copy_of_anchors_and_of_names_inside(file: Path) -> None:
    contexts.copy(file, "small", "small2")
    contexts.copy(file, "fourth", "fourth2")
    contexts.copy(file, "local", "here")
    found = contexts.read(file).contexts
    assert found["small2"] == new("small2", tags=("a", "b"))
    assert found["fourth2"] == new("fourth2") and found["here"] == new("here")
    contexts.put(file, [new("x")])
    file.write_text(file.read_text().replace("    x:\n", "    x:\n      context_name: x # me\n      name: x\n"))
    contexts.copy(file, "x", "y")
    assert "    y:\n      context_name: y # me\n      name: y\n      type: local\n" in file.read_text()


@pytest.mark.parametrize(
    ("source", "target", "kind", "said"),
    [
        ("bgi", "x", NotFoundError, "context 'bgi' not found; did you mean 'big'?"),
        ("big", "small", UserError, "context 'small' already exists"),
        ("big", "local", UserError, "context 'local' already exists"),
        ("big", "a b", UserError, "invalid context name 'a b'"),
    ],
)
def test_copy_refused(file: Path, source: str, target: str, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind) as caught:
        contexts.copy(file, source, target)
    assert str(caught.value) == said
    assert file.read_text() == MINE and [*file.parent.iterdir()] == [file]


def test_use(file: Path) -> None:
    contexts.use(file, "small")
    assert file.read_text() == MINE.replace("current_context:   big ", "current_context:   small ")
    with pytest.raises(NotFoundError, match="'smal' not found; did you mean 'small'"):
        contexts.use(file, "smal")
    none = file.parent / "deep" / "contexts.yaml"
    with pytest.raises(NotFoundError):
        contexts.use(none, "smal")
    assert not none.parent.exists()
    contexts.use(none, "local")
    assert none.read_text() == "current_context: local\n"


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("", "contexts:\n  new:\n    type: local\n"),
        ("# nothing yet\n", "# nothing yet\ncontexts:\n  new:\n    type: local\n"),
        ("contexts:\n", "contexts:\n  new:\n    type: local\n"),
        ("contexts: # mine", "contexts: # mine\n  new:\n    type: local\n"),
        ("contexts: {}  # none\n", "contexts:  # none\n  new:\n    type: local\n"),
        ("contexts: null\n", "contexts:\n  new:\n    type: local\n"),
        ("current_context: local\n", "current_context: local\ncontexts:\n  new:\n    type: local\n"),
        (
            "---\ncontexts:\n  a: {type: local}\n...\n",
            "---\ncontexts:\n  a: {type: local}\n  new:\n    type: local\n...\n",
        ),
        (
            "# c\ncontexts: {a: {type: local}}  # d\n",
            "# c\ncontexts:                     # d\n  a: {type: local}\n  new:\n    type: local\n",
        ),
        (
            '{"contexts": {"a": {"type": "local"}}, "current_context": "a"}',
            '"contexts":\n  "a": {"type": "local"}\n  new:\n    type: local\n"current_context": "a"\n',
        ),
        ("contexts:\r\n  a: {type: local}\r\n", "contexts:\r\n  a: {type: local}\r\n  new:\r\n    type: local\r\n"),
        ("contexts:\n  a:\n    venv: 'x\x85y'\n    type: local", None),
    ],
)
def test_put_into_files_of_every_shape(tmp_path: Path, text: str, made: str | None) -> None:
    file = tmp_path / "contexts.yaml"
    file.write_bytes(text.encode())
    before = contexts.read(file)
    contexts.put(file, [new()])
    assert file.read_bytes().decode() == (made or text + "\n  new:\n    type: local\n")
    assert contexts.read(file).contexts == {**before.contexts, "new": new()}
    assert contexts.read(file).current_context == before.current_context


@pytest.mark.parametrize("name", ["null", "true", "123", "1e3", "0x1f", "12.5"])
def test_names_any_reader_takes_for_text(tmp_path: Path, name: str) -> None:
    import yaml

    file = tmp_path / "contexts.yaml"
    contexts.put(file, [new(name)])
    contexts.use(file, name)
    contexts.copy(file, name, "copy")
    assert contexts.read(file).current_context == name
    assert yaml.safe_load(file.read_text())["current_context"] == name
    assert name in yaml.safe_load(file.read_text())["contexts"]


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    TEXT,
    st.lists(TEXT, max_size=3),
    st.dictionaries(TEXT.filter(lambda key: key.removeprefix("--") == key != ""), TEXT),
)
def test_whatever_is_put_is_read_back(tmp_path: Path, text: str, words: list[str], pairs: dict[str, str]) -> None:
    file = tmp_path / "round.yaml"
    file.write_text(MINE)
    wanted = [
        Context(name="one", type="slurm", slurm_url=text, ssh_options=tuple(words), variables=pairs, partition=text),
        Context(name="big", type="local", tags=tuple(words), track=False, sbatch_options={"a": text, "b": None}),
    ]
    contexts.put(file, wanted)
    found = contexts.read(file).contexts
    assert [found["one"], found["big"]] == wanted
    contexts.copy(file, "one", "two")
    contexts.remove(file, ["one"])
    assert "one" not in contexts.read(file).contexts and contexts.read(file).contexts["two"].partition == text


def test_put_refuses_what_it_could_not_read_back(file: Path) -> None:
    with pytest.raises(UserError, match=r"contexts\.a b is not a valid context name"):
        contexts.put(file, [new("ok"), new("a b")])
    with pytest.raises(UserError, match=r"contexts\.a\.slurm_url is missing"):
        contexts.put(file, [Context(name="a", type="slurm")])
    assert file.read_text() == MINE and [*file.parent.iterdir()] == [file]


def test_body_of_a_context_and_its_replacement(file: Path) -> None:
    was = contexts.body_text(file, "big")
    assert was == (
        'type:      slurm   # of course\nslurm_url: "me@big.example"\nafter_module_load_cmd: |\n'
        "    # not a comment\n    source x\n# see the wiki\n"
    )
    contexts.replace_body(file, "big", was + "venv: v # new", was=was)
    assert file.read_text() == MINE.replace("# see the wiki\n", "# see the wiki\n        venv: v # new\n")
    assert contexts.body_text(file, "fourth") == "type: local\n"
    assert contexts.body_text(file, "third") == "<<: *s\npartition:   'x'\n"
    contexts.replace_body(file, "local", "type: local\nvenv: here\n", was="type: local\n")
    assert contexts.read(file).contexts["local"].venv == "here"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            "",
            "big.yaml:1: contexts.big must be a mapping of keys to values, not an empty value (example: `type: slurm`)",
        ),
        (
            "# x\ntype: local\npartitoin: x\n",
            "big.yaml:3: contexts.big.partitoin is not a key of a context; did you mean 'partition'? "
            "(example: `partition: main`)",
        ),
        ("type: local\n\tx: y\n", "big.yaml:2: the file is not valid YAML: the indentation contains a tab; "),
        ("type: local\nvenv: a\nvenv: b\n", "big.yaml:3: contexts.big.venv is set twice, in lines 2 and 3; keep one"),
        ("type: local\n  x: y\n", "big.yaml:2: the file is not valid YAML: mapping values are not allowed"),
        ("- a\n", "big.yaml:1: contexts.big must be a mapping of keys to values, not a list ("),
    ],
)
def test_faults_of_a_body_have_its_own_line_numbers(file: Path, body: str, said: str) -> None:
    with pytest.raises(UserError) as caught:
        contexts.replace_body(file, "big", body, was=contexts.body_text(file, "big"))
    assert caught.value.message.startswith(said) and caught.value.code == "config-invalid"
    assert file.read_text() == MINE and [*file.parent.iterdir()] == [file]


def test_a_concurrent_change_is_not_overwritten(file: Path) -> None:
    was = contexts.body_text(file, "big")
    contexts.put(file, [new("big")])
    theirs = file.read_text()
    for name in ("big", "gone"):
        with pytest.raises(UserError, match=f"another process changed context '{name}' during the edit") as caught:
            contexts.replace_body(file, name, "type: local\n", was=was)
        assert caught.value.code == "context-changed" and file.read_text() == theirs


def test_merge(file: Path) -> None:
    more = ContextsFile({"new": new(), "small": new("small", tags=("a", "b")), "big": new("big")}, "new")
    with pytest.raises(UserError, match="already has different contexts with these names: 'big'") as caught:
        contexts.merge(file, more)
    assert caught.value.code == "context-exists" and file.read_text() == MINE
    done = contexts.merge(file, more, replace=True)
    assert (done.added, done.replaced, done.unchanged, done.current) == (["new"], ["big"], ["small"], None)
    assert contexts.read(file).current_context == "big"
    fresh = file.parent / "fresh.yaml"
    assert contexts.merge(fresh, more).current == "new"
    assert contexts.read(fresh) == more


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    real, link = tmp_path / "dotfiles" / "yurt.yaml", tmp_path / "config" / "contexts.yaml"
    link.parent.mkdir()
    link.symlink_to("../dotfiles/yurt.yaml")
    contexts.put(link, [new("first")])
    contexts.put(link, [new("second")])
    assert link.is_symlink() and not real.is_symlink()
    assert list(contexts.read(real).contexts) == ["first", "second"]
    assert stat.S_IMODE(real.stat().st_mode) == 0o600
    assert [*link.parent.iterdir()] == [link] and [*real.parent.iterdir()] == [real]


@pytest.mark.parametrize("where", [lambda file: file, lambda file: file.parent / "link.yaml"], ids=["file", "link"])
def test_two_writers_lose_nothing(file: Path, where: Callable[[Path], Path]) -> None:
    (file.parent / "link.yaml").symlink_to(file)
    program = (
        "import sys; from pathlib import Path\n"
        "from yurt.config import contexts; from yurt.model.context import Context\n"
        "for n in range(25): contexts.put(Path(sys.argv[1]), [Context(name=f'{sys.argv[2]}{n}', type='local')])"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", program, str(path), word])
        for path, word in ((file, "a"), (where(file), "b"), (file, "c"))
    ]
    assert [process.wait(60) for process in running] == [0, 0, 0]
    assert {f"{word}{n}" for word in "abc" for n in range(25)} < set(contexts.read(file).contexts)
    assert sorted(each.name for each in file.parent.iterdir()) == ["contexts.yaml", "link.yaml"]


def test_a_writer_waits_for_the_one_before(file: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from yurt.config import contexts\n"
        "contexts.use(Path(sys.argv[1]), 'small')"
    )
    with lock.locked(file):
        waiting = subprocess.Popen([sys.executable, "-c", program, str(file)])
        with pytest.raises(subprocess.TimeoutExpired):
            waiting.wait(1.5)
        file.write_text(MINE.replace("my clusters", "our clusters"))
    assert waiting.wait(30) == 0
    assert contexts.read(file).current_context == "small" and "our clusters" in file.read_text()


def test_a_folder_that_cannot_be_created(file: Path) -> None:
    with pytest.raises(UserError) as caught:
        contexts.put(file / "contexts.yaml", [new()])
    assert caught.value.code == "config-unwritable" and caught.value.exit_code == 2
    assert caught.value.message == f"cannot write {file}/contexts.yaml: Not a directory"
    assert file.read_text() == MINE and [*file.parent.iterdir()] == [file]


def test_blocks_know_their_lines() -> None:
    found = splice.blocks(MINE)
    assert MINE[found["big"].start : found["big"].end] == BIG
    assert MINE[found["third"].start : found["third"].end] == THIRD
    assert found["fourth"].body == -1


def test_many_contexts_are_put_by_parsing_the_file_a_few_times(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was parsed once for each: 500 contexts took a minute."""
    composed = yaml_text.compose
    calls: list[str] = []

    def counted(text: str) -> object:
        calls.append(text)
        return composed(text)

    monkeypatch.setattr(yaml_text, "compose", counted)
    many = [new(f"n{number}", venv="v") for number in range(40)]
    contexts.put(file, [*many[:20], new("big", venv="v"), *many[20:], new("fourth", venv="w")])
    assert len(calls) < 10
    found = contexts.read(file).contexts
    assert [found[each.name] for each in many] == many
    assert (found["big"].venv, found["fourth"].venv, found["small"].name) == ("v", "w", "small")
    assert list(found)[-40:] == [each.name for each in many]
