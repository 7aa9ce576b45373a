// Transitions as kernels see them: the law of the label after restaurant j, taken apart.
//
//     p(k | j) = n_jk c_j + smooth_j mass(k),     c_j = 1/total(j),   smooth_j = scale() c_j
//
// Sparse whole-number counts, listed by restaurant (rows) and by label (columns), with one
// scale c_j for a restaurant, plus a part of rank one.  In products of such probabilities
// kernels expand this sum, and so a step costs the non-zeros and not all pairs of labels.
// Labels are slots (_slots.hpp).
#pragma once
#include <algorithm>
#include <cstdint>

#include "_seating.hpp"
#include "_slots.hpp"

namespace skihmm {

// The transitions of the HDP-HMM.
class HCRPTransitions : public Seating<InfiniteRoot> {
  public:
    int32_t n_slots() const { return static_cast<int32_t>(columns.size()); }
    // Whether some table serves the label.  All others have the law of kNew.
    bool is_served(int32_t k) const { return base.dish_tables[k] > 0; }
    // The mass of a label that the smooth part of a sum over labels has to count: in it kNew
    // stands for all labels that no table serves.
    double own_mass(int32_t k) const {
        return k == kNew ? base.gamma : static_cast<double>(base.dish_tables[k]);
    }

    // out[k] = p(k | j), 0 of labels for which kNew stands.  O(K + row).
    void fill_row(int32_t j, double *out) const {
        const double c = 1.0 / total(j), smooth = scale() * c;
        for (int32_t k = 0; k < n_slots(); ++k) out[k] = smooth * own_mass(k);
        const Line &row = rows[j];
        for (int32_t i = 0; i < row.size; ++i) out[row.ids[i]] += c * row.counts[i];
    }
    // out[k] = sum_j weights[j] p(k | j): a forward step, O(non-zeros + K).
    void push(const double *weights, double *out) const {
        std::fill_n(out, n_slots(), 0.0);
        double smooth = 0.0;
        for (int32_t j = 0; j < n_slots(); ++j) {
            if (weights[j] == 0.0) continue;
            const double share = weights[j] / total(j);
            smooth += share;
            const Line &row = rows[j];
            for (int32_t i = 0; i < row.size; ++i) out[row.ids[i]] += share * row.counts[i];
        }
        smooth *= scale();
        for (int32_t k = 0; k < n_slots(); ++k) out[k] += smooth * own_mass(k);
    }
    // out[j] = sum_k p(k | j) values[k]: a backward step, O(non-zeros + K).
    void pull(const double *values, double *out) const {
        double smooth = own_mass(kNew) * values[kNew];
        for (int32_t k = kStart; k < n_slots(); ++k) smooth += own_mass(k) * values[k];
        smooth *= scale();
        for (int32_t j = 0; j < n_slots(); ++j) {
            double sum = smooth;
            const Line &row = rows[j];
            for (int32_t i = 0; i < row.size; ++i)
                sum += row.counts[i] * values[row.ids[i]];
            out[j] = sum / total(j);
        }
    }
    // out[k] = max_j weights[j] p(k | j), and the j that reaches it: a Viterbi step.
    void push_max(const double *weights, double *out, int32_t *argmax_out) const {
        // The smooth part is largest for one j whatever k is; a j with n_jk > 0 beats its
        // own smooth part, so the maximum is over that one j and the column's entries.
        int32_t best = kNew;
        double largest = -1.0;
        for (int32_t j = 0; j < n_slots(); ++j) {
            const double share = weights[j] / total(j);
            if (share > largest) {
                largest = share;
                best = j;
            }
        }
        const double smooth = largest * scale();
        for (int32_t k = 0; k < n_slots(); ++k) {
            out[k] = smooth * own_mass(k);
            argmax_out[k] = best;
        }
        for (int32_t j = 0; j < n_slots(); ++j) {
            if (weights[j] == 0.0) continue;
            const double share = weights[j] / total(j);
            const Line &row = rows[j];
            for (int32_t i = 0; i < row.size; ++i) {
                const int32_t k = row.ids[i];
                const double value = share * dish_weight(static_cast<double>(row.counts[i]),
                                                         new_table(k));
                if (!(value > out[k])) continue;
                out[k] = value;
                argmax_out[k] = j;
            }
        }
    }
};

}  // namespace skihmm
