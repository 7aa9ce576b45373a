"""Transitions of the hierarchical Chinese restaurant process."""

from __future__ import annotations

from numpy.typing import ArrayLike

from skihmm._data.contexts import ORDERS, Contexts, StepContexts, check_context_alpha
from skihmm._data.roles import Inputs, Role
from skihmm._data.validation import (
    check_choice,
    check_concentration,
    check_concentration_prior,
    check_dwell,
    check_nonnegative,
    check_stay_prior,
)
from skihmm.core._franchise import MOST_PENALTY, Franchise
from skihmm.transitions._base import BaseTransitions

# The dwell time of "sticky", for a penalty or inputs alone.
USUAL_DWELL = 10.0
# An update costs the square of their number.
MOST_INPUTS = 200


class HCRPTransitions(BaseTransitions):
    """Transitions of the hierarchical Chinese restaurant process.

    The transition distribution of every state is a draw from a Dirichlet process with a
    common base distribution over states.  The base distribution is itself a draw from a
    Dirichlet process.

    Parameters
    ----------
    alpha, gamma : float, default=1.0
        Initial concentrations of a chain: `alpha` of every state's transitions around the
        base distribution, `gamma` of the base distribution.
    concentration_prior : (float, float) or None, default=(1.0, 1.0)
        Shape and rate of the Gamma prior on `alpha` and `gamma`, for draws after every
        sweep.  None: `alpha` and `gamma` are fixed.
    expected_dwell : float or None, default=None
        Expected number of steps, above 1, of a stay in a state.  Every state has a
        probability to stay, under a Beta prior with two parameters, and the parameters are
        resampled after every sweep.  Steps without a stay are draws from the transition
        distribution of the state, perhaps of the same state again.  The prior is wide: half
        of the states are expected to last between 0.6 and 2.6 times as long.  None: states
        have no preference to stay, unless `stay_prior` says so.
    stay_prior : (float, float) or None, default=None
        Fixed parameters of the Beta prior of the probability to stay, instead of
        `expected_dwell`: pseudo-counts of staying and of leaving.  A large pseudo-count of
        staying is a penalty for every change of state.  If the pseudo-count of leaving
        equals a fixed `alpha`, the model is the sticky HDP-HMM of Fox et al.
    switch_penalty : float, default=0.0
        Nats, up to 50.  Every change of state lowers the log density of a path in the fit
        by the penalty, so the fit has few, long regimes.  The penalty applies to the
        training path only, like the penalty of a segmentation, and not to the first steps
        of sequences.  Predictions, scores, dwell times and simulation use the fitted model
        without the penalty.  4 nats, the value of ``transitions="persistent"``, are odds of
        55 to 1 against a change.  Above zero, states have probabilities of their own to
        stay, and `expected_dwell`, without `stay_prior`, is 10.
    context_features : array-like of int, str or bool, or None, default=None
        Columns of X with contexts: an action, an input, a treatment or a subject, as
        numbers or strings.  Every value is a context.  Contexts are given, not modelled:
        the emission does not have the columns of contexts, and the transition into a step
        depends on the context of the step.  With several columns, later columns refine
        earlier columns.  A missing context (NaN, None), or a new context, has the
        distribution of the columns before.  The probability of a state to stay is the same
        in all contexts.
    context_order : {"state", "context"}, default="state"
        "state": distributions of contexts lie around the transition distribution of the
        state.  A new context starts from the distribution of the state.  "context": a
        value of the first column has a distribution over states, and the distributions of
        the states before lie around this distribution.  Contexts differ in their states,
        and a new context starts from the overall frequencies of states.
    context_alpha : float or array-like of shape (n_columns,), default=1.0
        Initial concentrations of the columns of `context_features`, of the distribution of
        a context around the distribution above, resampled with `alpha` and `gamma`.  A
        column with a large concentration makes no difference.
    input_features : array-like of int, str or bool, or None, default=None
        Columns of X with inputs of staying: the log odds of staying at a step are a linear
        function of the inputs of the step, with coefficients of every state.  Inputs are
        given, like contexts, and may be inputs of the emission and contexts too.  The rows
        of the fit standardise the inputs, and a missing input has the mean.  Coefficients
        have normal priors with mean zero and a learned scale per input, so an irrelevant
        column does little harm.  With inputs, `expected_dwell` is 10 at the mean inputs,
        and `stay_prior` has to be None.

    Attributes
    ----------
    context_categories_ : tuple of tuple
        Values of every column of `context_features`, by first appearance, in the
        ``transitions_`` of a fitted model.
    input_means_, input_scales_ : ndarray of shape (n_inputs,), or None
        Means and standard deviations of the inputs, for the standardisation.

    See Also
    --------
    skihmm.HCRPHMM.stay_probabilities : Probabilities to stay, by inputs.
    skihmm.inspection.DwellTimeDisplay : Draw how long states last.
    skihmm.inspection.TransitionMatrixDisplay : Draw which states follow a state.

    References
    ----------
    E. B. Fox, E. B. Sudderth, M. I. Jordan and A. S. Willsky, "A sticky HDP-HMM with
    application to speaker diarization", Annals of Applied Statistics 5, 2011.

    N. G. Polson, J. G. Scott and J. Windle, "Bayesian inference for logistic models using
    Polya-Gamma latent variables", Journal of the American Statistical Association 108,
    2013.

    Examples
    --------
    >>> import numpy as np
    >>> from skihmm import HCRPHMM
    >>> from skihmm.transitions import HCRPTransitions
    >>> transitions = HCRPTransitions(alpha=2.0, concentration_prior=None)
    >>> hmm = HCRPHMM(transitions=transitions, n_burnin=20, n_draws=5, random_state=0)
    >>> hmm.fit([[0], [1]] * 20).draws_.alpha
    array([[2., 2., 2., 2., 2.]])

    States that last:

    >>> transitions = HCRPTransitions(expected_dwell=20)
    >>> hmm = HCRPHMM(transitions=transitions, n_burnin=20, n_draws=5, random_state=0)
    >>> hmm.fit([[0]] * 20 + [[1]] * 20).draws_.stay_prior.shape
    (1, 5, 2)

    States whose transitions depend on an action, the second column:

    >>> transitions = HCRPTransitions(context_features=[1])
    >>> hmm = HCRPHMM(transitions=transitions, n_burnin=20, n_draws=5, random_state=0)
    >>> hmm.fit([[0, "stay"], [0, "go"], [1, "stay"], [1, "go"]] * 10)
    HCRPHMM(n_burnin=20, n_draws=5, random_state=0,
            transitions=HCRPTransitions(context_features=[1]))
    >>> hmm.draws_.context_alpha.shape
    (1, 5, 1)

    States that end when a number, the second column, is high:

    >>> number, noise = np.random.default_rng(0).normal(size=(2, 300))
    >>> X = np.column_stack([np.cumsum(number + noise / 2 > 1) % 2, number])
    >>> transitions = HCRPTransitions(input_features=[1])
    >>> hmm = HCRPHMM(transitions=transitions, n_burnin=50, n_draws=10, random_state=0)
    >>> hmm.fit(X).stay_coefficients_.shape
    (2, 1)
    >>> hmm.stay_probabilities([[0.0], [2.0]]).round(1)
    array([[1., 1.],
           [0., 0.]])
    """

    test_params = (
        {},
        {"alpha": 0.5, "gamma": 2.0, "concentration_prior": None},
        {"expected_dwell": 5.0},
        {"stay_prior": (3.0, 0.5)},
        {"stay_prior": (2.0, 1.5), "switch_penalty": 1.3},
        {"context_alpha": 2.0, "context_order": "context"},
    )

    def __init__(
        self,
        alpha: float = 1.0,
        gamma: float = 1.0,
        concentration_prior: tuple[float, float] | None = (1.0, 1.0),
        *,
        expected_dwell: float | None = None,
        stay_prior: tuple[float, float] | None = None,
        switch_penalty: float = 0.0,
        context_features: ArrayLike | None = None,
        context_order: str = "state",
        context_alpha: ArrayLike = 1.0,
        input_features: ArrayLike | None = None,
    ) -> None:
        self.alpha = alpha
        self.gamma = gamma
        self.concentration_prior = concentration_prior
        self.expected_dwell = expected_dwell
        self.stay_prior = stay_prior
        self.switch_penalty = switch_penalty
        self.context_features = context_features
        self.context_order = context_order
        self.context_alpha = context_alpha
        self.input_features = input_features

    @property
    def n_before(self) -> int:  # type: ignore[override]
        """Number of columns above the states in the tree of restaurants."""
        return int(self.context_order == "context")

    def roles(self) -> list[Role]:
        contexts = Contexts("context_features", self.context_features)
        check_context_alpha(self.context_alpha, contexts.n_columns)
        owner = " of transitions"
        return [
            contexts,
            Inputs("input_features", self.input_features, most=MOST_INPUTS, owner=owner),
        ]

    def make_seating(self, contexts: StepContexts | None = None) -> Franchise:
        check_choice("context_order", self.context_order, ORDERS)
        dwell = check_dwell("expected_dwell", self.expected_dwell)
        stay_prior = check_stay_prior("stay_prior", self.stay_prior)
        penalty = check_nonnegative("switch_penalty", self.switch_penalty)
        if penalty > MOST_PENALTY:
            raise ValueError(
                f"switch_penalty={penalty:g}; expected nats from 0 to {MOST_PENALTY:g}. "
                "From 3 to 6 suit most data."
            )
        if (penalty or self.has_inputs) and dwell is None:
            dwell = USUAL_DWELL
        if self.has_inputs and stay_prior is not None:
            raise ValueError(
                f"stay_prior={self.stay_prior!r} with input_features: the probability to "
                "stay depends on these, and has no Beta prior. Set expected_dwell."
            )
        options = {"stay_prior": stay_prior, "expected_stay": dwell}
        n_columns = contexts.n_columns if contexts is not None else 0
        return Franchise(
            check_concentration("alpha", self.alpha),
            check_concentration("gamma", self.gamma),
            check_concentration_prior("concentration_prior", self.concentration_prior),
            {name: value for name, value in options.items() if value is not None},
            contexts if n_columns else None,
            check_context_alpha(self.context_alpha, n_columns) if n_columns else (),
            penalty,
            None if contexts is None else contexts.inputs,
        )
