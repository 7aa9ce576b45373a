"""What is not known has no residual: rows without an input, or without rows before them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from emissions.test_quantiles import COUNTS, NUMBERS, STUDENT, SYMBOLS, TRIALS, U
from extension.exponential import Exponential
from scipy.special import gammaincc

from skihmm import HCRPHMM, OnlineFilter
from skihmm._using import online
from skihmm.emissions import (
    AutoregressiveNormal,
    BernoulliRegression,
    CategoricalRegression,
    HCRPCategorical,
    NegativeBinomialRegression,
    ProductEmission,
)

LENGTHS = [70, 50]
SUBJECTS = np.repeat(["a", "b"], LENGTHS)[:, None]


class Relative(Exponential):
    """Exponential ratios of a row to the row before, without a cumulative distribution."""

    n_inputs = 1

    def next_inputs(self, row):
        return [np.nan if row is None else row[0]]

    def _ratio(self, y):
        return y[:1] / y[1:]

    def add(self, stats, y):
        return super().add(stats, self._ratio(y))

    def remove(self, stats, y):
        return super().remove(stats, self._ratio(y))

    def log_predictive(self, stats, y):
        return super().log_predictive(stats, self._ratio(y)) - np.log(y[1])

    def log_density(self, parameters, y):
        return super().log_density(parameters, self._ratio(y)) - np.log(y[1])

    def mean(self, stats, inputs):
        return np.nan_to_num(inputs, nan=1.0) * super().mean(stats)

    def emit(self, parameters, generator, inputs):
        return np.nan_to_num(inputs, nan=1.0) * super().emit(parameters, generator)


@dataclass
class Case:
    """Emission, data, and what a row needs: columns of inputs, and earlier rows.

    They are by observed column, of data whose given columns come last.
    """

    emission: object
    X: np.ndarray
    inputs: tuple[tuple[int, ...], ...] = ((),)
    orders: tuple[int, ...] = (0,)


def _numbers(*columns):
    return np.hstack([np.asarray(column, dtype=float) for column in columns])


CASES = {
    "autoregression": Case(AutoregressiveNormal(2), NUMBERS[:, :1], orders=(2,)),
    "two columns": Case(AutoregressiveNormal(1, noise="student"), NUMBERS, ((), ()), (1, 1)),
    "autoregression on inputs": Case(
        AutoregressiveNormal(1, input_features=[1]), _numbers(NUMBERS[:, :1], U), ((1,),), (1,)
    ),
    "regression": Case(STUDENT, _numbers(NUMBERS[:, :1], U), ((1,),)),
    "logistic": Case(BernoulliRegression([1]), _numbers(TRIALS[:, :1] > 6, U), ((1,),)),
    "binomial": Case(BernoulliRegression([1], 2), _numbers(TRIALS), ((1, 2),)),
    "log-linear": Case(NegativeBinomialRegression([1], 2), _numbers(COUNTS), ((1, 2),)),
    "choice": Case(CategoricalRegression([1]), _numbers(SYMBOLS, U), ((1,),)),
    "no function": Case(Relative(), np.exp(NUMBERS[:, :1]), orders=(1,)),
    "mixed": Case(
        ProductEmission(
            [
                ("s", HCRPCategorical(handle_unknown="error"), [1]),
                ("n", NegativeBinomialRegression([4]), [2]),
                ("x", AutoregressiveNormal(1), [0, 3]),
            ]
        ),
        _numbers(NUMBERS[:, :1], SYMBOLS, COUNTS[:, :1], NUMBERS[:, 1:], U),
        ((), (), (4,), ()),
        (1, 0, 0, 1),
    ),
}
_NAMED = _numbers(NUMBERS[:, :1], U).astype(object)
OF_SUBJECTS = {
    "autoregression": Case(
        AutoregressiveNormal(1, subject_feature=1),
        np.hstack([_NAMED[:, :1], SUBJECTS]),
        orders=(1,),
    ),
    "regression": Case(
        AutoregressiveNormal(0, input_features=[1], subject_feature=2),
        np.hstack([_NAMED, SUBJECTS]),
        ((1,),),
    ),
    "counts": Case(
        NegativeBinomialRegression([1], subject_feature=2),
        np.hstack([COUNTS[:, :2].astype(object), SUBJECTS]),
        ((1,),),
    ),
}


def with_gaps(case, n_numbers=None):
    """Data of which some entries are missing, of inputs too."""
    X = case.X.copy()
    part = X[:, :n_numbers]
    part[np.random.default_rng(3).random(part.shape) < 0.12] = np.nan
    return X


def unknown(case, X):
    """Mask of the values without a residual, by the definition of the model.

    Of a part that looks back, a row needs all columns of the part in the rows before it.
    """
    n = len(case.inputs)
    is_lost = np.array([[v != v for v in row] for row in X])
    expected = is_lost[:, :n].copy()
    starts = np.cumsum([0, *LENGTHS[:-1]])
    series = [c for c in range(n) if case.orders[c]]
    for c, (inputs, order) in enumerate(zip(case.inputs, case.orders, strict=True)):
        expected[:, c] |= is_lost[:, list(inputs)].any(axis=1)
        for lag in range(1, order + 1):
            expected[lag:, c] |= is_lost[:-lag, series].any(axis=1)
            expected[(starts[:, None] + np.arange(lag)).ravel(), c] = True
    return expected


def fitted(case, X):
    hmm = HCRPHMM(emission=case.emission, n_burnin=20, n_draws=2, random_state=0)
    return hmm.fit(X, lengths=LENGTHS)


@pytest.mark.filterwarnings("ignore:.* input")
@pytest.mark.parametrize("name", CASES)
def test_a_residual_is_missing_exactly_where_its_part_has_no_density(name):
    case = CASES[name]
    X = with_gaps(case)
    hmm = fitted(case, X)
    expected = unknown(case, X)
    assert 0.1 < expected.mean() < 0.8
    residuals = hmm.residuals(X, lengths=LENGTHS)
    np.testing.assert_array_equal(np.isnan(residuals), expected)
    has_no_density = expected.all(axis=1)
    log_probs = hmm.score_samples(X, lengths=LENGTHS)
    np.testing.assert_array_equal(log_probs == 0, has_no_density)
    # Live, some rows at once and others one by one.
    first = 0
    for length in LENGTHS:
        live, rows = OnlineFilter(hmm, draws="all"), X[first : first + length]
        found = [live.update(rows[:9]), *(live.update(row[None]) for row in rows[9:])]
        seen = {key: np.concatenate([each[key] for each in found]) for key in found[0]}
        here = slice(first, first + length)
        np.testing.assert_array_equal(np.isnan(seen["residuals"]), expected[here])
        for key in ("log_prob", "surprise", "joint_surprise"):
            np.testing.assert_array_equal(seen[key] == 0, has_no_density[here], key)
        assert not seen["is_alarm"][has_no_density[here]].any()
        first += length


@pytest.mark.filterwarnings("ignore:.* input")
@pytest.mark.parametrize("name", ["two columns", "mixed"])
def test_joint_surprise_counts_known_values_only(name, monkeypatch):
    case = CASES[name]
    X = with_gaps(case)
    hmm = fitted(case, X)
    monkeypatch.setattr(online, "joint_residuals", lambda *given: np.ones(given[3].shape))
    n_known = (~unknown(case, X)).sum(axis=1)[: LENGTHS[0]]
    found = OnlineFilter(hmm).update(X[: LENGTHS[0]]).joint_surprise
    probs = np.where(n_known, gammaincc(np.maximum(n_known, 1) / 2, n_known / 2), 1.0)
    np.testing.assert_allclose(found, -np.log(probs), atol=1e-12)


@pytest.mark.filterwarnings("ignore:.* input")
@pytest.mark.parametrize("name", OF_SUBJECTS)
def test_rows_of_subjects(name):
    """Of the fit and, where residuals of new ones exist, of new ones."""
    case = OF_SUBJECTS[name]
    X = with_gaps(case, -1)
    hmm = fitted(case, X)
    new = X.copy()
    new[: LENGTHS[0], -1] = "new"
    for rows in (X,) if name == "counts" else (X, new):
        expected = unknown(case, rows)
        residuals = hmm.residuals(rows, lengths=LENGTHS)
        np.testing.assert_array_equal(np.isnan(residuals), expected)
        log_probs = hmm.score_samples(rows, lengths=LENGTHS)
        np.testing.assert_array_equal(log_probs == 0, expected[:, 0])


def test_rows_after_gaps_are_no_heavy_tails():
    """A random walk with lost rows is an autoregression: it has no misfit and few alarms."""
    rng = np.random.default_rng(0)
    X = np.cumsum(rng.normal(size=(1500, 1)), axis=0)
    X[rng.random(1500) < 0.1] = np.nan
    hmm = HCRPHMM(emission=AutoregressiveNormal(1), n_burnin=40, n_draws=5, random_state=0).fit(X)
    assert not hmm.diagnose().misfits
    assert 0.95 < np.nanstd(hmm.residuals(X)) < 1.05
    assert OnlineFilter(hmm, level=0.001).update(X).is_alarm.mean() < 0.005
