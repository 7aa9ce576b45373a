// Known states of some steps, as an observation.
//
// A known step has a label.  Steps of one label share a state, and no state has steps of two
// labels; the state of a label is not fixed.  As an emission: p(label | state k) is one if the
// state has this label already, or has none while no other state has this label, and zero
// otherwise.  The product over the steps, in any order, is one if states and labels agree and
// zero otherwise, so that a sampler of the posterior given these observations samples the
// posterior given the known states.
#pragma once
#include <cmath>
#include <cstdint>
#include <vector>

#include "_family.hpp"

namespace skihmm {

// out[k] += log(probs[k]), which are positive.
SKIHMM_CLONES static void add_logs(int32_t n, const double *probs, double *out) {
    for (int32_t k = 0; k < n; ++k) out[k] += log_of(probs[k]);
}

class KnownStates {
  public:
    // Labels 0, 1, ... by step, -1 if unknown; the array must outlive this.
    void configure(const int32_t *labels, int64_t n_steps) {
        labels_ = labels;
        n_steps_ = n_steps;
        int32_t n = 0;
        for (int64_t t = 0; t < n_steps; ++t) n = labels[t] >= n ? labels[t] + 1 : n;
        n_states_of_.assign(n, 0);
        slots_.clear();
    }
    bool is_active() const { return labels_ != nullptr; }
    bool is_free(int64_t t) const { return labels_ == nullptr || labels_[t] < 0; }

    void resize(int32_t n_slots) { slots_.resize(n_slots); }
    // Log probability of the label of step t in slot k: 0 or -infinity.
    double log_prob(int64_t t, int32_t k) const {
        if (is_free(t)) return 0.0;
        const int32_t own = count(k, labels_[t]) > 0;
        const bool is_possible = static_cast<int32_t>(slots_[k].size()) == own
                                 && n_states_of_[labels_[t]] == own;
        return is_possible ? 0.0 : -INFINITY;
    }
    void add(int64_t t, int32_t k) {
        if (is_free(t)) return;
        change(k, labels_[t], 1);
        journal_.push_back({k, labels_[t], 1});
    }
    void remove(int64_t t, int32_t k) {
        if (is_free(t)) return;
        change(k, labels_[t], -1);
        journal_.push_back({k, labels_[t], -1});
    }
    void commit() { journal_.clear(); }
    void rollback() {
        for (size_t i = journal_.size(); i-- > 0;)
            change(journal_[i].slot, journal_[i].label, -journal_[i].n);
        journal_.clear();
    }
    void settle(const int32_t *slots) {
        for (std::vector<Held> &held : slots_) held.clear();
        n_states_of_.assign(n_states_of_.size(), 0);
        for (int64_t t = 0; t < n_steps_; ++t)
            if (!is_free(t)) change(slots[t], labels_[t], 1);
        journal_.clear();
    }
    // Whether states with these slots agree with the labels.
    bool is_kept_by(const int32_t *slots) const {
        KnownStates other;
        other.configure(labels_, n_steps_);
        int32_t n = 0;
        for (int64_t t = 0; t < n_steps_; ++t) n = slots[t] >= n ? slots[t] + 1 : n;
        other.resize(n);
        for (int64_t t = 0; t < n_steps_; ++t) {
            if (other.log_prob(t, slots[t]) != 0.0) return false;
            other.add(t, slots[t]);
        }
        return true;
    }
    // The same counts as after settle.
    bool equals(const KnownStates &other) const {
        for (size_t k = 0; k < slots_.size(); ++k) {
            if (slots_[k].size() != other.slots_[k].size()) return false;
            for (const Held &held : slots_[k])
                if (other.count(static_cast<int32_t>(k), held.label) != held.n) return false;
        }
        return n_states_of_ == other.n_states_of_;
    }

    // ---- labels of states that are fixed during a sweep, like drawn parameters

    void draw() {
        slot_of_.assign(n_states_of_.size(), -1);
        size_of_.assign(n_states_of_.size(), 0);
        for (size_t k = 0; k < slots_.size(); ++k)
            for (const Held &held : slots_[k]) {
                slot_of_[held.label] = static_cast<int32_t>(k);
                size_of_[held.label] = held.n;
            }
    }
    // A new state may have the label only if the label's state died with its only step.
    bool may_be_fresh(int64_t t, const int32_t *occupancy) const {
        return is_free(t)
               || (size_of_[labels_[t]] == 1 && occupancy[slot_of_[labels_[t]]] <= 1);
    }
    // The only slot that may emit the label of step t.
    int32_t slot_of(int64_t t) const { return slot_of_[labels_[t]]; }
    void draw_newborn(int32_t k, int64_t t) {
        if (!is_free(t)) slot_of_[labels_[t]] = k;
    }

    size_t n_bytes() const { return 4 * n_steps_ + 32 * slots_.size(); }

  private:
    struct Held { int32_t label, n; };
    struct Change { int32_t slot, label, n; };

    int32_t count(int32_t k, int32_t label) const {
        for (const Held &held : slots_[k])
            if (held.label == label) return held.n;
        return 0;
    }
    void change(int32_t k, int32_t label, int32_t n) {
        std::vector<Held> &held = slots_[k];
        size_t i = 0;
        while (i < held.size() && held[i].label != label) ++i;
        if (i == held.size()) {
            held.push_back({label, 0});
            ++n_states_of_[label];
        }
        held[i].n += n;
        if (held[i].n > 0) return;
        held[i] = held.back();
        held.pop_back();
        --n_states_of_[label];
    }

    const int32_t *labels_ = nullptr;
    int64_t n_steps_ = 0;
    // Labels of a slot: one, except in moves that will be rejected.
    std::vector<std::vector<Held>> slots_;
    std::vector<int32_t> n_states_of_;      // number of slots with a label
    std::vector<Change> journal_;
    std::vector<int32_t> slot_of_, size_of_;    // by label
};

}  // namespace skihmm
