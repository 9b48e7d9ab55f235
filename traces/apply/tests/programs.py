"""Small models that really train on the CPU, plans for them, and steps whose every result can be compared."""

import contextlib
import json
import os
import sys

import torch
from torch import nn

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..")]

import memwall_apply  # noqa: E402
from memwall_apply.hook import Hook  # noqa: E402
from memwall_apply.storages import plain_tensors  # noqa: E402


class Block(nn.Module):
    def __init__(self, width, dropout):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        q, k, v = self.qkv(self.norm1(x)).chunk(3, dim=-1)
        x = x + self.dropout(self.out(nn.functional.scaled_dot_product_attention(q, k, v)))
        return x + self.dropout(self.down(nn.functional.gelu(self.up(self.norm2(x)))))


class Gpt(nn.Module):
    """Computes its own loss."""

    def __init__(self, width=16, layers=4, vocabulary=32, dropout=0.0):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.h = nn.ModuleList(Block(width, dropout) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, words, targets):
        x = self.embedding(words)
        for block in self.h:
            x = block(x)
        return nn.functional.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())

    @staticmethod
    def batch():
        return torch.randint(0, 32, (4, 8)), torch.randint(0, 32, (4, 8))


class Residual(nn.Module):
    def __init__(self, width, cumulative):
        super().__init__()
        self.conv1, self.conv2 = (nn.Conv2d(width, width, 3, padding=1, bias=False) for _ in range(2))
        self.norm1, self.norm2 = nn.BatchNorm2d(width), nn.BatchNorm2d(width, momentum=None if cumulative else 0.1)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        y = self.norm2(self.conv2(self.relu(self.norm1(self.conv1(x)))))
        y += x
        return self.relu(y)


class ResNet(nn.Module):
    """BatchNorm, operators in place. `cumulative`: averages over all batches, for which the counter is read back."""

    def __init__(self, width=8, blocks=3, dropout=0.0, cumulative=True):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, padding=1)
        self.blocks = nn.ModuleList(Residual(width, cumulative) for _ in range(blocks))
        self.dropout, self.head = nn.Dropout(dropout), nn.Linear(width, 10)

    def forward(self, images, targets):
        x = self.stem(images)
        for block in self.blocks:
            x = block(x)
        return nn.functional.cross_entropy(self.head(self.dropout(x.mean((2, 3)))), targets)

    @staticmethod
    def batch():
        return torch.randn(4, 3, 8, 8), torch.randint(0, 10, (4,))


def write_plan(path, model, realization, expected=None):
    """A plan as memwall writes it, for this model. Returns it as loaded."""
    sizes = [[name, p.untyped_storage().nbytes()] for name, p in model.named_parameters()]
    document = {"format": "memwall-plan", "version": 1, "made_by": "a test", "realization": {
        "forwards": 1, "recompute": [], "lazy_ops": [], "offload": [], "homes": [], "unnamed": [],
        "model": {"parameters": sizes}, **realization}}
    if expected:
        document["expected"] = expected
    with open(path, "w") as file:
        json.dump(document, file)
    return memwall_apply.load(path)


def units(*names, early_stop=True, save_ops=()):
    return {"recompute": [{"units": [list(unit) for unit in names], "early_stop": early_stop, "preserve_rng": True,
                           "save_ops": list(save_ops)}]}


def lazy(*groups):
    """Each group: (module, operator)s."""
    return {"lazy_ops": [{"ops": [{"module": m, "op": op} for m, op in group], "preserve_rng": True} for group in groups]}


def saved_sizes(model, autocast=False):
    """Bytes of the storages that a hook around the model sees in one forward, in the order of saving."""
    hook, batch = Hook(model, None, None, "cpu"), model.batch()
    saved = hook.open(plain_tensors(batch))
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
        with torch.autograd.graph.saved_tensors_hooks(saved.pack, saved.unpack):
            model(*batch)
    return [storage.bytes for storage in saved.numbered]


def offload(sizes, buffers=2, ahead=1, keep=1):
    """All of these storages but the last ones travel; each comes back where the one saved `ahead` behind it is asked for."""
    numbers = range(len(sizes) - keep)
    moves = [{"number": n, "bytes": sizes[n], "module": "", "op": "?", "call": 0,
              "give_back": n + buffers if n + buffers < len(sizes) else -1,
              "fetch": n + ahead if n + ahead < len(sizes) else -1} for n in numbers]
    return {"offload": [{"tier": "host", "through": "", "pinned": True, "side_streams": True, "count_min_bytes": 1,
                         "moves": moves, "fetch_order": list(reversed(numbers))}]}


HOST_OPTIMIZER = {"optimizer": {"place": "host", "implementation": "cpu_adam", "pinned": True, "side_streams": True}}


def train(model, steps=5, autocast=False, accumulation=1, prepare=lambda model, optimizer: model, clip=None):
    """Losses, gradients, weights, buffers and optimizer states of every step. `prepare(model, optimizer)`: returns what is
    called instead of the model."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, fused=True)
    gradients = {}
    for p in filter(lambda p: p.requires_grad, model.parameters()):  # before anybody takes them away; of the last pass
        p.register_post_accumulate_grad_hook(lambda p: gradients.__setitem__(p, p.grad.detach().clone()))
    called = prepare(model, optimizer)
    torch.manual_seed(1)
    results = []
    for _ in range(steps):
        for _ in range(accumulation):
            batch = model.batch()
            with torch.autocast("cpu", dtype=torch.bfloat16) if autocast else contextlib.nullcontext():
                loss = called(*batch)
            loss.backward()
            results.append(loss.detach().clone())
        if clip:
            results.append(torch.nn.utils.clip_grad_norm_(model.parameters(), clip))
        results += [gradients[p].clone() for p in model.parameters() if p in gradients]
        optimizer.step()
        optimizer.zero_grad()
        results += [t.detach().clone() for t in model.state_dict().values()]
        results += [value.detach().clone() for state in optimizer.state.values() for value in state.values()]
    return results


def same(first, second):
    return len(first) == len(second) and all(torch.equal(a, b) for a, b in zip(first, second))
