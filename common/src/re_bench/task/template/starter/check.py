"""Score solution.py on a fifth of your own points, fitted on the others: ``python check.py``."""

from __future__ import annotations

import csv
from pathlib import Path

import metric
import solution


def main() -> None:
    """Fit four fifths of the points and print the score on the rest, whose values have noise."""
    with Path(__file__).with_name("points.csv").open(encoding="utf-8") as file:
        points = [(float(row["x"]), float(row["y"])) for row in csv.DictReader(file)]
    predict = solution.fit([point for index, point in enumerate(points) if index % 5])
    rest = points[::5]
    score = metric.raw_score([predict(x) for x, _y in rest], [y for _x, y in rest])
    print(f"raw score on {len(rest)} points that fit() did not get: {score:.4f}")


if __name__ == "__main__":
    main()
