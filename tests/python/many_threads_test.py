"""Is what many threads ask of one step at once what one asks, and free of races? `.ci/long thread` runs it under TSan."""

import gc
import random
import threading
import unittest
from concurrent.futures import ThreadPoolExecutor

from program import ROOT, SAMPLE

import memwall as mw

SNAPSHOT = str(ROOT / "tests" / "fuzz" / "corpus" / "snapshot" / "settings.pickle")
SMALL = "gpt2-124m:layers=1,batch=2,sequence=64"


@mw.pager
class of_many_threads:
    """Evicts what was not used for longest."""

    def make_room(self, tier, bytes, view):
        return [("drop", s) if clean else ("evict", s, "host") for s, _, _, clean in view.movable(bytes)]


def questions(step, small):
    """Every part of the package that computes: name and what to call; the answers are values that can be compared."""
    base = mw.Scenario(step, "a100-sxm-80gb")
    whole = mw.run(base)
    sweep = mw.sweep(base, over=["policy=none|checkpoint"], jobs=1)
    return {
        "run": lambda: mw.run(base.replace(policies=["checkpoint:mode=full"])).json(),
        "quick run": lambda: mw.run(base.replace(scale=["kernels=1.5"]), quick=True).step_time,
        "pager": lambda: mw.run(base.replace(budget="4GiB", pager="of_many_threads"), quick=True).step_time,
        "sweep": lambda: mw.sweep(base, over=["policy=none|checkpoint", "pcie=gen3|gen4"], jobs=3).json(),
        "fit": lambda: mw.fit(base, over="budget=4..40GiB:4", jobs=2, largest=False).json(),
        "plan": lambda: mw.plan(mw.Scenario(small, "a100-sxm-40gb"), smallest=False, jobs=2).json(),
        "snapshot": lambda: mw.Snapshot(SNAPSHOT).json(),
        "facts": lambda: sorted(step.facts("a100-sxm-80gb")["files"]),
        "machine": lambda: mw.Machine("h100-sxm-80gb").numbers().to_dict(),
        "names": lambda: (mw.machines().to_dict(), mw.workloads().to_dict(), mw.policies().to_dict()),
        # Of one object that all threads hold.
        "tables": lambda: (whole.ops["device_end_us"], whole.live()["bytes"], whole.memory()["reserved_bytes"]),
        "json of one": lambda: (whole.json(), sweep.json(), sweep.table.to_dict(), sweep.best),
        "figure of one": lambda: (whole.figure("memory").svg, sweep.figure("line").svg),
        "columns": lambda: [len(t) for t in (whole.timeline, whole.storages, whole.residency, whole.link("pcie_h2d"))],
    }


class ManyThreads(unittest.TestCase):
    def test_each_gets_what_one_gets(self):
        asked = questions(mw.Step(SAMPLE), mw.Step(SMALL))
        alone = {name: ask() for name, ask in asked.items()}
        # Steps that nobody has read yet: threads meet while they read.
        asked = questions(mw.Step(SAMPLE), mw.Step(SMALL))
        names = [name for name in asked for _ in range(3)]
        random.Random(7).shuffle(names)
        with ThreadPoolExecutor(8) as pool:
            together = list(pool.map(lambda name: (name, asked[name]()), names))
        for name, answer in together:
            self.assertEqual(answer, alone[name], name)

    def test_a_step_that_ends_while_others_begin(self):
        expected = mw.run(mw.Scenario(SAMPLE, "a100-sxm-80gb"), quick=True).step_time
        begin, found = threading.Barrier(6), []

        def ask():
            begin.wait()
            for _ in range(4):
                step = mw.Step(SAMPLE)
                found.append(mw.run(mw.Scenario(step, "a100-sxm-80gb"), quick=True).step_time)
                del step
                gc.collect()

        threads = [threading.Thread(target=ask) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, [expected] * 24)


if __name__ == "__main__":
    unittest.main()
