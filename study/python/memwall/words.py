"""What callers give: taken where it is of the kind that is expected, else refused by a sentence that says what it is."""

from __future__ import annotations

import operator
import os
from typing import Any, Callable, Dict, Iterable, List, NoReturn, Optional

_LONGEST_SHOWN = 60


def refuse(where: str, found: Any, expected: str) -> NoReturn:
    """Raises `TypeError`. ``where``: the function and its word, ``"plan(budget=...)"``."""
    shown = repr(found)
    if len(shown) > _LONGEST_SHOWN:
        shown = shown[: _LONGEST_SHOWN - 3] + "..."
    raise TypeError(f"{where}: found {shown}, of type {type(found).__name__}; expected {expected}.")


def text(where: str, value: Any, expected: str = "a text") -> str:
    """A text, as it is."""
    if not isinstance(value, str):
        refuse(where, value, expected)
    return value


def path(where: str, value: Any, expected: str = "a path: a text or an os.PathLike") -> str:
    """The text of a path."""
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    return text(where, value, expected)


def texts(where: str, value: Any, expected: str = "a text or several") -> List[str]:
    """Several texts; one stands for itself."""
    if isinstance(value, str):
        return [value]
    if not isinstance(value, Iterable):
        refuse(where, value, expected)
    return [text(where, one, expected) for one in value]


def whole(where: str, value: Any, least: int = 0, most: int = 2**32 - 1) -> int:
    """A whole number between two, those of numpy, too. Raises `ValueError` for one that is not between them."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None:
        refuse(where, value, "a whole number")
    if not least <= number <= most:
        raise ValueError(f"{where}: found {number}; expected a whole number from {least} to {most}.")
    return number


def number(where: str, value: Any, expected: str = "a number") -> float:
    """A number."""
    if isinstance(value, (bool, str)) or not (hasattr(value, "__float__") or hasattr(value, "__index__")):
        refuse(where, value, expected)
    return float(value)


def truth(where: str, value: Any) -> bool:
    """True or false."""
    if not isinstance(value, bool) and type(value).__name__ != "bool_":  # numpy's
        refuse(where, value, "True or False")
    return bool(value)


def function(where: str, value: Any, expected: str) -> Optional[Callable[..., Any]]:
    """Something that can be called, or ``None``."""
    if value is not None and not callable(value):
        refuse(where, value, expected)
    return value  # type: ignore[no-any-return]


def setting(where: str, value: Any) -> str:
    """A setting of a network as the program takes it: ``true``, ``8``, ``bf16``."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int, float)):
        return str(value)
    if isinstance(value, os.PathLike):
        return path(where, value)
    refuse(where, value, "a text, a number, True or False")


def scenario_words(of: str, given: Dict[str, Any]) -> Dict[str, Any]:
    """The words of a scenario that stand beside its step and machine. ``of``: the function that was given them."""

    def where(name: str) -> str:
        return f"{of}({name}=...)"

    words: Dict[str, Any] = {name: texts(where(name), given[name]) for name in ("policies", "settings", "scale")}
    for name in ("budget", "pager", "executable", "allocator", "allocator_settings"):
        words[name] = text(where(name), given[name])
    words["plan"] = path(where("plan"), given["plan"])
    words["repeat"] = whole(where("repeat"), given["repeat"])
    words["transfer_host"] = truth(where("transfer_host"), given["transfer_host"])
    return words
