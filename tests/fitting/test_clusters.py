"""The same draws from the processes of a cluster, bit for bit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import joblib
import numpy as np
import pytest
from joblib.pool import PicklingPool
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit

from skihmm import HCRPHMM
from skihmm.emissions import DirichletCategorical
from skihmm.metrics import ParticleFilterScorer
from skihmm.samplers import BlockedBeam, StepwiseGibbs

SHORT = {"n_burnin": 5, "n_draws": 3, "thin": 1, "n_particles": 10, "random_state": 0}
MODELS = {
    "stepwise": HCRPHMM(n_chains=3, **SHORT),
    "beam": HCRPHMM(
        sampler=BlockedBeam(block_size=3, split_merge_rate=1),
        emission=DirichletCategorical(0.5),
        n_chains=3,
        store_states=False,
        **SHORT,
    ),
}


@pytest.fixture(scope="module")
def dask():
    """joblib's settings for two worker processes on this machine."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.wait_for_workers(2)
        yield {"backend": "dask"}


@pytest.fixture(scope="module")
def ray(tmp_path_factory):
    """The same for Ray, which also has to be told how many jobs there are."""
    module = pytest.importorskip("ray")
    from ray.util.joblib import register_ray

    with pytest.MonkeyPatch.context() as patch:
        # Nothing of a test belongs into the user's home, nor on the network.
        patch.setenv("RAY_AUTH_MODE", "disabled")
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        # Ray's workers look for modules in the working folder first, where the sources
        # would hide the installed package.
        patch.chdir(tmp_path_factory.mktemp("ray"))
        bases = PicklingPool.__bases__
        module.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
        register_ray()
        try:
            yield {"backend": "ray", "n_jobs": 2}
        finally:
            module.shutdown()
            # Ray's backend changes the base of a joblib class; restore it for others.
            PicklingPool.__bases__ = bases


# Ray starts new processes for every call of joblib: three quarters of a minute in all.
RAY = pytest.mark.slow


@pytest.fixture(params=["dask", pytest.param("ray", marks=RAY)])
def cluster(request):
    """Settings of each kind of cluster."""
    return request.getfixturevalue(request.param)


def leave_a_trace(folder):
    """A sampler that notes the processes that it works in."""

    # Not a class of this module, which workers could not import: it travels by value.
    class Tracing(StepwiseGibbs):
        def make_kernel(self, state):
            Path(folder, str(os.getpid())).touch()
            return super().make_kernel(state)

    return Tracing()


def test_chains_run_on_the_workers(cluster, sequence, tmp_path):
    model = HCRPHMM(sampler=leave_a_trace(tmp_path), n_chains=8, **SHORT)
    with joblib.parallel_config(**cluster):
        model.fit(sequence)
    processes = {int(path.name) for path in tmp_path.iterdir()}
    assert processes
    assert os.getpid() not in processes
    plain = HCRPHMM(sampler="stepwise", n_chains=8, **SHORT).fit(sequence)
    assert model.draws_.lp.tobytes() == plain.draws_.lp.tobytes()
    # Without the cluster they run here.
    model.fit(sequence)
    assert os.getpid() in {int(path.name) for path in tmp_path.iterdir()}


@pytest.mark.parametrize("name", MODELS)
def test_draws_are_those_of_one_job(cluster, name, sequence):
    alone = clone(MODELS[name]).set_params(n_jobs=1).fit(sequence)
    with joblib.parallel_config(**cluster):
        other = clone(MODELS[name]).fit(sequence)
        score = other.score(sequence[:20])
    for attribute in ("lp", "alpha", "gamma", "n_states", "n_tables", "acceptance_rate"):
        one = getattr(alone.draws_, attribute)
        assert one.tobytes() == getattr(other.draws_, attribute).tobytes(), attribute
    assert alone.labels_.tobytes() == other.labels_.tobytes()
    assert alone.score(sequence[:20]) == score
    # A chain that began on the cluster goes on here, and the other way round.
    other.set_params(warm_start=True).fit(sequence)
    with joblib.parallel_config(**cluster):
        alone.set_params(warm_start=True, n_jobs=None).fit(sequence)
    assert alone.draws_.shape == (3, 6)
    assert alone.draws_.lp.tobytes() == other.draws_.lp.tobytes()


def test_search(cluster, sequence):
    search = GridSearchCV(
        HCRPHMM(sampler="beam", n_chains=2, **SHORT),
        {"sampler__block_size": [1, 4], "emission__alpha": [0.5, 2.0]},
        scoring=ParticleFilterScorer(n_particles=5),
        cv=TimeSeriesSplit(2),
        error_score="raise",
    )
    alone = search.fit(sequence).cv_results_["mean_test_score"]
    assert len(np.unique(alone)) == 4
    with joblib.parallel_config(**cluster):
        search.fit(sequence)
    np.testing.assert_array_equal(search.cv_results_["mean_test_score"], alone)
    assert search.best_estimator_.draws_.shape == (2, 3)


def test_errors_of_workers_arrive(cluster, sequence):
    search = GridSearchCV(HCRPHMM(**SHORT), {"n_draws": [0, -1]}, cv=2, error_score="raise")
    with (
        joblib.parallel_config(**cluster),
        pytest.raises(ValueError, match="; expected an integer >= 1"),
    ):
        search.fit(sequence)


@pytest.mark.parametrize(
    ("backend", "module"),
    [
        ("threading", "joblib"),
        # The fixture's cluster has shown what Dask does; this one starts another.
        pytest.param("dask", "distributed", marks=pytest.mark.slow),
        pytest.param("ray", "ray", marks=RAY),
    ],
)
def test_example(backend, module, tmp_path):
    pytest.importorskip(module)
    example = Path(__file__).parents[2] / "examples" / "cluster.py"
    done = subprocess.run(
        [
            *(sys.executable, example, "--backend", backend),
            *("--steps=500", "--chains=2", "--burnin=0", "--draws=5"),
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONWARNINGS": "error", "RAY_AUTH_MODE": "disabled"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert f"{backend}, 2 workers" in done.stdout
    assert done.stdout.endswith("The draws are the same, bit for bit.\n")
    # It was closed without a complaint.  (Both log at the end what they do about slow
    # workers, on a busy machine.)
    for complaint in ("Traceback", "Warning:", "Exception ignored"):
        assert complaint not in done.stderr, done.stderr
