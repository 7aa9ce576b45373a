// Several emissions, independent given the state.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "_emission.hpp"
#include "_slots.hpp"

namespace skihmm {

class ProductEmission final : public Emission, public EmissionParameters {
  public:
    // One part or more, over the same steps.
    explicit ProductEmission(std::vector<std::shared_ptr<Emission>> of) {
        parts = std::move(of);
        n_steps = parts[0]->n_steps;
        for (const auto &part : parts) is_closed |= part->is_closed;
    }

    void add(int64_t t, int32_t k, bitgen_t *g, Product *r) override {
        for (const auto &part : parts) part->add(t, k, g, r);
    }
    void remove(int64_t t, int32_t k, bitgen_t *g, Product *r) override {
        for (size_t i = parts.size(); i-- > 0;) parts[i]->remove(t, k, g, r);
    }
    double fill_probs(int64_t t, double *out) override {
        sums_.resize(n_slots);
        ProductEmission::fill_logs(t, sums_.data());
        return fill_floored(n_slots, sums_.data(), out);
    }
    void fill_logs(int64_t t, double *out) override {
        sum(n_slots, out, [&](Emission &part, double *logs) { part.fill_logs(t, logs); });
    }
    void fill_pair(int64_t t, const int32_t *states, double *out) override {
        double logs[2];
        ProductEmission::fill_log_pair(t, states, logs);
        fill_floored_pair(logs, out);
    }
    void fill_log_pair(int64_t t, const int32_t *states, double *out) override {
        sum(2, out, [&](Emission &part, double *logs) { part.fill_log_pair(t, states, logs); });
    }
    void fill_prefixes(int64_t start, int64_t stop, int32_t k, bool backwards,
                       double *out) override {
        sum(stop - start, out, [&](Emission &part, double *logs) {
            part.fill_prefixes(start, stop, k, backwards, logs);
        });
    }
    void resize(int32_t n) override {
        n_slots = n;
        for (const auto &part : parts) part->resize(n);
    }
    bool has_tables() const override {
        for (const auto &part : parts)
            if (part->has_tables()) return true;
        return false;
    }
    void commit() override {
        for (const auto &part : parts) part->commit();
    }
    void rollback() override {
        for (const auto &part : parts) part->rollback();
    }
    double log_joint() const override {
        return total([](const Emission &part) { return part.log_joint(); });
    }
    void draw_hyperparameters(bitgen_t *g) override {
        for (const auto &part : parts) part->draw_hyperparameters(g);
    }
    void recount(const int32_t *states) override {
        for (const auto &part : parts) part->recount(states);
    }
    size_t n_bytes() const override {
        size_t total = 8 * (row_.capacity() + sums_.capacity() + logs_.capacity());
        for (const auto &part : parts) total += part->n_bytes();
        return total;
    }
    void write(const Archive &archive, const std::vector<int32_t> &labels) override {
        each(archive, [&](Emission &part, const Archive &own) { part.write(own, labels); });
    }
    void check_record(const Archive &archive, const std::vector<int32_t> &labels) override {
        each(archive, [&](Emission &part, const Archive &own) { part.check_record(own, labels); });
    }
    void load(const Archive &archive, int32_t n_states) override {
        each(archive, [&](Emission &part, const Archive &own) { part.load(own, n_states); });
    }
    void load_shared(const Archive &archive) override {
        each(archive, [&](Emission &part, const Archive &own) { part.load_shared(own); });
    }
    std::string check(const std::vector<int32_t> &slots) override {
        for (size_t i = 0; i < parts.size(); ++i) {
            const std::string problem = parts[i]->check(slots);
            if (!problem.empty()) return "part " + std::to_string(i) + ": " + problem;
        }
        return "";
    }
    int32_t n_inputs() const override {
        int32_t n = 0;
        for (const auto &part : parts) n += part->n_inputs();
        return n;
    }
    void add_to(ParticleCounts *counts, int32_t n_states) const override {
        for (const auto &part : parts) part->add_to(counts, n_states);
    }
    EmissionParameters *parameters() override {
        for (const auto &part : parts)
            if (!part->parameters()) return nullptr;
        return this;
    }

    // ---- parameters

    void draw_parameters(const std::vector<int32_t> &slots, const Workers &workers,
                         bitgen_t *g) override {
        for (const auto &part : parts)
            part->parameters()->draw_parameters(slots, workers, g);
    }
    const double *likelihoods(int64_t t, const int32_t *occupancy) override {
        // Room for whole vectors of sixteen.
        row_.resize(n_slots + 16);
        ProductEmission::fill_log_row(t, occupancy, row_.data());
        floor_likelihoods(n_slots, occupancy, row_.data());
        return row_.data();
    }
    void fill_log_row(int64_t t, const int32_t *occupancy, double *out) override {
        sum(n_slots, out, [&](Emission &part, double *logs) {
            part.parameters()->fill_log_row(t, occupancy, logs);
        });
    }
    void draw_newborn(int32_t k, int64_t t, bitgen_t *g) override {
        for (const auto &part : parts) part->parameters()->draw_newborn(k, t, g);
    }
    bool is_concurrent() const override {
        return std::all_of(parts.begin(), parts.end(), [](const auto &part) {
            return part->parameters()->is_concurrent();
        });
    }
    void fill_log_likelihoods(int64_t t, const int32_t *slots, int32_t n,
                              double *out) const override {
        // On the stack: a part may be a product too, and other threads call this as well.
        double logs[kSome];
        std::fill_n(out, n, 0.0);
        for (int32_t start = 0; start < n; start += kSome) {
            const int32_t some = std::min(n - start, kSome);
            for (const auto &part : parts) {
                part->parameters()->fill_log_likelihoods(t, slots + start, some, logs);
                for (int32_t i = 0; i < some; ++i) out[start + i] += logs[i];
            }
        }
    }
    void reseat(const int32_t *states, const Workers &workers, bitgen_t *g) override {
        for (const auto &part : parts) part->parameters()->reseat(states, workers, g);
    }

  private:
    static constexpr int32_t kSome = 64;

    // Every part with its record.
    template <class Visit> void each(const Archive &archive, Visit visit) {
        const std::vector<Archive> records = archive["parts"].list(parts.size());
        for (size_t i = 0; i < parts.size(); ++i) visit(*parts[i], records[i].named("emission"));
    }
    // Set n numbers to sums over the parts.
    template <class Fill> void sum(int64_t n, double *out, Fill fill) {
        logs_.resize(n);
        std::fill_n(out, n, 0.0);
        for (const auto &part : parts) {
            fill(*part, logs_.data());
            for (int64_t i = 0; i < n; ++i) out[i] += logs_[i];
        }
    }

    std::vector<double> row_, sums_, logs_;     // scratch
};

}  // namespace skihmm
