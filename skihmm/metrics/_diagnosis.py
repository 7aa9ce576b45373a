"""Diagnosis of a fit in words: a verdict on its labels, its chains and its model."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from skihmm._draws import PosteriorDraws
from skihmm._fitting.starts import LEAST_SWEEPS, effort_of
from skihmm._records import TransitionsRecord, occupancies_of
from skihmm._texts import html_table, keyword_text, percent, wrapped
from skihmm._typing import Array, Floats, Labels
from skihmm._using.decoding import LEAST_NOISE, stay_below
from skihmm._using.partitions import Loss
from skihmm.core._sweep_info import RATES
from skihmm.metrics._convergence import effective_sample_size, rhat
from skihmm.metrics._finding import Finding, Misfits
from skihmm.metrics._labels import FIRM, DrawLabels
from skihmm.metrics._visits import LARGE_STATE
from skihmm.posterior._summaries import n_states_distribution
from skihmm.samplers import BaseSampler
from skihmm.samplers._blocked import DEFAULT_BLOCK

# Names of the quantities of the table; concentrations keep theirs.
NAMES = {
    "lp": "log joint probability",
    "n_states": "number of states",
    "occupancy_entropy": "entropy of the occupancies",
    "distance": "distance to the selected draw",
}
_COLUMNS = ("mean", "rhat", "ess_bulk", "ess_tail", "ess_per_second")

# With fewer draws per chain their labels and scores are not judged.
FEW_DRAWS = 20
# Fewer rows do not tell states apart.
FEW_ROWS = 10
# Effective sample size below which the number of states is noted, and that which is aimed at.
LOW_ESS, GOOD_ESS = 100, 400
# Acceptance rate of an alarm.
LOW_ACCEPTANCE = 0.2
# Chains with a smaller proportion of the longest chain's draws are left out.
_SHORT_CHAIN = 0.5
# States of one step: proportion of all states, proportion of all steps, and number, since a few
# such states are outliers.
_MOST, _SINGLE_STEPS, _FEW_SINGLE = 0.5, 0.05, 5
# Labels are uncertain in part if so many of the steps are firm (all are from FIRM on).
_HALF = 0.5
# Share of the steps on which parts of a chain, or chains, disagree beyond draws of one part.
# Between chains it was at most .07 in right fits, and .07 to .32 in stuck fits.
APART = 0.1
# Monte Carlo error of the score, nats per step.  It was at most .0016 of right fits, and
# .05 to .15 after bad starts.
LARGE_ERROR = 0.01
# Share of a chain's draws with one number of large states, which makes the chain sure of it. Where
# chains of right fits differ, one of them has at most .46; stuck chains have .70 to 1.
SURE = 2 / 3
# Batches of a chain's scores, from whose means their error is.
_N_BATCHES = 4
# Probabilities that are not shown, and the most that are.
_RARE, _MOST_SHOWN = 0.005, 3
# Trials per sweep to advise, as measured in docs/samplers.md.
_SPLIT_MERGE_RATES = (2, 13)
_WIDTH = 88
_STUCK = "Chains get stuck here; all of them may be."
_NO_MISFITS = Misfits([])


def _rounded_up(value: float) -> int:
    """Round up to two digits."""
    unit = 10 ** max(0, math.floor(math.log10(max(value, 1))) - 1)
    return math.ceil(round(value / unit, 9)) * unit


def _listed(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)


def _wrapped(text: str) -> str:
    return wrapped(text, _WIDTH)


def _bullet(point: str) -> str:
    return _wrapped(f"* {point}")


def _chain_list(chains: list[int]) -> str:
    if len(chains) == 1:
        return f"chain {chains[0]}"
    return f"chains {_listed([str(c) for c in chains])}"


def _shares(values: Array, probs: Floats) -> str:
    """The most probable values with their probabilities."""
    order = np.argsort(-probs, kind="stable")[:_MOST_SHOWN]
    return ", ".join(f"{values[i]} ({percent(probs[i])})" for i in order if probs[i] > _RARE)


@dataclass(frozen=True)
class Setting:
    """What a diagnosis needs of a fit beside its draws.

    Attributes
    ----------
    sampler : BaseSampler
    n_burnin, thin : int
    n_samples : int
        Time steps of the data, an upper limit of the block size.
    shares_start : bool
        Whether all chains started from the same states.
    has_numbers : bool, default=True
        Whether any column holds numbers.
    data_notes : sequence of str, default=()
        What the fit did to its copy of the data.
    point_estimate : str, default="vi"
    misfits : Misfits
        How the data contradict the model, and whether states are pieces of regimes.
    scores : ndarray of shape (n_chains, n), optional
        Log likelihood of the data under some draws of every chain, nats.
    clusters : (float, ndarray of shape (n_samples,)), optional
        Nats by which the rank of clusters of k-means, as states, is above the ranks of
        the draws, and these clusters.
    looks_back : bool, default=False
        Whether the emission depends on earlier rows.
    fit_arguments : str, default="X"
        Arguments of ``fit``, as a command shows them.
    seconds : float, default=0.0
        CPU seconds of all chains, with their starts and burn-in.
    """

    sampler: BaseSampler
    n_burnin: int
    thin: int
    n_samples: int
    shares_start: bool
    has_numbers: bool = True
    data_notes: Sequence[str] = ()
    point_estimate: str = "vi"
    misfits: Misfits = _NO_MISFITS
    scores: Floats | None = None
    clusters: tuple[float, Labels] | None = None
    looks_back: bool = False
    fit_arguments: str = "X"
    seconds: float = 0.0


def name_of(quantity: str) -> str:
    """Name of a quantity of the table."""
    return NAMES.get(quantity, quantity.replace("__", " ").replace("_", " "))


def _quantities(
    draws: PosteriorDraws,
    chains: NDArray[np.intp],
    n_draws: int,
    reference: tuple[int, int],
) -> dict[str, Floats]:
    """Label-invariant quantities of every draw, (n_chains, n_draws), by name."""
    quantities = {
        "lp": draws.summed_lp()[chains, :n_draws],
        "n_states": draws.n_states[chains, :n_draws].astype(float),
    }
    for name, concentration in draws.positive_hyperparameters().items():
        values = concentration[chains, :n_draws]
        # A fixed hyperparameter is not sampled.
        if values.size == 1 or np.ptp(values):
            quantities[name] = values
    path = draws[reference].states
    loss = None if path is None else Loss("vi", len(path))
    entropies = np.empty((len(chains), n_draws))
    distances = np.empty((len(chains), n_draws))
    for c, d in np.ndindex(entropies.shape):
        draw = draws[int(chains[c]), d]
        counts = occupancies_of(draw.transitions)
        entropies[c, d] = entr(counts / counts.sum()).sum()
        if loss is None or path is None or draw.states is None:
            loss = None  # warm_start may have changed store_states
        else:
            distances[c, d] = loss.distance(path, draw.states)
    quantities["occupancy_entropy"] = entropies
    if loss is not None:
        quantities["distance"] = distances
    return quantities


def _row(values: Floats, seconds: float) -> dict[str, float]:
    """Row of a quantity in the table."""
    if not np.isfinite(values).all():
        return dict.fromkeys(_COLUMNS, math.nan)
    bulk = float(effective_sample_size(values, "bulk"))
    return {
        "mean": float(values.mean()),
        "rhat": float(rhat(values)),
        "ess_bulk": bulk,
        "ess_tail": float(effective_sample_size(values, "tail")),
        "ess_per_second": bulk / seconds if seconds > 0 else math.nan,
    }


def _mean_rate(rates: Floats) -> float:
    known = rates[np.isfinite(rates)]
    return float(known.mean()) if known.size else math.nan


def _n_large(occupancies: Array) -> int:
    """Number of states with a hundredth of the steps or more."""
    return int((occupancies >= LARGE_STATE * occupancies.sum()).sum())


def _rise(values: Floats) -> float:
    """Difference of the means of the last and the first third."""
    third = max(len(values) // 3, 1)
    return float(values[-third:].mean() - values[:third].mean())


class Diagnosis:
    """A verdict on a fit in words, and a table of the mixing of its chains.

    The result of :meth:`~skihmm.HCRPHMM.diagnose`.  ``str(diagnosis)`` is the whole text.
    Nothing in it depends on how the states are numbered.

    Parameters
    ----------
    draws : PosteriorDraws
    reference : (int, int)
        Chain and draw whose labels are judged, and to which distances are measured.
    setting : Setting
        Parameters of the fit.
    ranks : ndarray of shape (n_chains, n), optional
        Ranks of some draws of every chain, nats, for the comparison of
        chains.  By default the log joint probability.

    Attributes
    ----------
    verdict : str
        The first sentence: whether the labels can be used, how firm they are, and whether
        the model fits the data.
    warnings : list of str
        Reasons not to use the labels yet, perhaps empty.
    findings : list of Finding
        Contradictions between model and data, with remedies.
    misfits : list of str
        Their sentences.
    pieces : str
        "5 states are pieces of 2 regimes", of states with 1 % of the steps or more.  Empty if
        there are as many regimes.
    command : str
        Remedy as code, with its price if it is a fit: of the warnings, or of the first finding
        if there are no warnings or if states are pieces of something that moves; ``hmm.regimes_``
        if states are pieces and no other code helps.  Empty without advice.
    suggested_params : dict
        Parameters against the warnings, for ``hmm.set_params(**diagnosis.suggested_params)``.
    notes : list of str
        What else is known of the draws, checks that were not possible, and why.
    firm : float
        Share of the steps on which nine of ten draws, with matched states, have the state
        of the selected draw.  NaN without paths.
    score_error : float
        Monte Carlo error of the log likelihood of the data, nats per step.
    table : dict of dict of float
        For every quantity ``"mean"``, ``"rhat"``, ``"ess_bulk"``, ``"ess_tail"`` and
        ``"ess_per_second"`` (bulk, of CPU time after the burn-in).  NaN where undefined,
        as for a constant quantity.  Quantities: ``"lp"``, the log joint probability of
        states, table counts and data given the concentrations, in nats.  It sums over all
        seatings with equal table counts, ``draws_.lp`` has one seating.  ``"n_states"``.
        All free ``draws_.hyperparameters``, with ``"expected_dwell"`` (1 + kappa / omega)
        and ``"omega"`` for ``stay_prior``.  ``"occupancy_entropy"``, the entropy (nats)
        of the proportions of steps in the states.  With
        ``store_states=True``, ``"distance"``: variation of information (nats) between a
        draw and the selected draw, which separates partitions of equal probability and
        sizes.
    acceptance_rate : float
        Acceptance rate of the local proposals.
    split_merge_acceptance_rate : float
        Share of accepted split-merge trials.  NaN without trials.
    run_split_merge_acceptance_rate : float
        The same of split-merge trials of whole runs.
    chains : list of int
        Chains with at least half of the draws of the longest chain.
    n_draws : int
        Number of first draws of each chain, the length of the shortest chain.
    seconds : float
        CPU seconds of these draws.

    See Also
    --------
    rhat, effective_sample_size : The functions behind the table.

    Examples
    --------
    >>> from skihmm import HCRPHMM
    >>> from skihmm.datasets import make_repeating_sequence
    >>> X, _ = make_repeating_sequence(100)
    >>> hmm = HCRPHMM(n_burnin=20, n_draws=10, random_state=0).fit(X)
    >>> diagnosis = hmm.diagnose()
    >>> diagnosis.verdict
    'Do not use these labels yet.'
    >>> diagnosis.warnings
    ['There are only 10 draws per chain, too few to judge their labels.']
    >>> list(diagnosis.table["lp"])
    ['mean', 'rhat', 'ess_bulk', 'ess_tail', 'ess_per_second']
    """

    def __init__(
        self,
        draws: PosteriorDraws,
        reference: tuple[int, int],
        setting: Setting,
        ranks: Floats | None = None,
    ) -> None:
        for name, value, kind in (
            ("draws", draws, PosteriorDraws),
            ("setting", setting, Setting),
        ):
            if not isinstance(value, kind):
                raise TypeError(
                    f"{name} is of type {type(value).__name__}; expected a "
                    f"{kind.__name__}. HCRPHMM.diagnose() makes a Diagnosis of a fitted "
                    "model."
                )
        draws[reference]  # raises an error if there is no such draw
        lengths = draws.n_draws
        chains = np.flatnonzero(lengths >= max(1, _SHORT_CHAIN * lengths.max()))
        n_draws = int(lengths[chains].min())
        self.chains = [int(c) for c in chains]
        self.n_draws = n_draws
        self.seconds = float(np.nansum(draws.seconds[chains, :n_draws]))
        (
            self.acceptance_rate,
            self.split_merge_acceptance_rate,
            self.run_split_merge_acceptance_rate,
        ) = (_mean_rate(getattr(draws, name)[chains, :n_draws]) for name in RATES)
        values = _quantities(draws, chains, n_draws, reference)
        self.table = {name: _row(rows, self.seconds) for name, rows in values.items()}
        self.warnings: list[str] = []
        self.suggested_params: dict[str, object] = {}
        self.notes: list[str] = list(setting.misfits.notes)
        self.findings: list[Finding] = list(setting.misfits.findings)
        self.misfits = [str(finding) for finding in self.findings]
        self.pieces = setting.misfits.pieces
        self.firm = self.score_error = math.nan
        self._setting = setting
        # Where states overlap, the joint probability of a path prefers too few states.
        self._ranks = values["lp"] if ranks is None else ranks[chains]
        self._ranked = "log joint probability" if ranks is None else "rank"
        self._has_weight = draws.has_weight[chains]
        self._weights = self._draw_weights(draws)
        # Whether findings are printed.  Residuals of draws that are on their way, or in a worse
        # mode, carry little information on the model.
        self._shows_findings = True
        self._occupancies = [
            [occupancies_of(draws[c, d].transitions) for d in range(n_draws)] for c in self.chains
        ]
        self._judge(draws, reference)

    # ---- rules, in the order in which they are printed

    def _judge(self, draws: PosteriorDraws, reference: tuple[int, int]) -> None:
        are_enough = self.n_draws >= FEW_DRAWS
        if self._setting.n_samples < FEW_ROWS:
            n = self._setting.n_samples
            self._warn(f"There {'is' if n == 1 else 'are'} only {n} row{'s' * (n > 1)} of data.")
        if not are_enough:
            self._warn_of_few_draws()
        if draws.has_states:
            labels = DrawLabels(draws, self.chains, self.n_draws)
            self.firm = labels.firm_share(reference)
            if are_enough:
                self._judge_movement(labels)
                self._judge_chains(draws, labels, reference[0])
        self._judge_clusters()
        large = self._count_states(draws)
        if are_enough:
            self._judge_numbers(large)
            self._judge_score()
        self._judge_acceptance(draws)
        self._judge_occupancies()
        self._qualify_numbers()
        self._note_chains(draws)
        self._note_coarseness(draws[reference].transitions, large)

    def _warn_of_few_draws(self) -> None:
        n_wanted = _rounded_up(GOOD_ESS / len(self.chains))
        self._warn(
            f"There are only {self.n_draws} draws per chain, too few to judge their labels."
            if self.n_draws > 1
            else "There is one draw per chain, which says nothing about its labels.",
            n_draws=n_wanted,
        )

    def _judge_movement(self, labels: DrawLabels) -> None:
        """Warn of chains whose labels, and the score with them, still move."""
        moved, scores = labels.moved(), self._scores()
        # Chains make excursions to worse modes, which are no matter of the burn-in.
        moving = [
            i
            for i in np.flatnonzero(moved > APART).tolist()
            if scores is None or _rise(scores[i]) > LEAST_NOISE
        ]
        if not moving:
            return
        self._shows_findings = False
        self._warn(
            f"Labels of {self._names_of(moving)} are still moving: the first and the "
            f"last third of the draws differ on {percent(moved[moving].max())} more of the "
            "steps than draws of one third do, and the score rises.",
            **self._longer_burnin(),
        )

    def _judge_chains(self, draws: PosteriorDraws, labels: DrawLabels, selected: int) -> None:
        """Warn of chains with other labels than the chain of the selected draw."""
        home = self.chains.index(selected) if selected in self.chains else 0
        apart = labels.apart_from(home)
        others = np.flatnonzero(apart > APART).tolist()
        if not others:
            return
        names = self._names_of(others)
        text = (
            f"{names.capitalize()} ended in other labels than chain {self.chains[home]}, "
            f"on {percent(apart[others].max())} of the steps"
        )
        means = self._ranks.mean(axis=1)
        if np.isfinite(means).all() and stay_below(self._ranks)[others].all():
            gaps = np.sort(means.max() - means[others])
            by = " to ".join(dict.fromkeys(f"{gap:.1f}" for gap in gaps[[0, -1]]))
            text += f", with {self._ranked} {by} nats below the best chain's"
        weight = draws.chain_weights[[self.chains[i] for i in others]].sum()
        they = "they have" if others[1:] else "it has"
        share = f"{percent(weight)} of the" if self._has_weight[others].any() else "no"
        self._warn(f"{text}; {they} {share} weight. {_STUCK}", **self._freer_chains())

    def _judge_clusters(self) -> None:
        """Warn of clusters that, as states, explain the data better than the draws.

        Not where the noise, or what moves, has another shape: clusters may cut it into more
        convenient pieces than the draws do.
        """
        if self._setting.clusters is None:
            return
        gain, clusters = self._setting.clusters
        n = int(clusters.max()) + 1
        if self._setting.misfits.explain_clusters(n):
            return
        text = (
            f"{f'{n} clusters of k-means explain' if n > 1 else 'One state explains'} "
            f"the data better than any of these draws, by {gain:.0f} nats of rank: "
            "the chains are in a worse mode, as after a bad start or a short burn-in."
        )
        params: dict[str, object] = {"init": clusters.tolist() if n > 1 else "single"}
        if self._setting.looks_back:
            # Their chains leave such a start: slow coefficients follow levels, too.
            text += " Levels, rather than motion, are what a Gaussian describes."
            params = {"emission": "gaussian", "transitions": "persistent"}
        self._shows_findings = False
        self._warn(text, **params)

    def _count_states(self, draws: PosteriorDraws) -> NDArray[np.intp]:
        """Numbers of large states of all draws, (n_chains, n_draws), and their words."""
        large = np.array([[_n_large(n) for n in chain] for chain in self._occupancies])
        every = _shares(*n_states_distribution(draws))
        sizes, which = np.unique(large, return_inverse=True)
        shares = np.bincount(which.ravel(), self._weights) / self._weights.sum()
        of_large = _shares(sizes, shares)
        self._numbers = f"Number of states: {every}"
        if of_large != every:
            self._numbers += f"; with 1 % of the steps or more: {of_large}"
        return large

    def _judge_numbers(self, large: NDArray[np.intp]) -> None:
        """Warn of chains that are sure of different numbers of large states."""
        modes = [int(np.bincount(row).argmax()) for row in large]
        if len(set(modes)) == 1:
            return
        numbers = _listed([str(m) for m in modes])
        self._numbers += f". Chains differ: {numbers}"
        pairs = zip(modes, large, strict=True)
        if len({m for m, row in pairs if (row == m).mean() >= SURE}) < 2:
            return
        if not self.warnings:
            self._warn(
                "Chains are sure of different numbers of states with 1 % of the steps or "
                f"more: {numbers}. {_STUCK}",
                **self._freer_chains(),
            )

    def _judge_score(self) -> None:
        """Warn of a large error of the score, estimated from batches of every chain."""
        scores = self._scores()
        if scores is None:
            return
        n_steps = self._setting.n_samples
        large, means = max(LARGE_ERROR * n_steps, LEAST_NOISE), scores.mean(axis=1)
        low = np.flatnonzero(means.max() - means > large).tolist()
        if low and not self.warnings:
            gap = (means.max() - means[low].min()) / n_steps
            self._warn(
                f"{self._names_of(low).capitalize()} scored up to {gap:.2g} nats per "
                f"step below the best one. {_STUCK}",
                **self._freer_chains(),
            )
        heavy = scores[self._has_weight] if self._has_weight.any() else scores
        batches = [batch.mean() for row in heavy for batch in np.array_split(row, _N_BATCHES)]
        error = float(np.std(batches, ddof=1)) / math.sqrt(len(batches))
        self.score_error = error / n_steps
        if error > large:
            self._shows_findings = False
            self._warn(
                "The score has not settled: its Monte Carlo error is "
                f"{self.score_error:.2g} nats per step.",
                **self._longer_burnin(),
            )

    def _judge_acceptance(self, draws: PosteriorDraws) -> None:
        if not self.acceptance_rate < LOW_ACCEPTANCE:
            return
        text = f"Only {100 * self.acceptance_rate:.1f} % of the proposals were accepted."
        params = self._setting.sampler.get_params(deep=False)
        size = min(params.get("block_size", 1) or DEFAULT_BLOCK, self._setting.n_samples)
        shorter = max(size // 4, 1)
        if size > 1:
            changed = {"sampler__block_size": shorter} if shorter < size else {}
            self._warn(text, **changed)
        elif params.get("proposal") == "rcd":
            self._warn(text, sampler__proposal="exact")
        else:
            self._warn(text, sampler="auto")

    def _judge_occupancies(self) -> None:
        """Warn of many states of a single step."""
        occupancies = [counts for chain in self._occupancies for counts in chain]
        n_single = np.mean([(counts == 1).sum() for counts in occupancies])
        n_states = np.mean([(counts > 0).sum() for counts in occupancies])
        n_steps = occupancies[0].sum()
        if n_single < max(_MOST * n_states, _SINGLE_STEPS * n_steps, _FEW_SINGLE):
            return
        remedy = (
            'Try init="kmeans" too, columns in comparable units (StandardScaler), or '
            'another emission, such as "diagonal_gaussian" for many columns.'
            if self._setting.has_numbers
            else "Try fewer symbols too, or other values of the hyperparameters."
        )
        self._warn(
            f"Most states are single steps: {n_single:.0f} of {n_states:.0f} in the "
            "mean. A prior or a start that does not suit the data cuts them into pieces. "
            f"{remedy}",
            **({} if "init" in self.suggested_params else {"init": "single"}),
        )

    def _qualify_numbers(self) -> None:
        """Say how few independent draws the probabilities of the numbers of states have.

        Draws of concentrations are in the table alone: labels and scores do not need them.
        """
        n_known = min(self.table["n_states"]["ess_bulk"], self.n_draws * len(self.chains))
        if n_known < LOW_ESS and not (self.warnings or self.misfits):
            rough = f" (rough: {n_known:.0f} independent draws):"
            self._numbers = self._numbers.replace(":", rough, 1)

    def _note_chains(self, draws: PosteriorDraws) -> None:
        n_chains, has_draws = len(self.chains), draws.n_draws > 0
        left_out = [c for c in range(len(draws)) if c not in self.chains]
        if left_out:
            self.notes.append(f"Left out, because of few draws: {_chain_list(left_out)}.")
        light = np.flatnonzero(~draws.has_weight & has_draws).tolist()
        if light:
            self.notes.append(
                f"{_chain_list(light).capitalize()} {'have' if light[1:] else 'has'} no "
                f"weight in estimates, scores and predictions, by {self._ranked} "
                "(draws_.chain_weights)."
            )
        if n_chains == 1 and not (self.warnings or self.misfits):
            self.notes.append(
                "One chain cannot show whether others end in other labels: n_chains=4, "
                f"{self._price({'n_chains': 4})}."
            )
        elif n_chains > 1 and self._setting.shares_start:
            params = {"init": "random", **self._longer_burnin()}
            self.notes.append(
                "All chains began at the same states, so that they agree says less. A check: "
                f"hmm.set_params({keyword_text(params)}).fit({self._setting.fit_arguments}), "
                f"{self._price(params)}, where every chain begins elsewhere. Of two fits with "
                "other labels, keep the fit with the larger draws_.log_rank."
            )
        if "distance" not in self.table:
            self.notes.append(
                "Labels of draws and chains were not compared: the draws have no paths. "
                "Set store_states=True."
            )
        if self.n_draws >= FEW_DRAWS and all(
            math.isnan(row["ess_bulk"]) for row in self.table.values()
        ):
            self.notes.append("All draws are equal.")

    def _note_coarseness(self, selected: TransitionsRecord, large: NDArray[np.intp]) -> None:
        """Note a selected draw with fewer, or more, large states than most draws."""
        n_selected = _n_large(occupancies_of(selected))
        for word, differ, other, how in (
            ("fewer", large > n_selected, "binder", "finer"),
            ("more", large < n_selected, "vi", "coarser"),
        ):
            if np.average(differ.ravel(), weights=self._weights) < FIRM:
                continue
            mean = np.average(large.ravel(), weights=self._weights)
            text = (
                f"The selected draw has {word} large states ({n_selected}) than nine of "
                f"ten draws ({mean:.1f} on average)"
            )
            if self._setting.point_estimate != other:
                text += f': point_estimate="{other}" is {how}'
            self.notes.append(f"{text}.")

    # ---- common to rules

    def _scores(self) -> Floats | None:
        """Log likelihood of the data by some draws of the chains that are judged."""
        if self._setting.scores is None:
            return None
        scores = self._setting.scores[self.chains]
        return scores if np.isfinite(scores).all() else None

    def _draw_weights(self, draws: PosteriorDraws) -> Floats:
        """Weights of the draws that are judged, chain after chain."""
        first = draws.n_draws.cumsum() - draws.n_draws
        weights = np.repeat(draws.weights()[first[self.chains]], self.n_draws)
        return weights if weights.any() else np.ones(len(weights))

    def _names_of(self, places: list[int]) -> str:
        return _chain_list([self.chains[i] for i in places])

    def _warn(self, text: str, **params: object) -> None:
        self.warnings.append(text)
        self.suggested_params.update(params)
        if "sampler" in self.suggested_params:
            for name in [n for n in self.suggested_params if n.startswith("sampler__")]:
                del self.suggested_params[name]

    def _longer_burnin(self) -> dict[str, object]:
        """Twice all sweeps so far."""
        n_sweeps = self._setting.n_burnin + self._setting.thin * self.n_draws
        return {"n_burnin": _rounded_up(2 * n_sweeps)}

    def _freer_chains(self) -> dict[str, object]:
        """More sweeps, and split-merge trials, which lead where local moves do not."""
        params = self._setting.sampler.get_params(deep=False)
        if "split_merge_rate" not in params:
            return {"sampler": "auto", **self._longer_burnin()}
        rate = params["split_merge_rate"]
        for larger in _SPLIT_MERGE_RATES:
            if larger > rate:
                return {"sampler__split_merge_rate": larger, **self._longer_burnin()}
        return self._longer_burnin()

    def _price(self, params: Mapping[str, object]) -> str:
        """CPU time of a fit with other parameters, at this fit's speed."""
        setting = self._setting
        now: dict[str, Any] = {
            "n_chains": len(self.chains),
            "n_burnin": setting.n_burnin,
            "thin": setting.thin,
            "n_draws": self.n_draws,
        }
        new: dict[str, Any] = {**now, **params}

        def n_sweeps(fit: dict[str, Any]) -> int:
            return int(fit["n_chains"] * (fit["n_burnin"] + fit["thin"] * fit["n_draws"]))

        sweep = self.seconds / (now["n_chains"] * now["thin"] * now["n_draws"])
        starts = max(setting.seconds - sweep * n_sweeps(now), 0.0)
        starts *= new["n_chains"] / now["n_chains"]
        new_effort, effort = (effort_of(max(fit["n_burnin"], LEAST_SWEEPS)) for fit in (new, now))
        starts *= new_effort / effort
        seconds = sweep * n_sweeps(new) + starts
        shown = f"{seconds:.2g}" if seconds < 10 else f"{_rounded_up(seconds)}"
        return f"some {shown} CPU seconds"

    # ---- words

    @property
    def command(self) -> str:
        """What the first finding asks for, or advice against the warnings, as code."""
        params: Mapping[str, object] = self.suggested_params
        for finding in self.findings[:1]:
            # Chains do not agree on pieces of something that moves, however long they are.
            if not self.warnings or (finding.makes_states and self._shows_findings):
                if finding.call and not finding.params:
                    return finding.call
                params = finding.params or ({} if not self.warnings else params)
        if not params:
            # Labels that need no other fit, where a finding has no call.
            is_free = not self.warnings and self._setting.misfits.are_regimes_enough
            return "hmm.regimes_" if is_free else ""
        words = keyword_text(params)
        if not isinstance(params.get("init", ""), str):
            words = "**hmm.diagnose().suggested_params"
        arguments = self._setting.fit_arguments
        return f"hmm.set_params({words}).fit({arguments})  # {self._price(params)}"

    @property
    def verdict(self) -> str:
        """Whether the labels can be used, in a sentence."""
        if self.warnings:
            return "Do not use these labels yet."
        wrong = "the model does not fit the data"
        if math.isnan(self.firm):
            return f"Labels of draws were not compared{f', and {wrong}' if self.findings else ''}."
        if self.firm >= FIRM:
            how, joint = ("agree" if self.findings else "are reliable"), "but"
        else:
            how, joint = f"are uncertain{' in part' if self.firm >= _HALF else ''}", "and"
        how += " within this chain" if len(self.chains) == 1 else ""
        share = f"on {percent(self.firm)} of the steps, at least nine of ten posterior draws"
        if self.findings:
            return f"Labels {how} ({share} give the same state), {joint} {wrong}."
        return f"Labels {how}: {share} give the same state."

    def _parts(self) -> list[tuple[str, list[str]]]:
        """Paragraphs of the text below the verdict: a title, or none, and its points."""
        readings = [f"{self._numbers}."]
        shown, held_back = self.misfits, []
        if shown and not self._shows_findings:
            n = f"{len(shown)} finding{'s' * (len(shown) > 1)}"
            held_back = [f"{n} held back until the chains settle (hmm.diagnose().findings)."]
            shown = []
        if not math.isnan(self.score_error):
            error = f"{self.score_error:.1g}"
            readings.append(f"Score of these data: good to {error} nats per step.")
        if self.firm < FIRM and not (self.warnings or self.misfits):
            words = 'Probabilities of the states: hmm.predict_proba(X, draws="all").'
            readings.insert(0, words)
        return [
            ("How the model is wrong:", shown),
            ("", readings),
            ("Notes:", [*held_back, *self.notes]),
            ("Data:", list(self._setting.data_notes)),
        ]

    def _head(self) -> list[str]:
        """The verdict, and whether states are pieces; labels with warnings are not used."""
        pieces = self.pieces.split(".")[0] if self.warnings else self.pieces
        return [self.verdict, *([f"{pieces}."] if pieces else [])]

    @property
    def _before(self) -> str:
        """What comes before longer runs: chains rarely agree on pieces of what moves."""
        for finding in self.findings[:1]:
            if self.warnings and finding.makes_states and self._shows_findings:
                return f"Before longer runs: {finding.remedy}."
        return ""

    def _run(self) -> str:
        n, d = len(self.chains), self.n_draws
        seconds = self._setting.seconds or self.seconds
        return (
            f"({n} chain{'s' * (n > 1)}, {d} draw{'s' * (d > 1)} each, "
            f"{seconds:.3g} CPU seconds; R-hat and effective draws: .table)"
        )

    def __repr__(self) -> str:
        lines = [*map(_wrapped, self._head()), *map(_bullet, self.warnings)]
        lines += [_wrapped(self._before)] * bool(self._before)
        if self.command:
            # Not wrapped, to be copied.
            lines.append(f"What to do: {self.command}")
        for title, points in self._parts():
            if title and points:
                lines.append(title)
            lines += map(_bullet if title else _wrapped, points)
        return "\n".join([*lines, self._run()])

    def _repr_html_(self) -> str:
        def listed(points: Sequence[str]) -> str:
            return "".join(f"<li>{html.escape(point)}</li>" for point in points)

        verdict, *more = map(html.escape, self._head())
        parts = [f"<p><b>{verdict}</b></p>", *(f"<p>{line}</p>" for line in more)]
        if self.warnings:
            parts.append(f"<ul>{listed(self.warnings)}</ul>")
        if self._before:
            parts.append(f"<p>{html.escape(self._before)}</p>")
        if self.command:
            parts.append(f"<p>What to do:</p><pre>{html.escape(self.command)}</pre>")
        for title, points in self._parts():
            if title and points:
                parts.append(f"<p>{title}</p><ul>{listed(points)}</ul>")
            elif points:
                parts += [f"<p>{html.escape(point)}</p>" for point in points]
        rows = [["", *_COLUMNS]]
        for name, row in self.table.items():
            rows.append([name, *(f"{value:.4g}" for value in row.values())])
        table = html_table(rows, has_row_names=True)
        parts.append(f"<details><summary>{html.escape(self._run())}</summary>{table}</details>")
        return "\n".join(parts)
