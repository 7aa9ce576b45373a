"""Draw the residuals of the page "Does it fit?": `python docs/figures/fit.py`."""

import re
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt

from skihmm import inspection
from skihmm.inspection import ResidualDisplay

HERE = Path(__file__).parent
TITLES = ("heavy tails", "autocorrelation", "zeros", "link")


class InOneFigure:
    """What the page calls, in the place of the display."""

    figure, axes = plt.subplots(4, 4, figsize=(9.6, 8.4), layout="constrained")
    n_shown = 0

    @classmethod
    def from_estimator(cls, hmm, X):
        """Draw two panels below those of the model before."""
        column, row = divmod(cls.n_shown, 2)
        cls.n_shown += 1
        ResidualDisplay.from_residuals(
            hmm.residuals(X, join_states=True)[:, -1],
            name=f"{TITLES[column]}: {hmm.n_states_} states",
            ax=cls.axes[2 * row : 2 * row + 2, column],
        )


def main():
    inspection.ResidualDisplay = InOneFigure
    page = {"__name__": "page"}
    for code in re.findall(r"```python\n(.*?)```", (HERE.parent / "fit.md").read_text(), re.S):
        exec(code, page)
    InOneFigure.figure.savefig(HERE / "fit.png", dpi=90)


if __name__ == "__main__":
    mpl.use("Agg")
    main()
