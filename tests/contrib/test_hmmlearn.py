"""Models of hmmlearn: real ones where it is installed, otherwise plain objects."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import multivariate_normal, poisson

from skihmm import HCRPHMM
from skihmm._data.sequences import Sequences
from skihmm._using.decoding import frozen_model
from skihmm.contrib import from_hmmlearn, to_hmmlearn
from skihmm.emissions import HCRPCategorical
from skihmm.transitions import HCRPTransitions

SHORT = {"n_burnin": 20, "n_draws": 4, "thin": 1, "random_state": 0}
LENGTHS = [50, 30]


class PlainModel:
    def __init__(self, n_components, covariance_type="diag"):
        self.n_components = n_components
        self.covariance_type = covariance_type


@pytest.fixture(params=["hmmlearn", "plain"])
def package(request, monkeypatch):
    if request.param == "hmmlearn":
        return pytest.importorskip("hmmlearn.hmm")
    names = ("CategoricalHMM", "GaussianHMM", "PoissonHMM")
    plain = SimpleNamespace(**{name: type(name, (PlainModel,), {}) for name in names})
    monkeypatch.setitem(sys.modules, "hmmlearn.hmm", plain)
    return plain


def log_likelihood(startprob, transmat, likelihoods):
    """Sum over the sequences by scaled forward passes."""
    total, start = 0.0, 0
    for length in LENGTHS:
        probs = startprob
        for row in likelihoods[start : start + length]:
            joint = probs * row
            total += np.log(joint.sum())
            probs = joint / joint.sum() @ transmat
        start += length
    return total


def check_transitions(model, hmm, likelihoods):
    """The same chain as the draw without the new state; likelihoods (n_samples, K)."""
    startprob = hmm.startprob_[:-1] / hmm.startprob_[:-1].sum()
    transmat = hmm.transmat_[:-1, :-1]
    transmat = transmat / transmat.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.startprob_, startprob, rtol=1e-12)
    np.testing.assert_allclose(model.transmat_, transmat, rtol=1e-12)
    return log_likelihood(startprob, transmat, likelihoods)


@pytest.mark.parametrize("unseen", ["base", "missing"])
def test_symbols(package, unseen):
    rng = np.random.default_rng(0)
    letters = np.array(list("abcd"))
    X = letters[(np.arange(80) % 2 * 2 + rng.integers(2, size=80))][:, None]
    emission = HCRPCategorical(handle_unknown=unseen)
    hmm = HCRPHMM(emission=emission, **SHORT).fit(X, lengths=LENGTHS)
    model = to_hmmlearn(hmm)
    assert type(model).__name__ == "CategoricalHMM"
    codes = np.searchsorted(letters, X)
    # The same probabilities as those of the frozen model of this draw, without its new
    # state.
    frozen = frozen_model(
        hmm.draws_[hmm._fitted.best], Sequences(codes.astype(np.int32), [0, 50]), hmm.emission_
    )
    likelihoods = frozen.predictives()[0][:-1, codes[:, 0]].T
    expected = check_transitions(model, hmm, likelihoods)
    assert model.n_features == 4 + (unseen == "base")
    assert model.emissionprob_.shape == (hmm.n_states_, model.n_features)
    np.testing.assert_allclose(model.emissionprob_[:, codes[:, 0]].T, likelihoods)
    if not isinstance(model, PlainModel):
        assert model.score(codes, LENGTHS) == pytest.approx(expected, rel=1e-10)
        path = model.predict(codes, LENGTHS)
        assert path.tolist() == hmm.predict(X, lengths=LENGTHS).tolist()
    other = to_hmmlearn(hmm, (0, 1))
    assert len(other.startprob_) == hmm.draws_[0, 1].n_states


@pytest.mark.parametrize("emission", ["gaussian", "diagonal_gaussian", "poisson"])
def test_numbers(package, emission):
    rng = np.random.default_rng(1)
    means = np.where(np.arange(80) % 20 < 10, 3.0, 30.0)[:, None]
    X = rng.poisson(means, size=(80, 2)).astype(float)
    hmm = HCRPHMM(emission=emission, **SHORT).fit(X, lengths=LENGTHS)
    model = to_hmmlearn(hmm)
    assert model.n_features == 2
    fitted = hmm.emission_
    if emission == "poisson":
        np.testing.assert_array_equal(model.lambdas_, fitted.rates_)
        densities = [poisson(rates).pmf(X).prod(axis=1) for rates in fitted.rates_]
    else:
        assert model.covariance_type == {"gaussian": "full"}.get(emission, "diag")
        np.testing.assert_array_equal(model.means_, fitted.means_)
        densities = [
            multivariate_normal(mean, covariance).pdf(X)
            for mean, covariance in zip(fitted.means_, fitted.covariances_, strict=True)
        ]
        shape = fitted.covariances_.shape
        assert shape == (hmm.n_states_, 2, 2)[: 3 if emission == "gaussian" else 2]
    expected = check_transitions(model, hmm, np.transpose(densities))
    if not isinstance(model, PlainModel):
        assert model.score(X, LENGTHS) == pytest.approx(expected, rel=1e-8)


def test_without_counterpart(package):
    X = np.arange(40).reshape(20, 2) % 3
    with pytest.raises(ValueError, match="no model of 2 columns of symbols"):
        to_hmmlearn(HCRPHMM(**SHORT).fit(X))
    for emission, transitions, message in [
        ("autoregressive", "hcrp", r"no model of the emission AutoregressiveNormal"),
        ("poisson", HCRPTransitions(context_features=[0]), "depend on contexts"),
    ]:
        hmm = HCRPHMM("auto", emission, transitions, **SHORT).fit(X)
        with pytest.raises(ValueError, match=message):
            to_hmmlearn(hmm)
    hmm = HCRPHMM(emission=HCRPCategorical(context_features=[1]), **SHORT).fit(X)
    with pytest.raises(ValueError, match="symbols that depend on contexts"):
        to_hmmlearn(hmm)
    hmm = HCRPHMM(transitions=HCRPTransitions(context_features=[]), **SHORT)
    assert to_hmmlearn(hmm.fit(X[:, :1])).transmat_.shape == (hmm.n_states_,) * 2


def test_without_hmmlearn(monkeypatch):
    monkeypatch.setitem(sys.modules, "hmmlearn.hmm", None)
    with pytest.raises(ImportError, match="pip install hmmlearn"):
        to_hmmlearn(HCRPHMM(**SHORT).fit([[0], [1]] * 5))


def plain(kind, path, **attributes):
    predict = staticmethod(lambda X, lengths: path)
    derived = type("Mine", (type(kind, (), {}),), {"predict": predict, **attributes})
    return derived()


def test_start_from_hmmlearn():
    X = np.tile([[0], [1]], (40, 1))
    model = plain("CategoricalHMM", X[:, 0])
    hmm = from_hmmlearn(model, X, LENGTHS, n_burnin=0, n_draws=1, random_state=0)
    assert hmm.emission == "hcrp"
    np.testing.assert_array_equal(hmm.init, X[:, 0])
    assert hmm.fit(X, lengths=LENGTHS).labels_.tolist() == X[:, 0].tolist()
    kinds = {"full": "gaussian", "diag": "diagonal_gaussian"}
    kinds |= {"tied": "gaussian", "spherical": "diagonal_gaussian"}
    for covariance_type, emission in kinds.items():
        model = plain("GaussianHMM", X[:, 0], covariance_type=covariance_type)
        assert from_hmmlearn(model, X).emission == emission
    assert from_hmmlearn(plain("PoissonHMM", X[:, 0]), X).emission == "poisson"
    with pytest.raises(TypeError, match=r"is a Mine; expected hmmlearn's CategoricalHMM"):
        from_hmmlearn(plain("GMMHMM", X[:, 0]), X)


def test_there_and_back():
    hmmlearn = pytest.importorskip("hmmlearn.hmm")
    rng = np.random.default_rng(0)
    X = rng.normal(np.repeat([0, 9, 0, 9], 20)[:, None], size=(80, 1))
    model = hmmlearn.GaussianHMM(2, "full", random_state=0).fit(X, LENGTHS)
    hmm = from_hmmlearn(model, X, LENGTHS, **{**SHORT, "n_draws": 100})
    hmm.fit(X, lengths=LENGTHS)
    assert hmm.n_states_ == 2
    means = to_hmmlearn(hmm).means_.ravel()
    np.testing.assert_allclose(np.sort(means), np.sort(model.means_.ravel()), atol=0.5)
