"""Draw the pictures of Get started: `python docs/figures/get_started.py`."""

import re
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt

HERE = Path(__file__).parent
NAMES = ("trace", "transitions")


def main():
    text = (HERE.parent / "get_started.md").read_text()
    page = {"__name__": "page"}
    for code in re.findall(r"```python\n(.*?)```", text, re.S):
        exec(compile(code, "get_started.md", "exec"), page)
    # What the page says of the pictures.  (The first picture is that of the sensor recipe.)
    hmm = page["hmm"]
    assert len(set(hmm.draws_.n_states[:, -50:].mean(axis=1).round())) == 1
    assert hmm.n_states_ == 15
    for name, number in zip(NAMES, plt.get_fignums()[1:], strict=True):
        plt.figure(number).savefig(HERE / f"get_started_{name}.png", dpi=80, bbox_inches="tight")


if __name__ == "__main__":
    mpl.use("Agg")
    main()
