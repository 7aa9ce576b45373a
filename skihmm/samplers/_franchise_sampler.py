"""Base class of samplers with split-merge trials."""

from __future__ import annotations

from skihmm._data.validation import check_nonnegative
from skihmm.core._rcd import CompiledKernel
from skihmm.samplers._base import BaseSampler
from skihmm.samplers._kernels import InterleavedKernel, RunSplitMergeKernel


class FranchiseSampler(BaseSampler):
    """Base class of samplers that combine local moves with split-merge trials.

    A subclass has parameters `split_merge_rate` and `run_split_merge_rate` and passes its
    kernel to :meth:`add_split_merge` at the end of ``make_kernel``.

    See Also
    --------
    BaseSampler : Base class of samplers without split-merge trials.
    skihmm.testing.check_sampler : Test a sampler.

    Examples
    --------
    The local moves of another sampler, with one split-merge trial per sweep:

    >>> from skihmm import HCRPHMM
    >>> from skihmm.samplers import FranchiseSampler, StepwiseGibbs
    >>> class WithTrials(FranchiseSampler):
    ...     def __init__(self, split_merge_rate=1, run_split_merge_rate=0):
    ...         self.split_merge_rate = split_merge_rate
    ...         self.run_split_merge_rate = run_split_merge_rate
    ...
    ...     def make_kernel(self, state):
    ...         return self.add_split_merge(StepwiseGibbs().make_kernel(state))
    >>> hmm = HCRPHMM(sampler=WithTrials(), n_burnin=20, n_draws=5, random_state=0)
    >>> hmm.fit([[0], [1]] * 20).n_states_
    2
    """

    split_merge_rate: float
    run_split_merge_rate: float

    def check_parameters(self) -> None:
        check_nonnegative("split_merge_rate", self.split_merge_rate)
        check_nonnegative("run_split_merge_rate", self.run_split_merge_rate)

    def add_split_merge(self, local: CompiledKernel) -> CompiledKernel:
        """Add `split_merge_rate` trials between local moves, and trials of whole runs.

        Parameters
        ----------
        local : skihmm.core._rcd.CompiledKernel
            Kernel of the local moves.  Trials follow the sweeps of a kernel, except of an
            :class:`RCDKernel`.

        Returns
        -------
        kernel : InterleavedKernel, RunSplitMergeKernel or CompiledKernel
            `local` itself if both rates are 0.
        """
        self.check_parameters()
        kernel = local
        if self.split_merge_rate:
            kernel = InterleavedKernel(local, self.split_merge_rate)
        if self.run_split_merge_rate:
            kernel = RunSplitMergeKernel(kernel, self.run_split_merge_rate)
        return kernel
