"""Drawings."""

from __future__ import annotations

from . import words
from .step import PathLike


class Figure:
    """A drawing as SVG, its text in ``svg``. A notebook shows it; `save` writes it.

    >>> import memwall as mw
    >>> picture = mw.run(mw.Scenario(mw.Step.sample())).figure("memory")
    >>> picture.svg.startswith("<?xml")
    True
    """

    def __init__(self, svg: str):
        self.svg = words.text("Figure(svg)", svg)

    def save(self, path: PathLike) -> None:
        """Writes the drawing to ``path``. Raises `ValueError` unless it ends in ``.svg``, and `OSError`.

        >>> import memwall as mw
        >>> import os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "memory.svg")
        ...     mw.run(mw.Step.sample()).figure("memory").save(path)
        ...     os.path.getsize(path) > 1000
        True
        """
        place = words.path("Figure.save(path)", path)
        if not place.endswith(".svg"):
            raise ValueError(f"{place}: a figure is written as .svg; `memwall render` makes .png and .pdf.")
        with open(place, "w", encoding="utf-8") as file:
            file.write(self.svg)

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"<memwall.Figure: {len(self.svg)} bytes of SVG>"
