"""Diagnosis of the mixing of a fit's chains, and of its model, in words."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from skihmm._decoding import stay_below
from skihmm._draws import PosteriorDraws
from skihmm._typing import Array, Floats
from skihmm.core._franchise import occupancies_of
from skihmm.core._sweep_info import RATES
from skihmm.metrics._convergence import (
    effective_sample_size,
    rank_normalised,
    rhat,
)
from skihmm.posterior._partitions import Loss
from skihmm.samplers import BaseSampler
from skihmm.samplers._blocked import default_block_size

# Names of the quantities of the table; concentrations keep theirs.
NAMES = {
    "lp": "log joint probability",
    "n_states": "number of states",
    "occupancy_entropy": "entropy of the occupancies",
    "distance": "distance to the selected draw",
}
_COLUMNS = ("mean", "rhat", "ess_bulk", "ess_tail", "ess_per_second")

# With fewer draws per chain mixing is not judged.
FEW_DRAWS = 20
# Limits of warnings.  Vehtari et al. recommend 1.01 and 400; of eight quantities of good
# runs with the latter, the worst one is often above the former.
HIGH_RHAT = 1.05
LOW_ESS = 100
# Acceptance rates: alone, and beside other warnings, of which they may be the cause.
LOW_ACCEPTANCE, MODERATE_ACCEPTANCE = 0.2, 0.5
# Effective sample size that the advice aims at.
GOOD_ESS = 400
# Chains with a smaller proportion of the longest one's draws are left out.
_SHORT_CHAIN = 0.5
# Standard errors between the means of two chains that disagree.
_SEPARATED = 5.0
# States of one step: proportion of all states, proportion of all steps, and number, since
# a few of them are outliers.
_MOST, _SINGLE_STEPS, _FEW_SINGLE = 0.5, 0.05, 5
# Share of the draws that have more states than the selected one, which is then coarse.
_MOST_FINER = 0.9
# Trends: difference of rising and falling pairs of a chain's blocks (of 28, at most two
# exceptions), and standard deviations of the sum over all chains.
_N_BLOCKS = 8
_TREND = 24
_JOINT_TREND = 3.3
# Instead of a run that is so many times longer, another sampler is advised.
_MUCH_LONGER = 8
# Trials per sweep to advise, as measured in docs/samplers.md.
_SPLIT_MERGE_RATES = (2, 13)


def _rounded_up(value: float) -> int:
    """Round up to two digits."""
    unit = 10 ** max(0, math.floor(math.log10(max(value, 1))) - 1)
    return math.ceil(round(value / unit, 9)) * unit


def _listed(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)


def _bullet(point: str) -> str:
    return textwrap.fill(point, 88, initial_indent="* ", subsequent_indent="  ")


def _chain_list(chains: list[int]) -> str:
    if len(chains) == 1:
        return f"chain {chains[0]}"
    return f"chains {_listed([str(c) for c in chains])}"


@dataclass(frozen=True)
class Setting:
    """Parameters of a fit that the advice may change.

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
    misfits : sequence of str, default=()
        What residuals say about the model.
    """

    sampler: BaseSampler
    n_burnin: int
    thin: int
    n_samples: int
    shares_start: bool
    has_numbers: bool = True
    data_notes: Sequence[str] = ()
    point_estimate: str = "vi"
    misfits: Sequence[str] = ()


def _entropy(counts: Array) -> float:
    shares = counts[counts > 0] / counts.sum()
    return float(-np.sum(shares * np.log(shares)))


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
    every = [draws[int(c), d] for c in chains for d in range(n_draws)]
    path = draws[reference].states
    loss = None if path is None else Loss("vi", len(path))
    entropies = np.empty((len(chains), n_draws))
    distances = np.empty((len(chains), n_draws))
    for c, d in np.ndindex(entropies.shape):
        draw = every[c * n_draws + d]
        entropies[c, d] = _entropy(occupancies_of(draw.transitions))
        if loss is None or path is None or draw.states is None:
            loss = None  # warm_start may have changed store_states
        else:
            distances[c, d] = loss.distance(path, draw.states)
    quantities["occupancy_entropy"] = entropies
    if loss is not None:
        quantities["distance"] = distances
    return quantities


def _row(values: Floats, seconds: float) -> dict[str, float]:
    """Row of one quantity in the table."""
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


def _are_separated(values: Floats) -> bool:
    """Whether means of two chains differ significantly."""
    scores = rank_normalised(values)
    means = scores.mean(axis=1)
    variances = []
    for chain in scores:
        worth = effective_sample_size(chain[None], "mean")
        variances.append(0.0 if math.isnan(worth) else float(np.var(chain)) / worth)
    return any(
        (means[a] - means[b]) ** 2 > _SEPARATED**2 * (variances[a] + variances[b])
        for a, b in combinations(range(len(values)), 2)
    )


def _trends(values: Floats) -> tuple[list[int], list[int]]:
    """Chains that rise and chains that fall from block to block, by Kendall's count."""
    blocks = np.array_split(values, _N_BLOCKS, axis=1)
    means = np.stack([block.mean(axis=1) for block in blocks], axis=1)
    counts = np.zeros(len(values))
    for a, b in combinations(range(_N_BLOCKS), 2):
        counts += np.sign(means[:, b] - means[:, a])
    rising = np.flatnonzero(counts >= _TREND).tolist()
    falling = np.flatnonzero(counts <= -_TREND).tolist()
    if not (rising or falling):
        variance = len(values) * _N_BLOCKS * (_N_BLOCKS - 1) * (2 * _N_BLOCKS + 5) / 18
        joint = counts.sum() / math.sqrt(variance)
        if joint > _JOINT_TREND:
            rising = list(range(len(values)))
        elif joint < -_JOINT_TREND:
            falling = list(range(len(values)))
    return rising, falling


def _mean_rate(rates: Floats) -> float:
    known = rates[np.isfinite(rates)]
    return float(known.mean()) if known.size else math.nan


class Diagnosis:
    """Mixing of the chains of a fit: a table, and a verdict in words.

    The result of :meth:`~skihmm.HCRPHMM.diagnose`; ``str`` of it is the whole text.  No
    quantity depends on the labels of the states.

    Parameters
    ----------
    draws : PosteriorDraws
    reference : (int, int)
        Chain and draw to which distances are measured.
    setting : Setting
        Parameters of the fit.
    ranks : ndarray of shape (n_chains, n), optional
        Evidence of the data by some draws of every chain, nats, by which chains are
        compared; by default the log joint probability.

    Attributes
    ----------
    table : dict of dict of float
        The printed table: for every quantity ``"mean"``, ``"rhat"``, ``"ess_bulk"``,
        ``"ess_tail"`` and ``"ess_per_second"`` (bulk, of CPU time after the burn-in); NaN
        where undefined, as for a constant quantity.  Quantities: ``"lp"``, the log joint
        probability of states, table counts and data given the concentrations (nats;
        summed over all seatings with these table counts, whereas ``draws_.lp`` is that of
        one seating); ``"n_states"``; ``"alpha"``, ``"gamma"``, ``"emission_alpha"`` and
        the other ``draws_.hyperparameters`` unless they are fixed, of ``stay_prior``
        ``"expected_dwell"`` (min_dwell (1 + kappa / omega)) and ``"omega"``;
        ``"occupancy_entropy"``, the entropy (nats) of the proportions of steps in the
        states; and, with ``store_states=True``, ``"distance"``: variation of information
        (nats) between the states of a draw and those of the selected one, which separates
        partitions that are equal in all other quantities.
    warnings : list of str
        Problems; empty if there are none.
    advice : list of str
        Changes to make, if there are warnings.
    suggested_params : dict
        The same for ``hmm.set_params(**diagnosis.suggested_params)``.
    notes : list of str
        Checks that were not possible, and why, and how coarse the selected draw is.
    misfits : list of str
        How the model is wrong, if it is: what the residuals of the data show, and what to
        try.
    acceptance_rate : float
        Acceptance rate of the local proposals.
    split_merge_acceptance_rate : float
        The same of split-merge trials; NaN if there were none.
    run_split_merge_acceptance_rate : float
        The same of split-merge trials of whole runs.
    chains : list of int
        Chains in the table: those with at least half as many draws as the longest.
    n_draws : int
        Number of draws of each chain: the first ones, as many as in the shortest chain.
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
    >>> diagnosis.warnings
    ['There are only 10 draws per chain, too few to judge how they mix.']
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
        self.advice: list[str] = []
        self.suggested_params: dict[str, object] = {}
        self.notes: list[str] = []
        self.misfits = list(setting.misfits)
        # Where states overlap, the joint probability of a path prefers too few states.
        self._ranks = values["lp"] if ranks is None else ranks[chains]
        self._ranked = "log joint probability" if ranks is None else "evidence"
        self._setting = setting
        self._are_only_few = False

        if n_draws < FEW_DRAWS:
            self.warnings.append(
                f"There are only {n_draws} draws per chain, too few to judge how they "
                "mix."
                if n_draws > 1
                else "There is one draw per chain: nothing is known about how they mix."
            )
            n_wanted = _rounded_up(GOOD_ESS / len(chains))
            self._advise(f"n_draws={n_wanted} (now {n_draws}).", n_draws=n_wanted)
        else:
            self._judge_mixing(values)
        self._judge_weights(draws)
        self._judge_acceptance(draws)
        self._judge_occupancies(draws)
        self._take_notes(draws)
        self._note_coarseness(draws, draws[reference].n_states)

    # ---- warnings

    def _judge_mixing(self, values: dict[str, Floats]) -> None:
        suspects = [name for name, row in self.table.items() if row["rhat"] > HIGH_RHAT]
        starts_disagree = self._judge_starts(self._ranks)
        trend = False
        if "lp" in suspects:
            rising, falling = _trends(values["lp"])
            for chains, word in ((rising, "rising"), (falling, "falling")):
                if chains:
                    trend = True
                    self.warnings.append(
                        f"The log joint probability of "
                        f"{_chain_list([self.chains[c] for c in chains])} is still "
                        f"{word}: the burn-in was too short."
                    )
            if trend:
                self._advise_burnin()
        apart = [
            name
            for name in suspects
            if len(self.chains) > 1 and _are_separated(values[name])
        ]
        if apart:
            shown = "lp" in apart and not starts_disagree
            self._warn_of_disagreement(suspects, values, with_lp=shown)
        elif not (trend or starts_disagree):
            self._judge_sizes(suspects)

    def _judge_starts(self, ranks: Floats) -> bool:
        """Warn of chains that stay below the best one; return whether there are any."""
        if not np.isfinite(ranks).all():
            return False
        means = ranks.mean(axis=1)
        best = int(means.argmax())
        behind = np.flatnonzero(stay_below(ranks))
        if not len(behind):
            return False
        gaps = np.sort(means[best] - means[behind])[[0, -1]]
        by = " to ".join(dict.fromkeys(f"{gap:.1f}" for gap in gaps))
        self.warnings.append(
            f"Starts disagree: the {self._ranked} of "
            f"{_chain_list([self.chains[c] for c in behind])} stays {by} nats below that "
            f"of chain {self.chains[best]}, the best one. They are stuck in different "
            "modes."
        )
        self._advise(
            "More chains (n_chains) and fits with another init show whether there are "
            "better modes that these chains have not seen."
        )
        self._advise_burnin()
        return True

    def _judge_weights(self, draws: PosteriorDraws) -> None:
        """Warn of chains that are left out of estimates."""
        has_draws = draws.n_draws > 0
        light = np.flatnonzero(~draws.has_weight & has_draws).tolist()
        if light:
            heavy = np.flatnonzero(draws.has_weight & has_draws).tolist()
            self.warnings.append(
                f"Estimates, scores and predictions are those of {_chain_list(heavy)}, "
                f"whose {self._ranked} is higher; {_chain_list(light)} "
                f"{'have' if light[1:] else 'has'} no weight (draws_.chain_weights)."
            )

    def _judge_sizes(self, suspects: list[str]) -> None:
        """Warn of chains that agree but mix slowly."""
        known = {
            name: row["ess_bulk"]
            for name, row in self.table.items()
            if row["ess_bulk"] > 0
        }
        if not known:
            return
        worst = min(known, key=lambda name: known[name])
        self._are_only_few = not suspects
        points = []
        if known[worst] < LOW_ESS:
            points.append(
                f"The {len(self.chains) * self.n_draws} draws are worth only "
                f"{known[worst]:.0f} independent ones ({name_of(worst)})."
            )
        if suspects:
            points.append(f"Parts of the chains differ in {self._worst(suspects)}.")
        if points:
            self.warnings.append(" ".join(points))
            # A concentration that mixes slowly needs more sweeps, not other partitions.
            self._advise_longer_run(known[worst], is_partition=worst in NAMES)

    def _worst(self, names: list[str]) -> str:
        """Names of quantities, the largest R-hat first."""
        ordered = sorted(names, key=lambda name: -self.table[name]["rhat"])
        return _listed(
            [
                f"{name_of(name)} (R-hat {self.table[name]['rhat']:.2f})"
                for name in ordered
            ]
        )

    def _warn_of_disagreement(
        self,
        suspects: list[str],
        values: dict[str, Floats],
        with_lp: bool,
    ) -> None:
        text = f"Chains disagree about {self._worst(suspects)}"
        means = self._ranks.mean(axis=1)
        best, worst = int(means.argmax()), int(means.argmin())
        if with_lp:
            text += (
                f". The {self._ranked} of chain {self.chains[worst]} is "
                f"{means[best] - means[worst]:.1f} nats below that of chain "
                f"{self.chains[best]}"
            )
        if "distance" in suspects:
            low, high = np.sort(values["distance"].mean(axis=1))[[0, -1]]
            text += (
                f". They are in different partitions of the steps, {low:.2f} to "
                f"{high:.2f} nats from the selected draw in the mean"
            )
        self.warnings.append(f"{text}.")
        self._advise_sampler()
        self._advise_burnin()

    def _judge_acceptance(self, draws: PosteriorDraws) -> None:
        limit = MODERATE_ACCEPTANCE if self.warnings else LOW_ACCEPTANCE
        if not self.acceptance_rate < limit:
            return
        self._are_only_few = False
        self.warnings.append(
            f"Only {100 * self.acceptance_rate:.1f} % of the proposals were accepted."
        )
        params = self._setting.sampler.get_params(deep=False)
        size, n_stages = params.get("block_size", 1), draws.n_stages
        if size is None:
            size = default_block_size(n_stages)
        size = min(size, self._setting.n_samples)
        if size > 1:
            # Blocks have to be longer than the shortest dwell.
            shorter = max(size // 4, 1 if n_stages == 1 else n_stages + 1)
            if shorter < size:
                self._advise(
                    f"sampler__block_size={shorter} (now {size}): short blocks are "
                    "accepted more often.",
                    sampler__block_size=shorter,
                )
        elif params.get("proposal") == "rcd":
            self._advise(
                'sampler__proposal="exact", which rejects nothing.',
                sampler__proposal="exact",
            )
        else:
            self._advise(
                'sampler="auto", which is chosen by measurement.',
                sampler="auto",
            )

    def _judge_occupancies(self, draws: PosteriorDraws) -> None:
        """Warn of many states of a single step."""
        occupancies = [
            occupancies_of(draws[c, d].transitions)
            for c in self.chains
            for d in range(self.n_draws)
        ]
        n_single = np.mean([(counts == 1).sum() for counts in occupancies])
        n_states = np.mean([(counts > 0).sum() for counts in occupancies])
        n_steps = occupancies[0].sum()
        if n_single < max(_MOST * n_states, _SINGLE_STEPS * n_steps, _FEW_SINGLE):
            return
        self._are_only_few = False
        self.warnings.append(
            f"Most states are single steps: {n_single:.0f} of {n_states:.0f} in the "
            "mean. A prior or a start that does not suit the data cuts them into pieces."
        )
        if self._setting.has_numbers:
            self._advise(
                'Another start, init="single" or "kmeans", which begins with few states; '
                "columns in comparable units (StandardScaler); another emission, such as "
                '"diagonal_gaussian" for many columns, or other values of the '
                "hyperparameters that were set."
            )
        else:
            self._advise(
                'Another start, init="single", which begins with one state; fewer '
                "symbols, or other values of the hyperparameters that were set."
            )

    # ---- advice

    def _advise(self, text: str, **params: object) -> None:
        if text not in self.advice:
            self.advice.append(text)
            self.suggested_params.update(params)
        if "sampler" in self.suggested_params:
            for name in [n for n in self.suggested_params if n.startswith("sampler__")]:
                del self.suggested_params[name]

    def _advise_burnin(self) -> None:
        setting = self._setting
        n_sweeps = _rounded_up(2 * (setting.n_burnin + setting.thin * self.n_draws))
        self._advise(
            f"n_burnin={n_sweeps} (now {setting.n_burnin}): twice all sweeps so far.",
            n_burnin=n_sweeps,
        )

    def _advise_sampler(self) -> bool:
        """Advise another sampler; return whether there is one."""
        params = self._setting.sampler.get_params(deep=False)
        if "split_merge_rate" not in params:
            self._advise(
                'sampler="auto": its split-merge trials lead to partitions that local '
                "moves do not reach.",
                sampler="auto",
            )
            return True
        rate = params["split_merge_rate"]
        larger = [other for other in _SPLIT_MERGE_RATES if other > rate]
        if larger:
            self._advise(
                f"sampler__split_merge_rate={larger[0]} (now {rate:g}): split-merge "
                "trials lead to partitions that local moves do not reach.",
                sampler__split_merge_rate=larger[0],
            )
        return bool(larger)

    def _advise_longer_run(self, worth: float, is_partition: bool) -> None:
        """Advise enough sweeps for a good effective sample size, with few more draws."""
        n_chains, thin = len(self.chains), self._setting.thin
        factor = max(GOOD_ESS / worth, 1.0)
        if is_partition and factor > _MUCH_LONGER and self._advise_sampler():
            return  # the length of runs of that sampler is not known yet
        # Half of the draws may be lost to the remaining correlation.
        n_draws = max(self.n_draws, _rounded_up(2 * GOOD_ESS / n_chains))
        longer = math.ceil(factor * thin * self.n_draws / n_draws)
        if longer > thin:
            params = {"thin": _rounded_up(longer)}
            text = f"thin={params['thin']} (now {thin})"
            if n_draws > self.n_draws:
                params["n_draws"] = n_draws
                text += f" and n_draws={n_draws} (now {self.n_draws})"
        else:
            params = {"n_draws": _rounded_up(factor * self.n_draws)}
            text = f"n_draws={params['n_draws']} (now {self.n_draws})"
        times = f"{float(f'{factor:.2g}'):g} times the sweeps"
        self._advise(
            f"{text}: {times}, for an effective sample size of about {GOOD_ESS}.",
            **params,
        )

    def _take_notes(self, draws: PosteriorDraws) -> None:
        n_chains = len(self.chains)
        left_out = [c for c in range(len(draws)) if c not in self.chains]
        if left_out:
            self.notes.append(f"Left out, because of few draws: {_chain_list(left_out)}.")
        if n_chains == 1:
            self.notes.append(
                "One chain cannot show whether others would end in other modes: set "
                "n_chains=4."
            )
        elif self._setting.shares_start:
            self.notes.append(
                "All chains began at the same states, so that they agree says less; "
                'init="particle_filter" or "random" gives every chain its own.'
            )
        if "distance" not in self.table:
            self.notes.append(
                "Whether chains are in different partitions was not looked at: the draws "
                "have no paths. Set store_states=True."
            )
        if self.n_draws >= FEW_DRAWS and all(
            math.isnan(row["ess_bulk"]) for row in self.table.values()
        ):
            self.notes.append("All draws are equal.")

    def _note_coarseness(self, draws: PosteriorDraws, n_selected: int) -> None:
        """Note a selected draw with fewer states than most draws have."""
        n_states = draws.n_states[draws.n_states >= 0]
        more = np.average(n_states > n_selected, weights=draws.weights())
        is_coarse = draws.has_states and more >= _MOST_FINER
        if self._setting.point_estimate == "vi" and is_coarse:
            mean = np.average(n_states, weights=draws.weights())
            self.notes.append(
                f"The selected draw has {n_selected} state{'s' * (n_selected > 1)}, the "
                f"draws have {mean:.3g} on average: an estimate by the variation of "
                'information joins what is uncertain; point_estimate="binder" keeps more '
                "of it apart."
            )

    # ---- words

    def _verdict(self) -> str:
        if self.warnings:
            return (
                "Usable with care: fewer independent draws than it seems."
                if self._are_only_few
                else "Do not trust these draws yet."
            )
        ratios = [row["rhat"] for row in self.table.values() if row["rhat"] > 0]
        worths = [row["ess_bulk"] for row in self.table.values() if row["ess_bulk"] > 0]
        if not ratios:
            return "No sign of trouble."
        return (
            f"No sign of trouble: R-hat at most {max(ratios):.2f}, effective sample size "
            f"at least {min(worths):.0f}."
        )

    def _table_lines(self) -> list[str]:
        # Rows have the keys of the table as names.
        width = max(map(len, self.table))
        lines = [
            " " * width + "".join(f"{key:>{max(len(key) + 3, 11)}}" for key in _COLUMNS)
        ]
        for name, row in self.table.items():
            cells = [f"{row['mean']:.5g}", f"{row['rhat']:.2f}"]
            cells += [f"{row[key]:.0f}" for key in _COLUMNS[2:4]]
            cells.append(f"{row['ess_per_second']:.3g}")
            lines.append(f"{name:<{width}}")
            for key, cell in zip(_COLUMNS, cells, strict=True):
                lines[-1] += f"{'-' if cell == 'nan' else cell:>{max(len(key) + 3, 11)}}"
        return lines

    def __repr__(self) -> str:
        lines = [self._verdict()]
        for title, points in (
            ("", self.warnings),
            ("What to change:", self.advice),
            ("Notes:", self.notes),
            ("Data:", self._setting.data_notes),
        ):
            if title and points:
                lines.append(title)
            lines += map(_bullet, points)
        lines += ["", *self._table_lines(), ""]
        n = len(self.chains)
        moves = "the local moves", "the split-merge trials", "those of whole runs"
        rates = [
            f"{100 * rate:{'.1f' if name == RATES[0] else '.2g'}} % of {kind}"
            for name, kind in zip(RATES, moves, strict=True)
            if not math.isnan(rate := getattr(self, name))
        ]
        accepted = f" Accepted: {', '.join(rates)}." if rates else ""
        lines.append(
            f"{n} chain{'s' * (n > 1)}, {self.n_draws} draw{'s' * (self.n_draws > 1)} "
            f"each, {self.seconds:.3g} CPU seconds after the burn-in.{accepted}"
        )
        lines += ["", "How the model is wrong:"] if self.misfits else []
        lines += map(_bullet, self.misfits)
        return "\n".join(lines)
