// Blocked Gibbs and beam proposals (arXiv 1106.0474, Section 5) for the template of
// _rcd.hpp: all labels of a block at once, by forward filtering and backward sampling.
//
// Everything is taken at s_0.  Columns are the states that some table serves, and the slot
// NEW, which stands for all others; labels for the steps that land there are drawn
// afterwards from one more Chinese restaurant process, Q*.  If the block's successor o is
// served by no table (its only draw was the one just removed), it is such a label, and Q*
// begins with one customer at it; or, where laws add to self-transitions, it is a column of its
// own with the mass of a new state: such laws tell it from a new state by more than its
// observations.
//
// With c_j = 1/(n_j + alpha) and a_k = alpha m_k/(m + gamma), transitions are sparse plus
// rank one, pi[j,k] = c_j (n_jk + a_k); so are emissions, F_k(y) = d_k (e_ky + smooth).
//
// The backward draws of step l given the label k of step l+1 use a message f_l,
//     P(x_l = j | x_{l+1} = k) = f_l(j) pi[j,k] / Z_l(k),   Z_l(k) = sum_j f_l(j) pi[j,k],
// and the probability of a path is the product of these, times the factors of Q*.  With the
// exact messages f_{l+1}(k) = F_k Z_l(k) it telescopes to the product of all pi and F along
// the path, over a constant.  But it *is* the probability of what is drawn for whatever
// messages, so those may be computed more cheaply: the sparse rows of states that hold less
// than a small share of f_l (mostly those that never emitted y[l]) enter the next message
// only by their total, spread in proportion to m_k.  That costs a little acceptance and no
// exactness, and saves most of the non-zeros of n.  They are in single precision, for the
// same reason: sums run over slots, in an order that all paths at one s_0 share, so that the
// path back is proposed from the very same numbers (Z and the probability of the path are
// computed from them in double).
//
// Batches of blocks that share one s_0 and one filter do not pay.  With 330 states the
// filter is 54 % of a sweep (180 ns per step), and removal with seating, which a batch has
// to do almost twice, 21 %; but the bare product of n with 16 messages, without any cut,
// takes 140 ns per step (with 770 states 300 ns of the 430 that the filter takes now).
//
// Beam: each transition of the path gets a slice u_l, uniform below its pi on the old path,
// and indicators 1[pi >= u_l] replace pi in the messages and in Z.  Given the slices the
// target gains prod 1[u_l <= pi_l] / pi_l, hence the probability of the path is multiplied
// by the un-sliced pi.  (>=, as u_l may round to pi_l; the same floating-point expression
// decides everywhere, so that the old path always survives.)
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "_blocked_vector.hpp"
#include "_fresh_labels.hpp"
#include "_rcd.hpp"
#include "_vector.hpp"

namespace skihmm {

template <class Chain, class Emission, bool kSliced>
class Blocked {
  public:
    using Transitions = typename Chain::Transitions;
    static constexpr bool kReadsTouched = true, kReadsView = false,
                          kMayBeExact = false;
    // The rows of states with less than this multiple of the mean weight of a message are not
    // propagated; with more than kFew states it is kFew/K times that.
    explicit Blocked(double cut) : cut_(cut) {}

    // Start of a sweep, or more slots than before; only between moves.
    void attach(Chain &chain, Emission &emission) {
        const Transitions &s = *chain.transitions;
        n_slots_ = chain.n_slots;
        stride_ = (n_slots_ + kLanes - 1) / kLanes * kLanes;
        totals_ = nullptr;
        if constexpr (Emission::kIsSeating) totals_ = emission.totals(&offset_);
        mass_.assign(stride_, 0.0);
        c_.assign(stride_, 0.0);
        mass_f_.assign(stride_, 0.0f);
        size_.assign(stride_, 1.0f);
        w_.assign(stride_, 0.0f);
        g_.assign(stride_, 0.0f);
        row_.assign(stride_, 0.0f);
        kept_.resize(stride_ + kLanes);
        found_.resize(kSliced ? stride_ + kLanes : 0);
        if (!Emission::kIsSeating) probs_.resize(n_slots_);
        // A power of two that keeps w, and w times the size of a row, among the floats for
        // concentrations from 1e-25 to 1e25.
        if (!kSliced)
            unit_ = std::ldexp(1.0, 60 + static_cast<int>(std::lround(
                                             std::log2(offset_)
                                             + std::log2(s.smooth_weight()) / 2)));
        mass_[kNew] = largest_ = s.mass(kNew);
        mass_f_[kNew] = static_cast<float>(s.mass(kNew));
        n_live_ = 1;
        for (int32_t k = 0; k < n_slots_; ++k) refresh(s, k);
    }

    void prefetch(Chain &, int64_t, int64_t) const {}

    void prepare(Chain &chain, Emission &emission, const Move<Chain, Emission> &move) {
        const int64_t start = move.start, stop = move.stop;
        const Transitions &s = *chain.transitions;
        for (size_t i = 0; i < chain.touched.size(); ++i) refresh(s, chain.touched[i]);
        start_ = start;
        length_ = stop - start;
        scale_ = s.scale();
        i_ = chain.previous(start);
        o_ = chain.successor(stop - 1);
        ghost_ = o_ >= 0 && !s.is_served(o_) ? o_ : -1;
        apart_ = s.has_self_weight() ? ghost_ : -1;
        if (apart_ >= 0) set_apart(s);
        if (static_cast<int64_t>(steps_.size()) < length_ + 1) steps_.resize(length_ + 1);
        const size_t room = static_cast<size_t>(length_) * stride_;
        if (messages_.size() < room) messages_.resize(room);
        map_old(chain, s);
        emission.look_ahead(start, stop);
        filter(chain, s, emission);
    }

    // Probability of the old path.
    void score(Chain &chain, int64_t, int64_t, Product *q) {
        const Transitions &s = *chain.transitions;
        labels_.open(s, apart_ >= 0 ? -1 : ghost_);
        int32_t before = -1;
        for (int64_t l = 0; l < length_; ++l) {
            Step &step = steps_[l];
            const int32_t k = steps_[l + 1].bar;
            step.total = total(s, l, k);
            step.weight = weight(l, step.bar, k, steps_[l + 1].n);
            q->multiply(path_factor(l, step.bar, k, steps_[l + 1].n) / step.total);
            const int32_t label = step.bar == kNew ? chain.states[start_ + l] : -1;
            if (label >= 0) q->multiply(labels_.seat(label, before));
            before = label;
        }
        if (kSliced) q->multiply(link(steps_[0].n, mass_[steps_[0].bar], c_[i_]));
    }

    void propose(Chain &chain, int64_t, int64_t, int32_t *path, Product *q) {
        const Transitions &s = *chain.transitions;
        int32_t k = steps_[length_].bar;
        bool is_fresh = false;
        for (int64_t l = length_ - 1; l >= 0; --l) {
            const Step &step = steps_[l];
            int32_t j = step.bar;
            double n = steps_[l + 1].n, sum = step.total;
            if (SKIHMM_LIKELY(k == steps_[l + 1].bar)) {
                // Most labels do not change, so the old one is tried first.
                const double u = uniform(chain.bits) * sum;
                if (SKIHMM_UNLIKELY(u >= step.weight))
                    j = draw(s, l, k, u - step.weight, step.bar, &n);
            } else {
                sum = total(s, l, k);
                if (SKIHMM_UNLIKELY(!(sum > 0.0))) {
                    // A beam of approximate messages may end without a path, which is rejected.
                    std::copy_n(&chain.states[start_], length_, path);
                    q->multiply_log(std::numeric_limits<double>::infinity());
                    return;
                }
                j = draw(s, l, k, uniform(chain.bits) * sum, -1, &n);
            }
            q->multiply(path_factor(l, j, k, n) / sum);
            is_fresh |= j == kNew;
            path[l] = k = j;
        }
        if (kSliced) q->multiply(link(pair_weight(s, i_, k, -1), mass_[k], c_[i_]));
        if (is_fresh) name(chain, s, path, q);
    }

    void settle(Chain &, Emission &, int64_t, int64_t, bool) const {}

  private:
    // One step of the block; one more stands for the successor.
    struct Step {
        int32_t bar = 0;        // column of the old label; -1: there is no successor
        double n = 0.0;         // sparse weight of the old transition into it
        double slice = 0.0;     // of that transition
        double total = 0.0;     // Z at the old label after it
        double weight = 0.0;    // the old label's part of that
        double sum = 0.0;       // sum of the message as it is stored
        double sum_f = 0.0;     // sum of f
    };

    void refresh(const Transitions &s, int32_t k) {
        if (k != kNew) {
            const double mass = s.own_mass(k);
            n_live_ += (mass > 0.0) - (mass_[k] > 0.0);
            largest_ = std::max(largest_, mass);
            mass_[k] = mass;
            mass_f_[k] = static_cast<float>(mass);
        }
        const double size = s.total(k);
        c_[k] = 1.0 / size;
        if (!kSliced) size_[k] = static_cast<float>(size);
        double w = kSliced ? 1.0 : unit_ * c_[k];
        if constexpr (Emission::kIsSeating) {
            if (k != kStart) w /= total_weight(totals_[k], offset_);
        }
        w_[k] = static_cast<float>(w);
    }
    // The column of the ghost, until its slot is refreshed after this move.
    void set_apart(const Transitions &s) {
        mass_[apart_] = s.mass(kNew);
        mass_f_[apart_] = static_cast<float>(s.mass(kNew));
        ++n_live_;
    }
    int32_t bar_of(const Transitions &s, int32_t k) const {
        return s.is_served(k) || k == apart_ ? k : kNew;
    }
    static double pair_weight(const Transitions &s, int32_t j, int32_t k, int32_t hint) {
        if (j == kNew || k == kNew) return j == k ? s.self_weight(kNew) : 0.0;
        return s.pair_weight(j, k, hint);
    }
    // pi[j,k] from its sparse weight, the mass of k and c_j.
    double link(double n, double mass, double c) const {
        return dish_weight(n, scale_, mass) * c;
    }

    // The old path in columns, and its slices.
    void map_old(Chain &chain, const Transitions &s) {
        int32_t j = i_;
        for (int64_t l = 0; l <= length_; ++l) {
            Step &step = steps_[l];
            if (l == length_ && o_ < 0) {
                step.bar = -1;
                step.n = 0.0;
                return;
            }
            const int32_t k = bar_of(s, l < length_ ? chain.states[start_ + l] : o_);
            step.bar = k;
            step.n = pair_weight(s, j, k, chain.hints[start_ + l]);
            if (kSliced)
                step.slice = std::max(kTiny, uniform(chain.bits)
                                             * link(step.n, mass_[k], c_[j]));
            j = k;
        }
    }
    void name(Chain &chain, const Transitions &s, int32_t *path, Product *q) {
        labels_.open(s, apart_ >= 0 ? -1 : ghost_);
        size_t n_fresh = 0;
        int32_t before = -1;
        for (int64_t l = 0; l < length_; ++l) {
            const bool is_fresh = path[l] == kNew;
            if (is_fresh) {
                path[l] = labels_.draw(chain.bits, before);
                if (path[l] < 0) path[l] = chain.free_slot(n_fresh++);
                q->multiply(labels_.seat(path[l], before));
            }
            before = is_fresh ? path[l] : -1;
        }
    }

    // ---- forward

    float *message(int64_t l) { return messages_.data() + static_cast<size_t>(l) * stride_; }
    const float *message(int64_t l) const {
        return messages_.data() + static_cast<size_t>(l) * stride_;
    }
    void filter(Chain &, const Transitions &s, Emission &emission) {
        // What reaches the first step comes from i alone.
        kept_[0] = i_;
        n_kept_ = 1;
        double share = 1.0, smooth = 0.0;
        for (int64_t l = 0; l < length_; ++l) {
            const float *before = l ? message(l - 1) : nullptr;
            if (l) {
                share = 1.0 / steps_[l - 1].sum_f;
                // The more states, the more of them lie below a given multiple of the mean.
                const double cut = cut_ * std::min(1.0, kFew / n_live_);
                const double least = cut / n_live_ * steps_[l - 1].sum_f;
                n_kept_ = blocked_passes.select(stride_, static_cast<float>(least), before,
                                                size_.data(), kept_.data());
            }
            if constexpr (kSliced) smooth = spread_slices(s, before, share, l);
            else smooth = spread_rows(s, before, share, l);
            emit(emission, l, static_cast<float>(smooth));
        }
    }
    // g_k = sum over kept j of f_j c_j n_jk; returns what is to be added per unit of mass.
    double spread_rows(const Transitions &s, const float *before, double share, int64_t l) {
        float *g = g_.data();
        double kept = 0.0;
        for (int32_t at = 0; at < n_kept_; ++at) {
            const int32_t j = kept_[at];
            const double h = before ? before[j] * share : c_[j];
            const float h_f = static_cast<float>(h);
            kept += h * s.sparse_weight(j);
            s.row(j).for_fours([&](int32_t, int32_t k, int32_t n) {
                g[k] += h_f * static_cast<float>(n);
            });
            if (SKIHMM_UNLIKELY(s.has_self_weight())) {
                g[j] += h_f * static_cast<float>(s.self_weight(j));
                kept += h * s.lost_weight(j);
            }
        }
        if (!before) return scale_ * c_[i_];
        const Step &step = steps_[l - 1];
        const double sum = step.sum * share;
        double rest = 0.0;
        if (cut_ > 0.0) rest = std::max(0.0, 1.0 - s.smooth_weight() * sum - kept);
        return scale_ * (sum + rest / s.smooth_weight());
    }
    // g_k = sum over kept j of f_j 1[pi[j,k] >= u]; returns the same.
    //
    // Where u is so small that pi[j,k] passes without customers, it does for m_k from some
    // number on: f_j is added there to bins_, whose sums up to m_k are what k gets.
    double spread_slices(const Transitions &s, const float *before, double share, int64_t l) {
        float *g = g_.data();
        const double *mass = mass_.data();
        const double u = steps_[l].slice;
        double kept = 0.0;
        const int32_t last_bin = static_cast<int32_t>(std::min(largest_, kBins - 1.0));
        int32_t first_bin = kBins;
        for (int32_t at = 0; at < n_kept_; ++at) {
            const int32_t j = kept_[at];
            const double f = before ? before[j] * share : 1.0, c = c_[j];
            const float if_passes[2] = {0.0f, static_cast<float>(f)};
            kept += f;
            if (s.has_self_weight())
                g[j] += if_passes[passes_as_self(s, j, c, mass[j], u)];
            if (!(link(0.0, largest_, c) >= u)) {
                s.row(j).for_fours([&](int32_t, int32_t k, int32_t n) {
                    g[k] += if_passes[link(n, mass[k], c) >= u];
                });
                continue;
            }
            const double from = u / (scale_ * c);
            if (from <= kBins - 1) {
                const int32_t bin = static_cast<int32_t>(std::ceil(from));
                if (bin <= last_bin) {
                    first_bin = std::min(first_bin, bin);
                    bins_[bin] += if_passes[1];
                }
                g[kNew] += if_passes[link(0.0, mass[kNew], c) >= u];
                if (apart_ >= 0) g[apart_] += if_passes[link(0.0, mass[apart_], c) >= u];
            } else {
                blocked_passes.add_where(stride_, scale_, mass, c, u, if_passes[1], g);
            }
            s.row(j).for_fours([&](int32_t, int32_t k, int32_t n) {
                g[k] += if_passes[(link(n, mass[k], c) >= u) & !(link(0.0, mass[k], c) >= u)];
            });
        }
        if (first_bin < kBins) add_bins(s, first_bin, last_bin);
        if (!before || !(cut_ > 0.0)) return 0.0;
        // 1[pi >= u] is at most pi/u, and mostly far less: with 0.3 for 0.03 the share of
        // rejected moves (words of Alice, 750 states) was 2.7 % instead of 1.7 %.  Never zero:
        // the old path may be part of the rest, and the proposal must give it a positive
        // probability.
        return 0.03 * std::max(kLeastRest, 1.0 - kept) * scale_ / (s.smooth_weight() * u);
    }
    void add_bins(const Transitions &s, int32_t first, int32_t last) {
        float sum = 0.0f;
        for (int32_t m = first; m <= last; ++m) bins_[m] = sum += bins_[m];
        float *g = g_.data();
        // size_ is one everywhere.  NEW and the ghost have had their shares.
        const int32_t n = blocked_passes.select(stride_, first - 0.5f, mass_f_.data(),
                                                size_.data(), found_.data());
        for (int32_t at = 0; at < n; ++at) {
            const int32_t k = found_[at];
            if (k != kNew && k != apart_) g[k] += bins_[std::min(s.tables_of(k), last)];
        }
        std::fill(bins_ + first, bins_ + last + 1, 0.0f);
    }
    // f_k = (g_k + smooth mass_k) F_k(y[t]), stored as f_k c_k without slices; clears g.
    void emit(Emission &emission, int64_t l, float smooth) {
        const int64_t t = start_ + l;
        float *out = message(l);
        Step &step = steps_[l];
        const float *w = w_.data(), *size = size_.data();
        SymbolColumn column;
        bool has_column = false;
        if constexpr (Emission::kIsSeating) {
            has_column = emission.column(t, &column);
            if (!has_column) {
                for (int32_t k = 0; k < n_slots_; ++k)
                    row_[k] = kSliced ? 1.0f : static_cast<float>(c_[k]);
                w = row_.data();
            }
        } else {
            fill_row(emission, t);
            w = row_.data();
        }
        double sums[2];
        blocked_passes.emit(stride_, smooth, mass_f_.data(), w, size, g_.data(), out, sums);
        if (SKIHMM_UNLIKELY(!is_usable(sums[1]))) begin_anew(out, sums);
        step.sum = sums[0];
        step.sum_f = sums[1];
        if (!has_column) return;
        // Contribution of the symbol's counts, over the smooth part as the common factor.
        const double by_smooth = 1.0 / column.smooth;
        double extra = 0.0, extra_f = 0.0;
        for (int32_t at = 0; at < column.size; ++at) {
            const int32_t k = column.ids[at];
            const double before = out[k];
            out[k] = static_cast<float>(before + before * (column.counts[at] * by_smooth));
            const double more = out[k] - before;
            extra += more;
            extra_f += more * size[k];
        }
        step.sum += extra;
        step.sum_f += extra_f;
    }
    static bool is_usable(double sum) {
        return sum > 0.0 && sum < std::numeric_limits<float>::max();
    }
    // The message has underflowed, or is too large for floats.
    SKIHMM_NOINLINE void begin_anew(float *out, double *sums) {
        std::fill(g_.begin(), g_.end(), 0.0f);
        blocked_passes.emit(stride_, 1.0f, mass_f_.data(), w_.data(), size_.data(),
                            g_.data(), out, sums);
        if (is_usable(sums[1])) return;
        sums[0] = sums[1] = 0.0;
        for (int32_t k = 0; k < stride_; ++k) {
            out[k] = k < n_slots_ && mass_[k] > 0.0 ? 1.0f : 0.0f;
            sums[0] += out[k];
            sums[1] += static_cast<double>(out[k]) * size_[k];
        }
    }
    // Emissions that give whole rows, over their largest entry: floats have little room.
    void fill_row(Emission &emission, int64_t t) {
        emission.fill_probs(t, probs_.data());
        double most = std::numeric_limits<double>::min();
        for (int32_t k = 0; k < n_slots_; ++k)
            if (mass_[k] > 0.0) most = std::max(most, probs_[k]);
        for (int32_t k = 0; k < n_slots_; ++k) {
            const double p = std::min(std::max(probs_[k] / most, 1e-20), 1.0);
            row_[k] = static_cast<float>(p * (kSliced ? 1.0 : c_[k]));
        }
    }

    // ---- backward

    // f_l(j) pi[j,k], or without a successor f_l(j).
    double path_factor(int64_t l, int32_t j, int32_t k, double n) const {
        const double f = message(l)[j];
        if (kSliced) return k < 0 ? f : f * link(n, mass_[k], c_[j]);
        return k < 0 ? f * size_[j] : f * dish_weight(n, scale_, mass_[k]);
    }
    double sum_last(int64_t l) const {
        double sum = 0.0;
        for (int32_t j = 0; j < n_slots_; ++j) sum += path_factor(l, j, -1, 0);
        return sum;
    }
    // The part of j in Z_l(k).
    double weight(int64_t l, int32_t j, int32_t k, double n) const {
        if (!kSliced) return path_factor(l, j, k, n);
        const double f = message(l)[j];
        return k < 0 || link(n, mass_[k], c_[j]) >= steps_[l + 1].slice ? f : 0.0;
    }
    double total(const Transitions &s, int64_t l, int32_t k) const {
        const Step &step = steps_[l];
        if (k < 0) return sum_last(l);
        const float *f = message(l);
        const Line &column = s.column(k);
        if constexpr (!kSliced) {
            Pair sum = Pair::of(0.0);
            for (int32_t at = 0; at < column.size; at += 2)
                sum = sum + pair_at(f, column.ids[at], column.ids[at + 1])
                            * Pair::next(column.counts + at);
            double sparse = sum.sum();
            if (SKIHMM_UNLIKELY(s.has_self_weight())) sparse += f[k] * s.self_weight(k);
            return sparse + new_table_weight(scale_, mass_[k]) * step.sum;
        } else {
            const double u = steps_[l + 1].slice, mass = mass_[k], *c = c_.data();
            const double smooth = new_table_weight(scale_, mass);
            // Without a weight of self-transitions no other c is larger.
            if (!s.has_self_weight() && !(smooth * c[kNew] >= u)) {
                double sums[4] = {};
                for (int32_t at = 0; at < column.size; at += 4)
                    for (int32_t i = 0; i < 4; ++i) {
                        const int32_t j = column.ids[at + i], n = column.counts[at + i];
                        sums[i] += f[j] * static_cast<double>(link(n, mass, c[j]) >= u);
                    }
                return (sums[0] + sums[1]) + (sums[2] + sums[3]);
            }
            double sum = blocked_passes.sum_where(stride_, smooth, c, u, f);
            if (passes_as_self(s, k, c[k], mass, u)) sum += f[k];
            for (int32_t at = 0; at < column.size; ++at) {
                const int32_t j = column.ids[at];
                sum += f[j] * static_cast<double>((link(column.counts[at], mass, c[j]) >= u)
                                                  & !(link(0.0, mass, c[j]) >= u));
            }
            return sum;
        }
    }
    // Whether k -> k passes the slice u by its self_weight only, in the loops over customers and
    // over the smooth part not.
    bool passes_as_self(const Transitions &s, int32_t k, double c, double mass, double u) const {
        if (!s.has_self_weight()) return false;
        return link(pair_weight(s, k, k, -1), mass, c) >= u && !(link(s.count(k, k), mass, c) >= u);
    }
    // A label other than `skip` before k: the one in whose part of Z_l(k) u lies.  n is set
    // to the sparse weight of the transition.
    SKIHMM_NOINLINE int32_t draw(const Transitions &s, int64_t l, int32_t k, double u,
                                 int32_t skip, double *n) const {
        const int32_t j = find(s, l, k, u, skip);
        if (j != skip) *n = k < 0 ? 0.0 : pair_weight(s, j, k, -1);
        return j;
    }
    int32_t find(const Transitions &s, int64_t l, int32_t k, double u, int32_t skip) const {
        const float *f = message(l);
        int32_t chosen = skip;
        auto take = [&](int32_t j, double value) {
            if (j == skip || !(value > 0.0)) return false;
            chosen = j;
            return (u -= value) < 0.0;
        };
        if (k < 0) {
            for (int32_t j = 0; j < n_slots_; ++j)
                if (take(j, path_factor(l, j, k, 0.0))) break;
            return chosen;
        }
        const Line &column = s.column(k);
        const double mass = mass_[k];
        if constexpr (!kSliced) {
            for (int32_t at = 0; at < column.size; ++at) {
                const int32_t j = column.ids[at];
                if (take(j, f[j] * static_cast<double>(column.counts[at]))) return chosen;
            }
            if (take(k, f[k] * s.self_weight(k))) return chosen;
            const double a = new_table_weight(scale_, mass);
            for (int32_t j = 0; j < n_slots_; ++j)
                if (take(j, f[j] * a)) break;
        } else {
            const double slice = steps_[l + 1].slice;
            for (int32_t at = 0; at < column.size; ++at) {
                const int32_t j = column.ids[at], count = column.counts[at];
                if (!(link(0.0, mass, c_[j]) >= slice)
                    && take(j, link(count, mass, c_[j]) >= slice ? f[j] : 0.0))
                    return chosen;
            }
            if (passes_as_self(s, k, c_[k], mass, slice) && take(k, f[k])) return chosen;
            for (int32_t j = 0; j < n_slots_; ++j)
                if (take(j, link(0.0, mass, c_[j]) >= slice ? f[j] : 0.0)) break;
        }
        return chosen;
    }

    // Keeps a slice above the pi of slots without a state, which is zero.
    static constexpr double kTiny = std::numeric_limits<double>::min();
    static constexpr int32_t kLanes = 16, kBins = 1024;
    static constexpr double kFew = 400.0;

    // The least share of a message that is spread over all states.
    static constexpr double kLeastRest = 1e-12;

    const double cut_;
    double unit_ = 1.0;             // power of two in w_
    // Represented states and `new` at s_0.  Not the number of slots: that depends on the
    // labels of the whole chain, and the path back would be proposed with another cut.
    int32_t n_live_ = 1;
    int32_t n_slots_ = 0, stride_ = 0;
    const int32_t *totals_ = nullptr;
    double offset_ = 1.0;
    double largest_ = 0.0;          // at least every mass
    // By slot, at s_0.  Messages are floats, and so is all that only they are made of:
    // their rounding changes what is proposed, not what its probability is.
    WideVector<double> mass_;       // m_k, of NEW gamma
    WideVector<double> c_;          // 1/(n_k + alpha)
    WideVector<float> mass_f_;
    WideVector<float> size_;        // f over what is stored: n_k + alpha, with slices 1
    WideVector<float> w_;           // c_k (without slices) times d_k
    WideVector<float> g_;           // zero between steps
    WideVector<float> row_;         // F_k(y[t]), times c_k, if not through w_
    std::vector<double> probs_;
    std::vector<int32_t> kept_;     // states whose rows are sent on
    std::vector<int32_t> found_;
    int32_t n_kept_ = 0;
    float bins_[kBins] = {};        // zero between steps
    // this block
    int64_t start_ = 0, length_ = 0;
    int32_t i_ = 0, o_ = 0, ghost_ = -1;
    int32_t apart_ = -1;            // the ghost if it has a column of its own
    double scale_ = 0.0;
    std::vector<Step> steps_;
    WideVector<float> messages_;   // by step of the block, then by slot
    FreshLabels labels_;
};

template <class Chain, class Emission>
using BlockedMessages = Blocked<Chain, Emission, false>;
template <class Chain, class Emission>
using BlockedSlices = Blocked<Chain, Emission, true>;

}  // namespace skihmm
