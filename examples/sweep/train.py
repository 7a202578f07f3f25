"""Finds the lowest point of a parabola by gradient descent: quick, and sensitive to its parameters."""

import argparse

import yurt

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, required=True)
parser.add_argument("--seed", type=int, default=0)
given = parser.parse_args()

x = 3.0 + given.seed
for step in range(20):
    x -= given.lr * 2 * x
    yurt.log(step=step, loss=x * x)
print(f"loss {x * x:.6f}")
