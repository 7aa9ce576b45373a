"""What contradicts a model: one finding, and its sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from skihmm._typing import Integers


class Kind(NamedTuple):
    """What follows from a finding of a kind.

    Parameters
    ----------
    makes_states : bool, default=False
        Something moves, or has memory: regimes are not what lies behind, and chains cannot agree
        on the pieces.
    makes_clusters : bool, default=False
        Clusters of k-means are an effect of it.
    makes_lone_rows : bool, default=False
        Lone rows of small states are an effect of it.
    makes_dependence : bool, default=False
        Dependence of residuals, on time and on the rows before, is an effect of it.
    """

    makes_states: bool = False
    makes_clusters: bool = False
    makes_lone_rows: bool = False
    makes_dependence: bool = False


KINDS = {
    "sequences": Kind(makes_states=True, makes_clusters=True),
    "drift": Kind(makes_states=True, makes_clusters=True),
    "moving": Kind(makes_states=True, makes_clusters=True),
    "cycle": Kind(makes_states=True),
    "dwell": Kind(makes_states=True),
    "interleaved": Kind(makes_states=True, makes_lone_rows=True),
    "bend": Kind(makes_lone_rows=True),
    "product": Kind(makes_lone_rows=True),
    "time": Kind(),
    "spread": Kind(),
    "memory": Kind(makes_states=True),
    "leads": Kind(makes_states=True),
    "symbols": Kind(),
    "columns": Kind(makes_clusters=True, makes_lone_rows=True),
    "values": Kind(makes_clusters=True, makes_lone_rows=True, makes_dependence=True),
    "zeros": Kind(makes_clusters=True, makes_dependence=True),
    "outliers": Kind(makes_clusters=True, makes_lone_rows=True),
    "lapses": Kind(),
    "dispersion": Kind(makes_clusters=True, makes_dependence=True),
    "underdispersion": Kind(makes_clusters=True, makes_dependence=True),
    "skew": Kind(makes_clusters=True, makes_lone_rows=True),
    "tails": Kind(makes_clusters=True, makes_lone_rows=True),
    "light_tails": Kind(makes_clusters=True),
    "prior": Kind(),
}


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
        What to do, a clause such as "try logarithms".
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

    Raises
    ------
    ValueError
        If there is no such kind.

    See Also
    --------
    Diagnosis : All findings of a fit.
    skihmm.inspection.ResidualDisplay : Draw residuals.

    Examples
    --------
    >>> from skihmm.metrics import Finding
    >>> str(Finding("skew", 1.2, "The noise is skewed (+1.2)", "try logarithms"))
    'The noise is skewed (+1.2). Try logarithms.'
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

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            known = ", ".join(map(repr, KINDS))
            raise ValueError(
                f"kind is {self.kind!r}; expected one of {known}. A new kind is a row of KINDS in "
                "skihmm/metrics/_finding.py."
            )

    @property
    def makes_states(self) -> bool:
        """Whether states are pieces of something that moves, where longer runs do not help."""
        return KINDS[self.kind].makes_states

    def __str__(self) -> str:
        return f"{self.seen}. {self.remedy[:1].upper()}{self.remedy[1:]}."


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
        is_wrong = self.are_pieces or any(KINDS[f.kind].makes_clusters for f in self.findings)
        return is_wrong and n_clusters > self.n_regimes

    @property
    def pieces(self) -> str:
        """How many regimes the states are, if they are fewer."""
        if not self.are_pieces:
            return ""
        of = f"{self.n_regimes} regime{'s' * (self.n_regimes > 1)}"
        use = ". Use hmm.regimes_ for labels" if self.are_regimes_enough else ""
        use += ", unless X lacks an input" if use else ""
        return f"{self.n_states} states are pieces of {of}{use}"
