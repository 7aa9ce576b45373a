"""scikit-learn's own checks, and the invariances that sequences do have."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from sklearn.utils.estimator_checks import (
    check_estimator_cloneable,
    check_estimator_repr,
    check_get_params_invariance,
    check_no_attributes_set_in_init,
    check_parameters_default_constructible,
    check_set_params,
    parametrize_with_checks,
)

from skihmm import HCRPHMM
from skihmm.emissions import DirichletCategorical, HCRPCategorical
from skihmm.metrics import ParticleFilterScorer
from skihmm.samplers import StepwiseGibbs

SHORT = {"n_burnin": 2, "n_draws": 2, "thin": 1, "n_particles": 8, "random_state": 0}

ESTIMATORS = [
    HCRPHMM(**SHORT),
    HCRPHMM(emission="dirichlet", init="random", **SHORT),
    HCRPHMM(n_chains=2, sampler=StepwiseGibbs(), init="single", **SHORT),
    HCRPHMM(
        alpha=0.5,
        gamma=2.0,
        concentration_prior=None,
        emission=HCRPCategorical(alpha=0.5, gamma=3.0, concentration_prior=None),
        store_states=False,
        **SHORT,
    ),
    HCRPHMM(emission=HCRPCategorical(handle_unknown="missing"), **SHORT),
    HCRPHMM(
        emission=DirichletCategorical(0.3, handle_unknown="error"),
        n_chains=2,
        n_jobs=2,
        init="random",
        **SHORT,
    ),
]

EXPECTED_FAILURES = {
    "check_methods_sample_order_invariance": (
        "rows are time steps: in another order they are another sequence"
    ),
    "check_methods_subset_invariance": (
        "a step's state depends on the steps around it, so it changes if they are cut off"
    ),
}

# A check that is listed but passes must be noticed.  Older releases of scikit-learn leave
# that to pytest's own xfail_strict, which is on.
STRICT = (
    {"xfail_strict": True}
    if "xfail_strict" in inspect.signature(parametrize_with_checks).parameters
    else {}
)
CHECKS = parametrize_with_checks(
    ESTIMATORS, expected_failed_checks=lambda _: EXPECTED_FAILURES, **STRICT
)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
# Older releases hold a generator, which newer ones of pytest refuse.
@pytest.mark.parametrize(CHECKS.args[0], list(CHECKS.args[1]), **CHECKS.kwargs)
def test_sklearn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "check",
    [
        check_estimator_cloneable,
        check_estimator_repr,
        check_get_params_invariance,
        check_no_attributes_set_in_init,
        check_parameters_default_constructible,
        check_set_params,
    ],
)
@pytest.mark.parametrize(
    "part",
    [HCRPCategorical(), DirichletCategorical(), StepwiseGibbs(), ParticleFilterScorer()],
    ids=lambda part: type(part).__name__,
)
def test_sklearn_checks_of_parts(part, check):
    # Parameters of an estimator are cloned, printed and searched over, not fitted.
    check(type(part).__name__, part)


@pytest.fixture(scope="module")
def sequences(sequence):
    """Three sequences of unequal lengths: data and ids."""
    lengths = [25, 10, 25]
    return np.array(sequence), np.repeat([7, 3, 5], lengths)


def _blocks(groups, order):
    return np.concatenate([np.flatnonzero(groups == group) for group in order])


@pytest.mark.parametrize("method", ["predict", "predict_proba"])
def test_order_of_whole_sequences_does_not_matter(sequences, fitted, method):
    X, groups = sequences
    rows = _blocks(groups, [3, 5, 7])
    assert not np.array_equal(rows, np.arange(len(X)))
    expected = getattr(fitted, method)(X, groups=groups)
    found = getattr(fitted, method)(X[rows], groups=groups[rows])
    np.testing.assert_allclose(found, expected[rows], rtol=1e-12, atol=0)


@pytest.mark.parametrize("method", ["predict", "predict_proba"])
def test_a_subset_of_whole_sequences_gives_the_same(sequences, fitted, method):
    X, groups = sequences
    expected = getattr(fitted, method)(X, groups=groups)
    for group in np.unique(groups):
        rows = groups == group
        found = getattr(fitted, method)(X[rows], groups=groups[rows])
        np.testing.assert_allclose(found, expected[rows], rtol=1e-12, atol=0)
        np.testing.assert_array_equal(found, getattr(fitted, method)(X[rows]))


def test_log_probability_of_paths_adds_up_over_sequences(sequences, fitted):
    X, groups = sequences
    total = sum(fitted.decode(X[groups == group])[0] for group in np.unique(groups))
    assert fitted.decode(X, groups=groups)[0] == pytest.approx(total, rel=1e-12)
