"""
Sequence 2 of the paper: a finite automaton
===========================================

    python examples/reproduce_sequence2.py             # 15 minutes on two cores
    python examples/reproduce_sequence2.py --scale 10  # ten times the CPU time

2,500 symbols of an automaton with 15 symbols, reconstructed from the paper's picture
(``skihmm.datasets.make_automaton_sequence``); every seed has a sequence of its own.
"""

from reproduction import Study, bar_figure, main, make_rows
from sequences import COLUMNS, measure, summarise

from skihmm.datasets import make_automaton_sequence
from skihmm.emissions import HCRPCategorical


def make_data(seed):
    """Another sequence for every seed."""
    X, states = make_automaton_sequence(2500, random_state=seed)
    return X, HCRPCategorical(), states


STUDY = Study(
    name="Sequence 2",
    rows=make_rows(rates=(0, 2, 13), block_size=10),
    n_seeds=10,
    budget=6.0,
    make_data=make_data,
    measure=measure,
    summarise=summarise,
    columns=COLUMNS,
    paper={("BGibbs", "seconds_per_sweep"): 0.206},
)


def draw_means(path, study, results):
    """The paper's Figure 3."""
    bar_figure(path, study, results, "bits", "mean mutual information, bits")


if __name__ == "__main__":
    main(STUDY, [("means.png", draw_means)])
