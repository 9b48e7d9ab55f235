#!/usr/bin/env python3
"""Does a captured step say what PyTorch does? Plain unittest, on the CPU: python capture_test.py"""

import collections
import contextlib
import functools
import gc
import gzip
import json
import os
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.dirname(HERE)
SAMPLES = os.path.join(os.path.dirname(PACKAGE), "samples", "captures")
sys.path[:0] = [PACKAGE, SAMPLES]

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch.optim.optimizer import _foreach_supported_types  # noqa: E402
from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts  # noqa: E402

import make_captures  # noqa: E402
import memwall_capture  # noqa: E402
import models  # noqa: E402
from memwall_capture import compiled, fake_device  # noqa: E402

RUNS = ("op", "copy", "collective")


def setUpModule():
    try:
        with memwall_capture.fake():
            pass
    except memwall_capture.CaptureError as error:
        raise unittest.SkipTest(str(error)) from error



class Capture:
    """A file, read again, with the rules that every one of them obeys checked."""

    def __init__(self, path):
        with (gzip.open(path, "rt") if path.endswith(".gz") else open(path)) as lines:
            self.header, *self.records = [json.loads(line) for line in lines]
        self.storages, self.ops = {}, {}
        self.made_by, live = {}, set()
        self.peak = self.end = 0
        for r in self.records:
            if "storage" in r:
                assert r["storage"] == len(self.storages), "storages are numbered as they appear"
                self.storages[r["storage"]] = r
                if r.get("preexisting"):
                    live.add(r["storage"])
                    self.end += r["bytes"] * (r["place"] == "hbm")
            elif "alloc" in r or "free" in r:
                number = r.get("alloc", r.get("free"))
                (live.remove if "free" in r else live.add)(number)
                size = self.storages[number]["bytes"] * (self.storages[number]["place"] == "hbm")
                self.end += -size if "free" in r else size
            elif any(kind in r for kind in RUNS):
                assert r["id"] == len(self.ops), "ops are numbered as they appear"
                assert "forward" not in r or r["forward"] < r["id"], "what is linked came before"
                for s in (*r["reads"], *r["writes"]):
                    assert s in live, f"{r} uses storage {s}, which does not live"
                for s in r["writes"]:
                    self.made_by.setdefault(s, r)
                self.ops[r["id"]] = r
            self.peak = max(self.peak, self.end)

    def bytes_of(self, kind, preexisting=None):
        return sum(s["bytes"] for s in self.storages.values()
                   if s["kind"] == kind and preexisting in (None, s.get("preexisting", False)))

    def named(self, name, phase=None):
        return [r for r in self.ops.values() if r.get("op") == "aten::" + name and phase in (None, r["phase"])]

    def flops(self, phase=None, classes=("gemm", "attention", "convolution")):
        return sum(r["flops"] for r in self.ops.values() if r.get("class") in classes and phase in (None, r["phase"]))

    def phases(self):
        return collections.Counter(r["phase"] for r in self.ops.values() if "op" in r and r.get("kernels") != 0)

    def saved(self, module):
        """Activations saved inside a module, each once: {storage: the op that saves it first}."""
        first = {}
        for r in self.ops.values():
            for s in r.get("saves", []):
                if self.storages[s]["kind"] == "activation":
                    first.setdefault(s, r)
        return {s: r for s, r in first.items() if (r.get("module", "") + ".").startswith(module + ".")}


class CaptureTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name="x.mwc"):
        return os.path.join(self.folder.name, name)

    def capture(self, make, step, optimizer=functools.partial(torch.optim.AdamW, lr=1e-3), warm=True):
        """The second step of `step(model, optimizer)`."""
        with memwall_capture.fake():
            model = make().to("cuda")
            optimizer = optimizer(model.parameters())
            if warm:
                step(model, optimizer)
            with memwall_capture.step(self.path(), model=model, optimizer=optimizer):
                step(model, optimizer)
        return Capture(self.path())


def train(model, optimizer, inputs=None):
    optimizer.zero_grad()
    model(torch.randn(2, 32, 64, device="cuda") if inputs is None else inputs).backward()
    optimizer.step()


def train_long(model, optimizer):
    """Activations weigh more than parameters."""
    train(model, optimizer, torch.randn(8, 256, 64, device="cuda"))


class Layers(torch.nn.Module):
    """Three transformer layers, each called through `around`."""

    def __init__(self, around=lambda layer, x: layer(x)):
        super().__init__()
        self.h = torch.nn.ModuleList(models.Block(64, 4, True, 0.1) for _ in range(3))
        self.around = around

    def forward(self, x):
        for layer in self.h:
            x = self.around(layer, x)
        return x.float().pow(2).mean()


class Sums(CaptureTest):
    def test_gpt2_has_its_parameters_gradients_state_and_products(self):
        path = self.path("gpt2_124m.mwc.gz")
        make_captures.capture("gpt2_124m", path)
        c = Capture(path)
        parameters = 124_439_808
        self.assertEqual(c.bytes_of("parameter"), 4 * parameters)
        self.assertEqual(c.bytes_of("gradient"), 4 * parameters)
        self.assertEqual(c.bytes_of("optimizer_state"), 8 * parameters)
        self.assertEqual(c.bytes_of("unknown"), 0)
        # Per token 2 FLOPs for every weight of a product (the output layer is one), and 4 s h per layer for attention.
        b, s, h, layers, vocabulary = 8, 1024, 768, 12, 50257
        forward = b * s * (2 * (12 * h * h * layers + vocabulary * h) + 4 * s * h * layers)
        self.assertEqual(c.flops("forward"), forward)
        # Backward: two products for each, and the scores of flash attention once more.
        self.assertEqual(c.flops("backward"), 2 * forward + b * s * 2 * s * h * layers)
        self.assertEqual(c.header["choices"], {"attention": "flash", "optimizer": "foreach", "autocast": "bf16"})
        self.assertEqual(len(c.named("_scaled_dot_product_flash_attention")), layers)
        self.assertEqual(c.end, 12 * parameters + 2 * b * s * 8, "a step leaves what it found")

    def test_a_sample_is_recorded_again_as_it_was(self):
        """Line by line; of the header all but versions. Another release of torch may have other operators."""
        path, committed = self.path("gpt2_124m.mwc.gz"), os.path.join(SAMPLES, "gpt2_124m.mwc.gz")
        made_with = Capture(committed).header["program"]["torch"].split("+")[0]
        if torch.__version__.split("+")[0] != made_with:
            self.skipTest(f"the sample was made with torch {made_with}, this is {torch.__version__}")
        make_captures.capture("gpt2_124m", path)
        files = []
        for name in (committed, path):
            with gzip.open(name, "rt") as lines:
                header, *records = lines
            files.append(([(k, v) for k, v in json.loads(header).items() if k != "program"], records))
        self.assertEqual(files[0][0], files[1][0])
        different = [(one, other) for one, other in zip(files[0][1], files[1][1]) if one != other]
        self.assertEqual(different[:3], [])
        self.assertEqual(len(files[0][1]), len(files[1][1]))

    def test_the_committed_samples_are_sound(self):
        for name, parameters, size in (("llama3_8b", 8_030_261_248, 2), ("bert_large", 335_174_458, 4),
                                       ("vit_l", 304_326_632, 4), ("resnet50", 25_557_032, 4),
                                       ("mixtral_small", None, 2)):
            with self.subTest(name):
                c = Capture(os.path.join(SAMPLES, name + ".mwc.gz"))
                if parameters:
                    self.assertEqual(c.bytes_of("gradient"), size * parameters)
                self.assertEqual(c.bytes_of("optimizer_state"), 2 * c.bytes_of("gradient"))

    def test_resnet50_has_its_published_products(self):
        c = Capture(os.path.join(SAMPLES, "resnet50.mwc.gz"))
        # 4.089 billion multiply-adds for one image of 224 x 224 (He et al. 2015 round to 3.8 with stride in conv1).
        self.assertEqual(c.flops("forward"), 128 * 2 * 4_089_184_256)

    def test_a_gpt_layer_saves_34sbh_5as2b_and_its_norms_statistics(self):
        s, b, h, a = 128, 2, 64, 4
        words = lambda: torch.randint(0, 100, (b, s), device="cuda")  # noqa: E731
        c = self.capture(lambda: models.Gpt2(3, h, a, s, 100, 0.1, models.PlainAttention).to(torch.bfloat16),
                         lambda model, optimizer: model(words(), words()).backward())
        saved = c.saved("h.1")
        statistics = [s for s, r in saved.items() if r["op"] == "aten::native_layer_norm" and len(
            self.shape(r, s)) == 3 and self.shape(r, s)[-1] == 1]
        self.assertEqual(len(statistics), 4)  # mean and 1/deviation of two norms, fp32: the formula leaves them out
        self.assertEqual(sum(c.storages[s]["bytes"] for s in statistics), 16 * s * b)
        total = sum(c.storages[s]["bytes"] for s in saved)
        self.assertEqual(total - 16 * s * b, 34 * s * b * h + 5 * a * s * s * b)

    @staticmethod
    def shape(record, storage):
        return next((t[0] for t in record["outputs"] if t[2] == storage), [])


class Structure(CaptureTest):
    def test_a_function_of_several_operators_saves_with_the_one_that_used_it(self):
        class Twice(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                y = x * 2
                z = y.exp()
                ctx.save_for_backward(y, z)
                return z.sin()

            @staticmethod
            def backward(ctx, gradient):
                y, z = ctx.saved_tensors
                return gradient * y * z

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = torch.nn.Linear(8, 8)

            def forward(self, x):
                return Twice.apply(self.linear(x)).sum()

        def step(net, optimizer):
            net(torch.randn(4, 8, device="cuda")).backward()
            optimizer.step()
            optimizer.zero_grad()

        c = self.capture(Net, step)
        mul, exp, sin = (c.named(name, "forward")[0] for name in ("mul", "exp", "sin"))
        self.assertEqual(mul["saves"], mul["writes"])
        self.assertEqual(sin["saves"], exp["writes"])  # mul, with which the function begins, has never seen it
        self.assertNotIn("saves", exp)

    def test_two_captures_are_the_same_bytes(self):
        files = []
        for _ in range(2):
            self.capture(Layers, train)
            with open(self.path(), "rb") as file:
                files.append(file.read())
        self.assertEqual(*files)

    def test_a_compressed_file_holds_no_time(self):
        with memwall_capture.fake():
            model = torch.nn.Linear(4, 4, device="cuda")
            with memwall_capture.step(self.path("a.mwc.gz"), model=model):
                model(torch.randn(2, 4, device="cuda"))
        with open(self.path("a.mwc.gz"), "rb") as file:
            self.assertEqual(file.read()[4:8], b"\0\0\0\0")

    def test_views_are_no_records_and_in_place_writes_name_the_storage_below(self):
        def step(_model, _optimizer):
            with torch.no_grad():
                x = torch.zeros(4, 6, device="cuda")
                x.t()[1:3].view(-1, 2, 2)[0].add_(1)
                x.mul_(2)

        c = self.capture(lambda: torch.nn.Linear(1, 1), step, warm=False)
        self.assertEqual([r["op"] for r in c.ops.values()], ["aten::zeros", "aten::add_", "aten::mul_"])
        self.assertEqual({(*r["writes"],) for r in c.ops.values()}, {(c.ops[0]["writes"][0],)})
        self.assertEqual(c.ops[1]["reads"], c.ops[0]["writes"])

    def test_pinned_batches_are_copied_and_empty_tensors_are_not(self):
        def step(_model, _optimizer):
            batch = torch.ones(4, 6).pin_memory()
            self.assertTrue(batch.is_pinned())
            batch.to("cuda", non_blocking=True)
            torch.empty(0).to("cuda")

        c = self.capture(lambda: torch.nn.Linear(1, 1), step, warm=False)
        self.assertEqual([(r["copy"], r["from"], r["blocking"]) for r in c.ops.values() if "copy" in r],
                         [(96, "host_pinned", False)])
        self.assertEqual([r["writes"] for r in c.named("_pin_memory")], [r["reads"] for r in c.ops.values()
                                                                         if "copy" in r])

    def test_views_count_for_the_operator_behind_them(self):
        def step(_model, _optimizer):
            x = torch.zeros(4, 6, device="cuda")
            x.t()[1:3].add_(1)
            x.mul_(2)

        c = self.capture(lambda: torch.nn.Linear(1, 1), step, warm=False)
        self.assertEqual([r.get("calls", 1) for r in c.ops.values()], [1, 3, 1])

    def test_the_last_line_counts_the_others(self):
        self.capture(Layers, train)
        with open(self.path()) as lines:
            header, *records = [json.loads(line) for line in lines]
        self.assertTrue(header["end"])
        self.assertEqual(records[-1], {"end": len(records) - 1})

    def test_backward_knows_its_forward_and_its_module(self):
        c = self.capture(Layers, train)
        products = [r for r in c.named("mm", "backward")]
        self.assertEqual(len(products), 3 * 4 * 2)
        for r in products:
            self.assertEqual(c.ops[r["forward"]]["op"], "aten::addmm")
            self.assertEqual(c.ops[r["forward"]]["module"], r["module"])
        self.assertEqual({r["module"].split(".")[0] for r in products}, {"h"})

    def test_without_a_model_it_is_found_by_its_call(self):
        with memwall_capture.fake():
            model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Linear(8, 2)).to("cuda")
            with memwall_capture.step(self.path()):
                model(torch.randn(2, 4, device="cuda")).sum().backward()
        c = Capture(self.path())
        self.assertEqual(sorted(s["label"] for s in c.storages.values() if s["kind"] == "parameter"),
                         ["0.bias", "0.weight", "1.bias", "1.weight"])
        self.assertEqual(c.bytes_of("gradient"), 4 * (40 + 18))


class Choices(CaptureTest):
    def attention(self, dtype, size, mask=None):
        with memwall_capture.fake():
            q = torch.randn(2, 4, 48, size, device="cuda", dtype=dtype, requires_grad=True)
            with memwall_capture.step(self.path()):
                mask = torch.ones(48, 48, device="cuda", dtype=torch.bool) if mask else None
                F.scaled_dot_product_attention(q, q, q, attn_mask=mask).sum().backward()
        return Capture(self.path())

    def test_attention_goes_where_cuda_sends_it(self):
        for dtype, size, mask, backend in ((torch.bfloat16, 64, False, "flash"), (torch.float16, 256, False, "flash"),
                                           (torch.bfloat16, 264, False, "efficient"),
                                           (torch.float32, 64, False, "efficient"),
                                           (torch.bfloat16, 64, True, "efficient"),
                                           (torch.float64, 64, False, "math")):
            with self.subTest(dtype=dtype, size=size, mask=mask):
                c = self.attention(dtype, size, mask)
                self.assertEqual(c.header["choices"]["attention"], backend)
        c = self.attention(torch.bfloat16, 64)
        call = c.named("_scaled_dot_product_flash_attention")[0]
        rows = [t for t in call["outputs"] if t[1] == "fp32"]
        self.assertEqual([t[0] for t in rows], [[2, 4, 48]])  # logsumexp
        self.assertNotIn("random", call)
        self.assertEqual(call["flops"], 4 * 2 * 4 * 48 * 48 * 64)

    def test_causal_attention_by_operators_is_recorded(self):
        with memwall_capture.fake(), torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            q = torch.randn(2, 4, 48, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True)
            with memwall_capture.step(self.path()):
                F.scaled_dot_product_attention(q, q, q, is_causal=True).sum().backward()
        c = Capture(self.path())
        self.assertEqual(c.header["choices"]["attention"], "math")
        self.assertEqual({r["dtype"] for r in c.named("bmm")}, {"fp32"})
        self.assertEqual(len(c.named("bmm")), 6)
        softmax = c.named("_safe_softmax")[0]
        scores = 2 * 4 * 48 * 48
        self.assertEqual((softmax["class"], softmax["kernels"]), ("reduction", 6))
        self.assertEqual((softmax["bytes"], softmax["flops"]), ((5 * 4 + 2) * scores, 8 * scores))

    def test_optimizers_use_lists_unless_fused_is_asked_for(self):
        self.assertEqual(self.capture(Layers, train).header["choices"]["optimizer"], "foreach")
        c = self.capture(Layers, train, functools.partial(torch.optim.AdamW, fused=True))
        self.assertEqual(c.header["choices"]["optimizer"], "fused")
        self.assertEqual(len(c.named("_fused_adamw_")), 1)
        c = self.capture(Layers, train, functools.partial(torch.optim.SGD, lr=0.1, momentum=0.9, foreach=False))
        self.assertEqual(c.header["choices"]["optimizer"], "for-loop")

    def test_autocast_casts_what_cuda_casts(self):
        def step(model, optimizer):
            with torch.autocast("cuda", dtype=torch.bfloat16):
                train(model, optimizer)

        c = self.capture(Layers, step)
        self.assertEqual({r["dtype"] for r in c.ops.values() if r.get("class") in ("gemm", "attention")}, {"bf16"})
        self.assertEqual({r["dtype"] for r in c.named("native_layer_norm")}, {"fp32"})


class Techniques(CaptureTest):
    def checkpointed(self, **options):
        def around(layer, x):
            return checkpoint(layer, x, **options)

        def step(model, optimizer):
            x = torch.randn(8, 256, 64, device="cuda", requires_grad=options.get("use_reentrant", False))
            train(model, optimizer, x)

        return self.capture(lambda: Layers(around), step)

    def test_checkpointing_is_recomputation_of_known_operators(self):
        plain = self.capture(Layers, train_long)
        for reentrant in (False, True):
            with self.subTest(reentrant=reentrant):
                c = self.checkpointed(use_reentrant=reentrant)
                again = [r for r in c.ops.values() if r["phase"] == "recompute"]
                self.assertEqual(c.phases()["forward"], plain.phases()["forward"])
                for r in again:
                    self.assertEqual(c.ops[r["forward"]]["op"], r["op"])
                    self.assertEqual(c.ops[r["forward"]]["module"], r["module"])
                    self.assertEqual(c.ops[r["forward"]]["phase"], "forward")
                self.assertEqual(len({r["forward"] for r in again}), len(again))
                products = [r for r in again if r["class"] in ("gemm", "attention")]
                self.assertEqual(len(products), 3 * 5)
                # Reentrant runs all of a layer again; the other stops at the last saved tensor, before the last sum.
                self.assertEqual(len(again), 3 * (12 if reentrant else 11))
                self.assertLess(c.peak, plain.peak)

    def test_selective_checkpointing_does_not_repeat_what_it_kept(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            c = self.checkpointed(use_reentrant=False, context_fn=functools.partial(
                create_selective_checkpoint_contexts, [torch.ops.aten.addmm.default]))
        self.assertGreater(c.phases()["recompute"], 0)
        self.assertEqual(c.named("addmm", "recompute"), [])

    def test_save_on_cpu_copies_out_and_back(self):
        def around(layer, x):
            with torch.autograd.graph.save_on_cpu(pin_memory=True):
                return layer(x)

        c = self.capture(lambda: Layers(around), train_long)
        out = [r for r in c.ops.values() if r.get("to") == "host_pinned"]
        back = [r for r in c.ops.values() if r.get("from") == "host_pinned"]
        self.assertGreater(len(out), 0)
        self.assertEqual(sum(r["copy"] for r in out), sum(r["copy"] for r in back))
        self.assertEqual({r["phase"] for r in out}, {"forward"})
        self.assertEqual({r["phase"] for r in back}, {"backward"})
        self.assertLess(c.peak, self.capture(Layers, train_long).peak)

    def test_accumulated_gradients_stay_one_storage(self):
        def step(model, optimizer):
            optimizer.zero_grad()
            for _ in range(2):
                model(torch.randn(2, 32, 64, device="cuda")).backward()
            optimizer.step()

        c = self.capture(Layers, step)
        once = self.capture(Layers, train)
        self.assertEqual(c.phases()["forward"], 2 * once.phases()["forward"])
        self.assertEqual(c.bytes_of("gradient"), once.bytes_of("gradient"))

    def test_a_value_read_back_makes_the_host_wait(self):
        def step(model, optimizer):
            train(model, optimizer)
            next(model.parameters()).sum().item()

        c = self.capture(Layers, step)
        copies = [r for r in c.ops.values() if "copy" in r]
        self.assertEqual([(r["copy"], r["from"], r["to"], r["blocking"]) for r in copies], [(4, "hbm", "host", True)])

    def test_streams_and_events_of_the_program_are_recorded(self):
        def step(model, _optimizer):
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                x = torch.ones(4, device="cuda")
            torch.cuda.current_stream().wait_stream(side)
            x.add_(1)
            torch.cuda.synchronize()

        c = self.capture(lambda: torch.nn.Linear(1, 1), step, warm=False)
        side = c.named("ones")[0]["stream"]
        self.assertNotEqual(side, 0)
        self.assertEqual([(r["event"], r["stream"]) for r in c.records if "event" in r],
                         [("record", 0), ("wait", side), ("record", side), ("wait", 0)])
        self.assertEqual([r["synchronize"] for r in c.records if "synchronize" in r], ["device"])
        self.assertEqual(c.storages[c.named("ones")[0]["writes"][0]]["stream"], side)


class Distributed(CaptureTest):
    RANKS = 4

    def setUp(self):
        super().setUp()
        from torch.testing._internal.distributed.fake_pg import FakeStore
        torch.distributed.init_process_group("fake", rank=0, world_size=self.RANKS, store=FakeStore())
        self.addCleanup(torch.distributed.destroy_process_group)

    def test_collectives_name_their_buffers_and_group(self):
        def step(_model, _optimizer):
            x, y = torch.ones(8, device="cuda"), torch.empty(32, device="cuda")
            torch.distributed.all_reduce(x)
            torch.distributed.all_gather_into_tensor(y, x)
            torch.distributed.reduce_scatter_tensor(x, y)

        c = self.capture(lambda: torch.nn.Linear(1, 1), step, warm=False)
        x, y = c.named("ones")[0]["writes"][0], max(c.storages)
        self.assertEqual([(r["collective"], r["bytes"], r["ranks"], r["reads"], r["writes"])
                          for r in c.ops.values() if "collective" in r],
                         [("all_reduce", 32, 4, [x], [x]), ("all_gather", 128, 4, [x], [y]),
                          ("reduce_scatter", 128, 4, [y], [x])])

    def test_fully_shard_gathers_every_layer_twice_and_scatters_its_gradients(self):
        from torch.distributed.device_mesh import init_device_mesh
        try:
            from torch.distributed.fsdp import fully_shard
        except ImportError:
            self.skipTest("this torch has no torch.distributed.fsdp.fully_shard")

        with memwall_capture.fake():
            model = Layers().to("cuda")
            mesh = init_device_mesh("cuda", (self.RANKS,))
            layer = sum(p.numel() for p in model.h[0].parameters())
            for block in model.h:
                fully_shard(block, mesh=mesh)
            fully_shard(model, mesh=mesh)
            optimizer = torch.optim.AdamW(model.parameters())
            train(model, optimizer)
            with memwall_capture.step(self.path(), model=model, optimizer=optimizer):
                train(model, optimizer)
        c = Capture(self.path())
        counts = collections.Counter((r["collective"], r["phase"], r["bytes"]) for r in c.ops.values()
                                     if "collective" in r)
        # The last layer is kept after forward in some versions, so that backward gathers two or three.
        self.assertEqual(counts["all_gather", "forward", 4 * layer], 3)
        self.assertIn(counts["all_gather", "backward", 4 * layer], (2, 3))
        self.assertEqual(counts["reduce_scatter", "backward", 4 * layer], 3)
        shard = 3 * 4 * layer // self.RANKS
        self.assertEqual(c.bytes_of("parameter", preexisting=True), shard)
        self.assertEqual(c.bytes_of("optimizer_state"), 2 * shard)
        self.assertEqual(c.bytes_of("gradient", preexisting=False), shard)
        self.assertTrue(all(r.get("stream", 0) != 0 for r in c.ops.values() if "collective" in r))

    def data_parallel(self, steps=2, passes=1, **options):
        """The last of `steps` steps of three layers, one MiB of gradients each; all passes but the last do not reduce."""
        def run(step):
            for _ in range(steps - 1):
                step()
            with memwall_capture.step(self.path(), model=model, optimizer=optimizer):
                step()

        with memwall_capture.fake():
            model = torch.nn.Sequential(*(torch.nn.Linear(512, 512, bias=False) for _ in range(3))).to("cuda")
            model.register_buffer("seen", torch.zeros(5, device="cuda"))
            model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[0], **options)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

            def step():
                optimizer.zero_grad()
                for number in range(passes):
                    with model.no_sync() if number < passes - 1 else contextlib.nullcontext():
                        model(torch.ones(4, 512, device="cuda")).sum().backward()
                optimizer.step()

            run(step)
        return Capture(self.path())

    def test_data_parallel_broadcasts_before_a_pass_behind_one_that_reduces(self):
        order = [r.get("op") or r["collective"] for r in self.data_parallel(3, passes=2).ops.values()]
        kinds = [name for name in order if name in ("aten::mm", "broadcast", "all_reduce")]
        self.assertEqual(kinds[:2], ["broadcast", "aten::mm"])
        self.assertEqual((kinds.count("broadcast"), kinds.count("all_reduce")), (1, 2))

    def test_data_parallel_reduces_buckets_while_backward_goes_on(self):
        c = self.data_parallel(3)
        order = [r.get("op") or r["collective"] for r in c.ops.values() if r["phase"] == "backward"
                 and (r.get("op") in ("aten::mm", "aten::mul", "aten::copy_") or "collective" in r)]
        # Each layer but the first has a gradient of its input, then of its weight. One MiB fills the first bucket; 25
        # MiB the next one, which is the last.
        mm, mul, copy = "aten::mm", "aten::mul", "aten::copy_"
        self.assertEqual(order, [mm, mm, mul, "all_reduce", mm, mm, mul, mm, mul, "all_reduce", copy, copy, copy])
        reduced = [r for r in c.ops.values() if r.get("collective") == "all_reduce"]
        self.assertEqual([r["bytes"] for r in reduced], [1 << 20, 2 << 20])
        self.assertEqual({r["ranks"] for r in reduced}, {self.RANKS})
        self.assertTrue(all(r["stream"] != 0 for r in reduced))
        waits = [r for r in c.records if r.get("event") == "wait"]
        self.assertEqual([w["stream"] for w in waits], [reduced[0]["stream"]] * 2 + [0])
        self.assertEqual(c.bytes_of("communication_buffer", preexisting=True), 3 << 20)
        broadcast = [r for r in c.ops.values() if r.get("collective") == "broadcast"]
        self.assertEqual([(r["bytes"], r["phase"]) for r in broadcast], [(20, "forward")])

    def test_data_parallel_rebuilds_its_buckets_once(self):
        c = self.data_parallel(2)
        made = [s["bytes"] for s in c.storages.values() if s["label"].startswith("bucket")]
        self.assertEqual(made, [3 << 20, 1 << 20, 2 << 20], "one bucket at first, then by size")
        self.assertEqual(len([r for r in self.data_parallel(1).ops.values() if r.get("collective") == "all_reduce"]), 1)

    def test_gradients_that_are_views_of_buckets_are_not_copied_back(self):
        c = self.data_parallel(3, gradient_as_bucket_view=True)
        self.assertEqual(c.named("copy_", "backward"), [])
        self.assertEqual([r["bytes"] for r in c.ops.values() if r.get("collective") == "all_reduce"], [1 << 20, 2 << 20])
        plain = self.data_parallel(3)
        self.assertLess(c.peak, plain.peak - (1 << 20))

    def test_what_data_parallel_cannot_do_here_is_refused_in_a_sentence(self):
        with self.assertRaisesRegex(memwall_capture.CaptureError, "find_unused_parameters is not implemented"):
            self.data_parallel(find_unused_parameters=True)


class Refusals(CaptureTest):
    def test_shapes_that_depend_on_data_are_refused_in_a_sentence(self):
        with memwall_capture.fake():
            x = torch.randn(4, device="cuda")
            with self.assertRaisesRegex(memwall_capture.CaptureError, "aten::index depends on data"):
                with memwall_capture.step(self.path()):
                    x[x > 0]
        self.assertFalse(os.path.exists(self.path()))

    def test_compiled_code_is_refused_where_torch_is_too_old_for_it(self):
        def twice(x):
            return 2 * x

        with unittest.mock.patch.object(compiled, "OLDEST", (99, 0)), memwall_capture.fake():
            model = torch.compile(torch.nn.Linear(4, 4, device="cuda"))
            with self.assertRaisesRegex(memwall_capture.CaptureError, "torch.compile.*expected 99.0 or newer.*--policy compile"):
                with memwall_capture.step(self.path(), model=model):
                    pass
            call = torch.compile(twice)
            x = torch.ones(4, device="cuda")
            with self.assertRaisesRegex(memwall_capture.CaptureError, "torch.compile"):
                with memwall_capture.step(self.path()):
                    call(x)
            with memwall_capture.step(self.path()):
                torch.compiler.disable(twice)(x)
        self.assertEqual([r["op"] for r in Capture(self.path()).ops.values()], ["aten::mul"])

    def test_a_torch_that_is_too_old_is_refused_with_what_is_needed(self):
        with unittest.mock.patch.object(fake_device, "OLDEST", (99, 0)):
            with self.assertRaisesRegex(memwall_capture.CaptureError, "found torch .*needs 2.10 or newer"):
                with memwall_capture.fake():
                    self.fail("it is not")

    def test_a_folder_that_is_not_there_is_said_before_the_step_runs(self):
        with memwall_capture.fake():
            x = torch.ones(4, device="cuda")
            with self.assertRaisesRegex(memwall_capture.CaptureError, "there is no folder .*missing"):
                with memwall_capture.step(os.path.join(os.path.dirname(self.path()), "missing", "a.mwc")):
                    self.fail("the step ran")
            with memwall_capture.step(self.path()):
                x * 2
        self.assertEqual(len(Capture(self.path()).ops), 1)

    def test_without_a_device_the_way_out_is_named(self):
        if torch.cuda.is_available():
            self.skipTest("there is a CUDA device")
        with self.assertRaisesRegex(memwall_capture.CaptureError, "memwall_capture.fake"):
            with memwall_capture.step(self.path()):
                pass

    def test_nothing_is_left_changed(self):
        def patched():
            return (torch.cuda.is_available, torch.autograd.backward, torch.autocast.__enter__, torch.Tensor.record_stream,
                    torch.autograd.Function.apply, list(_foreach_supported_types), gc.isenabled())

        before = patched()
        self.capture(Layers, train)
        after = patched()
        self.assertEqual(before, after)
        x = torch.randn(3, requires_grad=True)
        (x * x).sum().backward()
        self.assertTrue(torch.equal(x.grad, 2 * x.detach()))


class References(CaptureTest):
    """Behind which op does the program let go of what autograd keeps?"""

    def ends(self, forward):
        """{operator that made it: operator behind which the program refers to it no more}, of activations."""
        capture = self.capture(functools.partial(self.model, forward),
                               lambda m, optimizer: train(m, optimizer, torch.randn(4, 64, device="cuda")))
        return {capture.made_by[s]["op"].removeprefix("aten::"): r["op"].removeprefix("aten::")
                for r in capture.ops.values() for s in r.get("unreferenced", ()) if "op" in r and s in capture.made_by}

    @staticmethod
    def model(forward):
        model = torch.nn.Linear(64, 64)
        model.forward = functools.partial(forward, model)
        return model

    @staticmethod
    def chain(model, x):
        return F.linear(x, model.weight, model.bias).exp().sin().tanh().sum()

    def test_a_chain_holds_nothing(self):
        ends = self.ends(self.chain)
        self.assertEqual((ends["exp"], ends["tanh"]), ("sin", "sum"))

    def test_a_variable_holds_until_it_is_assigned_anew(self):
        def forward(model, x):
            h = F.linear(x, model.weight, model.bias).exp()
            y = h.sin()
            h = y.tanh()
            return h.sigmoid().sum()

        ends = self.ends(forward)
        self.assertEqual(ends["exp"], "tanh", "h names it until tanh's result takes the name")
        self.assertEqual(ends["tanh"], "sum", "forward returns behind that")

    def test_a_view_and_a_container_hold_as_well(self):
        def forward(model, x):
            kept = [F.linear(x, model.weight, model.bias).exp().view(-1)]
            y = kept[0].sin().tanh()
            kept.clear()
            return y.sigmoid().sum()

        self.assertEqual(self.ends(forward)["exp"], "tanh")

    def test_what_the_program_holds_through_backward_ends_there(self):
        def forward(model, x):
            model.kept = F.linear(x, model.weight, model.bias).exp()
            return model.kept.sin().sum()

        def step(model, optimizer):
            train(model, optimizer, torch.randn(4, 64, device="cuda"))
            model.kept = None

        capture = self.capture(functools.partial(self.model, forward), step)
        (kept,) = [s for s, r in capture.made_by.items() if r.get("op") == "aten::exp"]
        (op,) = [r for r in capture.ops.values() if kept in r.get("unreferenced", ())]
        self.assertEqual(op["phase"], "optimizer")


class CommandLine(CaptureTest):
    SCRIPT = """
import sys, torch
model = torch.nn.Linear(8, 4).to("cuda" if torch.cuda.is_available() else "cpu")
optimizer = torch.optim.Adam(model.parameters())
for i in range(int(sys.argv[1])):
    optimizer.zero_grad()
    model(torch.randn(2, 8).to("cuda")).sum().backward()
    optimizer.step()
"""

    def run_script(self, steps, *options, out=None):
        script = self.path("train.py")
        with open(script, "w") as file:
            file.write(self.SCRIPT)
        command = [sys.executable, "-m", "memwall_capture", "--out", out or self.path(), *options, script, str(steps)]
        return subprocess.run(command, env={**os.environ, "PYTHONPATH": PACKAGE}, capture_output=True, text=True)

    def test_a_script_is_recorded_as_it_is(self):
        done = self.run_script(5)
        self.assertEqual(done.returncode, 0, done.stderr)
        c = Capture(self.path())
        self.assertEqual(c.bytes_of("optimizer_state"), 2 * 4 * 36)
        self.assertEqual([r["copy"] for r in c.ops.values() if "copy" in r], [2 * 8 * 4])

    def test_what_a_step_is_made_of_is_written_down_if_it_is_said(self):
        self.assertNotIn("samples_per_step", self.header_after())
        header = self.header_after("--samples", "2", "--tokens", "16")
        self.assertEqual((header["samples_per_step"], header["tokens_per_step"]), (2, 16))
        self.assertIn("--samples is 0", self.run_script(5, "--samples", "0").stderr)

    def header_after(self, *options):
        done = self.run_script(5, *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return Capture(self.path()).header

    def test_a_folder_that_is_not_there_is_told_before_the_program_runs(self):
        done = self.run_script(5, out=os.path.join(self.path("nowhere"), "x.mwc.gz"))
        self.assertEqual(done.returncode, 2)
        self.assertIn("there is no such folder", done.stderr)

    def test_a_script_that_ends_early_is_an_error(self):
        done = self.run_script(1)
        self.assertEqual(done.returncode, 6)
        self.assertIn("ended after 1 steps", done.stderr)
        self.assertFalse(os.path.exists(self.path()))


if __name__ == "__main__":
    unittest.main()
