"""Base class of sampler recipes."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from typing import Any

from sklearn.base import BaseEstimator


class BaseSampler(BaseEstimator, metaclass=ABCMeta):
    """A sampling strategy.

    A sampler object is a recipe: it holds nothing but its constructor parameters, so it
    can be cloned, printed and searched over.  All samplers draw from the same posterior;
    only speed and mixing differ.

    Attributes
    ----------
    releases_gil : bool, default=True
        Sweeps work without Python's lock, so that chains may run as threads.  A sampler
        written in Python sets it to False: its chains run as processes.
    """

    releases_gil = True

    def check_parameters(self) -> None:
        """Raise ValueError or TypeError if a parameter is out of range.

        Called by ``fit`` before any work.  The default accepts everything.
        """

    def check_emission(self, emission: Any, stats: Any) -> None:
        """Raise TypeError if the sampler cannot work with an emission.

        Called by ``fit`` before any sampling.  The default accepts everything.

        Parameters
        ----------
        emission : BaseEmission
        stats : skihmm.core._emission.EmissionStats
            Empty statistics that it has built.
        """

    @abstractmethod
    def make_kernel(self, state: Any) -> Any:
        """Build what sweeps over one chain.

        Parameters
        ----------
        state : skihmm.core._state.ChainState
            The chain that the kernel will work on.

        Returns
        -------
        kernel : object
            Its method ``sweep(state)`` makes one sweep that leaves the posterior
            invariant and returns the numbers of proposals made and accepted.
        """
