// Labels of consecutive steps out of two states, by forward filtering and backward sampling.
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
    // every step; j and o are the labels before and after (o = -1: none).  All probabilities are at
    // the current seating.  `fixed`: the first label is a.
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
                    passes_[stride_ * l].p[u][v] = s.prob(start + l, two_[u], two_[v]);
        if (fixed) before_[1] = 0.0;
    }
    double *values(int64_t i) {
        filtered_.resize(2 * static_cast<size_t>(n_));
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
            std::copy_n(out, 2, seen);
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
            path[l] = two_[u];
            return u;
        });
    }
    // q *= the probability of these labels.
    void read(const int32_t *path, Product *q) const {
        trace(q, [&](int64_t l, const double *, double) {
            return int(path[l] == two_[1]);
        });
    }

  private:
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
    int64_t n_ = 0, stride_ = 0;
    double before_[2] = {}, after_[2] = {};
    std::vector<Pass> passes_;
    std::vector<double> filtered_;      // by step: first state, second state
};

}  // namespace skihmm
