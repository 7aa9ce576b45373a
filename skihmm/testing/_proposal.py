"""Check of proposals: computed and empirical probabilities."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from scipy import stats

from skihmm._typing import Array, Floats
from skihmm.core._rcd import BlockProposal, RCDKernel
from skihmm.testing._probes import ProposalProbe
from skihmm.testing._sampler import DOUBT, MODELS
from skihmm.testing._small_models import Model, is_exact

# P-value of a doubtful comparison, which is repeated, and counts if both are.
# There are at most 340 of them (blocks of three): false alarms have the rate 340 * 1e-6,
# and 5e-4 from the comparisons of samplers.
DOUBTFUL_FREQUENCIES = 1e-3

# States of all steps of a model, for every number of steps: with every state of its own,
# with states that others share, and with repetitions.
LABELS = {
    1: [[0]],
    2: [[0, 1], [0, 0]],
    5: [[0, 1, 2, 3, 4], [0, 1, 0, 2, 1], [0, 0, 1, 1, 0], [0, 1, 2, 0, 3]],
}

# Paths of blocks are all listed if there are at most so many.
MOST_PATHS = 400


def check_proposal(
    make_proposal: Callable[[], BlockProposal],
    *,
    block_size: int = 1,
    random_state: int = 0,
) -> None:
    """Check the probabilities and the exactness of a proposal.

    On models of one to five steps, for many states and all blocks, at the seating without
    the block.  The computed probability of a path must be the same in every proposal, and
    equal the `score` of the path as the old path.  The frequencies of the paths must be
    proportional to these probabilities (chi-squared tests).  Where all labels of the
    block occur in the block alone, every path can replace the old path.  The `score` of a
    path is then the probability too, and scores sum to the constant by which the
    frequencies are divided.  Names of new states do not matter.

    If `prepare` uses random numbers, for auxiliary variables such as slices, the density
    of the variables is a part of q.  Frequencies are then not compared, and further
    properties must hold at fixed auxiliary variables.  A proposal with q = infinity is
    always rejected.

    Then ``RCDKernel(make_proposal(), block_size)`` has to sample the posterior.
    :func:`check_sampler` describes the comparison.  A correct proposal fails for fewer
    than one in 1000 values of `random_state`.

    Parameters
    ----------
    make_proposal : callable
        Builds a :class:`skihmm.core._rcd.BlockProposal`, without arguments.
    block_size : int, default=1
        Most steps per block, 1 to 3.
    random_state : int, default=0
        Seed.

    Raises
    ------
    AssertionError
        If a property is violated; the message names it.

    See Also
    --------
    check_sampler : Check of samplers of any kind.

    Examples
    --------
    >>> from skihmm.samplers._kernels import StepwiseProposal
    >>> from skihmm.testing import check_proposal
    >>> check_proposal(StepwiseProposal)
    """
    proposal = make_proposal()
    assert isinstance(proposal, BlockProposal), f"{proposal!r} is no BlockProposal"
    assert 1 <= block_size <= 3, f"block_size={block_size}; expected 1, 2 or 3"
    RCDKernel(proposal, block_size)  # raises an error if blocks are too long for it
    name = type(proposal).__name__
    for model_name, model in MODELS.items():
        for labels in LABELS[model.n_steps]:
            for start, stop in _blocks(model, block_size):
                _check_block(
                    make_proposal(),
                    model,
                    np.array(labels),
                    start,
                    stop,
                    random_state,
                    f"{name}, model {model_name!r}, labels {labels}, steps {start} to {stop - 1}",
                )
    for model_name, model in MODELS.items():
        passes, found = is_exact(
            model,
            lambda state: RCDKernel(make_proposal(), block_size),
            n_sweeps=2000,
            seed=random_state,
            doubt=DOUBT,
        )
        assert passes, (
            f"{name}, model {model_name!r}: the posterior is not invariant under moves "
            "with this proposal, although it is consistent at single seatings; "
            f"p = {found[-1].pvalue:.2g}, and {found[0].pvalue:.2g} before"
        )


def _blocks(model: Model, block_size: int) -> Iterator[tuple[int, int]]:
    """Iterate over all blocks of at most `block_size` steps within a sequence."""
    ends = [*model.starts[1:], model.n_steps]
    for first, end in zip(model.starts, ends, strict=True):
        for start in range(first, end):
            for stop in range(start + 1, min(start + block_size, end) + 1):
                yield start, stop


def _paths(used: list[int], spare: list[int], length: int) -> Iterator[tuple[int, ...]]:
    """Iterate over all paths of used labels and, in a fixed order, new ones."""
    if length == 0:
        yield ()
        return
    for head in _paths(used, spare, length - 1):
        n_spare = len(set(head) & set(spare))
        for label in [*used, *spare[: n_spare + 1]]:
            yield (*head, label)


def _check_block(
    proposal: BlockProposal,
    model: Model,
    labels: Array,
    start: int,
    stop: int,
    seed: int,
    where: str,
) -> None:
    state = model.state([seed, 7], labels)
    length, probe = stop - start, ProposalProbe(state, start, stop)
    own = probe.path

    def ask(
        n: int, salt: int, old: Sequence[int] | None = None
    ) -> tuple[Array, Array, Array, bool]:
        return probe.ask(proposal, seed + 11, seed + 12, (salt << 20) + seed, n, old)

    is_random = ask(1, 0)[-1]
    n_tables = probe.arrays(seed + 11)[1]
    used = [k for k in range(2, len(n_tables)) if n_tables[k] > 0 or k == probe.after]
    names: dict[int, int] = {}

    def named(path: Sequence[int]) -> tuple[int, ...]:
        """Rename the new labels of a path to -1, -2, ... by first appearance."""
        names.clear()
        return tuple(
            int(k) if k in used else names.setdefault(int(k), -1 - len(names)) for k in path
        )

    # Labels that occur only in the block are names for new states, but not free slots.
    spare = [*dict.fromkeys(k for k in own if k not in used)]
    log_q: dict[tuple[int, ...], float] = {}
    total = None
    if not is_random and len(spare) == length:
        every = list(_paths(used, spare, length))
        if len(every) <= MOST_PATHS:
            log_q = {named(path): float(ask(1, 0, path)[0][0]) for path in every}
            total = float(np.logaddexp.reduce([*log_q.values()]))
            assert np.isfinite(total), f"{where}: the probabilities of all paths sum to zero"
    for attempt in (1, 2):
        n = 1000 * 4 ** (attempt - 1)
        log_q_old, paths, log_q_new, _ = ask(n, attempt)
        is_path = log_q_new < np.inf
        paths, log_q_new = paths[is_path], log_q_new[is_path]
        _take(log_q, named(own), log_q_old, f"{where}: score of the path {named(own)}")
        visits: dict[tuple[int, ...], int] = {}
        for path in {tuple(path) for path in paths}:
            at = (paths == path).all(axis=1)
            name = named(path)
            # Paths outside of a complete list cannot be proposed.
            assert total is None or name in log_q, (
                f"{where}: {name} is proposed, which is no path of labels in use and free ones"
            )
            visits[name] = visits.get(name, 0) + int(at.sum())
            _take(log_q, name, log_q_new[at], f"{where}: q of the path {name}")
        if is_random or not visits:
            return
        pvalue = _frequency_test(log_q, visits, total)
        if pvalue > DOUBTFUL_FREQUENCIES:
            return
    raise AssertionError(
        f"{where}: paths are not proposed in proportion to their probabilities; "
        f"p = {pvalue:.2g}. Visits and probabilities: "
        + ", ".join(
            f"{path}: {visits.get(path, 0) / len(paths):.4f}, "
            f"{np.exp(value - _total(log_q, total)):.4f}"
            for path, value in log_q.items()
        )
    )


def _take(
    log_q: dict[tuple[int, ...], float],
    path: tuple[int, ...],
    values: Floats,
    what: str,
) -> None:
    """Store the probability of a path, or compare it with the stored one."""
    expected = log_q.setdefault(path, float(values[0]))
    with np.errstate(invalid="ignore"):
        wrong = (values != expected) & ~(abs(values - expected) <= 1e-6)
    assert not wrong.any(), (
        f"{what} is exp({float(values[wrong][0]):.9g}) now and exp({expected:.9g}) "
        "before, at one and the same seating; q has to be one function of the path, for "
        "old and new paths"
    )


def _total(log_q: dict[tuple[int, ...], float], total: float | None) -> float:
    return float(np.logaddexp.reduce([*log_q.values()])) if total is None else total


def _frequency_test(
    log_q: dict[tuple[int, ...], float],
    visits: dict[tuple[int, ...], int],
    total: float | None,
) -> float:
    """Chi-squared p-value, with cells of fewer than 5 expected visits lumped."""
    n = sum(visits.values())
    with np.errstate(under="ignore"):
        expected = n * np.exp(np.array([*log_q.values()]) - _total(log_q, total))
    seen = np.array([visits.get(path, 0) for path in log_q])
    if ((expected == 0) & (seen > 0)).any():
        return 0.0
    small = expected < 5
    seen = np.append(seen[~small], seen[small].sum())
    expected = np.append(expected[~small], expected[small].sum())
    seen, expected = seen[expected > 0], expected[expected > 0]
    if len(expected) == 1:
        return 1.0
    return float(stats.chisquare(seen, expected * (n / expected.sum())).pvalue)
