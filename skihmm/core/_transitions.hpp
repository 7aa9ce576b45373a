// Transitions as kernels see them: the law of the label after restaurant j, taken apart.
//
//     p(k | j) = n_jk c_j + smooth_j mass(k),     c_j = 1/total(j),   smooth_j = scale() c_j
//
// Sparse whole-number counts, listed by restaurant (rows) and by label (columns), with one
// scale c_j for a restaurant, plus a part of rank one.  In products of such probabilities
// kernels expand this sum, and so a step costs the non-zeros and not all pairs of labels.
// Labels are slots (_slots.hpp).
//
// The class owns its hyperparameters, with their posterior draw, and its record: what a record
// contains is written here and in _franchise.pyx, which converts it to arrays.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "_concentration.hpp"
#include "_record.hpp"
#include "_seating.hpp"
#include "_slots.hpp"

namespace skihmm {

// The transitions of the HDP-HMM.
class HCRPTransitions : public Seating<InfiniteRoot> {
    using Franchise = Seating<InfiniteRoot>;
    static constexpr const char *kWhat = "transitions";

  public:
    // Transitions of the states 0 .. n_states - 1; row n_states is the start restaurant.
    struct Record {
        int32_t n_states = 0;
        std::vector<double> hyperparameters;
        SeatingRecord seating;

        // Refuse counts that are not those of some path over all the states.  The seating has
        // passed check_record.
        void check() const {
            if (static_cast<size_t>(n_states) > seating.rows.size())
                refuse(kWhat, std::to_string(seating.rows.size()) + " cells are too few for "
                              + std::to_string(n_states) + " states");
            std::vector<int64_t> entered(n_states, 0);
            std::vector<int64_t> left(static_cast<size_t>(n_states) + 1, 0);
            for (size_t i = 0; i < seating.rows.size(); ++i) {
                left[seating.rows[i]] += seating.n_customers[i];
                entered[seating.dishes[i]] += seating.n_customers[i];
            }
            for (int32_t k = 0; k < n_states; ++k) {
                if (entered[k] == 0)
                    refuse(kWhat, "state " + std::to_string(k) + " is never entered; expected "
                                  "every state to be used");
                if (left[k] > entered[k])
                    refuse(kWhat, "state " + std::to_string(k) + " is left "
                                  + std::to_string(left[k]) + " times, but entered only "
                                  + std::to_string(entered[k]) + " times");
            }
            if (left[n_states] == 0) refuse(kWhat, "no sequence begins");
        }
        // Refuse the record of another path: labels[t] is drawn in restaurant rows[t].
        void check_path(const std::vector<int32_t> &rows,
                        const std::vector<int32_t> &labels) const {
            check_customers(seating, rows.data(), labels.data(), 1,
                            static_cast<int64_t>(labels.size()), n_states + 1, kWhat);
        }
    };

    // ---- hyperparameters

    // In the order of their names in _franchise.pyx.
    std::vector<double> hyperparameters() const { return {alpha, base.gamma}; }
    void set_hyperparameters(const std::vector<double> &values) {
        set_concentrations(values[0], values[1]);
    }
    // Gamma(shape, rate) is the prior of each; without this call they are fixed.
    void set_prior(double shape, double rate) {
        prior_shape_ = shape;
        prior_rate_ = rate;
    }
    void draw_hyperparameters(bitgen_t *g) {
        if (prior_shape_ > 0.0) draw_concentrations(this, 1, prior_shape_, prior_rate_, g);
    }

    // ---- records

    // Slot k is the state labels[k], or -1; the last label is that of kStart.
    Record record(const std::vector<int32_t> &labels) const {
        return {labels[kStart], hyperparameters(),
                relabelled(Franchise::record(), labels, &labels)};
    }
    // Replace everything by a record that has been checked: state k has the slot kFirst + k.
    void load(const Record &record, int32_t n_slots) {
        SeatingRecord seating = record.seating;
        for (int32_t &row : seating.rows)
            row = row == record.n_states ? kStart : kFirst + row;
        for (int32_t &dish : seating.dishes) dish += kFirst;
        set_hyperparameters(record.hyperparameters);
        Franchise::load(seating, n_slots, n_slots);
    }

    // ---- probabilities

    // The restaurant in which step t is drawn after label j, by slots or by the labels of a
    // record.
    int32_t restaurant(int32_t j, int64_t) const { return j; }
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

  private:
    double prior_shape_ = 0.0, prior_rate_ = 0.0;
};

}  // namespace skihmm
