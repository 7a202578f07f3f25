"""Teaches a small neural network to read digits. Plain Python: no packages, no data to fetch.

The data are made here: ten letters of a tiny font, moved about and sprinkled with noise.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
from pathlib import Path

HEIGHT, WIDTH, HIDDEN, CLASSES = 6, 4, 24, 10

FONT = """
### .#. ### ### #.# ### ### ### ### ###
#.# ##. ..# ..# #.# #.. #.. ..# #.# #.#
#.# .#. ### .## ### ### ### .#. ### ###
#.# .#. #.. ..# ..# ..# #.# .#. #.# ..#
### ### ### ### ..# ### ### .#. ### ###
"""
GLYPHS = list(zip(*(line.split() for line in FONT.split("\n") if line), strict=True))

Vector = list[float]
Example = tuple[Vector, int]


def drawn(digit: int, noise: float, chance: random.Random) -> Vector:
    """A digit somewhere on a canvas, every point a little off."""
    down, right = chance.randrange(HEIGHT - 4), chance.randrange(WIDTH - 2)
    canvas = [chance.gauss(0, noise) for _point in range(HEIGHT * WIDTH)]
    for row, line in enumerate(GLYPHS[digit]):
        for column, point in enumerate(line):
            canvas[(down + row) * WIDTH + right + column] += point == "#"
    return canvas


def examples(count: int, noise: float, chance: random.Random) -> list[Example]:
    return [(drawn(each % CLASSES, noise, chance), each % CLASSES) for each in range(count)]


def dot(one: Vector, other: Vector) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


class Network:
    """One hidden layer; the last weight of every unit is its bias."""

    def __init__(self, chance: random.Random) -> None:
        def layer(units: int, inputs: int) -> list[Vector]:
            return [[chance.gauss(0, inputs**-0.5) for _weight in range(inputs + 1)] for _unit in range(units)]

        self.first, self.second = layer(HIDDEN, HEIGHT * WIDTH), layer(CLASSES, HIDDEN)

    def forward(self, canvas: Vector) -> tuple[Vector, Vector]:
        """What the hidden units say, and how likely each digit is."""
        hidden = [math.tanh(dot(unit, [*canvas, 1.0])) for unit in self.first]
        scores = [dot(unit, [*hidden, 1.0]) for unit in self.second]
        most = max(scores)
        powers = [math.exp(score - most) for score in scores]
        return hidden, [power / sum(powers) for power in powers]

    def learn(self, canvas: Vector, digit: int, rate: float) -> float:
        """One step down the slope; returns the loss before it."""
        hidden, likely = self.forward(canvas)
        wrong = [chance - (each == digit) for each, chance in enumerate(likely)]
        blame = [
            (1 - said * said) * sum(off * unit[at] for off, unit in zip(wrong, self.second, strict=True))
            for at, said in enumerate(hidden)
        ]
        for units, errors, inputs in ((self.second, wrong, hidden), (self.first, blame, canvas)):
            for unit, error in zip(units, errors, strict=True):
                step = rate * error
                unit[:] = [weight - step * each for weight, each in zip(unit, [*inputs, 1.0], strict=True)]
        return -math.log(max(likely[digit], 1e-12))

    def right(self, tests: list[Example]) -> float:
        """How many of the tests it reads rightly, from 0 to 1."""
        answers = ((self.forward(canvas)[1], digit) for canvas, digit in tests)
        return sum(likely.index(max(likely)) == digit for likely, digit in answers) / len(tests)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lr", type=float, default=0.1, help="learning rate")
    parser.add_argument("--epochs", type=int, default=8, help="times to go through the data")
    parser.add_argument("--noise", type=float, default=0.2, help="how noisy the pictures are")
    parser.add_argument("--seed", type=int, default=1, help="where chance begins")
    options = parser.parse_args()

    chance = random.Random(options.seed)
    training, tests = examples(1200, options.noise, chance), examples(200, options.noise, chance)
    network = Network(chance)
    accuracy = network.right(tests)
    for epoch in range(1, options.epochs + 1):
        chance.shuffle(training)
        loss = sum(network.learn(canvas, digit, options.lr) for canvas, digit in training) / len(training)
        accuracy = network.right(tests)
        print(f"epoch {epoch}: loss {loss:.3f}, {accuracy:.1%} of the test digits read rightly", flush=True)

    # yurt says in YURT_OUTPUTS where results go; without yurt they go beside this file.
    folder = Path(os.environ.get("YURT_OUTPUTS", Path(__file__).parent))
    model = {**vars(options), "accuracy": accuracy, "first": network.first, "second": network.second}
    (folder / "model.json").write_text(json.dumps(model))
    print(f"wrote {folder.name}/model.json")


if __name__ == "__main__":
    main()
