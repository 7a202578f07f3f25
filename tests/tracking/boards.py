"""A running `yurt tensorboard` for tests: its address, TensorBoard's HTTP API behind the front, and a browser."""

from __future__ import annotations

import http.cookiejar
import json
import os
import signal
import subprocess
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from tests.calls import YURT
from tests.user import User

CHROMIUM = "/usr/bin/chromium"

FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
FLAGS += ["--disable-component-update", "--disable-sync"]


class Board:
    """One `yurt tensorboard`."""

    def __init__(self, user: User, words: tuple[str, ...], **environment: str) -> None:
        self._errors: IO[str] = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self.process = subprocess.Popen(
            [YURT, "tensorboard", *words],
            env={**os.environ, **user.environment, **environment},
            cwd=user.project,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )
        assert self.process.stdout is not None
        self.line = self.process.stdout.readline().strip()
        assert self.line, self.err
        self.url: str = json.loads(self.line)["data"]["url"] if self.line.startswith("{") else self.line
        cookies = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        self._web = urllib.request.build_opener(cookies)
        with self._web.open(self.url, timeout=60) as entered:  # a page that opens the other one
            assert entered.status == 200 and b"autoReload" in entered.read()
        with self._web.open(self.url.partition("?")[0], timeout=60) as opened:
            assert b"TensorBoard" in opened.read()

    @property
    def err(self) -> str:
        self._errors.seek(0)
        return self._errors.read()

    def get(self, path: str, **query: str) -> Any:
        """Return an answer of TensorBoard."""
        base = self.url.partition("?")[0]
        asked = f"{base}data/{path}" + (f"?{urllib.parse.urlencode(query)}" if query else "")
        with self._web.open(asked, timeout=60) as answer:
            return json.load(answer)

    def runs(self) -> list[str]:
        """Return the names of runs with scalars."""
        return sorted(self.get("plugin/scalars/tags"))

    def points(self, run: str, tag: str = "loss") -> list[tuple[int, float]]:
        """Return the scalars of a run; none if TensorBoard does not have it yet."""
        try:
            found = self.get("plugin/scalars/scalars", run=run, tag=tag)
        except urllib.error.HTTPError:
            return []
        return [(step, value) for _time, step, value in found]

    def end(self, number: int = signal.SIGINT) -> int:
        """Send a signal and return the exit code."""
        self.process.send_signal(number)
        return self.process.wait(60)


@contextmanager
def board(user: User, *words: str, **environment: str) -> Iterator[Board]:
    """Run `yurt tensorboard` in the project of a user."""
    made = Board(user, words, **environment)
    try:
        yield made
    finally:
        if made.process.poll() is None:
            made.end(signal.SIGKILL)


def pictured(url: str, wanted: list[str], picture: str = "", *, cards: int = 1, link: str = "") -> list[str]:
    """Open a URL in a browser, wait for these texts and for cards with curves; return the addresses it asked for.

    `link` is a page that leads to the URL, for a browser without the cookie.
    """
    from playwright.sync_api import sync_playwright

    asked: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page(viewport={"width": 1000, "height": 600})
        page.on("request", lambda request: asked.append(request.url))
        page.goto(url)
        for text in wanted:
            page.get_by_text(text).first.wait_for(timeout=60_000)
        page.locator("scalar-card line-chart").nth(cards - 1).wait_for(timeout=60_000)
        assert "token" not in page.url
        if picture:
            page.locator("button", has_text="Settings").first.click()  # hides them
            page.wait_for_timeout(2000)  # only for the picture: lines are drawn after their card
            page.screenshot(path=picture)
        if link:
            other = browser.new_context().new_page()
            other.goto(link)
            other.wait_for_url(f"{url.partition('?')[0]}**", timeout=60_000)
            other.wait_for_function("document.title == 'yurt' && document.querySelector('tb-webapp')", timeout=60_000)
            assert "token" not in other.url
        browser.close()
    return asked


def left(user: User) -> list[str]:
    """Return what pages have left on this machine: folders, sockets and processes."""
    data = Path(user.environment["YURT_DATA_HOME"])
    found = [str(each) for each in (data / "pages").glob("*")]
    found += [str(each) for each in user.runtime.glob("page-*")]
    return found + [words.decode() for words in servers(user).values()]


def servers(user: User) -> dict[int, bytes]:
    """Return the processes of TensorBoard that yurt started for a user, and their arguments."""
    needed = (b"service.tensorboard_server", str(user.runtime).encode())
    return {number: words for number, words in processes().items() if all(each in words for each in needed)}


def processes() -> dict[int, bytes]:
    """Return the arguments of all processes, as every user can read them."""
    found = {}
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has just ended
            found[int(each.parent.name)] = each.read_bytes()
    return found
