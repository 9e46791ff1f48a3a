"""A model that is a function of somebody's module: found here, compared with the agreed hash, and only then run.

A model named `module:function` is code, and it runs beside private data with all rights of whoever starts it. So

- nothing is fetched: the file must lie on this machine already, where its owner has put it;
- reading, explaining or signing a study runs none of it; it runs only where data are at hand, and only if the SHA-256 of the
  file is the one that was agreed upon;
- what runs is the very text that was hashed: it is read once, compared, and compiled from memory, so a file that is exchanged in
  between does no harm;
- the hash covers that one file. Whatever the file imports is not covered: so it may import the standard library, numpy, torch and
  netdp, and nothing of its own making. That is a guard against files that differ by mistake. It is no jail: code that all
  parties have agreed upon can do harm if nobody has read it.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import importlib.machinery
import inspect
import re
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from netdp.errors import InvalidValue, MissingDependency, Refused

from .base import Model
from .schema import Schema

NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
IMPORTABLE = ("numpy", "torch", "netdp")
_LARGEST = 1 << 20


def is_code(name: str) -> bool:
    """Whether a model is named by a module and a function of it.

    >>> is_code("nets.small:cnn"), is_code("logistic"), is_code("nets/small.py:cnn")
    (True, False, False)
    """
    return NAME.fullmatch(name) is not None


def digest_of(source: bytes) -> str:
    """The SHA-256 of a file's content, in hexadecimal digits."""
    return hashlib.sha256(source).hexdigest()


def source_of(name: str, folders: Iterable[Path] | None = None) -> tuple[Path, bytes]:
    """The file of a model's module and what is in it: the first one in the working folder and on Python's path. Runs nothing."""
    for path in _candidates(name, folders):
        return path, _content(path)
    raise Refused(f"the model {name!r} is not on this machine: no file {_file(name)} {_where(folders)}; put it there")


def checked_source(name: str, digest: str, folders: Iterable[Path] | None = None) -> tuple[Path, bytes]:
    """The same for a module whose hash was agreed upon: only a file with that very content. Runs nothing."""
    others = []
    for path in _candidates(name, folders):
        content = _content(path)
        if digest_of(content) == digest:
            return path, content
        others.append((path, content))
    if not others:
        source_of(name, folders)  # says where it was looked for
    path, content = others[0]
    raise Refused(
        f"{path} is not the module that was agreed upon for the model {name!r}: its SHA-256 is {digest_of(content)[:16]}…, and "
        f"the study says {digest[:16]}…; ask for the file that the others have, read it, and put it in place of this one"
    )


def loaded(name: str, source: tuple[Path, bytes]) -> Callable[..., Any]:
    """Run a module, from its content, and give its function."""
    path, content = source
    module_name, _, function = name.partition(":")
    try:
        tree = ast.parse(content, str(path))
    except (SyntaxError, ValueError) as problem:
        raise InvalidValue(f"{path} is not valid Python: {problem}") from None
    _check_imports(tree, path)
    module = types.ModuleType(f"netdp_model_{digest_of(content)[:16]}_{module_name.replace('.', '_')}")
    module.__file__ = str(path)
    module.__spec__ = importlib.machinery.ModuleSpec(module.__name__, None, origin=str(path))
    sys.modules[module.__name__] = module  # dataclasses and torch look their classes' module up
    try:
        exec(compile(tree, str(path), "exec"), module.__dict__)
    except ImportError as problem:
        if problem.name == "torch":
            raise MissingDependency("torch", f"the model {name!r}", "torch") from None
        raise InvalidValue(f"{path} cannot be run: {problem}") from None
    except Exception as problem:
        raise InvalidValue(f"{path} cannot be run: {type(problem).__name__}: {problem}") from problem
    found = getattr(module, function, None)
    if not callable(found):
        there = [
            key
            for key, value in vars(module).items()
            if inspect.isfunction(value) and value.__module__ == module.__name__
        ]
        raise InvalidValue(f"{path} has no function {function!r}; it has {', '.join(there) or 'none'}")
    made: Callable[..., Any] = found
    return made


def call(function: Callable[..., Any], name: str, **offered: Any) -> Any:
    """Call a model's function with what it asks for by name of what is offered; it may ask for nothing."""
    try:
        wanted = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        wanted = ()  # type: ignore[assignment]
    given = {}
    for parameter in wanted:
        if parameter.name in offered and parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            given[parameter.name] = offered[parameter.name]
        elif parameter.default is parameter.empty and parameter.kind not in (
            parameter.VAR_KEYWORD,
            parameter.VAR_POSITIONAL,
        ):
            raise InvalidValue(
                f"the model {name!r} asks for {parameter.name!r}; it can be given {', '.join(offered)}, or nothing"
            )
    try:
        return function(**given)
    except Exception as problem:
        raise InvalidValue(f"the model {name!r} cannot be made: {type(problem).__name__}: {problem}") from problem


def made_of(name: str, source: tuple[Path, bytes], schema: Schema, chunk: int) -> Model:
    """The model that a module's function makes: one of netdp's, a torch module, or such a module and its loss.

    The function may ask for `features`, how many numbers a row has, and `classes`. torch's random numbers start from the same
    public seed at every party.
    """
    function = loaded(name, source)
    with _seeded(source[1]):
        made = call(function, name, features=schema.width, classes=schema.classes)
    if isinstance(made, Model):
        _check_own(made, name)
        return made.in_chunks(chunk)
    module, loss = made if isinstance(made, tuple) and len(made) == 2 else (made, None)
    if not callable(module) or not hasattr(module, "named_parameters"):
        raise InvalidValue(
            f"the model {name!r} is made by its function as a {type(made).__name__}; it must return a torch.nn.Module, such a "
            "module and its loss, or a netdp.models.Model"
        )
    from .torch import from_torch

    usual = "mse" if schema.classes is None else "cross_entropy"
    return from_torch(module, usual if loss is None else loss, classes=schema.classes, chunk=chunk, name=name)


def _check_own(found: Model, name: str) -> None:
    """Refuse a class of models that is not netdp's: nothing would keep it from mixing records, as standardising rows does."""
    if type(found).__module__.partition(".")[0] != "netdp":
        raise InvalidValue(
            f"the model {name!r} is a {type(found).__name__}, a class of its own making: its gradient of a record might depend on "
            "others, and nobody could tell. Return a torch.nn.Module, whose records are computed apart, or a model of netdp.models"
        )


def _seeded(content: bytes) -> contextlib.AbstractContextManager[None]:
    """torch's generator at the public seed, also if the function is the first to import torch."""
    if "torch" not in sys.modules and b"torch" not in content:  # then the module does not use it
        return contextlib.nullcontext()
    try:
        from .torch_layers import seeded
    except MissingDependency:  # it only speaks of it, or says so itself
        return contextlib.nullcontext()
    return seeded(0)


def _check_imports(tree: ast.AST, path: Path) -> None:
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{'.' * node.level}{node.module or ''}"]
        for name in names:
            first = name.partition(".")[0]
            if first not in IMPORTABLE and first not in sys.stdlib_module_names:
                raise InvalidValue(
                    f"{path}:{node.lineno}: imports {name}, which the agreed hash does not cover: the module of a model may import "  # type: ignore[attr-defined]
                    f"the standard library, {', '.join(IMPORTABLE)}; put what it needs into the file itself"
                )


def _file(name: str) -> str:
    return f"{name.partition(':')[0].replace('.', '/')}.py"


def _where(folders: Iterable[Path] | None) -> str:
    return "in the working folder or on Python's path" if folders is None else f"in {', '.join(map(str, folders))}"


def _candidates(name: str, folders: Iterable[Path] | None) -> Iterator[Path]:
    if not is_code(name):
        raise InvalidValue(f"{name!r} is no model: write module:function, such as nets:cnn for `def cnn()` in nets.py")
    if name.partition(":")[0].partition(".")[0] in (*sys.stdlib_module_names, *IMPORTABLE):
        raise Refused(
            f"{name!r} is a part of Python, numpy, torch or netdp, and no model that anybody has agreed upon; name your own"
        )
    # not importlib.util.find_spec: of a.b it would run a
    places = [Path.cwd(), *map(Path, sys.path)] if folders is None else list(folders)
    seen = set()
    for place in places:
        path = place / _file(name)
        if path.is_file() and path.resolve() not in seen:
            seen.add(path.resolve())
            yield path


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST + 1)
    except OSError as error:
        raise Refused(f"{path} cannot be read: {error.strerror}") from None
    if len(content) > _LARGEST:
        raise Refused(f"{path} has more than {_LARGEST:,} bytes; the module of a model is a small file")
    return content
