"""Do planners and pagers written in Python decide, and is what they get wrong told?"""

import contextlib
import io
import json
import os
import tempfile
import unittest
import unittest.mock
from concurrent.futures import ThreadPoolExecutor

from program import ROOT, SAMPLE, refusal

import memwall as mw


def plan_for(profile, decisions):
    return {
        "format": "memwall-plan",
        "version": 1,
        "made_by": "a test",
        "trace": profile["trace"],
        "tiers": [{"tier": "host"}],
        "decisions": decisions,
        "reruns": [],
    }


class Planners(unittest.TestCase):
    def test_it_is_asked_and_its_plan_is_carried_out_as_that_of_a_program(self):
        path = ROOT / "policies" / "planners" / "example_planner.py"
        source, asked = compile(path.read_text(), str(path), "exec"), []

        @mw.planner
        def example(profile):
            asked.append(profile["budget"])
            out = io.StringIO()
            with unittest.mock.patch("sys.stdin", io.StringIO(json.dumps(profile))), contextlib.redirect_stdout(out):
                exec(source, {"__name__": "__main__"})
            return out.getvalue()

        mine = mw.run(mw.Scenario(SAMPLE, policies=["example:budget=12GB"]), quick=True)
        theirs = mw.run(mw.Scenario(SAMPLE, policies=[f"exec:{path},budget=12GB"]), quick=True)
        self.assertEqual(asked[0], 12 * 10**9)
        self.assertEqual(mine.ops.to_dict(), theirs.ops.to_dict())
        self.assertGreater(mine["links.pcie_d2h.bytes"], 1 << 30)
        self.assertIn("example", mw.policies()["name"])

    def test_a_new_function_takes_the_place_of_the_old(self):
        for word in ("first", "second"):

            @mw.planner(name="replaced")
            def never(profile):
                raise ValueError(word)

            with self.assertRaisesRegex(ValueError, word):
                mw.run(mw.Scenario(SAMPLE, policies=["replaced:budget=8GiB"]), quick=True)

    def test_what_is_no_plan_is_told(self):
        for name, answer, part in [
            ("no_json", "not a plan", "What planner 'no_json' returned"),
            ("no_step", {"format": "memwall-plan", "version": 1}, "What planner 'no_step' returned"),
        ]:
            mw.planner(lambda profile, answer=answer: answer, name=name)
            self.assertIn(part, refusal(self, lambda: mw.run(mw.Scenario(SAMPLE, policies=[name + ":budget=8GiB"]))))

        @mw.planner
        def drops_too_much(profile):
            number = next(i for i, s in enumerate(profile["storages"]) if s["kind"] == "parameter" and s["uses"])
            return plan_for(profile, [{"storage": number, "copies": [], "drops": [{"op": 1, "after": True}], "fetches": []}])

        said = refusal(self, lambda: mw.run(mw.Scenario(SAMPLE, policies=["drops_too_much:budget=8GiB"])))
        self.assertIn("the plan cannot be carried out", said)

    def test_names(self):
        for name in ("checkpoint", "lru", "Large", "a b", ""):
            with self.subTest(name), self.assertRaises(mw.Error):
                mw.planner(lambda profile: None, name=name) if name else __import__(
                    "memwall._memwall", fromlist=["x"]
                ).add_planner("", "")

    def test_a_planner_is_no_pager(self):
        mw.planner(lambda profile: None, name="of_one_kind")
        self.assertIn("planner already", refusal(self, lambda: mw.pager(object, name="of_one_kind")))

    def test_a_journal_keeps_no_points_of_it(self):
        mw.planner(lambda profile: plan_for(profile, []), name="not_kept")
        with tempfile.TemporaryDirectory() as folder:
            journal = os.path.join(folder, "points.sqlite")
            ask = lambda: mw.sweep(SAMPLE, over=["policy=none|not_kept:budget=8GiB"], journal=journal)
            self.assertIn("not_kept", refusal(self, ask))


class Pagers(unittest.TestCase):
    def test_one_that_does_what_lru_does_is_lru(self):
        planned = []

        @mw.pager
        class like_lru:
            """Evicts what was not used for longest."""

            def plan(self, tiers, ops, storages, uses):
                planned.append((tiers, len(ops), len(storages), uses.names))

            def spill_order(self):
                return ["host"]

            def make_room(self, tier, bytes, view):
                assert tier == "hbm" and view.now >= 0 and view.free_bytes("host") > 0
                return [
                    ("drop", storage) if clean else ("evict", storage, "host")
                    for storage, _, _, clean in view.movable(bytes)
                ]

        base = mw.Scenario(SAMPLE, budget="4GiB")
        mine = mw.run(base.replace(pager="like_lru"))
        lru = mw.run(base.replace(pager="lru"))
        self.assertEqual(mine.ops.to_dict(), lru.ops.to_dict())
        self.assertEqual(mine.memory().to_dict(), lru.memory().to_dict())
        self.assertEqual(planned[0][0][0], "hbm")
        self.assertEqual(planned[0][3], ["op", "storage", "writes"])
        with ThreadPoolExecutor(4) as pool:
            times = set(pool.map(lambda s: mw.run(s, quick=True).step_time, [base.replace(pager="like_lru")] * 8))
        self.assertEqual(times, {lru.step_time})

    def test_what_it_raises_and_what_is_no_move(self):
        answers = {}

        @mw.pager
        class answers_anything:
            def make_room(self, tier, bytes, view):
                answers["view"] = view
                return answers["next"]()

        def ask():
            return mw.run(mw.Scenario(SAMPLE, budget="4GiB", pager="answers_anything"), quick=True)

        def raises():
            raise ZeroDivisionError("of the pager")

        answers["next"] = raises
        with self.assertRaisesRegex(ZeroDivisionError, "of the pager"):
            ask()
        self.assertIn("one call", refusal(self, lambda: answers["view"].now))
        for move in [("evict", 1), ("evict", -1, "host"), ("move", 1), "drop", ("evict", 2**40, "host")]:
            answers["next"] = lambda move=move: [move]
            self.assertIn("expected (\"evict\", storage, tier)", refusal(self, ask))
        answers["next"] = lambda: [("evict", 1, "hots")]
        self.assertIn("expected one of hbm", refusal(self, ask))
        answers["next"] = lambda: []
        self.assertFalse(ask().fits)

    def test_a_point_of_a_sweep_fails_with_what_it_raises(self):
        @mw.pager
        class breaks:
            def make_room(self, tier, bytes, view):
                raise RuntimeError("broken")

        sweep = mw.sweep(mw.Scenario(SAMPLE, budget="4GiB"), over=["pager=breaks|lru"], jobs=2)
        self.assertIn("broken", sweep.table["error"][0])
        self.assertIs(sweep.table["error"][1], None)

    def test_one_without_make_room_is_refused(self):
        @mw.pager
        class nothing:
            pass

        self.assertIn("make_room", refusal(self, lambda: mw.run(mw.Scenario(SAMPLE, pager="nothing"))))


if __name__ == "__main__":
    unittest.main()
