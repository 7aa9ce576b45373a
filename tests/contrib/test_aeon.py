"""The segmenter for aeon, by aeon's own kit of tests."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from skihmm import HCRPHMM


@pytest.fixture(scope="module")
def segmenter():
    pytest.importorskip("aeon")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # (Those of what it imports.)
        from skihmm.contrib.aeon import HCRPHMMSegmenter
    return HCRPHMMSegmenter


@pytest.mark.filterwarnings("ignore")
def test_aeons_checks(segmenter):
    from aeon.testing.estimator_checking import check_estimator

    results = check_estimator(segmenter)
    assert len(results) > 20
    assert {name: why for name, why in results.items() if why != "PASSED"} == {}


@pytest.mark.parametrize("axis", [0, 1])
def test_states_that_return(segmenter, axis):
    states = np.repeat([0, 1, 0], 20)
    X = np.random.default_rng(0).normal(9 * states[:, None], size=(60, 2))
    hmm = HCRPHMM(emission="gaussian", n_burnin=20, n_draws=5, random_state=0)
    found = segmenter(hmm).fit_predict(X if axis == 0 else X.T, axis=axis)
    assert found.tolist() == states.tolist()
    np.testing.assert_array_equal(found, hmm.fit(X).predict(X))
