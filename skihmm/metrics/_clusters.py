"""Whether clusters of the rows, as states, explain the data better than the draws."""

from __future__ import annotations

import numpy as np

from skihmm._data.sequences import Sequences
from skihmm._draws import Draw
from skihmm._fitting.starts import packed
from skihmm._typing import Floats, Labels
from skihmm._using.decoding import LEAST_NOISE, rank
from skihmm._using.fitted import FittedModel
from skihmm.core._random import RandomStream
from skihmm.emissions._gaps import one_thread
from skihmm.emissions._subjects import has_subjects
from skihmm.metrics._labels import evenly
from skihmm.metrics._misfit import draw_of_path

# Numbers of clusters, and of draws with whose largest rank theirs is compared.  In
# 117 right fits clusters had at most 1.2 nats more, but in two with a false state (8, 9).
_N_CLUSTERS, _N_RANKED = (1, 2, 3, 4, 6, 8), 5
# Data of fewer rows are not judged.  Of data with more rows than these pieces have,
# clusters with a lower rank than the selected draw on the pieces are left out first: the
# rank of all takes a tenth of a fit's time (Student's t, 10,000 rows).  Pieces alone
# would decide for few states where states are many and rare.
_LEAST_ROWS, _N_PIECES, _PIECE = 100, 6, 500
# k-means uses at most so many rows.
_MOST_CLUSTERED = 3000


def _standardised(values: Floats) -> Floats:
    """Columns in units of their deviations; NaN is the mean of its column."""
    is_known = np.isfinite(values)
    n = np.maximum(is_known.sum(axis=0), 1)
    values = np.where(is_known, values, 0.0)
    values = np.where(is_known, values - values.sum(axis=0) / n, 0.0)
    spread = np.sqrt((values**2).sum(axis=0) / n)
    return np.asarray(values / np.where(spread > 0, spread, 1.0))


def _cluster_paths(values: Floats) -> list[Labels]:
    """Labels by k-means with several numbers of clusters."""
    # Imported here, because importing it takes longer than importing this package.
    from sklearn.cluster import KMeans

    rows = _standardised(values)
    seen = rows[evenly(len(rows), _MOST_CLUSTERED)]
    n_distinct = len(np.unique(seen, axis=0))
    paths = []
    for k in _N_CLUSTERS:
        if k <= n_distinct:
            with one_thread():
                kmeans = KMeans(k, n_init=1, random_state=0).fit(seen)
                paths.append(packed(kmeans.predict(rows)))
    return paths


class _Comparison:
    """Ranks of paths, and of the draws of the best chain of a fit."""

    def __init__(self, fitted: FittedModel) -> None:
        self._fitted, self._sequences = fitted, fitted.sequences
        self._chain = int(fitted.draws.chain_weights.argmax())
        self._stream = RandomStream(np.random.SeedSequence(fitted.entropy))

    def _rank(self, draw: Draw, sequences: Sequences) -> float:
        return rank(draw, sequences, self._fitted.emission, self._fitted.transitions)

    def of_path(self, path: Labels, sequences: Sequences | None = None) -> float:
        """Rank of a path, with hyperparameters that suit it."""
        sequences = self._sequences if sequences is None else sequences
        draw = draw_of_path(self._fitted, path, self._stream, sequences)
        return self._rank(draw, sequences)

    def of_draws(self) -> float:
        """Largest rank of some draws."""
        draws, ranks = self._fitted.draws, self._fitted.ranks
        if ranks is not None:
            return float(ranks[self._chain].max())
        chosen = evenly(int(draws.n_draws[self._chain]), _N_RANKED).tolist()
        ranked = [draws[self._chain, d] for d in chosen]
        return max(self._rank(draw, self._sequences) for draw in ranked)

    def better_on_pieces(self, paths: list[Labels]) -> list[Labels]:
        """Paths with no lower rank than the selected path on pieces of long data."""
        n_steps = self._sequences.n_steps
        if n_steps <= _N_PIECES * _PIECE:
            return paths
        begins = np.linspace(0, n_steps - _PIECE, _N_PIECES).astype(int)
        rows = (begins[:, None] + np.arange(_PIECE)).ravel()
        is_start = np.zeros(n_steps, dtype=bool)
        is_start[self._sequences.starts] = is_start[begins] = True
        pieces = Sequences(self._sequences.codes[rows], np.flatnonzero(is_start[rows]))
        least = self.of_path(packed(self._fitted.labels[rows]), pieces)
        on_pieces = [self.of_path(packed(path[rows]), pieces) for path in paths]
        pairs = zip(paths, on_pieces, strict=True)
        return [path for path, reached in pairs if reached > least]


def better_clusters(fitted: FittedModel) -> tuple[float, Labels] | None:
    """Clusters with a higher rank than the draws: by how many nats, and their labels.

    Each cluster is a state.  None if there are no such clusters, or rows are not numbers
    alone: symbols have no distances, inputs and contexts are no observations, and levels
    of subjects are no states.
    """
    emission, sequences = fitted.emission, fitted.sequences
    n = len(fitted.observed)
    values = sequences.codes[:, np.flatnonzero(~emission.columns(n).are_symbols)].astype(float)
    has_more = sequences.known_states is not None or sequences.contexts is not None
    has_more |= has_subjects(emission) or "input" in fitted.given.kinds_of_emission
    is_too_small = len(values) < _LEAST_ROWS or not values.size
    # A column without a value has the units of its prior alone.
    is_too_small |= bool(np.isnan(values).all(axis=0).any())
    if has_more or is_too_small or not fitted.draws.has_states:
        return None
    compared = _Comparison(fitted)
    paths = compared.better_on_pieces(_cluster_paths(values))
    if not paths:
        return None
    own = compared.of_draws()
    ranks = [compared.of_path(path) for path in paths]
    best = int(np.argmax(ranks))
    if ranks[best] <= own + LEAST_NOISE:
        return None
    return ranks[best] - own, paths[best]
