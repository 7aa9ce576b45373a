"""Comparison of pictures with those in `tests/inspection/baseline`.

Set SKIHMM_NEW_PICTURES to a folder to have the pictures written there instead.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path

import numpy as np

BASELINE = Path(__file__).parent / "inspection" / "baseline"

# Versions of matplotlib place text half a pixel this way or that: means of blocks are
# compared, whose differences have to be small on average, and nowhere large.
BLOCK = 10
MEAN_TOLERANCE = 3.0
BLOCK_TOLERANCE = 40.0


@contextmanager
def canvas(width=400, height=300):
    """An empty figure of so many pixels with matplotlib's own defaults."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    style = {
        "figure.dpi": 100,
        "savefig.dpi": 100,
        "font.family": "DejaVu Sans",
        "figure.constrained_layout.use": True,
    }
    with mpl.style.context(["default", style]):
        figure = plt.figure(figsize=(width / 100, height / 100))
        yield figure
        plt.close(figure)


def pixels(figure):
    """The picture as an array of shape (height, width, 3), 0 to 255."""
    # (The layout settles when it is made for the second time.)
    figure.canvas.draw()
    figure.canvas.draw()
    return np.asarray(figure.canvas.buffer_rgba())[..., :3].astype(float)


def blocks(picture):
    """Means of blocks of pixels."""
    height, width = (n // BLOCK for n in picture.shape[:2])
    cut = picture[: height * BLOCK, : width * BLOCK]
    return cut.reshape(height, BLOCK, width, BLOCK, 3).mean(axis=(1, 3))


def differences(one, other):
    """Root of the mean square, and the largest, of the differences of two pictures."""
    if one.shape != other.shape:
        return np.inf, np.inf
    difference = blocks(one) - blocks(other)
    return np.sqrt((difference**2).mean()), np.abs(difference).max()


def is_same(one, other):
    """Whether two pictures differ by no more than versions of matplotlib do."""
    mean, largest = differences(one, other)
    return mean <= MEAN_TOLERANCE and largest <= BLOCK_TOLERANCE


def read(path):
    """Pixels of a file."""
    import matplotlib.pyplot as plt

    return np.rint(plt.imread(path)[..., :3].astype(float) * 255)


def write(path, picture):
    """The inverse of `read`."""
    import matplotlib.pyplot as plt

    plt.imsave(path, picture.astype(np.uint8))


def assert_same_picture(figure, name, tmp_path):
    """Compare with a baseline; on failure the picture is kept in `tmp_path`."""
    picture = pixels(figure)
    folder = os.environ.get("SKIHMM_NEW_PICTURES")
    if folder:
        write(Path(folder, f"{name}.png"), picture)
        return
    expected = read(BASELINE / f"{name}.png")
    if not is_same(picture, expected):
        write(tmp_path / f"{name}.png", picture)
        raise AssertionError(
            f"{name}.png differs from the baseline by {differences(picture, expected)}; "
            f"see {tmp_path / name}.png"
        )
