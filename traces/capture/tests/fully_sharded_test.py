#!/usr/bin/env python3
"""Does FullyShardedDataParallel (FSDP1) on fake tensors call what it calls in real processes? Beside collectives that were
recorded there (traces/samples/captures/collectives/recorded.json). Plain unittest, on the CPU."""

import json
import os
import sys
import unittest
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
COLLECTIVES = os.path.join(HERE, "..", "..", "samples", "captures", "collectives")
sys.path[:0] = [HERE, os.path.dirname(HERE), COLLECTIVES]

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

import memwall_capture  # noqa: E402
from capture_test import Capture, CaptureTest, setUpModule  # noqa: E402, F401
from cases import CASES  # noqa: E402
from record_collectives import made  # noqa: E402
from wrapped import wrap  # noqa: E402

STEPS = 4  # the last one is recorded, as in the real processes


def recorded():
    with open(os.path.join(COLLECTIVES, "recorded.json")) as file:
        return {case["name"]: case["collectives"] for case in json.load(file)["cases"]
                if case["name"].startswith("fsdp1-")}


class FullySharded(CaptureTest):
    def sharded(self, name):
        """(capture of the fourth step, the wrapped module) of a case, as one process of many."""
        case = CASES[name]
        from torch.testing._internal.distributed.fake_pg import FakeStore
        dist.init_process_group("fake", rank=0, world_size=case.ranks, store=FakeStore())
        try:
            with memwall_capture.fake(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                module, batch = made(case, "cuda")
                training = wrap(case, module, batch, "cuda")

                def step():
                    for number in range(case.passes):
                        with training.leave_out(case.sync if number < case.passes - 1 else ""):
                            training.backward(training.forward(batch))
                        training.end_pass()
                    training.update(case.clip)

                for _ in range(STEPS - 1):
                    step()
                with memwall_capture.step(self.path(), model=training.module, optimizer=training.optimizer):
                    step()
        finally:
            dist.destroy_process_group()
        return Capture(self.path())

    @staticmethod
    def collectives(capture):
        """As recorded.json has them; a group by its size. Of types the tensors' bytes say enough."""
        return [(r["collective"], r["bytes"], r["ranks"]) for r in capture.ops.values() if "collective" in r]

    def test_every_recorded_case_calls_the_same_in_the_same_order(self):
        cases = recorded()
        self.assertGreaterEqual(len(cases), 15)
        compared = 0
        for name, calls in cases.items():
            with self.subTest(name):
                expected = [(call["kind"], call["bytes"], len(call["ranks"])) for call in calls]
                found = self.sharded(name)
                self.assertEqual(self.collectives(found), expected)
                phases = [r["phase"] for r in found.ops.values() if "collective" in r]
                self.assertEqual(phases, [call["phase"] for call in calls])
                compared += len(expected)
        self.assertGreater(compared, 150)

    def test_shards_live_always_and_gathered_parameters_only_while_they_are_used(self):
        c = self.sharded("fsdp1-gpt")
        whole = 4 * sum(p.numel() for p in made(CASES["fsdp1-gpt"], "meta")[0].parameters())
        shards = c.bytes_of("parameter", preexisting=True)
        self.assertGreaterEqual(shards, whole // 2)
        self.assertLess(shards, whole // 2 + 4096)  # units are padded to the number of ranks
        self.assertEqual(c.bytes_of("optimizer_state"), 2 * shards)
        gathered = [s for s, storage in c.storages.items() if storage["label"] == "unsharded"]
        self.assertGreater(len(gathered), 0)
        freed = {r["free"] for r in c.records if "free" in r}
        self.assertEqual(set(gathered) - freed, set())
        self.assertEqual(c.bytes_of("gradient", preexisting=False) >= shards, True)
        self.assertTrue(all(r.get("stream", 0) != 0 for r in c.ops.values() if "collective" in r))

    def test_what_is_gathered_is_read_by_the_units_products(self):
        c = self.sharded("fsdp1-gpt")
        gathered = {s for s, storage in c.storages.items() if storage["label"] == "unsharded"}
        products = [r for r in c.ops.values() if r.get("class") == "gemm" and r["phase"] == "forward"]
        self.assertGreater(len(products), 0)
        for r in products:
            self.assertTrue(set(r["reads"]) & gathered, r)


if __name__ == "__main__":
    unittest.main()
