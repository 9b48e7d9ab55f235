"""Do the examples of the docstrings and the pages print what they say, and is the page of names current?"""

import ast
import contextlib
import doctest
import importlib.util
import inspect
import io
import json
import os
import pathlib
import pkgutil
import re
import sys
import tempfile
import unittest

from program import ROOT, SAMPLE

import memwall as mw

PAGES = ROOT / "docs"
SNAPSHOT = str(ROOT / "tests" / "fuzz" / "corpus" / "snapshot" / "settings.pickle")
NEEDED = {"to_arrow": "pyarrow", "to_pandas": "pandas", "to_polars": "polars"}  # by examples
UNIT = r"[Ss]econds|[Bb]ytes|per second|[Hh]ow many|without a unit"


@contextlib.contextmanager
def in_folder(folder):
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def blocks(page):
    return re.findall(r"^```python\n(.*?)^```", (PAGES / page).read_text(encoding="utf-8"), re.M | re.S)


def printed_by(source, names):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(source, "page", "exec"), names)
    return out.getvalue()


def public_functions():
    """Names and functions of the package that a user calls, methods among them."""
    for name in mw.__all__:
        item = getattr(mw, name)
        if not inspect.isclass(item):
            yield name, item
            continue
        for member_name, member in vars(item).items():
            function = getattr(member, "__func__", member)
            if inspect.isfunction(function) and (not member_name.startswith("_") or member_name == "__getitem__"):
                yield f"{name}.{member_name}", function


def public_properties():
    for name in mw.__all__:
        for member_name, member in vars(getattr(mw, name)).items() if inspect.isclass(getattr(mw, name)) else ():
            if isinstance(member, property) and not member_name.startswith("_"):
                yield f"{name}.{member_name}", member


def lacks_of(function):
    """What a docstring has to have: an example, what is raised, and the unit of a number that comes back."""
    text = function.__doc__
    if not text:
        return ["a docstring"]
    lacks = [] if ">>> " in text else ["an example"]
    if not re.search(r"[Rr]aises", text):
        lacks.append("what it raises")
    returned = str(inspect.signature(function).return_annotation)
    if re.search(r"\b(float|int)\b", returned) and not re.search(UNIT, text):
        lacks.append("the unit of what it gives")
    return lacks


class Docstrings(unittest.TestCase):
    def modules(self):
        return [__import__(f"memwall.{m.name}", fromlist=["x"]) for m in pkgutil.iter_modules(mw.__path__) if m.name != "_memwall"]

    def test_examples(self):
        tried, finder = 0, doctest.DocTestFinder(exclude_empty=True)
        for module in self.modules():
            runner = doctest.DocTestRunner()
            for example in finder.find(module, module.__name__):
                needed = NEEDED.get(example.name.split(".")[-1])
                if needed is None or importlib.util.find_spec(needed) is not None:
                    runner.run(example)
            self.assertEqual(runner.summarize(verbose=False).failed, 0, module.__name__)
            tried += runner.tries
        self.assertGreater(tried, 120)

    def test_every_public_function_says_what_it_takes_gives_and_raises(self):
        looked_at = 0
        for name, function in public_functions():
            with self.subTest(name):
                self.assertEqual(lacks_of(function), [])
            looked_at += 1
        self.assertGreater(looked_at, 40)

    def test_every_property_has_a_docstring_and_every_number_its_unit(self):
        looked_at = 0
        for name, member in public_properties():
            with self.subTest(name):
                self.assertTrue(member.fget.__doc__)
                if re.search(r"float|int", str(inspect.signature(member.fget).return_annotation)):
                    self.assertRegex(member.fget.__doc__, UNIT)
                    looked_at += 1
        self.assertGreater(looked_at, 8)

    def test_what_lacks_a_part_is_found(self):
        def f(seconds: float) -> float:
            """Twice the time, in seconds. Raises nothing.

            >>> 1
            1
            """

        self.assertEqual(lacks_of(f), [])
        whole = f.__doc__
        for without, lacks in [
            (None, ["a docstring"]),
            (whole.replace(">>>", ""), ["an example"]),
            (whole.replace("Raises", ""), ["what it raises"]),
            (whole.replace("in seconds", ""), ["the unit of what it gives"]),
        ]:
            f.__doc__ = without
            self.assertEqual(lacks_of(f), lacks)

    def test_tables_have_the_columns_that_are_named(self):
        outcome = mw.run(SAMPLE)
        for of, name, table in [
            (mw.Outcome, "ops", outcome.ops),
            (mw.Outcome, "timeline", outcome.timeline),
            (mw.Outcome, "storages", outcome.storages),
            (mw.Outcome, "residency", outcome.residency),
            (mw.Outcome, "memory", outcome.memory()),
            (mw.Outcome, "link", outcome.link("pcie_h2d")),
            (mw.Outcome, "live", outcome.live()),
            (mw.Machine, "numbers", mw.Machine("h100-sxm-80gb").numbers()),
            (mw.Snapshot, "timeline", mw.Snapshot(SNAPSHOT).timeline),
            (mw, "machines", mw.machines()),
            (mw, "workloads", mw.workloads()),
            (mw, "policies", mw.policies()),
        ]:
            with self.subTest(name):
                member = inspect.getattr_static(of, name)
                text = member.fget.__doc__ if isinstance(member, property) else member.__doc__
                named = [word for word in re.findall(r"``([a-z_]+)``", text) if word in table.names]
                self.assertEqual(list(dict.fromkeys(named)), table.names)

    def test_types_stand_beside_every_name(self):
        self.assertTrue((pathlib.Path(mw.__file__).parent / "py.typed").exists())
        for name in mw.__all__:
            if inspect.isfunction(getattr(mw, name)):
                for parameter in inspect.signature(getattr(mw, name)).parameters.values():
                    self.assertIsNot(parameter.annotation, parameter.empty, f"{name}({parameter.name})")

    def test_the_stub_has_what_the_module_has(self):
        from memwall import _memwall

        stub = ast.parse((ROOT / "study/python/memwall/_memwall.pyi").read_text())
        stated = {}
        for node in stub.body:
            if isinstance(node, ast.ClassDef):
                stated[node.name] = {getattr(n, "name", None) or n.target.id for n in node.body}
            elif isinstance(node, ast.FunctionDef):
                stated[node.name] = None
            elif isinstance(node, ast.AnnAssign):
                stated[node.target.id] = None
        public = {name: getattr(_memwall, name) for name in dir(_memwall) if not name.startswith("_")}
        self.assertEqual(set(stated), set(public))
        for name, item in public.items():
            if inspect.isclass(item):
                own = {n for n in vars(item) if not n.startswith("_") or n in ("__init__", "__len__") or "arrow" in n}
                if "__init__" not in stated[name]:
                    own.discard("__init__")
                self.assertEqual(own, stated[name], name)


class Pages(unittest.TestCase):
    def test_the_page_of_names_is_current(self):
        path = ROOT / "docs/write_python_api.py"
        spec = importlib.util.spec_from_file_location("write_python_api", path)
        writer = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(writer)
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            writer.main()
        page = (PAGES / "python_api.md").read_text(encoding="utf-8")
        self.assertEqual(page.rstrip(), out.getvalue().rstrip(), "run docs/write_python_api.py > docs/python_api.md")

    def test_the_first_page_runs(self):
        names = {}
        printed = [printed_by(block, names).splitlines() for block in blocks("python.md")]
        self.assertGreater(len(printed), 5)
        text = "\n".join(line for lines in printed for line in lines)
        self.assertTrue(text.startswith("True "), text)
        for block, lines in zip(blocks("python.md"), printed):
            self.assertEqual(bool(lines), "print(" in block)
        self.assertNotIn("False", text, "what the page prints as true is true")

    def test_the_page_of_run_files(self):
        if importlib.util.find_spec("h5py") is None:
            self.skipTest("h5py is not installed")
        outcome = mw.run(SAMPLE)
        with tempfile.TemporaryDirectory() as folder, in_folder(folder):
            outcome.write("run.h5")
            printed = "".join(printed_by(block, {}) for block in blocks("run_file.md"))
        live = outcome.live()
        self.assertIn("steps of gpt_124m on", printed)
        self.assertIn(f"peak {outcome['tiers.hbm.peak_allocated_bytes']} bytes", printed)
        self.assertIn(f"{len(live)} storages of {sum(live['bytes'])} bytes", printed)

    def test_the_notebook_runs(self):
        notebook = json.loads((PAGES / "memwall.ipynb").read_text(encoding="utf-8"))
        self.assertEqual(notebook["nbformat"], 4)
        names, shown = {}, 0
        with tempfile.TemporaryDirectory() as folder, in_folder(folder):
            for number, cell in enumerate(notebook["cells"]):
                if cell["cell_type"] != "code":
                    continue
                self.assertEqual(cell["outputs"], [], f"cell {number} is committed with its output")
                shown += self.execute(number, "".join(cell["source"]), names)
        self.assertGreater(shown, 3, "what a notebook shows of the last value of a cell")

    def execute(self, number, source, names):
        """As Jupyter does: all of the cell, and its last value as the richest of its forms. How many were shown."""
        tree = ast.parse(source)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(tree, f"cell {number}", "exec"), names)
            value = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), names) if last else None
        for form in ("_repr_svg_", "_repr_html_"):
            if hasattr(value, form):
                self.assertTrue(getattr(value, form)().startswith("<"), f"cell {number}")
                return 1
        return 0


if __name__ == "__main__":
    sys.exit(unittest.main())
