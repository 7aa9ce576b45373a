"""Comparison of pictures with those in `tests/inspection/baseline`, but for text.

Versions of matplotlib draw letters differently, so pictures are compared without them;
what text says and that it does not overlap is tested apart.

Set SKIHMM_NEW_PICTURES to a folder to have the pictures written there instead.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path

import numpy as np

BASELINE = Path(__file__).parent / "inspection" / "baseline"

# Lines may be half a pixel this way or that: means of blocks are compared, whose
# differences have to be small on average, and nowhere large.
BLOCK = 10
MEAN_TOLERANCE = 2.0
BLOCK_TOLERANCE = 30.0


@contextmanager
def canvas(width=400, height=300):
    """An empty figure of so many pixels with matplotlib's defaults.

    Without a layout that depends on the size of text, which versions measure differently.
    """
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    style = {
        "figure.dpi": 100,
        "savefig.dpi": 100,
        "font.family": "DejaVu Sans",
        "figure.subplot.left": 0.2,
        "figure.subplot.right": 0.97,
        "figure.subplot.bottom": 0.16,
        "figure.subplot.top": 0.96,
    }
    with mpl.style.context(["default", style]):
        figure = plt.figure(figsize=(width / 100, height / 100))
        yield figure
        plt.close(figure)


def hide_text(figure):
    """Leave lines, patches and images only."""
    from matplotlib.legend import Legend
    from matplotlib.text import Text
    from matplotlib.ticker import NullFormatter

    for ax in figure.axes:
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_formatter(NullFormatter())
            axis.set_minor_formatter(NullFormatter())
    for legend in figure.findobj(Legend):
        legend.remove()
    for text in figure.findobj(Text):
        text.set_visible(False)


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
    """Nearly the inverse of `read`: with 128 colours, so that files are small."""
    from PIL import Image

    image = Image.fromarray(picture.astype(np.uint8))
    colours = image.quantize(128, dither=Image.Dither.NONE)
    colours.save(path, optimize=True)


def assert_same_picture(figure, name, tmp_path):
    """Compare with a baseline; on failure the picture is kept in `tmp_path`."""
    hide_text(figure)
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
