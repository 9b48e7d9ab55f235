"""Is `mw.Snapshot` what `memwall memory` is?"""

import csv
import os
import tempfile
import unittest

from program import ROOT, program, refusal, sentence

import memwall as mw

FOLDER = ROOT / "tests" / "fuzz" / "corpus" / "snapshot"
FILES = ["settings.pickle", "failed_request.pickle", "pending_blocks.pickle", "expandable_segments.pickle"]


class Snapshots(unittest.TestCase):
    def test_json_is_that_of_the_program(self):
        for name in FILES:
            with self.subTest(name):
                path = str(FOLDER / name)
                snapshot = mw.Snapshot(path)
                printed, _ = program("memory", path, "--format", "json", code=0 if snapshot.fits else 3)
                self.assertEqual(snapshot.json(), printed)

    def test_questions(self):
        path = str(FOLDER / "settings.pickle")
        snapshot = mw.Snapshot(path, settings="", capacity="1GiB", search=True)
        printed, _ = program("memory", path, "--alloc-conf", "", "--capacity", "1GiB", "--search", "--format", "json")
        self.assertEqual(snapshot.json(), printed)

    def test_the_timeline_is_that_of_the_program(self):
        path = str(FOLDER / "settings.pickle")
        with tempfile.TemporaryDirectory() as folder:
            place = os.path.join(folder, "timeline.csv")
            program("memory", path, "--timeline", place)
            with open(place) as file:
                rows = list(csv.DictReader(file))
        timeline = mw.Snapshot(path).timeline
        self.assertEqual(timeline.names, list(rows[0]))
        for name in timeline.names:
            self.assertEqual([str(value) for value in timeline[name]], [row[name] for row in rows])

    def test_figures_are_those_of_render(self):
        path = str(FOLDER / "settings.pickle")
        for view in ("memory", "blocks"):
            printed, _ = program("render", path, "--view", view, "-o", "-")
            self.assertEqual(mw.Snapshot(path).figure(view).svg, printed)

    def test_refusals(self):
        path = str(FOLDER / "settings.pickle")
        for words, options, code in [
            (dict(device=9), ["--device", "9"], 2),
            (dict(settings="max_split=1"), ["--alloc-conf", "max_split=1"], 2),
            (dict(capacity="1 parsec"), ["--capacity", "1 parsec"], 2),
        ]:
            with self.subTest(options):
                _, told = program("memory", path, *options, code=code)
                self.assertEqual(refusal(self, lambda: mw.Snapshot(path, **words)), sentence(told))


if __name__ == "__main__":
    unittest.main()
