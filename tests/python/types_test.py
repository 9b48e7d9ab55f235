"""Is what is of the wrong type refused by a sentence, wherever it is given, and do type checkers agree with the hints?"""

import importlib.util
import inspect
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from program import ROOT, SAMPLE

import memwall as mw

SNAPSHOT = str(ROOT / "tests" / "fuzz" / "corpus" / "snapshot" / "settings.pickle")
# Words that are given where another is wrong.
GIVEN = {
    "sentence": "x",
    "svg": "<svg/>",
    "path": "nowhere/x.svg",
    "name": "checkpoint",
    "columns": {},
    "tokens": 1e9,
    "file": SNAPSHOT,
    "step": SAMPLE,
    "scenario": SAMPLE,
    "over": "batch=1..2",
}
ANYTHING = {("Outcome", "get", "default"), ("Table", "__arrow_c_stream__", "requested_schema")}
BY_USERS_ALONE = {"Outcome", "Plan", "Sweep", "Fit", "PagerView"}  # objects that functions return


class Wrong:
    def __repr__(self):
        return "<wrong>"


def calls(function, owner, name):
    """Calls of the function, each with one word that is wrong: (word, arguments, keywords)."""
    parameters = [p for p in inspect.signature(function).parameters.values() if p.name not in ("self", "cls")]
    for wrong in parameters:
        if (owner, name, wrong.name) in ANYTHING:
            continue
        arguments, keywords = [], {}
        for p in parameters:
            value = Wrong() if p is wrong else GIVEN.get(p.name)
            if p is not wrong and p.default is not p.empty:
                continue
            if p.kind is p.VAR_POSITIONAL:
                if p is wrong:
                    arguments.append(value)
                elif owner == "Step":
                    arguments.append(SAMPLE)
            elif p.kind is p.VAR_KEYWORD:
                if p is wrong:
                    keywords["budget"] = value
            elif p.kind is p.KEYWORD_ONLY or p.default is not p.empty:
                keywords[p.name] = value
            else:
                arguments.append(value)
        yield wrong.name, arguments, keywords


class WrongTypes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scenario = mw.Scenario(SAMPLE)
        cls.objects = {
            "Error": mw.Error("x"),
            "Figure": mw.Figure("<svg/>"),
            "Fit": mw.fit(SAMPLE, over="budget=4..40GiB:2", largest=False),
            "Machine": mw.Machine("h100-sxm-80gb"),
            "Outcome": mw.run(scenario),
            "Plan": mw.plan(scenario, smallest=False),
            "Scenario": scenario,
            "Snapshot": mw.Snapshot(SNAPSHOT),
            "Step": mw.Step(SAMPLE),
            "Sweep": mw.sweep(scenario, over="policy=none"),
            "Table": mw.Table({"a": [1]}),
        }

    def refuse(self, function, owner, name, of):
        tried = 0
        for word, arguments, keywords in calls(function, owner, name):
            with self.subTest(f"{owner}.{name}({word})"):
                with self.assertRaises((TypeError, mw.Error)) as caught:
                    of(*arguments, **keywords)
                said = str(caught.exception)
                self.assertIn("<wrong>", said)
                self.assertRegex(said, "expected [a-zA-Z'\"]")
                for raw in ("incompatible function arguments", "Unable to cast", "invoked with", "argument of type"):
                    self.assertNotIn(raw, said)
                tried += 1
        return tried

    def test_every_word_of_every_function(self):
        tried = 0
        for name in mw.__all__:
            item = getattr(mw, name)
            if inspect.isfunction(item):
                tried += self.refuse(item, "", name, item)
                continue
            if name not in BY_USERS_ALONE:
                tried += self.refuse(item.__init__, name, "__init__", item)
            for member_name, member in vars(item).items():
                if name == "PagerView" or not inspect.isfunction(member):
                    continue
                if member_name.startswith("_") and member_name != "__getitem__":
                    continue
                tried += self.refuse(member, name, member_name, getattr(self.objects[name], member_name))
        self.assertGreater(tried, 90)

    def test_words_inside_of_words(self):
        for ask, part in [
            (lambda: mw.Scenario(SAMPLE, policies=["checkpoint", 3]), "Scenario(policies=...): found 3, of type int"),
            (lambda: mw.Scenario([SAMPLE, 3]), "Scenario(step): found 3, of type int"),
            (lambda: mw.sweep(SAMPLE, over={"batch": 3}), "sweep(over=...), batch: found 3, of type int"),
            (lambda: mw.sweep(SAMPLE, over={3: "x"}), "sweep(over=...): found 3, of type int"),
            (lambda: mw.sweep(SAMPLE, over={"batch": [[1]]}), "sweep(over=...), batch: found [1], of type list"),
            (lambda: mw.Table({"a": 3}), "Table(columns), a: found 3, of type int"),
            (lambda: mw.Step("gpt2-124m", layers=[2]), "Step(layers=...): found [2], of type list"),
            (lambda: mw.plan(SAMPLE, budget=24), 'as in "24GiB"'),
            (lambda: mw.Scenario(SAMPLE, repeat=True), "expected a whole number"),
            (lambda: mw.run(SAMPLE, quick=1), "expected True or False"),
        ]:
            with self.subTest(part), self.assertRaises(TypeError) as caught:
                ask()
            self.assertIn(part, str(caught.exception))
        for ask in (lambda: mw.sweep(SAMPLE, over="policy=none", jobs=-1), lambda: mw.Scenario(SAMPLE, repeat=2**40)):
            with self.assertRaisesRegex(ValueError, "expected a whole number from 0"):
                ask()

    def test_what_pagers_and_planners_return_and_ask(self):
        answers = {}

        @mw.pager
        class asks_anything:
            def spill_order(self):
                return answers["order"]

            def make_room(self, tier, bytes, view):
                return answers["ask"](view)

        def ask():
            return mw.run(mw.Scenario(SAMPLE, budget="4GiB", pager="asks_anything"), quick=True)

        for order, question, part in [
            (3, None, "Pager 'asks_anything', spill_order(): found 3, of type int"),
            ("host", None, "expected a list of names of tiers"),
            ([3], None, "expected names of tiers"),
            (["host"], lambda view: 3, "Pager 'asks_anything', make_room(): found 3, of type int"),
            (["host"], lambda view: view.free_bytes(3), "PagerView.free_bytes(tier): found 3, of type int"),
            (["host"], lambda view: view.movable("all"), "PagerView.movable(bytes): found 'all', of type str"),
        ]:
            answers.update(order=order, ask=question)
            with self.subTest(part), self.assertRaises(TypeError) as caught:
                ask()
            self.assertIn(part, str(caught.exception))
        mw.planner(lambda profile: 3, name="plans_three")
        with self.assertRaisesRegex(TypeError, "What planner 'plans_three' returned: found 3; expected a memory plan"):
            mw.run(mw.Scenario(SAMPLE, policies=["plans_three:budget=8GiB"]), quick=True)

    def test_paths_and_numbers_of_other_kinds_are_taken(self):
        path = pathlib.Path(SAMPLE)
        self.assertEqual(mw.run(path, quick=True).step_time, mw.run(SAMPLE, quick=True).step_time)
        self.assertEqual(mw.Scenario([path]).line(), mw.Scenario(SAMPLE).line())

        class Number:  # as those of numpy
            def __index__(self):
                return 2

        self.assertEqual(mw.Scenario(SAMPLE, repeat=Number()), mw.Scenario(SAMPLE, repeat=2))


USER = '''
import memwall as mw

outcome: mw.Outcome = mw.run(mw.Scenario(mw.Step.sample(), "h100-sxm-80gb", policies=["checkpoint"]), quick=True)
seconds: float = outcome.step_time
sweep = mw.sweep(mw.Step.sample(), over={"policy": ["none", "checkpoint"]}, objective="step_time")
best: "mw.Scenario | None" = sweep.best_scenario
plan = mw.plan(mw.Step.sample(), budget="24GiB")
names: "list[str]" = plan.policies + mw.machines().names
'''
WRONG_USER = '''
import memwall as mw

mw.run(3)
mw.plan("step.mwt", budget=24)
seconds: str = mw.run("step.mwt").step_time
'''


@unittest.skipIf(importlib.util.find_spec("mypy") is None, "mypy is not installed; .ci/long wheel installs it")
class Hints(unittest.TestCase):
    def mypy(self, *words):
        place = pathlib.Path(mw.__file__).parent.parent
        environment = dict(os.environ)
        if place.name != "site-packages":  # where mypy looks by itself
            environment["MYPYPATH"] = str(place)
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "mypy", "--cache-dir", folder, *words]
            done = subprocess.run(command, capture_output=True, text=True, env=environment)
        return done.stdout + done.stderr

    def test_the_package_is_sound(self):
        self.assertIn("Success", self.mypy("--strict", "--package", "memwall"))

    def test_a_user_is_told(self):
        with tempfile.TemporaryDirectory() as folder:
            right, wrong = os.path.join(folder, "right.py"), os.path.join(folder, "wrong.py")
            pathlib.Path(right).write_text(USER)
            pathlib.Path(wrong).write_text(WRONG_USER)
            self.assertIn("Success", self.mypy("--strict", right))
            self.assertIn("Found 3 errors", self.mypy("--strict", wrong))


if __name__ == "__main__":
    unittest.main()
