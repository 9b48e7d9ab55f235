"""The networks of the matrix, in plain PyTorch: their own code, so that a row means the same with every
version of every model library, and so that checkpoint units and module names are known exactly.

A network is a list of repeated blocks between a head and a tail; `units` blocks are checkpointed together
where asked. Parameters are random: what is measured is time and memory, not learning.
"""

import contextlib

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts, CheckpointPolicy


class Span:
    """Names a part of the network in a profile ("nn.Module: layers.3"), only while one is taken."""

    enabled = False

    def __new__(cls, name):
        return torch.profiler.record_function("nn.Module: " + name) if cls.enabled else contextlib.nullcontext()


# Outputs of these are kept by selective checkpointing, the rest is computed again.
KEPT = {
    torch.ops.aten.mm.default,
    torch.ops.aten.addmm.default,
    torch.ops.aten.bmm.default,
    torch.ops.aten._scaled_dot_product_flash_attention.default,
    torch.ops.aten._scaled_dot_product_efficient_attention.default,
    torch.ops.aten._scaled_dot_product_cudnn_attention.default,
    torch.ops.aten.convolution.default,
}


def selective():
    def policy(_context, op, *_args, **_kwargs):
        return CheckpointPolicy.MUST_SAVE if op in KEPT else CheckpointPolicy.PREFER_RECOMPUTE

    return create_selective_checkpoint_contexts(policy)


def run_blocks(blocks, x, mode):
    """Blocks one after the other: mode "none", "full" (every block a unit), "every2" (two blocks a unit), "selective"."""

    def unit(first, count):
        def forward(value):
            for i in range(first, first + count):
                with Span(f"layers.{i}"):
                    value = blocks[i](value)
            return value

        return forward

    size = 2 if mode == "every2" else 1
    for first in range(0, len(blocks), size):
        forward = unit(first, min(size, len(blocks) - first))
        if mode == "none":
            x = forward(x)
        elif mode == "selective":
            x = checkpoint(forward, x, use_reentrant=False, context_fn=selective)
        else:
            x = checkpoint(forward, x, use_reentrant=False)
    return x


class Attention(nn.Module):
    def __init__(self, width, heads, kv_heads=None, causal=True, bias=True, rotary=False):
        super().__init__()
        self.heads, self.kv_heads, self.causal, self.rotary = heads, kv_heads or heads, causal, rotary
        self.size = width // heads
        self.qkv = nn.Linear(width, (heads + 2 * self.kv_heads) * self.size, bias=bias)
        self.out = nn.Linear(width, width, bias=bias)

    def rotate(self, x):
        length, half = x.shape[2], self.size // 2
        angle = torch.arange(length, device=x.device)[:, None] * 10000.0 ** (-torch.arange(half, device=x.device) / half)
        cosine, sine = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        a, b = x[..., :half], x[..., half:]
        return torch.cat((a * cosine - b * sine, b * cosine + a * sine), dim=-1)

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = self.qkv(x).split(
            [self.heads * self.size, self.kv_heads * self.size, self.kv_heads * self.size], dim=-1)
        q = q.view(batch, length, self.heads, self.size).transpose(1, 2)
        k = k.view(batch, length, self.kv_heads, self.size).transpose(1, 2)
        v = v.view(batch, length, self.kv_heads, self.size).transpose(1, 2)
        if self.rotary:
            q, k = self.rotate(q), self.rotate(k)
        if self.kv_heads != self.heads:
            k = k.repeat_interleave(self.heads // self.kv_heads, dim=1)
            v = v.repeat_interleave(self.heads // self.kv_heads, dim=1)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(y.transpose(1, 2).reshape(batch, length, -1))


class GptBlock(nn.Module):
    def __init__(self, width, heads, causal=True):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, causal=causal)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        with Span("attention"):
            x = x + self.attention(self.norm1(x))
        with Span("mlp"):
            return x + self.down(F.gelu(self.up(self.norm2(x))))


class BertBlock(nn.Module):
    """Normalization after the sum, no mask: as BERT."""

    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, causal=False)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        with Span("attention"):
            x = self.norm1(x + self.attention(x))
        with Span("mlp"):
            return self.norm2(x + self.down(F.gelu(self.up(x))))


class LlamaBlock(nn.Module):
    def __init__(self, width, heads, kv_heads, inner):
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)
        self.attention = Attention(width, heads, kv_heads, bias=False, rotary=True)
        self.gate, self.up = nn.Linear(width, inner, bias=False), nn.Linear(width, inner, bias=False)
        self.down = nn.Linear(inner, width, bias=False)

    def forward(self, x):
        with Span("attention"):
            x = x + self.attention(self.norm1(x))
        with Span("mlp"):
            y = self.norm2(x)
            return x + self.down(F.silu(self.gate(y)) * self.up(y))


class LanguageModel(nn.Module):
    """Word embedding, blocks, norm, output layer; cross entropy against the next (or masked) word."""

    def __init__(self, block, layers, width, vocabulary, positions=0, tied=True, norm=nn.LayerNorm):
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(positions, width) if positions else None
        self.blocks = nn.ModuleList(block() for _ in range(layers))
        self.norm = norm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        nn.init.normal_(self.words.weight, std=0.02)
        if tied:
            self.head.weight = self.words.weight

    def forward(self, batch, mode):
        words, targets = batch
        with Span("embedding"):
            x = self.words(words)
            if self.positions is not None:
                x = x + self.positions(torch.arange(words.shape[1], device=words.device))
        x = run_blocks(self.blocks, x, mode)
        with Span("head"):
            logits = self.head(self.norm(x))
            return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


class VisionTransformer(nn.Module):
    def __init__(self, layers, width, heads, image=224, patch=16, classes=1000):
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.positions = nn.Parameter(torch.randn(1, (image // patch) ** 2 + 1, width) * 0.02)
        self.blocks = nn.ModuleList(GptBlock(width, heads, causal=False) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, batch, mode):
        images, targets = batch
        with Span("embedding"):
            x = self.patches(images).flatten(2).transpose(1, 2)
            x = torch.cat((self.token.expand(len(x), -1, -1).to(x.dtype), x), dim=1) + self.positions
        x = run_blocks(self.blocks, x, mode)
        with Span("head"):
            return F.cross_entropy(self.head(self.norm(x[:, 0])), targets)


class Bottleneck(nn.Module):
    def __init__(self, inputs, inner, stride):
        super().__init__()
        outputs = 4 * inner
        self.convolutions = nn.ModuleList([
            nn.Conv2d(inputs, inner, 1, bias=False),
            nn.Conv2d(inner, inner, 3, stride, 1, bias=False),
            nn.Conv2d(inner, outputs, 1, bias=False)])
        self.norms = nn.ModuleList([nn.BatchNorm2d(inner), nn.BatchNorm2d(inner), nn.BatchNorm2d(outputs)])
        self.shortcut = None
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = x
        for i, (convolution, norm) in enumerate(zip(self.convolutions, self.norms)):
            y = norm(convolution(y))
            if i < 2:
                y = F.relu(y, inplace=True)
        return F.relu(y + (x if self.shortcut is None else self.shortcut(x)), inplace=True)


class ResNet(nn.Module):
    def __init__(self, counts=(3, 4, 6, 3), classes=1000):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(True), nn.MaxPool2d(3, 2, 1))
        blocks, inputs = [], 64
        for stage, count in enumerate(counts):
            inner = 64 << stage
            for i in range(count):
                blocks.append(Bottleneck(inputs, inner, 2 if stage > 0 and i == 0 else 1))
                inputs = 4 * inner
        self.blocks = nn.ModuleList(blocks)
        self.head = nn.Linear(inputs, classes)

    def forward(self, batch, mode):
        images, targets = batch
        with Span("stem"):
            x = self.stem(images)
        x = run_blocks(self.blocks, x, mode)
        with Span("head"):
            return F.cross_entropy(self.head(x.mean((2, 3))), targets)


def words(batch, length, vocabulary, device):
    draw = torch.randint(0, vocabulary, (batch, length + 1), device=device)
    return draw[:, :-1].contiguous(), draw[:, 1:].contiguous()


def images(batch, size, device):
    return torch.randn(batch, 3, size, size, device=device), torch.randint(0, 1000, (batch,), device=device)


def gpt(layers, width, heads, length=1024, vocabulary=50257):
    make = lambda: LanguageModel(lambda: GptBlock(width, heads), layers, width, vocabulary, positions=length)
    return make, lambda batch, device: words(batch, length, vocabulary, device)


def llama(layers, width, heads, kv_heads, inner, length=2048, vocabulary=128256):
    make = lambda: LanguageModel(lambda: LlamaBlock(width, heads, kv_heads, inner), layers, width, vocabulary, norm=nn.RMSNorm)
    return make, lambda batch, device: words(batch, length, vocabulary, device)


def bert(layers, width, heads, length=512, vocabulary=30522):
    make = lambda: LanguageModel(lambda: BertBlock(width, heads), layers, width, vocabulary, positions=length)
    return make, lambda batch, device: words(batch, length, vocabulary, device)


def vit(layers, width, heads):
    return lambda: VisionTransformer(layers, width, heads), lambda batch, device: images(batch, 224, device)


# name -> (constructor, input maker, batch of the baseline). Shapes: GPT-2 (Radford et al. 2019), BERT-large (Devlin
# et al. 2018), ViT-L/16 (Dosovitskiy et al. 2020), Llama 3.2 1B and 3B (model cards), ResNet-50 (He et al. 2015).
MODELS = {
    "gpt2-124m": (*gpt(12, 768, 12), 16),
    "bert-large": (*bert(24, 1024, 16), 16),
    "llama-1b": (*llama(16, 2048, 32, 8, 8192), 4),
    "resnet50": (ResNet, lambda batch, device: images(batch, 224, device), 128),
    "vit-l": (*vit(24, 1024, 16), 64),
    "gpt2-355m": (*gpt(24, 1024, 16), 8),
    "gpt2-1.5b": (*gpt(48, 1600, 25), 4),
    "llama-3b": (*llama(28, 3072, 24, 8, 8192), 2),
}

# The same code at a size that any computer runs in a second: for tests of the script, never for results.
TINY = {
    "tiny-gpt": (*gpt(4, 64, 4, length=32, vocabulary=256), 4),
    "tiny-llama": (*llama(4, 64, 4, 2, 128, length=32, vocabulary=256), 4),
    "tiny-bert": (*bert(4, 64, 4, length=32, vocabulary=256), 4),
    "tiny-resnet": (lambda: ResNet((1, 1, 1, 1)), lambda batch, device: images(batch, 32, device), 4),
}
