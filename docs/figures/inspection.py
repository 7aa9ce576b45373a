"""Draw a picture for every display of Pictures: `python docs/figures/inspection.py`."""

import re
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt

HERE = Path(__file__).parent
# The first figure of every block of code that draws; states of the example do not last.
NAMES = ("trace", "transitions", "emissions", "states", None, "coassignment")


def main():
    names = iter(NAMES)
    page = {"__name__": "page"}
    text = (HERE.parent / "inspection.md").read_text()
    for code in re.findall(r"```python\n(.*?)```", text, re.S):
        exec(compile(code, "inspection.md", "exec"), page)
        if numbers := plt.get_fignums():
            figure = plt.figure(numbers[0])
            if name := next(names):
                figure.savefig(HERE / f"inspection_{name}.png", dpi=70, bbox_inches="tight")
            plt.close("all")


if __name__ == "__main__":
    mpl.use("Agg")
    main()
