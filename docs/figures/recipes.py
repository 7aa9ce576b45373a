"""Draw the pictures of the recipes, and of their cards: `python docs/figures/recipes.py`."""

import re
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.legend import Legend
from matplotlib.text import Text

HERE = Path(__file__).parent
SIZES = {"decisions": (6.5, 3.6), "text": (8, 2.4)}


def hide_text(figure):
    """Leave lines, areas and images: a card is too small for words."""
    for part in [*figure.findobj(Text), *figure.findobj(Legend)]:
        part.set_visible(False)
    for ax in figure.axes:
        ax.tick_params(which="both", length=0)


def main():
    for path in sorted((HERE.parent / "recipes").glob("*.md")):
        page = {"__name__": "page"}
        for code in re.findall(r"```python\n(.*?)```", path.read_text(), re.S):
            exec(compile(code, path.name, "exec"), page)
        figure = plt.gcf()
        figure.set_size_inches(SIZES.get(path.stem, (8, 4)))
        figure.savefig(HERE / f"recipe_{path.stem}.png", dpi=90)
        hide_text(figure)
        figure.set_size_inches(4, 2)
        figure.savefig(HERE / f"card_{path.stem}.png", dpi=90)
        plt.close("all")


if __name__ == "__main__":
    mpl.use("Agg")
    main()
