"""Segmenters for aeon and sktime, by the kits of tests of these packages."""

from __future__ import annotations

import importlib
import warnings

import numpy as np
import pytest

from skihmm import HCRPHMM

STATES = np.repeat([0, 1, 0], 20)
X = np.random.default_rng(0).normal(9 * STATES[:, None], size=(60, 2))


def load(name):
    """A module of skihmm.contrib; skip where its package is not installed."""
    pytest.importorskip(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # (Those of what it imports.)
        return importlib.import_module(f"skihmm.contrib.{name}")


@pytest.fixture
def hmm():
    return HCRPHMM(emission="gaussian", n_burnin=20, n_draws=5, random_state=0)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("name", "checks"),
    [("aeon", "aeon.testing.estimator_checking"), ("sktime", "sktime.utils.estimator_checks")],
)
def test_checks_of_the_package(name, checks):
    (segmenter,) = (getattr(load(name), kind) for kind in load(name).__all__)
    results = importlib.import_module(checks).check_estimator(segmenter, verbose=False)
    assert len(results) > 20
    assert {check: why for check, why in results.items() if why != "PASSED"} == {}


@pytest.mark.parametrize("axis", [0, 1])
def test_states_that_return_in_aeon(hmm, axis):
    segmenter = load("aeon").HCRPHMMSegmenter(hmm)
    found = segmenter.fit_predict(X if axis == 0 else X.T, axis=axis)
    assert found.tolist() == STATES.tolist()
    np.testing.assert_array_equal(found, hmm.fit(X).predict(X))


def test_states_that_return_in_sktime(hmm):
    detector = load("sktime").HCRPHMMDetector(hmm).fit(X)
    found = detector.predict(X)
    assert found["ilocs"].astype(str).tolist() == ["[0, 20)", "[20, 40)", "[40, 60)"]
    assert found["labels"].tolist() == [0, 1, 0]
    assert detector.transform(X)["labels"].tolist() == STATES.tolist()
    assert detector.predict_points(X).shape[0] > 0
