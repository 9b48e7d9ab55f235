"""Are tables what Arrow's C data interface says, and do its readers get the same values?"""

import ctypes
import gc
import importlib.util
import unittest

from program import SAMPLE

import memwall as mw

MIXED = {"whole": [1, None, -(2**62)], "number": [0.5, 2, None], "truth": [True, None, False], "text": ["a", "", None]}


class Array(ctypes.Structure):
    pass


class Schema(ctypes.Structure):
    pass


class Stream(ctypes.Structure):
    pass


Array._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(Array))),
    ("dictionary", ctypes.c_void_p),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(Array))),
    ("private_data", ctypes.c_void_p),
]
Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_char_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(Schema))),
    ("dictionary", ctypes.c_void_p),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(Schema))),
    ("private_data", ctypes.c_void_p),
]
Stream._fields_ = [
    ("get_schema", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Stream), ctypes.POINTER(Schema))),
    ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Stream), ctypes.POINTER(Array))),
    ("get_last_error", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.POINTER(Stream))),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(Stream))),
    ("private_data", ctypes.c_void_p),
]
pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def bit(address, i):
    return address is None or (ctypes.cast(address, ctypes.POINTER(ctypes.c_uint8))[i // 8] >> (i % 8)) & 1 == 1


def values_of(schema, array):
    """A column read as the specification says, with no library."""
    found = []
    for i in range(array.length):
        if not bit(array.buffers[0], i):
            found.append(None)
        elif schema.format == b"l":
            found.append(ctypes.cast(array.buffers[1], ctypes.POINTER(ctypes.c_int64))[i])
        elif schema.format == b"g":
            found.append(ctypes.cast(array.buffers[1], ctypes.POINTER(ctypes.c_double))[i])
        elif schema.format == b"b":
            found.append(bit(array.buffers[1], i))
        else:
            assert schema.format == b"U", schema.format
            ends = ctypes.cast(array.buffers[1], ctypes.POINTER(ctypes.c_int64))
            found.append(ctypes.string_at(array.buffers[2] + ends[i], ends[i + 1] - ends[i]).decode())
    return found


def read(table):
    """All columns of a table, read from its capsule; the stream ends behind one batch."""
    capsule = table.__arrow_c_stream__()
    stream = Stream.from_address(pointer_of(capsule, b"arrow_array_stream"))
    schema, array, end = Schema(), Array(), Array()
    assert stream.get_schema(stream, schema) == 0 and schema.format == b"+s"
    assert stream.get_next(stream, array) == 0 and array.release
    assert stream.get_next(stream, end) == 0 and not end.release
    columns = {}
    for i in range(schema.n_children):
        of, column = schema.children[i].contents, array.children[i].contents
        columns[of.name.decode()] = values_of(of, column)
        assert column.null_count == columns[of.name.decode()].count(None)
    schema.release(schema)
    array.release(array)
    return columns


class Arrow(unittest.TestCase):
    def test_columns_are_what_went_in(self):
        self.assertEqual(read(mw.Table(MIXED)), MIXED)
        self.assertEqual(mw.Table(MIXED).to_dict(), MIXED)
        self.assertEqual(read(mw.Table({"nothing": []})), {"nothing": []})
        with self.assertRaises(ValueError):
            mw.Table({"a": [1], "b": [1, 2]})
        with self.assertRaises(KeyError):
            mw.Table(MIXED)["Text"]

    def test_a_run_reads_as_it_is(self):
        ops = mw.run(SAMPLE, quick=True).ops
        self.assertEqual(read(ops), ops.to_dict())

    def test_a_batch_outlives_its_table_and_a_column_its_batch(self):
        capsule = mw.Table(MIXED).__arrow_c_stream__()
        stream = Stream.from_address(pointer_of(capsule, b"arrow_array_stream"))
        schema, array, moved = Schema(), Array(), Array()
        stream.get_schema(stream, schema)
        stream.get_next(stream, array)
        del capsule  # releases the stream
        gc.collect()
        # Moved out as the specification allows: its bytes, and `release` of the place that it came from emptied.
        child = array.children[3].contents
        ctypes.memmove(ctypes.byref(moved), ctypes.byref(child), ctypes.sizeof(Array))
        child.release = type(child.release)()
        array.release(array)
        self.assertEqual(values_of(schema.children[3].contents, moved), MIXED["text"])
        moved.release(moved)
        schema.release(schema)

    def test_a_capsule_that_nobody_takes_leaves_nothing(self):
        for _ in range(1000):
            mw.Table(MIXED).__arrow_c_stream__()
            mw.Table(MIXED).__arrow_c_schema__()


class Readers(unittest.TestCase):
    def require(self, *modules):
        for module in modules:
            if importlib.util.find_spec(module) is None:
                self.skipTest(f"{module} is not installed")

    def test_pyarrow(self):
        self.require("pyarrow")
        self.assertEqual(mw.Table(MIXED).to_arrow().to_pydict(), MIXED)
        ops = mw.run(SAMPLE, quick=True).ops
        self.assertEqual(ops.to_arrow().to_pydict(), ops.to_dict())

    def test_polars(self):
        self.require("polars")
        self.assertEqual(mw.Table(MIXED).to_polars().to_dict(as_series=False), MIXED)

    def test_pandas(self):
        self.require("pandas")
        frame = mw.run(SAMPLE, quick=True).ops.to_pandas()
        self.assertEqual(int(frame["bytes"].sum()), sum(mw.run(SAMPLE, quick=True).ops["bytes"]))

    def test_what_is_absent_is_told(self):
        for module, function in [("pyarrow", "to_arrow"), ("pandas", "to_pandas"), ("polars", "to_polars")]:
            if importlib.util.find_spec(module) is None:
                with self.assertRaises(mw.Error) as caught:
                    getattr(mw.Table(MIXED), function)()
                self.assertIn(f"`pip install {module}`", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
