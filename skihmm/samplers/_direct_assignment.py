"""Direct-assignment sampler, a baseline."""

from __future__ import annotations

from skihmm.core._state import ChainState
from skihmm.samplers._base import BaseSampler, Kernel
from skihmm.samplers._kernels import DirectAssignmentKernel


class DirectAssignmentGibbs(BaseSampler):
    """Direct-assignment Gibbs sampler.

    The usual collapsed sampler of the HDP-HMM, as a baseline.  Every sweep draws the
    shared base distribution over states given the table counts.  Given the base
    distribution, a sweep draws the state of every step from the full conditional, in
    random order and without rejections.  Transition probabilities are integrated out, and
    emissions are seated as by the other samplers.

    A step costs a vectorised pass over all states.

    See Also
    --------
    StepwiseGibbs : The base distribution is integrated out too.
    StickBreakingGibbs : Transition and emission probabilities are drawn as well.

    References
    ----------
    Y. W. Teh, M. I. Jordan, M. J. Beal and D. M. Blei, "Hierarchical Dirichlet
    Processes", Journal of the American Statistical Association 101(476), 1566-1581, 2006,
    Section 5.3.

    Examples
    --------
    >>> from skihmm import HCRPHMM
    >>> from skihmm.datasets import make_repeating_sequence
    >>> from skihmm.samplers import DirectAssignmentGibbs
    >>> X, _ = make_repeating_sequence(120)
    >>> sampler = DirectAssignmentGibbs()
    >>> hmm = HCRPHMM(sampler=sampler, n_burnin=50, n_draws=10, random_state=0)
    >>> bool((hmm.fit(X).draws_.acceptance_rate == 1).all())
    True
    """

    supports_stays = False
    supports_contexts = False

    def make_kernel(self, state: ChainState) -> Kernel:
        return DirectAssignmentKernel()
