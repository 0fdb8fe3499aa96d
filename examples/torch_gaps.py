"""Certificates of networks in training by PyTorch: how far 2, 4 and 8 units are from the best of any size."""

from typing import Any

import matplotlib.pyplot as plt
import torch
from sklearn.datasets import load_wine

import mopn

STRENGTH, EPOCHS = 5.0, (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3000)
X, y = load_wine(return_X_y=True)
X, y = torch.tensor((X - X.mean(axis=0)) / X.std(axis=0)).float(), torch.tensor(y)


def train(first: torch.nn.Linear, second: torch.nn.Linear) -> list[Any]:
    """Train by Adam; return a certificate after each of EPOCHS."""
    adam = torch.optim.Adam([*first.parameters(), *second.parameters()], lr=0.02)
    found = []
    for epoch in range(1, EPOCHS[-1] + 1):
        H, V = torch.column_stack([first.bias, first.weight]), second.weight.T
        norm = (H.square().sum(dim=1) * V.norm(dim=1)).sum()
        loss = torch.nn.functional.cross_entropy(second(first(X) ** 2), y, reduction="sum")
        adam.zero_grad()
        (loss + STRENGTH * norm).backward()
        adam.step()
        if epoch in EPOCHS:
            H, V = torch.column_stack([first.bias, first.weight]), second.weight.T
            found.append(mopn.certify_network(H, V, (None, second.bias), X=X, y=y))
    return found


figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
for units, color in ((2, "#D55E00"), (4, "#009E73"), (8, "#0072B2")):
    torch.manual_seed(0)
    found = train(torch.nn.Linear(13, units), torch.nn.Linear(units, 3))
    losses = [certificate.objective for certificate in found]
    gaps = [certificate.relative_gap for certificate in found]
    restricted = [certificate.restricted_gap / certificate.objective for certificate in found]
    left.loglog(EPOCHS, losses, "o-", label=f"{units} units", color=color, markersize=3)
    left.loglog(EPOCHS, [certificate.lower for certificate in found], ":", color=color)
    right.loglog(EPOCHS, gaps, "o-", color=color, markersize=3)
    right.loglog(EPOCHS, restricted, "--", color=color)
    print(f"{units} units: gap {gaps[-1]:.0%}, norm {found[-1].norm:.0f}, strength {found[-1].strength:.1f}")
left.plot([], [], "k:", label="proven bound for the norm")
right.plot([], [], "k--", label="with the units as they are")
left.set(xlabel="epochs", ylabel="sum of the losses", ylim=(1, None))
right.set(xlabel="epochs", ylabel="proven gap, share of the loss", ylim=(1e-5, 2))
figure.legend(loc="outside upper center", ncols=5, frameon=False, fontsize="small")
figure.savefig("torch.png", dpi=100)
