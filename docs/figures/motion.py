"""Draw the states of motion capture: `python docs/figures/motion.py`."""

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from sklearn.preprocessing import StandardScaler

from skihmm import HCRPHMM
from skihmm.datasets import fetch_mocap6
from skihmm.inspection._style import state_colour

RECORDING, PER_SECOND = 4, 10
# In the order of the data set (https://github.com/michaelchughes/mocap6dataset).
ACTIONS = ["jumping\njacks", "jogging", "squats", "knee raises", "arm circles", "twists"]
mpl.rcParams["svg.hashsalt"] = "skihmm"


def draw(ax, labels, colors):
    """Segments of one sequence as bars."""
    borders = np.flatnonzero(np.diff(labels)) + 1
    for part in np.split(np.arange(len(labels)), borders):
        ax.axvspan(
            part[0] / PER_SECOND,
            (part[-1] + 1) / PER_SECOND,
            color=colors[labels[part[0]]],
            lw=0,
        )
    ax.vlines(borders / PER_SECOND, 0, 1, color="white", lw=0.8)
    ax.set(yticks=[], ylim=(0, 1))
    ax.spines[:].set_visible(False)


def main():
    mocap6 = fetch_mocap6()
    X, groups = StandardScaler().fit_transform(mocap6.data), mocap6.groups
    hmm = HCRPHMM(emission="autoregressive", random_state=0).fit(X, groups=groups)
    table = np.zeros((hmm.n_states_, 12))
    np.add.at(table, (hmm.labels_, mocap6.target), 1)
    n_large = (np.bincount(hmm.labels_) >= 0.01 * len(X)).sum()
    share = table.max(axis=1).sum() / len(X)
    print(f"{hmm.n_states_} states, {n_large} of one per cent; {share:.3f}")

    here = groups == RECORDING
    actions = [state_colour(k) for k in range(12)]
    # A state has the colour of the action that most of its steps have.
    states = [actions[action] for action in table.argmax(axis=1)]
    fig, axes = plt.subplots(
        3, 1, figsize=(9, 3), sharex=True, height_ratios=[3, 1, 1], layout="constrained"
    )
    seconds = np.arange(here.sum()) / PER_SECOND
    for column, color in zip((0, 2, 6), ("#0072B2", "#D55E00", "#009E73"), strict=True):
        axes[0].plot(seconds, X[here, column], lw=0.8, color=color)
    axes[0].set(yticks=[], xlim=(0, seconds[-1]))
    axes[0].spines[["top", "right", "left"]].set_visible(False)
    target, labels = mocap6.target[here], hmm.labels_[here]
    # What the pages say: six actions one after the other, found in nine of ten steps.
    assert np.array_equal(target[np.r_[True, np.diff(target) != 0]], range(len(ACTIONS)))
    assert 0.9 < (table.argmax(axis=1)[labels] == target).mean() < 0.99
    draw(axes[1], target, actions)
    draw(axes[2], labels, states)
    for action, name in enumerate(ACTIONS):
        middle = (np.flatnonzero(target == action).mean() + 0.5) / PER_SECOND
        ink = "white" if action == 0 else "black"  # on dark blue
        axes[1].text(middle, 0.5, name, ha="center", va="center", size=8.5, color=ink)
    texts = ("3 of 12\njoint angles", "actions,\nannotated", "states,\ninferred")
    for ax, label in zip(axes, texts, strict=True):
        ax.set_ylabel(label, rotation=0, ha="right", va="center")
    axes[2].set_xlabel("seconds")
    fig.savefig(Path(__file__).parent / "motion.png", dpi=110)


if __name__ == "__main__":
    main()
