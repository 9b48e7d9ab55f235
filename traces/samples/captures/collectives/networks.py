"""Small networks whose steps are run twice: by real processes on the CPU, and captured on fake tensors."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..")]

import torch  # noqa: E402
import torch.nn as nn  # noqa: E402
import torch.nn.functional as F  # noqa: E402

import models  # noqa: E402


class OddBlock(nn.Module):
    """Dimensions that no number of ranks divides, and a gate of one row."""

    def __init__(self, width, inner):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, inner), nn.Linear(inner, width)
        self.gate = nn.Linear(width, 1)

    def forward(self, x):
        y = self.norm(x)
        return x + torch.sigmoid(self.gate(y)) * self.down(F.relu(self.up(y)))


class Odd(nn.Module):
    def __init__(self, blocks=3, width=131, inner=257, classes=7):
        super().__init__()
        self.first = nn.Linear(33, width)
        self.blocks = nn.ModuleList(OddBlock(width, inner) for _ in range(blocks))
        self.head = nn.Linear(width, classes)

    def forward(self, x, targets):
        x = self.first(x)
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(x), targets)


class OddFrozen(Odd):
    """Trained from the second block on."""

    def __init__(self):
        super().__init__()
        self.first.requires_grad_(False), self.blocks[0].requires_grad_(False)


class TwoTypesBlock(nn.Module):
    """Norms in fp32, products in bf16."""

    def __init__(self, width):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.up.to(torch.bfloat16), self.down.to(torch.bfloat16)

    def forward(self, x):
        y = self.norm(x).to(torch.bfloat16)
        return x + self.down(F.relu(self.up(y))).float()


class TwoTypes(nn.Module):
    def __init__(self, blocks=3, width=128, classes=16):
        super().__init__()
        self.first = nn.Linear(512, width)
        self.blocks = nn.ModuleList(TwoTypesBlock(width) for _ in range(blocks))
        self.head = nn.Linear(width, classes)

    def forward(self, x, targets):
        x = self.first(x)
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(x), targets)


class LastInFp32(nn.Module):
    """All in bf16 but what makes the result."""

    def __init__(self, blocks=3, width=128, classes=16):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(width, width) for _ in range(blocks)).to(torch.bfloat16)
        self.head = nn.Linear(width, classes)

    def forward(self, x, targets):
        x = x.to(torch.bfloat16)
        for block in self.blocks:
            x = F.relu(block(x))
        return F.cross_entropy(self.head(x.float()), targets)


def words(device):
    return tuple(torch.randint(0, 1001, (2, 64), device=device) for _ in range(2))


def images(device):
    return torch.randn(2, 3, 64, 64, device=device), torch.randint(0, 10, (2,), device=device)


def rows(width, classes):
    return lambda device: (torch.randn(16, width, device=device), torch.randint(0, classes, (16,), device=device))


# name: (model, batch of one pass on a device)
NETWORKS = {
    "gpt": (lambda: models.Gpt2(layers=3, width=256, heads=4, length=64, vocabulary=1001), words),
    "llama": (lambda: models.Llama(layers=3, width=256, heads=4, kv_heads=2, inner=512, vocabulary=1001), words),
    "resnet": (lambda: models.ResNet50(counts=(2, 1, 1, 1), classes=10), images),
    "odd": (Odd, rows(33, 7)),
    "odd_frozen": (OddFrozen, rows(33, 7)),
    "last_in_fp32": (LastInFp32, rows(128, 16)),
    "two_types": (TwoTypes, rows(512, 16)),
}
