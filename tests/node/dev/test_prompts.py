"""Terminals of a dev node in each shell: the time left in the prompt, the user's own files, the job's environment."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pexpect
import pytest

from yurt.node.dev import ssh

OWN_FILES = {
    "bash": {".bash_profile": 'PS1="own> "; export PATH=/usr/bin:/bin OWN=read\n'},
    "zsh": {
        ".zshenv": "export EARLY=read\n",
        ".zshrc": 'precmd_functions+=(again)\nagain() { PS1="own> " }\nexport PATH=/usr/bin:/bin OWN=read$EARLY\n',
    },
    "fish": {
        ".config/fish/config.fish": 'function fish_prompt; echo -n "own> "; end\nset -gx OWN read\n',
    },
}


@pytest.mark.parametrize("name", list(OWN_FILES))
def test_the_time_left_is_in_the_prompt(tmp_path: Path, name: str) -> None:
    folder, home, workspace = tmp_path / "desk", tmp_path / "home", tmp_path / "work"
    for each in (folder, home, workspace):
        each.mkdir(0o700)
    for file, text in OWN_FILES[name].items():
        (home / file).parent.mkdir(parents=True, exist_ok=True)
        (home / file).write_text(text)
    ssh.prepare(str(folder), {"JOB_HAS": "this", "PATH": "/job/bin:/usr/bin:/bin"}, str(workspace))
    (folder / "end").write_text(f"{time.time() + 119.5 * 60:.0f}\n")
    shell = shutil.which(name)
    assert shell
    variables = {"HOME": str(home), "SHELL": shell, "TERM": "dumb", "PATH": os.environ["PATH"], "YURT_RUN_DIR": "/none"}
    program = pexpect.spawn(
        "sh", [str(folder / "ssh" / "session.sh")], env=variables, timeout=30, encoding="utf-8", dimensions=(40, 250)
    )
    with program as terminal:
        terminal.expect(r"1 h 59 min left")
        terminal.expect("own> ")
        terminal.sendline('echo "=$JOB_HAS=$OWN=$PATH=$PWD="')
        read = "readread" if name == "zsh" else "read"
        terminal.expect(rf"=this={read}=/job/bin\S*={workspace}=")
        terminal.expect(r"\[1h59m left\] .*own> ")
        (folder / "end").write_text(f"{time.time() + 9.5 * 60:.0f}\n")
        terminal.sendline("echo now")
        terminal.expect(r"\[9m left\] .*own> ")
        (folder / "end").unlink()
        terminal.sendline("echo later")
        terminal.expect(r"\n[^\n]*later\r\n")
        terminal.expect("own> ")
        assert "left" not in str(terminal.before)
        workspace.rename(tmp_path / "work.before-v2")
        workspace.mkdir()
        terminal.sendline("echo restored")
        terminal.expect(r"\[replaced folder\] .*own> ")
        terminal.sendline(f"cd {workspace}; echo again")
        terminal.expect(r"\n[^\n]*again\r\n")
        terminal.expect("own> ")
        assert "replaced" not in str(terminal.before)
        terminal.sendline("exit 4")
        terminal.expect(pexpect.EOF)
        terminal.close()
        assert terminal.exitstatus == 4
