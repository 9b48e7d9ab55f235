#!/usr/bin/env python3
"""Are the times that a profiler measured given to the operators whose they are? No GPU: what it would say of one is
written down here, or added to what it really says of the CPU. Plain unittest: python timing_test.py"""

import json
import os
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

import torch  # noqa: E402

import memwall_capture  # noqa: E402
from memwall_capture import measure, profile  # noqa: E402
from memwall_capture.__main__ import Recorded, StepWatch  # noqa: E402
from memwall_capture.recorder import OpRecord  # noqa: E402
from memwall_capture.timing import Timing  # noqa: E402


def event(category, name, begin, end, thread=1, **arguments):
    return {"ph": "X", "cat": category, "name": name, "ts": begin, "dur": end - begin, "tid": thread, "args": arguments}


class Script:
    """A profile as it is written down, event by event."""

    def __init__(self, begin, end):
        self.events = [event("user_annotation", "memwall#step", begin, end)]
        self.correlation = 0

    def mark(self, number, begin, end, thread=1):
        self.events.append(event("user_annotation", f"memwall#{number}", begin, end, thread))

    def launch(self, begin, end, *work, thread=1, name="cudaLaunchKernel"):
        """`work`: (kernel, begin, end) on the device; several are one graph's."""
        self.correlation += 1
        self.events.append(event("cuda_runtime", name, begin, end, thread, correlation=self.correlation))
        for kernel, first, last in work:
            kind = "gpu_memcpy" if "Memcpy" in kernel else "kernel"
            self.events.append(event(kind, kernel, first, last, 7, correlation=self.correlation, stream=7))

    def wait(self, begin, end, name="cudaStreamSynchronize"):
        self.events.append(event("cuda_runtime", name, begin, end, 1, correlation=10_000 + int(begin)))

    def noise(self, *times):
        for at in times:
            self.events.append(event("cpu_op", "aten::view", at, at))

    def profile(self):
        return profile.Profile(self.events)


def op(mark, **fields):
    record = OpRecord("op", {"op": f"op{mark}", **fields})
    record.mark = mark
    return record


def copy(mark, **fields):
    record = OpRecord("copy", {"copy": 4, **fields})
    record.mark = mark
    return record


def times(record):
    return tuple(record.fields.get(key) for key in ("gap_us", "host_us", "duration_us"))


class Scripted(unittest.TestCase):
    def recorded(self, *kernels):
        """The run with the recorder: one mark of 10 us per operator, its launches inside."""
        script = Script(0, 10_000)
        for number, names in enumerate(kernels):
            begin = 100 * number
            script.mark(number, begin, begin + 90)
            for i, name in enumerate(names):
                at = begin + 10 * i + 1
                script.launch(at, at + 1, (name, 5000 + at, 5003 + at))
        return script

    def test_durations_are_those_of_an_operators_kernels(self):
        records = [op(0), op(1), op(2, kernels=0)]
        Timing(records, self.recorded(["a"], ["b", "c"], []).profile()).join()
        self.assertEqual([r.fields.get("duration_us") for r in records], [3, 6, None])
        self.assertEqual([r.fields.get("kernels") for r in records], [None, 2, 0])
        self.assertNotIn("host_us", records[0].fields, "the recorder makes the host slow")

    def test_a_launch_belongs_to_the_innermost_mark_of_its_thread(self):
        script = Script(0, 1000)
        script.mark(0, 10, 100)
        script.mark(1, 20, 30)
        script.mark(2, 15, 90, thread=2)
        script.launch(25, 26, ("inner", 200, 201))
        script.launch(50, 51, ("outer", 300, 302))
        script.launch(60, 61, ("other", 400, 404), thread=2)
        records = [op(0), op(1), op(2)]
        Timing(records, script.profile()).join()
        self.assertEqual([r.fields["duration_us"] for r in records], [2, 1, 4])

    def test_host_times_come_from_the_run_without_the_recorder(self):
        timed = Script(1000, 2000)
        timed.launch(1010, 1012, ("a", 1100, 1104))
        timed.launch(1020, 1023, ("b", 1104, 1110))
        timed.launch(1025, 1029, ("c", 1110, 1120))
        timed.launch(1040, 1041, ("d", 1120, 1121))
        records = [op(0), op(1), op(2)]
        Timing(records, self.recorded(["a"], ["b", "c"], ["d"]).profile(), timed.profile()).join()
        self.assertEqual([times(r) for r in records], [(10, 2, 4), (8, 3 + 2 + 4, 16), (11, 1, 1)])

    def test_what_the_profiler_costs_is_taken_out(self):
        timed = Script(1000, 2000)
        timed.noise(1002, 1004, 1015)
        timed.launch(1010, 1012, ("a", 1100, 1104))
        timed.launch(1020, 1021, ("b", 1104, 1105))
        records = [op(0), op(1)]
        Timing(records, self.recorded(["a"], ["b"]).profile(), timed.profile(), overhead=0.5).join()
        # Before the first: the step's own mark and two operators; before the second, one; each launch itself.
        self.assertEqual([times(r) for r in records], [(10 - 1.5, 1.5, 4), (8 - 0.5, 0.5, 1)])

    def test_waiting_is_nobodys_time(self):
        recorded = self.recorded(["a"], ["Memcpy DtoH"], ["b"])
        timed = Script(0, 1000)
        timed.launch(10, 12, ("a", 20, 30))
        timed.launch(15, 17, ("Memcpy DtoH", 30, 31), name="cudaMemcpyAsync")
        timed.wait(18, 40)
        timed.wait(45, 50, "cudaDeviceSynchronize")
        timed.wait(51, 55, "cudaEventSynchronize")
        timed.launch(61, 62, ("b", 70, 71))
        program = OpRecord("synchronize", {"synchronize": "device"})
        records = [op(0), copy(1, blocking=True), program, op(2)]
        timing = Timing(records, recorded.profile(), timed.profile()).join()
        self.assertEqual(times(records[1]), (3, 2 + 1, 1))
        self.assertEqual(program.fields["gap_us"], 5)
        self.assertEqual(times(records[3]), (1 + 6, 1, 1), "the time before the unknown wait is the next one's")
        self.assertIn("1 waits of the host are not the program's own", " ".join(timing.notes))

    def test_a_call_that_waits_for_room_in_the_queue_counts_as_a_usual_one(self):
        names = [[f"k{i}"] for i in range(9)]
        timed = Script(0, 10_000)
        for i in range(9):
            begin = 10 * i + 1 if i < 8 else 500
            timed.launch(begin, begin + (2 if i < 8 else 900), (f"k{i}", 1000 + i, 1001 + i))
        records = [op(i) for i in range(9)]
        timing = Timing(records, self.recorded(*names).profile(), timed.profile()).join()
        self.assertEqual(records[8].fields["host_us"], 2)
        self.assertIn("1 calls waited for room", " ".join(timing.notes))

    def test_what_fits_nowhere_is_counted(self):
        recorded = self.recorded(["a"], ["b"], ["c"])
        recorded.launch(2000, 2001, ("stranger", 8000, 8010))
        timed = Script(0, 1000)
        timed.launch(10, 12, ("a", 20, 30))
        timed.launch(18, 19, ("x", 30, 31))
        timed.launch(20, 22, ("x", 30, 31))
        timed.launch(30, 32, ("c", 31, 33))
        records = [op(0), op(1), op(2), op(3)]
        timing = Timing(records, recorded.profile(), timed.profile()).join()
        notes = " ".join(timing.notes)
        self.assertIn("1 launches, 10 us on the device, belong to no operator", notes)
        self.assertIn("2 launches of the recorded run and 2 of the timed run have no counterpart", notes)
        self.assertIn("2 operators that should run on the device put nothing there", notes)
        self.assertEqual(times(records[1]), (None, None, None))
        self.assertEqual(times(records[2]), (18, 2, 2), "a launch that nobody owns takes the host's time all the same")


NAMES = ("aten::addmm", "aten::mm", "aten::relu", "aten::threshold_backward", "aten::sum")
DURATIONS = {name: 10.0 + i for i, name in enumerate(NAMES)}


def as_on_a_device(events):
    """What the profiler says of the CPU, as if some operators had launched a kernel from their middle."""
    events = [e for e in events if e.get("ph") == "X"]
    operators = sorted((e for e in events if e.get("cat") == "cpu_op" and e["name"] in NAMES), key=lambda e: e["ts"])
    added = []
    for number, e in enumerate(operators):
        if number + 1 < len(operators) and operators[number + 1]["ts"] < e["ts"] + e["dur"]:
            continue  # the recorder's mode is inside of it, and then the operator itself
        middle = e["ts"] + e["dur"] / 2
        added.append(event("cuda_runtime", "cudaLaunchKernel", middle, middle + 0.5, e["tid"], correlation=number + 1))
        added.append(event("kernel", "kernel of " + e["name"], 1e12 + 100 * number, 1e12 + 100 * number +
                           DURATIONS[e["name"]], 7, correlation=number + 1))
    return events + added


class Executed(unittest.TestCase):
    """Really run and profiled, on the CPU."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = os.path.join(self.folder.name, "x.mwc")
        original = profile.Profile
        profile.Profile = lambda events: original(as_on_a_device(events))
        self.addCleanup(setattr, profile, "Profile", original)
        torch.manual_seed(0)
        self.model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        self.calls = 0

    def step(self):
        self.calls += 1
        self.optimizer.zero_grad()
        self.model(torch.ones(8, 64)).sum().backward()
        self.optimizer.step()

    def read(self):
        with open(self.path) as lines:
            header, *records = [json.loads(line) for line in lines]
        return header, records

    def needs_fake_device(self):
        try:
            with memwall_capture.fake():
                pass
        except memwall_capture.CaptureError as error:
            self.skipTest(str(error))

    def check(self):
        header, records = self.read()
        self.assertEqual(header["mode"], "real")
        known = [r for r in records if r.get("op") in NAMES]
        self.assertEqual({r["op"] for r in known}, set(NAMES))
        for r in known:
            self.assertEqual(r.get("duration_us"), DURATIONS[r["op"]], (r, header["notes"]))
            self.assertGreaterEqual(r["host_us"], 0)
            self.assertLessEqual(r["host_us"], 0.5)
        self.assertGreater(sum(r["gap_us"] for r in known), 0)
        self.assertEqual([r for r in records if "duration_us" in r and r["op"] not in NAMES], [])
        self.assertTrue(any("without the profiler" in note for note in header["notes"]), header["notes"])
        return header, records

    def test_the_recorded_program_is_the_one_without_a_gpu(self):
        memwall_capture.record(self.path, self.step, self.model, self.optimizer, device="cpu", warmup=1, repeats=2)
        self.assertEqual(self.calls, 1 + 2 + 2 + 1)
        _, records = self.check()
        self.needs_fake_device()
        with memwall_capture.fake():
            model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64)).to("cuda")
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, foreach=False)

            def step():
                optimizer.zero_grad()
                model(torch.ones(8, 64, device="cuda")).sum().backward()
                optimizer.step()

            step()
            fake = os.path.join(self.folder.name, "fake.mwc")
            memwall_capture.record(fake, step, model, optimizer, warmup=0)
        with open(fake) as lines:
            other = [json.loads(line) for line in lines][1:]
        keys, uses = ("op", "phase", "module", "forward", "flops", "bytes", "calls"), ("reads", "writes", "saves")

        def program(lines):
            """Without the order in which is found what lived before."""
            used = {s for r in lines for key in uses for s in r.get(key, [])}
            used |= {r["alloc"] for r in lines if "alloc" in r}
            names = {r["storage"]: r.get("label", "") if r.get("preexisting") else "" for r in lines
                     if r.get("storage") in used}  # what other tests have left behind is not the program's
            order = iter(range(len(names)))
            names = {number: name or f"made {next(order)}" for number, name in names.items()}

            def named(tensors):
                return [[t[0], t[1], names[t[2]], *t[3:]] for t in tensors or []]

            found = []
            for r in lines:
                if "op" in r:
                    found.append([r.get(key) for key in keys] + [[names[s] for s in r.get(key, [])] for key in uses] +
                                 [named(r.get("inputs")), named(r.get("outputs"))])
                elif "alloc" in r or r.get("free") in names:
                    found.append(["alloc" in r, names[r.get("alloc", r.get("free"))]])
            return found

        self.assertEqual(program(records), program(other))

    def test_the_command_line_measures_the_steps_before(self):
        watch = StepWatch(self.path, None, 5, "cpu")
        with self.assertRaises(Recorded):
            for _ in range(9):
                self.step()
                watch.after_step(self.optimizer, (), {})
        self.assertEqual(self.calls, 5)
        self.check()

    def test_a_step_that_runs_once_has_durations_and_says_what_it_lacks(self):
        with memwall_capture.session.CaptureMode("cpu") as mode:
            session = memwall_capture.session.Session(self.path, mode, self.model, self.optimizer).start()
            self.step()
            session.finish()
        header, records = self.read()
        self.assertTrue(any("not implemented: host times of a step that runs once" in n for n in header["notes"]))
        self.assertEqual({r["duration_us"] for r in records if r.get("op") == "aten::mm"}, {DURATIONS["aten::mm"]})
        self.assertFalse(any("host_us" in r or "gap_us" in r for r in records))

    def test_overhead_is_the_difference_per_event(self):
        measured = measure.StepTimes("cpu")
        measured.plain, measured.profiled = [(100, 120), (110, 130), (90, 110)], [(150, 170)]
        measured.profile = Script(0, 10)
        measured.profile.starts = [1, 2, 3, 4]
        self.assertEqual(measured.overhead(), 12.5)
        measured.profiled = [(80, 90)]
        self.assertEqual(measured.overhead(), 0)

    def test_a_mode_that_is_insisted_on(self):
        self.needs_fake_device()
        with self.assertRaisesRegex(memwall_capture.CaptureError, "runs outside of memwall_capture.fake"):
            with memwall_capture.step(self.path, mode="fake"):
                pass
        with memwall_capture.fake(), self.assertRaisesRegex(memwall_capture.CaptureError, "runs inside of"):
            with memwall_capture.step(self.path, mode="real"):
                pass
        with self.assertRaisesRegex(memwall_capture.CaptureError, "expected \"fake\" or \"real\""):
            with memwall_capture.step(self.path, mode="reel"):
                pass


if __name__ == "__main__":
    unittest.main()
