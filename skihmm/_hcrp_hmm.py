"""The estimator."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import joblib
import numpy as np
from joblib.parallel import get_active_backend
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted, validate_data

from skihmm._callbacks import CallbackSupportMixin, FitTasks, with_callbacks
from skihmm._chain import ModelSettings, extended_record
from skihmm._chain_file import ChainFile, chain_paths
from skihmm._decoding import frozen_model, simulate_sequence
from skihmm._draws import Draw, PosteriorDraws
from skihmm._frames import LIBRARIES, fill_frame, library_of, make_frame, output_library
from skihmm._imputation import drawn_codes, expected_codes, fill
from skihmm._prediction import PosteriorPredictive
from skihmm._progress import Progress
from skihmm._run import (
    INTERRUPTED,
    NO_DRAW,
    Monitor,
    Plan,
    StopFlag,
    raised_by_interrupts,
    run_chain,
    sweeps_made,
)
from skihmm._sequences import (
    Sequences,
    check_states,
    make_sequences,
    row_index,
    sequence_starts,
)
from skihmm._validation import (
    as_array,
    check_choice,
    check_concentration_prior,
    check_flag,
    check_ignored,
    check_integer,
    check_n_jobs,
    check_nonnegative,
    check_positive,
    draw_entropy,
    is_missing,
    nested_short_names,
    preferred_jobs,
    refuse_sequences,
    resolve,
    unify_frame,
    unmask,
    warn_caller,
)
from skihmm._version import __version__
from skihmm.core._messages import FrozenModel
from skihmm.emissions import BaseEmission
from skihmm.emissions._names import EMISSIONS
from skihmm.metrics._diagnosis import Diagnosis, Setting
from skihmm.metrics._scorer import (
    log_predictive,
    mean_observed,
    perplexity_of,
)
from skihmm.posterior._estimate import best_draw
from skihmm.posterior._partitions import LOSSES
from skihmm.samplers import (
    BaseSampler,
    BlockedBeam,
    BlockedGibbs,
    DirectAssignmentGibbs,
    StepwiseGibbs,
    StepwiseSlice,
    StickBreakingBeam,
    StickBreakingGibbs,
)

SAMPLERS: dict[str, Callable[[], BaseSampler]] = {
    # The best all-round sampler: docs/samplers.md has the figures.
    "auto": partial(StepwiseGibbs, split_merge_rate=2),
    "stepwise": StepwiseGibbs,
    "slice": StepwiseSlice,
    "blocked": BlockedGibbs,
    "beam": BlockedBeam,
    "direct_assignment": DirectAssignmentGibbs,
    "stick_breaking": StickBreakingGibbs,
    "stick_breaking_beam": StickBreakingBeam,
}
INITS = ("auto", "particle_filter", "kmeans", "random", "single")
POINT_ESTIMATES = (*LOSSES, "map")


def _summary(
    chains: list[dict[str, Any]],
    *,
    sequences: Sequences,
    emission_: BaseEmission,
    point_estimate: str,
    **attributes: Any,
) -> dict[str, Any]:
    """All fitted attributes: those given, and what follows from the chains' histories."""
    draws = PosteriorDraws(
        [chain["draws"] for chain in chains], emission_.hyperparameters
    )
    if point_estimate == "map" or not draws.has_states:
        best = draws.argmax()
        # Kept apart from the draws, which have no paths with store_states=False.
        labels = chains[best[0]]["best_states"]
    else:
        best = best_draw(draws, point_estimate)
        labels = draws[best].states
    selected = draws[best]
    first = Sequences(sequences.codes[:1], sequences.starts[:1])
    startprob, transmat = frozen_model(selected, first, emission_).transition_matrix()
    return {
        **attributes,
        "_chains": chains,
        "_best": best,
        "emission_": emission_.with_states(selected.emission, selected.n_states),
        "draws_": draws,
        "n_states_": selected.n_states,
        "labels_": labels,
        "known_states_": sequences.known_labels,
        "startprob_": startprob,
        "transmat_": transmat,
    }


@dataclass(frozen=True)
class _Parameters:
    """The estimator's parameters, checked; sampler and emission are clones."""

    plan: Plan
    n_draws: int
    n_chains: int
    n_particles: int
    verbose: int
    point_estimate: str
    checkpoint_interval: float
    alpha: float
    gamma: float
    prior: tuple[float, float] | None
    sampler: BaseSampler
    emission: BaseEmission

    @property
    def model_hash(self) -> str:
        """Hash of the model.

        The compiled statistics could not take another emission's counts, and draws of two
        posteriors do not belong into one set.
        """
        name, params = type(self.emission).__name__, self.emission.get_params()
        return str(joblib.hash((name, params, self.alpha, self.gamma, self.prior)))

    def settings(
        self, emission: BaseEmission, init: str | NDArray[np.int32]
    ) -> ModelSettings:
        """What a chain samples, with the fitted emission."""
        return ModelSettings(
            self.sampler,
            emission,
            self.alpha,
            self.gamma,
            self.prior,
            init,
            self.n_particles,
        )


class HCRPHMM(CallbackSupportMixin, DensityMixin, BaseEstimator):
    """Hidden Markov model whose number of states is inferred.

    The model is the hierarchical Chinese restaurant process HMM (the collapsed form of
    the HDP-HMM, or infinite HMM): transition probabilities of all states are drawn around
    a shared distribution over infinitely many states, of which the data occupy finitely
    many.  Fitting draws from the posterior over state sequences by Markov chain Monte
    Carlo; transition and emission probabilities are integrated out.

    Parameters
    ----------
    sampler : str or BaseSampler, default="auto"
        How the posterior is sampled; cloned to ``sampler_``.  All samplers draw from the
        same posterior.  Short names: "auto", the best all-round sampler
        (``StepwiseGibbs(split_merge_rate=2)``), "stepwise", "slice", "blocked" and
        "beam", and for the baselines "direct_assignment", "stick_breaking" and
        "stick_breaking_beam".
    emission : str or BaseEmission, default="hcrp"
        What states emit; cloned to ``emission_``.  Short names: "hcrp" and "dirichlet"
        (symbols), "gaussian" (full covariance), "diagonal_gaussian", "poisson" (counts)
        and "bernoulli" (zeros and ones).  For mixed data:
        :class:`~skihmm.emissions.ProductEmission`.
    alpha, gamma : float, default=1.0
        Transition concentrations at the start of a chain: of every state's transitions
        around the shared distribution, and of the shared distribution.
    concentration_prior : (float, float) or None, default=(1.0, 1.0)
        Shape and rate of the Gamma prior on `alpha` and `gamma`, which are resampled
        after every sweep.  None keeps them fixed.
    init : {"auto", "particle_filter", "kmeans", "random", "single"} or array-like of \
shape (n_samples,), default="auto"
        Where a chain starts: the path of a particle filter, clusters of the rows by
        k-means (numbers only; at most 20), labels drawn from 20 states at random, one
        state for all steps, or the labels given (non-negative integers).  "auto": k-means
        for Gaussian emissions, where a particle filter starts from far too many states in
        several columns, otherwise the particle filter.  A start does not change the
        posterior; starts that end in different places are what :meth:`diagnose` looks
        for.
    n_burnin : int, default=500
        Sweeps discarded at the beginning of every chain.
    n_draws : int, default=100
        Draws stored per chain.
    thin : int, default=5
        Sweeps per stored draw.
    n_chains : int, default=1
        Independent chains; their draws are all kept.
    n_jobs : int or None, default=None
        Chains run at the same time, by joblib (threads, or processes for samplers and
        emissions written in Python, unless another backend is chosen with
        ``joblib.parallel_config``).  Results do not depend on it.
    n_particles : int, default=100
        Particles of the start by particle filter and of :meth:`score`.
    store_states : bool, default=True
        Keep the state path of every draw (one or two bytes per step), not only of the
        most probable one.
    point_estimate : {"vi", "binder", "map"}, default="vi"
        Which draw is the selected one, of which `labels_`, `n_states_`, `transmat_`,
        :meth:`predict` and the like speak.  "vi" and "binder": the one whose states have
        the smallest posterior expected variation of information, or Binder loss, over all
        draws.  "map": the one with the highest log joint probability, summed over who
        shares a table with whom (``draws_.summed_lp()``).  Where draws have no paths
        (``store_states=False``), "vi" is "map", and "binder" an error.  Does not
        influence sampling.  (:func:`skihmm.posterior.point_estimate` also searches beyond
        the draws.)
    warm_start : bool, default=False
        A further ``fit`` on the same data adds `n_draws` draws per chain, without a
        burn-in, continuing the exact random streams: fitting twice with 10 draws gives
        what fitting once with 20 does.  After :meth:`partial_fit` that is so for all
        data together; ``fit`` on other data starts afresh.
    max_time : float or None, default=None
        CPU seconds of this fit after which a chain ends even without all its draws.
        Those that it has are the first ones of what it would have without a limit; if it
        has none, its last state becomes its only draw, with a warning.  With
        `checkpoint`, the seconds before an interruption count.
    callback : callable or None, default=None
        Called after every sweep of every chain with a report: an object with attributes
        ``chain``, ``sweep``, ``n_sweeps`` (the last one's number), ``n_draws``,
        ``n_states``, ``lp``, ``alpha``, ``gamma``, ``acceptance_rate``,
        ``split_merge_acceptance_rate`` and ``seconds`` (CPU).  A true answer ends that
        chain, as `max_time` does.  Chains call from their own threads; with a process
        backend the callable is pickled.  Not saved with a fitted model.
    checkpoint : path-like or None, default=None
        Where chains are saved while they run: the path of an ``.npz`` file (one chain),
        or of a folder, which is made if there is none.  A fit that finds its own files
        there goes on from them, and ends with the same draws, bit for bit, as one that
        was never stopped; with more `n_draws` it makes the further draws only.  Files
        hold arrays and numbers, are never executed, and are replaced as a whole.  A file
        of another run, or a damaged one, is an error and stays as it is; so is a path
        that cannot be written to when the fit begins.  Later on, `fit` warns if a write
        fails, and keeps its draws.  Not saved with a fitted model.
    checkpoint_interval : float, default=60.0
        Seconds between two writes of `checkpoint` (longer if a write takes long).
    random_state : int, RandomState instance or None, default=None
        Seed of chains and scores.
    verbose : int, default=0
        1: show progress (sweeps per second, number of states, log joint probability,
        acceptance, time left): a bar on a terminal, elsewhere a line about once a second;
        2: a line after every sweep.

    Attributes
    ----------
    sampler_ : BaseSampler
        The sampler used.
    emission_ : BaseEmission
        The emission used, with what it learned about the data, and for numbers the
        parameters of the states of the selected draw (such as ``means_``).
    draws_ : PosteriorDraws
        All posterior draws, chain and draw first.
    n_states_ : int
        Number of states of the selected draw: the one that `point_estimate` says, over
        all chains.
    labels_ : ndarray of shape (n_samples,), int32
        States of the training steps in the selected draw, ``0 .. n_states_ - 1`` by
        decreasing occupancy.
    known_states_ : ndarray of int64
        Labels of the known states (the `states` of :meth:`fit`), increasing: state i of
        every draw is the one that was called ``known_states_[i]``.  Empty if none were
        given.
    startprob_ : ndarray of shape (n_states + 1,)
        Probabilities of the first state of a sequence: posterior mean under the selected
        draw.  The last entry is "a state not seen yet".
    transmat_ : ndarray of shape (n_states + 1, n_states + 1)
        Transition probabilities, likewise.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, if X has names that are all strings.

    Notes
    -----
    Ctrl-C ends a fit after the sweep that it is in, or during the particle filter that it
    starts with: the estimator is fitted with the draws made so far, with a warning, and
    `warm_start` or `checkpoint` can go on from there.  If no chain has a draw yet, or
    after a second Ctrl-C, KeyboardInterrupt is raised and an earlier fit stays as it was.
    scikit-learn's callbacks (``set_callbacks``, scikit-learn 1.9) see chains and sweeps
    as tasks.

    Labels mean nothing beyond one draw, so :meth:`predict`, :meth:`predict_proba`,
    :meth:`decode` and :meth:`sample` use the selected draw; :meth:`score`,
    :meth:`predict_next` and :meth:`impute` average over all draws.

    ``fit(X).labels_`` is a posterior draw of the training states; ``predict(X)`` is the
    most probable path given what that draw says about transitions and emissions.

    Cross-validation of one long sequence: use TimeSeriesSplit or a split into first and
    last part.  KFold glues the two ends of a training set together, and the model learns
    a transition that never happened.  With several sequences pass `groups` and use
    GroupKFold.  If X is a data frame, its index shows such places, and a warning says
    where they are: integer labels should go on by a constant step inside a sequence.

    References
    ----------
    T. Makino, S. Takei, I. Sato and D. Mochihashi, "Restricted Collapsed Draw: Accurate
    Sampling for Hierarchical Chinese Restaurant Process Hidden Markov Models",
    arXiv 1106.0474, 2011.

    Examples
    --------
    >>> from skihmm import HCRPHMM
    >>> from skihmm.datasets import make_repeating_sequence
    >>> X, states = make_repeating_sequence(200)
    >>> hmm = HCRPHMM(n_burnin=100, n_draws=20, random_state=0).fit(X)
    >>> hmm.draws_
    <PosteriorDraws: 1 chains x 20 draws>
    >>> hmm.labels_.shape
    (200,)
    >>> hmm.perplexity(X) < 5
    True
    """

    # Sequence ids travel with X through cross-validation, pipelines and searches when
    # metadata routing is on, without set_fit_request and the like.
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"groups": True, "states": True}
    __metadata_request__partial_fit: ClassVar[dict[str, Any]] = {
        "groups": True,
        "states": True,
    }
    __metadata_request__predict: ClassVar[dict[str, Any]] = {"groups": True}
    __metadata_request__predict_proba: ClassVar[dict[str, Any]] = {"groups": True}
    __metadata_request__score: ClassVar[dict[str, Any]] = {"groups": True}

    # What a fit leaves for warm_start, score and predict, beside the public attributes.
    _chains: list[dict[str, Any]]
    _data: tuple[NDArray[Any], ...]
    _is_extended: bool
    _fingerprint: str
    _model_hash: str
    _entropy: list[int]
    _score_entropy: list[int]
    _best: tuple[int, int]
    _frame_library: str | None

    def __init__(
        self,
        sampler: str | BaseSampler = "auto",
        emission: str | BaseEmission = "hcrp",
        *,
        alpha: float = 1.0,
        gamma: float = 1.0,
        concentration_prior: tuple[float, float] | None = (1.0, 1.0),
        init: Any = "auto",
        n_burnin: int = 500,
        n_draws: int = 100,
        thin: int = 5,
        n_chains: int = 1,
        n_jobs: int | None = None,
        n_particles: int = 100,
        store_states: bool = True,
        point_estimate: str = "vi",
        warm_start: bool = False,
        max_time: float | None = None,
        callback: Callable[[Any], Any] | None = None,
        checkpoint: Any = None,
        checkpoint_interval: float = 60.0,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.sampler = sampler
        self.emission = emission
        self.alpha = alpha
        self.gamma = gamma
        self.concentration_prior = concentration_prior
        self.init = init
        self.n_burnin = n_burnin
        self.n_draws = n_draws
        self.thin = thin
        self.n_chains = n_chains
        self.n_jobs = n_jobs
        self.n_particles = n_particles
        self.store_states = store_states
        self.point_estimate = point_estimate
        self.warm_start = warm_start
        self.max_time = max_time
        self.callback = callback
        self.checkpoint = checkpoint
        self.checkpoint_interval = checkpoint_interval
        self.random_state = random_state
        self.verbose = verbose

    # ---- scikit-learn's plumbing

    def __sklearn_tags__(self) -> Any:
        """Tags: what the emission takes, missing values allowed."""
        tags = super().__sklearn_tags__()
        emission: Any = self.emission
        if isinstance(emission, str) and emission in EMISSIONS:
            emission = EMISSIONS[emission]()
        # (There is no tag for whole numbers; with this one the data of scikit-learn's
        # checks are such.)
        tags.input_tags.categorical = getattr(emission, "takes_integers", True)
        tags.input_tags.positive_only = getattr(emission, "is_positive_only", False)
        tags.input_tags.allow_nan = True
        return tags

    def set_params(self, **params: Any) -> HCRPHMM:
        """Set parameters, nested ones too.

        ``sampler__x=...`` and ``emission__x=...`` work on short names as well: the name
        is replaced by the object that it stands for.

        Parameters
        ----------
        **params : dict

        Returns
        -------
        self : HCRPHMM
        """
        for name, known in (("sampler", SAMPLERS), ("emission", EMISSIONS)):
            given = {name: getattr(self, name)}
            params.update(nested_short_names(params, given, known))
        return super().set_params(**params)

    def set_output(self, *, transform: str | None = None) -> HCRPHMM:
        """Set what :meth:`predict_proba`, :meth:`impute` and :meth:`sample` return.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"} or None, default=None
            "default": arrays.  "pandas" and "polars": data frames.  None: leave it as it
            is.  If it was never set, scikit-learn's ``set_config(transform_output=...)``
            decides; if that was not set either, a data frame gives a data frame of its
            library (for :meth:`sample`: the data of :meth:`fit`), anything else an array.

        Returns
        -------
        self : HCRPHMM
        """
        if transform is not None:
            choices = ("default", *LIBRARIES)
            config = {"transform": check_choice("transform", transform, choices)}
            self._sklearn_output_config = config
        return self

    def __getstate__(self) -> dict[str, Any]:
        """State for pickling, with the version that made it."""
        state = {**super().__getstate__(), "_skihmm_version": __version__}
        if "_chains" in state:
            # They belong to the run that made the model.  An estimator that is not fitted
            # keeps them: it may be on its way to a worker process.
            state["callback"] = state["checkpoint"] = None
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore from a pickle; warn if another version made it."""
        state = dict(state)
        version = state.pop("_skihmm_version", "unknown")
        if version != __version__:
            warnings.warn(
                f"This HCRPHMM was pickled by skihmm {version} and is being loaded by "
                f"{__version__}; fit it again if anything looks wrong.",
                UserWarning,
                stacklevel=2,
            )
        super().__setstate__(state)

    # ---- fitting

    @with_callbacks
    def fit(
        self,
        X: Any,
        y: None = None,
        *,
        groups: Any = None,
        lengths: Any = None,
        states: Any = None,
    ) -> HCRPHMM:
        """Draw from the posterior given one or several sequences.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            One row per time step.  Symbols are non-negative integers or strings; NaN,
            None or masked entries are missing and have likelihood one.  Columns are
            independent given the state.
        y : None
            Ignored.
        groups : array-like of shape (n_samples,), optional
            Sequence id of every row; a new sequence begins where it changes.  Is sliced
            by cross-validation.
        lengths : array-like of shape (n_sequences,), optional
            Rows per sequence; the other way to say it.
        states : array-like of shape (n_samples,), optional
            Known states: an integer >= 0 for steps whose state is known, -1 for others.
            Steps of one label are in one state, steps of two labels in two; other steps
            may join these states or not.  All samplers draw from the exact posterior
            given that.  The known states are the first ones in all draws, in the order
            of their labels (``known_states_``).

        Returns
        -------
        self : HCRPHMM

        Raises
        ------
        ValueError, TypeError
            If data or parameters are not as described, or a checkpoint is not that of
            this fit or cannot be written.  An earlier fit stays as it was.

        Warns
        -----
        UserWarning
            If X is a data frame with an integer index that does not go on by a constant
            step inside a sequence, or with dates or times that go backwards; if X, or a
            column of it, holds no observation; if the fit was interrupted; or if a
            checkpoint cannot be written any more.
        """
        check_ignored(y, X)
        names = ("n_features_in_", "feature_names_in_", "_frame_library")
        earlier = {name: getattr(self, name) for name in names if hasattr(self, name)}
        try:
            fitted, stopped = self._fit(X, groups, lengths, states)
        except BaseException:
            for name in names:
                self.__dict__.pop(name, None)
            self.__dict__.update(earlier)
            raise
        self.__dict__.update(fitted)
        self._warn_of_stops(stopped)
        return self

    def _check_parameters(self) -> _Parameters:
        # scikit-learn's own estimators take verbose=True.
        verbose = self.verbose
        if not isinstance(verbose, bool):
            verbose = check_integer("verbose", verbose, 0)
        plan = Plan(
            check_integer("n_burnin", self.n_burnin, 0),
            check_integer("thin", self.thin, 1),
            check_flag("store_states", self.store_states),
            np.inf
            if self.max_time is None
            else check_positive("max_time", self.max_time),
        )
        if not (self.callback is None or callable(self.callback)):
            raise TypeError(
                f"callback={self.callback!r}; expected something to call, or None."
            )
        point_estimate = check_choice(
            "point_estimate", self.point_estimate, POINT_ESTIMATES
        )
        if point_estimate == "binder" and not plan.store_states:
            raise ValueError(
                "point_estimate='binder' compares the state paths of all draws, but "
                "store_states=False. Set store_states=True, or point_estimate='map'."
            )
        check_n_jobs("n_jobs", self.n_jobs)
        check_flag("warm_start", self.warm_start)
        found = _Parameters(
            plan=plan,
            n_draws=check_integer("n_draws", self.n_draws, 1),
            n_chains=check_integer("n_chains", self.n_chains, 1),
            n_particles=check_integer("n_particles", self.n_particles, 1),
            verbose=int(verbose),
            point_estimate=point_estimate,
            checkpoint_interval=check_nonnegative(
                "checkpoint_interval", self.checkpoint_interval
            ),
            alpha=check_positive("alpha", self.alpha),
            gamma=check_positive("gamma", self.gamma),
            prior=check_concentration_prior(
                "concentration_prior", self.concentration_prior
            ),
            sampler=resolve("sampler", self.sampler, SAMPLERS, BaseSampler),
            emission=resolve("emission", self.emission, EMISSIONS, BaseEmission),
        )
        found.sampler.check_parameters()
        return found

    def _fit(
        self, X: Any, groups: Any, lengths: Any, states: Any
    ) -> tuple[dict[str, Any], list[str | None]]:
        """Fitted attributes, and what ended every chain early."""
        given = self._check_parameters()
        emission = given.emission
        index = row_index(X)
        X = self._validate(X, reset=True)
        emission.name_columns(getattr(self, "feature_names_in_", None))
        emission.fit(X)
        sequences = make_sequences(
            emission.encode(X),
            sequence_starts(len(X), groups, lengths, index),
            check_states(states, len(X)),
        )
        resumed = self.warm_start and hasattr(self, "_chains")
        is_same = resumed and sequences.fingerprint == self._fingerprint
        if resumed and given.model_hash == self._model_hash:
            # The chains go on with the emission that they have: after partial_fit it was
            # fitted to the first data only, and has other offsets and hyperpriors.
            earlier = self._encoded_as_before(X, sequences)
            is_same = earlier is not None and earlier.fingerprint == self._fingerprint
            if earlier is not None and is_same:
                emission, sequences = self.emission_, earlier
        self._warn_of_missing(X, emission.is_missing(sequences.codes), emission)
        # Errors of the emission's parameters, and of the two together, before any work.
        given.sampler.check_emission(emission, emission.make_stats(sequences.codes[:0]))
        settings = given.settings(emission, self._check_init(sequences, emission))

        files: Sequence[ChainFile | None] = [None] * given.n_chains
        if resumed and self._is_extended:
            # As anywhere in scikit-learn, fit forgets what partial_fit has added.
            resumed = is_same
        if resumed:
            if self.checkpoint is not None:
                raise ValueError(
                    "warm_start=True goes on from the earlier fit, and checkpoint "
                    f"from the files in {str(self.checkpoint)!r}; one of them has to be "
                    "left out. (With a checkpoint, set a larger n_draws and fit again.)"
                )
            if not is_same:
                raise ValueError(
                    "warm_start=True continues the chains of the earlier fit, but X (or "
                    "its division into sequences, or states) is not that of the earlier "
                    "fit. Pass the same data, or set warm_start=False to start afresh."
                )
            self._check_continued(given, "warm_start=True")
            if given.point_estimate == "binder" and not self.draws_.has_states:
                raise ValueError(
                    "point_estimate='binder' compares the state paths of all draws, but "
                    "the earlier fit, which warm_start=True continues, had "
                    "store_states=False. Set point_estimate='map', or warm_start=False."
                )
            histories = [given.plan.continue_history(history) for history in self._chains]
            entropy = self._entropy
        else:
            histories = [given.plan.new_history() for _ in range(given.n_chains)]
            entropy = draw_entropy(self.random_state)
            if self.checkpoint is not None:
                files, histories, entropy = self._open_files(
                    given, histories, entropy, sequences, settings
                )
        wanted = [
            given.n_draws + (len(history["draws"]) if resumed else 0)
            for history in histories
        ]
        fitted, stopped = self._sample(
            given, X, sequences, settings, histories, wanted, files, entropy
        )
        return {**fitted, "_is_extended": resumed and self._is_extended}, stopped

    def _encoded_as_before(
        self, X: NDArray[Any], sequences: Sequences
    ) -> Sequences | None:
        """The sequences by the emission of the earlier fit; None if it refuses them."""
        if X.shape[1] != self._data[0].shape[1]:
            return None
        try:
            codes = self.emission_.encode(X)
        except ValueError:
            return None
        return replace(sequences, codes=codes)

    @with_callbacks
    def _partial_fit(self, X: Any, groups: Any, lengths: Any, states: Any) -> HCRPHMM:
        given = self._check_parameters()
        if self.checkpoint is not None:
            raise ValueError(
                f"checkpoint={str(self.checkpoint)!r} holds chains on the earlier data, "
                "which partial_fit cannot go on from. Set checkpoint=None, or fit all "
                "data again."
            )
        self._check_continued(given, "partial_fit")
        added = self._encode_sequences(X, groups, lengths, states)
        earlier = make_sequences(*self._data)
        settings = given.settings(self.emission_, "particle_filter")
        given.sampler.check_emission(
            self.emission_, self.emission_.make_stats(added.codes[:0])
        )
        histories = []
        for history in self._chains:
            begun = given.plan.new_history()
            if history["record"] is not None:
                begun["record"] = extended_record(
                    history["record"], earlier, added, settings
                )
            histories.append(begun)
        wanted = [given.n_draws] * given.n_chains
        fitted, stopped = self._sample(
            given,
            X,
            earlier.joined(added),
            settings,
            histories,
            wanted,
            [None] * given.n_chains,
            self._entropy,
        )
        self.__dict__.update(fitted)
        self._is_extended = True
        self._warn_of_stops(stopped)
        return self

    def _sample(
        self,
        given: _Parameters,
        X: Any,
        sequences: Sequences,
        settings: ModelSettings,
        histories: list[dict[str, Any]],
        wanted: list[int],
        files: Sequence[ChainFile | None],
        entropy: list[int],
    ) -> tuple[dict[str, Any], list[str | None]]:
        """Run all chains to the end: fitted attributes, and what ended them early."""
        chain_root, score_root = np.random.SeedSequence(entropy).spawn(2)
        summarise = partial(
            _summary,
            sequences=sequences,
            emission_=settings.emission,
            point_estimate=given.point_estimate,
            sampler_=settings.sampler,
            # (Arrays and not an object: files of fitted models hold no types of ours.)
            _data=sequences.given,
            _fingerprint=sequences.fingerprint,
            _model_hash=given.model_hash,
            _entropy=entropy,
            _score_entropy=[int(word) for word in score_root.generate_state(4)],
        )
        chains, stopped = self._run(
            X,
            sequences,
            settings,
            chain_root.spawn(len(histories)),
            histories,
            wanted,
            given.plan,
            given.verbose,
            files,
            summarise,
        )
        return summarise(chains), stopped

    def _run(
        self,
        X: NDArray[Any],
        sequences: Sequences,
        settings: ModelSettings,
        seeds: list[np.random.SeedSequence],
        histories: list[dict[str, Any]],
        wanted: list[int],
        plan: Plan,
        verbose: int,
        files: Sequence[ChainFile | None],
        summarise: Callable[[list[dict[str, Any]]], dict[str, Any]],
    ) -> tuple[list[dict[str, Any]], list[str | None]]:
        """Run all chains: their histories, and what ended each of them early."""
        n_sweeps = [
            plan.n_sweeps(history, n)
            for history, n in zip(histories, wanted, strict=True)
        ]
        made = [sweeps_made(history) for history in histories]
        progress = Progress(n_sweeps, made, verbose, plan.max_time) if verbose else None
        tasks = None
        if getattr(self, "_skl_callbacks", None):
            missing = [n - m for n, m in zip(n_sweeps, made, strict=True)]
            tasks = FitTasks(self, X, missing, summarise)
        prefer = preferred_jobs(settings.sampler, settings.emission)
        backend = get_active_backend(prefer=prefer)[0]
        stop = StopFlag(not getattr(backend, "supports_sharedmem", False))
        monitor = Monitor(stop, progress, self.callback, tasks)
        try:
            with raised_by_interrupts(stop):
                results = Parallel(n_jobs=self.n_jobs, prefer=prefer)(
                    delayed(run_chain)(
                        c,
                        sequences,
                        settings,
                        seeds[c],
                        histories[c],
                        wanted[c],
                        plan,
                        monitor,
                        files[c],
                    )
                    for c in range(len(seeds))
                )
        except Exception as error:
            if stop.is_raised():
                # Ctrl-C has killed a worker that was about to start, say.
                raise KeyboardInterrupt from error
            raise
        finally:
            # Threads must not go on if this one leaves because of an error.
            stop.raise_()
            stop.close()
            if progress is not None:
                progress.close()
        if tasks is not None:
            tasks.end()
        chains = [history for history, _, _ in results]
        stopped = [reason for _, reason, _ in results]
        for file, (_, _, failure) in zip(files, results, strict=True):
            # The warning of another process does not reach this one.
            if file is not None and failure is not None and file.failure is None:
                warn_caller(failure)
        if not any(history["draws"] for history in chains):
            raise KeyboardInterrupt
        return chains, stopped

    def _open_files(
        self,
        given: _Parameters,
        histories: list[dict[str, Any]],
        entropy: list[int],
        sequences: Sequences,
        settings: ModelSettings,
    ) -> tuple[list[ChainFile], list[dict[str, Any]], list[int]]:
        """Files of all chains, the histories that they hold, and the seed."""
        plan, sampler = given.plan, settings.sampler
        header = {
            # Codes do not show by how much columns were shifted.
            "data": joblib.hash(
                (
                    sequences.fingerprint,
                    settings.emission.offsets(sequences.codes.shape[1]).tolist(),
                )
            ),
            "model": given.model_hash,
            "sampler": joblib.hash((type(sampler).__name__, sampler.get_params())),
            "start": joblib.hash((settings.init, settings.n_particles)),
            "schedule": [plan.n_burnin, plan.thin, plan.store_states],
        }
        histories = list(histories)
        seed = None if self.random_state is None else entropy
        files = []
        for c, path in enumerate(chain_paths(self.checkpoint, len(histories))):
            file = ChainFile(
                path, {**header, "seed": seed, "chain": c}, given.checkpoint_interval
            )
            found = file.load(sequences, settings)
            # (Without a random_state, that of the first file.)
            seed = file.header["seed"]
            if found is not None:
                if len(found["draws"]) > given.n_draws:
                    raise ValueError(
                        f"{path} holds {len(found['draws'])} draws, more than "
                        f"n_draws={given.n_draws}.  Set n_draws to at least as many, or "
                        "pass another checkpoint."
                    )
                histories[c] = found
            files.append(file)
        if seed is None:
            seed = entropy
        for file, history in zip(files, histories, strict=True):
            file.header = {**file.header, "seed": seed}
            if len(history["draws"]) < given.n_draws:
                file.begin()
        return files, histories, seed

    def _warn_of_stops(self, stopped: list[str | None]) -> None:
        if INTERRUPTED in stopped:
            n_draws = self.draws_.n_draws
            kept = f"draws made so far are kept: {n_draws.sum()}"
            if len(n_draws) > 1:
                kept += (
                    f" in {len(n_draws)} chains ({n_draws.min()} to {n_draws.max()} each)"
                )
            how = "set warm_start=True and fit the same data again"
            if self.checkpoint is not None:
                how = "fit again with the same checkpoint"
            warn_caller(
                f"The fit was interrupted; the {kept}. To go on from there, {how}."
            )
        early = [c for c, reason in enumerate(stopped) if reason == NO_DRAW]
        if early:
            warn_caller(
                f"Chains {early} were stopped by max_time or callback before their first "
                "draw was due; the state in which they ended is their only draw. Allow "
                "more time, or set a shorter n_burnin."
            )

    def _warn_of_missing(
        self, X: NDArray[Any], missing_rows: NDArray[np.bool_], emission: BaseEmission
    ) -> None:
        """Warn of data, or columns of the data, without any observation."""
        labels = getattr(self, "feature_names_in_", range(X.shape[1]))
        empty = [
            label
            for label, column in zip(labels, X.T, strict=True)
            if is_missing(column[:1]).all() and is_missing(column).all()
        ]
        if len(empty) == X.shape[1]:
            warn_caller(
                "All entries of X are missing: the draws are those of the prior. Check "
                "how X was read."
            )
        elif missing_rows.all():
            warn_caller(
                f"All rows of X are missing for {type(emission).__name__}: the draws are "
                "those of the prior. With a full covariance a row of which any entry is "
                'missing is missing as a whole (emission="diagonal_gaussian" takes '
                'single entries), and with handle_unknown="missing" all symbols that are '
                "not in categories are."
            )
        elif empty:
            warn_caller(
                f"All entries of column{'s' * (len(empty) > 1)} "
                f"{', '.join(map(repr, empty))} of X are missing, which says nothing "
                "about states. Leave them out, or check how X was read."
            )

    def _check_init(
        self, sequences: Sequences, emission: BaseEmission
    ) -> str | NDArray[np.int32]:
        n_samples, known = sequences.n_steps, sequences.known_states
        if isinstance(self.init, str):
            init = check_choice("init", self.init, INITS)
            n_numeric = sequences.codes[:0, emission.numeric_columns()].shape[1]
            if init == "kmeans" and n_numeric == 0:
                raise ValueError(
                    'init="kmeans" needs columns of numbers, but all columns of X are '
                    'symbols. Use init="auto" or "particle_filter".'
                )
            return init
        labels = as_array("init", self.init)
        if labels.ndim != 1:
            raise ValueError(
                f"init={self.init!r}; expected one of {INITS} or {n_samples} "
                "non-negative integers, one state per row of X."
            )
        if labels.dtype.kind not in "iu" or len(labels) != n_samples or labels.min() < 0:
            raise ValueError(
                f"init is an array of {len(labels)} entries of type {labels.dtype}; "
                f"expected one of {INITS} or {n_samples} non-negative integers, one "
                "state per row of X."
            )
        if known is not None:
            pairs = {
                (k, label) for k, label in zip(labels, known, strict=True) if label >= 0
            }
            if (
                not len(pairs)
                == len({k for k, _ in pairs})
                == len(sequences.known_labels)
            ):
                raise ValueError(
                    "init and states contradict each other: in init, the steps of every "
                    "known state have to be in one state, and those of two in two."
                )
        return labels.astype(np.int64)

    def _check_continued(self, given: _Parameters, what: str) -> None:
        """Refuse another model, or another number of chains, than was fitted."""
        if given.model_hash != self._model_hash:
            raise ValueError(
                f"{what} continues the chains of the earlier fit, but emission, alpha, "
                "gamma or concentration_prior is not that of the earlier fit. Keep them, "
                "or start afresh: fit with warm_start=False."
            )
        if given.n_chains != len(self._chains):
            raise ValueError(
                f"n_chains={given.n_chains}, but {what} continues the "
                f"{len(self._chains)} chains of the earlier fit. Keep n_chains, or start "
                "afresh: fit with warm_start=False."
            )

    def partial_fit(
        self,
        X: Any,
        y: None = None,
        *,
        groups: Any = None,
        lengths: Any = None,
        states: Any = None,
    ) -> HCRPHMM:
        """Add sequences to the data of a fitted model and go on sampling.

        The posterior is that of all data so far.  Every chain goes on from its last
        state: the new steps get the path of a particle filter on it, and `n_burnin`
        sweeps are discarded before the next `n_draws` draws, which replace the earlier
        ones.  (What is left to burn in is little if the new data are like the old ones;
        ``set_params(n_burnin=...)`` between the calls is in order.)

        What the emission learned from the first data stays: the symbols (a new one is
        what `handle_unknown` says) and priors that were taken from the scale of the
        data.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New sequences; the first row does not follow the last one of earlier data.
        y : None
            Ignored.
        groups, lengths : array-like, optional
            Of the new sequences, as in :meth:`fit`.
        states : array-like of shape (n_samples,), optional
            Known states of the new steps, as in :meth:`fit`.  The labels mean the same
            in all calls.

        Returns
        -------
        self : HCRPHMM
            `labels_` and all draws have the steps of all data, in the order in which
            they came.

        Raises
        ------
        ValueError, TypeError
            If data or parameters are not as described.  The earlier fit stays as it was.
        """
        check_ignored(y, X)
        if not hasattr(self, "_chains"):
            return self.fit(X, groups=groups, lengths=lengths, states=states)
        return self._partial_fit(X, groups, lengths, states)

    def fit_predict(
        self, X: Any, y: None = None, *, groups: Any = None, lengths: Any = None
    ) -> NDArray[np.int32]:
        """Fit, then predict the same data: ``fit(X).predict(X)``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : None
            Ignored.
        groups, lengths : array-like, optional
            As in :meth:`fit`.

        Returns
        -------
        states : ndarray of shape (n_samples,), int32
            Most probable path under the selected draw.  The path of that draw itself is
            ``labels_``.
        """
        self.fit(X, y, groups=groups, lengths=lengths)
        return self.predict(X, groups=groups, lengths=lengths)

    # ---- data

    def _column_names(self) -> list[str]:
        """Names of the columns of X; x0, x1, ... as in scikit-learn if there are none."""
        n = self.n_features_in_
        return list(getattr(self, "feature_names_in_", [f"x{c}" for c in range(n)]))

    def _validate(self, X: Any, reset: bool) -> NDArray[Any]:
        refuse_sequences(X)
        if issparse(X):
            raise TypeError(
                f"X is sparse, a {type(X).__name__}; expected a dense array. Symbols are "
                'not one-hot but one column of codes: KBinsDiscretizer(encode="ordinal") '
                "or OrdinalEncoder in the place of OneHotEncoder makes them. Other data: "
                "X.toarray()."
            )
        if reset:
            self._frame_library = library_of(X)
        X = unify_frame(unmask(X))
        if isinstance(X, list | tuple | np.ndarray):
            X = as_array("X", X)
        # (The next lines say where the infinity is; scikit-learn does not.)
        X = validate_data(self, X, reset=reset, dtype=None, ensure_all_finite=False)
        if X.dtype.kind == "f" and np.isinf(X).any():
            row, c = np.argwhere(np.isinf(X))[0]
            label = getattr(self, "feature_names_in_", range(X.shape[1]))[c]
            raise ValueError(
                f"X contains infinity: X[{row}, {label!r}] = {X[row, c]}; expected "
                "finite values, or NaN where they are missing."
            )
        return X

    def _validate_sequences(
        self, X: Any, groups: Any, lengths: Any, states: Any = None
    ) -> tuple[NDArray[Any], Sequences]:
        check_is_fitted(self)
        index = row_index(X)
        X = self._validate(X, reset=False)
        return X, make_sequences(
            self.emission_.encode(X),
            sequence_starts(len(X), groups, lengths, index),
            check_states(states, len(X)),
        )

    def _encode_sequences(
        self, X: Any, groups: Any = None, lengths: Any = None, states: Any = None
    ) -> Sequences:
        return self._validate_sequences(X, groups, lengths, states)[1]

    @property
    def _selected(self) -> Draw:
        return self.draws_[self._best]

    def _model(self, X: Any, groups: Any, lengths: Any) -> FrozenModel:
        sequences = self._encode_sequences(X, groups, lengths)
        return frozen_model(self._selected, sequences, self.emission_)

    # ---- prediction

    def predict(
        self,
        X: Any,
        *,
        method: str = "viterbi",
        groups: Any = None,
        lengths: Any = None,
    ) -> NDArray[np.int32]:
        """Most probable states under the selected draw.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        method : {"viterbi", "smooth", "filter"}, default="viterbi"
            The most probable path; or of every step the most probable state given all of
            X ("smooth"), or given X up to this step, without a look into the future
            ("filter").
        groups, lengths : array-like, optional
            As in :meth:`fit`.

        Returns
        -------
        states : ndarray of shape (n_samples,), int32
            ``0 .. n_states_ - 1``; ``n_states_`` is "a state not seen yet".
        """
        if check_choice("method", method, ("viterbi", "smooth", "filter")) == "viterbi":
            return self.decode(X, groups=groups, lengths=lengths)[1]
        probs = self._state_probs(X, method, groups, lengths)
        return probs.argmax(axis=1).astype(np.int32)

    def decode(
        self, X: Any, *, groups: Any = None, lengths: Any = None
    ) -> tuple[float, NDArray[np.int32]]:
        """Most probable state path and its log probability.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        groups, lengths : array-like, optional
            As in :meth:`fit`.

        Returns
        -------
        log_prob : float
            Log joint probability of path and data under the selected draw, nats.
        states : ndarray of shape (n_samples,), int32
            As :meth:`predict`.
        """
        log_prob, path = self._model(X, groups, lengths).viterbi()
        return float(log_prob), path

    def predict_proba(
        self,
        X: Any,
        *,
        method: str = "smooth",
        groups: Any = None,
        lengths: Any = None,
    ) -> Any:
        """Probabilities of the states of every step.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        method : {"smooth", "filter"}, default="smooth"
            Given all of X, or given X up to this step.
        groups, lengths : array-like, optional
            As in :meth:`fit`.

        Returns
        -------
        probs : ndarray or data frame of shape (n_samples, n_states + 1)
            Under the selected draw; rows sum to one, the last column is "a state not
            seen yet".  A data frame, with the columns ``state0``, ``state1``, ... and
            ``new_state``, if X is one or :meth:`set_output` asks for it.
        """
        probs = self._state_probs(X, method, groups, lengths)
        library = output_library(self, library_of(X))
        if library is None:
            return probs
        names = [*(f"state{k}" for k in range(self.n_states_)), "new_state"]
        return make_frame(library, probs, names, X)

    def _state_probs(
        self, X: Any, method: str, groups: Any, lengths: Any
    ) -> NDArray[np.float64]:
        check_choice("method", method, ("smooth", "filter"))
        model = self._model(X, groups, lengths)
        if method == "smooth":
            return model.smooth()
        probs = model.filter(with_probs=True)[1]
        assert probs is not None
        return probs

    def predict_next(
        self, X: Any, n_steps: int = 1, *, groups: Any = None, lengths: Any = None
    ) -> PosteriorPredictive:
        """Predict the observations that come after the end of X.

        All posterior draws are averaged over, with equal weights: labels play no part.
        Every draw's seating stays as it was after `fit`, so X, unlike in :meth:`score`,
        only says which state its end is in.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Of several sequences the last one goes on.
        n_steps : int, default=1
            How many steps to predict.
        groups, lengths : array-like, optional
            As in :meth:`fit`.

        Returns
        -------
        following : PosteriorPredictive
            With methods ``proba`` (of symbols), ``mean`` (of numbers), ``log_prob`` and
            ``sample``.

        Examples
        --------
        >>> from skihmm import HCRPHMM
        >>> X = [["sun"], ["sun"], ["rain"]] * 30
        >>> hmm = HCRPHMM(n_burnin=100, n_draws=20, random_state=0).fit(X)
        >>> following = hmm.predict_next(X, n_steps=2)
        >>> hmm.emission_.categories_[0].tolist()
        ['rain', 'sun']
        >>> following.proba().shape  # the last column: any other symbol
        (2, 3)
        >>> bool((following.proba()[:, 1] > 0.8).all())
        True
        """
        check_is_fitted(self)
        n_steps = check_integer("n_steps", n_steps, 1)
        return PosteriorPredictive(
            self.draws_.thinned(),
            self._encode_sequences(X, groups, lengths),
            self.emission_,
            n_steps,
            self.random_state,
            getattr(self, "feature_names_in_", None),
        )

    def impute(
        self,
        X: Any,
        *,
        method: str = "expectation",
        random_state: Any = None,
        groups: Any = None,
        lengths: Any = None,
    ) -> Any:
        """Fill in what is missing in X from the posterior predictive given all of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            NaN, None and masked entries are missing.
        method : {"expectation", "sample"}, default="expectation"
            "expectation": averaged over all posterior draws, numbers get their predictive
            mean (counts and binary columns the nearest integer) and symbols the most
            probable category.  "sample": one posterior draw is chosen at random, a path
            of states is drawn given X, and every missing entry from the posterior
            predictive of its state; calls with different `random_state` are multiple
            imputations.
        random_state : int, RandomState instance or None, default=None
            For "sample"; None uses the estimator's `random_state`.
        groups, lengths : array-like, optional
            As in :meth:`fit`.

        Returns
        -------
        X_filled : ndarray or data frame of shape (n_samples, n_features)
            What was observed is as it was, symbols outside of the categories too.  A data
            frame if X is one, with its types of columns where the values fit, or if
            :meth:`set_output` asks for it.  An array holds integers if all entries are
            whole and the emission's are, objects if strings are among them.  A copy of X
            if nothing is missing.

        Notes
        -----
        Given the state, what is filled in does not depend on the rest of its row.  With
        :class:`~skihmm.emissions.NormalInverseWishart` a row of which any entry is
        missing does not say anything about its state either, as everywhere with that
        emission; only its missing entries are filled, each from its state's marginal
        distribution, several jointly with "sample".

        Examples
        --------
        >>> from skihmm import HCRPHMM
        >>> X = [[2], [5], [7]] * 40
        >>> hmm = HCRPHMM(n_burnin=100, n_draws=20, random_state=0).fit(X)
        >>> hmm.impute([[2], [None], [7], [None], [5]]).ravel()
        array([2, 5, 7, 2, 5])
        """
        check_choice("method", method, ("expectation", "sample"))
        given = X
        X, sequences = self._validate_sequences(X, groups, lengths)
        missing = np.array([is_missing(column) for column in X.T]).T
        filled = self._filled(X, missing, sequences, method, random_state)
        library = output_library(self, library_of(given))
        if library is None:
            return filled
        if library == library_of(given):
            return fill_frame(given, missing, filled)
        return make_frame(library, filled, self._column_names(), given)

    def _filled(
        self,
        X: NDArray[Any],
        missing: NDArray[np.bool_],
        sequences: Sequences,
        method: str,
        random_state: Any,
    ) -> NDArray[Any]:
        if not missing.any():
            return X.copy()
        draws = self.draws_.thinned()
        if method == "expectation":
            codes = expected_codes(draws, sequences, self.emission_)
        else:
            entropy = draw_entropy(
                self.random_state if random_state is None else random_state
            )
            seed = np.random.SeedSequence(entropy)
            codes = drawn_codes(draws, sequences, self.emission_, seed)
        return fill(X, missing, self.emission_.decode(codes))

    # ---- scores

    def score_samples(
        self, X: Any, *, groups: Any = None, lengths: Any = None
    ) -> NDArray[np.float64]:
        """Log predictive probability of every step given the steps before it.

        Probabilities are averaged over all posterior draws before taking the logarithm.
        A particle filter goes on seating the data, anew for every sequence.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        groups, lengths : array-like, optional
            As in :meth:`fit`.

        Returns
        -------
        log_probs : ndarray of shape (n_samples,)
            Nats; 0 where the whole row is missing.
        """
        return self._score(X, groups, lengths)[0]

    def score(
        self,
        X: Any,
        y: None = None,
        *,
        sample_weight: None = None,
        groups: Any = None,
        lengths: Any = None,
    ) -> float:
        """Mean log predictive probability per observed time step.

        The model goes on learning along each sequence.
        :func:`skihmm.metrics.frozen_log_likelihood` is the cheaper score of the model as
        trained.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : None
            Ignored.
        sample_weight : None
            Not supported: steps of a sequence cannot be weighted.
        groups, lengths : array-like, optional
            As in :meth:`fit`.

        Returns
        -------
        score : float
            Nats; higher is better.  0 if nothing is observed.
        """
        check_ignored(y, X)
        if sample_weight is not None:
            raise ValueError(
                "sample_weight was given, but the steps of a sequence cannot be "
                "weighted; leave it out."
            )
        return mean_observed(*self._score(X, groups, lengths))

    def perplexity(
        self, X: Any, y: None = None, *, groups: Any = None, lengths: Any = None
    ) -> float:
        """Perplexity: ``exp(-score)``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : None
            Ignored.
        groups, lengths : array-like, optional
            As in :meth:`fit`.

        Returns
        -------
        perplexity : float
        """
        return perplexity_of(self.score(X, y, groups=groups, lengths=lengths))

    def _score(
        self, X: Any, groups: Any, lengths: Any
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        sequences = self._encode_sequences(X, groups, lengths)
        log_probs = log_predictive(
            self.draws_.thinned(),
            sequences,
            self.emission_,
            n_particles=check_integer("n_particles", self.n_particles, 1),
            adaptive=True,
            resampling="systematic",
            continued=False,
            entropy=self._score_entropy,
            n_jobs=check_n_jobs("n_jobs", self.n_jobs),
        )
        return log_probs, self.emission_.is_missing(sequences.codes)

    # ---- convergence

    def diagnose(self, *, verbose: bool = False) -> Diagnosis:
        """Say how well the chains have mixed, and what to change if they have not.

        Parameters
        ----------
        verbose : bool, default=False
            Print it.

        Returns
        -------
        diagnosis : Diagnosis
            To be printed: ``print(hmm.diagnose())``; a notebook shows it by itself.
            Verdict, warnings and advice in words; means, R-hat and effective sample sizes
            of quantities that do not depend on how states are numbered.

        Notes
        -----
        There is a warning if R-hat of a quantity is above 1.05 or its bulk effective
        sample size below 100, if the log joint probability of a chain stays below that
        of another one (nine tenths of its draws below nine tenths of the other's), if
        fewer than 20 % of the proposals were accepted (50 % if there are other warnings),
        if most states are single steps, or if there are fewer than 20 draws per chain.
        No warning is no proof: chains that all miss the same states look alike.

        Examples
        --------
        >>> from skihmm import HCRPHMM
        >>> from skihmm.datasets import make_repeating_sequence
        >>> X, _ = make_repeating_sequence(100)
        >>> hmm = HCRPHMM(n_burnin=50, n_draws=10, n_chains=2, random_state=0).fit(X)
        >>> hmm.diagnose()  # doctest: +ELLIPSIS
        Do not trust these draws yet.
        * There are only 10 draws per chain, too few to judge how they mix.
        What to change:
        * n_draws=200 (now 10).
        ...
        """
        check_is_fitted(self)
        diagnosis = Diagnosis(
            self.draws_,
            self._best,
            Setting(
                self.sampler_,
                check_integer("n_burnin", self.n_burnin, 0),
                check_integer("thin", self.thin, 1),
                len(self.labels_),
                not isinstance(self.init, str) or self.init == "single",
            ),
        )
        if check_flag("verbose", verbose):
            print(diagnosis)
        return diagnosis

    # ---- new data

    def sample(
        self, n_samples: int = 1, random_state: Any = None
    ) -> tuple[Any, NDArray[np.int32]]:
        """Draw a new sequence from the predictive distribution of the selected draw.

        Parameters
        ----------
        n_samples : int, default=1
            Number of time steps.
        random_state : int, RandomState instance or None, default=None
            None uses the estimator's `random_state`.

        Returns
        -------
        X : ndarray or data frame of shape (n_samples, n_features)
            Symbols from the emission's categories.  A data frame if the model was fitted
            to one, or :meth:`set_output` asks for it.
        states : ndarray of shape (n_samples,), int32
            Labels from ``n_states_`` on are new states.
        """
        check_is_fitted(self)
        n_samples = check_integer("n_samples", n_samples, 1)
        entropy = draw_entropy(
            self.random_state if random_state is None else random_state
        )
        X, states = simulate_sequence(
            self._selected,
            n_samples,
            self.n_features_in_,
            self.emission_,
            np.random.SeedSequence(entropy),
        )
        library = output_library(self, self._frame_library)
        if library is not None:
            X = make_frame(library, X, self._column_names(), None)
        return X, states
