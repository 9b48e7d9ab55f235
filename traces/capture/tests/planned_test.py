#!/usr/bin/env python3
"""Are steps that a program has planned itself - recomputed, offloaded, watched by modes of its own - recorded as what
they do? Plain unittest, on the CPU: python planned_test.py"""

import collections
import functools
import unittest
import warnings

from capture_test import Capture, CaptureTest, setUpModule, train  # noqa: F401

import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts, set_checkpoint_early_stop

import memwall_capture

aten = torch.ops.aten
LAYERS = 12


class Inner(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up, self.down = torch.nn.Linear(width, 2 * width), torch.nn.Linear(2 * width, width)

    def forward(self, x):
        return self.down(F.gelu(self.up(x)))


class Layer(torch.nn.Module):
    """Nested modules, and operators between them; equal names and shapes within one layer, too."""

    def __init__(self, width=16):
        super().__init__()
        self.first, self.second = Inner(width), Inner(width)
        self.norm = torch.nn.LayerNorm(width)

    def forward(self, x):
        x = x + F.dropout(self.first(self.norm(x)), 0.1)
        return x + F.dropout(self.second(self.norm(x)), 0.1)


class Net(torch.nn.Module):
    """Equal layers, called through `around`."""

    def __init__(self, around=lambda layer, x: layer(x), layers=LAYERS):
        super().__init__()
        self.h = torch.nn.ModuleList(Layer() for _ in range(layers))
        self.around = around

    def forward(self, x):
        for layer in self.h:
            x = self.around(layer, x)
        return x.float().pow(2).mean()


class Chains(Net):
    """Three layers under one checkpoint, with an operator behind each."""

    def __init__(self, **options):
        super().__init__()
        self.options = options

    def forward(self, x):
        def chain(layers, x):
            for layer in layers:
                x = torch.tanh(layer(x)) * 2
            return x

        for i in range(0, len(self.h), 3):
            x = checkpoint(chain, self.h[i:i + 3], x, use_reentrant=False, **self.options)
        return x.float().pow(2).mean()


def closure(layer, x, **options):
    """A function that is no module's, which calls modules and functions."""
    def run(y):
        y = y * 1.5
        y = y + F.dropout(layer.first(layer.norm(y)), 0.1)
        y = torch.relu(y)
        return y + layer.second(layer.norm(y))

    return checkpoint(run, x, **{"use_reentrant": False, **options})


def bodies(make, **options):
    """A net whose layers' `forward` is replaced on the instance, so that Module.__call__ is not called again."""
    net = make()
    for layer in net.h:
        def again(x, original=layer.forward):
            return checkpoint(original, x, **{"use_reentrant": False, **options})

        layer.forward = again
    return net


def step_on(autocast=False):
    """The batch has gradients, as a reentrant checkpoint wants."""
    def step(model, optimizer):
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=autocast):
            train(model, optimizer, torch.randn(4, 8, 16, device="cuda", requires_grad=True))

    return step


class Planned(CaptureTest):
    def again(self, c):
        """The repeated operators of a capture, each checked against its original."""
        found = [r for r in c.ops.values() if r["phase"] == "recompute"]
        for r in found:
            self.assertIn("forward", r, r)
            first = c.ops[r["forward"]]
            self.assertEqual((first["phase"], first["op"], first.get("module")), ("forward", r["op"], r.get("module")))
            self.assertEqual([t[:2] for t in first["inputs"]], [t[:2] for t in r["inputs"]])
        return found

    def in_order(self, c, per_unit):
        """Units in reverse order, each in the order of forward; no two repeat one operator."""
        found = self.again(c)
        links = [r["forward"] for r in found]
        self.assertEqual(len(set(links)), len(links))
        for i in range(0, len(links), per_unit):
            unit = links[i:i + per_unit]
            self.assertEqual(unit, sorted(unit))
            self.assertTrue(i == 0 or unit[-1] < links[i - per_unit])
        return found


class RecomputedFunctions(Planned):
    def check(self, make, plain, per_unit):
        """`plain`: the capture of the same step without checkpoints."""
        c = self.capture(make, step_on())
        found = self.in_order(c, per_unit)
        self.assertEqual(len(found), per_unit * LAYERS)
        # Each reads the same parameters as its original.
        for r in found:
            first = c.ops[r["forward"]]
            mine, its = ({s for s in o["reads"] if c.storages[s]["kind"] == "parameter"} for o in (r, first))
            self.assertEqual(mine, its)
        self.assertEqual(c.phases()["forward"], plain.phases()["forward"])
        self.assertEqual(c.phases()["backward"], plain.phases()["backward"])
        self.assertEqual({r.get("module") for r in c.ops.values() if r["phase"] == "forward"},
                         {r.get("module") for r in plain.ops.values() if r["phase"] == "forward"})
        return c

    def test_a_closure_knows_its_modules(self):
        plain = self.capture(lambda: Net(closed), step_on())
        # Of 13 operators the last product and the last sum are behind the last tensor that is saved.
        for early, reentrant, operators in ((True, False, 11), (False, False, 13), (True, True, 13)):
            with self.subTest(early=early, reentrant=reentrant), set_checkpoint_early_stop(early):
                c = self.check(lambda: Net(functools.partial(closure, use_reentrant=reentrant)), plain, operators)
                again = [(r["op"], r.get("module", "")) for r in c.ops.values() if r["phase"] == "recompute"]
                self.assertEqual([name for name, _ in again[:11]], ["aten::" + name for name in (
                    "mul", "native_layer_norm", "addmm", "gelu", "addmm", "native_dropout", "add", "relu",
                    "native_layer_norm", "addmm", "gelu")])
                self.assertEqual([module for _, module in again[:11]], [
                    "", "h.11.norm", "h.11.first.up", "h.11.first", "h.11.first.down", "", "", "", "h.11.norm",
                    "h.11.second.up", "h.11.second"])

    def test_a_replaced_forward_knows_its_module(self):
        plain = self.capture(Net, step_on())
        for early, operators in ((True, 11), (False, 12)):
            with self.subTest(early=early), set_checkpoint_early_stop(early):
                c = self.check(lambda: bodies(Net), plain, operators)
                modules = {r["module"] for r in c.ops.values() if r["phase"] == "recompute"}
                self.assertTrue({"h.0", "h.0.first", "h.0.first.up", "h.11.norm"} <= modules)

    def test_a_chain_of_modules_is_one_unit(self):
        found = self.in_order(self.capture(Chains, step_on()), 3 * 14 - 1)  # the last product keeps nothing
        self.assertEqual(len(found), LAYERS // 3 * (3 * 14 - 1))
        self.assertTrue(all("module" in r for r in found if r["op"] not in ("aten::tanh", "aten::mul")))

    def test_casts_of_autocast_are_repeated_too(self):
        c = self.capture(lambda: bodies(lambda: Net(layers=3)), step_on(autocast=True))
        found = self.again(c)
        casts = [r for r in found if r["op"] == "aten::_to_copy"]
        self.assertGreater(len(casts), 0)
        for r in casts:
            first = c.ops[r["forward"]]
            if c.storages[r["reads"][0]]["kind"] == "parameter":
                self.assertEqual(first["reads"], r["reads"])

    def test_a_selective_checkpoint_repeats_what_it_did_not_keep(self):
        def keep_every_other(counts):
            """The second product of each shape: name and shape alone would find the first."""
            def policy(context, func, *args, **kwargs):
                if func is not aten.addmm.default:
                    return False
                key = (context.is_recompute, tuple(args[1].shape), tuple(args[2].shape))
                counts[key] += 1
                return counts[key] % 2 == 1

            return create_selective_checkpoint_contexts(policy)

        def make():
            return bodies(lambda: Net(layers=3), context_fn=lambda: keep_every_other(collections.Counter()))

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            c = self.capture(make, step_on())
        products = [r for r in self.again(c) if r["op"] == "aten::addmm"]
        self.assertEqual(len(products), 2 * 3)
        self.assertEqual({r["module"].split(".")[-2] for r in products}, {"second"})

    def test_checkpoints_within_checkpoints_name_the_forward_pass(self):
        def outer(layer, x):
            return checkpoint(lambda y: closure(layer, y * 2), x, use_reentrant=False)

        # To the end: the outer one runs all that is under the inner one, which then runs it once more.
        for early, runs in ((True, {1: 3 * 12}), (False, {1: 3, 2: 3 * 13})):
            with self.subTest(early=early), set_checkpoint_early_stop(early):
                found = self.again(self.capture(lambda: Net(outer, 3), step_on()))
                self.assertEqual(collections.Counter(collections.Counter(r["forward"] for r in found).values()), runs)

    def test_what_runs_without_gradients_in_a_unit_is_repeated_with_it(self):
        def around(layer, x):
            def run(y):
                with torch.no_grad():
                    scale = y.abs().mean()
                return layer(y * scale)

            return checkpoint(run, x, use_reentrant=False)

        c = self.capture(lambda: Net(around, 3), step_on())
        self.again(c)
        self.assertEqual([len(c.named(name, phase)) for name in ("abs", "mean") for phase in ("recompute", "backward")],
                         [3, 0, 3, 0])

    def test_a_function_of_the_program_that_computes_again_is_linked_by_its_memory(self):
        class Again(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, function, *weights):
                ctx.save_for_backward(x)
                ctx.function = function
                return function(x)

            @staticmethod
            def backward(ctx, gradient):
                x = ctx.saved_tensors[0].detach().requires_grad_()
                with torch.enable_grad():
                    out = ctx.function(x)
                torch.autograd.backward(out, gradient)
                return (x.grad, None) + (None,) * 8

        def around(layer, x):
            def run(y):
                return F.gelu(F.linear(torch.tanh(y), layer.first.up.weight))[..., :16]

            return Again.apply(x, run, *[layer.first.up.weight] * 8)

        c = self.capture(lambda: Net(around, 4), step_on())
        found = self.in_order(c, 3)
        self.assertEqual(len(found), 4 * 3)


def closed(layer, x):
    """What `closure` runs."""
    y = x * 1.5
    y = y + F.dropout(layer.first(layer.norm(y)), 0.1)
    y = torch.relu(y)
    return y + layer.second(layer.norm(y))


class Memory(Planned):
    def test_a_storage_that_was_set_is_freed(self):
        def step(_model, _optimizer):
            for way in range(4):
                x, y = torch.zeros(1000, device="cuda"), torch.zeros(1000, device="cuda")
                if way == 0:
                    x.set_(y.untyped_storage(), 0, (1000,), (1,))
                elif way == 1:
                    x.set_(y)
                elif way == 2:
                    x.data = y
                else:
                    torch.utils.swap_tensors(x, y)
                del y
                x.add_(1)
                del x

        c = self.capture(lambda: torch.nn.Linear(1, 1), step, warm=False)
        self.assertEqual(sum(s["bytes"] == 4000 for s in c.storages.values()), 8)
        freed = [c.storages[r["free"]]["bytes"] for r in c.records if "free" in r]
        self.assertEqual(freed.count(4000), 8, "each is freed within the step")
        self.assertEqual(c.peak - c.end, 8000)
        self.assertEqual(len(c.named("add_")), 4)


class Pass(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


class Twice(TorchDispatchMode):
    """Runs some operators a second time, through a method of its own, and asks tensors where they are."""

    def run(self, func, args, kwargs):
        return func(*args, **kwargs)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = self.run(func, args, kwargs or {})
        if func in (aten.gelu.default, aten.gelu_backward.default):
            assert out.device.type == "cuda"
            self.run(func, args, kwargs or {})
        return out


class Copies(Pass):
    """Gives back another tensor than was made."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = super().__torch_dispatch__(func, types, args, kwargs)
        return out.clone() if func in (aten.gelu.default, aten.gelu_backward.default) else out


class Modes(Planned):
    MORE = {Pass: 0, Twice: 4, Copies: 4}  # operators of two layers' forward pass; so many again in backward

    def step(self, kind, where):
        def step(model, optimizer):
            optimizer.zero_grad()
            x = torch.randn(4, 8, 16, device="cuda")
            if where == "forward":
                with kind():
                    loss = model(x)
                loss.backward()
            elif where == "backward":
                loss = model(x)
                with kind():
                    loss.backward()
            else:
                with kind():
                    model(x).backward()
            optimizer.step()
        return step

    def test_a_mode_of_the_program_sees_what_runs_and_all_is_recorded(self):
        plain = self.capture(lambda: Net(layers=2), self.step(Pass, "backward")).phases()
        for kind, more in self.MORE.items():
            for where in ("forward", "backward", "both"):
                with self.subTest(kind=kind.__name__, where=where):
                    found = self.capture(lambda: Net(layers=2), self.step(kind, where)).phases()
                    self.assertEqual(found["forward"] - plain["forward"], more * (where != "backward"))
                    self.assertEqual(found["backward"] - plain["backward"], more * (where != "forward"))
                    self.assertEqual(found["optimizer"], plain["optimizer"])
                    self.assertEqual(found["recompute"], 0)

    def test_a_mode_around_the_whole_training(self):
        plain = self.capture(lambda: Net(layers=2), self.step(Pass, "backward")).phases()
        for order in ("inside", "outside"):
            with self.subTest(order=order):
                if order == "outside":
                    with Pass():
                        c = self.capture(lambda: Net(layers=2), train_plain)
                else:
                    with memwall_capture.fake(), Twice():
                        c = self.capture(lambda: Net(layers=2), train_plain)
                self.assertEqual(c.phases()["forward"] - plain["forward"], 0 if order == "outside" else 4)

    def test_modes_within_hooks_of_saved_tensors(self):
        def pack(x):
            with Twice():
                return F.gelu(x.detach()) if x.dim() == 3 and x.shape[-1] == 32 else x

        def unpack(x):
            with Copies():
                return x.view_as(x) * 1 if isinstance(x, torch.Tensor) and x.dim() == 3 else x

        def step(model, optimizer):
            with torch.autograd.graph.saved_tensors_hooks(pack, unpack), torch.autocast("cuda", dtype=torch.bfloat16):
                loss = model(torch.randn(4, 8, 16, device="cuda"))
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()

        c = self.capture(lambda: Net(layers=2), step)
        self.assertGreater(len(c.named("gelu", "forward")), 4 + 4)
        self.assertGreater(c.phases()["backward"], 0)

    def test_modes_are_as_they_were(self):
        before = (Twice.__torch_dispatch__, TorchDispatchMode.__enter__)
        with memwall_capture.fake(), Twice():
            torch.ones(3, device="cuda") * 2
        self.assertEqual((Twice.__torch_dispatch__, TorchDispatchMode.__enter__), before)


class Unpacked(Planned):
    """What hooks of saved tensors compute again without gradients."""

    class Lazy(torch.nn.Module):
        """Keeps, instead of what the second product needs, what that is computed from."""

        def __init__(self, keep, width=16):
            super().__init__()
            self.norm, self.up, self.down = (torch.nn.LayerNorm(width), torch.nn.Linear(width, 2 * width),
                                             torch.nn.Linear(2 * width, width))
            self.keep = keep

        def forward(self, x):
            h = self.up(self.norm(x))
            g = F.gelu(h)
            raw = g.untyped_storage()._cdata

            def pack(t):
                return (self.keep(h), t.shape) if t.untyped_storage()._cdata == raw else t

            def unpack(packed):
                if isinstance(packed, torch.Tensor):
                    return packed
                kept, shape = packed
                return F.gelu(kept()).view(shape)

            with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
                return x + self.down(g)

    def capture_lazy(self, keep):
        return self.capture(lambda: torch.nn.Sequential(*(self.Lazy(keep) for _ in range(4))), lambda model, optimizer: (
            optimizer.zero_grad(), model(torch.randn(4, 8, 16, device="cuda")).sum().backward(), optimizer.step()))

    def check(self, c):
        found = self.in_order(c, 1)
        self.assertEqual([(r["op"], r["module"]) for r in found], [("aten::gelu", str(i)) for i in (3, 2, 1, 0)])
        for r in found:
            self.assertTrue(all(c.storages[s]["kind"] == "activation" for s in r["writes"]))
        self.assertEqual(len(c.named("gelu_backward", "backward")), 4)
        return found

    def test_an_activation_is_linked_with_that_of_its_layer(self):
        def keep(h):
            kept = h.detach()
            return lambda: kept

        c = self.capture_lazy(keep)
        for r in self.check(c):
            self.assertEqual(r["reads"], c.ops[r["forward"]]["reads"])

    def test_what_was_on_the_host_is_known_again(self):
        pool, at = [], [0]

        def keep(h):
            if not pool:
                pool.append(torch.empty(1 << 16, device="cpu", pin_memory=True))
            count, begin = h.numel(), at[0] % (1 << 16)
            at[0] += count
            place = pool[0][begin:begin + count]
            place.copy_(h.detach().view(-1), non_blocking=True)

            def kept():
                back = torch.empty(h.shape, device="cuda")
                back.view(-1).copy_(place, non_blocking=True)
                return back

            return kept

        c = self.capture_lazy(keep)
        self.check(c)
        copies = [r for r in c.ops.values() if "copy" in r]
        size = 4 * 8 * 32 * 4
        self.assertEqual([(r["copy"], r["from"], r["to"], r["phase"], r["blocking"]) for r in copies],
                         [(size, "hbm", "host_pinned", "forward", False)] * 4 +
                         [(size, "host_pinned", "hbm", "backward", False)] * 4)
        self.assertEqual({s for r in copies[:4] for s in r["writes"]}, {s for r in copies[4:] for s in r["reads"]})
        (flat,) = {s for r in copies[:4] for s in r["writes"]}
        self.assertEqual(c.storages[flat]["bytes"], 4 << 16)
        # The tensor that comes back is the layer's, although four equal ones lie in one piece of host memory.
        for r in self.again(c):
            fetched = next(o for o in copies if o["writes"] == r["reads"])
            sent = next(o for o in copies if o["reads"] == c.ops[r["forward"]]["reads"])
            self.assertEqual(fetched["module"] if "module" in fetched else r["module"], r["module"])
            self.assertEqual(4 - copies.index(sent), 1 + copies.index(fetched) - 4)

    def test_what_has_no_original_is_backwards_own(self):
        """A tensor that is packed as bytes."""
        def keep(h):
            small = (h.detach() * 10).to(torch.int8)
            return lambda: small.to(torch.float32) / 10

        c = self.capture_lazy(keep)
        self.check(c)
        self.assertEqual([(len(c.named(name, "backward")), len(c.named(name, "recompute")))
                          for name in ("_to_copy", "div")], [(4, 0), (4, 0)])

    def test_hooks_of_gradients_are_backwards_own(self):
        def step(model, optimizer):
            optimizer.zero_grad()
            x = model[0](torch.randn(4, 8, 16, device="cuda"))
            y = F.gelu(x)
            y.register_hook(lambda gradient: F.gelu(x.detach()) * gradient)
            torch.autograd.graph.register_multi_grad_hook([y], lambda gradients: [F.gelu(x.detach())])
            model[1](y).sum().backward()
            optimizer.step()

        c = self.capture(lambda: torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.Linear(16, 16)), step)
        self.assertEqual(len(c.named("gelu", "backward")), 2)
        self.assertEqual(c.phases()["recompute"], 0)

    def test_hooks_around_the_step_go_on(self):
        with memwall_capture.fake():
            model = Net(layers=2).to("cuda")
            with torch.autograd.graph.save_on_cpu(pin_memory=True):
                with memwall_capture.step(self.path(), model=model):
                    model(torch.randn(4, 8, 16, device="cuda")).backward()
        c = Capture(self.path())
        self.assertGreater(sum(r.get("to") == "host_pinned" for r in c.ops.values()), 10)


class Streams(Planned):
    def test_memory_of_several_streams_says_so_where_it_is_freed(self):
        def step(_model, _optimizer):
            side, other = torch.cuda.Stream(), torch.cuda.Stream()
            x, y, z = (torch.ones(size, device="cuda") for size in (100, 200, 300))
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                x * 2
            for stream in (side, other, side, torch.cuda.current_stream()):
                x.view(10, 10).record_stream(stream)
            z.record_stream(torch.cuda.current_stream())
            y.record_stream(other)
            y.untyped_storage().resize_(0)
            del x, y, z

        c = self.capture(lambda: torch.nn.Linear(1, 1), step, warm=False)
        frees = {c.storages[r["free"]]["bytes"]: r.get("streams") for r in c.records if "free" in r}
        side = c.named("mul")[0]["stream"]
        self.assertEqual([frees[size] for size in (400, 800, 1200)], [[side, side + 1], [side + 1], None])

    def test_events_and_streams_in_every_form(self):
        def step(_model, _optimizer):
            main, side = torch.cuda.current_stream(), torch.cuda.Stream(priority=-1)
            self.assertEqual(main, torch.cuda.default_stream())
            event = main.record_event()
            side.wait_event(event)
            with torch.cuda.stream(None):
                self.assertEqual(torch.cuda.current_stream(), main)
            with torch.cuda.stream(side):
                torch.ones(1, device="cuda")
                inner = torch.cuda.Event(enable_timing=True)
                inner.record()
                event.wait()
                event.record(main)
            inner.wait()
            event.wait(side)
            self.assertTrue(inner.query())
            torch.cuda.Event().wait()  # never recorded: holds nothing up
            inner.synchronize()
            side.synchronize()
            torch.cuda.set_stream(side)
            torch.ones(2, device="cuda")
            torch.cuda.set_stream(main)
            torch.Event("cuda").record(torch.accelerator.current_stream())

        c = self.capture(lambda: torch.nn.Linear(1, 1), step, warm=False)
        events = [r for r in c.records if "event" in r]
        first, (side,) = events[0]["number"], {r["stream"] for r in c.named("ones")}
        self.assertEqual([(r["event"], r["number"] - first, r["stream"]) for r in events],
                         [("record", 0, 0), ("wait", 0, side), ("record", 1, side), ("wait", 0, side),
                          ("record", 2, 0), ("wait", 1, 0), ("wait", 2, side), ("record", 3, 0)])
        self.assertEqual([(r["synchronize"], r.get("stream"), r.get("number")) for r in c.records if "synchronize" in r],
                         [("event", None, first + 1), ("stream", side, None)])

    def test_the_generators_of_the_device_can_be_kept_and_set(self):
        def step(_model, _optimizer):
            state = torch.cuda.get_rng_state()
            self.assertEqual(state.dtype, torch.uint8)
            torch.cuda.set_rng_state(state)
            with torch.random.fork_rng():
                torch.ones(1, device="cuda")

        c = self.capture(lambda: torch.nn.Linear(1, 1), step, warm=False)
        self.assertEqual([(r["op"], r.get("calls", 1)) for r in c.ops.values()], [("aten::ones", 1)])

    def test_pinned_memory_is_known_however_it_is_made(self):
        def step(_model, _optimizer):
            x = torch.ones(8, device="cuda")
            for host in (torch.empty(8, pin_memory=True), torch.empty_like(x, device="cpu", pin_memory=True),
                         torch.zeros(8, pin_memory=True), x.new_empty(8, device="cpu", pin_memory=True),
                         torch.empty(8).pin_memory(), torch.empty(64, pin_memory=True)[8:24:2]):
                self.assertTrue(host.is_pinned())
                host.copy_(x, non_blocking=True)

        c = self.capture(lambda: torch.nn.Linear(1, 1), step, warm=False)
        copies = [r for r in c.ops.values() if "copy" in r]
        self.assertEqual([(r["copy"], r["to"]) for r in copies], [(32, "host_pinned")] * 6)
        self.assertEqual(len({s for r in copies for s in r["writes"]}), 6)


class Inputs(Planned):
    def test_what_the_model_is_called_with_is_input_wherever_it_was_made(self):
        c = self.capture(lambda: torch.nn.Linear(16, 16), lambda model, optimizer: model(
            torch.randn(4, 16, device="cuda")).sum().backward(), warm=False)
        kinds = [s["kind"] for s in c.storages.values() if s.get("label") == "aten::randn"]
        self.assertEqual(kinds, ["input"])


class Versions(Planned):
    def test_operators_on_lists_in_place_make_a_new_version(self):
        """Clipping, say; a program may look whether a gradient has changed."""
        with memwall_capture.fake():
            one, other = torch.ones(3, device="cuda"), torch.ones((), device="cuda")
            torch._foreach_mul_([one], other)
            self.assertEqual((one._version, other._version), (1, 0))


def train_plain(model, optimizer):
    train(model, optimizer, torch.randn(4, 8, 16, device="cuda"))


if __name__ == "__main__":
    unittest.main()
