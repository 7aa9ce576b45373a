// The state of one chain: all that its sweeps change.
//
// Labels are slots while a sweep runs (_slots.hpp).  A record numbers its states 0, 1, ...
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "_emission.hpp"
#include "_slots.hpp"
#include "_transitions.hpp"

namespace skihmm {

class Chain {
  public:
    using Transitions = HCRPTransitions;

    const int64_t n_steps;
    int32_t n_slots = 0;
    std::vector<int32_t> states;        // states[t]: slot of step t, kFirst <= slot < n_slots
    std::vector<uint8_t> first;         // whether step t, or n_steps, begins a sequence
    std::vector<int32_t> hints;         // cell of the draw into step t (Restaurants::add)
    std::vector<int32_t> occupancy;     // steps per slot
    std::vector<int32_t> free_slots;    // slots that no step carries, used from the back
    std::vector<int32_t> free_place;    // place of a free slot in free_slots, else -1
    // Within a run of block moves, the slots whose statistics have changed since a proposal's
    // last `prepare`: those that cache per-state weights refresh exactly these.  Between runs
    // it is not valid: `attach` finds those changes.
    Stack<int32_t> touched;
    std::shared_ptr<HCRPTransitions> transitions;
    std::shared_ptr<Emission> emission;
    bitgen_t *bits;                     // borrowed

    // starts: first step of every sequence, increasing, starts[0] = 0.
    Chain(const std::vector<int32_t> &starts, std::shared_ptr<HCRPTransitions> transitions,
          std::shared_ptr<Emission> emission, bitgen_t *bits)
        : n_steps(emission->n_steps), states(n_steps, kFirst), first(n_steps + 1, 0),
          hints(n_steps, -1), transitions(std::move(transitions)),
          emission(std::move(emission)), bits(bits) {
        for (const int32_t t : starts) first[t] = 1;
        first[n_steps] = 1;
        this->transitions->set_steps(n_steps);
        set_slots(kFirst + 1);
    }

    bool is_last(int64_t t) const { return first[t + 1]; }
    // The labels before and after x[t], -1 at an end of its sequence.
    int32_t previous(int64_t t) const { return first[t] ? kStart : states[t - 1]; }
    int32_t successor(int64_t t) const { return is_last(t) ? -1 : states[t + 1]; }
    // The i-th slot that no step carries.  Valid for i < the number given to reserve at the
    // start of the move; stays free until the move is committed.
    int32_t free_slot(size_t i) const { return free_slots[free_slots.size() - 1 - i]; }
    // Only between moves: afterwards n_free slots are free and nothing reallocates until the
    // move ends.  Returns whether storage has grown.
    bool reserve(int64_t n_free) {
        const int64_t missing = n_free - static_cast<int64_t>(free_slots.size());
        if (SKIHMM_LIKELY(missing <= 0)) return false;
        set_slots(static_cast<int32_t>(n_slots + missing + n_slots / 4 + 4));
        return true;
    }
    // x[t] = k for good; keeps occupancy and the free slots in step.
    void assign(int64_t t, int32_t k) {
        const int32_t old = states[t];
        if (old == k) return;
        if (--occupancy[old] == 0) {
            free_place[old] = static_cast<int32_t>(free_slots.size());
            free_slots.push_back(old);
        }
        if (occupancy[k]++ == 0) {
            const int32_t moved = free_slots.back();
            free_slots[free_place[k]] = moved;
            free_place[moved] = free_place[k];
            free_slots.pop_back();
            free_place[k] = -1;
        }
        states[t] = k;
    }

    // Replace the labels of all steps, given the steps of every slot: `path` gets the old ones.
    void replace_path(std::vector<int32_t> *path, const std::vector<int32_t> &steps_of) {
        states.swap(*path);
        occupancy = steps_of;
        rebuild_free();
    }

    // Set labels 0 .. n - 1, all of them used, and seat all customers in the order of time.
    void start_from(const int32_t *labels) {
        Product ignored;
        for (int64_t t = 0; t < n_steps; ++t)
            if (occupancy[states[t]] > 0) emission->remove(t, states[t], bits, &ignored);
        emission->commit();
        transitions->clear();
        const int32_t n_states = 1 + *std::max_element(labels, labels + n_steps);
        set_slots(std::max(n_slots, kFirst + n_states));
        set_labels(labels);
        transitions->draw_prior_weights(bits);
        for (int64_t t = 0; t < n_steps; ++t) {
            transitions->add_draw(t, previous(t), states[t], bits, &hints[t]);
            emission->add(t, states[t], bits, &ignored);
            // Not one journal of all steps.
            if (t % 1024 != 1023) continue;
            transitions->commit();
            emission->commit();
        }
        transitions->commit();
        emission->commit();
    }
    // Labels of slots in a record: states in the order of their slots, kStart their number, -1 a
    // free slot.
    std::vector<int32_t> record_labels() const {
        std::vector<int32_t> labels(n_slots, -1);
        labels[kStart] = 0;
        for (int32_t k = kFirst; k < n_slots; ++k)
            if (occupancy[k] > 0) labels[k] = labels[kStart]++;
        return labels;
    }
    // Load a checked record with the labels of all steps; the emission is loaded and settled
    // afterwards.
    template <class Label> void load(const TransitionsRecord &record, const Label *labels) {
        // A few spare slots, a function of the record only, so that resumed chains grow at
        // the same moments.
        const int32_t n = kFirst + record.n_states + 8 + record.n_states / 16;
        transitions->load(record, n);
        set_slots(n);
        set_labels(labels);
        transitions->recount_coins([&](int64_t t) { return previous(t); });
        touched.clear();
    }
    // Refuse a checked record whose path is not `labels`.
    void check_path(const TransitionsRecord &record, const std::vector<int32_t> &labels) const {
        std::vector<int32_t> rows(n_steps);
        for (int64_t t = 0; t < n_steps; ++t)
            rows[t] = first[t] ? record.n_states : labels[t - 1];
        transitions->check_path(record, rows, labels);
    }
    // Draw all hyperparameters, and weights of rows, given labels and seating.
    void draw_hyperparameters() {
        emission->draw_hyperparameters(bits);
        transitions->draw_hyperparameters(bits);
    }
    double log_joint() const {
        return transitions->log_joint(states, first) + emission->log_joint_without_weights();
    }
    size_t n_bytes() const {
        return transitions->n_bytes() + emission->n_bytes() + 9 * n_steps + 16 * n_slots;
    }

  private:
    void set_slots(int32_t n) {
        n_slots = n;
        transitions->resize(n);
        emission->resize(n);
        occupancy.resize(n, 0);
        rebuild_free();
    }
    template <class Label> void set_labels(const Label *labels) {
        occupancy.assign(n_slots, 0);
        for (int64_t t = 0; t < n_steps; ++t) {
            states[t] = kFirst + labels[t];
            ++occupancy[states[t]];
        }
        rebuild_free();
    }
    // Low slots are handed out first.
    void rebuild_free() {
        free_slots.clear();
        free_place.assign(n_slots, -1);
        for (int32_t k = n_slots - 1; k >= kFirst; --k) {
            if (occupancy[k] > 0) continue;
            free_place[k] = static_cast<int32_t>(free_slots.size());
            free_slots.push_back(k);
        }
    }
};

}  // namespace skihmm
