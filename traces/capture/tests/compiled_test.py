#!/usr/bin/env python3
"""Does the capture of a compiled step say what Inductor's program does? Plain unittest, on the CPU: python compiled_test.py"""

import collections
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

import memwall_capture  # noqa: E402
from capture_test import Capture, CaptureTest, Layers, train, train_long  # noqa: E402
from memwall_capture import compiled  # noqa: E402


def setUpModule():
    if compiled.version() < compiled.OLDEST:
        raise unittest.SkipTest(f"this is torch {torch.__version__}; compiled code needs {compiled.OLDEST}")
    with memwall_capture.fake():
        pass


def kernels(capture, phase=None):
    """Launches that Inductor generated."""
    return [r for r in capture.ops.values() if r.get("compiled") and phase in (None, r["phase"])]


def products(capture, phase):
    return sorted(r["flops"] for r in capture.ops.values() if r.get("class") == "gemm" and r["phase"] == phase)


class Compiled(CaptureTest):
    def compiled(self, make=Layers, step=train_long, **options):
        """The second step of a model that torch.compile compiles as a whole."""
        def around(model, optimizer):
            step(self.call, optimizer)

        def build():
            model = make()
            self.call = torch.compile(model, **options)
            return model

        return self.capture(build, around)

    def function(self, function, *tensors, options=None):
        """What a compiled function runs, behind a call that compiles it."""
        with memwall_capture.fake():
            call = torch.compile(function, **(options or {}))
            inputs = [torch.empty(size, device="cuda", requires_grad=grad) for size, grad in tensors]
            call(*inputs)
            with memwall_capture.step(self.path()):
                out = call(*inputs)
                if any(grad for _, grad in tensors):
                    out.sum().backward()
        return Capture(self.path())


class Programs(Compiled):
    def test_a_chain_is_one_kernel_that_moves_its_ends(self):
        c = self.function(lambda x, b: F.gelu(x + b).sin(), ((64, 1024), False), ((1024,), False))
        (kernel,) = c.ops.values()
        self.assertEqual((kernel["class"], kernel["compiled"], kernel["calls"]), ("elementwise", True, 0))
        self.assertTrue(kernel["op"].startswith("triton::poi_fused_add_gelu_sin"), kernel["op"])
        n = 64 * 1024
        self.assertEqual(kernel["bytes"], 4 * (n + 1024 + n))
        self.assertEqual(kernel["flops"] % n, 0)
        self.assertGreaterEqual(kernel["flops"], 3 * n)
        self.assertEqual(([t[0] for t in kernel["inputs"]], [t[0] for t in kernel["outputs"]]),
                         ([[64, 1024], [1024]], [[64, 1024]]))

    def test_a_sum_in_two_kernels_is_counted_once(self):
        c = self.function(lambda x: x.sum(), ((1 << 20,), False))
        first, second = c.ops.values()
        self.assertEqual((first["class"], second["class"]), ("reduction", "reduction"))
        self.assertEqual(first["flops"], 1 << 20)
        self.assertLess(second["flops"], 1 << 12)
        self.assertEqual(second["reads"], first["writes"])

    def test_a_step_has_the_products_of_the_eager_one_and_less_of_the_rest(self):
        eager, c = self.capture(Layers, train_long), self.compiled()
        for phase in ("forward", "backward"):
            self.assertEqual(products(c, phase), products(eager, phase))
        for kind in ("parameter", "gradient", "optimizer_state"):
            self.assertEqual(c.bytes_of(kind), eager.bytes_of(kind), kind)
        self.assertEqual(c.bytes_of("unknown"), 0)
        self.assertEqual(c.end, eager.end)
        self.assertLess(c.peak, eager.peak)
        # In backward Inductor writes sums over rows and columns as kernels that eager has inside of one operator.
        count = [sum(1 for r in capture.ops.values() if r["phase"] == "forward") for capture in (eager, c)]
        self.assertLess(count[1], 0.75 * count[0])
        moved = [sum(r["bytes"] for r in capture.ops.values() if r.get("class") not in ("gemm", "attention") and
                     r["phase"] in ("forward", "backward")) for capture in (eager, c)]
        self.assertLess(moved[1], 0.9 * moved[0])

    def test_libraries_are_called_and_kernels_are_not_dispatched(self):
        c = self.compiled()
        self.assertEqual({r.get("calls", 1) for r in kernels(c)}, {0})
        calls = [r for r in c.ops.values() if r.get("class") in ("gemm", "attention")]
        self.assertEqual({(r.get("compiled"), r.get("calls", 1)) for r in calls}, {(True, 0)})
        self.assertEqual(len([r for r in calls if r["class"] == "attention" and r["phase"] == "forward"]), 3)

    def test_modules_and_the_operators_of_forward_are_known(self):
        c = self.compiled()
        self.assertEqual({r["module"] for r in c.ops.values() if r.get("class") == "gemm"},
                         {f"h.{i}.{name}" for i in range(3) for name in ("attention.qkv", "attention.out", "up", "down")})
        for r in c.ops.values():
            if r["phase"] == "backward" and r.get("class") == "gemm":
                forward = c.ops[r["forward"]]
                self.assertEqual(forward["phase"], "forward")
                self.assertTrue(r["module"].startswith(forward.get("module", "")), (r, forward))

    def test_what_is_kept_is_what_the_partitioner_keeps(self):
        def keeps(function):
            c = self.function(function, ((256, 512), True))
            return sum(c.storages[s]["bytes"] for s in {s for r in c.ops.values() for s in r.get("saves", [])})

        # Eager keeps sin's and cos's operands and exp's result: the first and the last are enough.
        self.assertEqual(keeps(lambda x: x.sin().cos().exp()), 2 * 4 * 256 * 512)

    def test_what_runs_again_is_linked_to_what_ran(self):
        def norm_of_product(x, w):
            return (F.layer_norm(x, (512,)) @ w).sin()

        c = self.function(norm_of_product, ((256, 512), True), ((512, 512), True))
        again = [r for r in c.ops.values() if r["phase"] == "recompute"]
        for r in again:
            self.assertEqual(c.ops[r["forward"]]["phase"], "forward")
        self.assertEqual(len(products(c, "backward")), 2)

    def test_memory_that_is_used_again_is_written_before_it_is_read(self):
        c = self.compiled()
        written = {s for s, storage in c.storages.items() if storage.get("preexisting")}
        for r in c.ops.values():
            self.assertEqual(set(r["reads"]) - written, set(), r)
            written |= set(r["writes"])

    def test_two_captures_are_the_same_bytes(self):
        files = []
        for _ in range(2):
            self.compiled()
            with open(self.path(), "rb") as file:
                files.append(file.read())
        self.assertEqual(*files)

    def test_nothing_is_compiled_anew_in_the_step(self):
        with memwall_capture.fake() as device:
            model = Layers().to("cuda")
            call, optimizer = torch.compile(model), torch.optim.AdamW(model.parameters())
            train(call, optimizer)
            before = len(device.compiler.launches)
            self.assertGreater(before, 0)
            with memwall_capture.step(self.path(), model=model, optimizer=optimizer):
                train(call, optimizer)
            self.assertEqual(len(device.compiler.launches), before)


class Uses(Compiled):
    def test_layers_that_are_compiled_one_by_one(self):
        def make():
            model = Layers()
            for layer in model.h:
                layer.compile()
            return model

        c, eager = self.capture(make, train_long), self.capture(Layers, train_long)
        by_layer = collections.Counter(r["module"].split(".")[1] for r in kernels(c, "forward"))
        self.assertEqual(len(by_layer), 3)
        self.assertEqual(len(set(by_layer.values())), 1, by_layer)
        self.assertEqual(products(c, "backward"), products(eager, "backward"))
        self.assertEqual(len(c.named("pow", "forward")), 1)  # behind the layers, not compiled

    def test_the_module_that_torch_compile_gives_back_may_be_named(self):
        with memwall_capture.fake():
            model = torch.compile(Layers().to("cuda"))
            optimizer = torch.optim.AdamW(model.parameters())
            train(model, optimizer)
            with memwall_capture.step(self.path(), model=model, optimizer=optimizer):
                train(model, optimizer)
        c = Capture(self.path())
        self.assertIn("h.0.up.weight", {s["label"] for s in c.storages.values() if s["kind"] == "parameter"})
        self.assertIn("h.0.up", {r.get("module") for r in c.ops.values()})

    def test_graph_breaks_split_the_program(self):
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.one, self.two = torch.nn.Linear(64, 64), torch.nn.Linear(64, 64)

            def forward(self, x):
                x = F.gelu(self.one(x))
                torch._dynamo.graph_break()
                return F.gelu(self.two(x)).sum()

        c = self.compiled(Net, lambda call, optimizer: train(call, optimizer, torch.randn(128, 64, device="cuda")))
        self.assertEqual([r["module"] for r in c.ops.values() if r.get("class") == "gemm" and r["phase"] == "forward"],
                         ["one", "two"])
        self.assertGreaterEqual(len(kernels(c, "forward")), 2)
        self.assertGreaterEqual(len(kernels(c, "backward")), 2)

    def test_a_checkpoint_around_compiled_layers_runs_them_again(self):
        def make():
            model = Layers(lambda layer, x: checkpoint(layer, x, use_reentrant=False))
            for layer in model.h:
                layer.compile()
            return model

        c = self.capture(make, train_long)
        again = [r for r in c.ops.values() if r["phase"] == "recompute" and r.get("class") in ("gemm", "attention")]
        self.assertEqual(len(again), 3 * 5)
        for r in again:
            self.assertEqual(c.ops[r["forward"]]["op"], r["op"])
            self.assertEqual(c.ops[r["forward"]]["module"], r["module"])

    def test_autocast_is_compiled_too(self):
        def step(call, optimizer):
            with torch.autocast("cuda", dtype=torch.bfloat16):
                train_long(call, optimizer)

        c = self.compiled(step=step)
        self.assertEqual({r["dtype"] for r in c.ops.values() if r.get("class") in ("gemm", "attention")}, {"bf16"})
        self.assertEqual(c.header["choices"]["attention"], "flash")

    def test_a_script_that_compiles_is_recorded_as_it_is(self):
        import subprocess
        script = self.path("train.py")
        with open(script, "w") as file:
            file.write("import torch\n"
                       "model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU(), torch.nn.Linear(8, 4)).to('cuda')\n"
                       "call, optimizer = torch.compile(model), torch.optim.Adam(model.parameters())\n"
                       "for _ in range(3):\n"
                       "    optimizer.zero_grad()\n"
                       "    call(torch.randn(2, 8).to('cuda')).sum().backward()\n"
                       "    optimizer.step()\n")
        done = subprocess.run([sys.executable, "-m", "memwall_capture", "--out", self.path(), script], text=True,
                              env={**os.environ, "PYTHONPATH": os.path.dirname(HERE)}, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(len(kernels(Capture(self.path()))), 0)


class Distributed(Compiled):
    RANKS = 4

    def setUp(self):
        super().setUp()
        from torch.testing._internal.distributed.fake_pg import FakeStore
        torch.distributed.init_process_group("fake", rank=0, world_size=self.RANKS, store=FakeStore())
        self.addCleanup(torch.distributed.destroy_process_group)

    def wrapped(self, wrap):
        """The third step of `wrap(model)`, which gives back what is called."""
        with memwall_capture.fake():
            model = Layers().to("cuda")
            call = wrap(model)
            optimizer = torch.optim.AdamW(model.parameters())
            for _ in range(2):
                train_long(call, optimizer)
            with memwall_capture.step(self.path(), model=model, optimizer=optimizer):
                train_long(call, optimizer)
        return Capture(self.path())

    def test_sharded_layers_that_are_compiled_gather_and_scatter_as_ever(self):
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        def sharded(compile_layers):
            def wrap(model):
                mesh = init_device_mesh("cuda", (self.RANKS,))
                for layer in model.h:
                    if compile_layers:
                        layer.compile()
                    fully_shard(layer, mesh=mesh)
                return fully_shard(model, mesh=mesh)
            return wrap

        def collectives(capture):
            return [(r["collective"], r["bytes"], r["phase"]) for r in capture.ops.values() if "collective" in r]

        c = self.wrapped(sharded(True))
        eager = self.wrapped(sharded(False))
        self.assertEqual(collectives(c), collectives(eager))
        self.assertGreater(len(kernels(c, "backward")), 0)
        self.assertEqual(products(c, "backward"), products(eager, "backward"))

    def test_a_compiled_data_parallel_model_reduces_and_knows_its_inputs(self):
        c = self.wrapped(lambda model: torch.compile(torch.nn.parallel.DistributedDataParallel(model, device_ids=[0])))
        self.assertEqual([r["collective"] for r in c.ops.values() if "collective" in r], ["all_reduce"])
        self.assertEqual(c.bytes_of("input"), 4 * 8 * 256 * 64)
        self.assertGreater(len(kernels(c)), 0)


class Refused(Compiled):
    def test_a_compiled_optimizer_is_refused_with_its_reason(self):
        with memwall_capture.fake():
            model = Layers().to("cuda")
            optimizer = torch.optim.AdamW(model.parameters())
            train(model, optimizer)
            model(torch.randn(2, 32, 64, device="cuda")).backward()
            with self.assertRaisesRegex(memwall_capture.CaptureError, "Compile the model alone.*--policy compile"):
                torch.compile(optimizer.step)()

    def test_modes_that_are_measured_or_replayed_are_refused_with_what_to_do(self):
        for mode, word in (("reduce-overhead", "CUDA graphs"), ("max-autotune", "max_autotune"),
                           ("max-autotune-no-cudagraphs", "max_autotune")):
            with self.subTest(mode):
                with self.assertRaisesRegex(memwall_capture.CaptureError, f"{word}.*--policy compile"):
                    self.function(lambda x: x.sin() + 1, ((4,), False), options={"mode": mode})

    def test_a_compiler_that_fails_is_an_error_with_its_reason(self):
        def backend(_graph, _inputs):
            raise ValueError("no such instruction")

        with self.assertRaisesRegex(memwall_capture.CaptureError, "ValueError: no such instruction.*--policy compile"):
            self.function(lambda x: x.sin() + 1, ((4,), False), options={"backend": backend})

    def test_on_a_device_compiled_code_is_refused(self):
        model = torch.compile(torch.nn.Linear(4, 4))
        with self.assertRaisesRegex(memwall_capture.CaptureError, "on a GPU.*memwall_capture.fake"):
            memwall_capture.record(self.path(), lambda: None, model=model, device="cpu")

    def test_nothing_is_left_changed(self):
        import torch._dynamo.convert_frame as convert_frame
        import torch._dynamo.trace_rules as trace_rules
        import torch._inductor.async_compile as async_compile
        import torch._inductor.config as config
        from torch._dynamo.device_interface import CudaInterface
        from torch._subclasses.functional_tensor import FunctionalTensor

        def patched():
            return (convert_frame.CatchErrorsWrapper.__call__, trace_rules.SKIP_DIRS, trace_rules.SKIP_DIRS_RE,
                    async_compile.AsyncCompile.triton, CudaInterface.get_device_properties,
                    FunctionalTensor.__torch_dispatch__, "_make_wrapper_subclass" in vars(torch.Tensor),
                    config.shape_padding, dict(torch.nn.modules.module._global_forward_hooks))

        before = patched()
        self.compiled()
        self.assertEqual(before, patched())
        x = torch.randn(5, requires_grad=True)
        (x * x).sum().backward()
        self.assertTrue(torch.equal(x.grad, 2 * x.detach()))


if __name__ == "__main__":
    unittest.main()
