"""Paths, state probabilities and simulation under one posterior draw."""

from __future__ import annotations

import numpy as np

from skihmm._contexts import StepContexts
from skihmm._draws import Draw
from skihmm._sequences import Sequences
from skihmm._typing import Array, Floats, Labels
from skihmm.core._messages import FrozenModel
from skihmm.core._particle_filter import simulate
from skihmm.core._random import RandomStream
from skihmm.emissions import BaseEmission
from skihmm.transitions import BaseTransitions


def frozen_model(draw: Draw, sequences: Sequences, emission: BaseEmission) -> FrozenModel:
    """Build the HMM of K + 1 states of a draw over encoded sequences."""
    return FrozenModel(
        draw.arrays,
        emission.make_stats(sequences.codes),
        sequences.starts,
        contexts=sequences.contexts,
    )


def log_evidence(draw: Draw, sequences: Sequences, emission: BaseEmission) -> float:
    """Estimate log p(y) from one draw, with labels summed out.

    The log joint probability of a draw is that of one path.  Where states overlap, a
    model has very many paths that explain the data as well, and their number matters
    more: two letters of .35 against .15 in two states, 5,000 steps: the joint of the
    path in one state is higher by a thousand nats, the evidence of two by a hundred.  For
    every path x, p(y) = p(x, y) / p(x | y); the path is that of the draw, and
    p(x | y) that under the parameters of the draw (Chib 1995, who has them from
    another conditional).  Their number is counted by p(x, y), in which they are
    integrated out.  Missing entries that the fit draws are a part of p(x, y) alone, which
    is the same for all draws but for the noise of these entries.
    """
    assert draw.states is not None
    model = frozen_model(draw, sequences, emission)
    log_path = model.log_joint(draw.states) - model.filter()[0].sum()
    return float(draw.summed_lp - log_path)


def has_evidence(draw: Draw, transitions: BaseTransitions) -> bool:
    """Whether labels can be summed out: there is no penalty, which is one of paths.

    The paths of states with several stages have stages too, which draws do not.
    """
    return transitions.switch_penalty == 0 and "n_stages" not in draw.transitions


def rank(
    draw: Draw,
    sequences: Sequences,
    emission: BaseEmission,
    transitions: BaseTransitions,
) -> float:
    """Number by which starts, chains and draws of one model are compared.

    It is the evidence, or without one the log joint probability, nats.
    """
    if has_evidence(draw, transitions):
        return log_evidence(draw, sequences, emission)
    return draw.summed_lp


def mean_values(totals: Array, period: float) -> Floats:
    """Means of numbers, or mean directions of angles, from sums of their predictives.

    `totals` are complex for angles; the period of numbers is infinite.
    """
    if np.isfinite(period):
        return np.asarray(np.angle(totals) * (period / (2 * np.pi)))
    return totals


def around(values: Floats, centre: Floats, period: float) -> Floats:
    """Angles that are at most half a period from a centre; other numbers unchanged."""
    if not np.isfinite(period):
        return values
    return np.asarray(
        centre + np.remainder(values - centre + period / 2, period) - period / 2
    )


def known_symbols(emission: BaseEmission) -> list[int]:
    """Number of symbols that may be drawn, for every column of symbols.

    It raises ValueError if there is none to draw in some column.
    """
    n_known = emission.n_known()
    if n_known and min(n_known) == 0:
        raise ValueError(
            "A column had no observed symbol in fit, so there is no symbol to draw. Pass "
            "categories to the emission."
        )
    return n_known


def symbol_limits(emission: BaseEmission, codes: Array) -> list[int]:
    """Number of symbols that may be drawn, for every column; 0 for numbers.

    Of the encoded data only the columns count.
    """
    n_known = iter(known_symbols(emission))
    # With no states, because only the shapes are needed.
    columns = emission.make_stats(codes[:0]).predictives(np.empty(0, dtype=np.int32))
    return [next(n_known) if column.ndim == 2 else 0 for column in columns]


def simulate_sequence(
    draw: Draw,
    n_samples: int,
    n_features: int,
    emission: BaseEmission,
    seed: np.random.SeedSequence,
    contexts: StepContexts | None = None,
    given: Array | None = None,
) -> tuple[Array, Labels]:
    """Simulate a new sequence from the draw's predictive distribution.

    `contexts` are those on which transitions depend, and `given`, encoded, the columns on
    which the emission does.
    """
    n_known = known_symbols(emission)
    dtype = np.int32 if emission.is_categorical else np.float64
    columns, seating = draw.for_particles(
        emission.make_stats(np.empty((0, n_features + emission.n_inputs), dtype=dtype))
    )
    codes, states = simulate(
        n_samples, columns, n_known, RandomStream(seed), seating, contexts, given
    )
    return emission.decode(codes[:, :n_features]), states
