"""`yurt dev up` on this machine: one dev node, however often it is called."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from tests.user import User


def test_two_at_once_are_one_dev_node(user: User) -> None:
    user.environment["HOME"] = str(user.home)
    words = ("dev", "up", "--context", "local", "--no-wait", "--json")
    try:
        with ThreadPoolExecutor() as pool:
            both = [each.result() for each in [pool.submit(user, *words) for _each in range(2)]]
        assert [each.code for each in both] == [0, 0], both
        assert len({each.json["data"]["run"] for each in both}) == 1
        assert len(user.quick("ps", "--json").json["data"]) == 1
    finally:
        user.quick("dev", "down", "--now", "--yes")
