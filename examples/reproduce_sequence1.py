"""
Sequence 1 of the paper: ABCDBCDE repeated
==========================================

    python examples/reproduce_sequence1.py             # 15 minutes on two cores
    python examples/reproduce_sequence1.py --scale 10  # ten times the CPU time

The letters B, C and D occur in two contexts.  Eight states separate these and make the
sequence deterministic (3 bits of mutual information with the true states); one state per
letter is a local optimum at 2.25 bits, which single steps rarely leave.
"""

from reproduction import Study, bar_figure, histogram_figure, main, make_rows
from sequences import COLUMNS, measure, summarise

from skihmm.datasets import make_repeating_sequence
from skihmm.emissions import HCRPCategorical


def make_data(seed):
    """The sequence is the same for all seeds."""
    X, states = make_repeating_sequence(500)
    return X, HCRPCategorical(), states


STUDY = Study(
    name="Sequence 1",
    rows=make_rows(rates=(0, 2, 13), block_size=10),
    n_seeds=20,
    budget=3.0,
    make_data=make_data,
    measure=measure,
    summarise=summarise,
    columns=[*COLUMNS, ("reached 3 bits", "reached", 2)],
    paper={},
)


def draw_means(path, study, results):
    """The paper's Figure 3."""
    bar_figure(path, study, results, "bits", "mean mutual information, bits")


def draw_histogram(path, study, results):
    """The paper's Figure 4."""
    histogram_figure(path, study, results, "bits", "mean mutual information, bits")


if __name__ == "__main__":
    main(STUDY, [("means.png", draw_means), ("histogram.png", draw_histogram)])
