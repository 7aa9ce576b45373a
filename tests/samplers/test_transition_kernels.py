"""Exact transition matrices of block moves with the compiled proposals.

Monte Carlo cannot see an error of 1e-4; here the stationary law is compared with the
posterior to rounding.  The proposal probabilities are those that the compiled code
reports; what the customers do, the factors r and the target are enumerated by the
reference (`reference.kernel`).
"""

from __future__ import annotations

import math
from functools import cache

import native
import numpy as np
import pytest
from reference.enumeration import DirichletEmission, HCRPEmission
from reference.kernel import (
    BlockMoves,
    base_key,
    irreversibility,
    named_path,
    outside_names,
    stationarity_errors,
    total_of,
)
from reference.seating import START, all_seatings
from small_models import Model, arrays_of, unpacked

from skihmm.samplers._blocked_kernel import BeamProposal, BlockedProposal
from skihmm.testing._probes import ProposalProbe

EXACT = 1e-12
"""Rounding of sums of some hundred probabilities."""
CAUGHT = 1e-6
"""What a planted error must at least change."""

MODELS = {
    "one sequence": Model((0, 1, 1, 0), DirichletEmission(2, 0.7), (0,), 2.0, 3.0),
    "two sequences": Model((0, 1, 0, 0), DirichletEmission(2, 0.5), (0, 2), 4.0, 1.0),
    "missing": Model((0, None, 1, 0), DirichletEmission(2, 0.5), (0,), 5.0, 0.5),
    "two columns": Model(
        ((0, 1), (1, None), (0, 1), (1, 0)), DirichletEmission(2, 0.7), (0,), 1.0, 2.0
    ),
    "HCRP": Model((0, 0, 1), HCRPEmission(2, 1.5, 1.0), (0,), 3.0, 1.5),
}
LONGER = {
    "five steps": Model((0, 1, 1, 0, 1), DirichletEmission(2, 0.7), (0,), 5.0, 2.0),
    "three and two": Model(
        (0, 1, None, 0, 1), DirichletEmission(2, 0.5), (0, 3), 3.0, 1.0
    ),
}
LONG = {
    "six steps": Model((0, 1, 1, 0, 1, 2), DirichletEmission(3, 0.5), (0,), 5.0, 0.5),
    "HCRP, five steps": Model(
        (0, 0, 1, None, 0), HCRPEmission(2, 3.0, 2.0), (0,), 4.0, 1.5
    ),
}

# A state sends on its row if it has this multiple of a message's mean: always, as by
# default, more often than not, hardly ever.  Symbols that are one franchise have an
# instantiation of their own; the generic one suits them too.
BLOCKED = {
    "exact messages": lambda: BlockedProposal(cut=0.0),
    "default": BlockedProposal,
    "rough messages": lambda: BlockedProposal(cut=1.0),
    "crude messages": lambda: BlockedProposal(cut=3.0),
    "exact messages, generic": lambda: native.moves.GenericProposal("blocked", 0.0),
    "default, generic": lambda: native.moves.GenericProposal("blocked"),
    "crude messages, generic": lambda: native.moves.GenericProposal("blocked", 3.0),
}


def spans(n_steps, starts):
    """All blocks: steps of one sequence."""
    ends = [*starts[1:], n_steps]
    return [
        (start, stop)
        for first, end in zip(starts, ends, strict=True)
        for start in range(first, end)
        for stop in range(start + 1, end + 1)
    ]


def renumbered(arrays, slots):
    """The same chain with other numbers of its states."""
    n_states = arrays["n_states"]
    number = np.array([slots[k] for k in range(n_states)] + [n_states])
    transitions = arrays["transitions"]
    transitions = transitions | {
        key: number[transitions[key]].astype(np.int32) for key in ("rows", "dishes")
    }
    columns = [
        column | {"rows": number[column["rows"]].astype(np.int32)}
        for column in arrays["emission"]["columns"]
    ]
    return arrays | {
        "states": number[arrays["states"]].astype(np.int32),
        "transitions": transitions,
        "emission": arrays["emission"] | {"columns": columns},
    }


class Block:
    """The enumerated moves on one block, and the compiled chain at each of their s_0."""

    def __init__(self, model, start, stop):
        self.model, self.start, self.stop = model, start, stop
        self.moves = BlockMoves(self.seatings(), model.emission, start, stop)
        self.bases = self.moves.bases
        self.state = model.state(0)
        self.probe = ProposalProbe(self.state, start, stop)
        # One seed for every s_0 that can be reached from a state; and one such state for
        # every s_0 and path.
        self.seeds, self.visits = {}, {}
        wanted: dict = {}
        for removal in self.moves.removals:
            wanted.setdefault(removal.state, set()).add(removal.base)
            self.visits[removal.base, removal.path] = removal.state
        for i, bases in wanted.items():
            self.load(i)
            found: dict = {}
            for seed in range(5000):
                found.setdefault(self.base_at(seed), seed)
                if len(found) == len(bases):
                    break
            assert found.keys() == bases
            self.seeds |= {(i, b): seed for b, seed in found.items()}

    def seatings(self):
        model = self.model
        return all_seatings(
            model.y, model.emission, model.starts, model.alpha, model.gamma
        )

    def load(self, i):
        # Labels outside of the block get the same slots whatever is inside, as they have
        # before and after a move.  (The messages of the blocked samplers are sums in
        # single precision over slots: another numbering changes their last digits, and so
        # the law of the proposal, but all paths at one s_0 have the same numbering.)
        labels = self.moves.models[i].x
        outside = outside_names(labels, self.start, self.stop)
        inside = named_path(labels[self.start : self.stop], outside)
        slots = {label: k for label, k in outside.items() if k >= 0}
        slots |= dict(zip(labels[self.start : self.stop], inside, strict=True))
        self.state.from_arrays(renumbered(arrays_of(self.moves.models[i]), slots))
        self.names = {START: -1} | {k: k for k in outside.values() if k >= 0}

    def base_at(self, seed):
        return self.number_of(self.probe.arrays(seed)[0])

    def number_of(self, arrays):
        """Number of the s_0 that these are the arrays of."""
        labels = arrays["states"].tolist()

        def pairs(record):
            return {
                ("*" if j == arrays["n_states"] else j, k): n
                for (j, k), n in unpacked(record).items()
            }

        hierarchical = isinstance(self.model.emission, HCRPEmission)
        columns = arrays["emission"]["columns"] if hierarchical else ()
        key = base_key(
            labels,
            self.start,
            self.stop,
            pairs(arrays["transitions"]),
            [unpacked(column) for column in columns],
        )
        return self.moves.base_number[key]

    def ask(self, proposal, i, base, uniforms=(), salt=0):
        """From the loaded state i; the new path by its number."""
        seed = self.seeds[i, base]
        old, paths, new, _ = self.probe.ask(
            proposal, seed, seed + salt, seed + salt + 1000, uniforms=uniforms
        )
        # (Labels from 0 on, as in the arrays.)
        name = named_path((paths[0] - 2).tolist(), self.names)
        return old[0], self.bases[base].paths.index(name), new[0]

    def log_q(self, proposal, n_draws=6):
        """``{s_0: log q of its paths}``, read at every state that leads there.

        All these, and the q that come with new paths, must be the same numbers.
        """
        q = [np.full(len(base.paths), np.nan) for base in self.bases]
        drawn, error = [], 0.0
        loaded = None
        for removal in self.moves.removals:
            i, b = removal.state, removal.base
            if loaded != i:
                self.load(i)
                loaded = i
            for salt in range(n_draws):
                old, path, new = self.ask(proposal, i, b, salt=salt)
                drawn.append((b, path, new))
            if np.isnan(q[b][removal.path]):
                q[b][removal.path] = old
            error = max(error, abs(q[b][removal.path] - old))
        for b, path, new in drawn:
            error = max(error, abs(q[b][path] - new))
        assert not any(np.isnan(row).any() for row in q)
        assert error < EXACT
        return q


@cache
def block_of(name, start, stop):
    return Block((MODELS | LONGER | LONG)[name], start, stop)


def assert_stationary(block, q):
    matrix = block.moves.kernel(lambda removal: q[removal.base])
    assert max(stationarity_errors(matrix, block.moves.target)) < EXACT
    assert irreversibility(matrix, block.moves.target) < EXACT
    return matrix


def normalised(q):
    return [row - math.log(total_of(row)) for row in q]


def cases(models, is_slow=False):
    return [
        pytest.param(name, span, marks=[pytest.mark.slow] * is_slow)
        for name, model in models.items()
        for span in spans(model.n_steps, model.starts)
    ]


def singles(models):
    return [(name, t) for name, model in models.items() for t in range(model.n_steps)]


# -- proposals without slices ---------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "span"), [*cases(MODELS | LONGER), *cases(LONG, is_slow=True)]
)
def test_blocked(name, span):
    block = block_of(name, *span)
    for make_proposal in BLOCKED.values():
        q = block.log_q(make_proposal())
        for row in q:
            assert abs(total_of(row) - 1.0) < EXACT
        matrix = assert_stationary(block, q)
        # Nothing of the above is empty: the matrix moves.
        assert np.min(np.diag(matrix)) < 0.9


def share_of_old(block, proposal, removal):
    """Probability with which a step-wise proposal keeps the old label.

    It tries that first: a uniform number below the share keeps it.
    """
    block.load(removal.state)
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        _, path, _ = block.ask(proposal, removal.state, removal.base, [middle])
        low, high = (middle, high) if path == removal.path else (low, middle)
    return high


def check_weights(name, t):
    """Weights: they sum to the total that the proposal draws from.

    (Steps of symbols are enumerated in test_split_merge_matrices.py.)
    """
    block, proposal = block_of(name, t, t + 1), native.moves.GenericProposal("stepwise")
    q = block.log_q(proposal)
    for removal in block.moves.removals if name in MODELS else ():
        row = q[removal.base]
        share = share_of_old(block, proposal, removal)
        assert abs(row[removal.path] - math.log(share * total_of(row))) < EXACT
    assert_stationary(block, normalised(q))


@pytest.mark.parametrize(("name", "t"), singles(MODELS | LONGER))
def test_stepwise(name, t):
    check_weights(name, t)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "t"), singles(LONG))
def test_stepwise_in_long_models(name, t):
    check_weights(name, t)


# -- slices ---------------------------------------------------------------------------
#
# Given the slices u the move is one more of the same kind: from the law of (state, u),
# with p(u | old path) = prod 1[u_l < a_l] / a_l, all at one s_0.  So it is checked at
# some u that the flow from each state to each other equals the flow back, which says more
# than that the integral over u is stationary.

SLICED = {
    "beam, exact messages": lambda: BeamProposal(cut=0.0),
    "beam": BeamProposal,
    "beam, crude messages": lambda: BeamProposal(cut=3.0),
    "beam, exact messages, generic": lambda: native.moves.GenericProposal("beam", 0.0),
    "beam, generic": lambda: native.moves.GenericProposal("beam"),
}


def sliced_flows(block, proposal, b, u, *, bug=None):
    """Flows between the states that s_0 number b and the slices u can have come from.

    Returns
    -------
    flow : ndarray
    lost : float
        The largest part of a proposal's law that has no path at all.
    """
    moves, base = block.moves, block.bases[b]
    a = [base.factors(path)[0] for path in base.paths]
    alive = [all(x > y for x, y in zip(row, u, strict=True)) for row in a]
    log_a = np.array([math.fsum(map(math.log, row)) for row in a])
    removals = [r for r in moves.removals if r.base == b and alive[r.path]]
    q = np.full(len(a), -np.inf)
    drawn = []
    for removal in removals:
        i, path = removal.state, removal.path
        uniforms = [y / x for x, y in zip(a[path], u, strict=True)]
        block.load(i)
        for salt in range(6):
            old, new_path, new = block.ask(proposal, i, b, uniforms, salt)
            if new == np.inf:
                continue  # the path is lost, and is not counted
            drawn.append((new_path, new))
        if q[path] == -np.inf:
            q[path] = old
        assert abs(old - q[path]) < EXACT
    for path, new in drawn:
        assert abs(new - q[path]) < EXACT
    assert np.all(np.isfinite(q) == alive)
    law = np.exp(q - log_a)
    if bug == "ratio of the law":
        q = np.log(law, where=law > 0, out=np.full_like(law, -np.inf))
    flow = np.zeros((len(moves.models),) * 2)
    for removal in removals:
        ratio = np.zeros(len(base.path))
        possible = law[base.path] > 0
        ratio[possible] = (
            base.r["correct"][possible]
            / removal.r["correct"]
            * np.exp(q[removal.path] - q[base.path][possible])
        )
        if bug == "ratio one":
            ratio[possible] = 1.0
        start = moves.target[removal.state] * removal.probability
        start /= math.exp(log_a[removal.path])
        np.add.at(
            flow[removal.state],
            base.state,
            start * law[base.path] * base.probability * np.minimum(1.0, ratio),
        )
    return flow, 1.0 - math.fsum(law)


def slices_of(block, b, rng):
    """Slices that some path of the s_0 number b can have drawn."""
    factors = block.bases[b].factors(
        block.bases[b].paths[rng.integers(len(block.bases[b].paths))]
    )[0]
    return [rng.random() * x for x in factors]


def asymmetry(flow):
    return float(np.max(np.abs(flow - flow.T)) / np.max(flow))


def sliced_cases(models):
    return [
        (proposal, name, span)
        for proposal in SLICED
        for name, model in models.items()
        for span in spans(model.n_steps, model.starts)
    ]


def check_slices(proposal, name, span):
    block, rng = block_of(name, *span), np.random.default_rng(1)
    for b in range(len(block.bases)):
        for _ in range(3):
            flow, lost = sliced_flows(
                block, SLICED[proposal](), b, slices_of(block, b, rng)
            )
            assert asymmetry(flow) < EXACT
            # Only approximate messages can lose their way.
            assert lost > -EXACT
            if "exact" in proposal or span[1] - span[0] == 1:
                assert lost < EXACT


@pytest.mark.parametrize(("proposal", "name", "span"), sliced_cases(MODELS))
def test_sliced(proposal, name, span):
    check_slices(proposal, name, span)


@pytest.mark.slow
@pytest.mark.parametrize(("proposal", "name", "span"), sliced_cases(LONGER))
def test_sliced_in_longer_models(proposal, name, span):
    check_slices(proposal, name, span)


@pytest.mark.parametrize("bug", ["ratio one", "ratio of the law"])
@pytest.mark.parametrize("proposal", ["beam, exact messages", "beam"])
def test_planted_errors_of_slices_are_caught(proposal, bug):
    block, rng = block_of("one sequence", 1, 2), np.random.default_rng(0)
    found = [
        asymmetry(
            sliced_flows(block, SLICED[proposal](), b, slices_of(block, b, rng), bug=bug)[
                0
            ]
        )
        for b in range(len(block.bases))
    ]
    assert max(found) > CAUGHT


# -- planted errors -------------------------------------------------------------------


def cut_by_labels(block):
    """Messages cut by the number of labels of the whole chain, the old path's too."""
    n_labels = [len(set(model.x)) for model in block.moves.models]
    q = {n: block.log_q(BlockedProposal(cut=0.1 * n)) for n in set(n_labels)}
    return {"log_q": lambda removal: q[n_labels[removal.state]][removal.base]}


def exact_q(block):
    return block.log_q(BlockedProposal(cut=0.0))


def no_label_factor(block):
    """Names are drawn from Q*, but not counted."""
    q, gamma = exact_q(block), block.model.gamma
    without = [
        row - np.log([base.name_factor(path, gamma) for path in base.paths])
        for row, base in zip(q, block.bases, strict=True)
    ]
    return {
        "log_q": lambda removal: without[removal.base],
        "log_law": lambda removal: q[removal.base],
    }


def no_ghost_customer(block):
    """Q* begins empty also if the successor is served nowhere."""
    q, gamma = exact_q(block), block.model.gamma
    counted, law = [], []
    for row, base in zip(q, block.bases, strict=True):
        row = row.copy()
        is_possible = np.ones(len(row), dtype=bool)
        for i, path in enumerate(base.paths):
            row[i] += math.log(base.name_factor(path, gamma, ghost=False))
            row[i] -= math.log(base.name_factor(path, gamma))
            is_possible[i] = not any(map(base.is_ghost, base.labels_of(path)))
        counted.append(row)
        row = np.where(is_possible, row, -np.inf)
        law.append(row - math.log(total_of(row)))
    return {
        "log_q": lambda removal: counted[removal.base],
        "log_law": lambda removal: law[removal.base],
    }


def with_options(**options):
    def plant(block):
        q = exact_q(block)
        return {"log_q": lambda removal: q[removal.base], **options}

    return plant


# The error, and blocks that show it.
PLANTED = {
    "cut by the number of labels": (cut_by_labels, "five steps", (0, 2)),
    "no label factor": (no_label_factor, "one sequence", (0, 3)),
    "no ghost customer": (no_ghost_customer, "one sequence", (0, 3)),
    "printed denominator": (with_options(r="printed"), "one sequence", (1, 2)),
    "all factors at s_0": (with_options(r="first"), "one sequence", (1, 2)),
    "ratio without q": (with_options(uses_q=False), "one sequence", (1, 2)),
    "accepted always": (with_options(accepts_always=True), "one sequence", (1, 2)),
    "seated anew on rejection": (with_options(reseats=True), "missing", (1, 2)),
}


@pytest.mark.parametrize("error", PLANTED)
def test_planted_errors_are_caught(error):
    plant, name, span = PLANTED[error]
    block = block_of(name, *span)
    matrix = block.moves.kernel(**plant(block))
    rows, change = stationarity_errors(matrix, block.moves.target)
    assert rows < EXACT  # it is a Markov chain all right
    assert change > CAUGHT


def test_without_errors_nothing_is_caught():
    """The same blocks, and the corrected factors of Q* from the reference."""
    for _, name, span in PLANTED.values():
        block = block_of(name, *span)
        assert_stationary(block, exact_q(block))
