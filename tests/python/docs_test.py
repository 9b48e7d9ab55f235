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


class Docstrings(unittest.TestCase):
    def modules(self):
        return [__import__(f"memwall.{m.name}", fromlist=["x"]) for m in pkgutil.iter_modules(mw.__path__) if m.name != "_memwall"]

    def test_examples(self):
        tried = 0
        for module in self.modules():
            result = doctest.testmod(module)
            self.assertEqual(result.failed, 0, module.__name__)
            tried += result.attempted
        self.assertGreater(tried, 50)

    def test_every_public_function_has_a_docstring(self):
        for name in mw.__all__:
            item = getattr(mw, name)
            self.assertTrue(item.__doc__, name)
            if not inspect.isclass(item):
                self.assertIn(">>> ", item.__doc__, f"{name} has no example")
                continue
            for member_name, member in vars(item).items():
                function = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
                if not member_name.startswith("_") and inspect.isfunction(function):
                    self.assertTrue(function.__doc__, f"{name}.{member_name}")

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
