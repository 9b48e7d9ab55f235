"""The networks of the differential test: eight families in small sizes. Each forward returns the loss.

Most are those of the sample captures (traces/samples/captures/models.py). What is here alone: a recurrent network and
a U-Net. Sizes are chosen for their activations to take more than parameters and optimizer states, so that peaks lie
where plans act.
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "traces", "samples", "captures"))

import torch  # noqa: E402
import torch.nn as nn  # noqa: E402
import torch.nn.functional as F  # noqa: E402

import models as samples  # noqa: E402
from make_captures import words  # noqa: E402


def images(batch, size, classes):
    return lambda: (torch.randn(batch, 3, size, size, device="cuda"),
                    torch.randint(0, classes, (batch,), device="cuda"))


class RecurrentLayer(nn.Module):
    """One LSTM layer, unrolled: a cell is called once per time step."""

    def __init__(self, width, dropout):
        super().__init__()
        self.cell, self.norm, self.dropout = nn.LSTMCell(width, width), nn.LayerNorm(width), nn.Dropout(dropout)

    def forward(self, x):
        state, results = None, []
        for part in x.unbind(1):
            state = self.cell(part, state)
            results.append(state[0])
        return x + self.dropout(self.norm(torch.stack(results, dim=1)))


class Lstm(nn.Module):
    def __init__(self, layers, width, vocabulary, dropout=0.1):
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(RecurrentLayer(width, dropout) for _ in range(layers))
        self.head = nn.Linear(width, vocabulary)

    def forward(self, words, targets):
        x = self.words(words)
        for layer in self.layers:
            x = layer(x)
        return F.cross_entropy(self.head(x).flatten(0, 1), targets.flatten())


class ResidualBlock(nn.Module):
    """Two convolutions behind group norms, as the U-Nets of diffusion models have them."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(8, inputs), nn.GroupNorm(8, outputs)
        self.conv1, self.conv2 = nn.Conv2d(inputs, outputs, 3, padding=1), nn.Conv2d(outputs, outputs, 3, padding=1)
        self.shortcut = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x):
        y = self.conv1(F.silu(self.norm1(x)))
        return self.shortcut(x) + self.conv2(F.silu(self.norm2(y)))


class UNet(nn.Module):
    """What a block of the way down makes is read again, much later, by the block of the same size on the way up."""

    def __init__(self, widths=(32, 64, 128)):
        super().__init__()
        self.first, self.last = nn.Conv2d(3, widths[0], 3, padding=1), nn.Conv2d(widths[0], 3, 3, padding=1)
        pairs = list(zip((widths[0], *widths), widths))
        self.down = nn.ModuleList(ResidualBlock(a, b) for a, b in pairs)
        self.middle = ResidualBlock(widths[-1], widths[-1])
        self.up = nn.ModuleList(ResidualBlock(2 * b, a) for a, b in reversed(pairs))

    def forward(self, images, targets):
        x, skipped = self.first(images), []
        for block in self.down:
            x = block(x)
            skipped.append(x)
            x = F.avg_pool2d(x, 2)
        x = self.middle(x)
        for block in self.up:
            x = F.interpolate(x, scale_factor=2.0, mode="nearest")
            x = block(torch.cat((x, skipped.pop()), dim=1))
        return F.mse_loss(self.last(x).float(), targets)


def pictures(batch, size):
    return lambda: tuple(torch.randn(batch, 3, size, size, device="cuda") for _ in range(2))


# name: (model, its inputs, "amp" (fp32 with bf16 autocast), "bf16" (parameters and all) or "fp32")
FAMILIES = {
    "gpt2": (lambda: samples.Gpt2(layers=4, width=256, heads=4, length=256, vocabulary=1000), words(32, 256, 1000), "amp"),
    "llama": (lambda: samples.Llama(layers=4, width=256, heads=4, kv_heads=2, inner=704, vocabulary=1000),
              words(32, 256, 1000), "bf16"),
    "bert": (lambda: samples.Bert(layers=4, width=256, heads=4, length=256, vocabulary=1000), words(32, 256, 1000), "amp"),
    "resnet": (lambda: samples.ResNet50(counts=(2, 2, 2, 1)), images(32, 128, 1000), "amp"),
    "vit": (lambda: samples.Vit(layers=4, width=256, heads=4, image=224), images(32, 224, 1000), "amp"),
    "moe": (lambda: samples.Llama(layers=3, width=256, heads=4, kv_heads=2, inner=512, vocabulary=1000, experts=(4, 2)),
            words(32, 256, 1000), "bf16"),
    "lstm": (lambda: Lstm(layers=3, width=256, vocabulary=1000), words(512, 12, 1000), "fp32"),
    "unet": (UNet, pictures(16, 64), "amp"),
}


def make(family):
    """(model, batch, whether forward runs under autocast); on fake CUDA tensors."""
    build, inputs, numbers = FAMILIES[family]
    with torch.device("cuda"):
        model = build()
    return model.to(torch.bfloat16) if numbers == "bf16" else model, inputs(), numbers == "amp"
