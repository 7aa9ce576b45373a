// Split-merge trials of whole runs.
//
// With probability 1/2 each, a trial proposes to merge two states or to split one.  The steps of
// the two states (the one state) are divided into their maximal runs of consecutive steps: the
// union of the two states has the same runs as the merged state.  In a random order every run is
// allocated to one of the two states, given the runs before it:
//   * as a whole, by the collapsed probability of its observations and transitions;
//   * sometimes with one change of the state inside the run, by the same probability of all
//     changes, which divides a single long run and lets a merge join runs that touch;
//   * sometimes by a filter over the two states, by which every allocation is possible.
// The first step of the first run defines the first state.  The probability q of an allocation is
// the mixture's, so it is one function of the labels.  In some trials, if possible, restricted
// scans allocate instead (_scanned_allocation.hpp): a sequence of decisions that are never revised
// hardly finds two states that overlap.
//
// A merge chooses one of the K states uniformly and its partner by how well the partner's
// predictive distribution explains some of its observations: w(b | a).  Both orders of the pair
// lead to the same merge, which is thus proposed with probability
//     (w(b | a) + w(a | b)) / K.
// Its reverse chooses the merged state, 1/(K - 1), and the allocation, q.  So
//     R = (r_new / r_old) * (q / (K - 1)) * K / (w(b | a) + w(a | b)),
// and the ratio of a split is the inverse, where K and w belong to the proposed state, which has
// both states.
//
// Removal is in the reverse of the order of allocation.  A merge evaluates meanwhile the
// probability of every run's old labels, at the seating without that run and all later ones.
//
// Without tables observations come and go apart from the draws: the ratio has the marginal
// likelihoods of the two states before and after, and allocation begins with two states without
// observations.  Most merges are rejected before that: all factors of R but q, which is a
// probability, are known when all draws have come and gone.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "_pair_filter.hpp"
#include "_rcd.hpp"
#include "_scanned_allocation.hpp"
#include "_split_merge.hpp"
#include "_trial_sweeps.hpp"

namespace skihmm {

// Subtract log sum exp.  If all are impossible the move will be rejected, and any
// proposal will do.
inline void normalise_logs(double *logs, size_t n) {
    double largest = *std::max_element(logs, logs + n);
    if (largest == -INFINITY) {
        std::fill_n(logs, n, 0.0);
        largest = 0.0;
    }
    double total = 0.0;
    for (size_t i = 0; i < n; ++i) total += std::exp(logs[i] - largest);
    total = largest + std::log(total);
    for (size_t i = 0; i < n; ++i) logs[i] -= total;
}
// An index, by normalised logs.
inline size_t draw_index(bitgen_t *g, const double *logs, size_t n) {
    double u = uniform(g);  // planted: number of an index
    for (size_t i = 0; i < n; ++i) {
        u -= std::exp(logs[i]);
        if (u < 0.0) return i;
    }
    return std::max_element(logs, logs + n) - logs;
}
inline double add_in_logs(double x, double y) {
    if (x < y) std::swap(x, y);
    return y == -INFINITY ? x : x + std::log1p(std::exp(y - x));
}

// Allocation of one run to the states two[0] and two[1], at the current seating.
class RunAllocation {
  public:
    // Read the transitions of steps [start, stop) first; a merge has their old labels `path`.
    // `is_first`: the first step is in two[0].
    void read_run(Chain &chain, int64_t start, int64_t stop, const int32_t *two, bool is_first,
              const int32_t *path) {
        start_ = start;
        stop_ = stop;
        two_[0] = two[0];
        two_[1] = two[1];
        is_first_ = is_first;
        const auto &s = *chain.transitions;
        const int32_t j = chain.previous(start), o = chain.successor(stop - 1);
        for (int u = 0; u < 2; ++u) {
            enter_[u] = is_first && u == 1 ? -INFINITY : std::log(s.prob(start, j, two[u]));
            leave_[u] = o < 0 ? 0.0 : std::log(s.prob(stop, two[u], o));
            total_[u] = s.total_at(stop, two[u]);
        }
        has_successor_ = o >= 0;
        whole_[0] = 0.0;
        whole_[1] = -INFINITY;
        for (int u = 0; u < 2 && !is_first; ++u)
            whole_[u] = enter_[u] + fill_draws(chain, u, false, nullptr) + out_of(u, length() - 1);
        changes_.clear();
        if (length() == 1) return;
        filter_.open(chain, s, start, stop, j, o, two[0], two[1], is_first);
        if (change_of(path) > 0) list_changes(chain);
    }
    // Then at the observations.
    void weigh(Emission &emission) {
        if (!is_first_) {
            double logs[2];
            emission.fill_whole(start_, stop_, two_, logs);
            for (int u = 0; u < 2; ++u) whole_[u] += logs[u];
            normalise_logs(whole_, 2);
        }
        if (length() == 1) return;
        emission.fill_pairs(start_, stop_, two_, filter_.values(0));
        filter_.filter();
    }
    void draw(Chain &chain, int32_t *path) {
        // planted: number of an allocation
        const double u = length() > 1 ? uniform(chain.bits) : 1.0;
        if (u < kFilter) {  // planted: draw by the filter
            Product ignored;
            filter_.draw(chain.bits, path, &ignored);
        } else if (u < kFilter + kChange) {  // planted: draw of a change
            list_changes(chain);
            weigh_changes(*chain.emission);
            const size_t i = draw_index(chain.bits, changes_.data(), changes_.size());
            const int64_t at = 1 + static_cast<int64_t>(i / 2);
            std::fill(path, path + at, two_[i % 2]);
            std::fill(path + at, path + length(), two_[1 - i % 2]);
        } else {
            std::fill(path, path + length(), two_[draw_index(chain.bits, whole_, 2)]);
        }
    }
    // log q of a path.
    double score(Chain &chain, const int32_t *path) {
        const int first = path[0] == two_[1];
        if (length() == 1) return whole_[first];
        Product filtered;
        filter_.read(path, &filtered);
        double q = std::log(kFilter) + filtered.log();
        const int64_t at = change_of(path);
        if (at == 0)
            // planted: share of whole runs
            return add_in_logs(q, std::log(1.0 - kFilter - kChange) + whole_[first]);
        if (at < 0) return q;
        list_changes(chain);
        weigh_changes(*chain.emission);
        // planted: share of changes
        return add_in_logs(q, std::log(kChange) + changes_[2 * (at - 1) + first]);
    }

  private:
    static constexpr double kFilter = 0.1, kChange = 0.1;

    int64_t length() const { return stop_ - start_; }
    // The steps before the only change of the label; 0: there is none, -1: there are more.
    int64_t change_of(const int32_t *path) const {
        const int32_t *end = path + length();
        const int32_t *change = std::find_if(path, end, [&](int32_t k) { return k != *path; });
        if (change == end) return 0;
        return std::find(change, end, *path) == end ? change - path : -1;
    }
    // log p of the draws between the steps, all in state u; out[i], if wanted: between the first
    // (or last) i + 1 steps.
    double fill_draws(Chain &chain, int u, bool backwards, double *out) const {
        const auto &s = *chain.transitions;
        Product draws;
        double stay = 0.0, total = 0.0;
        if (s.has_inputs()) {
            std::vector<double> probs(length() - 1);
            s.fill_along(backwards ? stop_ - 1 : start_ + 1, backwards ? -1 : 1, two_[u], &probs);
            for (int64_t i = 1; i < length(); ++i) {
                draws.multiply(probs[i - 1]);
                if (out) out[i] = draws.log();
            }
            return draws.log();
        }
        for (int64_t i = 1; i < length(); ++i) {
            const int64_t t = backwards ? stop_ - i : start_ + i;
            // One law for all steps, unless it depends on their contexts.
            if (i == 1 || s.varies_by_step()) {
                stay = s.prob(t, two_[u], two_[u]);
                total = s.total_at(t, two_[u]);
            }
            draws.multiply((stay * total + (i - 1)) / (total + (i - 1)));
            if (out) out[i] = draws.log();
        }
        return draws.log();
    }
    // The log probability of a draw from u after n further draws; x is its value without them.
    double after(int u, int64_t n, double x) const {
        return x + std::log(total_[u] / (total_[u] + n));
    }
    double out_of(int u, int64_t n) const {
        return has_successor_ ? after(u, n, leave_[u]) : 0.0;
    }
    // changes_[2 i + u] is the log probability of a change from u to the other state after i + 1
    // steps, at first without the observations.
    void list_changes(Chain &chain) {
        if (!changes_.empty()) return;
        has_values_ = false;
        const int64_t n = length();
        std::vector<double> ahead[2], behind[2];
        for (int u = 0; u < 2; ++u) {
            ahead[u].resize(n);
            behind[u].resize(n);
            fill_draws(chain, u, false, ahead[u].data());
            fill_draws(chain, u, true, behind[u].data());
        }
        changes_.resize(2 * (n - 1));
        const auto &s = *chain.transitions;
        double pass[2];
        for (int64_t i = 0; i < n - 1; ++i)
            for (int u = 0; u < 2; ++u) {
                if (i < 1 || s.varies_by_step())
                    pass[u] = std::log(s.prob(start_ + i + 1, two_[u], two_[1 - u]));
                changes_[2 * i + u] = enter_[u] + ahead[u][i] + after(u, i, pass[u])
                                      + behind[1 - u][n - 2 - i] + out_of(1 - u, n - 2 - i);
            }
    }
    void weigh_changes(Emission &emission) {
        if (has_values_) return;
        has_values_ = true;
        const int64_t n = length();
        std::vector<double> ahead(n), behind(n);
        for (int u = 0; u < 2; ++u) {
            emission.fill_prefixes(start_, stop_, two_[u], false, ahead.data());
            emission.fill_prefixes(start_, stop_, two_[1 - u], true, behind.data());
            for (int64_t i = 0; i < n - 1; ++i) changes_[2 * i + u] += ahead[i] + behind[n - 2 - i];
        }
        normalise_logs(changes_.data(), changes_.size());
    }

    int64_t start_ = 0, stop_ = 0;
    int32_t two_[2] = {};
    bool is_first_ = false, has_successor_ = false, has_values_ = false;
    double enter_[2], leave_[2], total_[2], whole_[2];
    std::vector<double> changes_;       // none: not listed
    PairFilter filter_;
};

class RunSplitMerge {
  public:
    // One trial; returns whether it was accepted.  O(T + K) besides the work on the steps of the
    // two states and on the observations for the choice of the partner.
    bool run(Chain &chain) {
        chain.reserve(1);
        return uniform(chain.bits) < 0.5 ? split(chain) : merge(chain);
    }

  private:
    struct Run {
        int64_t start, stop;            // steps [start, stop)
        size_t at;                      // place of its first step in path_
    };

    bool split(Chain &chain) {
        list_states(chain);
        two_[0] = states_[below(chain.bits, states_.size())];
        two_[1] = chain.free_slot(0);
        gather(chain, two_[0], two_[0]);
        if (path_.size() < 2) return false;
        begin(chain);
        const bool scans = draw_whether_scans(chain);
        double q = scans ? scanned_.run(chain, steps_, true, two_, &path_) : 0.0;
        for (size_t i = runs_.size(); i-- > 0;) take(chain, runs_[i]);
        if (has_marginals_) ratio_.r_old.multiply_log(remove_values(chain));
        for (size_t i = 0; i < runs_.size(); ++i) {
            if (!scans) {
                read_run(chain, i);
                allocation(i).weigh(*chain.emission);
                allocation(i).draw(chain, path_of(runs_[i]));
                q += allocation(i).score(chain, path_of(runs_[i]));
            }
            seat(chain, runs_[i]);
            if (has_marginals_) ratio_.r_new.multiply_log(add_run(chain, runs_[i]));
        }
        if (std::find(path_.begin(), path_.end(), two_[1]) == path_.end()) {
            ratio_.restore(chain, *chain.emission);
            return false;
        }
        states_.push_back(two_[1]);
        // planted: weight of a split
        const double weight = partner_weight(chain, two_[0], two_[1])
                              + partner_weight(chain, two_[1], two_[0]);
        return decide(chain, q_merge(weight), q_split(q));
    }
    bool merge(Chain &chain) {
        list_states(chain);
        if (states_.size() < 2) return false;
        const int32_t a = states_[below(chain.bits, states_.size())];
        gather(chain, a, a);
        fill_partners(chain, a);
        const size_t partner = draw_index(chain.bits, partners_.data(), partners_.size());
        const int32_t b = states_[partner];
        const double weight = std::exp(partners_[partner]);
        gather(chain, a, b);
        begin(chain);
        two_[0] = path_of(runs_[0])[0];
        two_[1] = two_[0] == a ? b : a;
        // planted: weight of a merge
        const Product forward = q_merge(weight + partner_weight(chain, b, a));
        const bool scans = draw_whether_scans(chain);
        double q = 0.0;
        for (size_t i = runs_.size(); i-- > 0;) {
            take(chain, runs_[i]);  // planted: run to merge
            if (scans) continue;  // planted: allocation of a merge
            read_run(chain, i);
            if (!has_marginals_) q += score(chain, i);
        }
        if (has_marginals_) ratio_.r_old.multiply_log(remove_values(chain));
        old_path_ = path_;
        std::fill(path_.begin(), path_.end(), two_[0]);  // planted: label of a merge
        for (const Run &run : runs_) seat(chain, run);
        if (has_marginals_) merge_values(chain, scans, forward, &q);
        return decide(chain, q_split(q), forward);  // planted: decision on a merge
    }

    // Observations of a merge, and q, or the first factors of it by which the merge is rejected.
    void merge_values(Chain &chain, bool scans, const Product &forward, double *q) {
        const auto may_pass = [&]() {
            return ratio_.is_accepted(threshold_, q_split(*q), forward);
        };
        ratio_.r_new.multiply_log(add_values(chain));
        if (!may_pass()) return;
        path_.swap(old_path_);
        chain.emission->rollback();
        if (scans) *q = scanned_.run(chain, steps_, false, two_, &path_);
        else remove_values(chain);
        for (size_t i = 0; i < runs_.size() && !scans && may_pass(); ++i) {
            *q += score(chain, i);  // planted: allocation of a merge by marginals
            add_run(chain, runs_[i]);
        }
        if (!may_pass()) return;
        chain.emission->rollback();
        remove_values(chain);
        path_.swap(old_path_);
        add_values(chain);
    }

    // ---- probabilities of proposals, without the 1/2 of both; states_ has both states

    Product q_split(double log_allocation) const {
        Product q;
        q.multiply(1.0 / (states_.size() - 1));  // planted: state to split
        q.multiply_log(log_allocation);  // planted: factor of the allocation
        return q;
    }
    // weight: w(b | a) + w(a | b).
    Product q_merge(double weight) const {
        Product q;
        q.multiply(weight / states_.size());  // planted: states to merge
        return q;
    }
    // w(b | a)
    double partner_weight(Chain &chain, int32_t a, int32_t b) {
        fill_partners(chain, a);
        const auto place = std::find(states_.begin(), states_.end(), b);
        return std::exp(partners_[place - states_.begin()]);
    }
    // partners_[i] = log w(states_[i] | a), from some of a's steps, which path_ has.
    void fill_partners(Chain &chain, int32_t a) {
        const size_t n = std::count(path_.begin(), path_.end(), a);
        const size_t n_looks = std::min(n, kLooks);
        partners_.assign(states_.size(), 0.0);
        probs_.resize(chain.n_slots);
        // Evenly spaced looks.
        for (size_t i = 0, seen = 0, looks = 0; looks < n_looks; ++i) {
            if (path_[i] != a || seen++ != looks * n / n_looks) continue;
            ++looks;
            chain.emission->fill_probs(steps_[i], probs_.data());
            for (size_t k = 0; k < states_.size(); ++k)
                partners_[k] += std::log(probs_[states_[k]]);
        }
        for (size_t k = 0; k < states_.size(); ++k)
            partners_[k] = states_[k] == a ? -INFINITY : kSharpness * partners_[k];
        normalise_logs(partners_.data(), partners_.size());
    }

    // ---- the steps of the two states

    void list_states(const Chain &chain) {
        states_.clear();
        for (int32_t k = kFirst; k < chain.n_slots; ++k)
            if (chain.occupancy[k] > 0) states_.push_back(k);
    }
    // The steps of a and b, their labels and their runs.
    void gather(const Chain &chain, int32_t a, int32_t b) {
        steps_.clear();
        path_.clear();
        runs_.clear();
        const int32_t *states = chain.states.data();
        for (int64_t t = 0; t < chain.n_steps; ++t) {
            if (states[t] != a && states[t] != b) continue;
            if (!runs_.empty() && runs_.back().stop == t && !chain.first[t]) ++runs_.back().stop;
            else runs_.push_back(Run{t, t + 1, steps_.size()});
            steps_.push_back(t);
            path_.push_back(states[t]);
        }
    }
    int32_t *path_of(const Run &run) { return path_.data() + run.at; }

    // Whether scans allocate; the same chance for a split and the merge that undoes it.
    bool draw_whether_scans(Chain &chain) const {
        // planted: share of scans
        return ScannedAllocation::allows(chain, steps_.size())
               && uniform(chain.bits) < kScanned;
    }

    // ---- removal and addition

    // The runs in random order.
    void begin(Chain &chain) {
        for (int64_t i = static_cast<int64_t>(runs_.size()) - 1; i > 0; --i)
            std::swap(runs_[i], runs_[below(chain.bits, i + 1)]);
        ratio_.r_old.reset();
        ratio_.r_new.reset();
        has_marginals_ = runs_.size() <= kMostRuns && !chain.emission->has_tables();
        if (has_marginals_) threshold_ = uniform(chain.bits);
        allocations_.resize(std::max<size_t>(allocations_.size(),
                                             has_marginals_ ? runs_.size() : 1));
    }
    // Act on the values that leave and come with the draws: the observations, or nothing.
    template <class Do> void with_values(Chain &chain, Do act) {
        if (has_marginals_) act(none_);
        else act(*chain.emission);
    }
    // Neighbours of a run are other states or ends of sequences, never another run.
    void take(Chain &chain, const Run &run) {
        with_values(chain, [&](auto &values) {
            ratio_.remove_block(chain, values, run.start, run.stop, chain.previous(run.start),
                                &chain.states[run.start], chain.successor(run.stop - 1));
        });
    }
    void seat(Chain &chain, const Run &run) {
        with_values(chain, [&](auto &values) {
            ratio_.add_block(chain, values, run.start, run.stop, chain.previous(run.start),
                             path_of(run), chain.successor(run.stop - 1));
        });
    }
    // Remove the observations of all runs, or of one run.
    double remove_values(Chain &chain) {
        return chain.emission->remove_steps(two_, steps_.data(), steps_.size(), path_.data());
    }
    double add_values(Chain &chain) {
        return chain.emission->add_steps(two_, steps_.data(), steps_.size(), path_.data());
    }
    double add_run(Chain &chain, const Run &run) {
        return chain.emission->add_steps(two_, &steps_[run.at], run.stop - run.start,
                                         path_of(run));
    }
    // With marginals every run has its own allocation: a merge removes all draws before it reads
    // observations.
    RunAllocation &allocation(size_t i) { return allocations_[has_marginals_ ? i : 0]; }
    void read_run(Chain &chain, size_t i) {
        // planted: first run
        allocation(i).read_run(chain, runs_[i].start, runs_[i].stop, two_, i == 0,
                               path_of(runs_[i]));
    }
    // log q of a run's labels.
    double score(Chain &chain, size_t i) {
        allocation(i).weigh(*chain.emission);
        return allocation(i).score(chain, path_of(runs_[i]));
    }
    bool decide(Chain &chain, const Product &q_old, const Product &q_new) {
        const bool accepted = has_marginals_ ? ratio_.is_accepted(threshold_, q_old, q_new)
                                             : ratio_.is_accepted(chain, q_old, q_new);
        if (!accepted) {
            ratio_.restore(chain, *chain.emission);
            return false;
        }
        ratio_.keep(chain, *chain.emission);
        for (size_t i = 0; i < steps_.size(); ++i) chain.assign(steps_[i], path_[i]);
        return true;
    }

    // Observations of a state that the choice of its partner looks at, and the exponent of their
    // joint probability.
    static constexpr size_t kLooks = 32;
    static constexpr double kSharpness = 0.2;
    // Share of the trials that scan.  With three states of ten columns sweeps of blocks with two
    // trials take 18 per cent longer than without scans, with eight of five 9, with forty none.
    static constexpr double kScanned = 0.2;

    // Each cached run takes about 512 bytes.
    static constexpr size_t kMostRuns = 100'000;

    Exchange<Emission> ratio_;
    NoValues none_;
    bool has_marginals_ = false;        // otherwise observations are removed and added one by one
    // planted: number of a trial of runs
    double threshold_ = 0.0;            // with marginals: accept if it is below R
    std::vector<RunAllocation> allocations_;
    ScannedAllocation scanned_;
    int32_t two_[2] = {};
    std::vector<int32_t> states_;
    std::vector<double> partners_, probs_;
    std::vector<int64_t> steps_;        // of the two states, in the order of time
    std::vector<int32_t> path_;         // labels of the steps, old or proposed
    std::vector<int32_t> old_path_;     // of a merge
    std::vector<Run> runs_;             // in the order of allocation
};

class RunSplitMergeSweeps final : public TrialSweeps {
  public:
    using TrialSweeps::TrialSweeps;

  private:
    void run_trials(Chain &chain, int64_t n, SweepCounts *counts) override {
        auto &[n_proposed, n_accepted] = counts->trials["run_split_merge"];
        n_proposed = n;
        for (int64_t i = 0; i < n; ++i) n_accepted += trials_.run(chain);
    }

    RunSplitMerge trials_;
};

}  // namespace skihmm
