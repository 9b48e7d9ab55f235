"""A training script that plans its own memory: in one process the step is recorded on fake tensors, planned for a budget,
and trained with the plan. Needs torch 2.15 and `pip install . traces/capture traces/apply`.

    python plan_in_training.py MACHINE BUDGET [STEPS]      # rtx-4090 60%

Without a GPU the training runs on the CPU, where a plan saves nothing but does the same.
"""

import os
import sys
import tempfile

import memwall_apply
import torch

import memwall as mw


class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.up = torch.nn.Linear(width, 4 * width)
        self.down = torch.nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))


def build(device="cuda"):
    """The model, its optimizer, and a function that trains it once: for recording and for training alike."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(*(Block(256) for _ in range(6))).to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    x = torch.randn(64, 256).to(device)

    def step():
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    return model, optimizer, step


def plan_for(machine, budget, folder):
    """What memwall recommends for the step within the budget, as memwall_apply takes it."""
    capture = os.path.join(folder, "step.mwc.gz")
    memwall_apply.record(capture, build)
    recommended = mw.plan(mw.Scenario(mw.Step(capture), machine, executable="torch"), budget=budget, smallest=False)
    if not recommended.fits:
        raise SystemExit(f"No plan keeps the step to {budget}: {recommended.missing_bytes} bytes are missing.")
    print(f"{' + '.join(recommended.policies) or 'no plan is needed'}: {1e3 * recommended.step_time:.3f} ms a step on {machine}")
    file = os.path.join(folder, "step.plan")
    recommended.write(file)
    return memwall_apply.load(file) if recommended.policies else None


def main(machine, budget, steps=3):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    with tempfile.TemporaryDirectory() as folder:
        plan = plan_for(machine, budget, folder)
    model, optimizer, step = build(device)
    applied = memwall_apply.apply(model, plan, optimizer) if plan else None
    losses = [step().item() for _ in range(int(steps))]
    print(f"losses: {', '.join(f'{loss:.6f}' for loss in losses)}")
    if applied:
        print(f"done by the plan: {applied.counts}")
    return losses


if __name__ == "__main__":
    main(*sys.argv[1:])
