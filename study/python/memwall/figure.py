"""Drawings."""

from __future__ import annotations

import os
from typing import Union


class Figure:
    """A drawing as SVG. A notebook shows it; `save` writes it.

    >>> import memwall as mw
    >>> picture = mw.run(mw.Scenario(mw.Step.sample())).figure("memory")
    >>> picture.svg.startswith("<?xml")
    True
    """

    def __init__(self, svg: str):
        self.svg = svg

    def save(self, path: Union[str, os.PathLike]) -> None:
        """Writes the drawing to ``path``. Raises `ValueError` unless it ends in ``.svg``, and `OSError`."""
        if not str(path).endswith(".svg"):
            raise ValueError(f"{path}: a figure is written as .svg; `memwall render` makes .png and .pdf.")
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.svg)

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"<memwall.Figure: {len(self.svg)} bytes of SVG>"
