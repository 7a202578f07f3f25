"""Find the minimum of a parabola by gradient descent. Fast, and sensitive to its parameters."""

import argparse

import yurt

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, required=True)
parser.add_argument("--seed", type=int, default=0)
options = parser.parse_args()

x = 3.0 + options.seed
for step in range(20):
    x -= options.lr * 2 * x
    yurt.log(step=step, loss=x * x)
print(f"loss {x * x:.6f}")
