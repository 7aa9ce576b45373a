"""Regimes: sets of states that alternate at random."""

from __future__ import annotations

import copy
import html
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skihmm._data.frames import library_of, make_frame, output_library
from skihmm._data.sequences import Sequences
from skihmm._data.validation import check_choice, check_ignored, check_integer
from skihmm._draws import Draw, occupancy_order
from skihmm._texts import html_table, percent
from skihmm._typing import Floats, Integers, Labels, MatrixLike, VectorLike
from skihmm._using.decoding import frozen_model
from skihmm._using.dwell_times import DwellLaw
from skihmm._using.fitted import FittedEstimator, FittedModel, fitted_of
from skihmm._using.renumbering import order_for
from skihmm._using.stays import has_inputs, regression_probabilities
from skihmm.core._regime_passes import RegimePasses
from skihmm.metrics._scorer import mean_observed
from skihmm.posterior._regime_chain import Counts, Likelihoods, RegimeChain, penalised
from skihmm.posterior._regime_tree import MOST_EXACT, STEP, cut, merge_tree, nested_tree

# Prior odds, nats: states are kept unless merges gain so much (noise 12 to 683, real states up to
# 16 by spare states), and the fewest regimes within so much of the best.
_LEAST_GAIN, _NEAR = 10.0, 3.0


def why_no_regimes(draw: Draw) -> str | None:
    """Property of a draw that regimes do not support yet; None if regimes can be found."""
    if "contexts" in draw.transitions:
        return "transitions depend on contexts (context_features)"
    return None


def choose(evidences: Floats) -> int:
    """Number of regimes by the evidence of 1, 2, ... of them; NaN was not computed."""
    top = np.nanmax(evidences)
    if top - evidences[-1] < _LEAST_GAIN:
        return len(evidences)
    return int(np.flatnonzero(evidences >= top - _NEAR)[0]) + 1


class _Search:
    """Levels of a tree of merges of the states of a draw, and their evidences."""

    def __init__(self, seen: Likelihoods, path: Integers, starts: Integers, n_known: int) -> None:
        n = seen.values.shape[1]
        self.counts = RegimeChain(np.arange(n), Counts.of_path(path, starts, n)).fit(seen)
        self.tree = merge_tree(self.counts, n_known)
        self.least = n - len(self.tree)
        self.evidences = np.full(n, np.nan)
        if n <= MOST_EXACT:
            for n_regimes in range(self.least, n + 1):
                self.chain(n_regimes, seen)
        else:
            self._refine(seen)

    def chain(self, n_regimes: int, seen: Likelihoods) -> RegimeChain:
        """Chain of so many regimes, whose evidence is entered."""
        n = len(self.evidences)
        chain = RegimeChain(cut(self.tree, n, n - n_regimes), self.counts)
        chain.fit(seen)
        self.evidences[n_regimes - 1] = chain.evidence
        return chain

    def _refine(self, seen: Likelihoods) -> None:
        """Try levels that are a factor apart, and then halve the gaps about the best."""
        level = len(self.evidences)
        while level > self.least:
            self.chain(level, seen)
            level = max(self.least, int(STEP * level))
        self.chain(self.least, seen)
        while True:
            known = np.flatnonzero(np.isfinite(self.evidences)) + 1
            best = int(np.nanargmax(self.evidences)) + 1
            i, j = np.searchsorted(known, [best, choose(self.evidences)])
            below = {k for k in (i - 1, i, j - 1) if 0 <= k < len(known) - 1}
            gaps = [(int(known[k]), int(known[k + 1])) for k in sorted(below)]
            middles = [(a + b) // 2 for a, b in gaps if b > a + 1]
            if not middles:
                return
            for level in middles:
                self.chain(level, seen)


class Regimes:
    """Regimes of a fitted model: sets of states with random alternations.

    Noise of another shape than the emission's is covered by several states.  Given the
    regime, the next of these states does not depend on the state now.  Partitions of the
    states of the selected draw are compared by the evidence of the data, with labels
    summed out.  Each is an HMM of regimes with mixtures of the states' emissions.
    States are kept unless another partition has 10 nats more; then the fewest regimes
    within 3 nats of the best partition are taken.  Real states that change fast, and
    depend on the last state, stay apart.

    The draws, labels and predictions of the model do not change.  Attributes have the
    names and shapes that :class:`skihmm.HCRPHMM` has, with regimes for states; arrays are
    read-only.  Displays of transitions, dwell times and state sequences take regimes, too.

    Parameters
    ----------
    hmm : HCRPHMM
        Fitted; :meth:`skihmm.HCRPHMM.find_regimes` keeps the result.
    n_regimes : int, default=None
        Number of regimes, a cut of the tree.  None: by the evidence.

    Attributes
    ----------
    n_regimes_ : int
    labels_ : ndarray of shape (n_samples,), int32
        Most probable path of the training steps, ``0 .. n_regimes_ - 1``: regimes of
        known states first, then by decreasing occupancy.  ``labels_`` of the estimator
        if no states are joined.
    state_regimes_ : ndarray of shape (n_states,), int32
        Regime of every state.
    state_weights_ : ndarray of shape (n_states,)
        Weights of the states in the emissions of their regimes.
    startprob_ : ndarray of shape (n_regimes + 1,)
        Probabilities of the first regime; the last one is the new state.
    transmat_ : ndarray of shape (n_regimes + 1, n_regimes + 1)
        Transition probabilities, likewise.  If staying depends on inputs, averages over
        the steps of the fit.
    dwell_times_ : ndarray of shape (n_regimes,)
        Expected number of steps of a stay, ``1 / (1 - transmat_[r, r])``.
    evidences_ : ndarray of shape (n_states,)
        Log evidence of the data with 1, 2, ... regimes, nats, given the emissions of the
        selected draw; NaN for untried numbers (with more than 60 states).
        ``scipy.special.softmax(evidences_)`` has the probabilities of the numbers, for the
        selected draw only.  After :meth:`upper`: evidence of the transitions of the lower
        regimes.
    tree_ : ndarray of shape (n_merges, 2), int
        Merged states, or results of earlier merges (merge i is node ``n_states + i``), in
        the order of the merges.  After :meth:`upper`: regimes for states.

    See Also
    --------
    skihmm.inspection.RegimeTreeDisplay : The merges and what they cost.

    References
    ----------
    P. Cheeseman and J. Stutz, "Bayesian Classification (AutoClass): Theory and Results",
    Advances in Knowledge Discovery and Data Mining, 1996.

    Examples
    --------
    >>> import numpy as np
    >>> from skihmm import HCRPHMM
    >>> rng = np.random.default_rng(0)
    >>> levels = np.repeat([0.0, 6.0, 0.0, 6.0, 0.0], 200)
    >>> X = (levels + rng.gamma(1, size=1000))[:, None]
    >>> hmm = HCRPHMM(emission="gaussian", n_burnin=100, n_draws=20, random_state=0)
    >>> regimes = hmm.fit(X).find_regimes()
    >>> hmm.n_states_ > regimes.n_regimes_
    True
    >>> regimes.n_regimes_, np.bincount(regimes.labels_).tolist()
    (2, [600, 400])
    """

    _chain: RegimeChain
    # Sets of the regimes of the chain, numbered as here: as they are, or of `upper`.
    _sets: NDArray[np.intp]
    # Expected steps of the regimes of the chain, and their shares in the sets.
    _steps: Floats
    _shares: Floats
    # Regime of every leaf of the tree.
    _leaves: NDArray[np.intp]
    # Regressions of staying in the regimes of the chain, if it depends on inputs.
    _regressions: Floats | None

    def __init__(self, hmm: FittedEstimator | FittedModel, n_regimes: int | None = None) -> None:
        self._fitted = fitted = hmm if isinstance(hmm, FittedModel) else fitted_of(hmm)
        self._sklearn_output_config = getattr(hmm, "_sklearn_output_config", {})
        reason = why_no_regimes(fitted.selected)
        if reason is not None:
            raise ValueError(f"Regimes are not found yet where {reason}; labels_ has the states.")
        seen = self._seen_in_fit()
        path = np.asarray(fitted.labels, dtype=np.intp)
        sequences = fitted.sequences
        self._search = _Search(seen, path, sequences.starts, len(sequences.known_labels))
        self._cut(n_regimes, seen)

    def _seen_in_fit(self) -> Likelihoods:
        terms, sequences = self._terms(self._fitted.sequences)
        # No step of a fit is in the new state.
        return Likelihoods.of_terms(np.ascontiguousarray(terms[:, :-1]), sequences.starts)

    def _terms(self, sequences: Sequences) -> tuple[Floats, Sequences]:
        fitted = self._fitted
        (draw,), sequences = fitted.with_subjects([fitted.selected], sequences)
        return frozen_model(draw, sequences, fitted.emission).emission_terms(), sequences

    @property
    def _switch_penalty(self) -> float:
        return float(self._fitted.transitions.switch_penalty)

    def _cut(self, n_regimes: int | None, seen: Likelihoods) -> None:
        search = self._search
        if n_regimes is None:
            n_regimes = choose(search.evidences)
        least, most = search.least, len(search.evidences)
        if not least <= check_integer("n_regimes", n_regimes, 1) <= most:
            raise ValueError(
                f"n_regimes={n_regimes}; expected {least} to {most}: the selected draw "
                f"has {most} states, and known ones are not merged with one another."
            )
        chain = search.chain(n_regimes, seen)
        regressions, stays = None, None
        if has_inputs(self._fitted.selected):
            inputs = self._inputs_of(self._fitted.sequences)
            regressions = chain.regressions(seen, inputs)
            stays = regression_probabilities(regressions, inputs)
        if n_regimes == most:  # nothing is joined
            path = self._fitted.labels
        else:
            path = chain.passes(seen, self._switch_penalty, stays).viterbi()
        steps = np.bincount(chain.groups, chain.expected(seen)[1].steps)
        order = self._order(path, chain.groups)
        rank = np.argsort(order)
        # The new state, which the chain does not have, is a regime of its own.
        groups, weights, new = rank[chain.groups], chain.weights, self._fitted.transmat
        to_new = np.bincount(groups, weights * new[:-1, -1])
        self._transmat = np.zeros((n_regimes + 1, n_regimes + 1))
        self._transmat[:-1, :-1] = chain.transmat[np.ix_(order, order)]
        self._transmat[:-1, :-1] *= 1 - to_new[:, None]
        self._transmat[:-1, -1] = to_new
        self._transmat[-1] = np.append(np.bincount(groups, new[-1, :-1]), new[-1, -1])
        new_first = self._fitted.startprob[-1]
        first = chain.startprob[order] * (1 - new_first)
        self._startprob = np.append(first, new_first)
        self._regressions = None if regressions is None else regressions[order]
        self._groups = np.append(groups, n_regimes).astype(np.int32)
        self._weights: Floats = np.append(weights, 1.0)
        self._steps = np.asarray(steps[order], dtype=np.float64)
        self.labels_ = rank[path].astype(np.int32)
        self.evidences_, self.tree_ = search.evidences.view(), search.tree
        self._leaves = groups
        self._take_sets(np.arange(n_regimes))

    def _order(self, path: Integers, groups: Integers) -> NDArray[np.intp]:
        """Sets of states in the order of their labels."""
        known = groups[: len(self._fitted.sequences.known_labels)]
        order = np.append(known, occupancy_order(path, int(groups.max()) + 1))
        return np.asarray(order[np.sort(np.unique(order, return_index=True)[1])])

    def _take_sets(self, sets: Integers) -> None:
        """Set the attributes that describe sets of the regimes of the chain."""
        self.n_regimes_ = n = int(sets.max()) + 1
        self._sets = np.append(sets, n)
        Z = np.eye(n + 1)[self._sets]
        steps = self._steps + np.finfo(float).tiny
        self._shares = shares = np.append(steps / np.bincount(sets, steps)[sets], 1.0)
        self.transmat_ = (Z * shares[:, None]).T @ self._transmat @ Z
        self.startprob_ = self._startprob @ Z
        self.dwell_times_ = self._dwell_law.mean
        self.state_regimes_ = self._sets[self._groups[:-1]].astype(np.int32)
        self.state_weights_ = (self._weights * shares[self._groups])[:-1]
        # All who ask for these regimes have the same arrays.
        for name, value in vars(self).items():
            if name.endswith("_") and isinstance(value, np.ndarray):
                value.flags.writeable = False

    def __repr__(self) -> str:
        return f"<Regimes: {self.n_regimes_} of {len(self.state_regimes_)} states>"

    def _repr_html_(self) -> str:
        sizes = np.bincount(self.labels_, minlength=self.n_regimes_)
        rows = [["regime", "share", "dwell time", "states"]]
        for regime, (size, dwell) in enumerate(zip(sizes, self.dwell_times_, strict=True)):
            states = np.flatnonzero(self.state_regimes_ == regime)
            share = percent(size / max(len(self.labels_), 1))
            rows.append([str(regime), share, f"{dwell:.3g}", ", ".join(map(str, states))])
        return f"<p>{html.escape(repr(self)[1:-1])}</p>{html_table(rows)}"

    def _with_output(self, config: dict[str, str]) -> Regimes:
        """These regimes with the output of an estimator's ``set_output``."""
        if config == self._sklearn_output_config:
            return self
        other = copy.copy(self)
        other._sklearn_output_config = config
        return other

    def _with_number(self, n_regimes: int) -> Regimes:
        """Regimes of the same tree, cut at another number."""
        other = copy.copy(self)
        other._cut(n_regimes, self._seen_in_fit())
        return other

    def upper(self, n_regimes: int) -> Regimes:
        """Join regimes to a second level: sets that are left seldom.

        Inside of a set the chain of regimes is unchanged.  A change of set forgets the
        regime before the change.  The sets are a level of a greedy tree by the evidence of
        the transitions of `labels_`.

        Parameters
        ----------
        n_regimes : int
            Number of sets.  The evidence does not choose the number, because in trials the
            choice was too large by two.

        Returns
        -------
        regimes : Regimes
            Probabilities of the lower regimes are summed.  Transitions between sets are
            means over the regimes of a set.
        """
        n = self.n_regimes_
        if not check_integer("n_regimes", n_regimes, 1) <= n:
            raise ValueError(f"n_regimes={n_regimes}, but there are {n} regimes to be joined.")
        starts = self._fitted.sequences.starts
        tree, scores = nested_tree(Counts.of_path(self.labels_, starts, n))
        sets = cut(tree, n, n - n_regimes)
        order = self._order(sets[self.labels_], sets[self.state_regimes_])
        sets = np.argsort(order)[sets]
        other = copy.copy(self)
        other.labels_ = sets[self.labels_].astype(np.int32)
        other.evidences_, other.tree_, other._leaves = scores, tree, sets
        other._take_sets(sets[self._sets[:-1]])
        return other

    def renumber(
        self, by: VectorLike | str | None = None, *, like: VectorLike | None = None
    ) -> Regimes:
        """Give the regimes other numbers; nothing else changes.

        Parameters
        ----------
        by : array-like of shape (n_regimes,) or "size", optional
            A number for every regime, in the present order: the regime with the smallest
            number becomes regime 0.  "size": by decreasing number of steps.
        like : array-like of shape (n_steps,), int, optional
            Earlier regimes of the training steps, or of the first training steps, with -1
            for steps without a label.  The new numbers agree with `like` on the largest
            possible number of steps.

        Returns
        -------
        regimes : Regimes
            A copy. :meth:`skihmm.HCRPHMM.find_regimes` keeps the earlier numbers.  Regimes
            of known states are first.

        Raises
        ------
        ValueError
            See :meth:`skihmm.HCRPHMM.renumber`.

        Examples
        --------
        >>> import numpy as np
        >>> from skihmm import HCRPHMM
        >>> X = np.repeat([[0.0], [9.0], [0.0]], [30, 40, 30], axis=0)
        >>> X += np.random.default_rng(0).normal(size=X.shape)
        >>> hmm = HCRPHMM(emission="gaussian", n_burnin=50, n_draws=10, random_state=0)
        >>> regimes = hmm.fit(X).find_regimes(2)
        >>> regimes.labels_[[0, 30]], regimes.renumber(by=[1, 0]).labels_[[0, 30]]
        (array([0, 1], dtype=int32), array([1, 0], dtype=int32))
        """
        known = self.state_regimes_[: len(self._fitted.sequences.known_labels)]
        n_known = len(np.unique(known))
        order = order_for(self.labels_, self.n_regimes_, n_known, by, like, "regime")
        number = np.argsort(order)
        other = copy.copy(self)
        other.labels_, other._leaves = number[self.labels_].astype(np.int32), number[self._leaves]
        other._take_sets(number[self._sets[:-1]])
        return other

    def _passes(
        self, X: MatrixLike, groups: VectorLike | None, lengths: VectorLike | None
    ) -> tuple[Likelihoods, Sequences, RegimePasses]:
        terms, sequences = self._terms(self._fitted.encode(X, groups, lengths))
        seen = Likelihoods.of_terms(terms, sequences.starts)
        return seen, sequences, self._passes_of(seen, sequences, 0.0)

    def _passes_of(
        self, seen: Likelihoods, sequences: Sequences, switch_penalty: float
    ) -> RegimePasses:
        transmat = penalised(self._transmat, switch_penalty)
        stays = None
        if self._regressions is not None:
            stays = self._stays(self._regressions, self._inputs_of(sequences))
        return RegimePasses(
            seen.values, seen.first, self._groups, self._weights, self._startprob, transmat, stays
        )

    def _inputs_of(self, sequences: Sequences) -> Floats:
        assert sequences.contexts is not None
        assert sequences.contexts.inputs is not None
        return sequences.contexts.inputs

    def _stays(self, regressions: Floats, inputs: Floats) -> Floats:
        """Probabilities to stay in the regimes of the chain, and in the new state."""
        new = np.full(len(inputs), self._transmat[-1, -1])
        return np.column_stack([regression_probabilities(regressions, inputs), new])

    def _state_probs(
        self,
        X: MatrixLike,
        method: str,
        groups: VectorLike | None,
        lengths: VectorLike | None,
    ) -> Floats:
        check_choice("method", method, ("smooth", "filter"))
        passes = self._passes(X, groups, lengths)[2]
        probs = passes.filter()[1]
        if method == "smooth":
            passes.smooth(probs)
        return np.asarray(probs @ np.eye(self.n_regimes_ + 1)[self._sets])

    @property
    def _dwell_law(self) -> DwellLaw:
        """Law of the dwell times of the regimes."""
        changes = 1 - self.transmat_.diagonal()[:-1]
        return DwellLaw(np.ones(self.n_regimes_), changes)

    def stay_probabilities(self, inputs: MatrixLike) -> Floats:
        """Probability of every regime to stay for the next step, given inputs.

        Each regime has a logistic regression of staying on the inputs, fitted to the
        expected steps of the regime.

        Parameters
        ----------
        inputs : array-like of shape (n_rows, n_inputs)
            ``input_features`` of the transitions, in order, with the units of X.

        Returns
        -------
        probabilities : ndarray of shape (n_rows, n_regimes)

        Raises
        ------
        ValueError
            If staying does not depend on inputs, or if an input is missing.
        """
        rows = self._fitted.encoder.inputs_of_staying(inputs)
        assert self._regressions is not None
        stays, Z = self._stays(self._regressions, rows), np.eye(self.n_regimes_ + 1)[self._sets]
        # A step that leaves a regime may stay in its set.
        own = self._transmat.diagonal()
        again = ((self._transmat @ Z * Z).sum(axis=1) - own) / (1 - own)
        return np.asarray(((stays + (1 - stays) * again) * self._shares @ Z)[:, :-1])

    def predict(
        self,
        X: MatrixLike,
        *,
        method: str = "viterbi",
        groups: VectorLike | None = None,
        lengths: VectorLike | None = None,
    ) -> Labels:
        """Most probable regimes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        method : {"viterbi", "smooth", "filter"}, default="viterbi"
            The most probable path, with the ``switch_penalty`` of the transitions for
            changes of regime; or the most probable regime of every step given all of X, or
            given X up to the step.
        groups, lengths : array-like, optional
            See :meth:`skihmm.HCRPHMM.fit`.

        Returns
        -------
        regimes : ndarray of shape (n_samples,), int32
            ``0 .. n_regimes_ - 1``; ``n_regimes_`` is the new state.
        """
        if check_choice("method", method, ("viterbi", "smooth", "filter")) != "viterbi":
            probs = self._state_probs(X, method, groups, lengths)
            return probs.argmax(axis=1).astype(np.int32)
        seen, sequences, _ = self._passes(X, groups, lengths)
        path = self._passes_of(seen, sequences, self._switch_penalty).viterbi()
        return self._sets[path].astype(np.int32)

    def predict_proba(
        self,
        X: MatrixLike,
        *,
        method: str = "smooth",
        groups: VectorLike | None = None,
        lengths: VectorLike | None = None,
    ) -> Any:
        """Probabilities of the regimes of every step.

        The chain of regimes smooths the probabilities, so sums of the probabilities of
        states differ.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        method : {"smooth", "filter"}, default="smooth"
            Given all of X, or given X up to this step.
        groups, lengths : array-like, optional
            See :meth:`skihmm.HCRPHMM.fit`.

        Returns
        -------
        probs : ndarray or data frame of shape (n_samples, n_regimes + 1)
            Rows sum to one, the last column is the new state.  A data frame, with the
            columns ``regime0``, ``regime1``, ... and ``new_state``, as by
            :meth:`skihmm.HCRPHMM.predict_proba`.
        """
        probs = self._state_probs(X, method, groups, lengths)
        library = output_library(self, library_of(X))
        if library is None:
            return probs
        names = [*(f"regime{r}" for r in range(self.n_regimes_)), "new_state"]
        return make_frame(library, probs, names, X)

    def score(
        self,
        X: MatrixLike,
        y: None = None,
        *,
        groups: VectorLike | None = None,
        lengths: VectorLike | None = None,
    ) -> float:
        """Mean log predictive probability per observed time step.

        The chain of regimes of the selected draw predicts, no average over draws.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : None
            Ignored.
        groups, lengths : array-like, optional
            See :meth:`skihmm.HCRPHMM.fit`.

        Returns
        -------
        score : float
            Nats; higher is better.
        """
        check_ignored(y, X)
        seen, sequences, passes = self._passes(X, groups, lengths)
        log_probs = passes.filter()[0] + seen.log_factors
        return mean_observed(log_probs, sequences, self._fitted.emission)


def path_of_regimes(fitted: FittedModel) -> Integers:
    """Most probable path of regimes by values alone, also where transitions have contexts."""
    terms = frozen_model(fitted.selected, fitted.sequences, fitted.emission).emission_terms()
    seen = Likelihoods.of_terms(np.ascontiguousarray(terms[:, :-1]), fitted.sequences.starts)
    path = np.asarray(fitted.labels, dtype=np.intp)
    n_known = len(fitted.sequences.known_labels)
    search = _Search(seen, path, fitted.sequences.starts, n_known)
    chain = search.chain(choose(search.evidences), seen)
    return chain.passes(seen, float(fitted.transitions.switch_penalty)).viterbi()


class FoundRegimes:
    """Regimes of a fitted model by their number, found when they are asked for.

    Of a fitted model, not of an estimator: the next fit begins another one.
    """

    def __init__(self, fitted: FittedModel) -> None:
        self.fitted = fitted
        self._known: dict[int | None, Regimes] = {}

    def __getstate__(self) -> dict[str, object]:
        """State of copies and pickles, in which regimes are found again."""
        return {"fitted": self.fitted, "_known": {}}

    @property
    def are_known(self) -> bool:
        """Whether any were found."""
        return bool(self._known)

    def __call__(
        self, n_regimes: int | None = None, output: dict[str, str] | None = None
    ) -> Regimes:
        """Regimes of this number, by default by the evidence; their frames as by ``set_output``."""
        known = self._known
        if n_regimes is not None:
            n_regimes = check_integer("n_regimes", n_regimes, 1)
        if None not in known:
            found = Regimes(self.fitted)
            known[None] = known[found.n_regimes_] = found
        if n_regimes is not None and n_regimes not in known:
            known[n_regimes] = known[None]._with_number(n_regimes)
        return known[n_regimes]._with_output(output or {})


def fitted_behind(hmm: FittedEstimator | Regimes) -> FittedModel:
    """Fitted model of an estimator, or the one that regimes were found in."""
    return hmm._fitted if isinstance(hmm, Regimes) else fitted_of(hmm)


def dwell_law_of(hmm: FittedEstimator | Regimes) -> DwellLaw:
    """Law of the dwell times of states, or of regimes."""
    return hmm._dwell_law if isinstance(hmm, Regimes) else fitted_of(hmm).dwell_law
