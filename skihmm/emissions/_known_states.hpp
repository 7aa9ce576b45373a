// Known states of some steps, as an observation.
//
// A known step has a label.  Steps of one label share a state, and no state has steps of two
// labels; the state of a label is not fixed.  As an emission: p(label | state k) is one if the
// state has this label already, or has none while no other state has this label, and zero
// otherwise.  The product over the steps, in any order, is one if states and labels agree and
// zero otherwise, so that a sampler of the posterior given these observations samples the
// posterior given the known states.
//
// If every state is known, a state without a label may begin only while labels without a state
// outnumber such states: p is zero if steps so far cannot be completed such that every state has a
// label, and so, in any order, the product over all steps is one if every state has a label and
// zero otherwise.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "_emission.hpp"
#include "_slots.hpp"

namespace skihmm {

// One part of a product.  Alone among emissions it has probabilities of zero.
class KnownStates final : public Emission, public EmissionParameters {
  public:
    // Labels 0, 1, ... by step, -1 if unknown; the array must outlive this.
    KnownStates(const int32_t *labels, int64_t n, bool closed) : labels_(labels) {
        n_steps = n;
        is_closed = closed;
        for (int64_t t = 0; t < n; ++t) n_open_ = std::max(n_open_, labels[t] + 1);
        n_states_of_.assign(n_open_, 0);
    }

    void add(int64_t t, int32_t k, bitgen_t *, Product *r) override {
        r->multiply_log(std::log(prob(t, k)));
        if (counts(t)) record(k, labels_[t], 1);
    }
    void remove(int64_t t, int32_t k, bitgen_t *, Product *r) override {
        if (counts(t)) record(k, labels_[t], -1);
        r->multiply_log(std::log(prob(t, k)));
    }
    double fill_probs(int64_t t, double *out) override {
        for (int32_t k = 0; k < n_slots; ++k) out[k] = prob(t, k);
        return 0.0;
    }
    void fill_pair(int64_t t, const int32_t *states, double *out) override {
        for (int i = 0; i < 2; ++i) out[i] = prob(t, states[i]);
    }
    // With the labels that the states have so far.
    void fill_prefixes(int64_t start, int64_t stop, int32_t k, bool backwards,
                       double *out) override {
        double lp = 0.0;
        for (int64_t i = 0; i < stop - start; ++i)
            out[i] = lp += std::log(prob(backwards ? stop - 1 - i : start + i, k));
    }
    bool has_tables() const override { return false; }
    void commit() override { journal_.clear(); }
    void rollback() override {
        for (size_t i = journal_.size(); i-- > 0;)
            change(journal_[i].slot, journal_[i].label, -journal_[i].n);
        journal_.clear();
    }
    void resize(int32_t n) override {
        n_slots = n;
        slots_.resize(n);
        sizes_.resize(n);
    }
    double log_joint() const override { return 0.0; }
    void draw_hyperparameters(bitgen_t *) override {}
    void recount(const int32_t *slots) override {
        for (std::vector<Held> &held : slots_) held.clear();
        n_states_of_.assign(n_states_of_.size(), 0);
        sizes_.assign(sizes_.size(), 0);
        n_open_ = static_cast<int32_t>(n_states_of_.size());
        n_blank_ = 0;
        for (int64_t t = 0; t < n_steps; ++t)
            if (counts(t)) change(slots[t], labels_[t], 1);
        journal_.clear();
    }
    size_t n_bytes() const override { return 4 * n_steps + 40 * slots_.size(); }
    EmissionParameters *parameters() override { return this; }

    // Labels are of the data: counts are remade by recount, and a record has none.
    void write(const Archive &, const std::vector<int32_t> &) override {}
    void check_record(const Archive &, const std::vector<int32_t> &labels) override {
        if (!is_kept_by(labels)) refuse("emission", "the states are not the known ones");
    }
    void load(const Archive &, int32_t) override {}
    std::string check(const std::vector<int32_t> &slots) override {
        if (!is_kept_by(slots)) return "the states are not the known ones";
        KnownStates recounted(labels_, n_steps, is_closed);
        recounted.resize(n_slots);
        recounted.recount(slots.data());
        return equals(recounted) ? "" : "the known states differ from a recount of the labels";
    }

    // ---- labels of states that are fixed during a sweep, like drawn parameters

    void draw_parameters(const std::vector<int32_t> &, const Workers &, bitgen_t *) override {
        slot_of_.assign(n_states_of_.size(), -1);
        size_of_.assign(n_states_of_.size(), 0);
        for (size_t k = 0; k < slots_.size(); ++k)
            for (const Held &held : slots_[k]) {
                slot_of_[held.label] = static_cast<int32_t>(k);
                size_of_[held.label] = held.n;
            }
    }
    const double *likelihoods(int64_t t, const int32_t *occupancy) override {
        probs_.assign(n_slots, is_free(t) && !is_closed);
        if (is_free(t)) {
            if (is_closed)
                for (const int32_t k : slot_of_) probs_[k] = 1.0;
            return probs_.data();
        }
        const int32_t known = slot_of_[labels_[t]];
        probs_[known] = 1.0;
        // A new state may have the label only if the label's state died with its only step.
        if (size_of_[labels_[t]] == 1 && occupancy[known] <= 1) probs_[kNew] = 1.0;
        return probs_.data();
    }
    void fill_log_row(int64_t t, const int32_t *occupancy, double *out) override {
        std::copy_n(KnownStates::likelihoods(t, occupancy), n_slots, out);
        take_logs(n_slots, 0.0, out);
    }
    void draw_newborn(int32_t k, int64_t t, bitgen_t *) override {
        if (!is_free(t)) slot_of_[labels_[t]] = k;
    }
    void reseat(const int32_t *states, const Workers &, bitgen_t *) override {
        recount(states);
    }
    void fill_log_likelihoods(int64_t t, const int32_t *slots, int32_t n,
                              double *out) const override {
        const auto has_label = [&](int32_t k) {
            return std::find(slot_of_.begin(), slot_of_.end(), k) != slot_of_.end();
        };
        for (int32_t i = 0; i < n; ++i) {
            const bool can_be = is_free(t) ? !is_closed || has_label(slots[i])
                                           : slots[i] == slot_of_[labels_[t]];
            out[i] = can_be ? 0.0 : -INFINITY;
        }
    }

  private:
    // Whether states with these slots agree with the labels.
    bool is_kept_by(const std::vector<int32_t> &slots) const {
        KnownStates other(labels_, n_steps, is_closed);
        Product r;
        other.resize(slots.empty() ? 0 : *std::max_element(slots.begin(), slots.end()) + 1);
        for (int64_t t = 0; t < n_steps; ++t) other.add(t, slots[t], nullptr, &r);
        return r.log() == 0.0;
    }
    // Whether counts equal the counts after a recount.
    bool equals(const KnownStates &other) const {
        for (size_t k = 0; k < slots_.size(); ++k) {
            if (slots_[k].size() != other.slots_[k].size()) return false;
            for (const Held &held : slots_[k])
                if (other.count(static_cast<int32_t>(k), held.label) != held.n) return false;
        }
        return n_states_of_ == other.n_states_of_;
    }

    struct Held { int32_t label, n; };
    struct Change { int32_t slot, label, n; };

    bool is_free(int64_t t) const { return labels_[t] < 0; }
    bool counts(int64_t t) const { return is_closed || !is_free(t); }
    bool is_blank(int32_t k) const { return sizes_[k] > 0 && slots_[k].empty(); }
    double prob(int64_t t, int32_t k) const {
        if (is_closed && sizes_[k] == 0 && n_blank_ >= n_open_) return 0.0;
        if (is_free(t)) return 1.0;
        const int32_t n_alike = count(k, labels_[t]) > 0;
        return static_cast<int32_t>(slots_[k].size()) == n_alike
               && n_states_of_[labels_[t]] == n_alike;
    }
    void record(int32_t k, int32_t label, int32_t n) {
        change(k, label, n);
        journal_.push_back({k, label, n});
    }
    int32_t count(int32_t k, int32_t label) const {
        for (const Held &held : slots_[k])
            if (held.label == label) return held.n;
        return 0;
    }
    void change(int32_t k, int32_t label, int32_t n) {
        n_blank_ -= is_blank(k);
        sizes_[k] += n;
        if (label >= 0) hold(k, label, n);
        n_blank_ += is_blank(k);
    }
    void hold(int32_t k, int32_t label, int32_t n) {
        std::vector<Held> &held = slots_[k];
        size_t i = 0;
        while (i < held.size() && held[i].label != label) ++i;
        if (i == held.size()) {
            held.push_back({label, 0});
            n_open_ -= ++n_states_of_[label] == 1;
        }
        held[i].n += n;
        if (held[i].n > 0) return;
        held[i] = held.back();
        held.pop_back();
        n_open_ += --n_states_of_[label] == 0;
    }

    const int32_t *const labels_;
    // Labels of a slot: one, except in moves that will be rejected.
    std::vector<std::vector<Held>> slots_;
    std::vector<int32_t> n_states_of_;      // number of slots with a label
    std::vector<int32_t> sizes_;            // steps of a slot; unknown ones if closed
    int32_t n_open_ = 0, n_blank_ = 0;      // labels without a slot, slots without a label
    std::vector<Change> journal_;
    std::vector<int32_t> slot_of_, size_of_;    // by label
    std::vector<double> probs_;
};

}  // namespace skihmm
