"""Is `mw.run` what `memwall run` is? The same bytes, the same sentences, the same file."""

import json
import math
import os
import pickle
import tempfile
import unittest

from program import SAMPLE, program, refusal, sentence

import memwall as mw

SCENARIOS = {
    "as it is": (dict(), []),
    "policies": (
        dict(policies=["checkpoint:mode=full", "offload:what=optimizer,to=host"]),
        ["--policy", "checkpoint:mode=full", "--policy", "offload:what=optimizer,to=host"],
    ),
    "another machine": (
        dict(machine=mw.Machine("h100-sxm-80gb").set("pcie=gen4")),
        ["--machine", "h100-sxm-80gb", "--set", "pcie=gen4"],
    ),
    "a setting of the measured machine": (dict(settings=["gpu.hbm.bandwidth=2TB/s"]), ["--set", "gpu.hbm.bandwidth=2TB/s"]),
    "a budget that is too small": (dict(budget="4GiB"), ["--budget", "4GiB"]),
    "a pager": (dict(budget="4GiB", pager="lru"), ["--budget", "4GiB", "--pager", "lru"]),
    "an allocator": (
        dict(allocator_settings="expandable_segments:True", repeat=2, scale=["host=0.5"]),
        ["--alloc-conf", "expandable_segments:True", "--steps", "2", "--scale", "host=0.5"],
    ),
}


class Runs(unittest.TestCase):
    def test_json_is_that_of_the_program(self):
        step = mw.Step(SAMPLE)
        for name, (words, options) in SCENARIOS.items():
            with self.subTest(name):
                outcome = mw.run(mw.Scenario(step, **words))
                code = 0 if outcome.fits else 3
                printed, _ = program("run", SAMPLE, *options, "--format", "json", "--no-provenance", code=code)
                self.assertEqual(outcome.json(), printed)

    def test_a_line_is_the_scenario(self):
        for name, (words, _) in SCENARIOS.items():
            with self.subTest(name):
                scenario = mw.Scenario(SAMPLE, **words)
                self.assertEqual(mw.Scenario(scenario.line()), scenario)
                self.assertEqual(pickle.loads(pickle.dumps(scenario)), scenario)
                outcome = mw.run(scenario.line())
                printed, _ = program(
                    "run", scenario.line(), "--format", "json", "--no-provenance", code=0 if outcome.fits else 3
                )
                self.assertEqual(outcome.json(), printed)

    def test_fields_are_those_of_the_json(self):
        outcome = mw.run(mw.Scenario(SAMPLE, policies=["checkpoint"]))
        data = json.loads(outcome.json())
        self.assertEqual(outcome.step_time, data["step_time_s"])
        self.assertEqual(outcome.peak_bytes, data["tiers"]["hbm"]["peak_reserved_bytes"])
        self.assertEqual(outcome["links.pcie_h2d.bytes"], data["links"]["pcie_h2d"]["bytes"])
        self.assertEqual(outcome.verdict, data["verdict"])
        with self.assertRaises(KeyError):
            outcome["tiers.hbm.peak"]
        self.assertIs(outcome.get("nothing"), None)

    def test_a_quick_run_has_the_same_times_and_nothing_over_time(self):
        scenario = mw.Scenario(SAMPLE, policies=["offload:what=activations"])
        whole, quick = mw.run(scenario), mw.run(scenario, quick=True)
        self.assertEqual(quick.step_time, whole.step_time)
        self.assertEqual(quick.peak_bytes, whole.peak_bytes)
        self.assertEqual(quick.ops.to_dict(), whole.ops.to_dict())
        for ask in (quick.memory, quick.live, quick.figure, lambda: quick.residency):
            self.assertIn("keeps nothing over time", refusal(self, ask))

    def test_refusals_are_the_sentences_of_the_program(self):
        for words, options, code in [
            (dict(policies=["chekpoint"]), ["--policy", "chekpoint"], 2),
            (dict(policies=["checkpoint:mode=al"]), ["--policy", "checkpoint:mode=al"], 2),
            (dict(machine="h100"), ["--machine", "h100"], 2),
            (dict(settings=["gpu.hbm.bandwidth=4GB"]), ["--set", "gpu.hbm.bandwidth=4GB"], 2),
            (dict(budget="all"), ["--budget", "all"], 2),
            (dict(pager="checkpoint"), ["--pager", "checkpoint"], 2),
        ]:
            with self.subTest(options):
                _, told = program("run", SAMPLE, *options, code=code)
                self.assertEqual(refusal(self, lambda: mw.run(mw.Scenario(SAMPLE, **words))), sentence(told))

    def test_a_damaged_file_is_told_as_input(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "step.mwt")
            with open(SAMPLE, "rb") as whole, open(path, "wb") as half:
                half.write(whole.read()[:5000])
            _, told = program("run", path, code=6)
            with self.assertRaises(mw.Error) as caught:
                mw.run(path)
            self.assertEqual((str(caught.exception), caught.exception.cause), (sentence(told), "input"))

    def test_words_of_another_type_are_refused(self):
        with self.assertRaises(TypeError):
            mw.run(mw.Scenario(SAMPLE, repeat="twice"))
        with self.assertRaises(TypeError):
            mw.Scenario("step=a.mwt", policies=["checkpoint"])
        with self.assertRaises(TypeError):
            mw.Step("a", "b", batch=2)

    def test_a_run_file_is_the_run(self):
        with tempfile.TemporaryDirectory() as folder:
            mine, theirs = os.path.join(folder, "mine.h5"), os.path.join(folder, "theirs.h5")
            outcome = mw.run(mw.Scenario(SAMPLE, policies=["checkpoint"]))
            outcome.write(mine)
            program("run", SAMPLE, "--policy", "checkpoint", "--no-provenance", "-o", theirs)
            with open(mine, "rb") as a, open(theirs, "rb") as b:
                self.assertEqual(a.read(), b.read())
            again = mw.read_run(mine)
            self.assertEqual(again.step_time, outcome.step_time)
            self.assertEqual(again.memory().to_dict(), outcome.memory().to_dict())
            self.assertEqual(again.live().to_dict(), outcome.live().to_dict())
            self.assertEqual(again.figure("memory").svg, outcome.figure("memory").svg)
            with open(mine, "r+b") as file:
                file.seek(5000)
                file.write(b"damage")
            self.assertIn("mine.h5", refusal(self, lambda: mw.read_run(mine)))


class Tables(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.outcome = mw.run(mw.Scenario(SAMPLE, policies=["offload:what=activations,to=host"]))

    def test_ops_are_those_of_the_export(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "run.h5")
            self.outcome.write(path)
            printed, _ = program("export", path, "--to", "csv", "-o", "-")
        import csv

        rows = list(csv.DictReader(printed.splitlines()))
        ops = self.outcome.ops
        self.assertEqual(len(ops), len(rows))
        self.assertEqual(ops.names, list(rows[0]))
        for name in ops.names:
            for mine, theirs in zip(ops[name], (row[name] for row in rows)):
                if isinstance(mine, float):
                    self.assertTrue(math.isclose(mine, float(theirs), rel_tol=1e-12, abs_tol=1e-6), name)
                else:
                    self.assertEqual("" if mine is None else str(mine), theirs, name)

    def test_memory_over_time_has_the_peaks_of_the_summary(self):
        memory = self.outcome.memory("hbm")
        self.assertEqual(max(memory["reserved_bytes"]), self.outcome["tiers.hbm.peak_reserved_bytes"])
        self.assertEqual(max(memory["allocated_bytes"]), self.outcome["tiers.hbm.peak_allocated_bytes"])
        self.assertEqual(memory["time_s"], sorted(memory["time_s"]))

    def test_what_lives_is_what_the_memory_holds(self):
        memory = list(self.outcome.memory("hbm").rows())
        whole = self.outcome.data["tiers"]["hbm"]["peak_by_kind"]
        at_peak = {}
        for row in self.outcome.live().rows():
            at_peak[row["kind"]] = at_peak.get(row["kind"], 0) + row["bytes"]
        self.assertEqual(at_peak, {kind: size for kind, size in whole.items() if size > 0})
        # Between two rows nothing changes.
        for before, after in list(zip(memory, memory[1:]))[:: max(1, len(memory) // 20)]:
            if before["time_s"] == after["time_s"]:
                continue
            middle = (before["time_s"] + after["time_s"]) / 2
            self.assertEqual(sum(self.outcome.live(middle)["bytes"]), before["requested_bytes"])

    def test_the_timeline_has_each_call_and_each_work(self):
        timeline, ops = self.outcome.timeline, self.outcome.ops
        work = [row for row in timeline.rows() if row["kind"] == "work"]
        self.assertEqual(len(work), sum(end is not None for end in ops["device_end_us"]))
        self.assertTrue(all(row["begin_s"] <= row["end_s"] for row in work))

    def test_bytes_over_links(self):
        for link in ("pcie_h2d", "pcie_d2h"):
            rates = list(self.outcome.link(link).rows())
            carried = sum(a["bytes_per_s"] * (b["time_s"] - a["time_s"]) for a, b in zip(rates, rates[1:]))
            self.assertTrue(math.isclose(carried, self.outcome[f"links.{link}.bytes"], rel_tol=1e-3), link)

    def test_unknown_parts_are_told(self):
        self.assertIn("expected one of hbm", refusal(self, lambda: self.outcome.memory("hmb")))
        self.assertIn("Did you mean 'pcie_h2d'?", refusal(self, lambda: self.outcome.link("pcie_hd")))
        self.assertIn("unknown", refusal(self, lambda: self.outcome.figure("timelime")))

    def test_figures_are_those_of_render(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "run.h5")
            self.outcome.write(path)
            for view in ("timeline", "memory", "tiers", "links"):
                printed, _ = program("render", path, "--view", view, "-o", "-")
                self.assertEqual(self.outcome.figure(view).svg, printed, view)
            printed, _ = program("render", path, "--view", "timeline", "--range", "step:1", "--theme", "dark", "-o", "-")
            self.assertEqual(self.outcome.figure("timeline", range="step:1", dark=True).svg, printed)
            self.outcome.figure("links").save(os.path.join(folder, "links.svg"))
            with self.assertRaises(ValueError):
                self.outcome.figure("links").save(os.path.join(folder, "links.png"))

    def test_notebooks_show_it(self):
        self.assertIn("<table>", self.outcome._repr_html_())
        self.assertIn("rows", self.outcome.ops._repr_html_())
        self.assertTrue(self.outcome.figure("memory")._repr_svg_().startswith("<?xml"))


if __name__ == "__main__":
    unittest.main()
