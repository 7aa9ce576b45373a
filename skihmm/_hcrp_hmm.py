"""Estimator of the infinite hidden Markov model."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, DensityMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from skihmm._data.frames import LIBRARIES, fill_frame, library_of, make_frame, output_library
from skihmm._data.growing import Rows
from skihmm._data.other_names import ExplainsNames, explain_attribute, explain_parameter
from skihmm._data.reading import Columns
from skihmm._data.sequences import (
    Sequences,
    check_states,
    starts_of_rows,
    warn_of_new_states,
)
from skihmm._data.validation import (
    check_choice,
    check_flag,
    check_ignored,
    check_integer,
    check_n_jobs,
    draw_entropy,
    nested_short_names,
    resolve,
    warn_caller,
    warn_of_labels,
)
from skihmm._draws import PosteriorDraws
from skihmm._fitting.callbacks import CallbackSupportMixin, FitTasks, with_callbacks
from skihmm._fitting.fit import Fit, FitState, Parameters, sampler_of, transitions_for
from skihmm._fitting.progress import SweepReport
from skihmm._pickles import with_version, without_version
from skihmm._recipe import DocLinkMixin
from skihmm._texts import state_names
from skihmm._typing import (
    Array,
    Floats,
    Labels,
    MatrixLike,
    RandomState,
    VectorLike,
)
from skihmm._using.fitted import FittedModel, fitted_of
from skihmm._using.new_rows import context_transmat, impute, predict_next, residuals, sample
from skihmm._using.prediction import PosteriorPredictive
from skihmm._using.renumbering import order_for, renumbered
from skihmm._using.separation import note_of_separation
from skihmm._using.stays import coefficients_of, has_inputs, in_user_units, stay_probabilities
from skihmm.emissions import BaseEmission
from skihmm.emissions._names import EMISSIONS
from skihmm.emissions._subjects import doubtful_subjects
from skihmm.metrics._diagnosis import Diagnosis
from skihmm.metrics._examination import examine
from skihmm.metrics._misfit import regime_draw
from skihmm.metrics._scorer import (
    log_predictive,
    mean_observed,
    perplexity_of,
)
from skihmm.posterior._regimes import FoundRegimes, Regimes
from skihmm.posterior._segments import table_of_segments
from skihmm.posterior._summary import Summary, summarise
from skihmm.samplers import BaseSampler
from skihmm.samplers._names import SAMPLERS
from skihmm.transitions import BaseTransitions
from skihmm.transitions._names import TRANSITIONS

if TYPE_CHECKING:
    from sklearn.utils import Tags


SHORT_NAMES: dict[str, Mapping[str, Callable[[], object]]] = {
    "sampler": SAMPLERS,
    "emission": EMISSIONS,
    "transitions": TRANSITIONS,
}


def _attributes(fitted: FittedModel, state: FitState) -> dict[str, object]:
    """All attributes that a fit sets, of the estimator and of copies for callbacks."""
    columns, schedule, known = fitted.columns, fitted.schedule, fitted.sequences.known_labels
    names = {} if columns.names is None else {"feature_names_in_": columns.names}
    return {
        "_fitted": fitted,
        "_fit_state": state,
        "_regimes": FoundRegimes(fitted),
        "n_features_in_": columns.number,
        **names,
        "draws_": fitted.draws,
        "labels_": fitted.labels,
        "known_states_": known,
        "n_states_": fitted.n_states,
        "startprob_": fitted.startprob,
        "transmat_": fitted.transmat,
        "dwell_times_": fitted.dwell_law.mean,
        "emission_": fitted.emission,
        "transitions_": fitted.transitions,
        "sampler_": schedule.sampler,
        "n_burnin_": schedule.n_burnin,
        "thin_": schedule.thin,
    }


class HCRPHMM(
    CallbackSupportMixin,
    DocLinkMixin,
    ExplainsNames,
    TransformerMixin,  # type: ignore[call-arg]  # (mypy does not see scikit-learn's types)
    DensityMixin,
    BaseEstimator,
    # transform makes its own frames, like the other methods.
    auto_wrap_output_keys=None,
):
    """Infinite hidden Markov model, whose number of states is inferred.

    The model is the HDP-HMM in its collapsed form.  A fit draws state sequences from the
    posterior by Markov chain Monte Carlo.

    The parameters form four blocks:

    * the model: `emission`, `transitions`, `new_states`;
    * the length of a fit: `n_chains`, `n_burnin`, `n_draws`, `thin`, `max_time`;
    * the result: `point_estimate`, `store_states`, `warm_start`, `random_state`;
    * the machinery: `sampler`, `init`, `n_particles`, `n_jobs`, `callback`, `checkpoint`,
      `checkpoint_interval`, `verbose`.

    Parameters
    ----------
    sampler : str or BaseSampler, default="auto"
        All samplers draw from the same posterior.  Short names: "auto", "stepwise",
        "slice", "blocked", "beam", and the baselines "direct_assignment", "stick_breaking"
        and "stick_breaking_beam".
    emission : str or BaseEmission, default="hcrp"
        Distribution of one time step in a state.  Short names: "hcrp" and "dirichlet"
        (symbols); "gaussian", "student" (heavy tails), "diagonal_gaussian" and
        "autoregressive" (numbers); "poisson" and "negative_binomial" (counts); "bernoulli"
        (zeros and ones); "gamma" (positive numbers); "von_mises" (angles); by inputs
        "regression" (numbers), "logistic" (zeros and ones), "log_linear" (counts) and
        "choice" (options).  Mixed data: :class:`~skihmm.emissions.ProductEmission`.
    transitions : str or BaseTransitions, default="auto"
        Prior of the transition probabilities.  Short names: "auto"; "hcrp", without a
        preference to stay; "sticky", with a probability to stay for every state;
        "persistent", for few, long regimes.
    init : {"auto", "particle_filter", "kmeans", "blocks", "random", "single"} or \
array-like of shape (n_samples,), default="auto"
        First path of a chain: a particle filter, clusters of rows (numbers only),
        contiguous pieces, 20 random states, one state, or labels.  "auto": the start with
        the highest rank after some sweeps.  See the page "Starts of chains".
    n_burnin : int or "auto", default="auto"
        Sweeps discarded at the start of every chain.
    n_draws : int, default=100
        Stored draws per chain.
    thin : int or "auto", default="auto"
        Sweeps per stored draw.
    n_chains : int, default=1
        Number of independent chains.  The fit keeps the draws of all chains.
    n_jobs : int or None, default=None
        Number of chains that run at the same time, by joblib.  Results do not depend on
        `n_jobs`.
    n_particles : int, default=100
        Particles of the filter at the start of a chain.
    store_states : bool, default=True
        Whether to keep the path of every draw, not only of the most probable draw.
    point_estimate : {"vi", "binder", "map"}, default="vi"
        How to select the draw of `labels_`, `n_states_`, `transmat_` and :meth:`predict`:
        by the smallest expected variation of information or Binder loss, or ("map") by the
        highest rank.  Without stored states "vi" is "map", and "binder" an error.
    warm_start : bool, default=False
        Whether a further ``fit`` on the same data adds `n_draws` draws per chain.
    new_states : bool, default=True
        Whether unlabelled steps may be in states without a label in `states` of
        :meth:`fit`.
    max_time : float or None, default=None
        CPU seconds after which a chain ends, even with fewer draws than `n_draws`.
    callback : callable or None, default=None
        Called after every sweep of every chain with a report.  Returning True ends the
        chain.
    checkpoint : path-like or None, default=None
        An ``.npz`` file (one chain) or a folder.  An interrupted fit continues from the
        checkpoint.  A checkpoint belongs to one fit, so searches and cross-validation
        cannot use checkpoints.  Copies of a fitted model have no checkpoint.
    checkpoint_interval : float, default=60.0
        Seconds between two writes of `checkpoint`.
    random_state : int, RandomState instance or None, default=None
        Seed of chains and scores.
    verbose : int, default=0
        1: show progress.  2: a line after every sweep, with the log joint probability and the
        acceptance rate.

    Attributes
    ----------
    sampler_ : BaseSampler
        The sampler used.
    emission_ : BaseEmission
        The fitted emission, for numbers with parameters of the states (``means_``).
    transitions_ : BaseTransitions
        The transitions used.
    n_burnin_ : ndarray of shape (n_chains,)
        Discarded sweeps of every chain.
    thin_ : int
        Sweeps per stored draw.
    draws_ : PosteriorDraws
        All posterior draws, chain and draw first.
    n_states_ : int
        Number of states of the selected draw.
    labels_ : ndarray of shape (n_samples,), int32
        States of the training steps in the selected draw, by decreasing occupancy;
        :meth:`renumber` and :meth:`partial_fit` give and keep other numbers.
    regimes_ : ndarray of shape (n_samples,), int32
        Regimes of the training steps (:meth:`find_regimes`), found at first use.
    known_states_ : ndarray of int64
        Labels of the known states (`states` of :meth:`fit`), increasing: state i has the
        label ``known_states_[i]``.
    startprob_ : ndarray of shape (n_states + 1,)
        Probabilities of the first state under the selected draw, the new state last.
    transmat_ : ndarray of shape (n_states + 1, n_states + 1)
        Transition probabilities under the selected draw: without a context (see
        :meth:`context_transmat`), and at the mean inputs of staying.
    dwell_times_ : ndarray of shape (n_states,)
        Expected number of steps in each state: ``1 / (1 - transmat_[k, k])``.  If staying
        depends on inputs, an average over the steps of the fit.
    stay_coefficients_ : ndarray of shape (n_states, n_inputs)
        With inputs of staying: change of the log odds of staying by each input.
    stay_intercepts_ : ndarray of shape (n_states,)
        Log odds of staying at inputs of zero.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, if all names are strings.

    See Also
    --------
    OnlineFilter : Follow rows that arrive one by one.
    skihmm.windows.WindowedHMM : Find states of shapes and cycles.
    skihmm.emissions.ProductEmission : Combine columns of several kinds.
    skihmm.inspection.StateSequenceDisplay : Draw the states along a sequence.

    Notes
    -----
    The meaning of "auto":

    ============================  =======================================================
    `sampler`, symbols            ``StepwiseGibbs(split_merge_rate=1, block_share=0.25)``
    `sampler`, numbers            ``BlockedGibbs(10, split_merge_rate=1,``
                                  ``run_split_merge_rate=2, drawn_share="auto")``
    `sampler`, autoregressive     ``BlockedGibbs(8, run_split_merge_rate=4)``
    `sampler`, others that stay   ``BlockedGibbs(10, run_split_merge_rate=4)``
    `transitions`                 "persistent" for autoregressive emissions, "sticky" for
                                  regressions on inputs alone, "hcrp" for others
    `n_burnin`                    500; on more than 10,000 steps 48 to 500
    `thin`                        5; on more than 10,000 steps 50,000 / n_samples
    ============================  =======================================================

    :meth:`predict`, :meth:`predict_proba`, :meth:`decode` and :meth:`sample` use the
    selected draw.  :meth:`score`, :meth:`predict_next` and :meth:`impute` average over all
    draws.

    "Long runs" of the guide explains callbacks, checkpoints and interrupts.

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
    <PosteriorDraws: 1 chain x 20 draws, 6 to 7 states, log rank -59.8>
    >>> hmm.labels_.shape
    (200,)
    >>> hmm.perplexity(X) < 5
    True
    """

    # With metadata routing sequence ids are passed with X through cross-validation,
    # pipelines and searches, without set_fit_request and the like.
    __metadata_request__fit: ClassVar[dict[str, object]] = {
        "groups": True,
        "states": True,
    }
    __metadata_request__partial_fit: ClassVar[dict[str, object]] = {
        "groups": True,
        "states": True,
    }
    __metadata_request__predict: ClassVar[dict[str, object]] = {"groups": True}
    __metadata_request__predict_proba: ClassVar[dict[str, object]] = {"groups": True}
    __metadata_request__transform: ClassVar[dict[str, object]] = {"groups": True}
    __metadata_request__score: ClassVar[dict[str, object]] = {"groups": True}

    _recipes = SHORT_NAMES

    # What a fit sets, by `_attributes`: the fitted model, chains for further fits, and regimes, ...
    _fitted: FittedModel
    _fit_state: FitState
    _regimes: FoundRegimes
    # ... and its parts by their public names.
    n_features_in_: int
    feature_names_in_: Array
    draws_: PosteriorDraws
    labels_: Labels
    known_states_: NDArray[np.int64]
    n_states_: int
    startprob_: Floats
    transmat_: Floats
    dwell_times_: Floats
    emission_: BaseEmission
    transitions_: BaseTransitions
    sampler_: BaseSampler
    n_burnin_: NDArray[np.int_]
    thin_: int

    def __init__(
        self,
        sampler: str | BaseSampler = "auto",
        emission: str | BaseEmission = "hcrp",
        transitions: str | BaseTransitions = "auto",
        *,
        init: str | ArrayLike = "auto",
        n_burnin: int | str = "auto",
        n_draws: int = 100,
        thin: int | str = "auto",
        n_chains: int = 1,
        n_jobs: int | None = None,
        n_particles: int = 100,
        store_states: bool = True,
        point_estimate: str = "vi",
        warm_start: bool = False,
        new_states: bool = True,
        max_time: float | None = None,
        callback: Callable[[SweepReport], object] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_interval: float = 60.0,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.sampler = sampler
        self.emission = emission
        self.transitions = transitions
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
        self.new_states = new_states
        self.max_time = max_time
        self.callback = callback
        self.checkpoint = checkpoint
        self.checkpoint_interval = checkpoint_interval
        self.random_state = random_state
        self.verbose = verbose

    # ---- scikit-learn's plumbing

    def _html_repr(self) -> str:
        """HTML of scikit-learn, which calls the columns of :meth:`transform` features."""
        shown = super()._html_repr()
        if not self.__sklearn_is_fitted__():
            return shown
        fitted, n = self._fitted, len(self.get_feature_names_out())
        rows, states, columns = (
            f"{size} {word}{'s' * (size != 1)}"
            for size, word in (
                (len(fitted.labels), "row"),
                (fitted.n_states, "state"),
                (fitted.columns.number, "column"),
            )
        )
        sizes = f"<div>{rows} of {states} and {columns}</div>"
        return shown.replace(f"<div>{n} features</div>", sizes)

    def __sklearn_is_fitted__(self) -> bool:
        """Whether there are draws; an attribute that was set by hand makes none."""
        return "_fitted" in vars(self)

    def __sklearn_tags__(self) -> Tags:
        """Tags: input of the emission, missing values allowed."""
        tags = super().__sklearn_tags__()
        emission = self.emission
        if isinstance(emission, str) and emission in EMISSIONS:
            emission = EMISSIONS[emission]()
        # There is no tag for whole numbers; with this one the data of scikit-learn's
        # checks are such.
        tags.input_tags.categorical = getattr(emission, "takes_integers", True)
        tags.input_tags.positive_only = getattr(emission, "is_positive_only", False)
        tags.input_tags.allow_nan = True
        return tags

    def set_params(self, **params: object) -> HCRPHMM:
        """Set parameters, including nested ones.

        ``sampler__x=...``, ``emission__x=...`` and ``transitions__x=...`` also work on
        short names, because the call replaces short names by objects.  ``sampler="auto"``
        becomes the sampler for the emission and the transitions of the same call.

        Parameters
        ----------
        **params : dict

        Returns
        -------
        self : HCRPHMM
        """
        for key in params:
            explain_parameter(self, key.partition("__")[0], self._recipes)
        # In this order, because what "auto" is depends on those before.
        names = ("emission", "transitions", "sampler")
        own = {
            name: {key: params.pop(key) for key in list(params) if key.startswith(name)}
            for name in names
        }
        super().set_params(**params)
        for name in names:
            nested, current = own[name], {name: getattr(self, name)}
            nested.update(nested_short_names(nested, current, self._known(name)))
            recipe, known = nested.get(name, current[name]), {name: SHORT_NAMES[name]}
            for key in nested:
                own_name = key.partition("__")[2].partition("__")[0]
                explain_parameter(recipe, own_name, known)
            super().set_params(**nested)
        return self

    def _known(self, name: str) -> Mapping[str, Callable[[], object]]:
        """Objects by short name, of which "auto" depends on the parameters before."""
        try:
            emission = resolve("emission", self.emission, EMISSIONS, BaseEmission)
            transitions = transitions_for(emission)
            if name == "sampler":
                prior = resolve("transitions", self.transitions, transitions, BaseTransitions)
                return {**SAMPLERS, "auto": partial(sampler_of, emission, prior)}
            return transitions if name == "transitions" else EMISSIONS
        except (TypeError, ValueError):
            # Which fit reports.
            return SHORT_NAMES[name]

    def set_output(self, *, transform: str | None = None) -> HCRPHMM:
        """Set the output of `predict_proba`, `transform`, `impute` and `sample`.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"} or None, default=None
            "default": arrays.  "pandas" and "polars": data frames.  None: unchanged.
            Without a call, scikit-learn's ``set_config(transform_output=...)`` applies.
            Without either, the output has the library of the input (:meth:`sample`: of
            the data of :meth:`fit`).

        Returns
        -------
        self : HCRPHMM
        """
        if transform is not None:
            choices = ("default", *LIBRARIES)
            config = {"transform": check_choice("transform", transform, choices)}
            self._sklearn_output_config = config
        return self

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            """Say what the counterpart of an attribute of other packages is."""
            explain_attribute(self, name, "_fitted" in self.__dict__)

    def __getstate__(self) -> dict[str, object]:
        """State for pickling, with the version that made it."""
        state = with_version(super().__getstate__())
        if "_fitted" in state:
            # They belong to the run of the fit.  An unfitted estimator keeps them, as it
            # may be pickled for a worker process.
            state["callback"] = state["checkpoint"] = None
        return state

    def __setstate__(self, state: dict[str, object]) -> None:
        """Restore from a pickle; refuse another layout, warn if another version made it."""
        super().__setstate__(without_version(state, "HCRPHMM"))

    # ---- fitting

    @with_callbacks
    def fit(
        self,
        X: MatrixLike,
        y: None = None,
        *,
        groups: VectorLike | None = None,
        lengths: VectorLike | None = None,
        states: VectorLike | None = None,
    ) -> HCRPHMM:
        """Draw from the posterior given one or several sequences.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            One row per time step.  Symbols are non-negative integers or strings.  NaN,
            None and masked entries are missing and have likelihood one.  Given the state
            columns are independent, but for emissions with a full covariance.
        y : None
            Ignored.
        groups : array-like of shape (n_samples,), optional
            Sequence id of every row, no column of X.  A change of the id begins a new
            sequence.  Cross-validation passes ids with metadata routing only
            (``sklearn.set_config(enable_metadata_routing=True)``).
        lengths : array-like of shape (n_sequences,), optional
            Rows per sequence, instead of `groups`.
        states : array-like of shape (n_samples,), optional
            Known states: an integer >= 0 for steps with a known state, -1 for all other
            steps.  Steps of one label share a state, steps of different labels do not.
            Unlabelled steps may join the known states, and new states unless
            ``new_states=False``.  All samplers draw from the exact conditional posterior.
            All draws number the known states first, by increasing label
            (``known_states_``).

        Returns
        -------
        self : HCRPHMM

        Raises
        ------
        ValueError, TypeError
            If data or parameters have wrong types or values, or if a checkpoint belongs to
            another fit or cannot be written.  The earlier fit stays.

        Warns
        -----
        UserWarning
            If times, or numbers, in the index of a data frame repeat, are out of order, or
            have holes inside a sequence.  If the index has series that `groups` does not
            name.  If X or a column
            has no observation, or more than half of the observed rows count as missing.
            If more than a quarter of the unlabelled rows are in states without a label.
            If `y` looks like known states, or a column like an identifier.  If the fit
            was interrupted.  If a checkpoint can no longer be written.

        Examples
        --------
        >>> import numpy as np
        >>> from skihmm import HCRPHMM
        >>> X = np.repeat([[0.0], [9.0], [0.0], [9.0]], 25, axis=0)
        >>> X += np.random.default_rng(0).normal(size=X.shape)
        >>> hmm = HCRPHMM(emission="gaussian", n_burnin=50, n_draws=20, random_state=0)
        >>> hmm.fit(X).n_states_
        2
        """
        check_ignored(y, X)
        if states is None:
            warn_of_labels(y)
        parameters = Parameters.check(self.get_params(deep=False))
        columns, rows = Columns.of_fit(type(self).__name__, X)
        starts = starts_of_rows(X, len(rows), groups, lengths)
        known = check_states(states, len(rows))
        fit = self._new_fit(parameters, columns)
        before = (self._fitted, self._fit_state) if "_fitted" in vars(self) else None
        fitted = fit.start(Rows.of_call(X, rows, starts, groups, lengths, known), before)
        return self._take(fit, *fitted)

    def _new_fit(self, parameters: Parameters, columns: Columns) -> Fit:
        with_tasks = getattr(self, "_skl_callbacks", None)
        make_tasks = partial(FitTasks, self, _attributes) if with_tasks else None
        return Fit(parameters, columns, make_tasks)

    def _take(self, fit: Fit, fitted: FittedModel, state: FitState) -> HCRPHMM:
        if fitted.columns.names is None:
            self.__dict__.pop("feature_names_in_", None)
        # In one step, which no Ctrl-C divides.
        self.__dict__.update(_attributes(fitted, state))
        fit.warn_of_stops(fitted.draws.n_draws)
        sequences = fitted.sequences
        warn_of_new_states(fitted.labels, sequences)
        if sequences.known_states is None:
            codes, starts = sequences.codes, sequences.starts
            for text in doubtful_subjects(fitted.emission, fitted.labels, codes, starts):
                warn_caller(text)
        if text := note_of_separation(fitted):
            warn_caller(text)
        return self

    @with_callbacks
    def _partial_fit(
        self,
        X: MatrixLike,
        groups: VectorLike | None,
        lengths: VectorLike | None,
        states: VectorLike | None,
    ) -> HCRPHMM:
        parameters = Parameters.check(self.get_params(deep=False))
        if self.checkpoint is not None:
            raise ValueError(
                f"checkpoint={str(self.checkpoint)!r} holds chains on the earlier data, "
                "which partial_fit cannot go on from. Set checkpoint=None, or fit all "
                "data again."
            )
        parameters.check_continued(self._fit_state, "partial_fit")
        fitted = self._fitted
        rows, starts = fitted.columns.read_sequences(X, groups, lengths)
        known = check_states(states, len(rows))
        added = Rows.of_call(X, rows, starts, groups, lengths, known)
        fit = self._new_fit(parameters, fitted.columns)
        return self._take(fit, *fit.extend(added, (fitted, self._fit_state)))

    def partial_fit(
        self,
        X: MatrixLike,
        y: None = None,
        *,
        groups: VectorLike | None = None,
        lengths: VectorLike | None = None,
        states: VectorLike | None = None,
    ) -> HCRPHMM:
        """Add rows to the data of a fitted model and continue sampling.

        The posterior equals the posterior of one fit of all rows so far, with the same ids.
        Without `groups` the rows go on after the last row of a fit without `groups`.  With
        `groups` an id of an earlier call continues its sequence, and another id begins a
        sequence.

        The chain of the selected draw continues from the selected draw, and each further
        chain from its last path.  New steps begin in the most probable states.  After
        `n_burnin` sweeps the next `n_draws` draws replace the earlier draws.  If the new
        data are like the old data, a shorter burn-in is enough, so call
        ``set_params(n_burnin=...)`` between the calls.

        States keep the numbers of ``labels_`` (see :meth:`renumber`).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Further rows of earlier sequences, and new sequences.
        y : None
            Ignored.
        groups : array-like of shape (n_samples,), optional
            Sequence id of every row, as in :meth:`fit`.
        lengths : array-like of shape (n_sequences,), optional
            Rows per sequence.  Sequences with lengths have no ids, so every call adds new
            sequences, and no later call continues them.
        states : array-like of shape (n_samples,), optional
            Known states of the new steps, as in :meth:`fit`, with the same labels in all
            calls.

        Returns
        -------
        self : HCRPHMM
            `labels_` and all draws have the steps of all rows.  Sequences follow in the
            order of the first rows, and rows of a sequence in the order of the calls.

        Raises
        ------
        ValueError
            If X has neither `groups` nor `lengths`, but earlier rows had.  If data or
            parameters have wrong types or values.  The earlier fit stays.
        TypeError
            If ids are strings in one call and numbers in another.

        Warns
        -----
        UserWarning
            As :meth:`fit` of the index and missing rows; if the index of a data frame does not
            follow the earlier rows of a sequence; if hardly any row of new sequences follows
            another.

        Notes
        -----
        Scales, priors and categories are learnt from all rows again, which the model keeps.
        A call therefore costs time in proportion to all rows.

        Examples
        --------
        >>> import numpy as np
        >>> from skihmm import HCRPHMM
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(np.repeat([[0.0], [9.0], [0.0], [20.0]], 50, axis=0))
        >>> hmm = HCRPHMM(emission="gaussian", n_burnin=50, n_draws=10, random_state=0)
        >>> hmm.fit(X[:120]).labels_[[0, 50, 100]]
        array([0, 1, 0], dtype=int32)
        >>> hmm.set_params(n_burnin=20).partial_fit(X[120:]).labels_[[0, 50, 100, 150]]
        array([0, 1, 0, 2], dtype=int32)
        """
        check_ignored(y, X)
        if "_fitted" not in vars(self):
            return self.fit(X, groups=groups, lengths=lengths, states=states)
        return self._partial_fit(X, groups, lengths, states)

    def renumber(
        self, by: VectorLike | str | None = None, *, like: VectorLike | None = None
    ) -> HCRPHMM:
        """Give the states other numbers; nothing else changes.

        ``labels_``, ``transmat_``, ``emission_``, the selected draw in ``draws_`` and all
        methods use the new numbers.  Known states stay first.

        Parameters
        ----------
        by : array-like of shape (n_states,) or "size", optional
            A number for every state, in the present order: the state with the smallest
            number becomes state 0.  "size": by decreasing number of steps, like
            :meth:`fit`.
        like : array-like of shape (n_steps,), int, optional
            Earlier labels of the training steps, or of the first training steps, with -1
            for steps without a label.  The new numbers agree with `like` on the largest
            possible number of steps.  New states get the next free numbers, and numbers
            have no holes.

        Returns
        -------
        self : HCRPHMM

        Raises
        ------
        ValueError
            If a call has `by` and `like`, or neither.  If the length of `by` is not the
            number of states.  If `like` has fractions, or more labels than training steps.

        See Also
        --------
        skihmm.posterior.Regimes.renumber : Other numbers for regimes.

        Notes
        -----
        :meth:`partial_fit`, and :meth:`fit` with ``warm_start=True``, keep the numbers.
        After ``renumber("size")``, `fit` orders states by size again.  Regimes are found
        again, with numbers by size.

        Examples
        --------
        >>> import numpy as np
        >>> from skihmm import HCRPHMM
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(np.repeat([[9.0], [0.0], [9.0]], [50, 60, 50], axis=0))
        >>> hmm = HCRPHMM(emission="gaussian", n_burnin=50, n_draws=10, random_state=0).fit(X)
        >>> hmm.renumber(by=hmm.emission_.means_[:, 0]).labels_[[0, 50]]
        array([1, 0], dtype=int32)
        >>> bool((np.diff(hmm.emission_.means_[:, 0]) > 0).all())
        True
        """
        check_is_fitted(self)
        fitted, known = self._fitted, self.known_states_
        order = order_for(fitted.labels, fitted.n_states, len(known), by, like)
        fitted = renumbered(fitted, order)
        kept = None if isinstance(by, str) else fitted.labels
        # In one step, which no Ctrl-C divides.
        self.__dict__.update(_attributes(fitted, replace(self._fit_state, numbered=kept)))
        return self

    def fit_predict(
        self,
        X: MatrixLike,
        y: None = None,
        *,
        groups: VectorLike | None = None,
        lengths: VectorLike | None = None,
        states: VectorLike | None = None,
    ) -> Labels:
        """Fit, then predict the same data: ``fit(X).predict(X)``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : None
            Ignored.
        groups, lengths, states : array-like, optional
            See :meth:`fit`.

        Returns
        -------
        states : ndarray of shape (n_samples,), int32
            Most probable path under the selected draw.  ``labels_`` is the path of the
            draw.
        """
        self.fit(X, y, groups=groups, lengths=lengths, states=states)
        return self.predict(X, groups=groups, lengths=lengths)

    # ---- prediction

    def predict(
        self,
        X: MatrixLike,
        *,
        method: str = "viterbi",
        min_dwell: int = 1,
        groups: VectorLike | None = None,
        lengths: VectorLike | None = None,
    ) -> Labels:
        """Most probable states under the selected draw.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        method : {"viterbi", "smooth", "filter"}, default="viterbi"
            "viterbi": the most probable path.  "smooth" and "filter": the most probable
            state of every step given all of X, or given X up to this step.  Offsets of
            new subjects are estimated from all of X.
        min_dwell : int, default=1
            As in :meth:`decode`; with "viterbi" only.
        groups, lengths : array-like, optional
            See :meth:`fit`.

        Returns
        -------
        states : ndarray of shape (n_samples,), int32
            ``0 .. n_states_ - 1``.  ``n_states_`` is the new state.

        Examples
        --------
        >>> import numpy as np
        >>> from skihmm import HCRPHMM
        >>> X = np.repeat([[0.0], [9.0], [0.0], [9.0]], 25, axis=0)
        >>> X += np.random.default_rng(0).normal(size=X.shape)
        >>> hmm = HCRPHMM(emission="gaussian", n_burnin=50, n_draws=20, random_state=0)
        >>> hmm.fit(X).predict([[0.2], [8.5], [9.1]])
        array([0, 1, 1], dtype=int32)
        """
        if check_choice("method", method, ("viterbi", "smooth", "filter")) == "viterbi":
            return self.decode(X, min_dwell=min_dwell, groups=groups, lengths=lengths)[1]
        if min_dwell != 1:
            raise ValueError(
                f'min_dwell={min_dwell!r} with method="{method}", which has no path: each step '
                'has its own most probable state. Use method="viterbi".'
            )
        fitted = fitted_of(self)
        probs = fitted.state_probs(fitted.encode(X, groups, lengths), method)
        return probs.argmax(axis=1).astype(np.int32)

    def decode(
        self,
        X: MatrixLike,
        *,
        min_dwell: int = 1,
        groups: VectorLike | None = None,
        lengths: VectorLike | None = None,
    ) -> tuple[float, Labels]:
        """Most probable state path, with the log probability.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        min_dwell : int, default=1
            Least number of steps of a stay: the path is the most probable path among all
            paths with stays of `min_dwell` steps or more.  The first and the last stay of a
            sequence may be shorter.  The fitted model stays the same.
        groups, lengths : array-like, optional
            See :meth:`fit`.

        Returns
        -------
        log_prob : float
            Log joint probability of path and data under the selected draw, nats.
        states : ndarray of shape (n_samples,), int32
            As :meth:`predict`.

        Examples
        --------
        >>> import numpy as np
        >>> from skihmm import HCRPHMM
        >>> X = np.repeat([[0.0], [9.0], [0.0], [9.0]], 25, axis=0)
        >>> X += np.random.default_rng(0).normal(size=X.shape)
        >>> hmm = HCRPHMM(emission="gaussian", n_burnin=50, n_draws=20, random_state=0)
        >>> log_prob, states = hmm.fit(X).decode(X)
        >>> states[[0, 24, 25, 99]]
        array([0, 0, 1, 1], dtype=int32)
        """
        fitted = fitted_of(self)
        check_integer("min_dwell", min_dwell, 1)
        log_prob, path = fitted.model(fitted.encode(X, groups, lengths)).viterbi(min_dwell)
        return float(log_prob), path

    def predict_proba(
        self,
        X: MatrixLike,
        *,
        method: str = "smooth",
        draws: str = "selected",
        groups: VectorLike | None = None,
        lengths: VectorLike | None = None,
    ) -> Any:
        """Probabilities of the states of every step.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        method : {"smooth", "filter"}, default="smooth"
            Given all of X, or given X up to this step.
        draws : {"selected", "all"}, default="selected"
            Under the selected draw, or averaged over all draws, with the weights of their
            chains.  The states of every draw are matched to the states of the selected
            draw by :func:`skihmm.posterior.match_states`; states without a match are in
            the last column.
        groups, lengths : array-like, optional
            See :meth:`fit`.

        Returns
        -------
        probs : ndarray or data frame of shape (n_samples, n_states + 1)
            Rows sum to one, the last column is the new state.  A data frame, with the
            columns ``state0``, ``state1``, ... and ``new_state``, if X is one or by
            :meth:`set_output`.

        Raises
        ------
        ValueError
            With ``draws="all"``, if the draws have no paths (``store_states=False``).

        Examples
        --------
        >>> import numpy as np
        >>> from skihmm import HCRPHMM
        >>> X = np.repeat([[0.0], [9.0], [0.0], [9.0]], 25, axis=0)
        >>> X += np.random.default_rng(0).normal(size=X.shape)
        >>> hmm = HCRPHMM(emission="gaussian", n_burnin=50, n_draws=20, random_state=0)
        >>> hmm.fit(X).predict_proba(X)[[0, 99]].round(2)
        array([[1., 0., 0.],
               [0., 1., 0.]])
        """
        of_all = check_choice("draws", draws, ("selected", "all")) == "all"
        fitted = fitted_of(self)
        probs = fitted.state_probs(fitted.encode(X, groups, lengths), method, of_all_draws=of_all)
        library = output_library(self, library_of(X))
        if library is None:
            return probs
        return make_frame(library, probs, self._state_names(), X)

    def _state_names(self) -> list[str]:
        return [*(f"state{k}" for k in range(self.n_states_)), "new_state"]

    def segments(
        self,
        X: MatrixLike | None = None,
        *,
        min_dwell: int = 1,
        groups: VectorLike | None = None,
        lengths: VectorLike | None = None,
        states: VectorLike | None = None,
        names: Mapping[int, str] | None = None,
    ) -> Any:
        """Segments of the most probable path: one row for every stay in a state.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), optional
            None: the training steps, in the states of ``labels_`` if `min_dwell` is 1.
        min_dwell : int, default=1
            Least number of steps of a segment, as in :meth:`decode`: the first and the last
            segment of a sequence may be shorter.
        groups, lengths : array-like, optional
            Sequences of X (see :meth:`fit`).  The end of a sequence ends a segment.
            Missing rows at the beginning and end of a sequence belong to no segment.
        states : array-like of shape (n_samples,), optional
            Labels of the steps instead of :meth:`predict`: integers or strings, for example
            ``regimes_``.
        names : mapping of {int: str}, default=None
            Names of states, or of integers in `states`, such as ``{2: "REM"}``.  The
            column ``state`` then holds names, and the numbers of other states as text.

        Returns
        -------
        segments : numpy.recarray or data frame
            ``sequence``, the id in `groups`, or a number.  ``start`` and ``stop``, rows of
            all data from 0, or index values of a pandas frame: the segment ends before
            ``stop``.  ``n_steps`` and ``state``.  ``probability`` of the state in a step
            given all data, an average over the steps and at most 25 draws, with the weights
            of the chains.  The output is a data frame if X (without X: the data of the fit)
            is a data frame, or by :meth:`set_output`.

        See Also
        --------
        summary : One row for every state.

        Notes
        -----
        After the last row of a sequence, an index continues by its frequency or by the last
        step.  Without frequency and step, and at the largest possible time, ``stop`` is
        missing.

        States of draws are matched as by ``predict_proba(draws="all")``.  Without paths
        (``store_states=False``) the selected draw alone gives the probabilities.  With
        `states`, every state of a draw gets the label with the most common steps.

        Examples
        --------
        >>> import numpy as np
        >>> from skihmm import HCRPHMM
        >>> X = np.repeat([[0.0], [9.0], [0.0]], [30, 20, 10], axis=0)
        >>> X += np.random.default_rng(0).normal(size=X.shape)
        >>> hmm = HCRPHMM(emission="gaussian", n_burnin=50, n_draws=10, random_state=0)
        >>> segments = hmm.fit(X).segments()
        >>> segments.state, segments.start, segments.stop
        (array([0, 1, 0], dtype=int32), array([ 0, 30, 50]), array([30, 50, 60]))
        >>> bool((segments.probability > 0.9).all())
        True
        >>> hmm.segments(names={1: "loaded"}).state
        array(['0', 'loaded', '0'], dtype='<U6')
        """
        fitted = fitted_of(self)
        came_in = fitted.columns.library if X is None else library_of(X)
        library = output_library(self, came_in)
        return table_of_segments(fitted, X, min_dwell, groups, lengths, states, names, library)

    # ---- regimes

    def find_regimes(self, n_regimes: int | None = None) -> Regimes:
        """Find regimes: sets of states with random alternations.

        If the noise of the model has another shape than the noise of the data, several
        states cover one regime.  Regimes are found by the evidence of the data of the fit,
        labels summed out, under the emissions of the selected draw.

        Parameters
        ----------
        n_regimes : int, default=None
            Number of regimes.  By default the evidence decides, and without clear evidence
            regimes are the states.

        Returns
        -------
        regimes : Regimes
            Kept until the next fit.

        Raises
        ------
        ValueError
            If transitions depend on contexts.  If `n_regimes` is above the number of states,
            or below the number of known states.

        Notes
        -----
        Known states may share a regime with unknown states, but two known states may not
        share a regime.

        Under noise that is correlated in time, states do not alternate at random, so the
        evidence does not join the states.  Use `n_regimes`, or an emission with memory.

        Examples
        --------
        >>> import numpy as np
        >>> from skihmm import HCRPHMM
        >>> X = np.repeat([[0.0], [9.0], [0.0], [9.0]], 25, axis=0)
        >>> X += np.random.default_rng(0).normal(size=X.shape)
        >>> hmm = HCRPHMM(emission="gaussian", n_burnin=50, n_draws=20, random_state=0)
        >>> hmm.fit(X).find_regimes().n_regimes_
        2
        """
        check_is_fitted(self)
        return self._regimes(n_regimes, getattr(self, "_sklearn_output_config", {}))

    @property
    def regimes_(self) -> Labels:
        """Regimes of the training steps, ``find_regimes().labels_``, int32."""
        try:
            return self.find_regimes().labels_
        except ValueError as error:
            # So that an estimator has the attribute or has it not.
            raise AttributeError(str(error)) from error

    def __dir__(self) -> list[str]:
        """Names; `regimes_` once they are found: displays read all that are listed."""
        # That of scikit-learn reads them, too.
        found = self.__dict__.get("_regimes")
        hidden = set() if found is not None and found.are_known else {"regimes_"}
        return [name for name in object.__dir__(self) if name not in hidden]

    # ---- as a step of a pipeline

    def transform(
        self,
        X: MatrixLike,
        *,
        groups: VectorLike | None = None,
        lengths: VectorLike | None = None,
    ) -> Any:
        """Features for a further step of a pipeline: probabilities of the states.

        Equal to :meth:`predict_proba` with ``method="smooth"``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        groups, lengths : array-like, optional
            See :meth:`fit`.

        Returns
        -------
        probs : ndarray or data frame of shape (n_samples, n_states + 1)
            Probabilities of the states of the selected draw, of every step given all of X,
            with the same columns for any X.  The last column, the new state, is large for
            steps unlike the training data.  Rows sum to 1, so leave out a column for a
            linear model without a penalty.

        Notes
        -----
        A fit on another fold has other states, and may have another number of states.
        Fit the further steps of a pipeline again too.

        With metadata routing a pipeline passes `groups` here and to :meth:`fit`.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.linear_model import LogisticRegression
        >>> from sklearn.pipeline import make_pipeline
        >>> from skihmm import HCRPHMM
        >>> rng = np.random.default_rng(0)
        >>> awake = np.repeat([0, 1, 0, 1], 50)
        >>> X = rng.normal(2 * awake[:, None], size=(200, 1))
        >>> hmm = HCRPHMM(emission="gaussian", n_burnin=50, n_draws=10, random_state=0)
        >>> model = make_pipeline(hmm, LogisticRegression()).fit(X, awake)
        >>> model.score(X, awake) > 0.9
        True
        """
        return self.predict_proba(X, groups=groups, lengths=lengths)

    def fit_transform(
        self,
        X: MatrixLike,
        y: object = None,
        *,
        groups: VectorLike | None = None,
        lengths: VectorLike | None = None,
        states: VectorLike | None = None,
    ) -> Any:
        """Fit, then transform the same data: ``fit(X).transform(X)``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : object
            Ignored.
        groups, lengths, states : array-like, optional
            See :meth:`fit`.

        Returns
        -------
        probs : ndarray or data frame of shape (n_samples, n_states + 1)
            As :meth:`transform`.
        """
        # A pipeline passes the y of its further steps.
        check_ignored(y, X)
        self.fit(X, groups=groups, lengths=lengths, states=states)
        return self.transform(X, groups=groups, lengths=lengths)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> Array:
        """Names of the columns of :meth:`transform` and :meth:`predict_proba`.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of the columns of X, for a check alone.

        Returns
        -------
        names : ndarray of shape (n_states + 1,), object
            ``"state0"``, ``"state1"``, ... and ``"new_state"``.

        Raises
        ------
        ValueError
            If `input_features` are not the names of the columns of the fit.
        """
        check_is_fitted(self)
        if input_features is not None:
            given = np.asarray(input_features, dtype=object)
            known = getattr(self, "feature_names_in_", None)
            if given.shape != (self.n_features_in_,) or (
                known is not None and not np.array_equal(given, known)
            ):
                raise ValueError(
                    f"input_features={given.tolist()}; expected the names of the "
                    f"{self.n_features_in_} columns of the fit"
                    + ("." if known is None else f": {known.tolist()}.")
                )
        return np.array(self._state_names(), dtype=object)

    def predict_next(
        self,
        X: MatrixLike,
        n_steps: int = 1,
        *,
        contexts: MatrixLike | None = None,
        inputs: MatrixLike | None = None,
        groups: VectorLike | None = None,
        lengths: VectorLike | None = None,
    ) -> PosteriorPredictive:
        """Predict the observations after the end of X.

        The prediction is an average over all posterior draws, with the weights of their
        chains (``draws_.chain_weights``), and does not depend on labels.  The seating of
        every draw is fixed, so X only determines the distribution of the last state.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data.  The last sequence is continued, by the same subject
            (``subject_feature`` of the emission).
        n_steps : int, default=1
            Number of steps to predict.
        contexts : array-like of shape (n_steps,) or (n_steps, n_columns), optional
            Contexts of the coming steps, if transitions or emission have
            ``context_features``: the columns of the transitions, then further columns of
            the emission.  A frame needs the names of these columns.  By default, and for
            missing entries, steps have no context.  Pass columns with two roles in `inputs`
            only.
        inputs : array-like of shape (n_steps,) or (n_steps, n_columns), optional
            Inputs of the coming steps: the ``input_features`` of the emission in order,
            trials or exposure (`n_trials`, `exposure`), and further ``input_features`` of
            the transitions.  No entry may be missing.  A frame needs the names of the
            columns.
        groups, lengths : array-like, optional
            See :meth:`fit`.

        Returns
        -------
        following : PosteriorPredictive
            Has the methods ``proba`` (of symbols), ``mean`` (of numbers), ``log_prob``,
            ``sample`` and ``time_to`` (a state).  Features are the observed columns,
            without contexts and inputs.

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
        return predict_next(
            fitted_of(self),
            X,
            n_steps,
            random_state=self.random_state,
            contexts=contexts,
            inputs=inputs,
            groups=groups,
            lengths=lengths,
        )

    def impute(
        self,
        X: MatrixLike,
        *,
        method: str = "expectation",
        random_state: RandomState = None,
        groups: VectorLike | None = None,
        lengths: VectorLike | None = None,
    ) -> Any:
        """Fill in missing entries of X from the posterior predictive given all of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            NaN, None and masked entries are missing.
        method : {"expectation", "sample"}, default="expectation"
            "expectation": averages over all posterior draws.  Numbers get the predictive
            mean (counts and binary columns the nearest integer, angles the mean direction),
            and symbols the most probable category.  "sample": one posterior draw is chosen
            at random, a path of states is drawn given X, and missing entries are drawn
            given the path (autoregressions: jointly, given the rows around a gap).  Calls
            with different `random_state` are multiple imputations.
        random_state : int, RandomState instance or None, default=None
            Seed of "sample", and of the samples behind some expectations (see Notes).  By
            default the `random_state` of the estimator.
        groups, lengths : array-like, optional
            See :meth:`fit`.

        Returns
        -------
        X_filled : ndarray or data frame of shape (n_samples, n_features)
            A copy of X with the missing entries filled.  Observed entries are unchanged,
            also symbols outside of the categories.  The output is a data frame if X is a
            data frame, or by :meth:`set_output`, and columns keep the types of X if the
            values fit.  An array holds integers if all entries and the emission are
            integers, and objects if entries are strings.

        Notes
        -----
        Given the state, an imputed entry does not depend on the rest of the row.  Two
        emissions are exceptions: :class:`~skihmm.emissions.AutoregressiveNormal`, and
        :class:`~skihmm.emissions.NormalInverseWishart` for partly missing rows.  The
        missing entries are then jointly Gaussian given states, parameters and all observed
        entries, of the same row and of the rows before and after a gap.  Rounds draw states
        given the observed part of every row, then parameters, then entries.  Expectations
        average the conditional means of 100 rounds or more over all draws.

        If another emission looks back on missing entries, expectations are averages over
        1000 samples.

        Examples
        --------
        >>> from skihmm import HCRPHMM
        >>> X = [[2], [5], [7]] * 40
        >>> hmm = HCRPHMM(n_burnin=100, n_draws=20, random_state=0).fit(X)
        >>> hmm.impute([[2], [None], [7], [None], [5]]).ravel()
        array([2, 5, 7, 2, 5])
        """
        check_choice("method", method, ("expectation", "sample"))
        fitted = fitted_of(self)
        seed = self.random_state if random_state is None else random_state
        filled, missing = impute(fitted, X, method, seed, groups, lengths)
        library = output_library(self, library_of(X))
        if library is None:
            return filled
        if library == library_of(X):
            return fill_frame(X, missing, filled)
        return make_frame(library, filled, fitted.columns.labels, X)

    # ---- contexts

    def _stay_regression(self) -> tuple[Floats, Floats]:
        fitted = fitted_of(self)
        if not has_inputs(fitted.selected):
            raise AttributeError  # with the message of __getattr__
        return in_user_units(fitted.transitions, *coefficients_of(fitted.selected))

    @property
    def stay_coefficients_(self) -> Floats:
        """Coefficients of staying (see the class)."""
        return self._stay_regression()[0]

    @property
    def stay_intercepts_(self) -> Floats:
        """Intercepts of staying (see the class)."""
        return self._stay_regression()[1]

    def stay_probabilities(self, inputs: MatrixLike) -> Floats:
        """Probability of every state to stay for the next step.

        Under the selected draw, for steps with given inputs.  A state stays by the
        regression, or is left and drawn again.  Coefficients and intercepts leave out the
        second case.

        Parameters
        ----------
        inputs : array-like of shape (n_rows, n_inputs)
            ``input_features`` of the transitions, in order, with the units of X.

        Returns
        -------
        probabilities : ndarray of shape (n_rows, n_states)

        Raises
        ------
        ValueError
            If staying does not depend on inputs, or if an input is missing.

        Examples
        --------
        >>> import numpy as np
        >>> from skihmm import HCRPHMM
        >>> from skihmm.transitions import HCRPTransitions
        >>> rng = np.random.default_rng(0)
        >>> push = rng.normal(size=400)  # the larger, the sooner states end
        >>> ends = rng.random(400) < 1 / (1 + np.exp(3 - 2 * push))
        >>> X = np.column_stack([9.0 * (ends.cumsum() % 2) + rng.normal(size=400), push])
        >>> transitions = HCRPTransitions(input_features=[1])
        >>> hmm = HCRPHMM(
        ...     emission="gaussian",
        ...     transitions=transitions,
        ...     n_burnin=50,
        ...     n_draws=10,
        ...     random_state=0,
        ... )
        >>> probs = hmm.fit(X).stay_probabilities([[-1.0], [1.0]])
        >>> bool((probs[0] > probs[1]).all())
        True
        """
        fitted = fitted_of(self)
        return stay_probabilities(fitted.selected, fitted.encoder.inputs_of_staying(inputs))

    def context_transmat(self, context: object) -> Floats:
        """Transition probabilities of a context, posterior means of the selected draw.

        Parameters
        ----------
        context : number, str or tuple
            A value of the first column of ``context_features``, or a tuple of values of the
            first columns.  An unknown value counts as left out.

        Returns
        -------
        transmat : ndarray of shape (n_states + 1, n_states + 1)
            With the states of ``transmat_``.

        Raises
        ------
        ValueError
            If transitions do not depend on contexts, or on fewer columns.

        Examples
        --------
        >>> import numpy as np
        >>> from skihmm import HCRPHMM
        >>> from skihmm.transitions import HCRPTransitions
        >>> action = np.random.default_rng(0).integers(2, size=200)
        >>> X = np.column_stack([np.cumsum(action) % 3, action])  # action 1 leads on
        >>> transitions = HCRPTransitions(context_features=[1])
        >>> hmm = HCRPHMM(
        ...     emission="dirichlet",
        ...     transitions=transitions,
        ...     n_burnin=50,
        ...     n_draws=10,
        ...     random_state=0,
        ... )
        >>> transmat = hmm.fit(X).context_transmat(0)
        >>> bool((transmat.diagonal()[:3] > 0.9).all())
        True
        """
        return context_transmat(fitted_of(self), context)

    # ---- scores

    def score_samples(
        self,
        X: MatrixLike,
        *,
        groups: VectorLike | None = None,
        lengths: VectorLike | None = None,
    ) -> Floats:
        """Log predictive probability of every step given the steps before it.

        Probabilities are averaged over posterior draws before taking the logarithm.  For
        symbols, a particle filter adapts to each sequence separately, with 2000 particles
        in all on at most 50 draws.  For numbers, the parameters of every draw are fixed.
        :class:`~skihmm.metrics.ParticleFilterScorer` has the choice.  2000 particles also
        integrate out the offsets of new subjects (``subject_feature`` of the emission),
        under one draw of the parameters of the states for every draw.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        groups, lengths : array-like, optional
            See :meth:`fit`.

        Returns
        -------
        log_probs : ndarray of shape (n_samples,)
            Nats.  0 for missing rows.
        """
        return self._score(X, groups, lengths)[0]

    def score(
        self,
        X: MatrixLike,
        y: None = None,
        *,
        sample_weight: None = None,
        groups: VectorLike | None = None,
        lengths: VectorLike | None = None,
    ) -> float:
        """Mean log predictive probability per observed time step.

        A model of symbols adapts along each sequence (see :meth:`score_samples`).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : None
            Ignored.
        sample_weight : None
            Not supported: steps of a sequence cannot be weighted.
        groups, lengths : array-like, optional
            See :meth:`fit`.

        Returns
        -------
        score : float
            Nats.  Higher is better.  0 without observations.  NaN, with a warning, if no
            observed row has a likelihood.

        Examples
        --------
        >>> import numpy as np
        >>> from skihmm import HCRPHMM
        >>> X = np.repeat([[0.0], [9.0], [0.0], [9.0]], 25, axis=0)
        >>> X += np.random.default_rng(0).normal(size=X.shape)
        >>> hmm = HCRPHMM(emission="gaussian", n_burnin=50, n_draws=20, random_state=0)
        >>> hmm.fit(X)
        HCRPHMM(emission='gaussian', n_burnin=50, n_draws=20, random_state=0)
        >>> hmm.score(X) > hmm.score(X + 5)
        True
        """
        check_ignored(y, X)
        if sample_weight is not None:
            raise ValueError(
                "sample_weight was given, but the steps of a sequence cannot be "
                "weighted; leave it out."
            )
        return mean_observed(*self._score(X, groups, lengths))

    def perplexity(
        self,
        X: MatrixLike,
        y: None = None,
        *,
        groups: VectorLike | None = None,
        lengths: VectorLike | None = None,
    ) -> float:
        """Perplexity: ``exp(-score)``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : None
            Ignored.
        groups, lengths : array-like, optional
            See :meth:`fit`.

        Returns
        -------
        perplexity : float
        """
        return perplexity_of(self.score(X, y, groups=groups, lengths=lengths))

    def _score(
        self, X: MatrixLike, groups: VectorLike | None, lengths: VectorLike | None
    ) -> tuple[Floats, Sequences, BaseEmission]:
        fitted = fitted_of(self)
        sequences = fitted.encode(X, groups, lengths)
        log_probs = log_predictive(
            fitted.draws,
            sequences,
            fitted.emission,
            entropy=fitted.entropy,
            n_jobs=check_n_jobs("n_jobs", self.n_jobs),
        )
        return log_probs, sequences, fitted.emission

    # ---- fit

    def residuals(
        self,
        X: MatrixLike,
        *,
        groups: VectorLike | None = None,
        lengths: VectorLike | None = None,
        join_states: bool = False,
        max_draws: int | None = 50,
        random_state: RandomState = None,
    ) -> Floats:
        """Normal pseudo-residuals: comparisons of values with predictions.

        A residual is the normal quantile of the cumulative probability of a value given the
        earlier rows, averaged over the draws with the weights of the chains.  Under a right
        model residuals are standard normal and independent of all earlier rows, in every
        column.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        groups, lengths : array-like, optional
            See :meth:`fit`.
        join_states : bool, default=False
            Whether to replace the draws by the selected draw with the states of every
            regime joined (:meth:`find_regimes`).  Several states of a regime describe noise
            of another shape, and therefore hide the shape from residuals.  States of
            symbols, and of models without regimes yet, are not joined.
        max_draws : int or None, default=50
            Largest number of posterior draws, evenly spaced.  None: all draws.
        random_state : int, RandomState instance or None, default=None
            Seed of the random numbers below.  By default the fit fixes the seed, so
            residuals are repeatable.

        Returns
        -------
        residuals : ndarray of shape (n_samples, n_features)
            A column for each observed column, by the distribution of the column, within -8
            and 8.  NaN for missing values, and for steps without a likelihood, because an
            input or an earlier row is missing: for example the first rows of an
            autoregression.

        See Also
        --------
        skihmm.inspection.ResidualDisplay : Draw the residuals.
        diagnose : Name the contradictions between data and model.

        Notes
        -----
        Residuals of counts, and of symbols in the order of the categories, are uniform
        between the cumulative probabilities of the last smaller value and of the value
        (Dunn and Smyth 1996).  Rounded numbers get the noise of the fit.  Angles begin
        opposite to the predicted direction.  Values of emissions without ``predictive_cdf``
        are ranked among 100 drawn values.  For new subjects the offset is integrated out
        given the earlier rows, and the scale is 1.

        References
        ----------
        P. K. Dunn and G. K. Smyth, "Randomized quantile residuals", Journal of
        Computational and Graphical Statistics 5, 1996.

        Examples
        --------
        >>> import numpy as np
        >>> from skihmm import HCRPHMM
        >>> X = np.random.default_rng(0).normal(size=(200, 1))
        >>> hmm = HCRPHMM(emission="gaussian", n_burnin=20, n_draws=5, random_state=0)
        >>> residuals = hmm.fit(X).residuals(X)
        >>> bool(abs(residuals.mean()) < 0.1), bool(0.9 < residuals.std() < 1.1)
        (True, True)
        """
        check_is_fitted(self)
        regimes = self._regimes
        fitted = regimes.fitted
        entropy = fitted.entropy if random_state is None else draw_entropy(random_state)
        if max_draws is not None:
            check_integer("max_draws", max_draws, 1)
        draws, weights = fitted.draws.weighted(max_draws)
        if check_flag("join_states", join_states):
            draws, weights = [regime_draw(fitted, regimes)], np.ones(1)
        return residuals(fitted, draws, weights, X, entropy, groups, lengths)

    def diagnose(self, *, verbose: bool = False) -> Diagnosis:
        """Judge the labels, the chains and the model of the fit, in words.

        Parameters
        ----------
        verbose : bool, default=False
            Whether to print it.

        Returns
        -------
        diagnosis : Diagnosis
            A verdict, its reasons, the next call and its price.
            ``print(hmm.diagnose())`` prints the text, and a notebook shows it without
            print.  Means, R-hat and effective sample sizes are in its ``table``.

        Notes
        -----
        The first line says that the labels cannot be used yet if

        * the labels of a chain still move: its first and last third differ on 10 % more
          of the steps than draws of a third differ, and the likelihood rises,
        * a chain ended in labels that differ on 10 % of the steps from the labels of the
          selected draw's chain, or chains are sure of different numbers of states,
        * clusters of k-means, as states, have a higher rank than the draws,
        * the Monte Carlo error of the score is above 0.01 nats per step,
        * most states are single steps, fewer than 20 % of the proposals were accepted, or
          there are fewer than 20 draws per chain.

        Otherwise the report has the share of steps on which nine of ten draws agree, and
        what contradicts the model.  The second line says how many regimes the states with
        1 % of the steps or more are (:meth:`find_regimes`), if they are fewer.  Then come
        at most four findings, in the order of their causes: states that do not come back
        in every sequence and at any time, or that overlap (subjects without names, levels
        that drift, forgotten inputs); cycles, regular dwell times and interleaved rows;
        and residuals (:meth:`residuals`, states of a regime joined) that follow inputs,
        their squares and products, time, the past or other columns, or have another
        shape: exact values, outliers, lapses, skewness, tails, dispersion.
        Columns that have one value in every state are not judged.  A finding has a size
        that matters and is at least four and a half standard errors from none, of 100 or
        more values.

        No alarm is no proof: all chains may miss the same mode.

        Examples
        --------
        >>> from skihmm import HCRPHMM
        >>> from skihmm.datasets import make_repeating_sequence
        >>> X, _ = make_repeating_sequence(100)
        >>> hmm = HCRPHMM(n_burnin=50, n_draws=10, n_chains=2, random_state=0).fit(X)
        >>> hmm.diagnose()  # doctest: +ELLIPSIS
        Do not use these labels yet.
        * There are only 10 draws per chain, too few to judge their labels.
        What to do: hmm.set_params(n_draws=200).fit(X)  # some ... CPU seconds
        ...
        """
        check_is_fitted(self)
        # One attribute is read: another thread may fit meanwhile.
        regimes = self._regimes
        diagnosis = examine(regimes.fitted, regimes)
        if check_flag("verbose", verbose):
            print(diagnosis)
        return diagnosis

    def summary(self, *, names: Mapping[int, str] | None = None) -> Summary:
        r"""Summarise the fit: a table with a row for every state.

        Parameters
        ----------
        names : mapping of {int: str}, optional
            Names of states, such as ``{2: "REM"}``, for the tables of this summary.  States
            without a name keep their numbers.

        Returns
        -------
        summary : Summary
            The summary prints as a table of the twelve largest states, and a notebook
            shows the table.  ``to_frame()`` has all states, and the attributes are
            arrays.

        See Also
        --------
        segments : One row for every stay in a state.
        diagnose : The verdict of the first line, with its reasons and advice.

        Notes
        -----
        Shares, segments and next states belong to the selected draw: ``labels_`` and
        ``transmat_``.  Dwell times and parameters are medians with intervals, over all
        draws, with matched states, and over the parameters given a draw.  Without stored
        paths they belong to the selected draw and have no intervals.  Regimes
        (:meth:`find_regimes`) are shown if there are fewer than states, but not of symbols.
        Columns that tell states apart best come first; if they are many, the table has a row
        for every parameter.

        Examples
        --------
        >>> from skihmm import HCRPHMM
        >>> X = [["sun"], ["sun"], ["rain"]] * 30
        >>> hmm = HCRPHMM(n_burnin=100, n_draws=20, random_state=0).fit(X)
        >>> summary = hmm.summary()
        >>> print(str(summary).split("\n\n")[1])
        state  share  segments  dwell time   next state  x0
        0      33 %   30        1 [1, 1.01]  1 (100 %)   sun (100 %)
        1      33 %   30        1 [1, 1]     2 (100 %)   sun (100 %)
        2      33 %   30        1 [1, 1]     0 (100 %)   rain (100 %)
        >>> summary.n_segments
        array([30, 30, 30])
        """
        check_is_fitted(self)
        regimes = self._regimes
        fitted = regimes.fitted
        library = output_library(self, fitted.columns.library) or "pandas"
        state_names(names, fitted.n_states)  # errors come before the diagnosis, which takes long
        return summarise(fitted, regimes, examine(fitted, regimes).verdict, library, names)

    # ---- new data

    def sample(
        self,
        n_samples: int = 1,
        random_state: RandomState = None,
        *,
        contexts: MatrixLike | None = None,
        inputs: MatrixLike | None = None,
        subject: object = None,
    ) -> tuple[Any, Labels]:
        """Draw a new sequence from the predictive distribution of the selected draw.

        Parameters
        ----------
        n_samples : int, default=1
            Number of time steps.
        random_state : int, RandomState instance or None, default=None
            By default the `random_state` of the estimator.
        contexts, inputs : array-like of shape (n_samples,) or (n_samples, n_columns), \
optional
            Contexts and inputs of the steps, as in :meth:`predict_next`.
        subject : object, optional
            Subject of the fit (``subject_feature`` of the emission) to whom all steps
            belong.  None: a new one, of whom an offset, and a scale, are drawn.

        Returns
        -------
        X : ndarray or data frame of shape (n_samples, n_features)
            With the columns of contexts and inputs.  Symbols are from the emission's
            categories.  After a fit to a data frame a data frame, with its types of
            columns where the values fit (:meth:`impute`), or by :meth:`set_output`.
        states : ndarray of shape (n_samples,), int32
            Labels from ``n_states_`` on are new states.

        Examples
        --------
        >>> import numpy as np
        >>> from skihmm import HCRPHMM
        >>> X = np.repeat([[0.0], [9.0], [0.0], [9.0]], 25, axis=0)
        >>> X += np.random.default_rng(0).normal(size=X.shape)
        >>> hmm = HCRPHMM(emission="gaussian", n_burnin=50, n_draws=20, random_state=0)
        >>> X_new, states = hmm.fit(X).sample(5)
        >>> X_new.shape, states.shape
        ((5, 1), (5,))
        """
        fitted = fitted_of(self)
        n_samples = check_integer("n_samples", n_samples, 1)
        entropy = draw_entropy(self.random_state if random_state is None else random_state)
        X, states = sample(fitted, n_samples, entropy, contexts, inputs, subject)
        columns = fitted.columns
        library = output_library(self, columns.library)
        if library is not None:
            types = columns.types if library == columns.library else []
            X = make_frame(library, X, columns.labels, None, types)
        return X, states
