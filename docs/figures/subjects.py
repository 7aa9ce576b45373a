"""Draw the states of the page "Subjects": `python docs/figures/subjects.py`."""

import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from skihmm.inspection._style import state_colour

HERE = Path(__file__).parent


def main():
    page = {}
    code = re.findall(r"```python\n(.*?)```", (HERE.parent / "subjects.md").read_text(), re.S)
    exec(code[0], page)
    figure, axes = plt.subplots(2, 1, figsize=(9, 4.4), sharex=True, layout="constrained")
    for ax, name in zip(axes, ("ignored", "hmm"), strict=True):
        labels = page[name].labels_
        colours = np.array([state_colour(k) for k in labels])
        ax.scatter(np.arange(len(labels)), page["y"], s=3, c=colours)
        for edge in range(300, 2400, 300):
            ax.axvline(edge - 0.5, color="0.8", lw=1)
        what = "subjects ignored" if name == "ignored" else 'with "subject_feature"'
        ax.set_title(f"{what}: {labels.max() + 1} states", fontsize=10, loc="left")
        ax.margins(x=0)
    axes[1].set_xlabel("row; eight subjects one after the other")
    figure.savefig(HERE / "subjects.png", dpi=110)


if __name__ == "__main__":
    main()
