"""Base class of samplers with split-merge trials."""

from __future__ import annotations

from skihmm._validation import check_nonnegative
from skihmm.core._rcd import RCDKernel
from skihmm.samplers._base import BaseSampler, Kernel
from skihmm.samplers._split_merge_kernel import InterleavedKernel


class FranchiseSampler(BaseSampler):
    """Base class of samplers that combine local moves with split-merge trials.

    A subclass has a parameter `split_merge_rate` and passes its kernel to
    :meth:`add_split_merge` at the end of ``make_kernel``.
    """

    split_merge_rate: float

    def check_parameters(self) -> None:
        """Raise ValueError or TypeError if a parameter is out of range."""
        check_nonnegative("split_merge_rate", self.split_merge_rate)

    def add_split_merge(self, local: RCDKernel) -> Kernel:
        """Add `split_merge_rate` split-merge trials per sweep between local moves.

        Parameters
        ----------
        local : skihmm.core._rcd.RCDKernel
            Kernel of the local moves.

        Returns
        -------
        kernel : InterleavedKernel or RCDKernel
            `local` itself if the rate is 0.
        """
        rate = check_nonnegative("split_merge_rate", self.split_merge_rate)
        return InterleavedKernel(local, rate) if rate else local
