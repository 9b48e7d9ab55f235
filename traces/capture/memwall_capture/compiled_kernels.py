"""What Inductor's generated program launches: which operators each kernel was made of, what it reads and writes.

Inductor writes a Python program that allocates buffers and launches kernels. Before each launch a line is put into it
that says which one comes now; the kernels themselves are never compiled, their launch is recorded instead.
"""

import ast
import re

import torch

from . import operators

MARK = "memwall_launch"  # the line's function
POINTER = "*"
BASE = re.compile(r"^L\['(\w+)'\](.*)$")
PART = re.compile(r"\['(\w+)'\]|\[(\d+)\]|\.(\w+)")
CONTAINERS = ("_modules", "_parameters", "_buffers")
# Neither computes nor moves anything in a kernel, or moves without arithmetic.
NO_FLOPS = {"view", "_unsafe_view", "reshape", "permute", "t", "transpose", "expand", "squeeze", "unsqueeze", "slice", "select",
            "split", "split_with_sizes", "as_strided", "alias", "detach", "clone", "copy", "convert_element_type", "_to_copy",
            "full", "iota", "arange", "embedding", "index", "cat", "unbind", "lift_fresh_copy", "inductor_lookup_seed",
            "inductor_seeds", "getitem", "empty", "scalar_tensor", "constant_pad_nd", "_assert_scalar"}
RANDOM = {"inductor_random", "inductor_randint", "rand", "randn", "native_dropout", "bernoulli"}


def module_parts(path):
    """("self", "h.0.attn") of "L['self']._modules['h']._modules['0'].attn"; (None, "") of what is no local variable."""
    found = BASE.match(path)
    if found is None:
        return None, ""
    parts = [next(filter(None, part)) for part in PART.findall(found[2])]
    return found[1], ".".join(part for part in parts if part not in CONTAINERS)


def common_path(paths):
    """The innermost module that all of these lie in."""
    common = None
    for path in paths:
        parts = path.split(".") if path else []
        if common is None:
            common = parts
        while common != parts[:len(common)]:
            common = common[:-1]
    return ".".join(common or [])


def _base_name(target):
    schema = getattr(target, "_schema", None)
    return operators.base_name(target) if schema is not None else getattr(target, "__name__", str(target))


class Launch:
    """One launch in a generated program. `nodes`: of Inductor's graph, what the kernel computes; `frame`: what is known
    of the Python frame that was compiled (Frame)."""

    def __init__(self, nodes, frame):
        self.frame, self.accesses = frame, []
        self.paths, self.forward_numbers, self.backward_numbers = [], [], []
        self.kinds, self.random = set(), False
        self.elements, self.points = [], None  # of each operator; of the kernel: it may be one of several of a sum
        for node in nodes:
            self._add(node, self.kinds)
        self.is_backward = bool(self.backward_numbers)

    @property
    def flops(self):
        """One operation for each element that an operator makes or reduces."""
        return sum(count if self.points is None else min(count, self.points) for count in self.elements)

    def _add(self, node, kinds):
        meta = node.meta
        backward = meta.get("partitioner_tag") == "is_backward"
        stack = meta.get("nn_module_stack") or meta.get("fwd_nn_module_stack")
        if stack:
            self.paths.append(list(stack.values())[-1][0])
        if meta.get("seq_nr") is not None:
            (self.backward_numbers if backward else self.forward_numbers).append(meta["seq_nr"])
        elif backward:
            self.backward_numbers.append(-1)
        name = _base_name(node.target)
        self.random = self.random or name in RANDOM
        original = meta.get("original_aten")
        if isinstance(original, torch._ops.OpOverload):
            kinds.add(operators.operator_class(original, "backward" if backward else "forward"))
        if name not in NO_FLOPS and node.op == "call_function":
            kinds.add("computes")
            self.elements.append(_elements(node))

    def bytes_of(self, position, tensor):
        """What the kernel reads or writes of an argument: no more than its points can, as of an embedding's rows."""
        whole = operators.touched_bytes(tensor)
        known = self.accesses[position] if position < len(self.accesses) else None
        if known is None or self.points is None:
            return whole
        return min(whole, known * self.points * tensor.element_size())

    def module(self, names, root):
        """Qualified name, `root` being the compiled module that is running, or None."""
        parts = [module_parts(path) for path in self.paths]
        inner = common_path([self.frame.inside(base, path) for base, path in parts] or [""])
        return ".".join(part for part in (self.frame.outside(names, root), inner) if part)

    def numbers(self):
        """Of the operators of the program in forward that this belongs to, the likeliest first."""
        return [*self.backward_numbers, *self.forward_numbers]


def _elements(node):
    """Of the largest tensor that an operator of Inductor's graph reads or makes."""
    values = [node.meta.get("val"), *(n.meta.get("val") for n in node.all_input_nodes)]
    sizes = [1]
    for value in values:
        for t in value if isinstance(value, (list, tuple)) else [value]:
            if isinstance(t, torch.Tensor):
                count = t.numel()
                sizes.append(count if isinstance(count, int) else getattr(count.node, "hint", None) or 1)
    return max(sizes)


class Frame:
    """A compiled Python frame: which modules its local variables are. `root`: the module that was called."""

    def __init__(self, frame, root):
        self.inside_root, self.module_of = {}, {}
        names = {id(module): name for name, module in root.named_modules()} if root is not None else {}
        for name, value in frame.f_locals.items():
            module = value if isinstance(value, torch.nn.Module) else getattr(value, "__self__", None)
            if isinstance(module, torch.nn.Module):
                self.module_of[name] = module
                self.inside_root[name] = names.get(id(module))

    def inside(self, base, path):
        """`path`, which begins at a local variable, as one that begins at the root."""
        outer = self.inside_root.get(base)
        return ".".join(part for part in (outer, path) if part)

    def outside(self, names, root):
        """The root's own name; of a function the first module's that it holds."""
        if root is None:
            root = next(iter(self.module_of.values()), None)
        return names.names.get(id(root), names.path) if root is not None else names.path


def _literal(source, key):
    """The value of `'key': ...` in a dictionary of generated source."""
    at = source.find(f"'{key}':")
    if at < 0:
        return None
    begin = source.index(":", at) + 1
    depth = 0
    for end in range(begin, len(source)):
        depth += (source[end] in "[{(") - (source[end] in "]})")
        if depth < 0 or (depth == 0 and source[end] == ","):
            return ast.literal_eval(source[begin:end].strip())
    return None


class Kernel:
    """Stands in for a Triton kernel: its launches are recorded. `source`: as Inductor wrote it."""

    def __init__(self, compiler, name, source):
        self.compiler, self.name = compiler, name
        self.signature = _literal(source, "signature") or {}
        self.reduces = bool(_literal(source, "num_reduction"))
        mutated = set(_literal(source, "mutated_arg_names") or ())
        self.pointers = [key for key, kind in self.signature.items() if str(kind).startswith(POINTER)]
        self.order = [key for key, kind in self.signature.items() if kind != "constexpr"]
        loaded = {key for key in self.pointers if re.search(rf"tl\.(load|atomic_\w+)\(\s*{key}\b", source)}
        generated = all(re.match(r"(in|out|in_out|ws)_ptr", key) for key in self.pointers)
        self.read = loaded if generated else set(self.pointers)
        self.written = mutated | {key for key in self.pointers if key.startswith(("out_", "in_out_", "ws_"))}

    def run(self, *args, **_):
        tensors = [(i, key, value) for i, (key, value) in enumerate(zip(self.order, args))
                   if isinstance(value, torch.Tensor)]
        self.compiler.launched(self, [(i, t) for i, key, t in tensors if key in self.read],
                               [(i, t) for i, key, t in tensors if key in self.written])

    def operator_class(self, launch):
        kinds = launch.kinds if launch is not None else {"computes"}
        if self.reduces:
            return "normalization" if "normalization" in kinds else "reduction"
        if "computes" in kinds:
            return "elementwise"
        return "embedding" if "embedding" in kinds else "memory"
