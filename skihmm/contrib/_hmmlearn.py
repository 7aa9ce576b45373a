"""Models of hmmlearn from fitted models, and the other way round."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from skihmm._hcrp_hmm import HCRPHMM
from skihmm._typing import Floats, MatrixLike, VectorLike
from skihmm._using.fitted import fitted_of
from skihmm.emissions import (
    DirichletCategorical,
    GammaPoisson,
    HCRPCategorical,
    NormalInverseGamma,
    NormalInverseWishart,
)
from skihmm.posterior import draw_parameters

# Emissions with a counterpart.
_COUNTERPARTS: dict[type, tuple[str, dict[str, str]]] = {
    HCRPCategorical: ("CategoricalHMM", {}),
    DirichletCategorical: ("CategoricalHMM", {}),
    NormalInverseWishart: ("GaussianHMM", {"covariance_type": "full"}),
    NormalInverseGamma: ("GaussianHMM", {"covariance_type": "diag"}),
    GammaPoisson: ("PoissonHMM", {}),
}
_GAUSSIAN = {
    "full": "gaussian",
    "tied": "gaussian",
    "diag": "diagonal_gaussian",
    "spherical": "diagonal_gaussian",
}


def _without_new_state(probs: Floats) -> Floats:
    known = probs[..., :-1]
    return np.asarray(known / known.sum(axis=-1, keepdims=True))


def to_hmmlearn(hmm: HCRPHMM, draw: tuple[int, int] | None = None) -> Any:
    """Model of hmmlearn with the parameters of one posterior draw.

    The parameters are posterior means given the draw
    (:func:`skihmm.posterior.draw_parameters`).  hmmlearn's models have no new state.  Its
    probabilities are left out, and the remaining probabilities are divided by their sum.

    Parameters
    ----------
    hmm : HCRPHMM
        Fitted, with one column of symbols (HCRPCategorical, DirichletCategorical), real
        numbers (NormalInverseWishart, NormalInverseGamma) or counts (GammaPoisson).
    draw : tuple of two int, optional
        Chain and draw.  By default the selected draw, with the labels of ``labels_``.

    Returns
    -------
    model : hmmlearn.hmm.CategoricalHMM, GaussianHMM or PoissonHMM
        Ready for ``score``, ``predict`` and ``sample``.  ``fit`` starts from these
        parameters with ``init_params=""``.  Symbols are their indices in
        ``hmm.emission_.categories_[0]``.  With ``handle_unknown="base"`` a further index
        stands for any unknown symbol.

    Raises
    ------
    ImportError
        If hmmlearn is not installed.
    ValueError
        If hmmlearn has no such model: another emission, several columns of symbols,
        contexts or a smallest dwell time.

    See Also
    --------
    from_hmmlearn : Start chains from a model of hmmlearn.
    skihmm.posterior.draw_parameters : The parameters of a draw as arrays.

    Notes
    -----
    Probabilities of symbols equal the probabilities of the draw.  Densities of numbers
    differ, because skihmm integrates the parameters of the states out, with heavier
    tails.  The fewer steps a state has, the more do the log likelihoods differ.

    Examples
    --------
    >>> import numpy as np
    >>> from skihmm import HCRPHMM
    >>> from skihmm.contrib import to_hmmlearn
    >>> X = np.repeat([[0.0], [9.0], [0.0]], 20, axis=0)
    >>> X += np.random.default_rng(0).normal(size=(60, 1))
    >>> hmm = HCRPHMM(emission="gaussian", n_burnin=50, n_draws=10, random_state=0).fit(X)
    >>> model = to_hmmlearn(hmm)
    >>> model
    GaussianHMM(covariance_type='full', n_components=2)
    >>> model.predict(X)[[0, 19, 20, 39, 40, 59]]
    array([0, 0, 1, 1, 0, 0])
    """
    fitted = fitted_of(hmm)
    kind, settings = _COUNTERPARTS.get(type(hmm.emission_), ("", {}))
    n_columns = len(fitted.emission.columns(len(fitted.observed)).n_symbols.nonzero()[0])
    transitions = hmm.transitions_
    reason = ""
    if not kind:
        reason = f"of the emission {hmm.emission_}"
    elif n_columns > 1:
        reason = f"of {n_columns} columns of symbols"
    elif transitions.has_contexts:
        reason = "with transitions that depend on contexts"
    elif len(fitted.given.of_emission):
        reason = "with symbols that depend on contexts"
    if reason:
        raise ValueError(
            f"hmmlearn has no model {reason}; expected one column of symbols, or columns "
            "of real numbers or counts (emissions 'hcrp', 'dirichlet', 'gaussian', "
            "'diagonal_gaussian', 'poisson')."
        )
    try:
        module = import_module("hmmlearn.hmm")
    except ImportError:
        raise ImportError(
            "to_hmmlearn needs hmmlearn, which is not installed: pip install hmmlearn."
        ) from None
    parameters = draw_parameters(hmm, draw)
    n_states = len(parameters.transmat_) - 1
    model = getattr(module, kind)(n_components=n_states, **settings)
    model.startprob_ = _without_new_state(parameters.startprob_)
    model.transmat_ = _without_new_state(parameters.transmat_)[:-1]
    if kind == "CategoricalHMM":
        model.emissionprob_ = parameters.emissionprob_[0][:-1]
        model.n_features = model.emissionprob_.shape[1]
        return model
    model.n_features = hmm.n_features_in_
    emission = parameters.emission_
    if kind == "PoissonHMM":
        model.lambdas_ = emission.rates_
    else:
        model.means_, model.covars_ = emission.means_, emission.covariances_
    return model


def _emission_of(model: object) -> str | None:
    """Short name of the emission of a model of hmmlearn, None if there is none."""
    for kind in type(model).__mro__:
        if kind.__name__ == "CategoricalHMM":
            return "hcrp"
        if kind.__name__ == "PoissonHMM":
            return "poisson"
        if kind.__name__ == "GaussianHMM":
            return _GAUSSIAN[model.covariance_type]  # type: ignore[attr-defined]
    return None


def from_hmmlearn(
    model: Any, X: MatrixLike, lengths: VectorLike | None = None, **params: Any
) -> HCRPHMM:
    """Model that starts from the states of a fitted model of hmmlearn.

    Its `init` is the most probable path of X under `model`, and its emission the
    counterpart.  The posterior does not depend on the start of chains.  With a good
    start, chains need a shorter burn-in.

    Parameters
    ----------
    model : hmmlearn.hmm.CategoricalHMM, GaussianHMM or PoissonHMM
        Fitted.  The covariances "tied" and "spherical" have no counterpart: they become
        full and diagonal ones of every state.
    X : array-like of shape (n_samples, n_features)
        The data to be fitted.
    lengths : array-like of shape (n_sequences,), optional
        Rows per sequence.
    **params
        Parameters of :class:`~skihmm.HCRPHMM`.

    Returns
    -------
    hmm : HCRPHMM
        Not fitted: call ``hmm.fit(X, lengths=lengths)``.

    Raises
    ------
    TypeError
        If `model` is of another kind.

    See Also
    --------
    to_hmmlearn : Convert a fitted model to a model of hmmlearn.
    skihmm.HCRPHMM : The model, whose parameter `init` is the path.

    Examples
    --------
    >>> import numpy as np
    >>> from hmmlearn.hmm import GaussianHMM
    >>> from skihmm.contrib import from_hmmlearn
    >>> X = np.repeat([[0.0], [9.0], [0.0]], 20, axis=0)
    >>> X += np.random.default_rng(0).normal(size=(60, 1))
    >>> model = GaussianHMM(n_components=2, random_state=0).fit(X)
    >>> hmm = from_hmmlearn(model, X, n_burnin=20, n_draws=10, random_state=0)
    >>> hmm.fit(X).n_states_
    2
    """
    emission = _emission_of(model)
    if emission is None:
        raise TypeError(
            f"model is a {type(model).__name__}; expected hmmlearn's CategoricalHMM, "
            "GaussianHMM or PoissonHMM."
        )
    path = np.asarray(model.predict(X, lengths))
    return HCRPHMM(**{"emission": emission, "init": path, **params})
