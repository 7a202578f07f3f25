"""Hashes and passwords of a project: the first stay in its lock, the second do not leave the machine."""

from __future__ import annotations

import pytest

from yurt.envs import requirements
from yurt.envs import resolve as hashes
from yurt.envs.lock import Lock
from yurt.errors import UserError

ONE, TWO, OTHER = "1" * 64, "2" * 64, "3" * 64
LOCK = Lock(
    f"# torch-backend: cpu\n--index-url https://i.example/simple\n"
    f"six==1.17.0 \\\n    --hash=sha256:{ONE} \\\n    --hash=sha256:{TWO}\n"
    f"idna==3.20 \\\n    --hash=sha256:{OTHER}\n"
)


def kept(declared: str) -> Lock:
    return hashes.kept(LOCK, "requirements.txt", requirements.read(declared))


def test_only_declared_hashes_are_left() -> None:
    assert kept("six==1.17.0\nidna\n") == LOCK
    found = kept(f"Six==1.17.0 --hash=sha256:{OTHER} --hash=sha256:{TWO}\nidna\n")
    assert found.hashes() == {"six": {TWO}, "idna": {OTHER}} and found.torch_backend == "cpu"
    assert "--index-url https://i.example/simple" in found.text


def test_a_file_that_was_replaced_is_refused() -> None:
    with pytest.raises(UserError, match="hashes of six, and no file of six") as caught:
        kept(f"six==1.17.0 --hash=sha256:{OTHER}\n")
    assert caught.value.hint


def test_passwords_are_removed() -> None:
    lines = [
        "--extra-index-url https://ada:s3cret@i.example/simple",
        f"six==1.17.0 --hash=sha256:{ONE}",
        "own @ git+https://token@g.example/own.git@abc",
        "other @ git+ssh://git@g.example/other.git@abc",
    ]
    text = "".join(f"{each}\n" for each in lines)
    found = Lock(text).without_passwords.text
    assert found == text.replace("ada:s3cret@", "").replace("token@", "")
