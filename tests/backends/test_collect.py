"""keep.sh and gather.sh: what they send of run folders of every kind, in every shell, with and without tar."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from yurt.backends.job import frames, gathered
from yurt.model.files import Limits

SHELLS = ["dash", "bash --posix", *(["busybox sh"] if shutil.which("busybox") else [])]
LIMITS = Limits(trip=1 << 20, seconds=60, log=10, metrics=100, metrics_head=20, files=5)
MANY = 70
"""More than are written at once."""


def folder(base: Path, name: str, **files: str) -> str:
    found = base / name
    found.mkdir(parents=True)
    for each, text in files.items():
        file = found / each.replace("__", "/").replace("_", ".")
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    return str(found)


def call(script: str, shell: str, *arguments: str, stdin: str, path: str = "") -> bytes:
    done = subprocess.run(
        [*shell.split(), "-c", script, "sh", *arguments],
        input=stdin.encode(),
        env={**os.environ, "PATH": f"{path}:{os.environ['PATH']}"},
        capture_output=True,
        check=True,
    )
    assert not done.stderr
    return done.stdout


@pytest.mark.parametrize("tar", [True, False])
@pytest.mark.parametrize("shell", SHELLS)
def test_what_is_kept(tmp_path: Path, shell: str, tar: bool) -> None:
    runs = tmp_path / "it's a * $folder"
    given = {
        folder(runs, "usual", status_json='{"a":1}\n', exit_json='{"code":0}\n', out_log="done\n"): '{"b":2}',
        folder(runs, "new", exit_json='{"code":1}\n', out_log="0123456789ab\n", err_log="*\n"): '{"v":"x y\\\\n"}',
        folder(runs, "no links", status_json_d__text='{"c":3}\n', exit_json_d__text="{}\n", metrics_jsonl="m\n"): "",
        folder(runs, "killed", usage="1 2\n"): "",
        folder(runs, "torn", status_json='{"half', metrics_jsonl="x" * 101): '{"d":4}',
        str(runs / "gone"): '{"e":5}',
        **{folder(runs, f"more{n}", status_json=f'{{"n":{n}}}\n', exit_json="{}\n"): "" for n in range(MANY)},
    }
    os.mkfifo(runs / "killed" / "status.json")
    programs = tmp_path / "bin"
    programs.mkdir()
    if not tar:
        (programs / "tar").write_text("#!/bin/sh\necho unknown\n")
        (programs / "tar").chmod(0o755)
    bounds = [str(each) for each in (LIMITS.trip, LIMITS.seconds, LIMITS.log, LIMITS.metrics, LIMITS.metrics_head)]
    lines = "".join(f"{each}\n{verdict}\n" for each, verdict in given.items())
    arguments = ["me", "yes", "", *bounds, str(LIMITS.files)]
    answer = call(frames.keeper(), shell, *arguments, stdin=lines, path=str(programs))
    assert (b"= tar\n" in answer) == tar
    found = frames.read_kept(answer, list(given), LIMITS)
    assert list(found) == list(range(len(given)))
    kept = [{name: piece.content for name, piece in each.items() if piece.content} for each in found.values()]
    assert kept[0] == {"status.json": b'{"a":1}', "exit.json": b'{"code":0}', "out": b"done\n"}
    new = {"status.json": b'{"v":"x y\\\\n"}', "exit.json": b'{"code":1}', "out": b"3456789ab\n", "err": b"*\n"}
    assert kept[1] == new and found[1]["out"].size == 13
    assert kept[2] == {"status.json": b'{"c":3}', "exit.json": b"{}", "metrics": b"m\n"}
    assert kept[3] == {"usage": b"1 2\n"}
    assert kept[4] == {"metrics": b"x" * 20 + b"\n" + b"x" * 80} and found[4]["metrics"].size == 101
    assert "there" in found[4] and found[5] == {}
    assert [json.loads(each["status.json"])["n"] for each in kept[6:]] == list(range(MANY))
    assert (runs / "new" / "status.json").read_text() == '{"v":"x y\\\\n"}\n'


@pytest.mark.parametrize("shell", SHELLS)
def test_what_is_gathered(tmp_path: Path, shell: str) -> None:
    runs = tmp_path / "it's a * $folder"
    usual = folder(runs, "usual", run_json="{}\n", winner="a.1\n", gen_1="a.1\n", gen_2="b.2\n", out_log="no\n")
    no_links = folder(runs, "no links", run_json="{}\n", winner_d__text="a.1\n", gen_1_d__text="c.3\n")
    lines = f"{usual}\n{runs}/gone\n{no_links}\n"
    found = gathered.read(call(gathered.gatherer(), shell, "1000000", stdin=lines), cut=False)
    assert {name: each.files for name, each in found.items()} == {
        usual: {"run.json": b"{}\n", "winner": b"a.1\n", "gen.2": b"b.2\n"},
        no_links: {"run.json": b"{}\n", "winner": b"a.1\n", "gen.1": b"c.3\n"},
    }
