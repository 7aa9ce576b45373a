"""
Trials, their files, tables and figures for the three reproduce_*.py scripts.

Every row of a table is a sampler with a number of split-merge trials per sweep; every
trial is one chain with its own seed.  Trials get equal CPU time for sampling, without the
time of measurements and files.  Samples are due at even intervals of that time.  A sample
that is due during a sweep has the state before the sweep, so that a sampler whose sweep
takes longer than an interval gives the same sample several times, as in the paper.

A trial's file is renewed during the trial, and a run that was killed resumes from its
files.  With ``--clock sweeps`` budgets and intervals are counted in sweeps: then a run is
reproducible to the last digit (except CPU times), killed or not.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone

from skihmm import __version__
from skihmm._data.sequences import Sequences
from skihmm._fitting.chain import ModelSettings, begin_chain, resume_chain
from skihmm._fitting.checkpoint import load, save
from skihmm.metrics import autocorrelation_time
from skihmm.samplers import (
    BlockedBeam,
    BlockedGibbs,
    DirectAssignmentGibbs,
    StepwiseGibbs,
    StepwiseSlice,
    StickBreakingBeam,
    StickBreakingGibbs,
    SweepInfo,
)
from skihmm.transitions import HCRPTransitions

KIND = "trial of a reproduction"
N_SAMPLES = 200  # per trial


@dataclass(frozen=True)
class Row:
    """One row of a table: the paper's name, the sampler, trials per sweep."""

    name: str
    sampler: Any
    split_merge_rate: int = 0

    @property
    def title(self) -> str:
        rate = self.split_merge_rate
        return f"{self.name} +SM={rate}" if rate else self.name

    @property
    def recipe(self) -> Any:
        recipe = clone(self.sampler)
        if self.split_merge_rate:
            recipe.set_params(split_merge_rate=self.split_merge_rate)
        return recipe


def make_rows(rates, block_size):
    """The paper's rows."""
    samplers = {
        "SGibbs": StepwiseGibbs(proposal="rcd"),
        "SSlice": StepwiseSlice(),
        "BGibbs": BlockedGibbs(block_size),
        "Beam": BlockedBeam(block_size),
    }
    rows = [Row(name, sampler, n) for name, sampler in samplers.items() for n in rates]
    return [
        *rows,
        Row("HDP SGibbs", DirectAssignmentGibbs()),
        Row("SB SGibbs", StickBreakingGibbs()),
        Row("SB Beam", StickBreakingBeam()),
    ]


@dataclass(frozen=True)
class Study:
    """One data set with its samplers, measurements and table columns.

    Attributes
    ----------
    name : str
    rows : list of Row
    n_seeds : int
        Default number of trials per row.
    budget : float
        Default CPU seconds of a trial.
    make_data : callable
        ``make_data(seed)`` gives ``(X, emission, extra)``, the emission unfitted.
    measure : callable
        ``measure(extra, draw, index, last)`` returns the measurements of sample `index`
        by name; `last` is the index of the previously measured sample.
    summarise : callable
        ``summarise(times, samples, extra)`` returns a trial's results by name.
    columns : list of (title, key, digits)
        Columns of the table, after the row's name.
    paper : dict
        Printed values of the paper, ``{(row title, key): number}``.
    """

    name: str
    rows: list
    n_seeds: int
    budget: float
    make_data: Any
    measure: Any
    summarise: Any
    columns: list
    paper: dict


class Trial:
    """One chain, its samples so far and its file."""

    def __init__(self, study, row, seed, budget, clock, folder, save_every):
        self.study, self.row, self.seed = study, row, seed
        self.budget, self.clock, self.save_every = budget, clock, save_every
        name = row.title.replace(" ", "_").replace("+", "").replace("=", "")
        self.path = Path(folder, f"{name}-{seed}.npz")
        X, emission, self.extra = study.make_data(seed)
        emission.fit(X)
        self.sequences = Sequences(emission.encode_values(X), np.zeros(1, dtype=np.intp))
        self.settings = ModelSettings(
            row.recipe, emission, HCRPTransitions(), "particle_filter", 100
        )
        self.progress = {
            "used": 0.0,  # on the clock
            "tally": SweepInfo(),  # sum over all sweeps
            "n_sweeps": 0,
            "times": [],
            "samples": [],
            "last": 0,  # index of the last measured sample
        }
        self.record = None

    @property
    def setup(self):
        """Description of the trial, which a file must match to be resumed."""
        return {
            "version": __version__,
            "study": self.study.name,
            "data": hashlib.sha256(self.sequences.codes.tobytes()).hexdigest(),
            "n_samples": N_SAMPLES,
            "sampler": type(self.settings.sampler).__name__,
            "parameters": self.settings.sampler.get_params(),
            "seed": self.seed,
            "budget": self.budget,
            "clock": self.clock,
        }

    def resume(self):
        """Load the file, if there is one; return whether the trial is complete."""
        if not self.path.exists():
            return False
        content = load(self.path, KIND)
        if content["setup"] != self.setup:
            raise SystemExit(
                f"{self.path} belongs to another set-up: {content['setup']}, not "
                f"{self.setup}.  Choose another --folder or delete it."
            )
        self.progress, self.record = content["progress"], content["record"]
        self.progress["tally"] = SweepInfo(*self.progress["tally"])
        return content["complete"]

    def save(self, chain, complete):
        save(
            self.path,
            KIND,
            {
                "setup": self.setup,
                "progress": self.progress,
                "record": chain.record(),
                "complete": complete,
            },
        )

    def run(self):
        """Sample until the budget is used and return the trial's results."""
        if not self.resume():
            self._sample()
        return self.summary()

    def _sample(self):
        p = self.progress
        if self.record is None:
            seed = np.random.SeedSequence(self.seed)
            chain = begin_chain(self.sequences, self.settings, seed)
        else:
            chain = resume_chain(self.sequences, self.settings, self.record)
        interval = self.budget / N_SAMPLES
        saved = time.monotonic()
        if not p["samples"]:
            self._take_sample(chain)
        while len(p["samples"]) < N_SAMPLES:
            info = next(chain)
            p["tally"] = p["tally"].plus(info)
            p["used"] += info.seconds if self.clock == "cpu" else 1.0
            p["n_sweeps"] += 1
            n_due = min(int(p["used"] / interval), N_SAMPLES) - len(p["samples"])
            if n_due <= 0:
                continue
            # Samples that were due during the sweep have the state before it.
            is_late = p["used"] > self.budget + interval
            n_held = n_due if is_late else n_due - 1
            p["samples"] += [p["samples"][-1]] * n_held
            p["times"] += [p["tally"].seconds] * n_held
            if not is_late:
                self._take_sample(chain)
            if time.monotonic() - saved >= self.save_every:
                self.save(chain, complete=False)
                saved = time.monotonic()
        self.save(chain, complete=True)

    def _take_sample(self, chain):
        # A draw and a record pack the chain alike, so that the chain does not depend on
        # the times at which files are written.
        p, draw = self.progress, chain.draw(self.progress["tally"])
        index = len(p["samples"])
        measured = self.study.measure(self.extra, draw, index, p["last"])
        p["last"] = index
        p["samples"].append({"n_states": draw.n_states, "lp": draw.lp, **measured})
        p["times"].append(p["tally"].seconds)

    def summary(self):
        p = self.progress
        late = p["samples"][N_SAMPLES // 2 :]
        tally = p["tally"]
        lp = [sample["lp"] for sample in late]
        return {
            "row": self.row.title,
            "seed": self.seed,
            "sweeps": p["n_sweeps"],
            "seconds": tally.seconds,
            "seconds_per_sweep": tally.seconds / p["n_sweeps"],
            "n_states": float(np.mean([sample["n_states"] for sample in late])),
            "lp": float(np.mean(lp)),
            "act": autocorrelation_time(lp, "auto") * tally.seconds / N_SAMPLES,
            "acceptance": tally.acceptance_rate,
            "sm_acceptance": tally.split_merge_acceptance_rate,
            **self.study.summarise(np.array(p["times"]), p["samples"], self.extra),
        }


def run_trial(*args):
    """Run one trial in a worker and return its results."""
    return Trial(*args).run()


# ---- tables ----------------------------------------------------------------------------


def mean_and_error(values):
    """Mean and standard error over the trials with a finite value."""
    values = np.array([value for value in values if np.isfinite(value)])
    if not len(values):
        return float("nan"), float("nan")
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else float("nan")
    return float(values.mean()), float(error)


def write_csv(path, results):
    """Write one line per trial, without entries that are lists."""
    keys = [key for key, value in results[0].items() if not isinstance(value, list)]
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, keys, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(results)


def table(study, results):
    """Markdown table: mean +- standard error, and the paper's value in brackets."""
    titles = [title for title, _, _ in study.columns]
    lines = [
        "| sampler | trials | " + " | ".join(titles) + " |",
        "|---" * (len(titles) + 2) + "|",
    ]
    for row in study.rows:
        trials = [result for result in results if result["row"] == row.title]
        if not trials:
            continue
        cells = []
        for _, key, digits in study.columns:
            mean, error = mean_and_error([trial[key] for trial in trials])
            cell = "-" if np.isnan(mean) else f"{mean:.{digits}f}"
            if not np.isnan(error):
                cell += f" ± {error:.{digits}f}"
            n_finite = sum(np.isfinite(trial[key]) for trial in trials)
            if 0 < n_finite < len(trials):
                cell += f" in {n_finite}"
            if (row.title, key) in study.paper:
                cell += f" ({study.paper[row.title, key]})"
            cells.append(cell)
        lines.append(f"| {row.title} | {len(trials)} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


# ---- figures ---------------------------------------------------------------------------


def bar_figure(path, study, results, key, label):
    """Mean over trials by sampler, with standard errors."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    titles = [row.title for row in study.rows]
    cells = [mean_and_error([r[key] for r in results if r["row"] == title]) for title in titles]
    figure, axis = plt.subplots(figsize=(8, 4.5), layout="constrained")
    means, errors = np.array(cells).T
    axis.barh(titles, means, xerr=np.nan_to_num(errors), color="#4477aa", capsize=3)
    axis.invert_yaxis()
    axis.set_xlabel(label)
    axis.set_title(study.name)
    low = np.nanmin(means)
    axis.set_xlim(left=max(0.0, low - 0.5 * (np.nanmax(means) - low) - 0.05))
    figure.savefig(path, dpi=120)
    plt.close(figure)


def histogram_figure(path, study, results, key, label):
    """Histogram over trials, one panel per sampler."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    values = [result[key] for result in results]
    bins = np.linspace(min(values) - 0.05, max(values) + 0.05, 25)
    n_columns = 3
    n_rows = -(-len(study.rows) // n_columns)
    figure, axes = plt.subplots(
        n_rows,
        n_columns,
        figsize=(9, 1.7 * n_rows),
        sharex=True,
        sharey=True,
        layout="constrained",
        squeeze=False,
    )
    for axis in axes.flat[len(study.rows) :]:
        axis.set_visible(False)
    for axis, row in zip(axes.flat, study.rows, strict=False):
        axis.hist([r[key] for r in results if r["row"] == row.title], bins, color="#4477aa")
        axis.set_title(row.title, fontsize=9)
    figure.supxlabel(label)
    figure.supylabel("trials")
    figure.savefig(path, dpi=120)
    plt.close(figure)


# ---- the command -----------------------------------------------------------------------


def main(study, figures=(), argv=None):
    """Run missing trials, then write CSV, table and figures.

    Parameters
    ----------
    study : Study
    figures : iterable of (file name, function of (path, study, results))
    argv : list of str, optional
    """
    parser = argparse.ArgumentParser(description=f"Reproduction of {study.name}.")
    parser.add_argument(
        "--scale", type=float, default=1.0, help="multiplies the CPU seconds of a trial"
    )
    parser.add_argument("--seeds", type=int, default=study.n_seeds)
    parser.add_argument("--jobs", type=int, default=-1, help="trials at a time")
    parser.add_argument("--only", nargs="*", help="only rows whose name begins so")
    parser.add_argument(
        "--save-every", type=float, default=5.0, help="seconds between files of a trial"
    )
    parser.add_argument("--clock", choices=["cpu", "sweeps"], default="cpu")
    parser.add_argument("--folder", default=f"results/{study.name.replace(' ', '_')}")
    args = parser.parse_args(argv)
    folder = Path(args.folder)
    folder.mkdir(parents=True, exist_ok=True)
    budget = study.budget * args.scale
    rows = [
        row
        for row in study.rows
        if not args.only or any(row.title.startswith(start) for start in args.only)
    ]
    if not rows:
        parser.error(f"--only {' '.join(args.only)}: no row begins so")
    # Seeds in the outer loop: a run that is stopped early has results for all rows.
    trials = [(row, seed) for seed in range(args.seeds) for row in rows]
    unit = "CPU seconds" if args.clock == "cpu" else "sweeps"
    print(f"{study.name}: {len(trials)} trials of {budget:g} {unit}", flush=True)
    started, results = time.monotonic(), []
    for result in Parallel(n_jobs=args.jobs, return_as="generator_unordered")(
        delayed(run_trial)(study, row, seed, budget, args.clock, folder, args.save_every)
        for row, seed in trials
    ):
        results.append(result)
        elapsed = time.monotonic() - started
        left = elapsed / len(results) * (len(trials) - len(results))
        print(
            f"\r{len(results)}/{len(trials)}  {elapsed:.0f} s, {left:.0f} s left  "
            f"{result['row']}, seed {result['seed']}: {result['n_states']:.1f} states" + " " * 12,
            end="",
            file=sys.stderr,
            flush=True,
        )
    print(file=sys.stderr)
    order = {row.title: i for i, row in enumerate(study.rows)}
    results.sort(key=lambda result: (order[result["row"]], result["seed"]))
    write_csv(folder / "trials.csv", results)
    text = table(study, results)
    (folder / "table.md").write_text(text)
    print(text)
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        print("without matplotlib: no figures")
    else:
        for name, draw in figures:
            draw(folder / name, study, results)
    print(f"in {folder}: {', '.join(sorted(f.name for f in folder.glob('[a-z]*')))}")
    return results
