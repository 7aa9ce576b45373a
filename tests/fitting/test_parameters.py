"""Every parameter of everything: what is refused, in which words, and when."""

from __future__ import annotations

import inspect
import pickle
import re
from datetime import date
from typing import Any, NamedTuple

import numpy as np
import pytest
import sklearn
from recipes import INSTANCES
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from skihmm import HCRPHMM, _hcrp_hmm
from skihmm._fitting import fit as _fit
from skihmm.emissions import (
    AutoregressiveNormal,
    BernoulliRegression,
    BetaBernoulli,
    BetaNegativeBinomial,
    CategoricalRegression,
    DirichletCategorical,
    GammaGamma,
    GammaPoisson,
    HCRPCategorical,
    NegativeBinomialRegression,
    NormalInverseGamma,
    NormalInverseWishart,
    ProductEmission,
    VonMises,
)
from skihmm.emissions._names import EMISSIONS
from skihmm.metrics import ParticleFilterScorer, _scorer
from skihmm.samplers import (
    BlockedBeam,
    BlockedGibbs,
    DirectAssignmentGibbs,
    StepwiseGibbs,
    StepwiseSlice,
    StickBreakingBeam,
    StickBreakingGibbs,
)
from skihmm.samplers._names import SAMPLERS
from skihmm.transitions import HCRPTransitions
from skihmm.transitions._names import TRANSITIONS

SHORT = {"n_burnin": 2, "n_draws": 2, "thin": 1, "n_particles": 5, "random_state": 0}


class Bad(NamedTuple):
    """A value that a parameter must not have, and what the error says."""

    value: Any
    error: type[Exception]
    expected: str
    # Where the message shows something else than the name and the value.
    shown: str | None = None


def integer(minimum):
    """Values that are no integer from `minimum` on."""
    expected = f"expected an integer >= {minimum}"
    return [
        *(Bad(value, TypeError, expected) for value in ("3", 3.0, True, None, [3])),
        *(Bad(value, ValueError, expected) for value in (minimum - 1, -1000)),
    ]


def number(lowest="> 0"):
    """Values that are no finite number above (or from) zero."""
    words = "a finite number > 0" if lowest == "> 0" else "a number >= 0"
    below = 0 if lowest == "> 0" else -1e-9
    return [
        *(Bad(value, TypeError, f"expected {words}") for value in ("1", True, None, 1j, [1.0])),
        *(
            Bad(value, ValueError, f"expected {words}")
            for value in (below, -1.0, np.nan, np.inf, 10**400)
        ),
    ]


def concentration():
    """Values that are no number in the range of concentrations."""
    expected = "expected a number from 1e-50 to 1e+50"
    return [*number(), *(Bad(value, ValueError, expected) for value in (1e300, 1e-51))]


def flag():
    """Values that are neither True nor False."""
    return [Bad(value, TypeError, "expected True or False") for value in (1, 0.0, "yes", None)]


def choice(*words):
    """Values that are not among a few words."""
    expected = "expected one of " + ", ".join(repr(word) for word in words)
    # (In scikit-learn a word that is not on the list is a ValueError, whatever it is.)
    return [Bad(value, ValueError, expected) for value in ("other", "", None, 1)]


def prior():
    """Values that are no (shape, rate) of a Gamma distribution."""
    pair = "expected (shape, rate) of a Gamma distribution, two numbers > 0, or None"
    values: list[Bad] = [
        Bad(value, TypeError, pair)
        for value in (*(1.0, (1.0,), (1, 2, 3), "a", True), *({1.0, 2.0}, {1.0: 1, 2.0: 2}))
    ]
    values.append(Bad(iter("ab"), TypeError, pair, "concentration_prior=<str"))
    for bad in number():
        values += [
            bad._replace(value=pair, shown=f"concentration_prior[{i}]={bad.value!r}")
            for i, pair in enumerate([(bad.value, 1.0), (1.0, bad.value)])
        ]
    return values


def integer_or_auto(minimum):
    """Values that are neither an integer from a minimum on nor "auto"."""
    expected = f'expected "auto" or an integer >= {minimum}'
    bad = [bad for bad in integer(minimum) if not isinstance(bad.value, str)]
    return [*bad, *(Bad(value, ValueError, expected) for value in ("5", "all", ""))]


def optional_integer(minimum):
    return [bad for bad in integer(minimum) if bad.value is not None]


def stay_prior():
    """Values that are no parameters of a Beta distribution."""
    pair = "expected (a, b), pseudo-counts of staying and of leaving, or None"
    return [
        *(Bad(value, TypeError, pair) for value in (1.0, (1.0,), (1, 2, 3), "ab", True)),
        *(
            bad._replace(value=(bad.value, 1.0), shown=f"stay_prior[0]={bad.value!r}")
            for bad in concentration()
        ),
        Bad((1.0, 0), ValueError, "expected a finite number > 0", "stay_prior[1]=0"),
        Bad((1.0, "b"), TypeError, "expected a finite number > 0", "stay_prior[1]='b'"),
    ]


def n_jobs():
    """Values that are no number of jobs."""
    expected = "expected an integer other than 0 (-1: all cores), or None"
    return [
        *(Bad(value, TypeError, expected) for value in ("2", 2.0, True, [2])),
        Bad(0, ValueError, expected),
    ]


def random_state():
    """Values that scikit-learn does not take for a seed."""
    expected = "expected an integer from 0 to 2**32 - 1, a numpy.random.RandomState"
    values = ("seed", 1.5, -1, 2**32, [1, 2], np.random.default_rng(0))
    return [Bad(value, ValueError, expected) for value in values]


def recipe(base, *names):
    """Values that are neither a short name nor an object of a kind."""
    expected = "expected one of " + ", ".join(repr(name) for name in names)
    values = ("other", None, 3, base, HCRPHMM())
    kind = next(parent for parent in base.__mro__ if parent.__name__.startswith("Base"))
    return [
        *(Bad(value, ValueError, expected) for value in values),
        Bad(base, ValueError, "not the class"),
        Bad(3, ValueError, kind.__name__),
    ]


def categories():
    """Values that do not list the symbols of one column."""
    expected = "expected 'auto' or a list with one array of symbols per column"
    return [
        *(Bad(value, TypeError, expected) for value in (None, 5, {0, 1}, {0: [1]})),
        Bad(np.array(3), TypeError, expected),
        Bad("all", ValueError, expected),
        Bad([[0, 1], [0]], ValueError, "but X has 1", "categories lists the symbols"),
        Bad([], ValueError, "but X has 1", "categories lists the symbols of 0 columns"),
        Bad([5], ValueError, "expected one array of symbols per column", "categories[0]"),
        Bad([[1, 1]], ValueError, "expected each once", "categories[0]"),
        Bad([[1, np.nan]], ValueError, "missing is no symbol", "categories[0]"),
        Bad([["a", np.nan]], ValueError, "missing is no symbol", "categories[0]"),
        Bad([[1, 0, 2, 3, 4]], ValueError, "nsorted", "categories[0]"),
        Bad([[-1, 0]], ValueError, "Negative values", "categories[0]"),
        Bad([["a", "b"]], TypeError, "categories are strings", ""),
        Bad([[[0], [1, 2]]], ValueError, "is ragged", "categories[0]"),
        Bad([["a", 1]], TypeError, "strings and numbers", "categories[0]: "),
        Bad([[2**63]], ValueError, "below 2**63", "categories[0]: "),
        Bad([[10**400]], ValueError, "below 2**63", "categories[0]: "),
        Bad([[date(2020, 1, 1)]], TypeError, "got date", "categories[0]: "),
    ]


def per_column(positive=None, below=None, text=True):
    """Values that are no finite numbers, one per column."""
    expected = "expected a number, or one per column"
    words = ("wide", "1") if text else ()
    return [
        *(Bad(value, TypeError, expected) for value in (*words, {}, [["a"]], True, 1j)),
        Bad([1.0, 2.0], ValueError, expected, "has the shape (2,), but X has 1 columns"),
        Bad([[1.0]], ValueError, expected, "has the shape (1, 1)"),
        Bad(np.inf, ValueError, "expected finite numbers"),
        *([Bad(below, ValueError, positive)] if positive else []),
    ]


def init():
    """Values that are neither a word nor one state per row."""
    expected = "20 non-negative integers, one state per row of X"
    return [
        Bad("zeros", ValueError, "'auto', 'particle_filter', 'kmeans', 'blocks', 'random'"),
        *(Bad(value, ValueError, expected) for value in (None, 3, 2.5, [[0] * 20])),
        Bad([0] * 19, ValueError, expected, "init is an array of 19 entries"),
        Bad([[0], [1, 2]], ValueError, "init is ragged", ""),
        Bad([], ValueError, expected, "init is an array of 0 entries"),
        Bad([0.0] * 20, ValueError, expected, "init is an array of 20 entries of type f"),
        Bad([True] * 20, ValueError, expected, "of type bool"),
        Bad([0] * 19 + [-1], ValueError, expected, "init is an array of 20 entries"),
    ]


def share():
    """Values that are no number from 0 to 1."""
    return [
        *(Bad(value, TypeError, "expected a number from 0 to 1") for value in ("1", True, None)),
        *(
            Bad(value, ValueError, "expected a number from 0 to 1")
            for value in (-1e-9, 1.5, np.nan, np.inf)
        ),
    ]


RESOLUTION = [
    Bad("coarse", TypeError, 'expected "auto", None, a number >= 0'),
    Bad(True, TypeError, 'expected "auto", None, a number >= 0'),
    Bad(-1.0, ValueError, 'expected "auto", None, a number >= 0'),
    Bad([1.0, 2.0], ValueError, "but X has 1 columns", "resolution has the shape"),
]
RATES = {"split_merge_rate": number(">= 0"), "run_split_merge_rate": number(">= 0")}


def context_features():
    return [
        Bad(value, TypeError, "expected a list of names or indices")
        for value in ("action", {0}, 1, [1.5], [[0]], [None])
    ]


SUBJECT_FEATURE = [
    Bad(value, TypeError, "expected the name or the index of one column")
    for value in ([0], 1.5, True, {"a"})
]

FINITE = [
    bad._replace(expected="expected a finite number")
    for bad in number()
    if bad.value is not None and not (type(bad.value) in (int, float) and -2 < bad.value < 1)
]
# A name or an index of one column, as a list of one.
ONE_COLUMN = [
    Bad([0], TypeError, "expected a list of names or indices of columns", ""),
    Bad(1.5, TypeError, "expected a list of names or indices of columns", ""),
    Bad({"a"}, TypeError, "expected a list of names or indices of columns", ""),
    Bad(0, ValueError, "expected at least one other column, which is observed", ""),
]

BAD: dict[type, dict[str, list[Bad]]] = {
    HCRPHMM: {
        "sampler": recipe(StepwiseGibbs, *SAMPLERS),
        "emission": recipe(HCRPCategorical, *EMISSIONS),
        "transitions": recipe(HCRPTransitions, *TRANSITIONS),
        "init": init(),
        "n_burnin": integer_or_auto(0),
        "n_draws": integer(1),
        "thin": integer_or_auto(1),
        "n_chains": integer(1),
        "n_jobs": n_jobs(),
        "n_particles": integer(1),
        "store_states": flag(),
        "point_estimate": choice("vi", "binder", "map"),
        "warm_start": flag(),
        "new_states": flag(),
        "max_time": [bad for bad in number() if bad.value is not None],
        "callback": [
            Bad(value, TypeError, "expected something to call, or None")
            for value in (3, "print", [print], False)
        ],
        "checkpoint": [
            Bad(value, TypeError, "expected the path of an .npz file")
            for value in (3, 1.5, ["run.npz"], True)
        ],
        "checkpoint_interval": number(">= 0"),
        "random_state": random_state(),
        # (True and False are allowed, as in scikit-learn.)
        "verbose": [bad for bad in integer(0) if bad.value is not True],
    },
    HCRPTransitions: {
        "alpha": concentration(),
        "gamma": concentration(),
        "concentration_prior": prior(),
        "expected_dwell": [
            *(bad for bad in number() if bad.value is not None),
            Bad(1, ValueError, "expected a number of steps above 1, or None"),
            Bad(1e300, ValueError, "expected at most 1e+15 steps"),
        ],
        "stay_prior": stay_prior(),
        "switch_penalty": [*number(">= 0"), Bad(51, ValueError, "from 0 to 50")],
        "context_features": context_features(),
        "context_order": choice("state", "context"),
        "context_alpha": [bad for bad in concentration() if np.ndim(bad.value) == 0],
        "input_features": context_features(),
    },
    StepwiseGibbs: {"proposal": choice("exact", "rcd"), "block_share": share(), **RATES},
    StepwiseSlice: RATES,
    BlockedGibbs: {
        "block_size": optional_integer(1),
        **RATES,
        "drawn_share": [
            Bad("all", ValueError, "expected one of 'auto'"),
            *(bad for bad in share() if not isinstance(bad.value, str)),
        ],
    },
    BlockedBeam: {"block_size": optional_integer(1), **RATES},
    DirectAssignmentGibbs: {},
    **{
        sampler: {"block_size": optional_integer(1), "n_jobs": n_jobs(), **RATES}
        for sampler in (StickBreakingGibbs, StickBreakingBeam)
    },
    HCRPCategorical: {
        "alpha": concentration(),
        "gamma": concentration(),
        "concentration_prior": prior(),
        "categories": categories(),
        "handle_unknown": choice("base", "missing", "error"),
        "context_features": context_features(),
        "context_alpha": [bad for bad in concentration() if np.ndim(bad.value) == 0],
    },
    DirichletCategorical: {
        "concentration": [bad for bad in concentration() if bad.value is not None],
        "categories": categories(),
        "handle_unknown": choice("base", "missing", "error"),
    },
    NormalInverseWishart: {
        "resolution": RESOLUTION,
        "subject_feature": SUBJECT_FEATURE,
        "subject_scale": flag(),
        "mean": [*per_column(), Bad(-1e101, ValueError, "expected numbers up to 1e+100")],
        "strength": [bad for bad in number() if bad.value is not None],
        "dof": [bad for bad in number() if bad.value is not None],
        "scale": [
            Bad(1j, TypeError, "expected a matrix of numbers"),
            Bad("wide", ValueError, 'such as "0.1*var"'),
            Bad([[1.0, 0.0], [0.0, 1.0]], ValueError, "but X has 1 columns", "scale"),
            Bad(1.0, ValueError, "expected (1, 1)", "scale has the shape ()"),
            Bad([[-1.0]], ValueError, "expected a symmetric, positive definite matrix"),
            Bad([[np.nan]], ValueError, "expected a symmetric, positive definite"),
        ],
    },
    NormalInverseGamma: {
        "resolution": RESOLUTION,
        "subject_feature": SUBJECT_FEATURE,
        "subject_scale": flag(),
        "mean": [*per_column(), Bad(-1e101, ValueError, "expected numbers up to 1e+100")],
        "strength": per_column("expected numbers > 0", 0.0),
        "shape": number(),
        "scale": [
            *per_column("expected numbers > 0", -1.0, text=False),
            Bad("wide", ValueError, 'such as "0.1*var"'),
        ],
    },
    GammaPoisson: {
        "shape": per_column("expected numbers > 0", 0.0),
        "rate": per_column("expected numbers > 0", -2),
    },
    BetaNegativeBinomial: {
        "shape": per_column("expected numbers > 0", 0.0),
        "rate": per_column("expected numbers > 0", -2),
        "dispersion": per_column("expected numbers > 0", 0.0),
    },
    GammaGamma: {
        "shape": per_column("expected numbers > 0", 0.0),
        "scale": per_column("expected numbers > 0", -2),
        "dispersion": per_column("expected numbers > 0", 0.0),
        "least": [
            *(bad for bad in number() if bad.value is not None),
            Bad(1e101, ValueError, "expected a number up to 1e100"),
        ],
    },
    VonMises: {"period": number(), "dispersion": per_column("expected numbers > 0", 0.0)},
    BetaBernoulli: {
        "a": per_column("expected numbers > 0", 0.0),
        "b": per_column("expected numbers > 0", -1.0),
        "binarize": [
            *(Bad(value, TypeError, "expected a finite number") for value in ("1", [0])),
            *(Bad(value, ValueError, "a finite number") for value in (np.nan, np.inf)),
        ],
    },
    AutoregressiveNormal: {
        "order": integer(0),
        "mean": [
            *(
                Bad(v, TypeError, "expected a number, a matrix of numbers or None")
                for v in ("a", 1j)
            ),
            Bad([1.0, 2.0], ValueError, "expected a number, or (1, 4)", "mean has the shape (2,)"),
            Bad([[1.0]], ValueError, "expected a number, or (1, 4)", "mean has the shape (1, 1)"),
            *(Bad(v, ValueError, "expected numbers up to 1e+100") for v in (np.inf, -1e101)),
        ],
        "strength": [
            *(bad for bad in per_column("expected numbers > 0", 0.0) if np.ndim(bad.value) == 0),
            Bad(
                [1.0, 2.0], ValueError, "expected a number, or 4 numbers", "strength has the shape"
            ),
        ],
        "dof": [bad for bad in number() if bad.value is not None],
        "scale": [
            *(bad for bad in number() if np.ndim(bad.value) == 0 and bad.value is not None),
            Bad([[-1.0]], ValueError, "expected a symmetric, positive definite matrix"),
            Bad([1.0, 2.0], ValueError, "but X has 1 columns", "scale has the shape"),
        ],
        "resolution": RESOLUTION,
        "input_features": context_features(),
        "noise": choice("auto", "normal", "student"),
        "subject_feature": SUBJECT_FEATURE,
    },
    BernoulliRegression: {
        "input_features": context_features(),
        "n_trials": ONE_COLUMN,
        "mean": FINITE,
        "precision": [bad for bad in number() if bad.value is not None],
        "subject_feature": SUBJECT_FEATURE,
    },
    CategoricalRegression: {
        "input_features": context_features(),
        "categories": [
            *(
                Bad(v, ValueError, "expected one array of symbols", "categories[0]")
                for v in (None, 5)
            ),
            *(Bad(v, ValueError, "expected two or more", "The options are ") for v in ([], [5])),
        ],
        "mean": FINITE,
        "precision": [bad for bad in number() if bad.value is not None],
    },
    NegativeBinomialRegression: {
        "input_features": context_features(),
        "exposure": ONE_COLUMN,
        "mean": FINITE,
        "precision": [bad for bad in number() if bad.value is not None],
        "dispersion": per_column("expected numbers > 0", 0.0),
        "subject_feature": SUBJECT_FEATURE,
    },
    ProductEmission: {
        "emissions": [
            *(
                Bad(value, ValueError, "expected a list of one or more triples")
                for value in (None, "hcrp", 3)
            ),
            Bad(
                [("a", "hcrp")],
                ValueError,
                "expected a list of one or more triples",
                "emissions holds ('a', ",
            ),
        ],
    },
    ParticleFilterScorer: {
        "n_particles": [bad for bad in integer(1) if bad.value is not None],
        "adaptive": flag(),
        "max_draws": optional_integer(1),
        "start": choice("new", "continue"),
        "random_state": random_state(),
        "n_jobs": n_jobs(),
    },
}
# The smallest (or another unusual) value of every kind that must be accepted.
GOOD: dict[type, dict[str, list[Any]]] = {
    HCRPHMM: {
        "init": [[0] * 20, np.arange(20, dtype=np.uint8)],
        "n_burnin": [0, np.int64(1), "auto"],
        "n_draws": [1],
        "thin": [1, "auto"],
        "n_chains": [1],
        "n_jobs": [None, -1, 1, np.int32(2)],
        "n_particles": [1],
        "store_states": [np.True_, False],
        "point_estimate": ["map", "binder"],
        "random_state": [None, 0, 2**32 - 1, np.random.RandomState(0)],
        "verbose": [False, 0],
    },
    HCRPTransitions: {
        "alpha": [1, np.float32(0.5), np.int8(2)],
        "concentration_prior": [None, [1, 2], np.array([0.5, 2.0])],
    },
    StepwiseGibbs: {"split_merge_rate": [0, 0.25, np.int64(1)]},
    BlockedBeam: {"block_size": [None, 1, 20, 21, 10**30]},
    HCRPCategorical: {"categories": [[[0, 1, 2, 3]], (range(9),), np.arange(4)[None]]},
    DirichletCategorical: {"concentration": [1e-3]},
    ParticleFilterScorer: {"max_draws": [None, 1, 99], "n_particles": [None, 1]},
}


def cases(table):
    for owner, parameters in table.items():
        for name, values in parameters.items():
            for i, value in enumerate(values):
                yield pytest.param(owner, name, value, id=f"{owner.__name__}-{name}-{i}")


@pytest.fixture(scope="module", name="X")
def twenty_steps():
    return np.arange(20).reshape(-1, 1) % 4


@pytest.fixture(scope="module")
def model(X):
    return HCRPHMM(**SHORT).fit(X)


PARTS = {"samplers": "sampler", "emissions": "emission", "transitions": "transitions"}


def use(owner, params, X, model):
    """Fit a model that has the object in it, or score with it."""
    if owner is HCRPHMM:
        return HCRPHMM(**{**SHORT, **params}).fit(X)
    if owner is ParticleFilterScorer:
        return ParticleFilterScorer(**params)(model, X)
    if owner is BernoulliRegression:
        X = X % 2
    part = PARTS[owner.__module__.split(".")[1]]
    return HCRPHMM(**{part: owner(**params)}, **SHORT).fit(X)


@pytest.fixture
def no_sampling(monkeypatch):
    def forbidden(*args, **kwargs):
        raise AssertionError("work had begun before the parameters were checked")

    monkeypatch.setattr(_fit, "run_chain", forbidden)
    monkeypatch.setattr(_hcrp_hmm, "log_predictive", forbidden)
    monkeypatch.setattr(_scorer, "log_predictive", forbidden)


def test_the_table_has_every_recipe():
    recipes = {type(recipe) for instances in INSTANCES.values() for recipe in instances}
    lacking = {recipe.__name__ for recipe in recipes - {*BAD}}
    assert not lacking, f"BAD has no row of {lacking}: add bad values of all of its parameters"


@pytest.mark.parametrize("owner", BAD, ids=lambda owner: owner.__name__)
def test_the_table_has_every_parameter(owner):
    names = set(inspect.signature(owner.__init__).parameters) - {"self", "args", "kwargs"}
    assert set(BAD[owner]) == names
    # What bad types and bad values there are; True and False have no bad value.
    for name, values in BAD[owner].items():
        errors = {bad.error for bad in values}
        assert errors, name
        assert len(values) >= 4, name


@pytest.mark.parametrize(("owner", "name", "bad"), [*cases(BAD)])
def test_bad_parameter(owner, name, bad, X, model, no_sampling):
    with pytest.raises((TypeError, ValueError)) as caught:
        use(owner, {name: bad.value}, X, model)
    assert type(caught.value) is bad.error
    message = str(caught.value)
    # Which parameter, its value, and what it should have been.
    if bad.shown is not None:
        assert bad.shown in message
    else:
        assert re.match(rf"{name}={re.escape(repr(bad.value))}[ ;]", message), message
    assert bad.expected in message, message
    assert message.endswith(".")


@pytest.mark.parametrize(("owner", "name", "value"), [*cases(GOOD)])
def test_good_parameter(owner, name, value, X, model):
    use(owner, {name: value}, X, model)


def test_the_guard_against_sampling_works(X, model, no_sampling):
    for owner in (HCRPHMM, ParticleFilterScorer):
        with pytest.raises(AssertionError, match="work had begun"):
            use(owner, {}, X, model)


def test_parameters_of_scores_are_checked_when_scoring(X, model, no_sampling):
    # They may have been changed since the fit.
    changed = pickle.loads(pickle.dumps(model)).set_params(n_jobs=0)
    with pytest.raises(ValueError, match="n_jobs=0; expected an integer"):
        changed.score(X)


def test_random_state_of_samples(X, model):
    for bad in random_state():
        with pytest.raises(ValueError, match=r"random_state=.*; expected an integer"):
            model.sample(2, random_state=bad.value)


def test_scorers_want_a_model(X, model):
    scorer = ParticleFilterScorer()
    for wrong in (3, HCRPCategorical(), make_pipeline(HCRPCategorical())):
        with pytest.raises(TypeError, match="expected a fitted HCRPHMM, or a Pipeline"):
            scorer(wrong, X)


# -- nested parameters ----------------------------------------------------------------


def test_get_params_lists_what_is_nested():
    sampler = BlockedBeam(block_size=4, split_merge_rate=2)
    model = HCRPHMM(sampler=sampler, emission=DirichletCategorical(0.5))
    deep, flat = model.get_params(), model.get_params(deep=False)
    assert flat["sampler"] is sampler
    nested = {
        "sampler__block_size": 4,
        "sampler__split_merge_rate": 2,
        "sampler__run_split_merge_rate": 0,
        "emission__concentration": 0.5,
        "emission__categories": "auto",
        "emission__handle_unknown": "base",
    }
    assert {key: deep[key] for key in deep.keys() - flat.keys()} == nested
    # A short name has nothing nested to list, though it can be set.
    assert HCRPHMM().get_params().keys() == HCRPHMM().get_params(deep=False).keys()


@pytest.mark.parametrize("name", SAMPLERS)
def test_nested_parameters_of_every_short_name(name, X):
    model = HCRPHMM(sampler=name, **SHORT)
    resolved = model.fit(X).sampler_
    parameters = resolved.get_params()
    copy = clone(model).set_params(
        **{f"sampler__{key}": value for key, value in parameters.items()}
    )
    if not parameters:
        assert copy.sampler == name
        return
    # The object stands for the short name; the model that was cloned keeps the name.
    assert type(copy.sampler) is type(resolved)
    assert copy.sampler.get_params() == parameters
    assert model.sampler == name
    np.testing.assert_array_equal(copy.fit(X).draws_.lp, model.draws_.lp)


@pytest.mark.parametrize(
    ("model", "sampler"),
    [
        ({}, "StepwiseGibbs(block_share=0.25, split_merge_rate=3)"),
        (
            {"emission": "gaussian"},
            "BlockedGibbs(block_size=10, drawn_share='auto', run_split_merge_rate=2, "
            "split_merge_rate=3)",
        ),
        (
            {"emission__mean": 0.0, "emission": "autoregressive"},
            "BlockedGibbs(block_size=8, run_split_merge_rate=4, split_merge_rate=3)",
        ),
        # Errors of others are those of fit.
        ({"emission": 3}, "StepwiseGibbs(block_share=0.25, split_merge_rate=3)"),
    ],
)
def test_nested_parameters_of_auto(model, sampler):
    """They are those of the sampler that fit would choose."""
    model = HCRPHMM().set_params(sampler__split_merge_rate=3, **model)
    assert " ".join(repr(model.sampler).split()) == sampler


def test_set_params_changes_what_samples(X):
    model = HCRPHMM(sampler="beam", **SHORT)
    model.set_params(sampler__block_size=2, sampler__split_merge_rate=3).fit(X)
    assert repr(model.sampler_) == "BlockedBeam(block_size=2, split_merge_rate=3)"
    assert np.isfinite(model.draws_.split_merge_acceptance_rate).all()
    # Changing the recipe after a fit does not change what was fitted.
    model.set_params(sampler__block_size=5)
    assert model.sampler_.block_size == 2
    # A new sampler and a parameter of it at once, whatever the order.
    model.set_params(sampler__block_size=6, sampler="blocked")
    assert repr(model.sampler) == "BlockedGibbs(block_size=6)"
    for wrong in ("sampler__blocksize", "emission__block_size", "sampler__x__y"):
        with pytest.raises(ValueError, match="Invalid parameter"):
            HCRPHMM(sampler="beam").set_params(**{wrong: 1})
    with pytest.raises(ValueError, match="sampler='none'; expected one of"):
        HCRPHMM(sampler="none", **SHORT).fit(X)


# -- sample_weight --------------------------------------------------------------------


def test_sample_weight_is_refused_everywhere(X, model):
    # Steps of a sequence cannot be weighted.  `fit` has no such argument at all: with
    # one, scikit-learn would take the model for an estimator that supports weights.
    weights = np.ones(len(X))
    # Some versions of scikit-learn check arguments before the method that explains errors.
    refused = r"fit(\(\) got an unexpected .*| has no parameter )'sample_weight'"
    with pytest.raises(TypeError, match=refused):
        HCRPHMM(**SHORT).fit(X, sample_weight=weights)
    with pytest.raises(ValueError, match="steps of a sequence cannot be weighted"):
        model.score(X, sample_weight=weights)
    assert model.score(X, sample_weight=None) == model.score(X)
    pipeline = make_pipeline(HCRPHMM(**SHORT))
    with pytest.raises(TypeError, match=refused):
        pipeline.fit(X, hcrphmm__sample_weight=weights)
    with pytest.raises(ValueError, match="steps of a sequence cannot be weighted"):
        make_pipeline(model).score(X, sample_weight=weights)
    search = GridSearchCV(
        HCRPHMM(**SHORT), {"transitions__alpha": [1.0]}, cv=2, error_score="raise"
    )
    with pytest.raises(TypeError, match=refused):
        search.fit(X, sample_weight=weights)


def test_sample_weight_is_not_routed(X, model):
    weights = np.ones(len(X))
    with sklearn.config_context(enable_metadata_routing=True):
        for wrapped in (
            make_pipeline(HCRPHMM(**SHORT)),
            GridSearchCV(HCRPHMM(**SHORT), {"transitions__alpha": [1.0]}, cv=2),
        ):
            with pytest.raises((TypeError, ValueError), match="sample_weight"):
                wrapped.fit(X, sample_weight=weights)
            # Nothing is asked for where nothing is given.
            wrapped.fit(X)
