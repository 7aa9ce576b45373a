"""check_emission: all emissions pass, and planted errors are caught."""

from __future__ import annotations

from operator import itemgetter

import native
import numpy as np
import pandas as pd
import pytest
from extension.exponential import Exponential
from recipes import INSTANCES
from scipy.special import betaln

from skihmm.emissions import (
    BaseEmission,
    ConjugateEmission,
    DirichletCategorical,
    GammaPoisson,
    HCRPCategorical,
    ProductEmission,
    StateNumber,
    StateParameter,
)
from skihmm.emissions._categorical_stats import categorical_stats
from skihmm.testing import check_emission

pytestmark = pytest.mark.statistical


def data():
    rng = np.random.default_rng(0)
    symbols = rng.choice(["a", "b", "c", "d"], size=(40, 2)).astype(object)
    symbols[[3, 7, 8]] = None
    symbols[9, 0] = None
    numbers = rng.normal(size=(40, 2)) * [1.0, 100.0]
    numbers[5] = np.nan
    numbers[6, 0] = np.nan
    counts = rng.poisson(3, size=(40, 2)).astype(float)
    counts[2] = np.nan
    binary = (rng.random((40, 3)) < 0.4).astype(float)
    binary[4] = np.nan
    mixed = pd.DataFrame(
        {"word": symbols[:, 0], "x": numbers[:, 0], "y": numbers[:, 1], "n": counts[:, 0]}
    )
    mixed.loc[11] = [None, np.nan, np.nan, np.nan]
    positive, angles = np.exp(numbers), np.arctan(numbers)
    option, count = symbols[:, :1], counts[:, :1]
    return locals()


DATA = data()
# The data of every recipe.
KINDS = {
    "AutoregressiveNormal": "numbers",
    "BernoulliRegression": "binary",
    "BetaBernoulli": "binary",
    "BetaNegativeBinomial": "counts",
    "CategoricalRegression": "option",
    "DirichletCategorical": "symbols",
    "GammaGamma": "positive",
    "GammaPoisson": "counts",
    "HCRPCategorical": "symbols",
    "NegativeBinomialRegression": "count",
    "NormalInverseGamma": "numbers",
    "NormalInverseWishart": "numbers",
    "ProductEmission": "numbers",
    "VonMises": "angles",
}
PARTS = [("word", "hcrp", ["word"]), ("xy", "gaussian", ["x", "y"])]
EMISSIONS = {
    " ".join(repr(recipe).split()): (recipe, KINDS[type(recipe).__name__])
    for recipe in INSTANCES["emission"]
    if type(recipe).__name__ in KINDS
}
EMISSIONS |= {
    "hcrp, other concentrations": (HCRPCategorical(5.0, 0.5), "symbols"),
    "product": (ProductEmission([*PARTS, ("n", "poisson", ["n"])]), "mixed"),
    "product without tables": (
        ProductEmission([("word", "dirichlet", ["word"]), PARTS[1], ("n", "poisson", ["n"])]),
        "mixed",
    ),
    "product of numbers": (
        ProductEmission([("x", "diagonal_gaussian", [0]), ("y", "gaussian", [1])]),
        "numbers",
    ),
}


# By default the first instance of every law, and of a product that has no tables.
LAWS = {
    (type(emission), getattr(emission, "_family", None)): name
    for name, (emission, _) in reversed(EMISSIONS.items())
}
BY_DEFAULT = {*LAWS.values(), "product without tables"}


def test_every_recipe_has_data():
    lacking = {type(recipe).__name__ for recipe in INSTANCES["emission"]} - {*KINDS}
    assert not lacking, f"No data for {lacking}: add it to KINDS, with the name of its DATA"


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * (name not in BY_DEFAULT)) for name in EMISSIONS],
)
def test_all_emissions_pass(name, global_random_seed):
    emission, kind = EMISSIONS[name]
    check_emission(emission, DATA[kind], random_state=global_random_seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("name", EMISSIONS)
def test_all_emissions_pass_for_many_seeds(name, seed):
    emission, kind = EMISSIONS[name]
    check_emission(emission, DATA[kind], random_state=seed)


@pytest.mark.slow
def test_an_emission_in_python_passes(global_random_seed):
    X = np.random.default_rng(1).exponential(size=(40, 2))
    X[4] = np.nan
    check_emission(Exponential(), X, random_state=global_random_seed)


# -- planted errors -------------------------------------------------------------------


class Normal(BaseEmission):
    """One column of numbers; `bug` is one of the statistics or one of the recipe."""

    is_categorical = False
    takes_integers = False

    def __init__(self, bug=None):
        self.bug = bug

    def fit(self, X, y=None):
        return None if self.bug == "fit" else self

    def encode_values(self, X):
        return np.array(X, dtype=float)

    def decode(self, codes):
        return codes + 1.0 if self.bug == "decode" else codes

    def is_missing(self, codes):
        missing = np.isnan(codes)
        return missing if self.bug == "is_missing" else missing.all(axis=1)

    def make_stats(self, codes):
        values = codes[: len(codes) - (self.bug == "steps")]
        return native.moves.FaultyStats(values, self.bug)


def test_without_an_error():
    check_emission(Normal(), DATA["numbers"][:, :1])


@pytest.mark.parametrize(
    ("bug", "message"),
    [
        ("fit", "fit does not return the emission"),
        ("decode", "decoding and encoding changes the codes"),
        ("is_missing", r"is_missing returns the shape \(40, 1\) of bool; expected \(40,\)"),
        ("steps", "over 26 rows the statistics have 25 steps"),
        ("missing", "a missing observation has log probability -0.69.* when it leaves"),
        ("fresh", "an addition to an empty state gives log p = .* for a fresh state"),
        ("pair", "the pair of two states has the log ratio"),
        ("logs", "the row of logs .* for a fresh state"),
        ("log pair", "the pair of logs of two states has the log ratio"),
        ("removal", "an observation joins a state with log p = .* and leaves with"),
        ("forget", "differ after a rollback from what they were"),
        ("inverse", "differ after a rollback from what they were"),
        ("ahead", "rows differ from what they are without, after a change"),
        ("values", "or values are not drawn from it"),
        ("mean", "the mean of values drawn of column 0, against predictives"),
        ("garbage", "a refused record .* has changed the chain"),
    ],
)
def test_planted_errors_of_hooks(bug, message):
    with pytest.raises(AssertionError, match=message):
        check_emission(Normal(bug), DATA["numbers"][:, :1])


def log_normal(difference, variance):
    """Log of a normal density; scipy.stats takes ten times as long."""
    return -0.5 * (difference**2 / variance + np.log(2 * np.pi * variance))


class Shifted(ConjugateEmission):
    """One normal column of known variance; `bug` is one of the functions."""

    strength = 0.5

    def __init__(self, bug=None):
        self.bug = bug

    def learn(self, X):
        self.n_columns_ = 1

    def empty(self):
        return np.zeros(3)

    def add(self, numbers, y):
        after = numbers + np.array([1.0, y[0], y[0] ** 2])
        return after * [1, 1 - 1e-8, 1] if self.bug == "drift" else after

    def remove(self, numbers, y):
        return numbers - np.array([1.0, y[0], y[0] ** 2])

    def law(self, numbers):
        """Mean and precision of the state's mean."""
        weight = 0.9 if self.bug == "strength" else 1.0
        return numbers[..., 1] / (self.strength + numbers[..., 0]), (
            self.strength + weight * numbers[..., 0]
        )

    def bonus(self, n):
        """Log of the error in the marginal density of n observations."""
        return np.log(0.75) * np.maximum(n - 1, 0) if self.bug == "normaliser" else 0.0

    def growth(self, n):
        """What another observation adds to the bonus."""
        return np.log(0.75) * (n > 0) if self.bug == "normaliser" else 0.0

    def log_predictive(self, numbers, y):
        mean, precision = self.law(numbers)
        log_p = log_normal(y[0] - mean, 1 + 1 / precision)
        return log_p + self.growth(numbers[:, 0])

    def log_marginal(self, numbers):
        n, total, squares = numbers.T
        precision = self.strength + n
        log_p = -0.5 * (n * np.log(2 * np.pi) + squares - total**2 / precision)
        if self.bug != "log_joint":
            log_p += 0.5 * np.log(self.strength / precision)
        return log_p + self.bonus(n)

    def is_sound(self, numbers):
        return numbers[0] >= 0 and numbers[0] % 1 == 0 and np.isfinite(numbers).all()

    def mean(self, numbers):
        return np.atleast_1d(self.law(numbers)[0])

    def draw_parameters(self, numbers, generator):
        mean, precision = self.law(numbers)
        width = 0.3 if self.bug == "parameters" else 1.0
        return np.array([generator.normal(mean, width / np.sqrt(precision)), numbers[0]])

    def log_density(self, parameters, y):
        return log_normal(y[0] - parameters[:, 0], 1.0) + self.growth(parameters[:, 1])

    def emit(self, parameters, generator):
        return generator.normal(parameters[:1], 1.0)


@pytest.mark.slow
def test_the_same_family_without_an_error():
    check_emission(Shifted(), DATA["numbers"][:, :1])


@pytest.mark.parametrize(
    ("bug", "message"),
    [
        ("strength", "depends on the order of the observations"),
        ("log_joint", "log_joint is .*, the product of predictives"),
        ("drift", "drift"),
        ("parameters", "given drawn parameters is on average"),
        ("normaliser", "does not integrate to what those of other states do"),
    ],
)
def test_planted_errors_of_families(bug, message):
    with pytest.raises(AssertionError, match=message):
        check_emission(Shifted(bug), DATA["numbers"][:15, :1])


class Described(Shifted):
    """Its mean has a name; `bug` is one of the descriptions."""

    @property
    def state_parameters(self):
        if not hasattr(self, "parameters_") and self.bug != "unfitted":
            return {}
        values = self.parameters_[:-1] if self.bug == "states" else self.parameters_
        place = (..., slice(1)) if self.bug == "select" else (..., 0)
        number = StateNumber(int(self.bug == "column"), "mean", itemgetter(place))
        return {"parameters_": StateParameter(values, [number])}


@pytest.mark.parametrize(
    ("bug", "message"),
    [
        ("unfitted", "before a fit state_parameters gives AttributeError: .*; expected none"),
        ("states", r"\['parameters_'\].values has the shape \(2, 2\); expected \(3, ...\)"),
        ("column", "the number 'mean' has column 1; expected None or an integer from 0 to 0"),
        ("select", r"select of the number 'mean' gives the shape \(3, 1\); expected \(3,\)"),
    ],
)
def test_planted_errors_of_descriptions(bug, message):
    with pytest.raises(AssertionError, match=message):
        check_emission(Described(bug), DATA["numbers"][:15, :1])


@pytest.mark.slow
def test_descriptions_without_an_error():
    check_emission(Described(), DATA["numbers"][:15, :1])


class Coins(ConjugateEmission):
    """Independent Bernoulli columns, uniform priors; `bug` is one of the predictions."""

    def __init__(self, bug=None):
        self.bug = bug

    def learn(self, X):
        self.n_columns_ = X.shape[1]
        self.bonus = 0.2 if self.bug == "unnormalised" else 0.0

    def empty(self):
        return np.zeros(1 + self.n_columns_)

    def add(self, stats, y):
        return stats + np.append(1.0, y)

    def remove(self, stats, y):
        return stats - np.append(1.0, y)

    def log_predictive(self, stats, y):
        n, ones = stats[:, :1], stats[:, 1:]
        log_p = np.log(np.where(y > 0.5, 1 + ones, 1 + n - ones) / (2 + n)).sum(axis=1)
        return log_p + self.bonus

    def log_marginal(self, stats):
        n, ones = stats[:, :1], stats[:, 1:]
        log_p = betaln(1 + ones, 1 + n - ones).sum(axis=1)
        return log_p + n[:, 0] * self.bonus

    def is_sound(self, stats):
        return min(stats) >= 0 and max(stats) == stats[0]

    def mean(self, stats):
        return (1 + stats[1:]) / (2 + stats[0])

    def draw_parameters(self, stats, generator):
        return generator.beta(1 + stats[1:], 1 + stats[0] - stats[1:])

    def log_density(self, parameters, y):
        log_p = np.log(np.where(y > 0.5, parameters, 1 - parameters)).sum(axis=1)
        return log_p + self.bonus

    def emit(self, parameters, generator):
        return (generator.random(len(parameters)) < parameters).astype(float)


class Words(DirichletCategorical):
    """One column of symbols; `bug` is one of the predictions."""

    def __init__(self, bug=None):
        super().__init__()
        self.bug = bug

    def make_stats(self, codes):
        n_symbols = [len(self.categories_[0]) + 1]
        return word_stats(categorical_stats(codes, n_symbols, 1.0, 1.0, False), self.bug)


def word_stats(stats, bug):
    class WordStats(native.moves.SharedStats):
        def predictives(self, slots, inputs=None):
            columns = super().predictives(slots, inputs)
            return [column * (1.1 if bug == "sum" else 1.0) for column in columns]

        def draw_values(self, slots, n_known, stream, inputs=None):
            if bug == "missing":
                raise NotImplementedError("WordStats lacks draw_values")
            columns = super().draw_values(slots, n_known, stream, inputs)
            if bug == "first":
                return [np.where(np.arange(len(v)) % 5, v, 0).astype(v.dtype) for v in columns]
            return columns

    return WordStats(stats)


@pytest.mark.parametrize(
    ("emission", "message"),
    [
        (Coins("unnormalised"), "the share of values that are drawn again"),
        (Words("sum"), "predictives of column 0 do not sum to one"),
        (Words("first"), "does not integrate .* or values are not drawn from it"),
        (Words("missing"), "WordStats lacks draw_values; HCRPHMM.sample needs it"),
    ],
)
def test_planted_errors_of_predictions(emission, message):
    kind = "binary" if isinstance(emission, Coins) else "symbols"
    with pytest.raises(AssertionError, match=message):
        check_emission(emission, DATA[kind][:, :1])


@pytest.mark.slow
def test_coins_without_an_error():
    check_emission(Coins(), DATA["binary"][:, :1])


def test_misuse():
    with pytest.raises(AssertionError, match="'hcrp' is no skihmm"):
        check_emission("hcrp", DATA["symbols"])
    with pytest.raises(AssertionError, match="5 rows of X; expected 12 or more"):
        check_emission(GammaPoisson(), DATA["counts"][:5])
    with pytest.raises(AssertionError, match="all rows of X are missing"):
        check_emission(GammaPoisson(), np.full((20, 1), np.nan))
    with pytest.raises(ValueError, match="shape"):
        check_emission(GammaPoisson(-1.0), DATA["counts"])
