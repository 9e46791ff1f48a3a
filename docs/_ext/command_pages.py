"""The reference of all commands, written from the commands themselves while the site is built, so it cannot be out of date."""

from collections.abc import Iterator
from typing import Any


def every_command() -> Iterator[tuple[Any, Any]]:
    """Every command of `netdp` with its context, groups before what is in them."""
    import typer.main

    from netdp.cli import app

    root = typer.main.get_command(app)
    yield from _below(root, root.context_class(root, info_name="netdp"))


def flags(command: Any, context: Any) -> list[str]:
    """All that may be typed after a command: `--rounds`, `-T`, `--plain` …"""
    return [
        word
        for given in command.get_params(context)
        for word in (*given.opts, *given.secondary_opts)
        if word.startswith("-")
    ]


def reference() -> str:
    """The page in Markdown: a section for every command, a definition for every argument and flag."""
    sections = [_section(command, context) for command, context in every_command()]
    return "\n".join(sections)


def _below(command: Any, context: Any) -> Iterator[tuple[Any, Any]]:
    yield command, context
    for name in sorted(getattr(command, "commands", {})):
        child = command.commands[name]
        if not child.hidden:
            yield from _below(child, child.context_class(child, info_name=name, parent=context))


def _section(command: Any, context: Any) -> str:
    path = context.command_path
    level = "##" if path.count(" ") < 2 else "###"
    lines = [f"{level} {path}", "", _prose(command.help), ""]
    usage = " ".join(command.get_usage(context).split()).removeprefix("Usage: ")
    lines += ["```text", usage, "```", ""]
    inside = [name for name in sorted(getattr(command, "commands", {})) if not command.commands[name].hidden]
    if inside:
        lines += [f"- [{path} {name}](#{path.replace(' ', '-')}-{name})" for name in inside] + [""]
    for given in command.get_params(context):
        record = given.get_help_record(context)
        if record is not None and not getattr(given, "hidden", False):
            lines += [f"`{record[0]}`", f": {_inline(record[1]) or '—'}", ""]
    return "\n".join(lines)


def _prose(text: str | None) -> str:
    paragraphs = (text or "").replace("\f", "").split("\n\n")
    return "\n\n".join(_inline(paragraph) for paragraph in paragraphs)


def _inline(text: str) -> str:
    """Plain help text as Markdown: what is in backticks stays, all else is taken literally."""
    parts = " ".join(text.split()).split("`")
    if len(parts) % 2 == 0:  # a backtick without its twin
        parts = ["'".join(parts)]
    escaped = [part if k % 2 else _escape(part) for k, part in enumerate(parts)]
    return "".join(f"`{part}`" if k % 2 else part for k, part in enumerate(escaped))


def _escape(text: str) -> str:
    for sign in "\\*_[]<>|{}#":
        text = text.replace(sign, f"\\{sign}")
    return text.replace("--", "\\-\\-")
