"""What contradicts a model: one finding, and its sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from skihmm._typing import Integers

# Findings of something that moves, or of memory: regimes are not what lies behind, and chains
# cannot agree on the pieces.
_MOVING = {"sequences", "drift", "moving", "cycle", "dwell", "interleaved", "memory", "leads"}
# Findings that k-means' clusters are an effect of.
_OF_CLUSTERS = {"sequences", "drift", "moving", "values", "zeros", "outliers", "skew"}
_OF_CLUSTERS |= {"dispersion", "underdispersion", "tails", "light_tails", "columns"}


@dataclass(frozen=True, eq=False)
class Finding:
    """A contradiction between the data of a fit and its model.

    ``str(finding)`` is its sentence.

    Parameters
    ----------
    kind : str
        "sequences", "drift" or "moving": states are pieces of something that moves.  "cycle",
        "dwell" and "interleaved": when states occur.  "bend", "product", "time",
        "spread", "memory", "leads", "symbols" and "columns": what residuals depend on.  "values",
        "zeros", "outliers", "lapses", "dispersion", "underdispersion", "skew", "tails" and
        "light_tails": the shape of the noise.  "prior": fixed priors of staying.
    size : float
        By which findings of one kind are compared.
    seen : str
        What was seen, where and how large.
    remedy : str
        What is next.
    column : str or int or None, default=None
        Column of X, of a finding about one column.
    call : str, default=""
        The remedy as code, without parameters of the estimator.
    params : mapping of {str: object}, default={}
        The remedy as parameters of the estimator.
    rows : ndarray of int, default=()
        Rows of outliers.
    lag : float, default=0
        Rows from a value to the value that it follows, of memory and of columns that lead others;
        period of a cycle, in rows.

    Examples
    --------
    >>> from skihmm.metrics import Finding
    >>> str(Finding("skew", 1.2, "Residuals are skewed, +1.2", "try logarithms"))
    'Residuals are skewed, +1.2. Next: try logarithms.'
    """

    kind: str
    size: float
    seen: str
    remedy: str
    column: str | int | None = None
    call: str = ""
    params: Mapping[str, object] = field(default_factory=dict)
    rows: Integers = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    lag: float = 0.0

    @property
    def makes_states(self) -> bool:
        """Whether states are pieces of something that moves, where longer runs do not help."""
        return self.kind in _MOVING

    def __str__(self) -> str:
        return f"{self.seen}. Next: {self.remedy}."


@dataclass(frozen=True, eq=False)
class Misfits:
    """Findings about a fit, and how many regimes its states are.

    Attributes
    ----------
    findings : sequence of Finding
        In the order of their causes, at most one of each kind.
    n_states, n_regimes : int
        States and regimes with a hundredth of the steps or more; 0 of few rows.
    notes : sequence of str, default=()
        What was not checked, and why.
    """

    findings: Sequence[Finding]
    n_states: int = 0
    n_regimes: int = 0
    notes: Sequence[str] = ()

    @property
    def are_pieces(self) -> bool:
        """Whether there are fewer regimes than states."""
        return self.n_states > self.n_regimes > 0

    @property
    def are_regimes_enough(self) -> bool:
        """Whether regimes are what lies behind the states: nothing moves or remembers."""
        return self.are_pieces and not any(f.makes_states for f in self.findings)

    def explain_clusters(self, n_clusters: int) -> bool:
        """Whether so many clusters of the data may be pieces of noise, or of what moves.

        Fewer clusters than regimes are states that the chains have not found.
        """
        is_wrong = self.are_pieces or any(f.kind in _OF_CLUSTERS for f in self.findings)
        return is_wrong and n_clusters > self.n_regimes

    @property
    def pieces(self) -> str:
        """How many regimes the states are, if they are fewer."""
        if not self.are_pieces:
            return ""
        of = f"{self.n_regimes} regime{'s' * (self.n_regimes > 1)}"
        use = ": use hmm.regimes_ for labels" if self.are_regimes_enough else ""
        use += ", unless X lacks an input" if use else ""
        return f"{self.n_states} states are pieces of {of}{use}"
