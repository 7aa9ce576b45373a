"""Draw the rows of the page "States, regimes": `python docs/figures/regimes.py`."""

import re
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

from skihmm.inspection._style import state_colour

HERE = Path(__file__).parent
N_SHOWN = 800


def main():
    mpl.use("agg")
    page = {}
    code = re.findall(r"```python\n(.*?)```", (HERE.parent / "regimes.md").read_text(), re.S)
    exec(code[0], page)
    n_states, n_regimes = (page["hmm"].n_states_, page["hmm"].find_regimes().n_regimes_)
    assert (n_states, n_regimes) == (13, 3), "the alternative text says thirteen and three"
    figure, axes = plt.subplots(2, 1, figsize=(9, 4.4), sharex=True, layout="constrained")
    paths = {"states": page["hmm"].labels_, "regimes": page["hmm"].regimes_}
    for ax, (name, path) in zip(axes, paths.items(), strict=True):
        colours = np.array([state_colour(k) for k in range(path.max() + 1)])
        rows = np.arange(N_SHOWN)
        for column in page["X"][:N_SHOWN].T:
            ax.plot(rows, column, color="0.85", linewidth=0.6, zorder=0)
            ax.scatter(rows, column, s=4, c=colours[path[:N_SHOWN]])
        ax.set_title(f"{path.max() + 1} {name}", fontsize=10, loc="left")
        ax.margins(x=0)
    axes[1].set_xlabel("row; two columns")
    figure.savefig(HERE / "regimes.png", dpi=90)


if __name__ == "__main__":
    main()
