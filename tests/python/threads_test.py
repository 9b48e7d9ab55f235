"""Several threads, many runs: the same bytes, the lock released, the memory given back."""

import gc
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor

from program import ROOT, SAMPLE

import memwall as mw

SNAPSHOT = str(ROOT / "tests" / "fuzz" / "corpus" / "snapshot" / "settings.pickle")
POLICIES = ["checkpoint", "checkpoint:mode=full", "offload:what=activations", "offload:what=optimizer,to=host"]


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


class Threads(unittest.TestCase):
    def test_threads_get_the_bytes_that_one_gets(self):
        step = mw.Step(SAMPLE)
        scenarios = [mw.Scenario(step, policies=[policy]) for policy in POLICIES] * 4
        alone = [mw.run(mw.Scenario(SAMPLE, policies=[policy])).json() for policy in POLICIES] * 4
        with ThreadPoolExecutor(8) as pool:
            together = list(pool.map(lambda scenario: mw.run(scenario).json(), scenarios))
        self.assertEqual(together, alone)

    def test_other_threads_go_on_meanwhile(self):
        counted, stop = [0], threading.Event()

        def count():
            while not stop.is_set():
                counted[0] += 1
                time.sleep(0.001)

        thread = threading.Thread(target=count)
        thread.start()
        begun, before = time.monotonic(), counted[0]
        mw.sweep(SAMPLE, over=["scale.kernels=1..2:300"], jobs=1)
        seconds, ticks = time.monotonic() - begun, counted[0] - before
        stop.set()
        thread.join()
        self.assertGreater(ticks, 10 * seconds, f"{ticks} ticks in {seconds} s: the lock was held")

    def test_memory_returns(self):
        def use(times):
            step = mw.Step(SAMPLE)
            for i in range(times):
                outcome = mw.run(mw.Scenario(step, policies=[POLICIES[i % 4]]), quick=i % 2 == 0)
                outcome.ops, outcome.json()
                if i % 10 == 1:  # of a run that is not quick
                    outcome.live().to_dict(), outcome.figure("memory"), outcome.data
                    mw.sweep(step, over="policy=none|checkpoint", jobs=2).table.to_dict()
                    mw.Snapshot(SNAPSHOT).timeline.to_dict()
                if i % 20 == 19:
                    mw.fit(step, over="budget=4..40GiB:3", largest=False).table
                    step = mw.Step(SAMPLE)
            gc.collect()

        use(40)
        after_40 = resident_bytes()
        use(200)
        grown = resident_bytes() - after_40
        self.assertLess(grown, 8 << 20, f"{grown} bytes more after 200 runs")

    def test_memory_of_a_large_step_goes_back_with_it(self):
        mw.run(SAMPLE, quick=True)
        gc.collect()
        before = resident_bytes()
        step = mw.Step("llama3-8b", batch=1, sequence=2048)
        outcome = mw.run(mw.Scenario(step, "h100-sxm-80gb", repeat=40), quick=True)
        held = resident_bytes() - before
        self.assertGreater(held, 32 << 20, "the step is large enough to tell")
        del outcome, step
        gc.collect()
        kept = resident_bytes() - before
        self.assertLess(kept, held / 4, f"{kept} of {held} bytes stay")


if __name__ == "__main__":
    unittest.main()
