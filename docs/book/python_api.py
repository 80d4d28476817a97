"""Writes `src/python-api.md`, the reference of the Python package, from its docstrings:

    python docs/book/python_api.py

A test compares the page with what this prints.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from pathlib import Path
from typing import Any

import phalanx

PAGE = Path(__file__).parent / "src" / "python-api.md"
HEAD = """# Python reference

Made from the docstrings of the package by `docs/book/python_api.py`. Settings, the keywords of `train`, `evaluate` and `config`, are in [the
reference of the configuration](reference.md).
"""
#: Parts of the page, with what they hold.
PARTS = {
    "Runs": ["train", "resume", "load", "evaluate", "config", "presets", "export", "Run", "Iteration", "STOP"],
    "Results": ["Assessment", "Table", "Policy"],
    "Certificates": ["certify", "check_certificate", "Certification"],
    "Worlds and utilities": ["World", "Utility", "from_pettingzoo"],
    "Environments": ["env", "parallel_env", "vector_env", "VectorEnv"],
    "Exact values": ["exact"],
    "Types and exceptions": ["Settings", "ConfigError", "TrainingError", "Interrupted"],
}
#: Signatures of this length stand on one line.
LONGEST = 110


def annotation(found: Any) -> str:
    """A type as it is written in the source."""
    return found if isinstance(found, str) else inspect.formatannotation(found)


def signature(name: str, function: Any) -> str:
    """A call with its parameters, in lines if there are many."""
    found = inspect.signature(function)
    parts, is_star_said = [], False
    for parameter in found.parameters.values():
        if parameter.name in ("self", "cls"):
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not is_star_said:
            parts.append("*")
            is_star_said = True
        stars = {parameter.VAR_KEYWORD: "**", parameter.VAR_POSITIONAL: "*"}.get(parameter.kind, "")
        typed = "" if parameter.annotation is parameter.empty else f": {annotation(parameter.annotation)}"
        default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
        parts.append(f"{stars}{parameter.name}{typed}{default}")
    end = (
        ""
        if found.return_annotation in (found.empty, "None", None)
        else f" -> {annotation(found.return_annotation)}"
    )
    line = f"{name}({', '.join(parts)}){end}"
    if len(line) > LONGEST:
        line = f"{name}(\n" + "".join(f"    {part},\n" for part in parts) + f"){end}"
    return f"```text\n{line}\n```\n"


def prose(docstring: str | None) -> str:
    """A docstring as Markdown: parameters as a list, examples as blocks."""
    text = inspect.cleandoc(docstring or "").replace("``", "`")
    text = re.sub(r":(?:func|class|meth):`([^`]*)`", r"`\1`", text)
    text = re.sub(r"^:param (\w+): ", r"- `\1`: ", text, flags=re.MULTILINE)
    text = re.sub(r"^:raises (\w+): ", r"- raises `\1`: ", text, flags=re.MULTILINE)
    text = re.sub(r"\n+Arguments:\n((?:    .*\n?|\n)+)", lambda found: "\n\n" + arguments(found[1]), text)
    blocks = re.split(r"\n\s*\n", text)
    return "\n\n".join(f"```text\n{block}\n```" if block.startswith(">>> ") else block for block in blocks) + "\n"


def arguments(listed: str) -> str:
    """Arguments under a heading of their own, as a list."""
    entries = re.sub(r"\n    +", " ", textwrap.dedent(listed)).strip().splitlines()
    return "".join(re.sub(r"^(\w+): ", r"- `\1`: ", entry) + "\n" for entry in entries) + "\n"


def attributes(kind: type) -> dict[str, str]:
    """What a comment with a colon says of an attribute."""
    found = re.finditer(r"((?:^ *#: .*\n)+) *(?:self\.)?(\w+)", inspect.getsource(kind), re.MULTILINE)
    return {one[2]: " ".join(line.strip(" #:") for line in one[1].splitlines()) for one in found}


def members(kind: type) -> str:
    """Attributes, properties and methods of a class."""
    listed = dict(attributes(kind))
    methods = []
    for name, member in vars(kind).items():
        if name.startswith("_"):
            continue
        function = member.__func__ if isinstance(member, staticmethod | classmethod) else member
        if inspect.isfunction(function):
            methods.append(
                f"#### {kind.__name__}.{name}\n\n{signature(name, function)}\n{prose(function.__doc__)}"
            )
        elif hasattr(member, "__get__") and member.__doc__:
            listed[name] = " ".join(inspect.cleandoc(member.__doc__).replace("``", "`").split())
    table = "".join(f"| `{name}` | {told} |\n" for name, told in listed.items())
    head = f"\n| attribute | |\n|---|---|\n{table}" if table else ""
    return head + "".join(f"\n{method}" for method in methods)


def entry(name: str) -> str:
    """One public name."""
    thing = getattr(phalanx, name)
    title = f"### {name}\n\n"
    if name == "parallel_env":
        return title + "The same as `env`, under the name that environments of PettingZoo have for it.\n"
    if name == "STOP":
        return title + "What a callback returns to stop the run after its iteration.\n"
    if not inspect.isclass(thing):
        return title + signature(name, thing) + "\n" + prose(thing.__doc__)
    if name == "Settings":
        keys = ", ".join(f"`{key}`" for key in sorted(thing.__annotations__))
        return title + prose(thing.__doc__) + f"\nKeys: {keys}.\n"
    if issubclass(thing, BaseException):
        return title + f"A `{thing.__bases__[0].__name__}`. " + prose(thing.__doc__)
    made = signature(name, thing.__init__) + "\n" if name == "Utility" else ""
    return title + made + prose(thing.__doc__) + members(thing)


def page() -> str:
    """The whole page."""
    text = HEAD
    for part, names in PARTS.items():
        text += f"\n## {part}\n\n" + "\n".join(entry(name) for name in names)
    return text


if __name__ == "__main__":
    PAGE.write_text(page())
