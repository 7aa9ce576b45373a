"""scikit-learn's callbacks, which came with its version 1.9."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from sklearn.base import BaseEstimator

from skihmm._chain import History
from skihmm._typing import MatrixLike

if TYPE_CHECKING:
    from sklearn.callback import CallbackContext


Method = TypeVar("Method")

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing: this version of scikit-learn has no callbacks."""

    def with_callbacks(method: Method) -> Method:
        """The method itself."""
        return method


class FitTasks:
    """The tasks of a fit, as scikit-learn's callbacks see them: chains and their sweeps.

    Parameters
    ----------
    estimator : HCRPHMM
    X : ndarray of shape (n_samples, n_features)
    n_sweeps : list of int
        Sweeps that every chain has to make.
    summarise : callable
        Fitted attributes that follow from a list of histories of chains.
    """

    def __init__(
        self,
        estimator: BaseEstimator,
        X: MatrixLike,
        n_sweeps: list[int],
        summarise: Callable[[list[History]], dict[str, object]],
    ) -> None:
        self._given = {"estimator": estimator, "X": X}
        self._n_sweeps = n_sweeps
        self._summarise = summarise
        self._chains: dict[int, CallbackContext] = {}
        self._root = estimator._init_callback_context(
            max_subtasks=len(n_sweeps), sequential_subtasks=False
        )
        self._root.call_on_fit_task_begin(**self._given)

    def begin_chain(self, index: int) -> None:
        """A chain begins."""
        task = self._root.subcontext(
            task_name="chain", task_id=index, max_subtasks=self._n_sweeps[index]
        )
        self._chains[index] = task.call_on_fit_task_begin(**self._given)

    def after_sweep(self, index: int, history: Callable[[], History]) -> bool:
        """A sweep was made; a true answer ends the chain.

        Parameters
        ----------
        index : int
            Number of the chain.
        history : callable
            Returns the history of the chain if it ended here.

        Returns
        -------
        end : bool
        """
        task = self._chains[index].subcontext(task_name="sweep")
        task.call_on_fit_task_begin(**self._given)
        return bool(
            task.call_on_fit_task_end(
                **self._given,
                # Only worked out for a callback that asks for it.
                reconstruction_attributes=lambda: self._summarise([history()]),
            )
        )

    def end_chain(self, index: int) -> None:
        """A chain has ended."""
        self._chains[index].call_on_fit_task_end(**self._given)

    def end(self) -> None:
        """The fit has ended."""
        self._root.call_on_fit_task_end(**self._given)
