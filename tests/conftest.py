"""Fixtures that several test files share."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

import pytest

# Only fixtures import the package: pytest-xdist's main process needs none of it, and its
# workers start after this file.
FOLDER, COMPILED = "SKIHMM_TESTS_BUILD", "SKIHMM_TESTS_COMPILED"  # those of native.build
# Seconds for which compiled modules are kept that no session has used.
LONGEST_UNUSED = 14 * 24 * 3600

# Shells start background processes with Ctrl-C ignored; its tests would never end.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config):
    """Make the folders for native test code; workers of pytest-xdist inherit them."""
    # Threads of linear algebra, of every worker as many as cores, would wait for each other:
    # a seventh of the CPU time.
    if config.getoption("numprocesses", None):
        os.environ.setdefault("OMP_NUM_THREADS", "1")
    if FOLDER in os.environ:
        return
    os.environ[FOLDER] = os.environ[COMPILED] = tempfile.mkdtemp()
    config.add_cleanup(lambda: shutil.rmtree(os.environ.pop(FOLDER)))
    if hasattr(config, "cache"):
        compiled = config.cache.mkdir("compiled")
        for folder in compiled.iterdir():
            if folder.stat().st_mtime < time.time() - LONGEST_UNUSED:
                shutil.rmtree(folder)
        os.environ[COMPILED] = str(compiled)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Look for no garbage among thousands of tests that stay: half of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.fixture(autouse=True)
def closed_figures():
    """Close what a test has drawn: more than twenty open figures are a warning."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture(scope="session")
def global_random_seed():
    """Seed of tests that must pass for every seed; SKIHMM_TESTS_SEED gives another."""
    return int(os.environ.get("SKIHMM_TESTS_SEED", "0"))


@pytest.fixture
def rng(global_random_seed):
    """Random numbers of a test that must pass for every seed."""
    import numpy as np

    return np.random.default_rng(global_random_seed)


@pytest.fixture(scope="session")
def sequence():
    """Sixty steps of the sequence A B C D B C D E."""
    from skihmm.datasets import make_repeating_sequence

    return make_repeating_sequence(60)[0]


@pytest.fixture(scope="session")
def fitted(sequence, global_random_seed):
    """A model fitted to `sequence`; tests must leave it as it is."""
    from skihmm import HCRPHMM

    return HCRPHMM(
        n_burnin=10, n_draws=4, thin=2, n_chains=2, n_particles=10, random_state=global_random_seed
    ).fit(sequence)


@pytest.fixture(scope="session")
def alice():
    """The book, if the folder SKIHMM_DATA has it; nothing is downloaded."""
    folder = os.environ.get("SKIHMM_DATA")
    if not folder or not Path(folder, "alice.txt").is_file():
        pytest.skip("SKIHMM_DATA is not a folder with alice.txt")
    from skihmm.datasets import fetch_alice

    return fetch_alice(folder, download_if_missing=False)


@pytest.fixture(scope="session")
def seating_counts():
    """Function that turns the arrays of a draw into the counts the oracles take."""
    from reference.enumeration import START, SeatingCounts

    def to_dict(record, name, start=None):
        return {
            (START if j == start else int(j), int(k)): int(n)
            for j, k, n in zip(record["rows"], record["dishes"], record[name], strict=True)
        }

    def counts(draw):
        columns = draw.emission["columns"]
        return SeatingCounts(
            to_dict(draw.transitions, "n_customers", draw.n_states),
            to_dict(draw.transitions, "n_tables", draw.n_states),
            [to_dict(column, "n_customers") for column in columns],
            [to_dict(column, "n_tables") for column in columns],
        )

    return counts
