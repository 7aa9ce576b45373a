"""
State detection: the benchmark of the CLaP paper, on series that you have downloaded.

    python benchmarks/state_detection.py TSSB SKAB --published experiments/state_detection
    python benchmarks/state_detection.py TSSB UTSA --windows

Every folder is one collection, in the format of the authors' repositories (github.com/
ermshaua/time-series-segmentation-benchmark, .../classification-label-profile):

    desc.txt         a line for every series: name, window size (not used here), and the
                     change points, as indices of the first step of a segment:
                     Adiac,10,572,1012,1232
    properties.txt   a line for every series, in the same order: name and the state of
                     every segment:    SKAB_valve1_0,0,1,0
                     (of a folder that is called TSSB: name, a flag, the cut of labels
                     c, by which they are divided as label // (c + 1), a resampling rate,
                     and the labels)
    NAME.txt         the series: one value per line, or one row of columns per line;
                     or data.npz, with one array of that name for every series

Every series is standardised and fitted without knowledge of its states; its labels are
those of the selected draw, or with --windows those of skihmm.windows.WindowedHMM.
Reported, as in the paper: covering, the mean over the true segments, weighted by length, of
the largest Jaccard index with a found segment; the adjusted mutual information of the
states, per time step; and F1 of the change points, each of which may be found once, within
1 % of the series.  Means over the series, with the number of states, and CPU seconds;
--each prints every series.

The collections TSSB, UTSA, SKAB and MIT-BIH have this format; HAS, a single table, must
be written to it first.

With --published FOLDER the authors' own results of other methods stand beside them, on
the same series: files COLLECTION_METHOD.csv.gz of their repository (folder
experiments/state_detection), with the columns dataset, covering_score and ami_score.  The
last lines are the means that they publish: of AMI over the 391 series of TSSB, UTSA, HAS
and SKAB (notebooks/comparative_analysis/state_detection_competitor.ipynb, April 2025).
The covering is left open there, since the notebook shows that of one score only.

A. Ermshaus, P. Schaefer and U. Leser, "CLaP - State Detection from Time Series", arXiv
2504.01783, 2025.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.metrics import adjusted_mutual_info_score

from skihmm import HCRPHMM
from skihmm.transitions import HCRPTransitions
from skihmm.windows import WindowedHMM

SCORES = ("covering_score", "ami_score")
# AMI over 391 series, as their notebook shows it.
PUBLISHED = {
    "CLaP": 0.611,
    "ClaSP2Feat": 0.453,
    "Time2State": 0.452,
    "HDP-HSMM": 0.424,
    "TICC": 0.253,
    "AutoPlait": 0.181,
}


def read_lines(path):
    if not path.exists():
        sys.exit(f"{path} is missing; expected the files that --help describes.")
    lines = path.read_text().splitlines()
    return [[field.strip() for field in line.split(",")] for line in lines if line.strip()]


def read_series(folder, name, arrays):
    path = folder / f"{name}.txt"
    if path.exists():
        X = np.loadtxt(path, ndmin=1)
    elif name in arrays:
        X = arrays[name]
    else:
        sys.exit(f"{folder} has neither {name}.txt nor a data.npz with {name}.")
    return np.reshape(X, (len(X), -1)).astype(float)


def read_collection(folder):
    """Yield the name, data and true states of every series."""
    is_tssb = folder.name.upper() == "TSSB"
    described = read_lines(folder / "desc.txt")
    labelled = {name: row for name, *row in read_lines(folder / "properties.txt")}
    arrays = np.load(folder / "data.npz") if (folder / "data.npz").exists() else {}
    for name, _, *changes in described:
        if name not in labelled:
            sys.exit(f"{folder / 'properties.txt'} has no line for {name}.")
        labels = labelled[name]
        if is_tssb:
            cut = int(labels[1])
            labels = [int(label) // (cut + 1) for label in labels[3:]]
        labels = np.array(labels, dtype=int)
        changes = np.array([change for change in changes if change], dtype=int)
        X = read_series(folder, name, arrays)
        if len(labels) != len(changes) + 1 or (np.diff([0, *changes, len(X)]) <= 0).any():
            sys.exit(
                f"{name} of {folder} has {len(X)} steps, the change points {changes} and "
                f"the labels {labels}; expected increasing points inside of the series, "
                "and one more label."
            )
        yield name, X, np.repeat(labels, np.diff([0, *changes, len(X)]))


def segments(states):
    """Number of every step's segment."""
    return np.cumsum(np.diff(states, prepend=states[0]) != 0)


def covering(true, found):
    """Covering of the segments of a path by those of another one."""
    true, found = segments(true), segments(found)
    overlaps = np.zeros((true[-1] + 1, found[-1] + 1))
    np.add.at(overlaps, (true, found), 1)
    lengths = overlaps.sum(axis=1)
    unions = lengths[:, None] + overlaps.sum(axis=0) - overlaps
    return (lengths * (overlaps / unions).max(axis=1)).sum() / len(true)


def f1(true, found, margin=0.01):
    """F1 of change points, as segments begin, of which each may be found once."""
    reach = margin * len(true)
    true, found = (np.flatnonzero(np.diff(path)) + 1 for path in (true, found))
    near, n_found = [*found.tolist()], 0
    for change in true.tolist():
        hits = [other for other in near if abs(other - change) <= reach]
        if hits:
            near.remove(min(hits, key=lambda other: abs(other - change)))
            n_found += 1
    return 1.0 if not len(true) + len(found) else 2 * n_found / (len(true) + len(found))


def detect(X, args):
    if args.windows:
        return WindowedHMM(random_state=args.seed).fit(X).labels_
    deviations = X.std(axis=0)
    X = (X - X.mean(axis=0)) / np.where(deviations > 0, deviations, 1)
    hmm = HCRPHMM(
        emission=args.emission,
        transitions=HCRPTransitions(expected_dwell=args.expected_dwell),
        n_burnin=args.sweeps,
        n_draws=args.draws,
        random_state=args.seed,
    )
    return hmm.fit(X).labels_


def read_published(folder, collection):
    """Scores of every method by series: {method: {name: (covering, AMI)}}."""
    published = {}
    for path in sorted(folder.glob(f"{collection}_*.csv*")):
        method = path.name.split(".csv")[0].removeprefix(f"{collection}_")
        opened = gzip.open if path.suffix == ".gz" else open
        csv.field_size_limit(2**31 - 1)  # (A field may hold the labels of all steps.)
        with opened(path, "rt", newline="") as file:
            rows = list(csv.DictReader(file))
        missing = {"dataset", *SCORES} - {*(rows[0] if rows else ())}
        if missing:
            sys.exit(f"{path} has no {', '.join(sorted(missing))}.")
        published[method] = {
            row["dataset"]: tuple(float(row[name]) for name in SCORES) for row in rows
        }
    return published


def show(label, scores, extra=""):
    """A line of means: covering, AMI, and of our own fits F1 and the number of states."""
    means = np.mean(scores, axis=0) if scores else (np.nan, np.nan)
    shown = "".join(f"{mean:10.3f}" for mean in means) + " " * (40 - 10 * len(means))
    print(f"{label:32}{len(scores):7}{shown}{extra}", flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--published", type=Path)
    parser.add_argument("--each", action="store_true")
    parser.add_argument("--windows", action="store_true", help="states of windows: shapes")
    parser.add_argument("--emission", default="autoregressive")
    parser.add_argument("--expected-dwell", type=float, default=500)
    parser.add_argument("--sweeps", type=int, default=200)
    parser.add_argument("--draws", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    print(f"{'':32}{'series':>7}{'covering':>10}{'AMI':>10}{'F1':>10}{'states':>10}{'seconds':>10}")
    totals = {}
    for folder in args.folders:
        published = read_published(args.published, folder.name) if args.published else {}
        ours, seconds = {}, 0.0
        for name, X, states in read_collection(folder):
            started = time.process_time()
            labels = detect(X, args)
            spent = time.process_time() - started
            seconds += spent
            ours[name] = (
                covering(states, labels),
                adjusted_mutual_info_score(states, labels),
                f1(states, labels),
                len(np.unique(labels)),
            )
            if args.each:
                show(f"  {name}", [ours[name]], f"{spent:10.1f}")
        methods = {"skihmm": ours}
        for method, scores in published.items():
            methods[method] = {name: scores[name] for name in ours if name in scores}
        for method, scores in methods.items():
            extra = f"{seconds:10.1f}" if method == "skihmm" else ""
            show(f"{folder.name} {method}", list(scores.values()), extra)
            totals.setdefault(method, []).extend(scores.values())
    if len(args.folders) > 1:
        for method, scores in totals.items():
            show(f"all {method}", scores)
    for method, score in PUBLISHED.items():
        print(f"{'published ' + method:32}{391:7}{'-':>10}{score:10.3f}")


if __name__ == "__main__":
    main()
