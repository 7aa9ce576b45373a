"""Draw live rows and their alarms: `python docs/figures/live.py`."""

import runpy
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt


def main():
    mpl.use("agg")
    root = Path(__file__).parents[2]
    runpy.run_path(str(root / "examples" / "gallery" / "after" / "plot_live_alarms.py"))
    plt.savefig(Path(__file__).parent / "live.png", dpi=100)


if __name__ == "__main__":
    main()
