"""Support of scikit-learn's callbacks (1.9)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from skihmm._fitting.chain import History
from skihmm._typing import MatrixLike

if TYPE_CHECKING:
    from sklearn.callback import CallbackContext


Method = TypeVar("Method")

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Empty class for versions of scikit-learn without callbacks."""

    def with_callbacks(method: Method) -> Method:
        """Return the method unchanged."""
        return method


class FitTasks:
    """Tasks of a fit for scikit-learn's callbacks: chains and their sweeps.

    `attributes` makes fitted attributes of what `summarise` returns from a list of histories of
    chains, and `n_sweeps` has the sweeps of every chain.
    """

    def __init__(
        self,
        estimator: Any,
        attributes: Callable[..., dict[str, object]],
        X: MatrixLike,
        n_sweeps: list[int],
        summarise: Callable[[list[History]], tuple[Any, ...]],
    ) -> None:
        self._given = {"estimator": estimator, "X": X}
        self._n_sweeps = n_sweeps
        self._attributes, self._summarise = attributes, summarise
        self._chains: dict[int, CallbackContext] = {}
        self._root = estimator._init_callback_context(
            max_subtasks=len(n_sweeps), sequential_subtasks=False
        )
        self._root.call_on_fit_task_begin(**self._given)

    def begin_chain(self, index: int) -> None:
        """Report the start of a chain."""
        task = self._root.subcontext(
            task_name="chain", task_id=index, max_subtasks=self._n_sweeps[index]
        )
        self._chains[index] = task.call_on_fit_task_begin(**self._given)

    def after_sweep(self, index: int, history: Callable[[], History]) -> bool:
        """Report a sweep; return whether to end the chain.

        `history` returns the history of the chain up to this sweep.
        """
        task = self._chains[index].subcontext(task_name="sweep")
        task.call_on_fit_task_begin(**self._given)
        return bool(
            task.call_on_fit_task_end(
                **self._given,
                # Computed only for a callback that needs it.
                reconstruction_attributes=lambda: self._attributes(*self._summarise([history()])),
            )
        )

    def end_chain(self, index: int) -> None:
        """Report the end of a chain."""
        self._chains[index].call_on_fit_task_end(**self._given)

    def end(self) -> None:
        """Report the end of the fit."""
        self._root.call_on_fit_task_end(**self._given)
