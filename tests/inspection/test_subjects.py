"""SubjectDisplay: offsets and scales with intervals."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skihmm import HCRPHMM
from skihmm.emissions import NormalInverseGamma, ProductEmission
from skihmm.inspection import SubjectDisplay

WHO = np.repeat(["a", "b", "c"], 100)
LEVELS = np.array([-4.0, 1.0, 3.0])
STATES = np.arange(300) // 20 % 2


@pytest.fixture(scope="module")
def hmm():
    rng = np.random.default_rng(0)
    y = 5 * STATES + LEVELS.repeat(100) + rng.normal(size=300)
    X = np.column_stack([y.astype(object), rng.poisson(1 + STATES), WHO])
    part = NormalInverseGamma(subject_feature=2, subject_scale=True)
    emission = ProductEmission([("y", part, [0]), ("n", "poisson", [1])])
    settings = {"n_burnin": 40, "n_draws": 40, "random_state": 0}
    return HCRPHMM(emission=emission, **settings).fit(X, groups=WHO)


def test_levels_are_in_their_intervals(hmm):
    pytest.importorskip("matplotlib")
    display = SubjectDisplay.from_estimator(hmm, part="y")
    assert display.subjects == ["a", "b", "c"]
    low, high = display.intervals
    assert (low < LEVELS + 0.3).all()
    assert (high > LEVELS - 0.3).all()
    assert (high - low < 1.5).all()
    part = hmm.emission_.named_emissions_.y
    assert_allclose(display.means, part.subject_offsets_[:, 0])
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == ["a", "b", "c"]
    narrow = SubjectDisplay.from_estimator(hmm, part="y", probability=0.5)
    assert (np.ptp(narrow.intervals, axis=0) < high - low).all()
    assert_array_equal(narrow.means, display.means)
    scales = SubjectDisplay.from_estimator(hmm, part="y", kind="scale", ax=display.ax_)
    assert scales.ax_ is display.ax_
    assert (scales.intervals[0] < 1.1).all()
    assert (scales.intervals[1] > 0.9).all()


def test_columns_have_names():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    low = 5 * STATES + LEVELS.repeat(100) + rng.normal(size=300)
    X = pd.DataFrame({"who": WHO, "low": low, "n": STATES, "high": 10 - low + rng.normal(size=300)})
    part = NormalInverseGamma(subject_feature="who")
    emission = ProductEmission([("n", "poisson", ["n"]), ("y", part, ["low", "high"])])
    hmm = HCRPHMM(emission=emission, n_burnin=5, n_draws=5, random_state=0).fit(X, groups=WHO)
    display = SubjectDisplay.from_estimator(hmm, part="y", column="high")
    assert display.ax_.get_xlabel() == "offset of high"
    offsets = hmm.emission_.named_emissions_.y.subject_offsets_
    assert_allclose(display.means, offsets[:, 1])
    same = SubjectDisplay.from_estimator(hmm, part="y", column=1)
    assert_array_equal(same.means, display.means)
    first = SubjectDisplay.from_estimator(hmm, part="y")
    assert first.ax_.get_xlabel() == "offset of low"


def test_bad_arguments(hmm):
    with pytest.raises(ValueError, match="expected an emission with subject_feature"):
        SubjectDisplay.from_estimator(hmm)
    with pytest.raises(ValueError, match="column holds 1, but there are 1 columns"):
        SubjectDisplay.from_estimator(hmm, part="y", column=1)
    with pytest.raises(ValueError, match="column holds 'z'; expected places, or names from"):
        SubjectDisplay.from_estimator(hmm, part="y", column="z")
    with pytest.raises(ValueError, match="probability=1"):
        SubjectDisplay.from_estimator(hmm, part="y", probability=1)
