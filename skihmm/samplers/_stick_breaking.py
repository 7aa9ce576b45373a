"""Baselines that draw transition and emission probabilities."""

from __future__ import annotations

import joblib

from skihmm._data.validation import check_integer, check_n_jobs
from skihmm.core._emission import EmissionStats
from skihmm.core._state import ChainState
from skihmm.samplers._base import Kernel
from skihmm.samplers._franchise_sampler import FranchiseSampler
from skihmm.samplers._kernels import StickBreakingKernel


def check_draws_parameters(what: str, emission: object, stats: EmissionStats) -> None:
    """Raise TypeError if the parameters of an emission cannot be drawn."""
    if not getattr(stats, "draws_parameters", False):
        raise TypeError(
            f"{what} draws the parameters of the emission, which "
            f"{type(emission).__name__} does not support; use a sampler that "
            "integrates them out, such as StepwiseGibbs, or another emission."
        )


class _StickBreaking(FranchiseSampler):
    """Base class of samplers that need explicit emission parameters."""

    supports_stays = False
    supports_contexts = False
    test_params = (
        {},
        {"block_size": 3, "n_jobs": 2},
        {"block_size": 100, "split_merge_rate": 0.5, "run_split_merge_rate": 0.5},
    )
    _is_beam: bool

    def __init__(
        self,
        block_size: int | None = None,
        split_merge_rate: float = 0,
        run_split_merge_rate: float = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.block_size = block_size
        self.split_merge_rate = split_merge_rate
        self.run_split_merge_rate = run_split_merge_rate
        self.n_jobs = n_jobs

    def check_parameters(self) -> None:
        super().check_parameters()
        check_n_jobs("n_jobs", self.n_jobs)
        if self.block_size is not None:
            check_integer("block_size", self.block_size, 1)

    def check_emission(self, emission: object, stats: EmissionStats) -> None:
        check_draws_parameters(type(self).__name__, emission, stats)

    def make_kernel(self, state: ChainState) -> Kernel:
        n_threads = self.n_jobs or 1
        if n_threads < 0:
            n_threads = max(joblib.cpu_count() + 1 + n_threads, 1)
        size = min(self.block_size or 0, state.n_steps)
        return self.add_split_merge(StickBreakingKernel(self._is_beam, size, n_threads))


class StickBreakingGibbs(_StickBreaking):
    """Step-wise Gibbs sampler with explicit parameters.

    A baseline that integrates out no parameters.  Every sweep draws the shared base
    distribution over states, transition probabilities by stick breaking, and the
    emission's parameters.  Given the parameters, a sweep draws the state of every step
    from the full conditional, in random order and without rejections.  The number of
    states is not truncated: a new state is a candidate at every step.

    A step costs a vectorised pass over all states, but a sweep draws a number for every
    pair of states and for every state and symbol.

    With `block_size` one chain runs on several cores: threads draw blocks side by side.

    Parameters
    ----------
    block_size : int or None, default=None
        None: step by step, in random order.  A number: every sweep holds one of
        ``block_size + 1`` steps, at places independent of the states.  A sweep draws the
        steps of every second block, then the steps of the remaining blocks, from full
        conditionals among the states of all remaining steps.  The held steps follow, step
        by step.  Only held steps may begin a new state, or leave a state empty.  This is
        as exact.  100 is a good number for long sequences.
    split_merge_rate : float, default=0
        Split-merge trials after a sweep (see `StepwiseGibbs`).  Trials are collapsed moves
        in a single thread.  Long data need a trial per sweep or more.
    run_split_merge_rate : float, default=0
        Trials of whole runs.
    n_jobs : int or None, default=None
        Threads of one chain, for blocks.  -1: all cores, None: a single thread.  Draws do
        not depend on it.  Without `block_size` threads do no more than count.  Each of
        the chains that the ``n_jobs`` of the model runs at the same time has as many
        threads.

    See Also
    --------
    DirectAssignmentGibbs : Transition and emission probabilities are integrated out.
    StickBreakingBeam : Whole sequences at once.

    Notes
    -----
    A single thread evaluates emissions in Python.  ``draws_.seconds`` and ``max_time`` are
    the CPU time of a single thread of a chain.

    References
    ----------
    Y. W. Teh, M. I. Jordan, M. J. Beal and D. M. Blei, "Hierarchical Dirichlet
    Processes", Journal of the American Statistical Association 101(476), 1566-1581, 2006,
    Section 5.2.

    Examples
    --------
    >>> from skihmm import HCRPHMM
    >>> from skihmm.datasets import make_repeating_sequence
    >>> from skihmm.samplers import StickBreakingGibbs
    >>> X, _ = make_repeating_sequence(120)
    >>> sampler = StickBreakingGibbs()
    >>> hmm = HCRPHMM(sampler=sampler, n_burnin=50, n_draws=10, random_state=0)
    >>> bool((hmm.fit(X).draws_.acceptance_rate == 1).all())
    True

    Blocks of fifty steps on two cores:

    >>> sampler = StickBreakingGibbs(block_size=50, split_merge_rate=0.5, n_jobs=2)
    >>> hmm = HCRPHMM(sampler=sampler, n_burnin=50, n_draws=10, random_state=0)
    >>> hmm.fit(X).draws_.shape
    (1, 10)
    """

    _is_beam = False


class StickBreakingBeam(_StickBreaking):
    """Beam sampler with explicit parameters.

    As `StickBreakingGibbs`, but given the parameters the states of a whole sequence are
    drawn at once.  Every transition first gets a slice, a uniform number below its
    probability.  Enough sticks are broken for all transitions above the slices.  Forward
    filtering and backward sampling over the finitely many transitions draw the path.

    The number of transitions grows with the concentrations.  A sweep that needs more than
    32,768 sticks or 67 million transition probabilities ends with a ValueError, from about
    ``gamma = 2000`` on for an `alpha` of 1, from 700 on for 1000.  Collapsed samplers take
    any concentrations.

    One chain runs on several cores: threads draw sequences, or blocks of long ones, side
    by side.

    Parameters
    ----------
    block_size : int or None, default=None
        None: whole sequences.  A number: every sweep holds one of ``block_size + 1``
        steps, at places independent of the states, and draws the blocks between held
        steps.  Given the held steps, the parameters and the slices, the blocks are
        independent, and the sampler is exact.  For long sequences and several threads
        1000 is a good number.
    split_merge_rate : float, default=0
        Split-merge trials after a sweep (see `StepwiseGibbs`).  Trials are collapsed moves
        in a single thread.  Long data need a trial per sweep or more: given parameters,
        births and merges of states are rare.
    run_split_merge_rate : float, default=0
        Trials of whole runs.
    n_jobs : int or None, default=None
        Threads of one chain, for sequences or blocks.  -1: all cores, None: a single
        thread.  Draws do not depend on the number.  Each of the chains that the ``n_jobs``
        of the model runs at the same time has `n_jobs` threads.

    See Also
    --------
    BlockedBeam : Parameters integrated out; blocks instead of whole sequences.

    Notes
    -----
    A single thread evaluates emissions in Python.  ``draws_.seconds`` and ``max_time`` are
    the CPU time of a single thread of a chain.

    References
    ----------
    J. Van Gael, Y. Saatci, Y. W. Teh and Z. Ghahramani, "Beam Sampling for the Infinite
    Hidden Markov Model", Proceedings of the 25th International Conference on Machine
    Learning, 1088-1095, 2008.

    Examples
    --------
    >>> from skihmm import HCRPHMM
    >>> from skihmm.datasets import make_repeating_sequence
    >>> from skihmm.samplers import StickBreakingBeam
    >>> X, _ = make_repeating_sequence(120)
    >>> sampler = StickBreakingBeam()
    >>> hmm = HCRPHMM(sampler=sampler, n_burnin=50, n_draws=10, random_state=0)
    >>> bool((hmm.fit(X).draws_.acceptance_rate == 1).all())
    True

    Blocks of fifty steps on two cores:

    >>> sampler = StickBreakingBeam(block_size=50, split_merge_rate=0.5, n_jobs=2)
    >>> hmm = HCRPHMM(sampler=sampler, n_burnin=50, n_draws=10, random_state=0)
    >>> hmm.fit(X).draws_.shape
    (1, 10)
    """

    _is_beam = True
