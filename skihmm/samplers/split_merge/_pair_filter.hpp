// Labels of consecutive steps out of two states, by forward filtering and backward sampling.
// Where states have several stages, which are kept, all steps of a run change together.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "_platform.hpp"
#include "_product.hpp"
#include "_random.hpp"

namespace skihmm {

class PairFilter {
  public:
    // p(first steps' observations, label of step l) for l in [start, stop), scaled to sum one at
    // every step, or by runs; j and o are the labels before and after (o = -1: none).  All
    // probabilities are at the current seating.  `fixed`: the first label is a.
    template <class Emission>
    void run(const Chain &chain, Emission &emission, int64_t start, int64_t stop, int32_t j,
             int32_t o, int32_t a, int32_t c, bool fixed = false) {
        run(chain, *chain.transitions, emission, start, stop, j, o, a, c, fixed);
    }
    // Filter with another law of draws; j = -1: none.
    template <class Law, class Emission>
    void run(const Chain &chain, const Law &s, Emission &emission, int64_t start, int64_t stop,
             int32_t j, int32_t o, int32_t a, int32_t c, bool fixed) {
        open(chain, s, start, stop, j, o, a, c, fixed);
        for (int64_t t = start; t < stop; ++t) emission.fill_pair(t, two_, values(t - start));
        filter();
    }
    // Filter in two calls.  The first call reads the transitions; before the second call values(i)
    // gets p(y[start + i] | a) and p(y[start + i] | c), up to a common factor.
    template <class Law>
    void open(const Chain &chain, const Law &s, int64_t start, int64_t stop, int32_t j, int32_t o,
              int32_t a, int32_t c, bool fixed) {
        two_[0] = a;
        two_[1] = c;
        n_ = stop - start;
        ends_.clear();
        if (s.has_runs()) find_runs(chain, start, stop);
        for (int u = 0; u < 2; ++u) {
            before_[u] = j >= 0 ? s.prob(start, j, two_[u]) : 1.0;
            after_[u] = o >= 0 ? s.prob(stop, two_[u], o) : 1.0;
        }
        // One law for all steps, unless it depends on their contexts.
        stride_ = s.varies_by_step();
        passes_.resize(stride_ ? n_ : 1);
        for (int64_t l = 1; l < (stride_ ? n_ : std::min<int64_t>(n_, 2)); ++l)
            for (int u = 0; u < 2; ++u)
                for (int v = 0; v < 2; ++v)
                    passes_[stride_ * l].p[u][v] = s.prob(start + begin(l), two_[u], two_[v]);
        if (fixed) before_[1] = 0.0;
        n_steps_ = stop - start;
        if (!s.has_runs()) return;
        inner_.resize(2 * static_cast<size_t>(n_steps_));
        // Nothing reads how the first step is entered; there may be no step before it.
        for (int64_t i = 1; i < n_steps_; ++i)
            for (int u = 0; u < 2; ++u) inner_[2 * i + u] = s.inner_prob(start + i, two_[u]);
    }
    double *values(int64_t i) {
        filtered_.resize(2 * static_cast<size_t>(n_steps_));
        return filtered_.data() + 2 * i;
    }
    void filter() {
        double before[2] = {before_[0], before_[1]}, seen[2];
        double *out = filtered_.data();
        for (int64_t l = 0; l < n_; ++l, out += 2) {
            if (l > 0) {
                const Pass &pass = passes_[stride_ * l];
                for (int v = 0; v < 2; ++v)
                    before[v] = out[-2] * pass.p[0][v] + out[-1] * pass.p[1][v];
            }
            // (Read before they are overwritten: a run has a step or more.)
            if (ends_.empty()) std::copy_n(out, 2, seen);
            else fill_run(begin(l), ends_[l], seen);
            double total = before[0] * seen[0] + before[1] * seen[1];
            if (SKIHMM_UNLIKELY(!(total > 0.0))) {
                // Both densities underflow: propose without them.
                seen[0] = seen[1] = 1.0;
                total = before[0] + before[1];
            }
            for (int v = 0; v < 2; ++v) out[v] = before[v] * seen[v] / total;
        }
    }
    // Draw the labels; q *= their probability given the filter.
    void draw(bitgen_t *g, int32_t *path, Product *q) const {
        trace(q, [&](int64_t l, const double *weights, double total) {
            const int u = uniform(g) * total >= weights[0] && weights[1] > 0.0;
            if (ends_.empty()) path[l] = two_[u];
            else std::fill(path + begin(l), path + ends_[l], two_[u]);
            return u;
        });
    }
    // q *= the probability of these labels.
    void read(const int32_t *path, Product *q) const {
        trace(q, [&](int64_t l, const double *, double) {
            return int(path[begin(l)] == two_[1]);
        });
    }
    // The number of labels to draw: one for every step, or for every run.
    int64_t size() const { return n_; }

  private:
    void find_runs(const Chain &chain, int64_t start, int64_t stop) {
        for (int64_t t = start + 1; t < stop; ++t)
            if (chain.begins_run(t)) ends_.push_back(t - start);
        ends_.push_back(stop - start);
        n_ = static_cast<int64_t>(ends_.size());
    }
    int64_t begin(int64_t l) const { return ends_.empty() ? l : l > 0 ? ends_[l - 1] : 0; }
    // Observations of the steps [from, to), and the coins between them, up to a factor.
    void fill_run(int64_t from, int64_t to, double *seen) const {
        seen[0] = seen[1] = 1.0;
        for (int64_t i = from; i < to; ++i) {
            for (int u = 0; u < 2; ++u) {
                if (i > from) seen[u] *= inner_[2 * i + u];
                seen[u] *= filtered_[2 * i + u];
            }
            const double most = std::max(seen[0], seen[1]);
            for (int u = 0; u < 2; ++u)
                if (most > 0.0) seen[u] /= most;
        }
    }
    template <class Choose> void trace(Product *q, Choose choose) const {
        double next[2] = {after_[0], after_[1]};
        for (int64_t l = n_ - 1; l >= 0; --l) {
            const double *now = filtered_.data() + 2 * l;
            const double weights[2] = {now[0] * next[0], now[1] * next[1]};
            const double total = weights[0] + weights[1];
            const int u = choose(l, weights, total);
            q->multiply(weights[u] / total);
            const Pass &pass = passes_[stride_ * l];
            next[0] = pass.p[0][u];
            next[1] = pass.p[1][u];
        }
    }

    // Transitions between the two states into a step.
    struct Pass { double p[2][2] = {}; };

    int32_t two_[2] = {};
    int64_t n_ = 0, n_steps_ = 0, stride_ = 0;
    double before_[2] = {}, after_[2] = {};
    std::vector<Pass> passes_;
    std::vector<int64_t> ends_;         // of runs, after the first step; none if steps are drawn
    std::vector<double> filtered_;      // by step or run: first state, second state
    std::vector<double> inner_;         // by step, if there are stages: of a step inside a run
};

}  // namespace skihmm
