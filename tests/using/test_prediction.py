"""Coming and missing observations, against all paths of tiny models."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest
from reference import conjugate
from reference.enumeration import DirichletEmission, HCRPEmission, SeatingCounts, frozen_hmm
from reference.statistics import unbiased_mean_test
from scipy import stats

from skihmm import HCRPHMM
from skihmm._using.imputation import choose_draws, impute_drawn, impute_expected
from skihmm.core._random import RandomStream
from skihmm.emissions import (
    BetaBernoulli,
    BetaNegativeBinomial,
    DirichletCategorical,
    GammaGamma,
    GammaPoisson,
    HCRPCategorical,
    NormalInverseGamma,
    NormalInverseWishart,
    ProductEmission,
)
from skihmm.posterior import PosteriorPredictive

LETTERS = np.array(list("abcd"), dtype=object)
NAN = np.nan

# Emission, training data (which states can tell apart), and data to go on from.  The
# latter are two sequences, of two and of three steps.
_SYMBOLS = np.array([[0, 1], [1, 2], [0, 1], [2, 0]] * 4)
_NUMBERS = np.array([[0.1, 5.0], [3.0, -2.0], [0.4, 4.5], [9.0, 0.2]] * 4)
_NUMBERS += np.random.default_rng(0).normal(scale=0.3, size=_NUMBERS.shape)
_COUNTS = np.array([[0, 15], [9, 2], [1, 12], [30, 0]] * 4)
_BITS = np.array([[0, 1, 1], [1, 0, 0], [0, 1, 1], [1, 1, 0]] * 4)
CASES = {
    "hcrp": (HCRPCategorical(), _SYMBOLS[:, :1], [[0], [2], [1], [None], [0]]),
    "hcrp, two columns": (
        HCRPCategorical(categories=[[0, 1, 2], [0, 1, 2]]),
        _SYMBOLS,
        [[0, 1], [NAN, 7], [1, NAN], [NAN, NAN], [0, 1]],
    ),
    "hcrp, strings": (
        HCRPCategorical(handle_unknown="missing"),
        LETTERS[_SYMBOLS[:, 1:]],
        [["b"], ["z"], [None], ["c"], ["b"]],
    ),
    "dirichlet": (
        DirichletCategorical(0.4, handle_unknown="missing"),
        _SYMBOLS[:, :1],
        [[0], [2], [1], [NAN], [0]],
    ),
    "dirichlet, two columns": (
        DirichletCategorical(0.4),
        _SYMBOLS,
        [[0, 1], [2, 0], [1, NAN], [NAN, 2], [0, 9]],
    ),
    "gaussian": (
        NormalInverseWishart(mean=1.0, strength=0.3, dof=3.0, scale=[[0.7]]),
        _NUMBERS[:, :1],
        [[0.0], [9.0], [3.1], [NAN], [0.2]],
    ),
    "gaussian, two columns": (
        NormalInverseWishart(
            mean=[1.0, 0.0], strength=0.3, dof=4.5, scale=[[1.0, 0.3], [0.3, 0.8]]
        ),
        _NUMBERS,
        [[0.0, 5.1], [NAN, NAN], [3.0, -2.2], [0.1, NAN], [8.8, 0.0]],
    ),
    "diagonal gaussian": (
        NormalInverseGamma(mean=1.0, strength=0.3, shape=1.5, scale=0.5),
        _NUMBERS[:, :1],
        [[0.0], [9.0], [3.1], [NAN], [0.2]],
    ),
    "diagonal gaussian, two columns": (
        NormalInverseGamma(mean=[1.0, 0.0], strength=0.3, shape=1.5, scale=[0.5, 0.8]),
        _NUMBERS,
        [[0.0, 5.1], [NAN, NAN], [3.0, -2.2], [0.1, NAN], [8.8, 0.0]],
    ),
    "poisson": (GammaPoisson(2.0, 0.3), _COUNTS[:, :1], [[0], [31], [9], [NAN], [1]]),
    "poisson, two columns": (
        GammaPoisson([2.0, 1.0], [0.3, 0.2]),
        _COUNTS,
        [[0, 14], [NAN, NAN], [9, 2], [NAN, 13], [30, 0]],
    ),
    "negative binomial": (
        BetaNegativeBinomial([2.0, 1.0], [0.3, 0.2], [0.5, 0.1]),
        _COUNTS,
        [[0, 14], [NAN, NAN], [9, 2], [NAN, 13], [30, 0]],
    ),
    "gamma": (
        GammaGamma([2.0, 3.0], [3.0, 5.0], [0.5, 0.1]),
        0.5 + _COUNTS,
        [[0.1, 14.5], [NAN, NAN], [9.0, 2.2], [NAN, 13.1], [30.5, 0.5]],
    ),
    "bernoulli": (
        BetaBernoulli(0.5, 0.8),
        _BITS,
        [[0, 1, 1], [NAN, 0, 0], [1, 0, 0], [NAN, 1, NAN], [NAN, NAN, NAN]],
    ),
}
NAMES = tuple(CASES)
SYMBOLS = tuple(name for name in NAMES if name.startswith(("hcrp", "dirichlet")))
NUMBERS = tuple(name for name in NAMES if name not in SYMBOLS)
LENGTHS = [2, 3]


def fit(emission, X, **params):
    """A model with three draws of few states."""
    settings = {
        "n_burnin": 30,
        "n_draws": 3,
        "thin": 3,
        "n_particles": 20,
        "random_state": 1,
        **params,
    }
    return HCRPHMM(emission=emission, **settings).fit(X)


@pytest.fixture(scope="module")
def models():
    """``model(name)``: the fitted model of a case, made once."""
    made = {}

    def model(name):
        if name not in made:
            emission, X, _ = CASES[name]
            made[name] = fit(emission, X)
        return made[name]

    return model


def data_of(case):
    """Data of a case as one array of objects."""
    return np.array(CASES[case][2], dtype=object)


class Twin:
    """One draw with its seating frozen, as plain arrays; sums over all paths."""

    def __init__(self, model, draw, X, seating_counts):
        self.emission = model.emission_
        self.is_symbols = isinstance(self.emission, HCRPCategorical | DirichletCategorical)
        self.n_states = draw.n_states
        if self.is_symbols:
            counts, columns = seating_counts(draw), []
            # Columns may have different numbers of symbols.
            for c, n_symbols in enumerate(self.emission.n_symbols_):
                oracle = (
                    HCRPEmission(n_symbols, draw.emission["alpha"], draw.emission["gamma"])
                    if isinstance(self.emission, HCRPCategorical)
                    else DirichletEmission(n_symbols, self.emission.concentration)
                )
                one = SeatingCounts(counts.n, counts.m, [counts.c[c]], [counts.e[c]])
                self.initial, self.transmat, symbols = frozen_hmm(
                    one, oracle, draw.alpha, draw.gamma
                )
                columns.append(symbols[0])
            self.symbols = columns
            return
        empty = {"columns": []}
        counts = seating_counts(type(draw)(**{**vars(draw), "emission": empty}))
        self.initial, self.transmat, _ = frozen_hmm(
            counts, DirichletEmission(1), draw.alpha, draw.gamma
        )
        values = self.emission.encode_values(X)
        self.seen = [values[draw.states == k] for k in range(draw.n_states)]
        self.seen.append(values[:0])
        self.family = {
            NormalInverseWishart: lambda e: conjugate.FullGaussian(
                tuple(e.mean_), e.strength, e.dof_, tuple(map(tuple, e.scale_))
            ),
            NormalInverseGamma: lambda e: conjugate.DiagonalGaussian(
                tuple(e.mean_), e.strength, e.shape, tuple(e.scale_)
            ),
            GammaPoisson: lambda e: conjugate.Poisson(tuple(e.shape_), tuple(e.rate_)),
            BetaNegativeBinomial: lambda e: conjugate.NegativeBinomial(
                tuple(e.shape_), tuple(e.rate_), tuple(e.dispersion_)
            ),
            GammaGamma: lambda e: conjugate.Gamma(
                tuple(e.shape_), tuple(e.scale_), tuple(e.dispersion_)
            ),
            BetaBernoulli: lambda e: conjugate.Bernoulli(e.a, e.b),
        }[type(self.emission)](self.emission)

    def likelihood(self, code):
        """p(code | k) of all states, missing entries left out."""
        if self.is_symbols:
            seen = [c for c in range(len(code)) if code[c] >= 0]
            probs = [self.symbols[c][:, code[c]] for c in seen]
            return np.prod([np.ones(self.n_states + 1), *probs], axis=0)
        family = self.family
        log_density = (
            family.log_observed
            if isinstance(family, conjugate.FullGaussian)
            else family.log_predictive
        )
        return np.exp([log_density(seen, code) for seen in self.seen])

    def means(self):
        """Predictive means, (n_states + 1, n_columns)."""
        family, out = self.family, []
        for seen in self.seen:
            if isinstance(family, conjugate.FullGaussian):
                seen = seen[~np.isnan(seen).any(axis=1)]
            n = (~np.isnan(seen)).sum(axis=0)
            total = np.nansum(seen, axis=0)
            if isinstance(family, conjugate.Poisson):
                out.append((family.shape + total) / (family.rate + n))
            elif isinstance(family, conjugate.NegativeBinomial):
                r = 1 / np.array(family.dispersion)
                a = r * (np.array(family.rate) + n)
                out.append(r * (family.shape + total) / np.where(a > 1, a - 1, a))
            elif isinstance(family, conjugate.Gamma):
                dispersion = np.array(family.dispersion)
                a = family.shape + n / dispersion
                rate = family.scale * dispersion + total
                out.append(rate / dispersion / np.where(a > 1, a - 1, a))
            elif isinstance(family, conjugate.Bernoulli):
                out.append((family.a + total) / (family.a + family.b + n))
            else:
                prior = family.strength * np.array(family.mean)
                out.append((prior + total) / (family.strength + n))
        return np.array(out)

    def paths(self, codes):
        """p(path, codes) of one sequence, one dimension per step."""
        joint = self.initial * self.likelihood(codes[0])
        for code in codes[1:]:
            joint = joint[..., None] * self.transmat * self.likelihood(code)
        return joint

    def smooth(self, codes):
        """p(x[t] | codes) of one sequence."""
        joint = self.paths(codes)
        steps = range(joint.ndim)
        probs = [joint.sum(axis=tuple(set(steps) - {t})) for t in steps]
        return np.array(probs) / joint.sum()

    def following(self, codes, n_steps):
        """p(x of the coming steps | codes) of one sequence."""
        nothing = np.full_like(codes[:1], -1 if self.is_symbols else NAN)
        extended = np.concatenate([codes, *[nothing] * n_steps])
        return self.smooth(extended)[len(codes) :]


def twins(model, name, seating_counts):
    """Twins of all draws of a case, and the codes that it goes on from."""
    X = CASES[name][1]
    made = [Twin(model, draw, X, seating_counts) for draw in model.draws_.thinned()]
    assert len(made) == 3
    return made, model.emission_.encode_values(data_of(name))


# -- the coming observations ----------------------------------------------------------

COMING = 2


@pytest.mark.parametrize("name", SYMBOLS)
def test_probabilities_of_symbols_against_all_paths(name, models, seating_counts):
    model = models(name)
    made, codes = twins(model, name, seating_counts)
    following = model.predict_next(data_of(name), COMING, lengths=LENGTHS)
    for c in range(codes.shape[1]):
        expected = np.mean(
            [twin.following(codes[2:], COMING) @ twin.symbols[c] for twin in made], axis=0
        )
        found = following.proba(c)
        np.testing.assert_allclose(found, expected, rtol=1e-10)
        np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)
        n_cells = len(model.emission_.categories_[c])
        n_cells += model.emission_.handle_unknown == "base"
        assert found.shape == (COMING, n_cells)
    with pytest.raises(ValueError, match=r"All columns hold symbols.* Use proba"):
        following.mean()


@pytest.mark.parametrize("name", NUMBERS)
def test_means_against_all_paths(name, models, seating_counts):
    model = models(name)
    made, codes = twins(model, name, seating_counts)
    following = model.predict_next(data_of(name), COMING, lengths=LENGTHS)
    expected = np.mean([twin.following(codes[2:], COMING) @ twin.means() for twin in made], axis=0)
    np.testing.assert_allclose(following.mean(), expected, rtol=1e-10)
    with pytest.raises(ValueError, match="Column 0 holds numbers"):
        following.proba()


# For every case two coming steps.
NEXT = {
    "hcrp": [[2], [99]],
    "hcrp, two columns": [[NAN, 2], [1, 99]],
    "hcrp, strings": [["c"], ["b"]],
    "dirichlet": [[2], [0]],
    "dirichlet, two columns": [[2, 2], [NAN, 0]],
    "gaussian": [[2.5], [20.0]],
    "gaussian, two columns": [[2.5, 1.0], [0.0, 5.0]],
    "diagonal gaussian": [[2.5], [-20.0]],
    "diagonal gaussian, two columns": [[2.5, NAN], [0.0, 5.0]],
    "poisson": [[7], [100]],
    "poisson, two columns": [[7, NAN], [0, 15]],
    "negative binomial": [[7, NAN], [0, 15]],
    "gamma": [[7.5, NAN], [0.2, 15.0]],
    "bernoulli": [[1, NAN, 0], [1, 1, 1]],
}


@pytest.mark.parametrize("name", NAMES)
def test_log_probabilities_of_the_coming_steps(name, models, seating_counts):
    """Against all paths, and against the evidence of X with one step more."""
    model = models(name)
    made, codes = twins(model, name, seating_counts)
    X, X_next = data_of(name), np.array(NEXT[name], dtype=object)
    found = model.predict_next(X, 2, lengths=LENGTHS).log_prob(X_next)
    coming = model.emission_.encode_values(X_next)
    expected = np.mean(
        [
            [
                probs @ twin.likelihood(code)
                for probs, code in zip(twin.following(codes[2:], 2), coming, strict=True)
            ]
            for twin in made
        ],
        axis=0,
    )
    np.testing.assert_allclose(found, np.log(expected), rtol=1e-9)
    one = model.predict_next(X, lengths=LENGTHS).log_prob(X_next[:1])
    assert one[0] == pytest.approx(found[0], rel=1e-12)
    # The second step alone: what lies before it is not observed.
    longer = [np.concatenate([codes[2:], coming[:1]])]
    gap = np.full_like(coming[:1], -1 if made[0].is_symbols else NAN)
    longer.append(np.concatenate([codes[2:], gap, coming[1:]]))
    for i, extended in enumerate(longer):
        gain = [twin.paths(extended).sum() / twin.paths(codes[2:]).sum() for twin in made]
        assert found[i] == pytest.approx(np.log(np.mean(gain)), rel=1e-9)
    missing = np.full(X_next.shape, None)
    assert (model.predict_next(X, 2, lengths=LENGTHS).log_prob(missing) == 0.0).all()


@pytest.mark.parametrize("name", ["hcrp, two columns", "diagonal gaussian, two columns"])
def test_weights_of_draws_are_their_multiplicity(name, models):
    model, X = models(name), data_of(name)
    draws, sequences = model.draws_.thinned(), model._fitted.encode(X, None, None)

    def predicted(draws, weights=None):
        one = PosteriorPredictive(draws, sequences, model.emission_, 2, 0, weights=weights)
        numbers = one.proba() if name in SYMBOLS else one.mean()
        filled = [
            fill(draws, sequences, model.emission_, np.random.SeedSequence(1), one._weights)
            for fill in (impute_expected, impute_drawn)
        ]
        return [numbers, one.log_prob(NEXT[name]), one.cdf(NEXT[name]), *filled], one

    plain, equal = predicted(draws), predicted(draws, np.full(3, 0.2))
    for found, expected in zip(equal[0], plain[0], strict=True):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(equal[1].sample(20), plain[1].sample(20))
    weighted = predicted(draws, np.array([1.0, 2.0, 1.0]))[0]
    repeated = predicted([*draws, draws[1]])[0]
    for found, expected in zip(weighted[:4], repeated[:4], strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    # A draw that has nearly all the weight is nearly always the one that is sampled.
    weights = np.array([1.0, 1e9, 1.0])
    stream = RandomStream(np.random.SeedSequence(0))
    chosen = choose_draws(weights / 1e9, stream, 1000)
    np.testing.assert_array_equal(chosen, 1)
    for wrong in ([1.0, 2.0], [1.0, 0.0, 1.0], [1.0, NAN, 1.0]):
        with pytest.raises(ValueError, match="expected 3 numbers > 0"):
            predicted(draws, wrong)


@pytest.mark.parametrize("name", ["hcrp", "gaussian"])
def test_only_the_last_sequence_goes_on(name, models):
    model = models(name)
    X = data_of(name)
    whole = model.predict_next(X, 2, lengths=LENGTHS)
    last = model.predict_next(X[2:], 2)
    grouped = model.predict_next(X, 2, groups=["a", "a", "b", "b", "b"])
    joined = model.predict_next(X, 2)
    for other in (last, grouped):
        np.testing.assert_allclose(
            other.log_prob(NEXT[name]), whole.log_prob(NEXT[name]), rtol=1e-14
        )
    assert not np.allclose(joined.log_prob(NEXT[name]), whole.log_prob(NEXT[name]))


# Without a cell for unknown symbols, which are never drawn.
KNOWN_ONLY = ("hcrp, strings", "dirichlet")


@pytest.mark.statistical
@pytest.mark.parametrize("name", KNOWN_ONLY)
def test_drawn_futures_have_the_joint_law_of_all_steps(
    name, models, seating_counts, global_random_seed
):
    model = models(name)
    made, codes = twins(model, name, seating_counts)
    following = model.predict_next(data_of(name), 2, lengths=LENGTHS)
    n = 20_000
    X = following.sample(n, random_state=global_random_seed)
    assert X.shape == (n, 2, 1)
    values = model.emission_.categories_[0]
    law = 0.0
    for twin in made:
        nothing = np.full_like(codes[:1], -1)
        joint = twin.paths(np.concatenate([codes[2:], nothing, nothing]))
        pairs = joint.sum(axis=(0, 1, 2)) / joint.sum()
        law = law + twin.symbols[0].T @ pairs @ twin.symbols[0] / len(made)
    place = {value: i for i, value in enumerate(values.tolist())}
    cells = np.array([[place[w] for w in row] for row in X[:, :, 0].tolist()])
    counts = np.bincount(cells[:, 0] * len(values) + cells[:, 1], minlength=law.size)
    assert stats.chisquare(counts, n * law.ravel()).pvalue > 1e-4
    # A test that could not tell independent steps from these would be no use.
    independent = law.sum(axis=1)[:, None] * law.sum(axis=0)
    assert stats.chisquare(counts, n * independent.ravel()).pvalue < 1e-4
    np.testing.assert_allclose(law.sum(axis=1), following.proba()[0], rtol=1e-9)


def student(family, seen, direction):
    """Predictive distribution of a linear combination of the columns of a Gaussian."""
    seen = seen[~np.isnan(seen).any(axis=1)]
    n, prior = len(seen), np.array(family.mean)
    strength = family.strength + n
    centre = seen.mean(axis=0) if n else prior
    off = centre - prior
    spread = (seen - centre).T @ (seen - centre)
    spread = spread + family.strength * n / strength * np.outer(off, off)
    if isinstance(family, conjugate.FullGaussian):
        free = family.dof + n - len(prior) + 1
        spread = np.array(family.scale) + spread
    else:
        # One column: the inverse gamma's shape and scale are half of these.
        free = 2 * family.shape + n
        spread = 2 * np.diag(family.scale) + spread
    spread = spread * (strength + 1) / (strength * free)
    mean = (family.strength * prior + n * centre) / strength
    return stats.t(free, direction @ mean, np.sqrt(direction @ spread @ direction))


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("name", "direction"),
    [("diagonal gaussian", [1.0]), ("gaussian", [1.0]), ("gaussian, two columns", [1.0, -0.5])],
)
def test_drawn_numbers_have_the_predictive_density(
    name, direction, models, seating_counts, global_random_seed
):
    model = models(name)
    made, codes = twins(model, name, seating_counts)
    following = model.predict_next(data_of(name), 2, lengths=LENGTHS)
    X = following.sample(5000, random_state=global_random_seed)
    assert X.shape == (5000, 2, len(direction))
    for step in range(2):

        def cdf(y, step=step):
            total = 0.0
            for twin in made:
                probs = twin.following(codes[2:], 2)[step]
                for p, seen in zip(probs, twin.seen, strict=True):
                    law = student(twin.family, seen, np.array(direction))
                    total = total + p * law.cdf(y) / len(made)
            return total

        assert stats.kstest(X[:, step] @ direction, cdf).pvalue > 1e-4


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["poisson", "poisson, two columns", "bernoulli"])
def test_drawn_counts_have_the_predictive_probabilities(
    name, models, seating_counts, global_random_seed
):
    model = models(name)
    following = model.predict_next(data_of(name), 2, lengths=LENGTHS)
    n = 5000
    X = following.sample(n, random_state=global_random_seed)
    assert X.dtype == np.int64
    top = [2] * X.shape[2] if name == "bernoulli" else [30] * X.shape[2]
    cells = np.stack(np.meshgrid(*map(np.arange, top), indexing="ij"), axis=-1)
    cells = cells.reshape(-1, X.shape[2])
    made, codes = twins(model, name, seating_counts)
    for step in range(2):
        law = np.zeros(len(cells))
        for twin in made:
            probs = twin.following(codes[2:], 2)[step]
            law += [probs @ twin.likelihood(cell) for cell in cells.astype(float)]
        law /= len(made)
        inside = (X[:, step] < top).all(axis=1)
        at = np.ravel_multi_index(X[inside, step].T, top)
        counts = np.append(np.bincount(at, minlength=len(cells)), (~inside).sum())
        law = np.append(law, 1 - law.sum())
        rare = n * law < 5
        counts = np.append(counts[~rare], counts[rare].sum())
        law = np.append(law[~rare], law[rare].sum())
        if counts[-1] == 0 and n * law[-1] < 1e-6:
            counts, law = counts[:-1], law[:-1] / law[:-1].sum()
        assert len(counts) >= 4
        assert stats.chisquare(counts, n * law).pvalue > 1e-4


def test_symbols_that_fit_did_not_see_are_not_drawn(models):
    model = models("hcrp")
    following = model.predict_next(CASES["hcrp"][1])
    assert following.proba().shape == (1, 4)
    assert following.proba()[0, -1] > 1e-3
    X = following.sample(5000, random_state=0)
    assert set(X.ravel().tolist()) == {0, 1, 2}


def test_futures_depend_on_the_seed_only(models):
    model, X = models("hcrp, two columns"), CASES["hcrp, two columns"][1]
    first, second = (model.predict_next(X, 3) for _ in range(2))
    np.testing.assert_array_equal(first.sample(50), second.sample(50))
    np.testing.assert_array_equal(first.sample(50, 7), second.sample(50, 7))
    assert (first.sample(50, 7) != first.sample(50, 8)).any()
    assert (first.sample(50, 1) == first.sample(50)).all()  # the estimator's seed is 1
    states = np.random.RandomState(3), np.random.RandomState(3)
    np.testing.assert_array_equal(first.sample(9, states[0]), second.sample(9, states[1]))
    assert (first.sample(9, states[0]) != first.sample(9, states[0])).any()


def test_kinds_of_data_to_go_on_from(models):
    model, X = models("hcrp, strings"), data_of("hcrp, strings")
    expected = model.predict_next(X).proba()
    masked = np.ma.masked_equal(np.where(X == None, "-", X).astype("U1"), "-")  # noqa: E711
    for other in (X.tolist(), masked, pd.DataFrame(X)):
        np.testing.assert_array_equal(model.predict_next(other).proba(), expected)
    following = model.predict_next(X, 2)
    expected = following.log_prob([["b"], [None]])
    assert expected[0] < 0.0
    assert expected[1] == 0.0
    coming = np.ma.MaskedArray(np.array([["b"], ["a"]]), [[False], [True]])
    for other in (coming, pd.DataFrame([["b"], [None]])):
        np.testing.assert_array_equal(following.log_prob(other), expected)


def test_far_away_the_state_is_forgotten():
    """The chain of states is ergodic: distant steps have one and the same law."""
    X = CASES["dirichlet"][1]
    model = fit(DirichletCategorical(), X)
    proba = model.predict_next(X, 2000).proba()
    assert abs(proba[0] - proba[-1]).max() > 0.05
    np.testing.assert_allclose(proba[-2], proba[-1], rtol=1e-6)


def test_columns_by_name():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=30), "word": rng.choice(["a", "b"], size=30)})
    emission = ProductEmission(
        [("words", "dirichlet", ["word"]), ("numbers", "diagonal_gaussian", ["x"])]
    )
    hmm = HCRPHMM(emission=emission, n_burnin=10, n_draws=3, random_state=0).fit(X)
    following = hmm.predict_next(X, 2)
    np.testing.assert_array_equal(following.proba("word"), following.proba(1))
    assert np.isnan(following.mean()[:, 1]).all()
    assert np.isfinite(following.mean()[:, 0]).all()
    with pytest.raises(ValueError, match="Column 'x' holds numbers"):
        following.proba("x")
    with pytest.raises(ValueError, match=r"column='y', but .* have the names \['x', 'word'\]"):
        following.proba("y")
    expected = following.log_prob(X[:2])
    np.testing.assert_array_equal(following.log_prob(X[:2].to_numpy()), expected)
    with pytest.raises(ValueError, match=r"columns \['word', 'x'\]; expected \['x', "):
        following.log_prob(X[["word", "x"]][:2])
    with pytest.raises(ValueError, match=r"column='word', but .* have no names"):
        HCRPHMM(n_burnin=2, n_draws=2).fit([[0], [1]]).predict_next([[0]]).proba("word")


def test_errors_of_predict_next(models):
    model, X = models("hcrp, two columns"), CASES["hcrp, two columns"][1]
    with pytest.raises(Exception, match="is not fitted yet"):
        HCRPHMM().predict_next(X)
    for wrong, error in ((0, ValueError), (-1, ValueError), (1.5, TypeError)):
        with pytest.raises(error, match="n_steps"):
            model.predict_next(X, wrong)
    with pytest.raises(ValueError, match="X has 1 features, but HCRPHMM is expecting 2"):
        model.predict_next(X[:, :1])
    following = model.predict_next(X, 2)
    with pytest.raises(ValueError, match="column=2, but the data have 2 columns"):
        following.proba(2)
    with pytest.raises(ValueError, match="column=-1; expected an integer >= 0"):
        following.proba(-1)
    for wrong in ([[0, 1]], [[0], [1]], [[0, 1]] * 3):
        with pytest.raises(ValueError, match="expected a row for each of the 2 pred"):
            following.log_prob(wrong)
    with pytest.raises(ValueError, match="Negative values in data"):
        following.log_prob([[0, 1], [-1, 0]])
    with pytest.raises(ValueError, match="n_samples=0; expected an integer >= 1"):
        following.sample(0)
    with pytest.raises(ValueError, match="random_state='a'"):
        following.sample(1, "a")
    with pytest.warns(UserWarning, match="All entries of X are missing"):
        empty = fit(HCRPCategorical(), np.full((5, 1), NAN))
    with pytest.raises(ValueError, match="no observed symbol in fit"):
        empty.predict_next(np.full((5, 1), NAN)).sample()


def test_object_of_predict_next(models):
    following = models("hcrp").predict_next(CASES["hcrp"][1], 4)
    assert isinstance(following, PosteriorPredictive)
    assert repr(following) == "<PosteriorPredictive: 4 steps, 3 draws>"
    assert (following.n_steps, following.n_features, following.n_draws) == (4, 1, 3)


# -- missing observations -------------------------------------------------------------


def is_missing(X):
    """Entries of an array of objects that are None or NaN."""
    return np.array([[v is None or v != v for v in row] for row in X.tolist()])


def smoothed(twin, codes, lengths=LENGTHS):
    """p(x[t] | codes) of all sequences."""
    parts = np.split(codes, np.cumsum(lengths)[:-1])
    return np.concatenate([twin.smooth(part) for part in parts])


@pytest.mark.parametrize("name", NAMES)
def test_expectations_against_all_paths(name, models, seating_counts):
    model = models(name)
    made, codes = twins(model, name, seating_counts)
    X = data_of(name)
    before = X.copy()
    found = model.impute(X, lengths=LENGTHS)
    missing = is_missing(X)
    assert missing.any()
    assert found.shape == X.shape
    np.testing.assert_array_equal(is_missing(X), is_missing(before))
    assert found[~missing].tolist() == before[~missing].tolist()
    probs = [smoothed(twin, codes) for twin in made]
    for t, c in np.argwhere(missing):
        if name == "gaussian, two columns" and not missing[t].all():
            continue  # What is observed says more: tests/emissions/test_gaps.py.
        if name in SYMBOLS:
            values = model.emission_.categories_[c]
            each = [p[t] @ twin.symbols[c] for p, twin in zip(probs, made, strict=True)]
            best = np.mean(each, axis=0)[: len(values)].argmax()
            assert found[t, c] == values[best]
        else:
            each = [p[t] @ twin.means() for p, twin in zip(probs, made, strict=True)]
            mean = np.mean(each, axis=0)[c]
            if name.startswith(("poisson", "bernoulli", "negative")):
                mean = round(mean)
            assert found[t, c] == pytest.approx(mean, rel=1e-9)


def imputed(model, X, n, **given):
    """Many imputations of X."""
    return np.array([model.impute(X, method="sample", random_state=i, **given) for i in range(n)])


@pytest.fixture(scope="module")
def imputations(models):
    """``imputations(name)``: 400 imputations of the data of a case, made once."""
    return cache(lambda name: imputed(models(name), data_of(name), 400, lengths=LENGTHS))


@pytest.mark.statistical
@pytest.mark.parametrize("name", KNOWN_ONLY)
def test_drawn_symbols_have_their_joint_law(name, models, seating_counts):
    model = models(name)
    made, _ = twins(model, name, seating_counts)
    values = model.emission_.categories_[0]
    X = np.array([[values[0]], [None], [None], [values[1]], [None]], dtype=object)
    codes = model.emission_.encode_values(X)
    law = 0.0
    for twin in made:
        first, second = twin.paths(codes[:3]), twin.paths(codes[3:])
        pairs = first.sum(axis=0) / first.sum()
        pairs = twin.symbols[0].T @ pairs @ twin.symbols[0]
        single = second.sum(axis=0) / second.sum() @ twin.symbols[0]
        law = law + pairs[..., None] * single / len(made)
    n = 1000
    found = imputed(model, X, n, lengths=[3, 2])
    assert (found[:, [0, 3], 0] == [values[0], values[1]]).all()
    place = {value: i for i, value in enumerate(values.tolist())}
    cells = [[place[w] for w in row] for row in found[:, [1, 2, 4], 0].tolist()]
    at = np.ravel_multi_index(np.transpose(cells), law.shape)
    counts = np.bincount(at, minlength=law.size)
    assert stats.chisquare(counts, n * law.ravel()).pvalue > 1e-4
    # The two neighbours do not vary independently.
    pair, single = law.sum(axis=2), law.sum(axis=(0, 1))
    apart = pair.sum(axis=1)[:, None] * pair.sum(axis=0)
    apart = apart[..., None] * single
    assert stats.chisquare(counts, n * apart.ravel()).pvalue < 1e-4


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("name", "row", "direction"),
    [
        ("diagonal gaussian", 3, [1.0]),
        ("diagonal gaussian, two columns", 3, [0.0, 1.0]),
        ("gaussian, two columns", 1, [1.0, -0.5]),
    ],
)
def test_drawn_numbers_have_their_law(name, row, direction, models, imputations, seating_counts):
    model = models(name)
    made, codes = twins(model, name, seating_counts)
    values = imputations(name)[:, row].astype(float) @ direction

    def law_of(family, seen):
        if name != "diagonal gaussian, two columns":
            return student(family, seen, np.array(direction))
        # Only the missing one of independent columns.
        column = conjugate.DiagonalGaussian(
            family.mean[1:], family.strength, family.shape, family.scale[1:]
        )
        return student(column, seen[:, 1:], np.ones(1))

    laws = [[law_of(twin.family, seen) for seen in twin.seen] for twin in made]
    probs = [smoothed(twin, codes)[row] for twin in made]

    def cdf(y):
        return sum(
            p @ [law.cdf(y) for law in states] for p, states in zip(probs, laws, strict=True)
        ) / len(made)

    assert stats.kstest(values, cdf).pvalue > 1e-4
    means = model.impute(data_of(name), lengths=LENGTHS)[row].astype(float) @ direction
    assert unbiased_mean_test(values, means).pvalue > 1e-4


def regimes(rng, n=400):
    """Data of three regimes that last, as numbers and as symbols, and their states."""
    states = np.repeat(rng.permutation(np.arange(n // 10) % 3), 10)
    numbers = np.array([[0.0, 8.0], [6.0, -3.0], [-7.0, 1.0]])[states]
    numbers += rng.normal(size=numbers.shape)
    symbols = (2 * states + (rng.random(n) < 0.1))[:, None]
    return numbers, symbols


@pytest.mark.parametrize("emission", ["gaussian", "diagonal_gaussian"])
def test_held_out_numbers_are_found_again(emission, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    X, _ = regimes(rng)
    hidden = rng.random(X.shape) < 0.2
    holed = np.where(hidden, NAN, X)
    model = HCRPHMM(emission=emission, n_burnin=100, n_draws=20, random_state=0)
    model.fit(holed)
    means = np.where(hidden, np.nanmean(holed, axis=0), X)
    single = model.impute(holed)
    drawn = model.impute(holed, method="sample")

    def error(filled):
        np.testing.assert_array_equal(filled[~hidden], X[~hidden])
        return np.sqrt(np.mean((filled - X)[hidden] ** 2))

    # The noise is one; at the ends of a regime it is open which one a step belongs to.
    assert error(means) > 4.0
    assert error(single) < 2.5
    assert error(single) < error(drawn) < 4.0


def test_held_out_symbols_are_found_again(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    _, symbols = regimes(rng)
    X = np.column_stack([symbols, 10 + symbols])
    hidden = rng.random(X.shape) < 0.2
    holed = np.where(hidden, NAN, X)
    model = HCRPHMM(n_burnin=100, n_draws=20, random_state=0).fit(holed)
    filled = model.impute(holed)
    assert filled.dtype == np.int64
    np.testing.assert_array_equal(filled[~hidden], X[~hidden])
    most_frequent = np.array([[np.bincount(column).argmax() for column in X.T]])
    assert np.mean((most_frequent == X)[hidden]) < 0.5
    assert np.mean((filled == X)[hidden]) > 0.75
    drawn = model.impute(holed, method="sample")
    assert 0.6 < np.mean((drawn == X)[hidden]) < np.mean((filled == X)[hidden])


NOTHING_MISSING = [
    ("hcrp", np.array([[0], [2], [1]])),
    ("hcrp", np.array([[0.0], [2.0], [1.0]])),
    ("hcrp, strings", np.array([["a"], ["c"]])),
    ("hcrp, strings", np.array([["a"], ["c"]], dtype=object)),
    ("gaussian", np.array([[0.5], [2.0]], dtype=np.float32)),
    ("bernoulli", np.array([[True, False, True]])),
]


@pytest.mark.parametrize("method", ["expectation", "sample"])
@pytest.mark.parametrize(("name", "X"), NOTHING_MISSING)
def test_nothing_missing(name, X, method, models):
    filled = models(name).impute(X, method=method)
    assert filled is not X
    assert not np.shares_memory(filled, X)
    assert filled.dtype == X.dtype
    np.testing.assert_array_equal(filled, X)


@pytest.mark.parametrize("method", ["expectation", "sample"])
@pytest.mark.parametrize("name", NAMES)
def test_all_missing(name, method, models):
    model = models(name)
    n_columns = CASES[name][1].shape[1]
    X = np.full((6, n_columns), NAN)
    filled = model.impute(X, method=method)
    assert filled.shape == X.shape
    if name == "hcrp, strings":
        assert filled.dtype == object
        assert set(filled.ravel()) <= set("abc")
        return
    assert filled.dtype == (float if "gaussian" in name or name == "gamma" else np.int64)
    assert np.isfinite(filled).all()
    if name in SYMBOLS:
        for c, values in enumerate(model.emission_.categories_):
            assert set(filled[:, c]) <= set(values)


@pytest.mark.parametrize("method", ["expectation", "sample"])
def test_kinds_of_data(method, models):
    model = models("hcrp, two columns")
    expected = model.impute([[0, 1], [None, 7], [1, None], [9, 0]], method=method)
    assert expected.dtype == np.int64
    assert expected[3].tolist() == [9, 0]
    numbers = np.array([[0, 1], [NAN, 7], [1, NAN], [9, 0]])
    whole = np.ma.MaskedArray(np.array([[0, 1], [5, 7], [1, 5], [9, 0]]), np.isnan(numbers))
    frame = pd.DataFrame(numbers)
    for other in (
        numbers,
        np.asfortranarray(numbers),
        numbers.astype(np.float32),
        numbers.astype(np.float16),
        numbers.astype(object),
        whole,
        frame,
        frame.astype("Int64"),
    ):
        filled = model.impute(other, method=method)
        if isinstance(other, pd.DataFrame):
            assert (filled.dtypes == other.dtypes).all()
        else:
            assert type(filled) is np.ndarray
            assert filled.dtype == np.int64
        np.testing.assert_array_equal(filled, expected)


def test_strings_beside_numbers():
    X = np.column_stack([LETTERS[_SYMBOLS[:, 0]], _SYMBOLS[:, 1].astype(object)])
    model = fit(HCRPCategorical(), X)
    holed = X.copy()
    holed[3, 0] = holed[5, 1] = None
    for data in (holed, pd.DataFrame(holed)):
        filled = np.asarray(model.impute(data))
        assert filled.dtype == object
        assert filled.tolist() == X.tolist()
        assert type(filled[5, 1]) is int


@pytest.mark.parametrize("method", ["expectation", "sample"])
def test_the_cell_of_unknown_symbols_fills_no_entry(method):
    """Even where it is the most probable one."""
    model = fit(HCRPCategorical(categories=[[0, 1]]), np.array([[7], [7], [0], [7]] * 6))
    X = np.array([[7.0], [NAN], [7.0], [NAN], [NAN]])
    proba = model.predict_next(X).proba()[0]
    assert proba[-1] > 0.5
    filled = model.impute(X, method=method)
    assert filled[[0, 2], 0].tolist() == [7, 7]
    assert set(filled[[1, 3, 4], 0].tolist()) <= {0, 1}


def test_real_numbers_beside_binary_expectations():
    """Thresholded data: what is observed stays a real number."""
    X = np.array([[-1.5, 2.5], [1.5, -0.5], [-2.0, 1.0]] * 6)
    model = fit(BetaBernoulli(binarize=0.0), X)
    holed = X.copy()
    holed[4, 1] = holed[6, 0] = NAN
    filled = model.impute(holed)
    assert filled.dtype == float
    np.testing.assert_array_equal(filled[~np.isnan(holed)], X[~np.isnan(holed)])
    assert filled[4, 1] in (0.0, 1.0)
    assert filled[6, 0] in (0.0, 1.0)


def test_numbers_given_as_text_stay_text(models):
    filled = models("gaussian").impute([["0.50"], [None], [3]])
    assert filled.dtype == object
    assert filled[0, 0] == "0.50"
    assert filled[2, 0] == 3
    assert isinstance(filled[1, 0], float)


def test_large_symbols_keep_every_digit():
    large = 2**60 + 1
    X = np.array([[large], [3]] * 8)
    model = fit(HCRPCategorical(), X)
    for holed in (np.array([[3], [NAN], [3.0]]), [[3], [None], [3]]):
        filled = model.impute(holed)
        assert filled.dtype == np.int64
        assert filled.ravel().tolist() == [3, large, 3]


def test_imputations_depend_on_the_seed_only(models):
    model = models("hcrp, two columns")
    X = np.full((20, 2), NAN)
    X[::5] = 1
    first = model.impute(X, method="sample")
    np.testing.assert_array_equal(model.impute(X, method="sample"), first)
    np.testing.assert_array_equal(
        model.impute(X, method="sample", random_state=1),  # the estimator's
        first,
    )
    others = imputed(model, X, 20)
    assert len({other.tobytes() for other in others}) > 10
    # Expectations have no randomness.
    np.testing.assert_array_equal(model.impute(X), model.impute(X, random_state=5))


def test_errors_of_impute(models):
    model, X = models("hcrp, two columns"), data_of("hcrp, two columns")
    with pytest.raises(Exception, match="is not fitted yet"):
        HCRPHMM().impute(X)
    for wrong in ("mean", None, 1):
        with pytest.raises(ValueError, match="expected one of 'expectation', 'sample'"):
            model.impute(X, method=wrong)
    with pytest.raises(ValueError, match="X has 1 features, but HCRPHMM is expecting 2"):
        model.impute(X[:, :1])
    with pytest.raises(ValueError, match="random_state='a'"):
        model.impute(X, method="sample", random_state="a")
    with pytest.raises(ValueError, match="lengths sum to 4"):
        model.impute(X, lengths=[2, 2])
    with pytest.raises(ValueError, match="Both groups and lengths"):
        model.impute(X, lengths=[5], groups=[0] * 5)
    with pytest.warns(UserWarning, match="All entries of X are missing"):
        empty = fit(HCRPCategorical(), np.full((5, 1), NAN))
    with pytest.raises(ValueError, match="no observed symbol in fit"):
        empty.impute([[NAN]])
