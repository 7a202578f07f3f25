"""Who may open a page: a client with the token of its address, or with the cookie that it got for the token.

A program, such as an editor that uses a Jupyter server, may send the token in the header Authorization.

Cookies of one host are sent to all its ports, so the name of the cookie includes the port.
"""

from __future__ import annotations

import hmac
import secrets
from urllib.parse import unquote_plus

import msgspec

from yurt.pages.heads import RequestHead

OWN = "yurt-page-"
"""Prefix of the names of cookies; the port follows. A server behind a front never receives such a cookie."""


class Forward(msgspec.Struct, frozen=True):
    """The request may pass, with this target."""

    target: str
    without: str = ""
    """A header with the token, which the server must not get."""


class Enter(msgspec.Struct, frozen=True):
    """The request has the token: the client gets the cookie, and the address without the token."""

    target: str
    linked: bool
    """Whether the client followed a link of another page."""


class Refuse(msgspec.Struct, frozen=True):
    """The request may not pass."""

    why: str


class Access:
    """The secrets of one page, and the rule."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.token = secrets.token_urlsafe(32)
        self._pass = secrets.token_urlsafe(32)
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}

    @property
    def url(self) -> str:
        """The address to print."""
        return f"http://127.0.0.1:{self.port}/?token={self.token}"

    @property
    def cookie(self) -> str:
        """The value of the header that sets the cookie."""
        return f"{OWN}{self.port}={self._pass}; Path=/; HttpOnly; SameSite=Strict"

    def judge(self, head: RequestHead) -> Forward | Enter | Refuse:
        """Decide about a request. BadHeadError if a header that may occur only once occurs twice."""
        if (head.headers.one("host") or "").lower() not in self._hosts:
            return Refuse(f"This page is only available at http://127.0.0.1:{self.port}/.")
        origin = head.headers.one("origin")
        foreign = origin is not None and origin.lower() not in {f"http://{host}" for host in self._hosts}
        if foreign or self._from_other_page(head):
            return Refuse("Other pages may not use this page.")
        target, token = _without_token(head.target)
        if token is not None and _same(token, self.token):
            enters = head.method in ("GET", "HEAD") and not head.websocket
            linked = head.headers.one("sec-fetch-site") in ("cross-site", "same-site")
            return Enter(target, linked) if enters else Forward(target)
        if any(_same(value, self._pass) for value in self._passes(head)):
            return Forward(head.target)
        kind, _space, given = (head.headers.one("authorization") or "").partition(" ")
        if kind.lower() in ("token", "bearer") and _same(given.strip(), self.token):
            return Forward(target, without="authorization")
        return Refuse("This page needs its token: open the complete address that yurt printed.")

    @staticmethod
    def _from_other_page(head: RequestHead) -> bool:
        """Whether the browser says that another page asks, not a person who follows a link or types the address."""
        if head.headers.one("sec-fetch-site") in (None, "same-origin", "none"):
            return False
        person = (head.headers.one("sec-fetch-mode"), head.headers.one("sec-fetch-dest")) == ("navigate", "document")
        return not person or head.method != "GET"

    def _passes(self, head: RequestHead) -> list[str]:
        cookies = [each.strip().partition("=") for value in head.headers.all("cookie") for each in value.split(";")]
        return [value for name, _equals, value in cookies if name == f"{OWN}{self.port}"]


def without_own_cookies(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return headers without the cookies of fronts."""
    made = []
    for key, value in pairs:
        if key.lower() == "cookie":
            kept = [each.strip() for each in value.split(";") if not each.strip().startswith(OWN)]
            if not any(kept):
                continue
            made.append((key, "; ".join(kept)))
        else:
            made.append((key, value))
    return made


def _without_token(target: str) -> tuple[str, str | None]:
    """Return a target without the parameter `token`, and its value. The path begins with exactly one slash."""
    path, question, query = target.partition("?")
    token, kept = None, []
    for part in query.split("&") if question else ():
        name, _equals, value = part.partition("=")
        if name == "token" and token is None:
            token = unquote_plus(value)
        else:
            kept.append(part)
    # A redirect to //host would lead to another host; browsers read a backslash as a slash.
    path = "/" + path.lstrip("/\\")
    return path + ("?" + "&".join(kept) if any(kept) else ""), token


def _same(given: str, secret: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), secret.encode())
