"""What the modules of a unit hold beside their parameters, around its runs. The second run starts from what the first started
from (buffers and plain attributes that forward assigns anew), and behind it everything is as it was before it."""

import operator
import weakref

import torch
from torch._subclasses.fake_tensor import FakeTensor

from .errors import ApplyError
from .storages import is_plain

ABSENT = object()
OF_EVERY_MODULE = frozenset(vars(torch.nn.Module()))
SIMPLE = (type(None), bool, int, float, complex, str, bytes, tuple, torch.dtype, torch.device)


class Held:
    """Buffers and attributes of `modules` now. `inside`: keeps the content of buffers, too, since no version tells what is
    changed through `.data`. `own`: buffers that need no care."""

    def __init__(self, modules, own=(), inside=False):
        # By module: its name, and by name what it holds. `__dict__` has the dictionaries of parameters and buffers in it,
        # which stay the same objects.
        self.places = [(name, owner, dict(owner)) for name, module in modules for owner in (module._buffers, module.__dict__)]
        self.flags = [(module, module.training) for _, module in modules]
        self.versions = [(_join(name, key), value, value._version) for name, _, held in self.places
                         for key, value in held.items() if key not in OF_EVERY_MODULE and value is not None
                         and isinstance(value, torch.Tensor) and id(value) not in own and not value.is_inference()]
        self.copies = [(name, value, value.detach().clone()) for name, value, _ in self.versions
                       if inside and is_plain(value) and not isinstance(value, FakeTensor)]

    def changed_in_place(self):
        """The name of a tensor that is not what it was, or None."""
        changed = next((name for name, tensor, version in self.versions if tensor._version != version), None)
        return changed or next((name for name, tensor, copy in self.copies if not _same_bytes(tensor, copy)), None)

    def assigned_anew(self):
        """(name, owner, key, what was there) of each attribute that is another object now."""
        found = []
        for name, owner, held in self.places:
            if len(owner) != len(held) or any(map(operator.is_not, owner.values(), held.values())):
                found += [(_join(name, key), owner, key, held.get(key, ABSENT)) for key in {**held, **owner}
                          if owner.get(key, ABSENT) is not held.get(key, ABSENT)]
        return found

    def put_back(self):
        for _, owner, key, value in self.assigned_anew():
            put(owner, key, value)


class Start:
    """What a first run started from, as far as it has changed that."""

    def __init__(self, unit_text, held):
        self.flags = held.flags
        self.places = [(owner, key, _keep(unit_text, name, owner, value)) for name, owner, key, value in held.assigned_anew()]

    def put(self):
        for owner, key, keep in self.places:
            put(owner, key, keep())
        for module, training in self.flags:
            if module.training != training:
                module.training = training


def put(owner, key, value):
    if value is ABSENT:
        owner.pop(key, None)
    else:
        owner[key] = value


def _keep(unit_text, name, owner, value):
    """What gives the value again. Buffers and simple values are kept. Other tensors (something to be logged, a loss) may
    be large, or hold the graph of the step before, and are not kept for the second run, which hardly ever reads them."""
    if value is ABSENT or isinstance(value, SIMPLE) or (isinstance(value, torch.Tensor) and "training" not in owner
                                                       and value.grad_fn is None):
        return lambda: value
    try:
        reference = weakref.ref(value)
    except TypeError:  # a list, a dictionary
        return lambda: Gone(unit_text, name)
    return lambda: Gone(unit_text, name) if reference() is None else reference()


class Untouchable:
    """Stands where something is that nobody may use. Every use raises ApplyError with `sentence`."""

    def __init__(self, sentence):
        object.__setattr__(self, "sentence", sentence)

    def __getattr__(self, name):
        return self._refuse()

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return next(_untouchable_in((args, kwargs or {})))._refuse()

    def _refuse(self, *_, **__):
        raise ApplyError(object.__getattribute__(self, "sentence"))

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse
    __matmul__ = __rmatmul__ = __pow__ = __neg__ = __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __iter__ = __len__ = __bool__ = __float__ = __int__ = __getitem__ = __setitem__ = __contains__ = __call__ = _refuse
    __hash__ = object.__hash__


class Gone(Untouchable):
    def __init__(self, unit_text, name):
        super().__init__(f"The unit {unit_text} reads its attribute {name}, which it has assigned anew since, and backward runs it "
                         "a second time; what was there before is gone. Expected a buffer (register_buffer), which is kept for "
                         "the second run.")


def _untouchable_in(value):
    if issubclass(type(value), Untouchable):
        yield value
    elif isinstance(value, (list, tuple, dict)):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _untouchable_in(one)


def _join(name, key):
    return f"{name}.{key}" if name else key


def _same_bytes(one, other):
    if one.shape != other.shape:
        return False
    return torch.equal(one.detach().reshape(-1).view(torch.uint8), other.reshape(-1).view(torch.uint8))
