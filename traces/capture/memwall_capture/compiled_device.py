"""A GPU for Inductor where there is none: what it asks before it writes a program, and what that program calls."""

import contextlib
import math
import types

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .compiled_kernels import MARK, Kernel, Launch
from .fake_cuda import CAPABILITY
from .patches import patches

SHARED_MEMORY = 227 << 10  # of a block at most, compute capability 9.0 (CUDA C++ Programming Guide, table of features)
MULTIPROCESSORS = 132
# What a GPU would have to be asked for, and checks of addresses, which fake tensors have none of.
INDUCTOR = {"fx_graph_cache": False, "fx_graph_remote_cache": False, "compile_threads": 1, "shape_padding": False,
            "size_asserts": False, "alignment_asserts": False, "scalar_asserts": False}
AUTOGRAD = {"enable_autograd_cache": False, "force_non_lazy_backward_lowering": True}
INTERFACE = ("current_device", "set_device", "device_count", "stream", "current_stream", "set_stream", "synchronize",
             "get_device_properties", "memory_allocated", "is_bf16_supported")


class _Driver:
    """Of Triton."""

    utils = types.SimpleNamespace(get_device_properties=lambda _device: {
        "max_shared_mem": SHARED_MEMORY, "multiprocessor_count": MULTIPROCESSORS})

    def get_current_target(self):
        from triton.backends.compiler import GPUTarget
        return GPUTarget("cuda", 10 * CAPABILITY[0] + CAPABILITY[1], 32)

    def get_current_device(self):
        return 0

    def get_active_torch_device(self):
        return torch.device("cuda", 0)


@contextlib.contextmanager
def compiling(compiler):
    """While Inductor compiles."""
    import torch._functorch.config
    import torch._inductor.config
    from torch._dynamo import device_interface
    from torch._inductor.runtime.hints import DeviceProperties
    from triton.runtime import driver

    with patches() as patch, contextlib.ExitStack() as stack:
        cuda = device_interface.CudaInterface
        for name in INTERFACE:
            if hasattr(cuda, name):
                patch(cuda, name, staticmethod(getattr(torch.cuda, name)))
        patch(cuda, "exchange_device", staticmethod(torch.cuda._exchange_device))
        patch(cuda, "maybe_exchange_device", staticmethod(torch.cuda._maybe_exchange_device))
        patch(cuda, "get_raw_stream", staticmethod(lambda _device: 0))
        for known in (device_interface.caching_worker_device_properties, device_interface.caching_worker_current_devices):
            stack.callback(known.pop, "cuda", None)
        stack.callback(DeviceProperties.create.__func__.cache_clear)
        patch(driver, "_active", _Driver())
        stack.enter_context(torch._inductor.config.patch(
            {key: value for key, value in INDUCTOR.items() if hasattr(torch._inductor.config, key)}))
        stack.enter_context(torch._functorch.config.patch(
            {key: value for key, value in AUTOGRAD.items() if hasattr(torch._functorch.config, key)}))
        _patch_passes(patch)
        _patch_constants(patch)
        _patch_code(compiler, patch)
        yield


def _patch_passes(patch):
    """What Inductor looks for in graphs it learns by tracing examples; on the host, where these can be made."""
    from torch._inductor.fx_passes import joint_graph, post_grad

    def on_host(original):
        def lazy_init(*_args, **_kwargs):
            available = torch.cuda.is_available
            torch.cuda.is_available = lambda: False
            try:
                return original(torch.device("cpu"))
            finally:
                torch.cuda.is_available = available
        return lazy_init

    patch(joint_graph, "lazy_init", on_host(joint_graph.lazy_init))
    patch(post_grad, "lazy_init", on_host(post_grad.lazy_init))


class _OnHost(TorchDispatchMode):
    """Makes on the host what is to be made on the device."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if kwargs.get("device") is not None and kwargs["device"].type == "cuda":
            kwargs = {**kwargs, "device": torch.device("cpu")}
        return func(*args, **kwargs)


def _patch_constants(patch):
    """Constants are folded by computing them, one element each."""
    from torch._inductor import constant_folding
    from torch._inductor.fx_passes import joint_graph

    def on_host(original):
        def deduce(folder, node):
            with _OnHost():
                return original(folder, node)
        return deduce

    for kind in (constant_folding.ConstantFolder, joint_graph.UniformValueConstantFolder):
        if "_deduce_value" in vars(kind):
            patch(kind, "_deduce_value", on_host(kind._deduce_value))


def _patch_code(compiler, patch):
    """Lines that say which launch comes; kernels that are not compiled; the functions that the program calls."""
    import torch._inductor.compile_fx
    from torch._inductor import async_compile, codecache, ir
    from torch._inductor.codegen import triton
    from torch._inductor.virtualized import V

    def mark(nodes):
        V.graph.wrapper_code.writeline(f"{MARK}({compiler.expect(nodes)})")

    scheduled = triton.TritonScheduling.codegen_comment
    external = ir.ExternKernel.codegen_comment
    call = triton.TritonKernel.call_kernel

    def of_schedule(scheduling, schedule, *args, **kwargs):
        nodes = {}
        for scheduled_node in schedule:
            for part in scheduled_node.get_nodes() if hasattr(scheduled_node, "get_nodes") else ():
                nodes.update(dict.fromkeys(part.node.origins if part.node is not None else ()))
        mark(list(nodes))
        return scheduled(scheduling, schedule, *args, **kwargs)

    def of_external(kernel, *args, **kwargs):
        mark(list(kernel.origins)[:1])
        return external(kernel, *args, **kwargs)

    def call_kernel(kernel, *args, **kwargs):
        with contextlib.suppress(AttributeError, TypeError):  # kernels of other kinds do not know
            launch = compiler.launches[-1]
            launch.points = math.prod(int(V.graph.sizevars.optimization_hint(size)) for size in kernel.numels.values())
            launch.accesses = _accesses(kernel)
        return call(kernel, *args, **kwargs)

    patch(triton.TritonScheduling, "codegen_comment", of_schedule)
    patch(ir.ExternKernel, "codegen_comment", of_external)
    patch(triton.TritonKernel, "call_kernel", call_kernel)
    patch(async_compile.AsyncCompile, "triton",
          lambda _self, name, source, *_args, **_kwargs: Kernel(compiler, name, source))
    patch(async_compile.AsyncCompile, "cpp_pybinding", lambda *_args, **_kwargs: lambda *_tensors: None)
    patch(torch._inductor.compile_fx, "get_input_idxs_to_check", lambda *_args, **_kwargs: [])
    load = codecache.PyCodeCache.load_by_key_path

    def loaded(*args, **kwargs):
        module = load(*args, **kwargs)
        for name, value in program_functions(compiler).items():
            setattr(module, name, value)
        return module

    patch(codecache.PyCodeCache, "load_by_key_path", staticmethod(loaded))


def _accesses(kernel):
    """By argument of the launch, at how many different indices each point of the kernel accesses it; None: not known.
    As Inductor estimates traffic (SIMDKernel.estimate_kernel_num_bytes)."""
    from torch._inductor.dependencies import MemoryDep
    accesses = kernel.features.buf_accesses()
    return [len({dep.index if isinstance(dep, MemoryDep) else i for i, dep in enumerate(accesses[name])})
            if name in accesses else None
            for name in kernel.args.python_argdefs()[1]]


def program_functions(compiler):
    """What a generated program calls, by name. Memory and views are no operators there: none is dispatched."""
    def empty(device):
        def empty_strided(size, stride, dtype):
            with compiler.undispatched():
                return torch.empty_strided(size, stride, dtype=dtype, device=device)
        return empty_strided

    def reinterpret(tensor, size, stride, offset=0):
        with compiler.undispatched():
            return tensor.as_strided(size, stride, tensor.storage_offset() + offset)

    def nothing(*_args):
        return None

    return {MARK: compiler.at, "empty_strided_cuda": empty("cuda"), "empty_strided_cpu": empty("cpu"),
            "reinterpret_tensor": reinterpret, "get_raw_stream": lambda _device: 0, "assert_size_stride": nothing,
            "assert_size_stride_grouped": nothing, "assert_alignment": nothing,
            "copy_if_misaligned": lambda tensor, *_args: tensor}
