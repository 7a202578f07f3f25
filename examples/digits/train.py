"""Train a small neural network to recognise digits. Plain Python: no packages, no downloads.

The data are generated: the ten digits of a tiny font at random positions, with noise.
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


def noisy_digit(digit: int, noise: float, chance: random.Random) -> Vector:
    """Return a picture of a digit at a random position, with noise."""
    down, right = chance.randrange(HEIGHT - 4), chance.randrange(WIDTH - 2)
    canvas = [chance.gauss(0, noise) for _point in range(HEIGHT * WIDTH)]
    for row, line in enumerate(GLYPHS[digit]):
        for column, point in enumerate(line):
            canvas[(down + row) * WIDTH + right + column] += point == "#"
    return canvas


def examples(count: int, noise: float, chance: random.Random) -> list[Example]:
    return [(noisy_digit(each % CLASSES, noise, chance), each % CLASSES) for each in range(count)]


def dot(one: Vector, other: Vector) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


class Network:
    """One hidden layer; the last weight of every unit is its bias."""

    def __init__(self, chance: random.Random) -> None:
        def layer(units: int, inputs: int) -> list[Vector]:
            return [[chance.gauss(0, inputs**-0.5) for _weight in range(inputs + 1)] for _unit in range(units)]

        self.first, self.second = layer(HIDDEN, HEIGHT * WIDTH), layer(CLASSES, HIDDEN)

    def forward(self, canvas: Vector) -> tuple[Vector, Vector]:
        """Return the activations of the hidden layer and the probability of each digit."""
        hidden = [math.tanh(dot(unit, [*canvas, 1.0])) for unit in self.first]
        scores = [dot(unit, [*hidden, 1.0]) for unit in self.second]
        most = max(scores)
        powers = [math.exp(score - most) for score in scores]
        return hidden, [power / sum(powers) for power in powers]

    def learn(self, canvas: Vector, digit: int, rate: float) -> float:
        """Take one step of gradient descent; return the loss before it."""
        hidden, likely = self.forward(canvas)
        output_errors = [probability - (each == digit) for each, probability in enumerate(likely)]
        hidden_errors = [
            (1 - value * value) * sum(error * unit[at] for error, unit in zip(output_errors, self.second, strict=True))
            for at, value in enumerate(hidden)
        ]
        for units, errors, inputs in ((self.second, output_errors, hidden), (self.first, hidden_errors, canvas)):
            for unit, error in zip(units, errors, strict=True):
                step = rate * error
                unit[:] = [weight - step * each for weight, each in zip(unit, [*inputs, 1.0], strict=True)]
        return -math.log(max(likely[digit], 1e-12))

    def accuracy(self, tests: list[Example]) -> float:
        """Return the fraction of the tests that the network classifies correctly."""
        answers = ((self.forward(canvas)[1], digit) for canvas, digit in tests)
        return sum(likely.index(max(likely)) == digit for likely, digit in answers) / len(tests)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lr", type=float, default=0.1, help="learning rate")
    parser.add_argument("--epochs", type=int, default=8, help="passes over the data")
    parser.add_argument("--noise", type=float, default=0.2, help="standard deviation of the noise")
    parser.add_argument("--seed", type=int, default=1, help="random seed")
    options = parser.parse_args()

    chance = random.Random(options.seed)
    training, tests = examples(1200, options.noise, chance), examples(200, options.noise, chance)
    network = Network(chance)
    accuracy = network.accuracy(tests)
    for epoch in range(1, options.epochs + 1):
        chance.shuffle(training)
        loss = sum(network.learn(canvas, digit, options.lr) for canvas, digit in training) / len(training)
        accuracy = network.accuracy(tests)
        print(f"epoch {epoch}: loss {loss:.3f}, test accuracy {accuracy:.1%}", flush=True)

    # yurt sets YURT_OUTPUTS to the folder for results; without yurt, use the folder of this file.
    folder = Path(os.environ.get("YURT_OUTPUTS", Path(__file__).parent))
    model = {**vars(options), "accuracy": accuracy, "first": network.first, "second": network.second}
    (folder / "model.json").write_text(json.dumps(model))
    print(f"wrote {folder.name}/model.json")


if __name__ == "__main__":
    main()
