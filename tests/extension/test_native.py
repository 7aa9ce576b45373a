"""A package that builds on the compiled core: it compiles, and it is exact."""

from __future__ import annotations

import importlib
import pickle
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from native import build
from reference.conjugate import ConjugateEmission as Definition
from reference.conjugate import as_matrix
from scipy.special import betaln
from small_models import COLUMNS, DENSITIES, MODELS, SAMPLERS, Model, assert_caught, assert_exact

import skihmm
from skihmm import HCRPHMM
from skihmm.testing import check_emission, check_proposal, check_sampler

SOURCE = Path(__file__).parent / "native"


@pytest.fixture(scope="session")
def extra():
    """The package, built against the installed skihmm."""
    build.require_compiler("cl")

    def install(folder):
        shutil.copytree(SOURCE, folder / "source")
        setup = folder / "source" / "setup.py"
        # Compiling for speed takes more time than running the tests.
        setup.write_text(setup.read_text("utf-8").replace('"-O2"', '"-Og", "-g0"'), "utf-8")
        build.run(
            *(sys.executable, "-m", "pip", "install", "--quiet"),
            *("--no-build-isolation", "--no-deps", "--no-index"),
            *("--target", folder / "site", "."),
            cwd=folder / "source",
        )

    parts = [path.read_bytes() for path in sorted(SOURCE.rglob("*.*")) if path.is_file()]
    site = str(build.once(build.key("extension", parts), install) / "site")
    sys.path.insert(0, site)
    yield importlib.import_module("skihmm_extra")
    sys.path.remove(site)


def test_headers_are_where_they_are_said_to_be():
    folders = list(map(Path, skihmm.get_include()))
    names = [path.name for folder in folders for path in folder.glob("*.hpp")]
    assert {"_rcd.hpp", "_family.hpp", "_conjugate_table.hpp", "_weights.hpp"} < {*names}
    assert sorted(names) == sorted(path.name for path in build.PACKAGE.rglob("*.hpp"))


@pytest.mark.statistical
def test_its_authors_checks(extra, global_random_seed):
    check_proposal(extra.ForwardProposal, random_state=global_random_seed)
    check_sampler(extra.ForwardSampler(1), random_state=global_random_seed, n_sweeps=100)
    X = np.random.default_rng(0).geometric(0.2, size=(40, 1)) - 1.0
    X[3] = np.nan
    check_emission(extra.Geometric(1.2, 0.8), X, random_state=global_random_seed)


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["two sequences", "missing at the end", "large concentrations"])
@pytest.mark.parametrize("split_merge_rate", [0, 1])
def test_proposal(extra, name, split_merge_rate):
    sampler = extra.ForwardSampler(split_merge_rate)
    assert_exact(MODELS[name], sampler.make_kernel, n_sweeps=750)


@pytest.mark.statistical
@pytest.mark.parametrize("model", [MODELS["two sequences"], DENSITIES["densities"]])
def test_kernel(extra, model):
    assert_exact(model, extra.WindowSampler().make_kernel, n_sweeps=750)


@pytest.mark.statistical
@pytest.mark.parametrize("name", COLUMNS)
def test_proposal_on_columns(extra, name):
    assert_exact(COLUMNS[name], extra.ForwardSampler().make_kernel, n_sweeps=750)


@dataclass(frozen=True)
class Counts(Definition):
    """Geometric counts with a Beta prior, from the definition."""

    stats_of: object
    a: float
    b: float
    true: tuple = ()

    def log_predictive(self, seen, row) -> float:
        if np.isnan(row[0]):
            return 0.0
        a, b = self.true or (self.a, self.b)
        values = [v[0] for v in seen if not np.isnan(v[0])]
        a, b = a + len(values), b + sum(values)
        return float(betaln(a + 1, b + row[0]) - betaln(a, b))

    def stats(self, y):
        return self.stats_of(as_matrix(y), self.a, self.b)


Y = ((0,), (7,), (1,), (None,), (9,))


@pytest.mark.statistical
@pytest.mark.parametrize("sampler", ["stepwise", "stick-breaking", "forward"])
def test_emission(extra, sampler):
    model = Model(Y, Counts(extra._native.geometric_stats, 1.2, 0.8), (0, 3), 1.0, 2.0)
    samplers = {**SAMPLERS, "forward": extra.ForwardSampler(1)}
    assert_exact(model, samplers[sampler].make_kernel, n_sweeps=500)


@pytest.mark.statistical
def test_a_wrong_prior_is_noticed(extra):
    stats = extra._native.geometric_stats
    model = Model(Y, Counts(stats, 0.5, 0.8, (1.2, 0.8)), (0, 3), 1.0, 2.0)
    assert_caught(SAMPLERS["stepwise"].make_kernel, model, n_sweeps=1000)


def test_both_in_the_estimator(extra, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    states = np.repeat([0, 1, 0, 1], 40)
    X = rng.geometric(np.array([0.9, 0.02])[states])[:, None] - 1.0
    X[5] = np.nan
    params = {"n_burnin": 100, "n_draws": 10, "n_chains": 2, "random_state": 0}
    hmm = HCRPHMM(extra.ForwardSampler(2), extra.Geometric(), n_jobs=2, **params).fit(X)
    assert ((hmm.labels_ == hmm.labels_[0]) == (states == 0)).mean() > 0.9
    assert np.isfinite(hmm.score(X))
    new, _ = hmm.sample(20, random_state=0)
    assert new.dtype == np.int64
    assert np.isfinite(hmm.impute(X)).all()
    again = pickle.loads(pickle.dumps(hmm))
    np.testing.assert_array_equal(again.score_samples(X), hmm.score_samples(X))
    with pytest.raises(ValueError, match="Negative values"):
        hmm.fit(-X)
