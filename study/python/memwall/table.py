"""Tables: columns of equal length that pandas, Polars and Arrow take without a copy."""

from __future__ import annotations

from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional

from . import _memwall, words
from .errors import Error

_SHOWN_ROWS = 20


def _imported(module: str, package: str, what: str) -> Any:
    try:
        return __import__(module)
    except ImportError:
        raise Error(f"{what} needs {package}, which is not installed; `pip install {package}` installs it.") from None


class Table:
    """Rows of a result, held column by column.

    A column is of whole numbers, numbers, truths or texts; what is not known is ``None`` (a null of Arrow). Units stand
    behind the names: ``_s`` seconds, ``_us`` microseconds, ``_bytes`` bytes, ``_bytes_per_s`` bytes per second.

    Whatever reads Arrow takes a table as it is, without a copy and without pyarrow: ``polars.DataFrame(table)``,
    ``pyarrow.table(table)``, ``duckdb.arrow(table)``.

    >>> import memwall as mw
    >>> table = mw.Table({"policy": ["none", "checkpoint"], "step_time_s": [0.5, None]})
    >>> table.names, len(table)
    (['policy', 'step_time_s'], 2)
    >>> table["step_time_s"]
    [0.5, None]
    """

    def __init__(self, columns: Any):
        if isinstance(columns, Mapping):
            lists = {}
            for name, values in columns.items():
                if isinstance(values, str) or not isinstance(values, Iterable):
                    words.refuse(f"Table(columns), {name}", values, "a list of values")
                lists[words.text("Table(columns)", name, "names of columns")] = list(values)
            columns = _memwall.Columns(lists)
        if not isinstance(columns, _memwall.Columns):
            words.refuse("Table(columns)", columns, "a mapping from names to lists")
        self._columns: _memwall.Columns = columns

    @property
    def names(self) -> List[str]:
        """Names of the columns, in order."""
        return self._columns.names

    def __len__(self) -> int:
        return len(self._columns)

    def __getitem__(self, name: str) -> List[Any]:
        """The values of a column as a list. Raises `KeyError` for an unknown name.

        >>> import memwall as mw
        >>> mw.Table({"step_time_s": [0.5, None]})["step_time_s"]
        [0.5, None]
        """
        words.text("Table[name]", name, "the name of a column")
        try:
            column = self.names.index(name)
        except ValueError:
            raise KeyError(f"there is no column {name!r}; expected one of {', '.join(self.names)}") from None
        return self._columns.values(column, 0, len(self))

    def __contains__(self, name: str) -> bool:
        return name in self.names

    def rows(self, first: int = 0, last: Optional[int] = None) -> Iterator[Dict[str, Any]]:
        """Rows ``first`` to ``last`` (exclusive; default: all) as dictionaries. Raises `TypeError` for what is no whole
        number; rows that are not there are none.

        >>> import memwall as mw
        >>> list(mw.Table({"a": [1, 2], "b": ["x", "y"]}).rows(1))
        [{'a': 2, 'b': 'y'}]
        """
        words.whole("Table.rows(first)", first, most=2**63 - 1)
        last = len(self) if last is None else words.whole("Table.rows(last)", last, most=2**63 - 1)
        columns = [self._columns.values(i, first, last) for i in range(len(self.names))]
        return (dict(zip(self.names, values)) for values in zip(*columns))

    def to_dict(self) -> Dict[str, List[Any]]:
        """All columns by name, as lists. Raises nothing.

        >>> import memwall as mw
        >>> mw.Table({"a": [1, 2]}).to_dict()
        {'a': [1, 2]}
        """
        return {name: self[name] for name in self.names}

    def to_arrow(self) -> Any:
        """A `pyarrow.Table` over the same memory. Raises `Error` where pyarrow is not installed.

        >>> import memwall as mw
        >>> table = mw.Table({"op": [0, 1], "bytes": [512, None]})
        >>> frame = table.to_arrow()
        >>> frame.shape
        (2, 2)
        """
        return _imported("pyarrow", "pyarrow", "to_arrow()").table(self)

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame`, by pyarrow where that is installed. Raises `Error` where pandas is not.

        >>> import memwall as mw
        >>> frame = mw.Table({"op": [0, 1], "bytes": [512, 64]}).to_pandas()
        >>> int(frame["bytes"].sum())
        576
        """
        pandas = _imported("pandas", "pandas", "to_pandas()")
        try:
            arrow = self.to_arrow()
        except Error:
            return pandas.DataFrame(self.to_dict())
        return arrow.to_pandas()

    def to_polars(self) -> Any:
        """A `polars.DataFrame` over the same memory. Raises `Error` where Polars is not installed.

        >>> import memwall as mw
        >>> frame = mw.Table({"op": [0, 1], "bytes": [512, 64]}).to_polars()
        >>> frame["bytes"].sum()
        576
        """
        return _imported("polars", "polars", "to_polars()").DataFrame(self)

    def __arrow_c_schema__(self) -> Any:
        """The names and types of the columns, by Arrow's PyCapsule interface."""
        return self._columns.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """All rows as one batch, by Arrow's PyCapsule interface; another schema than its own is not made."""
        return self._columns.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"<memwall.Table: {len(self)} rows of {', '.join(self.names)}>"

    def _repr_html_(self) -> str:
        """The first rows, for notebooks."""
        import html

        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.names)
        lines = []
        for row in self.rows(0, min(_SHOWN_ROWS, len(self))):
            cells = ("" if value is None else html.escape(str(value)) for value in row.values())
            lines.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
        more = len(self) - len(lines)
        note = f"<p>{more} more rows</p>" if more > 0 else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>{note}"
