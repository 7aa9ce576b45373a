"""Errors planted in the native code (errors.py), and the checks that must notice them.

`CAUGHT` is the table of errors and of the checks that catch them.
"""

from __future__ import annotations

import copy
import importlib
import re
from collections import Counter
from pathlib import Path

import native
import numpy as np
import pytest
from core.test_concentration import LEVEL, fixed_pvalues, whole_pvalues
from errors import (
    BLOCKED,
    DIRECT,
    MIXED,
    RUN_SPLIT_MERGE,
    SPLIT_MERGE,
    STEPWISE,
    STICKS,
    edited,
    maker,
)
from native import build
from samplers.test_split_merge import CHAINS, assert_equal_records
from samplers.test_split_merge import MODELS as SPLIT_MERGE_MODELS
from samplers.test_threads import draw_alike
from small_models import MODELS, NUMBERS, assert_caught, assert_exact

from skihmm.core._rcd import RCDKernel
from skihmm.core._state import ChainState
from skihmm.samplers._kernels import InterleavedKernel, StepwiseProposal
from skihmm.testing import _small_models, check_proposal
from skihmm.testing._probes import record_cells

pytestmark = pytest.mark.statistical

# -- what they are planted in ---------------------------------------------------------

KERNELS = {
    "stepwise": (STEPWISE, lambda m: RCDKernel(m.StepwiseProposal())),
    "exact": (STEPWISE, lambda m: RCDKernel(m.StepwiseProposal(exact=True))),
    "blocked": (BLOCKED, lambda m: RCDKernel(m.BlockedProposal(), 6)),
    "beam": (BLOCKED, lambda m: RCDKernel(m.BeamProposal(), 3)),
    "split-merge": (SPLIT_MERGE, lambda m: m.InterleavedKernel(None, 5)),
    "interleaved": (SPLIT_MERGE, lambda m: m.InterleavedKernel(RCDKernel(StepwiseProposal()), 2.0)),
    "runs": (RUN_SPLIT_MERGE, lambda m: m.RunSplitMergeKernel(None, 5)),
    "mixed": (
        MIXED,
        lambda m: m.MixedKernel(RCDKernel(StepwiseProposal()), InterleavedKernel(None, 1), 0.5),
    ),
    "direct assignment": (DIRECT, lambda m: m.DirectAssignmentKernel()),
    "sticks": (STICKS, lambda m: m.StickBreakingKernel()),
    "sticks pieces": (STICKS, lambda m: m.StickBreakingKernel(False, 2)),
    "sticks beam": (STICKS, lambda m: m.StickBreakingKernel(beam=True)),
    "sticks blocks": (STICKS, lambda m: m.StickBreakingKernel(True, 2)),
}


# -- what notices them ----------------------------------------------------------------

# Where states of few steps, and ends of sequences beside steps without data, show most.
ONE_STEP, OFTEN_STOPPED = "two sequences of one step", "densities, often stopped"
# Errors by the model whose enumeration catches them, and its sweeps.  (Those of single
# moves are caught by matrices, in samplers/test_split_merge_matrices.py.)
CAUGHT = {
    ("two sequences", 1000): {
        "split-merge": ["no reverse"],
        "runs": [
            *("no number of states", "no partner", "one order of the pair"),
            *("no allocation", "no reverse"),
        ],
        "sticks": ["blind births", "births take nothing", "no start"],
        "sticks pieces": [
            *("pieces: into all states", "pieces: from all states"),
            "pieces: held steps chosen by their states",
        ],
    },
    ("two sequences", 2000): {
        "mixed": ["sweeps chosen by the labels"],
        "sticks pieces": ["pieces: one stream for all rows"],
        "sticks beam": ["no sticks broken"],
        "sticks blocks": [
            *("beam: rests above slices", "beam: new rows miss broken sticks"),
            *("beam: one stream for all", "beam: one stream for all rows"),
        ],
    },
    ("one sequence", 1000): {"split-merge": ["no value"]},
    ("self-transitions", 1000): {
        "direct assignment": ["own transition not counted", "one of two equal transitions"]
    },
    ("small concentrations", 1000): {"split-merge": ["t2 as it was"]},
    ("configuration I", 1000): {
        "split-merge": ["score too early"],
        "runs": [
            *("whole runs only", "not the mixture", "the first label is free"),
            "score too early",
        ],
    },
    ("densities", 1000): {
        "split-merge": ["the printed stop"],
        "runs": [
            *("scans: no allocation", "scans: the first one counts"),
            *("scans: from the old labels", "scans: the first label is free"),
        ],
    },
    (OFTEN_STOPPED, 4000): {
        "sticks pieces": ["pieces: free ends"],
        "sticks blocks": ["beam: free ends"],
    },
    ("sequences of one step", 1000): {"split-merge": ["seat anew on rejection"]},
    (ONE_STEP, 1000): {"sticks": ["burials without the start"], "sticks beam": ["beam: no start"]},
    ("seven steps", 2000): {"runs": ["partner without its steps"]},
    ("seven steps", 4000): {"sticks blocks": ["beam: old slices of held steps"]},
}


@pytest.mark.parametrize(
    ("kernel", "error", "name", "n_sweeps"),
    [
        (kernel, error, *model)
        for model, kernels in CAUGHT.items()
        for kernel, errors in kernels.items()
        for error in errors
    ],
)
def test_errors_of_kernels_are_caught(kernel, error, name, n_sweeps):
    model = (SPLIT_MERGE_MODELS | MODELS)[name]
    assert_caught(maker(KERNELS[kernel], error), model, n_sweeps=n_sweeps)


def test_pieces_that_draw_alike_are_caught():
    make_kernel = maker(KERNELS["sticks pieces"], "pieces: one stream for all")
    # Twelve seeds: 0.20 to 0.47, and 0.03 to 0.04 without the error.
    assert draw_alike(make_kernel, block_size=2) > 0.15


PROPORTION = "paths are not proposed in proportion to their probabilities"
FUNCTION = "q has to be one function of the path"
INVARIANCE = "the posterior is not invariant under moves with this proposal"


@pytest.mark.parametrize(
    ("proposal", "error", "block_size", "message"),
    [
        ("BlockedProposal", "labels drawn otherwise", 2, PROPORTION),
        ("BlockedProposal", "labels without the successor's", 1, PROPORTION),
        ("BlockedProposal", "old path counted twice", 2, FUNCTION),
        ("BeamProposal", "old path counted twice", 2, FUNCTION),
        ("BlockedProposal", "labels not counted", 2, PROPORTION),
        ("BeamProposal", "labels not counted", 2, INVARIANCE),
        pytest.param("BeamProposal", "messages not counted", 2, INVARIANCE, marks=pytest.mark.slow),
    ],
)
def test_errors_of_proposals_are_caught(proposal, error, block_size, message):
    module = edited(BLOCKED, error)
    with pytest.raises(AssertionError, match=message):
        check_proposal(getattr(module, proposal), block_size=block_size)


def without_start(state):
    """Update, and then alpha twice more in the wrong way."""
    state.draw_hidden()
    wrong = edited("native.concentrations", "alpha without the start")
    for _ in range(2):
        wrong.draw_hyperparameters(state)


@pytest.mark.parametrize(
    ("pvalues", "update", "case", "caught"),
    [
        (whole_pvalues, without_start, "HCRP, missing", "alpha"),
        (whole_pvalues, ChainState.draw_hidden, "HCRP, one symbol", "gamma_e"),
        pytest.param(
            fixed_pvalues, without_start, "many sequences", "alpha", marks=pytest.mark.slow
        ),
        pytest.param(
            *(fixed_pvalues, ChainState.draw_hidden, "one sequence", "gamma_e"),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_errors_of_concentrations_are_caught(monkeypatch, pvalues, update, case, caught):
    if caught == "gamma_e":
        wrong = edited("emissions._categorical_stats", "gamma from symbols, not tables")
        monkeypatch.setattr(_small_models, "categorical_stats", wrong.categorical_stats)
    found = pvalues(case, update, n_draws=400 if pvalues is fixed_pvalues else 1000)
    assert found[caught] <= LEVEL, found


@pytest.mark.parametrize("edit", [("nowhere", ""), ("twice", "")])
def test_anchors_that_are_missing_or_not_unique(monkeypatch, tmp_path, edit):
    for name in ("first.hpp", "second.hpp"):
        (tmp_path / name).write_text("int i;  // planted: twice\n")
    monkeypatch.setattr(build, "INCLUDE", [tmp_path])
    with pytest.raises(AssertionError, match=r"[02] times in the headers, expected once"):
        native.planted("samplers._kernels", edit)


def test_every_anchor_is_used():
    sources = "".join(path.read_text("utf-8") for path in build._headers())
    tests = "".join(p.read_text("utf-8") for p in Path(__file__).parents[1].rglob("*.py"))
    anchors = re.findall("// planted: (.*)", sources)
    assert len(anchors) > 100
    assert [name for name in anchors if f'"{name}"' not in tests] == []


# -- edits that are no errors ---------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "edit"),
    [
        ("densities", "scans of short blocks"),
        ("densities, often stopped", "scans"),
        ("full", "scans of short blocks"),
        ("counts", "scans"),
    ],
)
def test_all_trials_may_scan(name, edit):
    model = (SPLIT_MERGE_MODELS | MODELS | NUMBERS)[name]
    # As many as show the errors of scans, above.
    assert_exact(model, maker(KERNELS["runs"], edit), n_sweeps=250)


@pytest.mark.parametrize("kernel", KERNELS)
def test_without_an_error_the_package_is_compiled(kernel):
    module, make = KERNELS[kernel]
    package = importlib.import_module(f"skihmm.{module.partition(':')[0]}")
    for name in ["densities", "densities, often stopped", "two sequences", "two columns"]:
        chains = [
            record_cells(make(library), SPLIT_MERGE_MODELS[name].state(5), 300)
            for library in (package, edited(module, None))
        ]
        np.testing.assert_array_equal(chains[0][0], chains[1][0])
        assert chains[0][1:] == chains[1][1:]


def trial(kernel, edit, state, before, position):
    """One trial from a record and a place in the stream."""
    edited(SPLIT_MERGE, edit)
    state.from_arrays(before)
    state.stream.state = position
    return kernel.sweep(state)


@pytest.mark.parametrize("chain", CHAINS)
def test_the_early_stop_of_merges_changes_no_result_and_saves_work(chain):
    """Trial by trial, from the same chain with the same random numbers."""
    kernel = edited(SPLIT_MERGE, None).InterleavedKernel(None, 1)
    outcomes, n_steps = Counter(), []
    for seed in range(3):
        state = CHAINS[chain](seed, np.random.Philox(seed))
        InterleavedKernel(RCDKernel(StepwiseProposal()), 1).sweep(state)
        for _ in range(400):
            before = copy.deepcopy(state.canonicalise())
            position = state.stream.state
            first = trial(kernel, "steps counted", state, before, position)
            after = copy.deepcopy(state.to_arrays())
            second = trial(kernel, "steps counted, no stop", state, before, position)
            (n, n_accepted), (m, m_accepted) = (
                info.trials["split_merge"] for info in (first, second)
            )
            assert n_accepted == m_accepted
            assert state.check() is None
            assert_equal_records(after, state.to_arrays())
            outcomes[n_accepted, after["n_states"] < before["n_states"]] += 1
            n_steps.append((n, m))
    assert outcomes[1, True] >= 5, outcomes
    first, second = np.array(n_steps).T
    assert (first <= second).all()
    # Most rejected merges end early, those of densities long before their last step.
    n_rejected = (second > 0).sum() - outcomes[1, True]
    assert (first < second).sum() > 0.5 * n_rejected
    assert first.sum() < (0.85 if chain == "densities" else 0.97) * second.sum()
