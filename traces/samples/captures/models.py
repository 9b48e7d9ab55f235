"""The networks of the sample captures, in plain PyTorch: their own code, so that a capture means the same with every
version of every model library. Each forward returns the loss."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Attention(nn.Module):
    """One product for queries, keys and values, as GPT-2 has it."""

    def __init__(self, width, heads, causal, dropout):
        super().__init__()
        self.heads, self.causal, self.dropout = heads, causal, dropout
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in self.qkv(x).split(width, dim=-1))
        dropout = self.dropout if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal, dropout_p=dropout)
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


class PlainAttention(Attention):
    """Scores in memory, as before fused kernels: what the formula 34sbh + 5as^2b counts."""

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in self.qkv(x).split(width, dim=-1))
        scores = torch.matmul(q, k.transpose(-1, -2)) * (width // self.heads) ** -0.5
        y = torch.matmul(F.dropout(scores.softmax(-1), self.dropout, self.training), v)
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    """A transformer layer; normalization before each part (GPT-2, ViT) or after it (BERT)."""

    def __init__(self, width, heads, causal, dropout, norm_first=True, attention=Attention):
        super().__init__()
        self.norm_first = norm_first
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = attention(width, heads, causal, dropout)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.dropout1, self.dropout2 = nn.Dropout(dropout), nn.Dropout(dropout)

    def mlp(self, x):
        return self.dropout2(self.down(F.gelu(self.up(x))))

    def forward(self, x):
        if self.norm_first:
            x = x + self.dropout1(self.attention(self.norm1(x)))
            return x + self.mlp(self.norm2(x))
        x = self.norm1(x + self.dropout1(self.attention(x)))
        return self.norm2(x + self.mlp(x))


class Gpt2(nn.Module):
    def __init__(self, layers=12, width=768, heads=12, length=1024, vocabulary=50257, dropout=0.1, attention=Attention):
        super().__init__()
        self.words, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.dropout = nn.Dropout(dropout)
        self.h = nn.ModuleList(Block(width, heads, True, dropout, attention=attention) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.words.weight

    def forward(self, words, targets):
        x = self.words(words) + self.positions(torch.arange(words.shape[1], device=words.device))
        x = self.dropout(x)
        for block in self.h:
            x = block(x)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())


class Bert(nn.Module):
    """Masked words; the output layer shares the word embedding."""

    def __init__(self, layers=24, width=1024, heads=16, length=512, vocabulary=30522, dropout=0.1):
        super().__init__()
        self.words, self.positions, self.types = (nn.Embedding(n, width) for n in (vocabulary, length, 2))
        self.norm, self.dropout = nn.LayerNorm(width), nn.Dropout(dropout)
        self.layer = nn.ModuleList(Block(width, heads, False, dropout, norm_first=False) for _ in range(layers))
        self.transform, self.transform_norm = nn.Linear(width, width), nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary)
        self.head.weight = self.words.weight

    def forward(self, words, targets):
        x = self.words(words) + self.positions(torch.arange(words.shape[1], device=words.device))
        x = self.dropout(self.norm(x + self.types(torch.zeros_like(words))))
        for layer in self.layer:
            x = layer(x)
        x = self.transform_norm(F.gelu(self.transform(x)))
        return F.cross_entropy(self.head(x).flatten(0, 1), targets.flatten())


class Vit(nn.Module):
    def __init__(self, layers=24, width=1024, heads=16, image=224, patch=16, classes=1000):
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.positions = nn.Parameter(torch.zeros(1, (image // patch) ** 2 + 1, width))
        self.blocks = nn.ModuleList(Block(width, heads, False, 0.0) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, images, targets):
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat((self.token.expand(len(x), -1, -1).to(x.dtype), x), dim=1) + self.positions
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(self.norm(x[:, 0])), targets)


class RotaryAttention(nn.Module):
    """Rotated queries and keys; fewer heads of keys and values than of queries."""

    def __init__(self, width, heads, kv_heads):
        super().__init__()
        self.heads, self.kv_heads, self.size = heads, kv_heads, width // heads
        self.q, self.out = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.k, self.v = (nn.Linear(width, kv_heads * self.size, bias=False) for _ in range(2))

    @staticmethod
    def rotate(x, cosine, sine):
        a, b = x.chunk(2, dim=-1)
        return x * cosine + torch.cat((-b, a), dim=-1) * sine

    def forward(self, x, cosine, sine):
        batch, length, width = x.shape
        q = self.q(x).view(batch, length, self.heads, self.size).transpose(1, 2)
        k, v = (part(x).view(batch, length, self.kv_heads, self.size).transpose(1, 2) for part in (self.k, self.v))
        q, k = self.rotate(q, cosine, sine), self.rotate(k, cosine, sine)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


class RmsNorm(nn.Module):
    def __init__(self, width, epsilon=1e-5):
        super().__init__()
        self.weight, self.epsilon = nn.Parameter(torch.ones(width)), epsilon

    def forward(self, x):
        y = x.float()
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + self.epsilon)
        return self.weight * y.to(x.dtype)


class SwiGlu(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.gate, self.up = nn.Linear(width, inner, bias=False), nn.Linear(width, inner, bias=False)
        self.down = nn.Linear(inner, width, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Experts(nn.Module):
    """A mixture of experts. Tokens are sorted by expert and every expert takes an equal share, as balanced routing
    gives it: shapes then do not depend on values."""

    def __init__(self, width, inner, experts, chosen):
        super().__init__()
        self.chosen = chosen
        self.gate = nn.Linear(width, experts, bias=False)
        self.experts = nn.ModuleList(SwiGlu(width, inner) for _ in range(experts))

    def forward(self, x):
        flat = x.flatten(0, 1)
        weights, choice = self.gate(flat).float().softmax(-1).topk(self.chosen, dim=-1)
        weights = (weights / weights.sum(-1, keepdim=True)).to(x.dtype)
        order = choice.flatten().argsort(stable=True)
        tokens = order // self.chosen
        parts = flat[tokens].chunk(len(self.experts))
        out = torch.cat([expert(part) for expert, part in zip(self.experts, parts)])
        out = out * weights.flatten()[order, None]
        return torch.zeros_like(flat).index_add(0, tokens, out).view_as(x)


class LlamaBlock(nn.Module):
    def __init__(self, width, heads, kv_heads, mlp):
        super().__init__()
        self.attention_norm, self.mlp_norm = RmsNorm(width), RmsNorm(width)
        self.attention, self.mlp = RotaryAttention(width, heads, kv_heads), mlp

    def forward(self, x, cosine, sine):
        x = x + self.attention(self.attention_norm(x), cosine, sine)
        return x + self.mlp(self.mlp_norm(x))


class Llama(nn.Module):
    def __init__(self, layers=32, width=4096, heads=32, kv_heads=8, inner=14336, vocabulary=128256, experts=None):
        super().__init__()
        self.size = width // heads
        self.words = nn.Embedding(vocabulary, width)
        make = (lambda: Experts(width, inner, *experts)) if experts else (lambda: SwiGlu(width, inner))
        self.layers = nn.ModuleList(LlamaBlock(width, heads, kv_heads, make()) for _ in range(layers))
        self.norm, self.head = RmsNorm(width), nn.Linear(width, vocabulary, bias=False)

    def rotation(self, length, dtype, device):
        with torch.no_grad():
            rate = 500000.0 ** (-torch.arange(0, self.size, 2, device=device).float() / self.size)
            angle = torch.outer(torch.arange(length, device=device).float(), rate)
            angle = torch.cat((angle, angle), dim=-1)
            return angle.cos().to(dtype), angle.sin().to(dtype)

    def forward(self, words, targets):
        x = self.words(words)
        cosine, sine = self.rotation(words.shape[1], x.dtype, x.device)
        for layer in self.layers:
            x = layer(x, cosine, sine)
        return F.cross_entropy(self.head(self.norm(x)).float().flatten(0, 1), targets.flatten())


class Bottleneck(nn.Module):
    def __init__(self, inputs, inner, stride):
        super().__init__()
        outputs = 4 * inner
        self.conv1, self.bn1 = nn.Conv2d(inputs, inner, 1, bias=False), nn.BatchNorm2d(inner)
        self.conv2, self.bn2 = nn.Conv2d(inner, inner, 3, stride, 1, bias=False), nn.BatchNorm2d(inner)
        self.conv3, self.bn3 = nn.Conv2d(inner, outputs, 1, bias=False), nn.BatchNorm2d(outputs)
        self.shortcut = None
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        y = F.relu(self.bn2(self.conv2(y)), inplace=True)
        y = self.bn3(self.conv3(y))
        y += x if self.shortcut is None else self.shortcut(x)
        return F.relu(y, inplace=True)


class ResNet50(nn.Module):
    def __init__(self, counts=(3, 4, 6, 3), classes=1000):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(True),
                                  nn.MaxPool2d(3, 2, 1))
        blocks, inputs = [], 64
        for stage, count in enumerate(counts):
            for i in range(count):
                blocks.append(Bottleneck(inputs, 64 << stage, 2 if stage > 0 and i == 0 else 1))
                inputs = 4 * (64 << stage)
        self.blocks, self.head = nn.Sequential(*blocks), nn.Linear(inputs, classes)

    def forward(self, images, targets):
        return F.cross_entropy(self.head(self.blocks(self.stem(images)).mean((2, 3))), targets)
