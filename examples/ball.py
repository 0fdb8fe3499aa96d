"""The ball of conditional gradient for networks of two features, and its corners: python examples/ball.py.

Symmetric matrices with the entries a, b; b, c and a nuclear norm of at most a radius are a cylinder. Its corners are
the matrices of rank one on its rims, each a network of one unit.
"""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np

RADIUS = 1.5


def oracle(Gamma: np.ndarray) -> np.ndarray:
    """Return the corner S that minimises <Gamma, S>."""
    values, vectors = np.linalg.eigh(Gamma)
    best = np.argmax(np.abs(values))
    h = vectors[:, best]
    return -RADIUS * np.sign(values[best]) * np.outer(h, h)


def conditional_gradient(T: np.ndarray, A: np.ndarray, rounds: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return the points and the corners of all rounds, for the sum of A (W - T)^2 / 2."""
    W, points, corners = np.zeros((2, 2)), [], []
    for _ in range(rounds):
        Gamma = A * (W - T)
        S = oracle(Gamma)
        points.append(W)
        corners.append(S)
        step = -np.sum(Gamma * (S - W)) / np.sum(A * (S - W) ** 2)
        W = W + min(1.0, step) * (S - W)
    return points, corners


def place(matrices: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the coordinates (a - c) / 2, b and (a + c) / 2."""
    (a, b), (_, c) = np.moveaxis(np.array(matrices), 0, -1)
    return (a - c) / 2, b, (a + c) / 2


def main() -> None:
    """Draw the ball, the points and their corners."""
    T, A = np.array([[0.9, 1.0], [1.0, 0.4]]), np.array([[1.0, 0.3], [0.3, 2.0]])
    points, corners = conditional_gradient(T, A, 10)
    figure, ax = plt.subplots(figsize=(4.5, 4.5), subplot_kw={"projection": "3d"})
    angle, height = np.meshgrid(np.linspace(0, 2 * np.pi, 60), [-RADIUS / 2, RADIUS / 2])
    ball = RADIUS / 2 * np.cos(angle), RADIUS / 2 * np.sin(angle), height
    ax.plot_surface(*ball, color="C0", alpha=0.15)
    for rim in zip(*ball, strict=True):
        ax.plot(*rim, color="C0", linewidth=2)
    for segment in zip(points, corners, strict=True):
        ax.plot(*place(segment), ":", color="0.5")
    ax.plot(*place(points), "ko-", markersize=3, label="W")
    ax.plot(*place(corners), "o", color="C1", label="S: one unit each")
    ax.plot(*place([T]), "*", color="C3", markersize=10, label="minimum without the ball")
    ax.set(xlabel="(a - c) / 2", ylabel="b", zlabel="(a + c) / 2", xticks=[], yticks=[], zticks=[])
    ax.view_init(20, 35)
    ax.set_box_aspect((1, 1, 0.8), zoom=1.0)
    figure.legend(loc="upper left")
    figure.savefig("ball.png")


if __name__ == "__main__":
    main()
