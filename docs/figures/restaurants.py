"""Draw the restaurants of docs/model.md: `python docs/figures/restaurants.py`."""

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.patches import Circle, FancyBboxPatch

mpl.rcParams["svg.hashsalt"] = "skihmm"
mpl.rcParams["svg.fonttype"] = "path"

COLORS = {"1": "#0072B2", "2": "#E69F00", "3": "#009E73", "new": "#999999"}
# Restaurant: tables as (dish, customers).
RESTAURANTS = {
    "start": [("1", 1)],
    "state 1": [("2", 4), ("2", 1), ("1", 2)],
    "state 2": [("3", 3), ("1", 2)],
    "state 3": [("1", 3), ("2", 1)],
}


def draw_table(ax, x, y, dish, n_customers):
    ax.add_patch(Circle((x, y), 0.26, color=COLORS[dish], zorder=3))
    ax.text(x, y, dish, ha="center", va="center", color="white", weight="bold", zorder=4)
    for i in range(n_customers):
        at = x - 0.13 * (n_customers - 1) / 2 + 0.13 * i
        ax.add_patch(Circle((at, y - 0.40), 0.05, color="#333333", zorder=3))


def main():
    fig, ax = plt.subplots(figsize=(8.4, 4.2))
    top, bottom = 3.2, 0.9
    widths = [1.2, 2.4, 1.8, 1.8]
    ax.add_patch(
        FancyBboxPatch((0.2, top - 0.6), 8.2, 1.15, "round,pad=0.05", fc="#F2F2F2", ec="k")
    )
    ax.text(0.35, top + 0.37, "top restaurant: tables by dish, and $\\gamma$ for a new state")
    tables = sorted(dish for served in RESTAURANTS.values() for dish, _ in served)
    place = {}
    x = 0.75
    for dish in [*tables, "new"]:
        draw_table(ax, x, top - 0.12, dish if dish != "new" else "new", 0)
        place.setdefault(dish, []).append(x)
        x += 0.8
    ax.text(x - 0.3, top - 0.12, r"weight $\gamma$", va="center")
    x = 0.2
    for (name, served), width in zip(RESTAURANTS.items(), widths, strict=True):
        ax.add_patch(
            FancyBboxPatch((x, bottom - 0.75), width, 1.5, "round,pad=0.05", fc="white", ec="k")
        )
        ax.text(x + 0.05, bottom - 0.7, name)
        for i, (dish, n_customers) in enumerate(served):
            at = x + 0.35 + 0.72 * i
            draw_table(ax, at, bottom - 0.05, dish, n_customers)
            ax.annotate(
                "",
                (at, bottom + 0.24),
                (place[dish].pop(0), top - 0.42),
                arrowprops={"arrowstyle": "->", "color": COLORS[dish], "lw": 1.2},
            )
        x += width + 0.3
    ax.text(
        0.2,
        -0.25,
        "circles: tables with the dish they serve (the next state); dots: customers (transitions)",
        fontsize=9,
    )
    ax.set(xlim=(0, 8.7), ylim=(-0.45, 3.95))
    ax.set_aspect("equal")
    ax.axis("off")
    fig.tight_layout(pad=0.2)
    folder = Path(__file__).parent
    fig.savefig(folder / "restaurants.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
