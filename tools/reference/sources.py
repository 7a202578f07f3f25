"""Every error that the source code raises, read from its syntax tree: code, message and hint with placeholders."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from yurt.errors import CODES

SOURCE = Path(__file__).parent.parent.parent / "src" / "yurt"
COMMON = ("format", "id", "name", "self", "str", "shown", "join", "sorted", "for", "in", "len")
"""Words of an expression that do not say what it is."""
SHOWN = {"strerror": "reason", "entry": "run", "host": "site"}
TEXTS = ast.Constant | ast.JoinedStr | ast.BinOp | ast.IfExp | ast.Name | ast.Call


class Raised(NamedTuple):
    """One place that makes an error."""

    code: str
    message: str
    hint: str
    file: str
    line: int


@functools.cache
def raised() -> list[Raised]:
    """Return all errors of the package, in the order of their files."""
    return [each for file in sorted(SOURCE.rglob("*.py")) for each in _in_file(file)]


def _in_file(file: Path) -> Iterator[Raised]:
    tree = ast.parse(file.read_text())
    scopes = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        within = [scope for scope in scopes if scope.lineno <= call.lineno <= (scope.end_lineno or 0)]
        named = {each.arg: each.value for each in call.keywords}
        code = _code(named["code"]) if "code" in named else ""
        texts = [argument for argument in call.args if isinstance(argument, TEXTS)]
        if not code:  # a helper that takes message, code and hint by position
            at = [number for number, text in enumerate(texts) if isinstance(text, ast.Constant) and text.value in CODES]
            if not at or at[0] == 0:
                continue
            code = str(getattr(texts[at[0]], "value", ""))
            texts, after = [texts[at[0] - 1]], texts[at[0] + 1 :]
            if after:
                named.setdefault("hint", after[0])
        if not texts:
            continue
        hint = template(named["hint"], within) if "hint" in named else ""
        yield Raised(code, template(texts[0], within), hint, str(file.relative_to(SOURCE)), call.lineno)
    yield from _in_tables(tree, str(file.relative_to(SOURCE)))


def _in_tables(tree: ast.Module, file: str) -> Iterator[Raised]:
    """Yield the rows (pattern, code, message, hint) of tables."""
    for row in (node for node in ast.walk(tree) if isinstance(node, ast.Tuple)):
        texts = [str(each.value) for each in row.elts if isinstance(each, ast.Constant)]
        if len(texts) == len(row.elts) == 4 and texts[1] in CODES and texts[2]:
            message, hint = (re.sub(r"\{(\w+)\}", lambda name: name[1].upper(), text) for text in texts[2:])
            yield Raised(texts[1], message, hint, file, row.lineno)


def _code(value: ast.expr) -> str:
    found = [each.value for each in ast.walk(value) if isinstance(each, ast.Constant) and each.value in CODES]
    return str(found[0]) if found else ""


def template(node: ast.AST, within: list[ast.FunctionDef]) -> str:
    """Return the text of an expression; what is only known at run time is an upper-case word."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.Name):
        return next((template(value, []) for value in _assigned(node.id, within)), placeholder(node))
    if isinstance(node, ast.FormattedValue):
        return template(node.value, within) if isinstance(node.value, ast.IfExp) else placeholder(node.value)
    if isinstance(node, ast.IfExp):
        return template(node.body, within) or template(node.orelse, within)
    parts = (
        node.values
        if isinstance(node, ast.JoinedStr)
        else [node.left, node.right]
        if isinstance(node, ast.BinOp)
        else []
    )
    return "".join(template(part, within) for part in parts) if parts else placeholder(node)


def _assigned(name: str, within: list[ast.FunctionDef]) -> Iterator[ast.expr]:
    for scope in reversed(within):
        for node in ast.walk(scope):
            if isinstance(node, ast.Assign) and any(
                isinstance(target, ast.Name) and target.id == name for target in node.targets
            ):
                yield node.value


def placeholder(node: ast.AST) -> str:
    """Return an upper-case word for an expression: `entry.run.id` is RUN, `error.strerror` is STRERROR."""
    words: list[str] = re.findall(r"[a-z][a-z_]*", re.sub(r"(['\"]).*?\1", "", ast.unparse(node)))
    plain = [word for word in words if word not in COMMON]
    word = (plain or words or ["value"])[-1]
    return SHOWN.get(word, word).upper().strip("_")
