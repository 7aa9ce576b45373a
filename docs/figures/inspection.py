"""Draw a picture for every display of Pictures: `python docs/figures/inspection.py`."""

import re
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt

HERE = Path(__file__).parent


def main():
    text = (HERE.parent / "inspection.md").read_text()
    page = {"__name__": "page"}
    # Code, and the pictures below it.
    for code, shown in re.findall(r"```python\n(.*?)```((?:\n\n!\[.*?\]\(.*?\))*)", text, re.S):
        exec(compile(code, "inspection.md", "exec"), page)
        names = re.findall(r"\(figures/(.*?)\)", shown)
        numbers = plt.get_fignums() or [None]
        # The first picture of the code, and of two pictures the last one.
        for name, number in zip(names, (numbers[0], numbers[-1]), strict=False):
            plt.figure(number).savefig(HERE / name, dpi=80, bbox_inches="tight")
        plt.close("all")


if __name__ == "__main__":
    mpl.use("Agg")
    main()
