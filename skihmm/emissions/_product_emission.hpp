// Several emissions, independent given the state.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "_emission.hpp"
#include "_slots.hpp"

namespace skihmm {

// out[k] += log(probs[k]); zero is impossible.
SKIHMM_CLONES static void add_logs(int32_t n, const double *probs, double *out) {
    for (int32_t k = 0; k < n; ++k)
        out[k] += probs[k] > 0.0 ? log_of(std::max(probs[k], 1e-300)) : -INFINITY;
}

class ProductEmission final : public Emission, public EmissionParameters {
  public:
    // One part or more, over the same steps.
    explicit ProductEmission(std::vector<std::shared_ptr<Emission>> parts)
        : parts_(std::move(parts)) {
        n_steps = parts_[0]->n_steps;
    }

    void add(int64_t t, int32_t k, bitgen_t *g, Product *r) override {
        for (const auto &part : parts_) part->add(t, k, g, r);
    }
    void remove(int64_t t, int32_t k, bitgen_t *g, Product *r) override {
        for (size_t i = parts_.size(); i-- > 0;) parts_[i]->remove(t, k, g, r);
    }
    double fill_probs(int64_t t, double *out) override {
        double scale = 0.0;
        logs_.assign(n_slots, 0.0);
        for (const auto &part : parts_) {
            scale += part->fill_probs(t, out);
            add_logs(n_slots, out, logs_.data());
        }
        double largest = *std::max_element(logs_.begin(), logs_.end());
        if (largest == -INFINITY) {
            // Inside a move that will be rejected: any proposal will do.
            logs_.assign(n_slots, 0.0);
            largest = 0.0;
        }
        fill_exp(n_slots, logs_.data(), largest, kLeastLog, out);
        return scale + largest;
    }
    void look_ahead(int64_t start, int64_t stop) override {
        for (const auto &part : parts_) part->look_ahead(start, stop);
    }
    void fill_pair(int64_t t, const int32_t *states, double *out) override {
        double pair[2], logs[2] = {0.0, 0.0};
        for (const auto &part : parts_) {
            part->fill_pair(t, states, pair);
            add_logs(2, pair, logs);
        }
        const double largest = std::max(logs[0], logs[1]);
        // If both are impossible the move will be rejected.
        for (int i = 0; i < 2; ++i)
            out[i] = largest == -INFINITY ? 1.0
                                          : std::exp(std::max(logs[i] - largest, kLeastLog));
    }
    void fill_prefixes(int64_t start, int64_t stop, int32_t k, bool backwards,
                       double *out) override {
        std::vector<double> part_out(stop - start);
        std::fill_n(out, stop - start, 0.0);
        for (const auto &part : parts_) {
            part->fill_prefixes(start, stop, k, backwards, part_out.data());
            for (int64_t i = 0; i < stop - start; ++i) out[i] += part_out[i];
        }
    }
    void resize(int32_t n) override {
        n_slots = n;
        for (const auto &part : parts_) part->resize(n);
    }
    void commit() override {
        for (const auto &part : parts_) part->commit();
    }
    void rollback() override {
        for (const auto &part : parts_) part->rollback();
    }
    double log_joint() const override {
        double lp = 0.0;
        for (const auto &part : parts_) lp += part->log_joint();
        return lp;
    }
    void draw_hyperparameters(bitgen_t *g) override {
        for (const auto &part : parts_) part->draw_hyperparameters(g);
    }
    void settle(const int32_t *states) override {
        for (const auto &part : parts_) part->settle(states);
    }
    size_t n_bytes() const override {
        size_t total = 8 * (row_.capacity() + logs_.capacity());
        for (const auto &part : parts_) total += part->n_bytes();
        return total;
    }
    EmissionParameters *parameters() override {
        for (const auto &part : parts_)
            if (!part->parameters()) return nullptr;
        return this;
    }

    // ---- parameters

    void draw_parameters(const std::vector<int32_t> &slots, const Workers &workers,
                         bitgen_t *g) override {
        for (const auto &part : parts_)
            part->parameters()->draw_parameters(slots, workers, g);
    }
    const double *likelihoods(int64_t t, const int32_t *occupancy) override {
        const auto counts = [&](int32_t k) { return k == kNew || occupancy[k] > 0; };
        // Room for whole vectors of sixteen.
        row_.assign(n_slots + 16, 0.0);
        logs_.assign(n_slots, 0.0);
        for (const auto &part : parts_) {
            // Free slots have arbitrary values, and zero probability is possible here.
            const double *row = part->parameters()->likelihoods(t, occupancy);
            for (int32_t k = 0; k < n_slots; ++k)
                row_[k] = std::max(counts(k) ? row[k] : 1.0, 1e-300);
            add_logs(n_slots, row_.data(), logs_.data());
        }
        double largest = -INFINITY;
        for (int32_t k = 0; k < n_slots; ++k)
            if (counts(k)) largest = std::max(largest, logs_[k]);
        for (int32_t k = 0; k < n_slots; ++k) {
            const bool is_possible = counts(k) && logs_[k] > -INFINITY;
            row_[k] = is_possible ? std::exp(std::max(logs_[k] - largest, kLeastLog)) : 0.0;
        }
        return row_.data();
    }
    void draw_newborn(int32_t k, int64_t t, bitgen_t *g) override {
        for (const auto &part : parts_) part->parameters()->draw_newborn(k, t, g);
    }
    bool is_concurrent() const override {
        return std::all_of(parts_.begin(), parts_.end(), [](const auto &part) {
            return part->parameters()->is_concurrent();
        });
    }
    void fill_log_likelihoods(int64_t t, const int32_t *slots, int32_t n,
                              double *out) const override {
        static thread_local std::vector<double> logs;
        logs.resize(n);
        std::fill_n(out, n, 0.0);
        for (const auto &part : parts_) {
            part->parameters()->fill_log_likelihoods(t, slots, n, logs.data());
            for (int32_t i = 0; i < n; ++i) out[i] += logs[i];
        }
    }
    void reseat(const int32_t *states, const Workers &workers, bitgen_t *g) override {
        for (const auto &part : parts_) part->parameters()->reseat(states, workers, g);
    }

  private:
    std::vector<std::shared_ptr<Emission>> parts_;
    std::vector<double> row_, logs_;        // scratch
};

}  // namespace skihmm
