"""Held-out predictive probability of sequences."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.parallel import Parallel, delayed

from skihmm._data.sequences import Sequences
from skihmm._data.validation import (
    check_choice,
    check_flag,
    check_ignored,
    check_integer,
    check_n_jobs,
    draw_entropy,
    warn_caller,
)
from skihmm._draws import Draw, PosteriorDraws
from skihmm._recipe import DocLinkMixin
from skihmm._typing import Floats, MatrixLike, RandomState, VectorLike
from skihmm._using.fitted import fitted_of
from skihmm._using.new_subjects import LEAST_PARTICLES, N_PARTICLES, NewSubjects, n_particles_of
from skihmm.core._messages import FrozenModel
from skihmm.core._particle_filter import filter_particles
from skihmm.core._random import RandomStream
from skihmm.emissions import BaseEmission
from skihmm.emissions._parts import missing_entries, preferred_jobs
from skihmm.emissions._subjects import has_subjects, numbers_of_subjects, without_subjects


def _adaptive_log_probs(
    draw: Draw,
    sequences: Sequences,
    emission: BaseEmission,
    n_particles: int,
    continued: bool,
    seed: np.random.SeedSequence,
) -> Floats:
    plain, codes = without_subjects(emission, sequences.codes, draw.emission)
    # Every sequence starts with the draw's own seating: test sequences are independent.
    log_probs = filter_particles(
        plain.make_stats(codes),
        sequences.starts[1:] if continued else sequences.starts,
        RandomStream(seed),
        n_particles=n_particles,
        seating=draw.arrays,
        restaurant=draw.last_state + 1 if continued else 0,
        independent=True,
        # New contexts learn as they go.
        contexts=None if sequences.contexts is None else sequences.contexts.adaptive(),
    )[0]
    if has_subjects(emission):
        scales = numbers_of_subjects(emission, sequences.codes, draw.emission)[1]
        values = codes[:, : scales.shape[1]]
        log_probs -= np.where(np.isnan(values), 0.0, np.log(scales)).sum(axis=1)
    return log_probs


def _frozen_log_probs(
    draw: Draw,
    sequences: Sequences,
    emission: BaseEmission,
    continued: bool,
    new: NewSubjects | None,
    n_particles: int,
    seed: np.random.SeedSequence,
) -> Floats:
    starts = sequences.starts[1:] if continued else sequences.starts
    log_probs = np.empty(sequences.n_steps)
    if new is None or len(new.rows) < len(log_probs):
        model = FrozenModel(
            draw.arrays,
            emission.make_stats(sequences.codes),
            starts,
            draw.last_state if continued else None,
            sequences.contexts,
        )
        log_probs = model.filter()[0]
    if new is not None:
        stream = RandomStream(seed)
        log_probs[new.rows] = new.follow(draw.arrays, emission, n_particles, stream)[0]
    return log_probs


def log_predictive(
    draws: PosteriorDraws,
    sequences: Sequences,
    emission: BaseEmission,
    *,
    n_particles: int | None = None,
    adaptive: bool | str = "auto",
    max_draws: int | None = None,
    continued: bool = False,
    entropy: Sequence[int],
    n_jobs: int | None = None,
) -> Floats:
    """Log predictive probability of every step: ``log(mean over draws of p(y[t] | y[:t], draw))``.

    `n_particles`, `adaptive` and `max_draws` are those of :class:`ParticleFilterScorer`.
    `continued` says whether the first test sequence continues the training data.  Draw z
    uses the z-th child of the seed `entropy`, for any `n_jobs`.
    """
    if adaptive == "auto":
        adaptive = emission.is_categorical
    new = NewSubjects.find(sequences, emission) if has_subjects(emission) else None
    if new is not None and (adaptive or (continued and 0 in new.rows)):
        raise ValueError(
            "X has subjects that were not in the fit: their offsets are integrated out "
            'under the parameters of every draw, with adaptive=False and start="new" '
            "only. Pass these, or rows of subjects of the fit."
        )
    if (adaptive or new is not None) and n_particles is None:
        max_draws = min(max_draws or N_PARTICLES, N_PARTICLES // LEAST_PARTICLES)
    chosen, weights = draws.weighted(max_draws)
    if n_particles is None:
        n_particles = n_particles_of(len(chosen))
    seeds = np.random.SeedSequence(list(entropy)).spawn(len(chosen))
    if adaptive:
        tasks = [
            delayed(_adaptive_log_probs)(draw, sequences, emission, n_particles, continued, seed)
            for draw, seed in zip(chosen, seeds, strict=True)
        ]
    else:
        tasks = [
            delayed(_frozen_log_probs)(draw, sequences, emission, continued, new, n_particles, seed)
            for draw, seed in zip(chosen, seeds, strict=True)
        ]
    log_probs = np.full(sequences.n_steps, -np.inf)
    # A few draws at a time, because every draw has a number per step.
    size = 4 * effective_n_jobs(n_jobs)
    with (
        warnings.catch_warnings(),  # of threads, as in fits
        Parallel(n_jobs=n_jobs, prefer=preferred_jobs(emission)) as parallel,
        np.errstate(under="ignore"),  # draws that are far less probable than the best
    ):
        for start in range(0, len(tasks), size):
            logs = np.log(weights[start : start + size])
            for each, log_weight in zip(parallel(tasks[start : start + size]), logs, strict=True):
                np.logaddexp(log_probs, each + log_weight, out=log_probs)
    log_probs -= np.log(weights.sum())
    # Exactly 0, not the rounding of summed weights.
    log_probs[emission.is_missing(sequences.codes)] = 0.0
    return log_probs


def mean_observed(log_probs: Floats, sequences: Sequences, emission: BaseEmission) -> float:
    """Mean over the steps with a likelihood.

    It is 0 without observations, and NaN, with a warning, if there are some but no step has
    a likelihood.
    """
    lost = emission.is_missing(sequences.codes)
    if not lost.all():
        return float(log_probs[~lost].mean())
    if missing_entries(emission, sequences.codes).all():
        return 0.0
    warn_caller(
        "Every row of X lacks an entry without which it has no likelihood: the score is "
        "NaN. Impute the missing entries (impute), or check how X was read."
    )
    return float("nan")


def perplexity_of(score: float) -> float:
    """``exp(-score)`` of a score in nats; infinite beyond the range of a float."""
    with np.errstate(over="ignore"):
        return float(np.exp(-score))


class ParticleFilterScorer(DocLinkMixin, BaseEstimator):
    """Score a fitted model by the predictive probability of held-out data.

    The score is the mean log predictive probability per observed step in nats.  The
    perplexity of arXiv 1106.0474 is ``exp(-score)``.  At every step the probabilities
    under the posterior draws are averaged, with the weights of their chains
    (``draws_.chain_weights``), before the logarithm is taken.

    Pass the object as ``scoring=`` to GridSearchCV, cross_val_score and similar
    functions.  Metadata routing passes `groups` on.

    Parameters
    ----------
    n_particles : int or None, default=None
        Particles per draw, unused with ``adaptive=False``.  None: 2000 of all draws
        together, at least 40 of each of at most 50 evenly spaced draws.  The paper has
        100 of every draw.
    adaptive : bool or "auto", default="auto"
        True: particles add the customers of the test data, as in the paper, so the model
        adapts along each test sequence.  False: an exact forward pass at the seating of
        training, without randomness.  "auto": True for symbols, because later symbols may
        be new.  False for numbers: scores differ by 0.001 to 0.003 nats at many times the
        cost ("Choosing by score").
    max_draws : int or None, default=None
        Use at most this many posterior draws, evenly spaced; None uses all.
    start : {"new", "continue"}, default="new"
        Test sequences are new ones, or the first one continues the training data (the
        held-out end of a text).
    random_state : int, RandomState instance or None, default=None
        Seed of the particles.  None uses a seed fixed by the fit: scores are repeatable.
    n_jobs : int or None, default=None
        Draws filtered at the same time.

    See Also
    --------
    frozen_log_likelihood : Score under one fixed draw.
    skihmm.HCRPHMM.score : Score under all draws, without a particle filter.

    References
    ----------
    T. Makino, S. Takei, I. Sato and D. Mochihashi, "Restricted Collapsed Draw: Accurate
    Sampling for Hierarchical Chinese Restaurant Process Hidden Markov Models",
    arXiv 1106.0474, 2011, Section 5.

    Examples
    --------
    >>> from skihmm import HCRPHMM
    >>> from skihmm.datasets import make_repeating_sequence
    >>> from skihmm.metrics import ParticleFilterScorer
    >>> X, _ = make_repeating_sequence(300)
    >>> hmm = HCRPHMM(n_burnin=50, n_draws=10, random_state=0).fit(X[:200])
    >>> scorer = ParticleFilterScorer(adaptive=False, start="continue")
    >>> -0.3 < scorer(hmm, X[200:]) < 0
    True
    """

    # Searches read a scorer's "score" request: `estimator` is an argument, not metadata,
    # and `groups` are requested as by the estimator.
    __metadata_request__score: ClassVar[dict[str, object]] = {
        "estimator": UNUSED,
        "groups": True,
    }

    def __init__(
        self,
        n_particles: int | None = None,
        adaptive: bool | str = "auto",
        max_draws: int | None = None,
        start: str = "new",
        random_state: RandomState = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_particles = n_particles
        self.adaptive = adaptive
        self.max_draws = max_draws
        self.start = start
        self.random_state = random_state
        self.n_jobs = n_jobs

    def score_samples(
        self, estimator: object, X: MatrixLike, *, groups: VectorLike | None = None
    ) -> Floats:
        """Log predictive probability of every step.

        Parameters
        ----------
        estimator : HCRPHMM, or Pipeline that ends in one
            Fitted.
        X : array-like of shape (n_samples, n_features)
        groups : array-like of shape (n_samples,), optional
            Sequence id of every row.

        Returns
        -------
        log_probs : ndarray of shape (n_samples,)
            Nats; 0 where the whole row is missing.
        """
        return self._score(estimator, X, groups)[0]

    def score(
        self,
        estimator: object,
        X: MatrixLike,
        y: None = None,
        *,
        groups: VectorLike | None = None,
    ) -> float:
        """Mean log predictive probability per observed step.

        Parameters
        ----------
        estimator : HCRPHMM, or Pipeline that ends in one
            Fitted.
        X : array-like of shape (n_samples, n_features)
        y : None
            Ignored.
        groups : array-like of shape (n_samples,), optional
            Sequence id of every row.

        Returns
        -------
        score : float
            Nats.  Higher is better.
        """
        return mean_observed(*self._score(estimator, X, groups))

    def __call__(
        self,
        estimator: object,
        X: MatrixLike,
        y: None = None,
        *,
        groups: VectorLike | None = None,
    ) -> float:
        """Mean log predictive probability per observed step; see :meth:`score`."""
        return self.score(estimator, X, y, groups=groups)

    def perplexity(
        self, estimator: object, X: MatrixLike, *, groups: VectorLike | None = None
    ) -> float:
        """``exp(-score)``.

        Parameters
        ----------
        estimator : HCRPHMM, or Pipeline that ends in one
            Fitted.
        X : array-like of shape (n_samples, n_features)
        groups : array-like of shape (n_samples,), optional
            Sequence id of every row.

        Returns
        -------
        perplexity : float
        """
        return perplexity_of(self.score(estimator, X, groups=groups))

    def _score(
        self,
        estimator: Any,
        X: MatrixLike,
        groups: VectorLike | None,
        lengths: VectorLike | None = None,
    ) -> tuple[Floats, Sequences, BaseEmission]:
        n_particles = self.n_particles
        if n_particles is not None:
            n_particles = check_integer("n_particles", n_particles, 1)
        adaptive = self.adaptive
        if not (isinstance(adaptive, str) and adaptive == "auto"):
            adaptive = check_flag("adaptive", adaptive)
        start = check_choice("start", self.start, ("new", "continue"))
        n_jobs = check_n_jobs("n_jobs", self.n_jobs)
        if self.max_draws is not None:
            check_integer("max_draws", self.max_draws, 1)
        if hasattr(estimator, "steps"):  # a Pipeline
            if len(estimator.steps) > 1:
                X = estimator[:-1].transform(X)
            estimator = estimator[-1]
        if not hasattr(estimator, "find_regimes"):
            raise TypeError(
                f"The estimator is {estimator!r}; expected a fitted HCRPHMM, or a "
                "Pipeline that ends in one."
            )
        continued = start == "continue"
        fitted = fitted_of(estimator)
        sequences = fitted.encode(X, groups, lengths, continued=continued)
        entropy = fitted.entropy if self.random_state is None else draw_entropy(self.random_state)
        log_probs = log_predictive(
            fitted.draws,
            sequences,
            fitted.emission,
            n_particles=n_particles,
            adaptive=adaptive,
            max_draws=self.max_draws,
            continued=continued,
            entropy=entropy,
            n_jobs=n_jobs,
        )
        return log_probs, sequences, fitted.emission


def frozen_log_likelihood(
    estimator: object,
    X: MatrixLike,
    y: None = None,
    *,
    groups: VectorLike | None = None,
    lengths: VectorLike | None = None,
) -> float:
    """Mean log predictive probability per observed step under fixed parameters.

    Under every posterior draw it is an exact forward pass with the draw's transition and
    emission probabilities: without randomness, and cheaper than ``score``, which adapts
    along the test data.  At every step the probabilities under all draws are averaged
    before the logarithm is taken, as in ``score``.

    The counterpart of hmmlearn's ``score``: a mean over all steps instead of a sum.  Pass
    the function as ``scoring=`` to GridSearchCV, cross_val_score and similar functions.
    Metadata routing passes `groups` on.  :class:`ParticleFilterScorer` with
    ``adaptive=False`` is the same, with parameters.

    Parameters
    ----------
    estimator : HCRPHMM, or Pipeline that ends in one
        Fitted.
    X : array-like of shape (n_samples, n_features)
    y : None
        Ignored.
    groups : array-like of shape (n_samples,), optional
        Sequence id of every row.
    lengths : array-like, optional
        Lengths of the sequences, instead of `groups`.

    Returns
    -------
    score : float
        Nats.  Higher is better.

    See Also
    --------
    ParticleFilterScorer : Score by a particle filter.
    skihmm.HCRPHMM.score : Score under all draws of a fitted model.

    Examples
    --------
    >>> from skihmm import HCRPHMM
    >>> from skihmm.datasets import make_repeating_sequence
    >>> from skihmm.metrics import frozen_log_likelihood
    >>> X, _ = make_repeating_sequence(300)
    >>> hmm = HCRPHMM(n_burnin=50, n_draws=10, random_state=0).fit(X[:200])
    >>> -0.3 < frozen_log_likelihood(hmm, X[200:]) < 0
    True
    """
    check_ignored(y, X)
    scorer = ParticleFilterScorer(adaptive=False)
    return mean_observed(*scorer._score(estimator, X, groups, lengths))


# With metadata routing searches read a scorer's requests: `groups` are requested.
frozen_log_likelihood.get_metadata_routing = (  # type: ignore[attr-defined]
    ParticleFilterScorer(adaptive=False).get_metadata_routing
)
