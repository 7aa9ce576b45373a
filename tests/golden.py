"""Golden chains: seeded runs of every sampler with every emission, and what they gave.

A rebuilding must not change a draw.  ``tests/golden.json`` holds the results as they were
when recorded; ``house/test_golden.py`` compares labels exactly and floats to 1e-9, because
vector code for another processor rounds differently.  On one machine::

    python tests/golden.py compare     # every bit
    python tests/golden.py record      # after an intended change of a random stream
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from unittest import mock

import numpy as np
from extension.exponential import Exponential

from skihmm import HCRPHMM
from skihmm._fitting import fit as _fit
from skihmm.emissions import (
    AutoregressiveNormal,
    BaseEmission,
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
from skihmm.metrics import ParticleFilterScorer
from skihmm.samplers import (
    BlockedBeam,
    BlockedGibbs,
    DirectAssignmentGibbs,
    StepwiseGibbs,
    StepwiseSlice,
    StickBreakingBeam,
    StickBreakingGibbs,
)
from skihmm.transitions import HCRPTransitions

FILE = Path(__file__).with_suffix(".json")

SAMPLERS = {
    "auto": "auto",
    "exact": StepwiseGibbs("exact"),
    "rcd": StepwiseGibbs("rcd", split_merge_rate=2),
    "slice": StepwiseSlice(),
    "slice sm": StepwiseSlice(split_merge_rate=1.5),
    "blocked": BlockedGibbs(4),
    "blocked sm": BlockedGibbs(3, split_merge_rate=2),
    "beam": BlockedBeam(4),
    "beam sm": BlockedBeam(8, split_merge_rate=1),
    "exact runs": StepwiseGibbs("exact", split_merge_rate=2, run_split_merge_rate=2),
    "blocked runs": BlockedGibbs(4, run_split_merge_rate=1.5),
    "direct assignment": DirectAssignmentGibbs(),
    "stick-breaking": StickBreakingGibbs(),
    "stick-breaking beam": StickBreakingBeam(),
}
PIECES = {"stick-breaking pieces": StickBreakingGibbs(5, 1, n_jobs=2)}


def _symbols(n_rows: int, n_symbols: int, seed: int) -> np.ndarray:
    """A noisy cycle of symbols, with some missing values."""
    rng = np.random.default_rng(seed)
    X = (np.arange(n_rows) // 2 % n_symbols).astype(float)
    X[rng.random(n_rows) < 0.2] = rng.integers(n_symbols)
    X[rng.random(n_rows) < 0.05] = np.nan
    return X[:, None]


def _vectors(n_rows: int, n_columns: int, seed: int) -> np.ndarray:
    """Three clusters in turn, with some missing values."""
    rng = np.random.default_rng(seed)
    centres = 3.0 * rng.standard_normal((3, n_columns))
    X = centres[np.arange(n_rows) // 4 % 3] + rng.standard_normal((n_rows, n_columns))
    X[rng.random(X.shape) < 0.04] = np.nan
    return X


def _walks(n_rows: int, n_columns: int, seed: int) -> np.ndarray:
    """Sums of such steps, with some missing rows."""
    X = np.nancumsum(_vectors(n_rows, n_columns, seed), axis=0)
    X[::17] = np.nan
    return X


def _mixed(n_rows: int) -> np.ndarray:
    return np.hstack([_symbols(n_rows, 4, 5), _vectors(n_rows, 3, 6)])


def _counts(n_rows: int) -> np.ndarray:
    return np.round(np.exp(_vectors(n_rows, 2, 7) / 2))


EMISSIONS: dict[str, tuple[Callable[[], object], np.ndarray]] = {
    "hcrp": (HCRPCategorical, _symbols(120, 5, 0)),
    "hcrp, two columns": (
        lambda: HCRPCategorical(0.5, 2.0, concentration_prior=None),
        np.hstack([_symbols(120, 3, 1), _symbols(120, 4, 2)]),
    ),
    "dirichlet": (DirichletCategorical, _symbols(120, 5, 3)),
    "gaussian": (NormalInverseWishart, _vectors(120, 2, 4)),
    "gaussian, fixed": (
        lambda: NormalInverseWishart(np.zeros(3), 0.2, 5.0, 2 * np.eye(3)),
        _vectors(120, 3, 8),
    ),
    "diagonal_gaussian": (NormalInverseGamma, _vectors(120, 3, 9)),
    "autoregressive": (AutoregressiveNormal, _vectors(120, 2, 14)),
    "autoregressive, fixed": (
        lambda: AutoregressiveNormal(1, 0.5, 1.0, 6.0, 2.0),
        _walks(120, 3, 15),
    ),
    "poisson": (GammaPoisson, _counts(120)),
    "bernoulli": (BetaBernoulli, np.where(_vectors(120, 4, 10) > 0, 1.0, 0.0)),
    "negative_binomial": (BetaNegativeBinomial, _counts(120)),
    "gamma": (GammaGamma, np.exp(_vectors(120, 2, 14))),
    "von_mises": (VonMises, np.arctan(_vectors(120, 2, 15))),
    "python": (Exponential, np.abs(_vectors(120, 2, 13))),
    "product": (
        lambda: ProductEmission(
            [("word", HCRPCategorical(), [0]), ("place", NormalInverseGamma(), [1, 2, 3])]
        ),
        _mixed(120),
    ),
}
GROUPS = np.repeat([0, 1, 2], [50, 1, 69])


def _digest(values: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(values, dtype="<i8").tobytes()).hexdigest()[:16]


def _outcome(hmm: HCRPHMM) -> dict:
    """What a fit gave: a digest of all labels, and sums over draws as floats."""
    draws = hmm.draws_
    return {
        "labels": _digest(draws.states),
        "tables": _digest(np.nan_to_num(draws.n_tables, nan=-1.0)),
        "lp": draws.lp.sum(axis=1).tolist(),
        "acceptance": draws.acceptance_rate.sum(axis=1).tolist(),
        "hyperparameters": {
            name: float(values.sum()) for name, values in draws.hyperparameters.items()
        },
    }


def _model(sampler, emission, **options) -> HCRPHMM:
    settings = {"n_burnin": 10, "n_draws": 5, "thin": 2, "n_chains": 2, "random_state": 3}
    settings |= {"transitions": "hcrp"} | options
    return HCRPHMM(sampler=sampler, emission=emission, **settings)


def _adaptive(hmm: HCRPHMM) -> ParticleFilterScorer:
    return ParticleFilterScorer(hmm.n_particles, adaptive=True)


def _sampled(sampler: str, emission: str) -> dict:
    make, X = EMISSIONS[emission]
    recipe = (SAMPLERS | PIECES)[sampler]
    return _outcome(_model(recipe, make()).fit(X, groups=GROUPS))


def _many_states(sampler: str) -> dict:
    """From 150 random states: the sparse paths, ghosts and new slots."""
    X = _symbols(1500, 90, 11)
    init = np.random.default_rng(12).integers(150, size=1500)
    hmm = _model(SAMPLERS[sampler], "hcrp", init=init, n_burnin=0, n_draws=3, thin=1)
    return _outcome(hmm.fit(X))


def _known_states(sampler: str) -> dict:
    make, X = EMISSIONS["gaussian"]
    states = np.full(120, -1)
    states[5:9], states[60:64], states[64:66] = 0, 1, 7
    hmm = _model(SAMPLERS[sampler], make())
    return _outcome(hmm.fit(X, groups=GROUPS, states=states))


def _predictions(emission: str) -> dict:
    """Scores, frozen and adaptive, forecasts, imputation and simulation."""
    make, X = EMISSIONS[emission]
    hmm = _model("auto", make(), n_particles=20).fit(X, groups=GROUPS)
    test = X[3:40]
    simulated, labels = hmm.sample(30, random_state=4)
    # Later steps of an emission that looks back have no log probability.
    n_steps = 1 if hmm.emission_.n_inputs else 2
    forecast = hmm.predict_next(X[:30], n_steps=n_steps)
    frozen = ParticleFilterScorer(adaptive=False)(hmm, test)
    simulated = np.asarray(simulated, dtype=float)
    imputed = np.asarray(hmm.impute(X, groups=GROUPS), dtype=float)
    return {
        "adaptive": _adaptive(hmm).score_samples(hmm, test).tolist()[-4:],
        "frozen": float(frozen),
        "path": _digest(hmm.predict(X, groups=GROUPS)),
        "probs": hmm.predict_proba(test).sum(axis=0).tolist(),
        "simulated labels": _digest(labels),
        "simulated": float(np.nansum(simulated)),
        "forecast": np.asarray(forecast.log_prob(test[:n_steps])).ravel().tolist(),
        "imputed": float(np.nansum(imputed)),
    }


def _dwelling(transitions: str, sampler: str, emission: str) -> dict:
    """Every state has a probability to stay; continued by `partial_fit`."""
    make, X = EMISSIONS[emission]
    hmm = _model(SAMPLERS[sampler], make(), transitions=DWELLING[transitions])
    hmm.partial_fit(X[:80]).partial_fit(X[80:])
    return {**_outcome(hmm), "score": float(_adaptive(hmm).score(hmm, X[:20]))}


def _continued() -> dict:
    """More data by `partial_fit`, more draws by `warm_start`."""
    make, X = EMISSIONS["gaussian"]
    hmm = _model("auto", make(), warm_start=True)
    groups = np.repeat([0, 1], [50, 70])
    hmm.partial_fit(X[:50], groups=groups[:50]).partial_fit(X[50:], groups=groups[50:])
    return _outcome(hmm.fit(X, groups=groups))


DWELLING = {
    "sampled": HCRPTransitions(expected_dwell=6),
    "fixed": HCRPTransitions(stay_prior=(4, 0.7)),
}


def _contexts(order: str, sampler: str, emission: str, n_columns: int = 2, **options) -> dict:
    """Transitions that depend on columns; continued by `partial_fit`."""
    make, X = EMISSIONS[emission]
    rng = np.random.default_rng(16)
    given = rng.integers([3, 2], size=(len(X), 2)).astype(float)
    given[rng.random(given.shape) < 0.05] = np.nan
    given = given[:, :n_columns]
    X, n = np.hstack([X, given]), X.shape[1]
    transitions = HCRPTransitions(
        context_features=np.arange(n, n + n_columns), context_order=order, **options
    )
    hmm = _model(SAMPLERS[sampler], make(), transitions=transitions, n_particles=20)
    return _in_contexts(hmm, X, given)


def _given(sampler: str) -> dict:
    """Two columns of symbols that depend on others, as transitions do on one of these."""
    X = np.hstack([_symbols(120, 3, 1), _symbols(120, 4, 2)])
    rng = np.random.default_rng(17)
    given = rng.integers([3, 2], size=(len(X), 2)).astype(float)
    given[rng.random(given.shape) < 0.05] = np.nan
    X = np.hstack([X, given])
    emission = HCRPCategorical(context_features=[3, 2])
    transitions = HCRPTransitions(context_features=[2] if sampler == "rcd" else None)
    hmm = _model(SAMPLERS[sampler], emission, transitions=transitions, n_particles=20)
    return _in_contexts(hmm, X, given if sampler == "rcd" else given[:, ::-1])


def _in_contexts(hmm: HCRPHMM, X: np.ndarray, given: np.ndarray) -> dict:
    hmm.partial_fit(X[:80]).partial_fit(X[80:])
    simulated, labels = hmm.sample(20, random_state=4, contexts=given[:20])
    return {
        **_outcome(hmm),
        "score": float(_adaptive(hmm).score(hmm, X[:20])),
        "frozen": float(ParticleFilterScorer(adaptive=False)(hmm, X[:20])),
        "path": _digest(hmm.predict(X[:40])),
        "simulated": _digest(labels),
        "values": float(np.nansum(np.asarray(simulated, dtype=float))),
    }


def _scored(hmm: HCRPHMM, X: np.ndarray, labels: np.ndarray, values: np.ndarray) -> dict:
    """A fit, its scores and paths, simulated labels, and a sum of some values."""
    return {
        **_outcome(hmm),
        "score": float(_adaptive(hmm).score(hmm, X[:20])),
        "path": _digest(hmm.predict(X[:40])),
        "simulated": _digest(labels),
        "values": float(values.sum()),
    }


def _regressions(sampler: str) -> dict:
    """Two regressions that share an input."""
    X = np.hstack([_walks(120, 2, 15), np.random.default_rng(16).normal(size=(120, 2))])
    emission = ProductEmission(
        [
            ("walk", AutoregressiveNormal(1, input_features=[3]), [0]),
            ("level", AutoregressiveNormal(0, input_features=[2, 3], noise="normal"), [1]),
        ]
    )
    hmm = _model(SAMPLERS[sampler], emission).fit(X, groups=GROUPS)
    simulated, labels = hmm.sample(20, random_state=4, inputs=X[:20, [3, 2]])
    return _scored(hmm, X, labels, simulated)


def _weighted(sampler: str, kind: str) -> dict:
    """Regressions that are conjugate given weights, which a chain draws."""
    rng = np.random.default_rng(17)
    inputs = rng.normal(size=(120, 2))
    is_one = rng.random(120) < 1 / (1 + np.exp(-2 * inputs[:, 0]))
    values, extra = is_one.astype(int), []
    emission: BaseEmission = BernoulliRegression([1, 2])
    if kind == "choice":
        values, emission = values + (inputs[:, 1] > 1), CategoricalRegression([1, 2])
    elif kind == "log_linear":
        values, extra = rng.poisson(2 + 5 * is_one), [rng.uniform(0.5, 2.0, 120)]
        emission = NegativeBinomialRegression([1, 2], exposure=3)
    elif kind == "student":
        values = inputs[:, 0] + rng.standard_t(3, 120)
        emission = AutoregressiveNormal(1, input_features=[1, 2], noise="student")
    X = np.column_stack([values, inputs, *extra]).astype(float)
    X[7, 0] = np.nan
    hmm = _model(SAMPLERS[sampler], emission).fit(X, groups=GROUPS)
    simulated, labels = hmm.sample(20, random_state=4, inputs=X[:20, 1:])
    return _scored(hmm, X, labels, simulated)


def _staying(sampler: str, **options) -> dict:
    """Staying that depends on two inputs."""
    X = np.hstack([_vectors(120, 1, 18), np.random.default_rng(19).normal(size=(120, 2))])
    given = {}
    if options.get("context_features"):
        X = np.column_stack([X, np.arange(120) // 7 % 2])
        given = {"contexts": X[:20, 3:]}
    transitions = HCRPTransitions(input_features=[1, 2], **options)
    hmm = _model(SAMPLERS[sampler], NormalInverseGamma(), transitions=transitions).fit(
        X, groups=GROUPS
    )
    inputs = X[:20, 1:3]
    labels = hmm.sample(20, random_state=4, inputs=inputs, **given)[1]
    return _scored(hmm, X, labels, hmm.stay_probabilities(inputs))


def _subjects(sampler: str, emission: str) -> dict:
    """Subjects with an offset, or a scale too; one of them is new."""
    subject = np.repeat([0, 1, 2, 0], 30)
    X = np.column_stack([_vectors(120, 2, 20) + subject[:, None], subject])
    makers = {
        "gaussian": NormalInverseWishart(subject_feature=2),
        "scales": NormalInverseGamma(subject_feature=2, subject_scale=True),
        "walk": AutoregressiveNormal(1, subject_feature=2),
    }
    hmm = _model(SAMPLERS[sampler], makers[emission]).fit(X, groups=np.arange(120) // 30)
    new = np.column_stack([X[:20, :2], np.full(20, 5)])
    return {
        **_outcome(hmm),
        "score": float(hmm.score(new)),
        "path": _digest(hmm.predict(new)),
        "values": float(hmm.emission_.subject_offsets_.sum()),
    }


CASES: dict[str, Callable[[], dict]] = {
    **{
        f"{sampler} | {emission}": lambda s=sampler, e=emission: _sampled(s, e)
        for sampler in SAMPLERS
        for emission in EMISSIONS
    },
    **{f"{name} | many states": lambda s=name: _many_states(s) for name in SAMPLERS},
    **{f"{name} | known states": lambda s=name: _known_states(s) for name in SAMPLERS},
    **{f"predictions | {name}": lambda e=name: _predictions(e) for name in EMISSIONS},
    **{
        f"start {init} | {name}": lambda i=init, n=name: _outcome(
            _model("auto", EMISSIONS[n][0](), init=i).fit(EMISSIONS[n][1])
        )
        for init in ("particle_filter", "random", "blocks")
        for name in ("hcrp", "gaussian")
    },
    **{
        f"{sampler} | {emission}": partial(_sampled, sampler, emission)
        for sampler in PIECES
        for emission in ("hcrp", "gaussian", "product")
    },
    "continued": _continued,
    **{
        f"{sampler} | regressions": partial(_regressions, sampler)
        for sampler in ("auto", "rcd", "slice sm", "stick-breaking")
    },
    **{
        f"{sampler} | {kind}": partial(_weighted, sampler, kind)
        for sampler in ("auto", "rcd", "stick-breaking")
        for kind in ("logistic", "log_linear", "choice", "student")
    },
    **{
        f"{sampler} | inputs of staying{name}": partial(_staying, sampler, **options)
        for sampler, name, options in (
            *((sampler, "", {}) for sampler in ("auto", "rcd", "exact runs", "beam sm")),
            ("blocked sm", ", contexts", {"context_features": [3]}),
        )
    },
    **{
        f"{sampler} | subjects | {emission}": partial(_subjects, sampler, emission)
        for sampler in ("auto", "rcd")
        for emission in ("gaussian", "scales", "walk")
    },
    **{
        f"{sampler} | contexts of symbols": partial(_given, sampler)
        for sampler in ("auto", "rcd", "slice sm", "blocked runs", "beam sm")
    },
    **{
        f"{sampler} | {transitions} dwell times | {emission}": partial(
            _dwelling, transitions, sampler, emission
        )
        for transitions in DWELLING
        for sampler in ("auto", "rcd", "blocked sm", "beam")
        for emission in ("hcrp", "gaussian")
    },
    **{
        f"slice sm | sampled dwell times | {emission}": partial(
            _dwelling, "sampled", "slice sm", emission
        )
        for emission in ("hcrp", "gaussian")
    },
    **{
        f"{sampler} | {order} first | {emission}": partial(_contexts, order, sampler, emission)
        for order in ("state", "context")
        for sampler in ("auto", "rcd", "blocked sm", "slice", "beam sm")
        for emission in ("hcrp", "gaussian")
    },
    **{
        f"{sampler} | {order} first, {name} | {emission}": partial(
            _contexts, order, sampler, emission, **options
        )
        for order, sampler, emission, name, options in (
            ("state", "exact runs", "hcrp", "runs", {}),
            *(
                ("context", sampler, "hcrp", "one column", {"n_columns": 1})
                for sampler in ("auto", "rcd", "slice")
            ),
            ("state", "auto", "hcrp", "dwelling", {"expected_dwell": 6}),
            ("state", "beam sm", "hcrp", "dwelling", {"expected_dwell": 6}),
            ("context", "slice", "gaussian", "dwelling", {"stay_prior": (3, 1)}),
        )
    },
}


def outcome(name: str) -> dict:
    """What a chain gives; chains count equally in the summaries of several."""
    ranks = np.full((2, 1), np.nan)
    with mock.patch.object(_fit, "chain_ranks", return_value=ranks):
        return CASES[name]()


def recorded() -> dict[str, dict]:
    return json.loads(FILE.read_text())


def main(command: str) -> None:
    results = {name: outcome(name) for name in CASES}
    if command == "record":
        lines = (f"{json.dumps(name)}: {json.dumps(r)}" for name, r in results.items())
        FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
        return
    expected = recorded()
    changed = [name for name in results if results[name] != expected[name]]
    print(f"{len(changed)} of {len(results)} golden chains differ", *changed, sep="\n  ")
    sys.exit(bool(changed))


if __name__ == "__main__":
    main(*sys.argv[1:])
