"""Fitted models saved and loaded: pickle, joblib and skops."""

from __future__ import annotations

import io
import json
import operator
import os
import pickle
import subprocess
import sys
import warnings
import zipfile

import joblib
import numpy as np
import pytest
from fitting.test_reproducibility import assert_same
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from skihmm import HCRPHMM, OnlineFilter, _pickles
from skihmm.emissions import AutoregressiveNormal, DirichletCategorical, HCRPCategorical
from skihmm.samplers import BlockedBeam, BlockedGibbs, StepwiseGibbs, StepwiseSlice
from skihmm.samplers._names import SAMPLERS
from skihmm.transitions import HCRPTransitions

SHORT = {"n_burnin": 4, "n_draws": 3, "thin": 2, "n_particles": 10, "n_chains": 2}
LETTERS = np.array(list("vwxyz"), dtype=object)
MODELS = {
    **{name: HCRPHMM(sampler=name, random_state=0, **SHORT) for name in SAMPLERS},
    "stepwise and trials": HCRPHMM(
        StepwiseGibbs(proposal="rcd", split_merge_rate=1.5),
        HCRPCategorical(0.5, 2.0, concentration_prior=None, categories=[LETTERS]),
        random_state=0,
        **SHORT,
    ),
    "slice and trials": HCRPHMM(
        StepwiseSlice(split_merge_rate=1),
        DirichletCategorical(0.3, handle_unknown="missing"),
        store_states=False,
        random_state=np.random.RandomState(3),
        **SHORT,
    ),
    "blocks and trials": HCRPHMM(
        BlockedGibbs(block_size=3, split_merge_rate=1),
        "dirichlet",
        init=np.arange(60) % 5,
        transitions=HCRPTransitions(concentration_prior=None),
        random_state=0,
        **SHORT,
    ),
    "beam and trials": HCRPHMM(
        BlockedBeam(block_size=4, split_merge_rate=2),
        HCRPCategorical(handle_unknown="error"),
        init="random",
        random_state=None,
        **SHORT,
    ),
    "contexts": HCRPHMM(
        emission=HCRPCategorical(context_features=[2]),
        transitions=HCRPTransitions(context_features=[1, 2], context_order="context"),
        random_state=0,
        **SHORT,
    ),
    "inputs": HCRPHMM(
        emission=AutoregressiveNormal(1, input_features=[1]), random_state=0, **SHORT
    ),
    **{
        name: HCRPHMM(emission=name, random_state=0, **SHORT)
        for name in ("gaussian", "diagonal_gaussian", "autoregressive", "poisson", "bernoulli")
    },
}


def data_for(model, sequence):
    """Numbers, or letters for a model that expects them; some are missing."""
    letters = isinstance(getattr(model.emission, "categories", None), list)
    X = LETTERS[sequence] if letters else sequence.astype(float)
    if model.emission == "bernoulli":
        X %= 2
    X[[5, 6, 40]] = None if letters else np.nan
    if getattr(model.transitions, "context_features", None):
        steps = np.arange(len(X))
        contexts = np.column_stack([np.where(steps % 7, steps % 3, np.nan), steps % 2])
        X = np.hstack([X, contexts])
    if getattr(model.emission, "input_features", None):
        X = np.hstack([X, np.sin(np.arange(len(X)))[:, None]])
    return X


@pytest.fixture(scope="module", params=MODELS)
def fitted_to(request, sequence):
    """A fitted model and the two sequences that it was fitted to."""
    model = MODELS[request.param]
    X = data_for(model, sequence)
    return model.fit(X, lengths=[25, 35]), X


def check_same(copy, model, X):
    """Everything that a fitted model does, bit for bit."""
    assert type(copy) is type(model)
    # (An initial path may be mapped; a generator's repr is its address.)
    for name in model.get_params(deep=False).keys() - {"init", "random_state"}:
        assert repr(getattr(copy, name)) == repr(getattr(model, name)), name
    assert set(vars(copy)) == set(vars(model))
    assert_same(copy, model)
    for method in ("predict", "predict_proba", "score_samples"):
        one, two = getattr(copy, method)(X), getattr(model, method)(X)
        assert one.tobytes() == two.tobytes(), method
    assert copy.score(X) == model.score(X)
    coming = {"random_state": 1}
    if getattr(model.emission, "input_features", None):
        coming["inputs"] = X[:30, [1]]
    for one, two in zip(copy.sample(30, **coming), model.sample(30, **coming), strict=True):
        np.testing.assert_array_equal(one, two)


def check_continues(copy, model, X):
    """Both go on with the same random numbers."""
    for each in (copy, model):
        each.set_params(warm_start=True).fit(X, lengths=[25, 35])
        assert each.draws_.shape == (2, 6)
    check_same(copy, model, X)


def through_pickle(model):
    return pickle.loads(pickle.dumps(model))


# -- joblib ---------------------------------------------------------------------------


def test_joblib(fitted_to, tmp_path):
    model, X = fitted_to
    joblib.dump(model, tmp_path / "model.joblib")
    # Arrays that are mapped cannot be written to.
    copy = joblib.load(tmp_path / "model.joblib", mmap_mode="r")
    check_same(copy, model, X)
    check_continues(copy, through_pickle(model), X)


# -- skops ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sio():
    """The module that saves without pickling."""
    return pytest.importorskip("skops.io")


def nodes(schema):
    """(module, class) of everything in a file's table of contents."""
    if isinstance(schema, dict):
        if "__class__" in schema:
            yield schema["__module__"], schema["__class__"]
        for value in schema.values():
            yield from nodes(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from nodes(value)


def test_skops(sio, fitted_to):
    model, X = fitted_to
    data = sio.dumps(model, compression=zipfile.ZIP_DEFLATED)
    types = sio.get_untrusted_types(data=data)
    assert "skihmm._hcrp_hmm.HCRPHMM" in types
    assert all(name.startswith("skihmm.") for name in types), types
    copy = sio.loads(data, trusted=types)
    check_same(copy, model, X)
    check_continues(copy, through_pickle(model), X)


def test_a_file_of_skops_holds_arrays_and_numbers(sio, fitted_to):
    model, _ = fitted_to
    with zipfile.ZipFile(io.BytesIO(sio.dumps(model))) as file:
        schema = json.loads(file.read("schema.json"))
        names = set(file.namelist()) - {"schema.json"}
    found = {pair for pair in nodes(schema) if not pair[0].startswith("skihmm.")}
    plain = {
        ("builtins", "dict"),
        ("builtins", "list"),
        ("builtins", "tuple"),
        ("builtins", "str"),  # skops' name for what JSON can hold, numbers too
        ("numpy", "ndarray"),
    }
    if isinstance(model.random_state, np.random.RandomState):
        plain.add(("numpy.random.mtrand", "RandomState"))
    assert found - plain == set()
    assert ("numpy", "ndarray") in found
    assert names
    assert all(name.endswith(".npy") for name in names)


def test_skops_refuses_what_is_not_trusted(sio, fitted):
    data = sio.dumps(fitted)
    with pytest.raises(sio.exceptions.UntrustedTypesFoundException, match="HCRPHMM"):
        sio.loads(data)


def test_skops_file_and_pipeline(sio, sequence, tmp_path):
    words = LETTERS[sequence]
    model = make_pipeline(
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan),
        HCRPHMM(random_state=0, **SHORT),
    ).fit(words)
    sio.dump(model, tmp_path / "model.skops")
    types = sio.get_untrusted_types(file=tmp_path / "model.skops")
    assert all(name.startswith("skihmm.") for name in types), types
    copy = sio.load(tmp_path / "model.skops", trusted=types)
    np.testing.assert_array_equal(copy.predict(words), model.predict(words))
    assert copy.score(words) == model.score(words)


def test_another_version_warns(sio, fitted, sequence, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(_pickles, "__version__", "0.0.7")
        joblib.dump(fitted, tmp_path / "model.joblib")
        data = sio.dumps(fitted)
    types = sio.get_untrusted_types(data=data)
    for load in (
        lambda: joblib.load(tmp_path / "model.joblib"),
        lambda: sio.loads(data, trusted=types),
    ):
        with pytest.warns(UserWarning, match=r"pickled by skihmm 0\.0\.7"):
            copy = load()
        np.testing.assert_array_equal(copy.predict(sequence), fitted.predict(sequence))


def test_another_layout_is_refused(fitted, monkeypatch):
    models = [fitted, HCRPHMM(), fitted.find_regimes(), OnlineFilter(fitted)]
    content = [pickle.dumps(model) for model in models]
    monkeypatch.setattr(_pickles, "LAYOUT", _pickles.LAYOUT + 1)
    later = [pickle.dumps(model) for model in models]
    for each in content:
        with pytest.raises(ValueError, match=r"pickled by skihmm .* with layout 1; .* layout 2"):
            pickle.loads(each)
    monkeypatch.undo()
    for each in later:
        with pytest.raises(ValueError, match="with layout 2"):
            pickle.loads(each)
    # All of the same version, without a word.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for each in content:
            pickle.loads(each)


def test_parts_of_a_model_of_another_version_warn(fitted, monkeypatch):
    monkeypatch.setattr(_pickles, "__version__", "0.0.7")
    content = [pickle.dumps(model) for model in (fitted.find_regimes(), OnlineFilter(fitted))]
    monkeypatch.undo()
    for each in content:
        with pytest.warns(UserWarning, match=r"pickled by skihmm 0\.0\.7"):
            pickle.loads(each)


def test_what_was_found_later_is_not_pickled(fitted):
    live = OnlineFilter(fitted)
    before, of_model = len(pickle.dumps(live)), len(pickle.dumps(fitted))
    fitted.summary(), fitted.diagnose(), fitted.find_regimes(2)
    assert len(pickle.dumps(OnlineFilter(fitted))) == len(pickle.dumps(live)) == before
    assert len(pickle.dumps(fitted)) == of_model
    # It has no row of the fit.
    content = pickle.dumps(live)
    assert fitted.labels_.tobytes() not in content
    assert fitted.labels_.tobytes() in pickle.dumps(fitted)
    copy = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(copy.regimes_, fitted.regimes_)


# -- another process ------------------------------------------------------------------

IN_A_NEW_PROCESS = """
import pickle
import joblib, numpy as np

X = np.load("X.npy")
import skops.io as sio

types = sio.get_untrusted_types(file="model.skops")
for model in (
    pickle.load(open("model.pickle", "rb")),
    joblib.load("model.joblib"),
    sio.load("model.skops", trusted=types),
):
    model.fit(X)
    print(model.draws_.lp.tobytes().hex(), model.score(X).hex())
"""


def test_a_new_process_goes_on(sio, sequence, tmp_path):
    model = HCRPHMM(
        BlockedBeam(4, split_merge_rate=1), warm_start=True, random_state=0, **SHORT
    ).fit(sequence)
    np.save(tmp_path / "X.npy", sequence)
    with open(tmp_path / "model.pickle", "wb") as file:
        pickle.dump(model, file)
    joblib.dump(model, tmp_path / "model.joblib")
    sio.dump(model, tmp_path / "model.skops")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", IN_A_NEW_PROCESS],
        cwd=tmp_path,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    model.fit(sequence)
    expected = f"{model.draws_.lp.tobytes().hex()} {model.score(sequence).hex()}"
    assert done.stdout.splitlines() == [expected] * 3


# -- what belongs to a run and not to its model ---------------------------------------


def test_callback_and_checkpoint_are_not_saved(sio, sequence, tmp_path):
    def callback(report):
        return None

    path = tmp_path / "run.npz"
    params = {**SHORT, "n_chains": 1, "callback": callback, "checkpoint": path}
    model = HCRPHMM(random_state=0, **params)
    # On its way to a worker, before it is fitted, it keeps both.
    unfitted = clone(model).set_params(callback=operator.not_)
    assert through_pickle(unfitted).checkpoint == path
    assert through_pickle(unfitted).callback is operator.not_
    model.fit(sequence)
    # A function of this kind cannot be pickled, nor saved by skops.
    data = sio.dumps(model)
    for copy in (
        through_pickle(model),
        sio.loads(data, trusted=sio.get_untrusted_types(data=data)),
    ):
        assert copy.get_params()["callback"] is None
        assert copy.get_params()["checkpoint"] is None
        assert copy.score(sequence) == model.score(sequence)
        copy.set_params(warm_start=True).fit(sequence)
        assert copy.draws_.shape == (1, 6)
    # The model itself and its clones keep them.
    for kept in (model, clone(model)):
        assert kept.callback is callback
        assert kept.checkpoint == path
