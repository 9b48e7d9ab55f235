"""Is a sweep on somebody else's workers the sweep, whatever becomes of a worker, and does nothing run twice that was done?"""

import multiprocessing
import os
import shutil
import signal
import sqlite3
import tempfile
import threading
import unittest
from concurrent.futures import Future, ProcessPoolExecutor

from program import SAMPLE

import memwall as mw
from memwall.workers import run_part

OVER = ["policy=none|checkpoint|offload:what=activations", "pcie=16..64GB/s:log:5"]


def points_in(journal):
    connection = sqlite3.connect(journal)
    try:
        return connection.execute("SELECT count(*), count(DISTINCT key) FROM point").fetchone()
    finally:
        connection.close()


class Counting:
    """An executor in this process that counts what it is given, and may fail."""

    def __init__(self, fails_at=None):
        self.shards, self.fails_at = [], fails_at

    def submit(self, function, *arguments):
        self.shards.append(arguments[1])
        future = Future()
        if len(self.shards) == self.fails_at:
            future.set_exception(OSError("the worker's disk is full"))
        else:
            future.set_result(function(*arguments))
        return future


class Workers(unittest.TestCase):
    def test_two_processes_give_the_answer_of_one(self):
        here = mw.sweep(SAMPLE, over=OVER, where="fits", objective="step_time")
        told = []
        with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as executor:
            there = mw.sweep(
                SAMPLE,
                over=OVER,
                where="fits",
                objective="step_time",
                client=executor,
                progress=lambda done, of, failed: told.append((done, of)),
            )
        self.assertEqual(there.json(), here.json())
        self.assertEqual(there.kept, 15)  # nothing was run here
        self.assertEqual(told[-1], (15, 15))

    def test_each_point_runs_once_and_is_kept(self):
        client = Counting()
        with tempfile.TemporaryDirectory() as folder:
            journal = os.path.join(folder, "points.sqlite")
            sweep = mw.sweep(SAMPLE, over=OVER, client=client, journal=journal)
            self.assertEqual(points_in(journal), (15, 15))
            self.assertEqual(sweep.kept, 15)
        self.assertEqual(len(set(client.shards)), len(client.shards))
        self.assertEqual(sorted(client.shards, key=lambda s: int(s.split("/")[0])), [f"{i}/15" for i in range(15)])

    def test_names_of_files_are_those_of_the_folder_that_asks(self):
        here = os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            for name in ("step.mwt", "other.mwt"):
                shutil.copyfile(SAMPLE, os.path.join(folder, name))
            with open(os.path.join(folder, "links.study"), "w", encoding="utf-8") as file:
                file.write('step: "step.mwt"\nover: "pcie=gen3|gen4"\n')
            try:
                os.chdir(folder)
                with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"),
                                         initializer=os.chdir, initargs=("/",)) as elsewhere:
                    for client in (Counting(), elsewhere):
                        of_step = mw.sweep("step.mwt", over="pcie=gen3|gen4", client=client)
                        of_axis = mw.sweep(over="step=step.mwt|other.mwt", client=client)
                        of_study = mw.sweep(study="links.study", client=client)
                        self.assertEqual((of_step.kept, of_axis.kept, of_study.kept), (2, 2, 2), client)
                        self.assertEqual(of_step.json(), mw.sweep("step.mwt", over="pcie=gen3|gen4").json())
                    with self.assertRaisesRegex(mw.Error, "nothing.mwt"):
                        mw.sweep("nothing.mwt", over="pcie=gen3|gen4", client=elsewhere)
            finally:
                os.chdir(here)

    def test_what_the_journal_has_does_not_run_again(self):
        with tempfile.TemporaryDirectory() as folder:
            journal = os.path.join(folder, "points.sqlite")
            mw.sweep(SAMPLE, over=OVER, client=Counting(), journal=journal)
            connection = sqlite3.connect(journal)
            connection.execute("UPDATE point SET error = 'kept as it is'")
            connection.commit()
            connection.close()
            again = mw.sweep(SAMPLE, over=OVER, client=Counting(), journal=journal)
            self.assertEqual(again.failures, [("kept as it is", 15)])

    def test_a_part_that_takes_long_does_not_keep_others_from_the_journal(self):
        class Held(Counting):
            def submit(self, function, *arguments):
                if not self.shards:
                    self.shards.append(arguments[1])
                    return Future()  # never done
                return super().submit(function, *arguments)

        def stop(done, of, failed):
            if done == 14:
                raise KeyboardInterrupt

        with tempfile.TemporaryDirectory() as folder:
            journal = os.path.join(folder, "points.sqlite")
            with self.assertRaises(KeyboardInterrupt):
                mw.sweep(SAMPLE, over=OVER, client=Held(), journal=journal, progress=stop)
            self.assertEqual(points_in(journal), (14, 14))

    def test_a_journal_that_is_there_grows(self):
        with tempfile.TemporaryDirectory() as folder:
            journal = os.path.join(folder, "points.sqlite")
            mw.sweep(SAMPLE, over=["policy=none|chen"], journal=journal)
            mw.sweep(SAMPLE, over=OVER, client=Counting(), journal=journal)
            self.assertEqual(points_in(journal), (17, 17))

    def test_what_a_worker_raises_is_raised(self):
        with tempfile.TemporaryDirectory() as folder:
            journal = os.path.join(folder, "points.sqlite")
            with self.assertRaisesRegex(OSError, "disk is full"):
                mw.sweep(SAMPLE, over=OVER, client=Counting(fails_at=4), journal=journal)
            self.assertEqual(points_in(journal), (14, 14))  # what others have done is not lost

    def test_points_that_fail_are_failures(self):
        over = "policy=none|batch:to=7,from=3"
        failures = mw.sweep(SAMPLE, over=over).failures
        self.assertEqual(len(failures), 1)
        self.assertEqual(mw.sweep(SAMPLE, over=over, client=Counting()).failures, failures)

    def test_what_is_no_client_is_refused(self):
        with self.assertRaisesRegex(TypeError, "found <object.*submit"):
            mw.sweep(SAMPLE, over=OVER, client=object())

    def test_a_part_knows_its_points(self):
        part = run_part(
            {
                "scenario": mw.Scenario(SAMPLE)._words,
                "over": OVER,
                "zip": [],
                "sample": "",
                "where": [],
                "objective": "",
                "show": [],
                "file": "",
                "preset": "",
                "jobs": 1,
                "journal": "",
                "accept_gaps": False,
                "written_out": False,
            },
            "0/4",
            "",
            os.getcwd(),
        )
        with tempfile.TemporaryDirectory() as folder:
            journal = os.path.join(folder, "part.sqlite")
            with open(journal, "wb") as file:
                file.write(part)
            self.assertEqual(points_in(journal), (4, 4))


try:
    from dask.distributed import Client, LocalCluster
except ImportError:
    Client = None


@unittest.skipIf(Client is None, "no dask.distributed here; .ci/long tools installs it")
class Dask(unittest.TestCase):
    def test_a_worker_killed_midway_loses_nothing(self):
        over = [OVER[0], "pcie=16..64GB/s:log:40"]
        with tempfile.TemporaryDirectory() as folder:
            journal = os.path.join(folder, "points.sqlite")
            with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
                with Client(cluster) as client:
                    victim = next(iter(client.run(os.getpid).values()))
                    killed = threading.Event()

                    def progress(done, of, failed):
                        if done >= of // 4 and not killed.is_set():
                            killed.set()
                            os.kill(victim, signal.SIGKILL)

                    sweep = mw.sweep(SAMPLE, over=over, client=client, journal=journal, progress=progress)
            self.assertTrue(killed.is_set())
            self.assertEqual(points_in(journal), (120, 120))
        self.assertEqual(sweep.json(), mw.sweep(SAMPLE, over=over).json())


if __name__ == "__main__":
    unittest.main()
