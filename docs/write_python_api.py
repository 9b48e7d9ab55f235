#!/usr/bin/env python3
"""Writes docs/python_api.md from the docstrings of the package: PYTHONPATH=build/release/study/python, page on stdout."""

import inspect
import re

import memwall

HEAD = """# The Python package, name by name

Written by `docs/write_python_api.py` from the docstrings; a test holds it current. [python.md](python.md) is the page to begin with.
"""


def annotation(of):
    if of is inspect.Parameter.empty:
        return ""
    text = of if isinstance(of, str) else getattr(of, "__name__", str(of))
    return text.replace('"', "").replace("_memwall.", "")


def signature(function):
    """As Python shows it, without `self` and without quotes around types."""
    parts, is_starred = [], False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in ("self", "cls"):
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not is_starred:
            parts.append("*")
            is_starred = True
        prefix = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        is_starred = is_starred or prefix == "*"
        text = prefix + parameter.name
        if parameter.annotation is not parameter.empty:
            text += f": {annotation(parameter.annotation)}"
        if parameter.default is not parameter.empty:
            text += f" = {parameter.default!r}"
        parts.append(text)
    returned = annotation(inspect.signature(function).return_annotation)
    return f"({', '.join(parts)})" + (f" -> {returned}" if returned and returned != "None" else "")


def text_of(docstring):
    """Markdown: names in one pair of backquotes, examples as blocks of Python."""
    lines, is_example = [], False
    for line in inspect.cleandoc(docstring).splitlines():
        begins = line.startswith(">>> ")
        if begins and not is_example:
            lines.append("```python")
            is_example = True
        if is_example and not line.strip():
            lines.append("```")
            is_example = False
        lines.append(line if is_example else re.sub(r"``([^`]+)``", r"`\1`", line))
    return "\n".join(lines + (["```"] if is_example else []))


def members(of):
    """Public members with a docstring, in the order in which they stand in the source."""
    for name, member in vars(of).items():
        if name.startswith("_") and name != "__getitem__":
            continue
        if isinstance(member, (staticmethod, classmethod)):
            member = member.__func__
        if isinstance(member, property):
            yield f"`.{name}` -> `{annotation(inspect.signature(member.fget).return_annotation)}`", member.fget.__doc__
        elif inspect.isfunction(member):
            shown = "[name]" if name == "__getitem__" else f".{name}{signature(member)}"
            yield f"`{shown}`", member.__doc__


def main():
    print(HEAD)
    for name in sorted(memwall.__all__, key=lambda name: (name[0].isupper(), name)):
        item = getattr(memwall, name)
        if inspect.isclass(item):
            words = "(sentence: str, cause: str = 'usage')" if name == "Error" else signature(item.__init__)
            print(f"## class `mw.{name}`\n\n`mw.{name}{words}`\n\n{text_of(item.__doc__)}\n")
            for title, docstring in members(item):
                if docstring:
                    print(f"**{title}**\n\n{text_of(docstring)}\n")
        else:
            print(f"## `mw.{name}`\n\n`mw.{name}{signature(item)}`\n\n{text_of(item.__doc__)}\n")


if __name__ == "__main__":
    main()
