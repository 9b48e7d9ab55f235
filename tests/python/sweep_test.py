"""Are `mw.sweep`, `mw.fit` and `mw.plan` what the program's verbs are? And do they stop when they are told to?"""

import _thread
import json
import os
import tempfile
import threading
import unittest

from program import SAMPLE, program, refusal, sentence

import memwall as mw

OVER = ["policy=none|checkpoint|offload:what=activations", "pcie=16..64GB/s:log:3"]
OPTIONS = ["--over", OVER[0], "--over", OVER[1], "--where", "fits", "--objective", "step_time"]


class Sweeps(unittest.TestCase):
    def test_json_is_that_of_the_program(self):
        sweep = mw.sweep(mw.Step(SAMPLE), over=OVER, where="fits", objective="step_time")
        printed, _ = program("sweep", SAMPLE, *OPTIONS, "--no-journal", "--format", "json")
        self.assertEqual(sweep.json(), printed)
        self.assertEqual(sweep.best["point"], json.loads(printed)["best"])

    def test_any_number_of_threads_gives_the_same(self):
        step = mw.Step(SAMPLE)
        texts = {mw.sweep(step, over=OVER, jobs=jobs).json() for jobs in (1, 2, 5)}
        self.assertEqual(len(texts), 1)

    def test_axes_as_a_mapping(self):
        mapped = {"policy": ["none", "checkpoint", "offload:what=activations"], "pcie": "16..64GB/s:log:3"}
        self.assertEqual(mw.sweep(SAMPLE, over=mapped).json(), mw.sweep(SAMPLE, over=OVER).json())

    def test_the_table_has_a_row_per_point(self):
        sweep = mw.sweep(SAMPLE, over=[*OVER, "budget=1GiB|40GiB"])
        table = sweep.table
        self.assertEqual(len(table), 18)
        self.assertEqual(table.names[:4], ["point", "policy", "pcie", "budget"])
        for row, scenario in zip(table.rows(), sweep.scenarios):
            self.assertEqual(row["scenario"], scenario.line())
        row = next(table.rows(4, 5))
        self.assertAlmostEqual(mw.run(sweep.scenarios[4], quick=True).step_time, row["step_time_s"], places=14)

    def test_refusals_are_the_sentences_of_the_program(self):
        for words, options in [
            (dict(over=["policy=none|chekpoint"]), ["--over", "policy=none|chekpoint"]),
            (dict(over=["pice=16..64GB/s:3"]), ["--over", "pice=16..64GB/s:3"]),
            (dict(over=["batch=1..4"], objective="step_tme"), ["--over", "batch=1..4", "--objective", "step_tme"]),
        ]:
            with self.subTest(options):
                _, told = program("sweep", SAMPLE, *options, "--no-journal", code=2)
                self.assertEqual(refusal(self, lambda: mw.sweep(SAMPLE, **words)), sentence(told))

    def test_a_journal_keeps_points(self):
        with tempfile.TemporaryDirectory() as folder:
            journal = os.path.join(folder, "points.sqlite")
            first = mw.sweep(SAMPLE, over=OVER, journal=journal)
            again = mw.sweep(SAMPLE, over=OVER, journal=journal)
            self.assertEqual((first.kept, again.kept), (0, 9))
            self.assertEqual(again.json(), first.json())

    def test_progress_is_told_and_may_stop_it(self):
        told = []
        mw.sweep(SAMPLE, over=OVER, progress=lambda done, of, failed: told.append((done, of, failed)))
        self.assertEqual(told[-1], (9, 9, 0))
        self.assertEqual([done for done, _, _ in told], list(range(10)))

        class Enough(Exception):
            pass

        def stop(done, of, failed):
            if done == 3:
                raise Enough()

        with self.assertRaises(Enough):
            mw.sweep(SAMPLE, over=OVER, progress=stop)

    def test_ctrl_c_stops_a_sweep_and_its_journal_has_what_was_finished(self):
        with tempfile.TemporaryDirectory() as folder:
            journal = os.path.join(folder, "points.sqlite")
            over = ["scale.kernels=1..2:4000"]
            timer = threading.Timer(0.5, _thread.interrupt_main)
            timer.start()
            try:
                with self.assertRaises(KeyboardInterrupt):
                    mw.sweep(SAMPLE, over=over, journal=journal)
            finally:
                timer.cancel()
            kept = mw.sweep(SAMPLE, over=["scale.kernels=1..2:4000"], journal=journal, sample="random:1").kept
            self.assertIn(kept, (0, 1))
            self.assertGreater(os.path.getsize(journal), 10000)

    def test_studies_and_presets(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "links.study")
            with open(path, "w") as file:
                file.write(f'step: "{SAMPLE}"\nover: "policy=none|checkpoint"\nobjective: "step_time"\n')
            printed, _ = program("sweep", path, "--no-journal", "--format", "json")
            self.assertEqual(mw.sweep(study=path).json(), printed)
        printed, _ = program("sweep", SAMPLE, "--preset", "compare-policies", "--no-journal", "--format", "json", code=0)
        self.assertEqual(mw.sweep(SAMPLE, preset="compare-policies").json(), printed)
        self.assertIn("links", refusal(self, lambda: mw.sweep(SAMPLE, preset="linsk")))

    def test_figures_are_those_of_the_program(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "line.svg")
            program("sweep", SAMPLE, *OPTIONS, "--no-journal", "--figure", f"{path}=line:x=pcie,y=step_time")
            with open(path, encoding="utf-8") as file:
                drawn = mw.sweep(SAMPLE, over=OVER, where="fits", objective="step_time").figure("line:x=pcie,y=step_time")
                self.assertEqual(drawn.svg, file.read())


class Fits(unittest.TestCase):
    def test_json_is_that_of_the_program(self):
        for words, options in [
            (dict(over="budget=4..40GiB:10", largest=False), ["--over", "budget=4..40GiB:10", "--smallest"]),
            (dict(over="batch=1..64", where="step_time < 200ms"), ["--over", "batch=1..64", "--where", "step_time < 200ms"]),
        ]:
            with self.subTest(options):
                fit = mw.fit(SAMPLE, **words)
                printed, _ = program("fit", SAMPLE, *options, "--no-journal", "--format", "json")
                self.assertEqual(fit.json(), printed)
                self.assertEqual(fit.value, json.loads(printed)["value"])
                self.assertEqual(len(fit.table), len(json.loads(printed)["probes"]))

    def test_nothing_holds(self):
        fit = mw.fit(SAMPLE, over="budget=1..2GiB:3")
        self.assertIs(fit.value, None)
        self.assertIs(fit.number, None)


SMALL = "gpt2-124m:layers=2,batch=4,sequence=256"


class Plans(unittest.TestCase):
    def test_json_and_file_are_those_of_the_program(self):
        with tempfile.TemporaryDirectory() as folder:
            path, mine = os.path.join(folder, "plan.json"), os.path.join(folder, "mine.json")
            scenario = mw.Scenario(SMALL, "a100-sxm-40gb")
            plan = mw.plan(scenario, budget="1300MiB", smallest=False)
            options = ["--machine", "a100-sxm-40gb", "--budget", "1300MiB", "--no-smallest"]
            printed, _ = program("plan", SMALL, *options, "--format", "json", "-o", path)
            self.assertEqual(plan.json(), printed)
            self.assertEqual(plan.policies, ["plan:budget=1300MiB"])
            plan.write(mine)
            with open(path) as theirs, open(mine) as own:
                self.assertEqual(own.read(), theirs.read())
            carried_out = mw.run(scenario.replace(plan=mine), quick=True)
            self.assertAlmostEqual(carried_out.step_time, plan.step_time, places=9)
            self.assertGreater(plan.step_time, mw.run(scenario, quick=True).step_time)
            self.assertLess(mw.run(plan.scenario, quick=True).peak_bytes, mw.run(scenario, quick=True).peak_bytes)

    def test_refusals_are_the_sentences_of_the_program(self):
        for words, options in [
            (dict(budget="8"), ["--budget", "8"]),
            (dict(budget="8GiB,search=0"), ["--budget", "8GiB,search=0"]),
            (dict(robust="0.2"), ["--robust", "0.2"]),
            (dict(tiers="hsot"), ["--tiers", "hsot"]),
        ]:
            with self.subTest(options):
                _, told = program("plan", SAMPLE, *options, code=2)
                self.assertEqual(refusal(self, lambda: mw.plan(SAMPLE, **words)), sentence(told))
        scenario = mw.Scenario(SAMPLE, policies=["plan:budget=8GiB"])
        _, told = program("plan", SAMPLE, "--policy", "plan:budget=8GiB", code=2)
        self.assertEqual(refusal(self, lambda: mw.plan(scenario)), sentence(told))

    def test_none_is_found(self):
        plan = mw.plan(mw.Scenario(SMALL, "a100-sxm-40gb"), budget="100MiB", smallest=False)
        self.assertFalse(plan.fits)
        self.assertGreater(plan.missing_bytes, 0)


if __name__ == "__main__":
    unittest.main()
