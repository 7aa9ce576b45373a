"""What diagnose says of models that are wrong, and when it is silent."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import signal
from scipy.special import expit
from sklearn.base import clone

import skihmm.windows
from skihmm import HCRPHMM
from skihmm._using.fitted import fitted_of
from skihmm.emissions import (
    AutoregressiveNormal,
    BernoulliRegression,
    HCRPCategorical,
    NegativeBinomialRegression,
    NormalInverseGamma,
    NormalInverseWishart,
    ProductEmission,
)
from skihmm.metrics import Finding, _noise, _remedies, _visits
from skihmm.metrics._misfit import judge_changes
from skihmm.metrics._noise import (
    ColumnResiduals,
    Surroundings,
    columns_that_correlate,
    columns_that_lead,
    symbols_before,
)
from skihmm.metrics._visits import (
    Visits,
    lone_rows,
    overlap,
    recurrence,
    repeat_of_path,
    repeat_of_values,
    spread_of_dwell,
    strongest_period,
)
from skihmm.transitions import HCRPTransitions

N = 2000
GROUPS = np.arange(N) // 1000


def chain(rng, n=N, n_states=2, dwell=40, starts=(0,)):
    """Path that stays `dwell` rows on average, and begins anywhere."""
    path = rng.integers(n_states, size=n)
    changes = rng.random(n) < 1 / dwell
    changes[list(starts)] = True
    for t in np.flatnonzero(~changes):
        path[t] = path[t - 1]
    for t in np.flatnonzero(changes):
        if t not in starts:
            path[t] = (path[t - 1] + rng.integers(1, n_states)) % n_states
            later = np.flatnonzero(changes & (np.arange(n) > t))
            path[t : later[0] if len(later) else n] = path[t]
    return path


def near(inputs=None, groups=GROUPS):
    starts = np.flatnonzero(np.diff(groups, prepend=-1))
    return Surroundings({} if inputs is None else inputs, groups, starts)


def judge(residuals, around=None, **given):
    """Kinds of the findings about the residuals of one column."""
    given = {"kind": "real", "values": np.zeros(N), "zeros": np.zeros(N), **given}
    given.setdefault("inside", residuals)
    column = ColumnResiduals("x", ahead=residuals, **given)
    return [finding.kind for finding in column.findings(near() if around is None else around)]


# ---- residuals of one column


def autoregression(rng, rho):
    return signal.lfilter([1.0], [1.0, -rho], rng.normal(size=N))


RESIDUALS = {
    "tails": lambda rng: rng.standard_t(9, N),
    "light_tails": lambda rng: rng.uniform(-2, 2, N),
    "skew": lambda rng: rng.gamma(8, size=N),
    "memory": lambda rng: autoregression(rng, 0.3),
    "spread": lambda rng: rng.normal(size=N) * np.repeat([0.5, 1.5, 0.5, 1.5], N // 4),
    "time": lambda rng: rng.normal(size=N) + np.linspace(-1, 1, N),
    "outliers": lambda rng: np.where(rng.random(N) < 0.02, 6.0, rng.normal(size=N)),
}


@pytest.mark.parametrize("kind", RESIDUALS)
def test_kinds_of_residuals(kind):
    for seed in range(5):
        residuals = RESIDUALS[kind](np.random.default_rng(seed))
        residuals[::50] = np.nan
        assert judge(residuals)[0] == kind


def test_silence_of_normal_residuals():
    """At most one in 200 columns, each of which has some thirty tests."""
    rngs = map(np.random.default_rng, range(200))
    found = [judge(rng.normal(size=N), near({"u": rng.normal(size=N)})) for rng in rngs]
    assert sum(map(bool, found)) <= 1


def test_memory_does_not_reach_into_another_sequence(rng):
    residuals = rng.normal(size=N)
    residuals[1::2] = 0.6 * residuals[::2] + 0.8 * residuals[1::2]
    assert "memory" in judge(residuals)
    pairs = np.concatenate([[0], (np.arange(1, N) + 1) // 2])
    assert "memory" not in judge(residuals, near(groups=pairs))


def test_inputs_that_residuals_follow(rng):
    u, v = rng.normal(size=(2, N))
    around = near({"u": u, "v": v})
    noise = rng.normal(size=N)
    column = ColumnResiduals("x", "real", noise + 0.8 * u**2, noise, noise, noise)
    (found,) = [f for f in column.findings(around) if f.kind in ("bend", "product")]
    assert found.seen.startswith("Residuals follow the square of u (correlation 0.7")
    assert judge(noise + 0.8 * u * v, around)[0] == "product"
    assert judge(noise * np.exp(0.5 * u), around)[0] == "spread"
    assert judge(noise, around) == []


def test_exact_values(rng):
    values = rng.normal(size=N)
    assert judge(values, values=values) == []
    clipped = np.minimum(values, 1.0)
    found = judge(values, values=clipped)
    assert found == ["values"]
    # A fit that adds noise to rounded values hides what is exact.
    assert judge(values, values=clipped, has_noise=True) == []
    zeros = np.where(rng.random(N) < 0.1, 0.0, values + 5)
    assert judge(values, values=zeros) == ["values"]
    # Counts have the zeros that are expected.
    counts = rng.poisson(1.5, N).astype(float)
    expected = np.full(N, np.exp(-1.5))
    assert judge(rng.normal(size=N), kind="counts", values=counts, zeros=expected) == []
    more = counts * (rng.random(N) > 0.2)
    assert judge(rng.normal(size=N), kind="counts", values=more, zeros=expected)[0] in (
        "values",
        "zeros",
    )


def test_dispersion_of_counts(rng):
    counts = rng.poisson(9, N).astype(float)
    given = {"kind": "counts", "values": counts, "zeros": np.zeros(N)}
    assert judge(1.3 * rng.normal(size=N), **given) == ["dispersion"]
    assert judge(0.7 * rng.normal(size=N), **given) == ["underdispersion"]
    assert judge(rng.normal(size=N), **given) == []


def test_lapses(rng):
    """Values that are not expected are too frequent, beyond what other weights can do."""
    u = rng.normal(size=N)
    one = expit(4 * u)
    right = (rng.random(N) < one).astype(float)
    residuals, around = rng.normal(size=N), near({"u": u})
    given = {"kind": "binary", "zeros": 1 - one, "slopes": (one * (1 - one))[:, None]}
    assert judge(residuals, around, values=right, **given) == []
    lapses = np.where(rng.random(N) < 0.04, 1 - right, right)
    column = ColumnResiduals("x", ahead=residuals, inside=residuals, values=lapses, **given)
    (found,) = column.findings(around)
    assert found.kind == "lapses"
    # Of 0.08 one half agrees with the input.
    assert 0.03 < found.size < 0.12
    # Weights that are too large are no lapses, and without inputs nothing is.
    less = (rng.random(N) < expit(3 * u)).astype(float)
    assert judge(residuals, around, values=less, **given) == []
    assert judge(residuals, values=lapses, **given) == []
    # Half of the derivatives are unknown, as of some rows of many.
    given["slopes"][::2] = np.nan
    assert judge(residuals, around, values=lapses, **given) == ["lapses"]


def test_clusters_have_outliers_but_no_shape(rng):
    """Firm pieces of regimes may have any shape; rows far from all of them are outliers."""
    skewed = rng.gamma(2, size=N) - 2
    assert judge(skewed) == ["skew"]
    assert judge(skewed, has_clusters=True, inside=rng.normal(size=N)) == []
    far = np.where(rng.random(N) < 0.02, 7.0, rng.normal(size=N))
    assert judge(far, has_clusters=True) == ["outliers"]


@pytest.mark.parametrize("kind", ["half", "all", "two values"])
def test_residuals_of_constant_sequences(kind):
    residuals = np.random.default_rng(0).normal(size=N)
    if kind == "half":
        residuals[:1000] = 0.1
    elif kind == "all":
        residuals[:] = 0.1
    else:
        residuals = np.tile([-1.0, 1.0], N // 2)
    with np.errstate(all="raise"):
        judge(residuals)


# ---- several columns, and symbols


def test_columns_that_correlate(rng):
    inside = rng.normal(size=(N, 3))
    inside[::7, 1] = np.nan
    is_free = ~np.eye(3, dtype=bool)
    assert [*columns_that_correlate(inside, is_free, "abc", "states")] == []
    inside[:, 2] += 0.5 * np.nan_to_num(inside[:, 1])
    (found,) = columns_that_correlate(inside, is_free, "abc", "states")
    assert re.match(r"Columns b and c are correlated within states \(\+0\.[45]", found.seen)
    # Covariances that the model has are not compared.
    is_free[1, 2] = is_free[2, 1] = False
    assert [*columns_that_correlate(inside, is_free, "abc", "states")] == []


def test_columns_that_lead(rng):
    ahead = rng.normal(size=(N, 2))
    assert [*columns_that_lead(ahead, GROUPS, "ab")] == []
    ahead[2:, 1] += 0.4 * ahead[:-2, 0]
    (found,) = columns_that_lead(ahead, GROUPS, "ab")
    assert found.seen.startswith("Residuals of column b follow residuals of column a 2 rows before")


def test_symbols_that_depend_on_symbols_before(rng):
    path, symbols = chain(rng), rng.integers(3, size=N)
    assert [*symbols_before(symbols, path, GROUPS, "s")] == []
    # States, too, make symbols depend on those before; within states they do not.
    assert [*symbols_before(3 * path + symbols, path, GROUPS, "s")] == []
    later = np.where(rng.random(N) < 0.5, np.roll(symbols, 2), symbols)
    (found,) = symbols_before(later, path, GROUPS, "s")
    assert "the symbol 2 rows before" in found.seen


# ---- visits


def test_recurrence_of_chains_is_by_chance():
    """Also where rows are few, and visits long: neighbours in time are other states."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        for n_states, dwell in ((2, 20), (6, 20), (6, 60)):
            path = chain(rng, n_states=n_states, dwell=dwell, starts=(0, 1000))
            for groups in (None, GROUPS, np.arange(N) // 200):
                found = recurrence(path, np.array([0, 1000]), groups)
                assert found.z < 2.5 or 2 * found.n_few <= found.n_large


def test_states_of_few_sequences_recur_there(rng):
    starts, groups = np.arange(0, N, 200), np.arange(N) // 200
    path = chain(rng, starts=starts) + 2 * groups
    found = recurrence(path, starts, groups)
    assert found.kappa > 0.5
    assert found.z > 4
    assert found.n_few == found.n_large == 20


def test_states_of_a_stretch_of_time_recur_there(rng):
    path = chain(rng, dwell=20) + 2 * (np.arange(N) // 500)
    found = recurrence(path, np.array([0]))
    assert found.kappa > 0.3
    assert found.z > 4
    # Deals that leave visits where they are would tell nothing.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(np.random, "default_rng", lambda seed: Unmoved())
        assert recurrence(path, np.array([0])).z < 2.5


class Unmoved:
    """Generator that deals nothing anew."""

    def permutation(self, states):
        return states


def test_visits_and_their_lengths(rng):
    visits = Visits.of_path(np.array([0, 0, 1, 1, 1, 1]), np.array([0, 4]))
    assert [each.tolist() for each in visits] == [[0, 2, 4], [2, 2, 2], [0, 1, 1]]
    ratio, n = spread_of_dwell(chain(rng, dwell=15), np.array([0]))
    assert n > 60
    assert 0.6 < ratio < 1.5
    assert spread_of_dwell(np.arange(N) // 20 % 2, np.array([0])) == (0.0, 98)
    assert spread_of_dwell(np.zeros(N, dtype=int), np.array([0]))[1] == 0


def test_periods(rng):
    noise = rng.normal(size=N)
    assert strongest_period(noise, np.array([0]))[0] < 15
    power, period = strongest_period(noise + np.sin(2 * np.pi * np.arange(N) / 24), np.array([0]))
    assert power > 50
    assert period == pytest.approx(24, rel=0.02)
    assert strongest_period(noise[:150], np.array([0])) == (0.0, 0.0)


def test_lone_rows():
    path = np.zeros(300, dtype=int)
    path[[20, 90, 120, 200]] = 1
    path[150:] += 2
    path[121:150] = 4
    rows, n_states, back = lone_rows(path, np.array([0]))
    assert (rows.tolist(), n_states, back) == ([20, 90, 120, 200], 2, 3 / 4)


def test_overlap_of_states_of_two_regimes(rng):
    """Not of pieces of one regime, which touch one another in right fits, too."""
    path = chain(rng, n_states=4, dwell=20)
    centres = np.array([0.0, 0.3, 6.0, 12.0])
    terms = -0.5 * (centres[path][:, None] + rng.normal(size=(N, 1)) - centres) ** 2
    regimes = np.array([0, 0, 1, 2])[path]
    assert overlap(terms, path, regimes).nearest.min() > 10
    found = overlap(terms, path, path)
    assert found.pair == (0, 1)
    assert found.nearest.min() == pytest.approx(0.09, abs=0.05)


# ---- whole fits


def levels(rng, height=4.0):
    return height * chain(rng)


def cycle(rng):
    return levels(rng) + 2 * np.sin(2 * np.pi * np.arange(N) / 24) + rng.normal(size=N)


def effect(rng, shape):
    u = rng.normal(size=N)
    y = np.where(chain(rng), 2, -2) * u + shape(u) + 0.5 * rng.normal(size=N)
    return np.c_[y, u]


def choices(rng):
    u = rng.normal(size=N)
    return np.c_[rng.random(N) < expit(np.where(chain(rng, dwell=200), 3, -3) * u), u]


def clusters(rng, transmat):
    """Rows about six centres, one for each state of a chain that does not stay."""
    path = np.zeros(N, dtype=int)
    for t in range(1, N):
        path[t] = rng.choice(6, p=transmat[path[t - 1]])
    return rng.normal(0, 5, (6, 2))[path] + 0.7 * rng.normal(size=(N, 2))


def correlated(rng):
    noise = rng.normal(size=(N, 2)) @ [[1, 0.8], [0, 0.6]]
    return levels(rng)[:, None] * [1, -1] + noise


LINEAR = AutoregressiveNormal(0, input_features=[1], noise="normal")
DECISIONS = BernoulliRegression(input_features=[1])
# Emission, data, kind of the first finding, and words of it; whether states are pieces.
FITS = {
    "right": ("gaussian", lambda rng: levels(rng) + rng.normal(size=N), None, "", False),
    "tails": (
        "gaussian",
        lambda rng: levels(rng) + rng.standard_t(3, N) / 1.5,
        ("tails", "outliers"),
        'emission="student"',
        True,
    ),
    "skew": (
        "gaussian",
        lambda rng: rng.gamma(2, np.where(chain(rng), 6.0, 1.0)),
        ("skew",),
        'skewed .*emission="gamma"',
        True,
    ),
    "cycle": ("gaussian", cycle, ("moving", "drift", "cycle"), "", False),
    "memory": (
        AutoregressiveNormal(1),
        lambda rng: signal.lfilter([1], [1, -0.3, -0.6], rng.normal(size=N)) + levels(rng, 20.0),
        ("memory", "moving", "drift"),
        "",
        False,
    ),
    "zeros": (
        "poisson",
        lambda rng: rng.poisson(5 + 4 * levels(rng)) * (rng.random(N) > 0.2),
        ("values",),
        r"\d+ % of the values are exactly 0, .* \([01] % expected\)",
        True,
    ),
    "dispersion": (
        "poisson",
        lambda rng: rng.poisson(rng.gamma(3, (4 + 4 * levels(rng)) / 3)),
        ("dispersion",),
        'vary more than the model allows .*emission="negative_binomial"',
        True,
    ),
    "outliers": (
        "poisson",
        lambda rng: rng.poisson(3 + 3 * levels(rng)) * np.where(rng.random(N) < 0.03, 10, 1),
        ("outliers",),
        r"values are outliers of their regime, .*: rows \d+, .*Set them to missing",
        True,
    ),
    "bend": (LINEAR, lambda rng: effect(rng, np.square), ("bend",), "the square of x1", True),
    "linear": (LINEAR, lambda rng: effect(rng, np.asarray), None, "", False),
    "choices": (DECISIONS, choices, None, "", False),
    "columns": (
        "diagonal_gaussian",
        correlated,
        ("columns",),
        r'Columns x0 and x1 .* regimes \(\+0\.[78]\d.*emission="gaussian"',
        True,
    ),
    # States that change at every step, or depend little on the last one, are not noise.
    "alternating": ("gaussian", lambda rng: clusters(rng, (1 - np.eye(6)) / 5), None, "", False),
    "weakly dependent": (
        "gaussian",
        lambda rng: clusters(rng, rng.dirichlet(np.ones(6), 6)),
        None,
        "",
        False,
    ),
}


def fit(emission, X, groups=None, **parameters):
    parameters = {"n_burnin": 100, "n_draws": 20, "random_state": 0, **parameters}
    X = X.reshape(len(X), -1)
    return HCRPHMM(emission=emission, **parameters).fit(X, groups=groups)


@pytest.mark.parametrize("name", FITS)
def test_fits(name):
    """The first finding of a model that is wrong, and none of others."""
    emission, simulate, kinds, words, are_pieces = FITS[name]
    hmm = fit(emission, simulate(np.random.default_rng(0)))
    found = hmm.diagnose()
    title = "How the model is wrong:"
    if are_pieces is not None:
        assert bool(found.pieces) == are_pieces
    if kinds is None:
        assert found.findings == []
        assert title not in str(found)
        return
    assert found.findings[0].kind in kinds
    text = str(found.findings[0])
    assert re.search(words, text)
    assert found.misfits[0] == text
    assert len(found.findings) <= 4
    if not found.warnings:  # of labels that still move the text says nothing else
        shown = " ".join(str(found).split(title)[1].split())
        assert shown.startswith(f"* {text} ")
        assert "does not fit the data" in found.verdict


def test_regimes_are_for_labels_where_nothing_moves():
    rng = np.random.default_rng(0)
    hmm = fit("gaussian", levels(rng) + rng.standard_t(3, N) / 1.5)
    found = hmm.diagnose()
    n = hmm.find_regimes().n_regimes_
    pieces = rf"\d+ states are pieces of {n} regimes\. Use hmm.regimes_ .*"
    assert re.fullmatch(pieces, found.pieces)
    # The verdict has two lines.
    assert f"{found.pieces}." in " ".join(map(str.strip, str(found).splitlines()[1:4]))
    # Labels need no other fit; parameters and forecasts need the remedy, whose call is shown.
    assert found.findings[0].params == {"emission": "student"}
    assert found.command.startswith('hmm.set_params(emission="student").fit(X)  # some')
    found.findings = [replace(found.findings[0], params={})]
    assert found.command == "hmm.regimes_"
    # Symbols depend on contexts: regimes are found by values alone.
    z = chain(rng, 600)
    X = np.column_stack([(rng.random(600) < 0.2 + 0.6 * z).astype(int), np.arange(600) % 2])
    emission = HCRPCategorical()
    transitions = HCRPTransitions(context_features=[1])
    hmm = HCRPHMM(emission=emission, transitions=transitions, n_burnin=20, random_state=0).fit(X)
    found = hmm.diagnose()
    assert found.pieces == "" or found.pieces.split()[0] == str(hmm.n_states_)


def test_subjects_without_names():
    rng = np.random.default_rng(0)
    groups, starts = np.arange(N) // 200, np.arange(0, N, 200)
    z = chain(rng, n_states=3, dwell=20, starts=starts)
    X = np.array([[0, 0], [5, 0], [0, 5]])[z] + 0.7 * rng.normal(size=(N, 2))
    shifted = X + 3 * rng.normal(size=(10, 2))[groups]
    found = fit("gaussian", shifted, groups).diagnose()
    assert found.findings[0].kind == "sequences"
    assert "subject_feature=" in found.misfits[0]
    assert "does not fit the data" in found.verdict
    assert found.command.startswith("hmm.set_params(emission__subject_feature=")
    assert fit("gaussian", X, groups).diagnose().findings == []
    named = np.column_stack([shifted, groups])
    assert fit(NormalInverseWishart(subject_feature=2), named, groups).diagnose().findings == []


def test_a_level_that_drifts():
    rng = np.random.default_rng(0)
    time = np.arange(N) / N
    X = 6 * chain(rng) + 5 * time + rng.normal(size=N)
    found = fit("gaussian", X, transitions="sticky").diagnose()
    assert found.findings[0].kind == "drift"
    assert "give time" in found.misfits[0]
    emission = AutoregressiveNormal(0, input_features=[1])
    assert fit(emission, np.column_stack([X, time])).diagnose().findings == []


def test_rows_of_two_sources():
    rng = np.random.default_rng(0)
    z = np.column_stack([chain(rng, N // 2), chain(rng, N // 2)])
    X = (6.0 * z + np.array([0, 20]) * 0 + rng.normal(size=z.shape)).ravel()
    found = fit("gaussian", X, transitions="sticky").diagnose()
    kinds = [finding.kind for finding in found.findings]
    assert {"interleaved", "moving", "memory"} & {*kinds} or found.pieces


def test_priors_of_dwell_times_that_do_not_suit():
    rng = np.random.default_rng(0)
    X = 6 * (np.arange(N) // 4 % 2) + rng.normal(size=N)
    transitions = HCRPTransitions(stay_prior=(1e5, 1e3))
    found = fit("gaussian", X, transitions=transitions).diagnose()
    (line,) = [str(f) for f in found.findings if f.kind == "prior"]
    assert re.match(r"States change on 2\d\d rows, where \d\d changes are expected", line)


def test_clusters_are_not_the_shape_of_noise():
    """Three of them in turn at random: firm states, which are one regime."""
    rng = np.random.default_rng(0)
    X = np.array([[0, 0], [6, 6], [-6, 6]])[rng.integers(3, size=N)]
    # With seed 0 clusters of k-means are 4 nats ahead of all draws.
    hmm = HCRPHMM(emission="diagonal_gaussian", n_burnin=100, n_draws=20, random_state=1)
    hmm.fit(X + rng.normal(size=(N, 2)))
    found = hmm.diagnose()
    assert (found.misfits, found.warnings) == ([], [])
    assert found.firm > 0.99


def test_levels_without_noise_have_no_shape():
    """A column with a value for each state is not judged, the column beside it is."""
    rng = np.random.default_rng(0)
    z = np.cumsum(rng.random(600) < 1 / 30) % 2
    exact = np.array([1.0, 5.0])[z]
    emission = NormalInverseGamma(resolution=None)
    hmm = HCRPHMM(emission=emission, transitions="sticky", n_burnin=60, n_draws=10, random_state=0)
    assert hmm.fit(exact[:, None]).diagnose().misfits == []
    both = np.column_stack([exact, 5 * z + rng.exponential(size=600)])
    (found,) = hmm.fit(both).diagnose().findings
    assert found.kind == "skew"
    assert found.column == "x1"


def test_states_that_are_noise_hide_it():
    """Counts with more variance than Poisson ones: states describe it, regimes do not."""
    rng = np.random.default_rng(0)
    hmm = fit("poisson", rng.poisson(np.exp(1 + levels(rng, 2.5)) * rng.gamma(3, 1 / 3, N)))
    assert hmm.n_states_ > hmm.find_regimes().n_regimes_ == 2
    codes = hmm._fitted.sequences.codes
    assert hmm.residuals(codes, join_states=True).std() > 1.3
    assert hmm.residuals(codes).std() < 1.1


# ---- planted errors


PLANTED = {
    "states of some parts are states of few": (
        _visits,
        "_FEW_PARTS",
        1.0,
        lambda: fit("gaussian", nested(np.random.default_rng(0)), transitions="sticky").diagnose(),
        lambda found: found.findings == [],
    ),
    "shapes are skipped": (
        _noise.ColumnResiduals,
        "_shape",
        lambda self, known: iter(()),
        lambda: fit("gaussian", levels(np.random.default_rng(0)) + shape(0)).diagnose(),
        lambda found: found.findings[:1] and found.findings[0].kind in ("tails", "outliers"),
    ),
    "visits in time of all states": (
        _visits,
        "large_states",
        lambda path: np.empty(0, dtype=int),
        lambda: recurrence(
            chain(np.random.default_rng(0), dwell=20) + 2 * (np.arange(N) // 500), np.array([0])
        ),
        lambda found: found.z > 4,
    ),
}


def nested(rng):
    """Two levels of two sources that switch seldom: visits recur near, but at any time."""
    return 4 * chain(rng, dwell=15) + 20 * chain(rng, dwell=150) + rng.normal(size=N)


def shape(seed):
    return np.random.default_rng(seed + 10).standard_t(3, N) / 1.5


@pytest.mark.parametrize("name", PLANTED)
def test_planted_errors_are_noticed(name, monkeypatch):
    owner, attribute, error, run, is_right = PLANTED[name]
    assert is_right(run())
    monkeypatch.setattr(owner, attribute, error)
    assert not is_right(run())


def test_findings_are_objects():
    found = Finding("tails", 5.0, "Residuals have heavier tails", "try x", params={"a": 1})
    assert str(found) == "Residuals have heavier tails. Try x."
    assert found.rows.tolist() == []


# ---- remedies that run, and no findings of what is missing


def short_fit(X, emission, groups=None, **params):
    hmm = HCRPHMM(emission=emission, n_burnin=30, n_draws=25, random_state=0, **params)
    return hmm.fit(X, groups=groups)


def follow(hmm, finding, X, groups=None):
    """Fit with the parameters of a finding, as its words ask for."""
    return clone(hmm).set_params(**finding.params, n_burnin=2, n_draws=2).fit(X, groups=groups)


def test_missing_symbols_are_no_memory(rng):
    symbols = rng.choice(list("abc"), N).astype(object)
    symbols[np.arange(60, N + 60) % 100 < 40] = None
    codes = np.where(np.arange(N) % 100 < 40, -1, rng.integers(3, size=N))
    assert list(symbols_before(codes, np.zeros(N, dtype=int), GROUPS * 0, "x")) == []
    assert short_fit(symbols[:, None], "dirichlet").diagnose().findings == []


def test_few_pairs_lead_nobody(rng):
    found = 0
    for _ in range(20):
        ahead = np.where(rng.random((1200, 2)) < 0.6, np.nan, rng.normal(size=(1200, 2)))
        found += len(list(columns_that_lead(ahead, np.zeros(1200), ["a", "b"])))
    assert found <= 1


def test_remedies_keep_subjects_and_parts(rng):
    heavy = levels(rng) + rng.standard_t(3, N) / 1.5
    groups = np.repeat(["a", "b"], N // 2)
    X = pd.DataFrame({"x": heavy, "who": groups})
    hmm = short_fit(X, NormalInverseGamma(subject_feature="who"), groups)
    (found,) = [f for f in hmm.diagnose().findings if f.kind in ("tails", "outliers")]
    assert found.params["emission"].subject_feature == "who"
    assert follow(hmm, found, X, groups).emission_.subject_feature == "who"
    # Counts have no heavy tails; the part with numbers has.
    X = np.column_stack([heavy, rng.poisson(3, N)])
    hmm = short_fit(X, ProductEmission([("x", "gaussian", [0]), ("n", "poisson", [1])]))
    (found,) = [f for f in hmm.diagnose().findings if f.kind in ("tails", "outliers")]
    assert found.params == {"emission__x": "student"}
    follow(hmm, found, X)


def test_order_reaches_the_lag_of_the_finding(rng):
    x = signal.lfilter([1.0], [1.0, 0, 0, 0, -0.7], rng.normal(size=N))[:, None]
    hmm = short_fit(x, AutoregressiveNormal(order=1), init="single")
    (found,) = [f for f in hmm.diagnose().findings if f.kind == "memory"]
    assert found.lag == 4
    assert found.params == {"emission__order": 4}


def test_remedies_of_sequences(rng):
    """Calls run; emissions without subjects name the emission that has them."""
    groups = np.repeat(np.arange(12), 100)
    z = np.concatenate([chain(rng, 100, dwell=20) for _ in range(12)])
    shift = np.repeat(rng.normal(size=12), 100)
    X = (4.0 * z + 3 * shift + rng.normal(size=1200))[:, None]
    hmm = short_fit(X, "gaussian", groups)
    (found,) = [f for f in hmm.diagnose().findings if f.kind == "sequences"]
    hmm = eval(found.call, {"hmm": hmm, "X": X, "np": np, "groups": groups})
    assert hmm.get_params()["emission__subject_feature"] == 1
    X = pd.DataFrame({"x": X[:, 0]})
    hmm = short_fit(X, "gaussian", groups)
    (found,) = [f for f in hmm.diagnose().findings if f.kind == "sequences"]
    eval(found.call, {"hmm": hmm, "X": X, "groups": groups})
    counts = rng.poisson(np.exp(1 + 1.3 * z + shift))[:, None]
    (found,) = [
        f for f in short_fit(counts, "poisson", groups).diagnose().findings if f.kind == "sequences"
    ]
    assert "NegativeBinomialRegression(subject_feature=...)" in found.remedy
    names = {"NegativeBinomialRegression": NegativeBinomialRegression, "np": np}
    hmm = eval(found.call, {"hmm": hmm, "X": counts, "groups": groups, **names})
    assert hmm.emission.subject_feature == 1


def test_angles_and_positive_numbers_have_remedies_of_their_own(rng):
    finding = Finding("memory", 0.3, "Residuals are correlated", "give the past as an input", lag=1)
    of = _remedies.with_remedy
    angles = short_fit(rng.normal(size=(150, 1)), "von_mises")
    one = np.zeros(150, dtype=int)
    shape = "cut angles into bins (states may differ in shape), or "
    assert of(finding, fitted_of(angles), one).remedy == f"{shape}read the regimes (hmm.regimes_)"
    wide = Finding("spread", 0.3, "Sizes of residuals are correlated", "divide by a scale")
    assert "bins" in of(wide, fitted_of(angles), one).remedy
    steps = short_fit(rng.gamma(2, size=(150, 1)), "gamma")
    shape = "take logarithms with a Gaussian (states may differ in shape), or "
    remedy = f'{shape}try emission="autoregressive" of logarithms'
    assert of(finding, fitted_of(steps), one).remedy == remedy
    assert of(wide, fitted_of(steps), one) is wide
    counts = short_fit(rng.poisson(4, size=(150, 1)), "poisson")
    words = 'give the past as an input of emission="log_linear"'
    assert of(finding, fitted_of(counts), one).remedy == words


def test_single_rows_change_no_state(rng):
    assert judge_changes(np.zeros(300, dtype=int), np.arange(300), np.full(1, 0.1)) == []


def test_causes_come_before_longer_runs_and_findings_that_wait_are_announced():
    finding = Finding("drift", 0.5, "Something drifts", "give time as an input")
    hmm = short_fit(np.random.default_rng(0).normal(size=(300, 1)), "gaussian")
    found = hmm.diagnose()
    found.warnings, found.findings = ["Chains differ."], [finding]
    assert "Before longer runs: give time as an input." in str(found)
    assert "Before longer runs: give time as an input." in found._repr_html_()
    found.misfits, found._shows_findings = [str(finding)], False
    assert "Before" not in str(found)
    assert "* 1 finding held back until the chains settle" in str(found)


# ---- periods


def test_repeats():
    rng = np.random.default_rng(0)
    starts = np.array([0])
    phases = np.arange(N) // 10 % 4
    assert repeat_of_path(phases, starts) == (40, pytest.approx(1, abs=0.01))
    # Sources in turn, long stays and one state have no shape over a period.
    for path in (np.arange(N) % 2, chain(rng), np.zeros(N, dtype=int)):
        assert repeat_of_path(path, starts) == (0, 0.0)
    wave = np.sin(2 * np.pi * np.arange(N) / 40) + 0.5 * rng.normal(size=N)
    lag, r = repeat_of_values(wave, starts)
    assert (abs(lag - 40) <= 1, 0.5 < r < 0.8) == (True, True)
    wave[::9] = np.nan
    assert abs(repeat_of_values(wave, starts)[0] - 40) <= 1
    assert repeat_of_values(rng.normal(size=N), starts) == (0, 0.0)
    # Fewer than twenty periods, in the longest sequence.
    assert repeat_of_values(wave, np.arange(0, N, 500)) == (0, 0.0)


def test_states_that_are_phases():
    rng = np.random.default_rng(0)
    phase = np.arange(N) / 40
    X = np.where(phase // 12 % 2, np.sin(2 * np.pi * phase), 2 * (phase % 1) - 1)
    X = X[:, None] + 0.2 * rng.normal(size=(N, 1))
    found = short_fit(X, "gaussian", transitions="persistent").diagnose()
    first = found.findings[0]
    assert re.match(r"States repeat every (39|40|41) rows \(\d\d % beyond chance\)", first.seen)
    assert (first.kind, abs(first.lag - 40) <= 1) == ("cycle", True)
    assert {f.kind for f in found.findings}.isdisjoint({"memory", "leads"})
    hmm = eval(first.call, {"skihmm": skihmm, "X": X})
    assert hmm.n_states_ == 2
    # Symbols have no shapes.
    symbols = (phase % 1 * 4).astype(int)[:, None]
    (first, *_) = short_fit(symbols, "dirichlet").diagnose().findings
    assert first.kind == "cycle"
    assert first.remedy == "give sin and cos of 2 pi row / 40 as inputs"


def test_regular_stays_have_a_call_with_a_number():
    rng = np.random.default_rng(0)
    X = 6.0 * (np.arange(1200) // 30 % 2) + rng.normal(size=1200)
    found = fit("gaussian", X).diagnose()
    (finding,) = [f for f in found.findings if f.kind == "dwell"]
    assert finding.call == "hmm.segments(X, min_dwell=15)"
    assert "more regular than the model allows" in finding.seen

    # With the sequences of the fit, as the call for a fit has them.
    found = fit("gaussian", X, groups=np.arange(1200) // 600).diagnose()
    (finding,) = [f for f in found.findings if f.kind == "dwell"]
    assert finding.call == "hmm.segments(X, groups=groups, min_dwell=15)"
