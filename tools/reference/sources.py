"""Every error that the source code raises, read from its syntax tree: code, message and hint with placeholders."""

from __future__ import annotations

import ast
import functools
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from yurt.errors import CODES

SOURCE = Path(__file__).parent.parent.parent / "src" / "yurt"
LEFT_OUT = "testing"
"""A package whose errors users do not see."""
COMMON = (
    *("format", "id", "name", "self", "str", "shown", "join", "sorted", "len", "min", "max", "args"),
    *("params", "splitlines", "split", "for", "in", "or", "and", "not", "if", "else", "is"),
)
"""Words of an expression that do not say what it is."""
SHOWN = {"strerror": "reason", "entry": "run", "host": "site", "final": "states", "struct_fields": "names"}
SHOWN |= dict.fromkeys(("alone", "some", "unfinished"), "runs") | {"still": "run", "shown": "file"}
TEXTS = ast.Constant | ast.JoinedStr | ast.BinOp | ast.IfExp | ast.Name | ast.Call
USED = (ast.FunctionDef, ast.Call, ast.Tuple, ast.ImportFrom, ast.Return)
ONE_CODE = {"SpecError": "spec-failed"}
"""Classes of errors that set their code themselves."""


class Raised(NamedTuple):
    """One place that makes an error."""

    code: str
    message: str
    hint: str
    file: str
    line: int


class Scope(NamedTuple):
    """What the names in an expression may refer to."""

    functions: list[ast.FunctionDef]
    """The functions around the expression, outermost first."""
    line: int
    strings: Mapping[str, ast.expr]
    """The strings of the module and of modules that it imports, by the name used in this module."""
    seen: frozenset[str] = frozenset()
    """Names whose value is being read, so that `text = text or other` ends."""


@functools.cache
def raised() -> list[Raised]:
    """Return all errors of the package, in the order of their files."""
    files = sorted(file for file in SOURCE.rglob("*.py") if file.relative_to(SOURCE).parts[0] != LEFT_OUT)
    return [each for file in files for each in _in_file(file)]


def _in_file(file: Path) -> Iterator[Raised]:
    nodes, strings, name = _nodes(file), _strings(file), str(file.relative_to(SOURCE))
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    for call in (node for node in nodes if isinstance(node, ast.Call)):
        around = [each for each in functions if each.lineno <= call.lineno <= (each.end_lineno or 0)]
        scope = Scope(around, call.end_lineno or call.lineno, strings)
        if found := _made(call, scope):
            code, message, hint = found
            yield Raised(code, template(message, scope), template(hint, scope) if hint else "", name, call.lineno)
    yield from _in_tables(nodes, strings, name)


def _made(call: ast.Call, scope: Scope) -> tuple[str, ast.expr, ast.expr | None] | None:
    """Return the code, the message and the hint of a call that makes an error; None for any other call."""
    called = ast.unparse(call.func).rpartition(".")[2]
    named = {each.arg: each.value for each in call.keywords}
    texts = [argument for argument in call.args if isinstance(argument, TEXTS)]
    if called.endswith("Error") or called == "Bug":
        code = ONE_CODE.get(called, "") or (_code(named["code"], scope) if "code" in named else "")
        return (code, texts[0], named.get("hint")) if code and texts else None
    # A helper that takes message, code and hint by position.
    at = [number for number, text in enumerate(texts) if isinstance(text, ast.Constant) and text.value in CODES]
    if not at or at[0] == 0:
        return None
    code, after = str(getattr(texts[at[0]], "value", "")), texts[at[0] + 1 :]
    return code, texts[at[0] - 1], named.get("hint") or (after[0] if after else None)


def _in_tables(nodes: Sequence[ast.AST], strings: Mapping[str, ast.expr], file: str) -> Iterator[Raised]:
    """Yield the rows (pattern, code, message, hint) of tables."""
    for row in (node for node in nodes if isinstance(node, ast.Tuple) and len(node.elts) == 4):
        values = [strings.get(ast.unparse(each), each) for each in row.elts]
        texts = [str(each.value) for each in values if isinstance(each, ast.Constant)]
        if len(texts) == 4 and texts[1] in CODES and texts[2]:
            hint = texts[3].replace("{log_in}", "run `yurt login {name}`")
            message, hint = (re.sub(r"\{(\w+)\}", lambda name: name[1].upper(), text) for text in (texts[2], hint))
            yield Raised(texts[1], message, hint, file, row.lineno)


def _code(value: ast.expr, scope: Scope) -> str:
    """Return the code in an expression, or the default of a parameter `code`."""
    places = [value, *(_assigned(value.id, scope) if isinstance(value, ast.Name) else ())]
    constants = (each.value for place in places for each in ast.walk(place) if isinstance(each, ast.Constant))
    return str(next((each for each in constants if each in CODES), ""))


@functools.cache
def _parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text())


@functools.cache
def _nodes(file: Path) -> list[ast.AST]:
    """Return the nodes of a file that this module looks for, in the order of `ast.walk`, which takes long."""
    return [node for node in ast.walk(_parsed(file)) if isinstance(node, USED)]


@functools.cache
def _strings(file: Path) -> dict[str, ast.expr]:
    """Return the strings at the top of a module, and those of modules of the package that it imports."""
    found = dict(_own_strings(file))
    for node in (node for node in _nodes(file) if isinstance(node, ast.ImportFrom)):
        module = (node.module or "").split(".")
        if module[0] != "yurt":
            continue
        for name, known in ((each.name, each.asname or each.name) for each in node.names):
            own, other = SOURCE.joinpath(*module[1:]).with_suffix(".py"), SOURCE.joinpath(*module[1:], f"{name}.py")
            if own.is_file() and name in (strings := _own_strings(own)):
                found[known] = strings[name]
            if other.is_file():
                found |= {f"{known}.{each}": value for each, value in _own_strings(other).items()}
    return found


@functools.cache
def _own_strings(file: Path) -> dict[str, ast.expr]:
    return {
        node.targets[0].id: node.value
        for node in _parsed(file).body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and _is_text(node.value)
    }


def _is_text(node: ast.expr) -> bool:
    if isinstance(node, ast.IfExp | ast.BinOp):
        return _is_text(node.body if isinstance(node, ast.IfExp) else node.left)
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | int))


def template(node: ast.AST, scope: Scope) -> str:
    """Return the text of an expression; what is only known at run time is an upper-case word."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.Name | ast.Attribute):
        return _value_of(node, scope) or placeholder(node)
    if isinstance(node, ast.IfExp):
        return template(node.body, scope) or template(node.orelse, scope)
    if isinstance(node, ast.Call):
        return _of_call(node)
    parts: list[ast.expr] = []
    if isinstance(node, ast.JoinedStr):
        parts = node.values
    elif isinstance(node, ast.FormattedValue):
        parts = [node.value]
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts = [node.left, node.right]
    return "".join(template(part, scope) for part in parts) if parts else placeholder(node)


def _of_call(node: ast.Call) -> str:
    name = ast.unparse(node.func).rpartition(".")[2]
    if name == "one_of":
        return f"one of {placeholder(node.args[0])}"
    text = _returned(name)
    return placeholder(node) if text is None else template(text, Scope([], 0, {}))


def _value_of(node: ast.Name | ast.Attribute, scope: Scope) -> str:
    """Return the text that a name stands for; empty if it is only known at run time."""
    name = ast.unparse(node)
    if name in scope.seen:
        return ""
    inner = scope._replace(seen=scope.seen | {name})
    texts = (template(value, inner) for value in itertools.takewhile(_is_known, _assigned(name, scope)))
    return next(filter(None, texts), "") or (template(scope.strings[name], inner) if name in scope.strings else "")


def _is_known(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        return _returned(ast.unparse(node.func)) is not None
    return _is_text(node) or (isinstance(node, ast.Name) and node.id.isupper())


def _assigned(name: str, scope: Scope) -> Iterator[ast.expr]:
    """Yield the values assigned to a local name, those nearest above the expression first, then a default."""
    found: list[tuple[int, ast.expr]] = []
    for function in scope.functions:
        given = zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
        found += [(0, default) for each, default in given if each.arg == name in ("hint", "code") and default]
    for node in (node for function in scope.functions for node in _assignments(function)):
        if node.lineno <= scope.line:
            for target in node.targets:
                found += [(node.lineno, value) for each, value in _pairs(target, node.value) if each == name]
    yield from (value for _line, value in sorted(found, key=lambda each: -each[0]))


@functools.cache
def _assignments(function: ast.FunctionDef) -> list[ast.Assign]:
    return [node for node in ast.walk(function) if isinstance(node, ast.Assign)]


def _pairs(target: ast.expr, value: ast.expr) -> list[tuple[str, ast.expr]]:
    """Return the names of an assignment with their values; a call that returns several values stands for each."""
    names = target.elts if isinstance(target, ast.Tuple) else [target]
    values = value.elts if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) else [value] * len(names)
    return [(ast.unparse(each), found) for each, found in zip(names, values, strict=False)]


@functools.cache
def _returns() -> dict[str, list[ast.expr | None]]:
    """Return the values that each function of the package returns, by its name."""
    found: dict[str, list[ast.expr | None]] = {}
    for file in sorted(SOURCE.rglob("*.py")):
        nodes = _nodes(file)
        returns = sorted((node for node in nodes if isinstance(node, ast.Return)), key=lambda each: each.lineno)
        for function in (node for node in nodes if isinstance(node, ast.FunctionDef)):
            end = function.end_lineno or 0
            values = [each.value for each in returns if function.lineno <= each.lineno <= end]
            found.setdefault(function.name, []).extend(values)
    return found


def _returned(name: str) -> ast.expr | None:
    """Return the text that a function of the package returns at its end; None if it may return something else."""
    values = _returns().get(name, [])
    texts = [each for each in values if each is not None and _is_text(each) and " " in ast.unparse(each)]
    return texts[-1] if texts and len(texts) == len(values) else None


def placeholder(node: ast.AST) -> str:
    """Return an upper-case word for an expression: `entry.run.id` is RUN, `error.strerror` is REASON."""
    text = re.sub(r"(['\"]).*?\1", "", ast.unparse(node))
    if text.endswith(".__name__"):
        return "TYPE"
    words: list[str] = [word.strip("_").lower() for word in re.findall(r"[A-Za-z][A-Za-z_]*", text)]
    plain = [word for word in words if word not in COMMON]
    word = (plain or words or ["value"])[-1]
    return SHOWN.get(word, word).upper()
