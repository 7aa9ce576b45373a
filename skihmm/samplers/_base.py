"""Base class of sampler recipes."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from typing import Protocol

from skihmm._recipe import Recipe
from skihmm.core._emission import EmissionStats
from skihmm.core._franchise import Franchise
from skihmm.core._state import ChainState
from skihmm.core._sweep_info import SweepInfo


class SeatsTransitions(Protocol):
    """Builds the seating of the transitions."""

    @property
    def has_contexts(self) -> bool:
        """Whether transitions depend on contexts."""

    def make_seating(self) -> Franchise:
        """Build the empty seating of a chain."""


class Kernel(Protocol):
    """Sweeps over one chain."""

    def sweep(self, state: ChainState) -> SweepInfo | tuple[int, int]:
        """Make one sweep.

        Parameters
        ----------
        state : ChainState

        Returns
        -------
        info : SweepInfo, or the numbers of proposals made and accepted
        """


class BaseSampler(Recipe, metaclass=ABCMeta):
    """Base class of samplers.

    A sampler object is a recipe of constructor parameters alone: clones, prints and
    searches work.  All samplers draw from the same posterior, with different speed and
    mixing.

    A sampler can be written in Python: `make_kernel` returns any object with a method
    ``sweep(state)``.  The method changes labels by moves,
    ``with state.move(start, stop) as move: ...`` (``help(state.move)`` in a session).  It
    returns a :class:`SweepInfo`, or the numbers of proposals made and accepted.  Random
    numbers should come from ``state.stream`` (``state.stream.categorical`` and NumPy's
    ``state.stream.generator``), to repeat and resume chains.  Keep no state between
    sweeps.  :func:`skihmm.testing.check_sampler` checks the distribution of the draws.

    Attributes
    ----------
    releases_gil : bool
        Class attribute: whether a sweep releases the GIL, as compiled code can.  False
        for sweeps in Python: chains run as processes, not as threads.
    supports_stays : bool
        Class attribute: whether the kernel takes the states' probabilities to stay into
        account, as moves of ``state.move`` do.
    supports_contexts : bool
        Class attribute: the same of contexts on which transitions depend.
    test_params : sequence of dict
        Class attribute: parameters of the instances that tests should cover, which
        :func:`skihmm.testing.make_instances` builds.

    See Also
    --------
    FranchiseSampler : Base class of samplers with split-merge trials.
    SweepInfo : What a sweep returns.
    skihmm.testing.check_sampler : Test a sampler.

    Examples
    --------
    A step-wise sampler in Python with a random scan:

    >>> from skihmm import HCRPHMM
    >>> from skihmm.samplers import BaseSampler, SweepInfo
    >>> class RandomScan(BaseSampler):
    ...     releases_gil = False
    ...
    ...     def make_kernel(self, state):
    ...         return self
    ...
    ...     def sweep(self, state):
    ...         n, n_accepted = state.n_steps, 0
    ...         for t in state.stream.generator.integers(n, size=n):
    ...             with state.move(t, t + 1) as move:
    ...                 move.remove()
    ...                 log_w = move.log_weights(t)
    ...                 k = state.stream.categorical(log_w)
    ...                 move.add([k])
    ...                 n_accepted += move.accept(log_w[move.old[0]] - log_w[k])
    ...         return SweepInfo(n, n_accepted)
    >>> hmm = HCRPHMM(sampler=RandomScan(), n_burnin=5, n_draws=2, random_state=0)
    >>> hmm.fit([[0], [1]] * 10).draws_.acceptance_rate.shape
    (1, 2)
    """

    releases_gil = True
    supports_stays = True
    supports_contexts = True

    def check_parameters(self) -> None:
        """Raise ValueError or TypeError if a parameter is out of range.

        Called by ``fit`` before any work.  The default accepts everything.
        """

    def check_emission(self, emission: object, stats: EmissionStats) -> None:
        """Raise TypeError if the sampler cannot work with an emission.

        Called by ``fit`` before any sampling.  The default accepts everything.

        Parameters
        ----------
        emission : BaseEmission
        stats : skihmm.core._emission.EmissionStats
            Empty statistics of the emission.
        """

    def check_transitions(self, transitions: SeatsTransitions) -> None:
        """Raise TypeError if the sampler cannot work with these transitions.

        Called by ``fit`` before any sampling.  The default looks at the class attributes.

        Parameters
        ----------
        transitions : BaseTransitions
        """
        seating = transitions.make_seating()
        if not self.supports_stays and seating.has_coins:
            raise TypeError(
                f"{type(self).__name__} does not support states with a probability of "
                "their own to stay, as expected_dwell, stay_prior and input_features of "
                "the transitions give them. Use StepwiseGibbs, BlockedGibbs or "
                'BlockedBeam, or transitions="hcrp".'
            )
        if not self.supports_contexts and transitions.has_contexts:
            raise TypeError(
                f"{type(self).__name__} does not support transitions that depend on "
                "contexts (context_features). Use StepwiseGibbs, BlockedGibbs or "
                "BlockedBeam."
            )

    @abstractmethod
    def make_kernel(self, state: ChainState) -> Kernel:
        """Build the kernel of one chain.

        Parameters
        ----------
        state : skihmm.core._state.ChainState
            State of the chain.

        Returns
        -------
        kernel : object
            The method ``sweep(state)`` makes a sweep, under which the posterior is
            invariant, and returns a :class:`SweepInfo`.
        """
