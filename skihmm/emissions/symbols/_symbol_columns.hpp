// Emissions of columns of symbols: products over many columns exceed the range of a double.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "_emission.hpp"
#include "_particle_counts.hpp"
#include "_random.hpp"
#include "_symbol_contexts.hpp"

namespace skihmm {

// Columns whose probabilities are multiplied before a logarithm is taken: sixteen factors
// of 1e-18 are still far from underflow.
constexpr size_t kColumnGroup = 16;

class SymbolColumns : public Emission {
  public:
    // Concentrations of all depths of restaurants (a single depth unless symbols depend on
    // contexts), and of their root.
    std::vector<double> alphas;
    double gamma = 1.0;
    virtual void set_concentrations(std::vector<double> lower, double top) = 0;
    virtual int32_t n_symbols(size_t c) const = 0;
    // p(symbol | slot, context) of all symbols.
    virtual void fill_symbols(size_t c, const int32_t *context, int32_t k, double *out) const = 0;
    int32_t depth() const { return contexts_.shape().depth(); }

    int32_t n_inputs() const final { return contexts_.n_columns(); }
    void write(const Archive &archive, const std::vector<int32_t> &labels) final {
        Fields fields{contexts_, alphas, gamma, {}};
        for (size_t c = 0; c < n_columns_; ++c) fields.columns.push_back(record(c, labels));
        visit(archive, labels[kStart], &fields);
    }
    void check_record(const Archive &archive, const std::vector<int32_t> &labels) final {
        Fields fields{contexts_, alphas, gamma, {}};
        const int32_t n_states = *std::max_element(labels.begin(), labels.end()) + 1;
        visit(archive, n_states, &fields);
        if (!(fields.contexts == contexts_))
            refuse("emission", "the contexts are not those of the data");
        for (size_t c = 0; c < n_columns_; ++c)
            check_customers_of(c, fields.columns[c], labels, n_states, "emission, column ");
    }
    void load(const Archive &archive, int32_t n_states) final {
        Fields fields{contexts_, alphas, gamma, {}};
        visit(archive, n_states, &fields);
        if (!(fields.contexts == contexts_)) set_contexts(std::move(fields.contexts));
        set_concentrations(std::move(fields.alphas), fields.gamma);
        for (size_t c = 0; c < n_columns_; ++c) load_column(c, std::move(fields.columns[c]));
    }
    void load_shared(const Archive &archive) final {
        std::vector<double> lower = alphas;
        double top = gamma;
        visit_concentrations(archive, &lower, &top);
        set_concentrations(std::move(lower), top);
    }
    std::string check(const std::vector<int32_t> &slots) final {
        for (size_t c = 0; c < n_columns_; ++c) {
            if (const char *wrong = check_column(c))
                return "column " + std::to_string(c) + ": " + wrong;
            try {
                check_customers_of(c, record(c, every_slot()), slots, n_slots, "column ");
            } catch (const std::invalid_argument &error) {
                return error.what();
            }
        }
        return "";
    }
    void add_to(ParticleCounts *counts, int32_t n_states) const final {
        ContextShape shape;
        std::vector<ContextPlace> places;
        extend(&shape, &places);
        for (size_t c = 0; c < n_columns_; ++c) {
            counts->add_column(n_symbols(c), is_seated(), shape, places, alphas, gamma);
            const ContextShape::Levels levels = record(c, every_slot());
            for (int32_t d = 1; n_states > 0 && d <= depth(); ++d)
                counts->add_seating(d, contexts_.shape().stride(d), levels[d - 1]);
        }
    }

    std::vector<PredictedColumn> columns() const final {
        std::vector<PredictedColumn> found;
        for (size_t c = 0; c < n_columns_; ++c) found.push_back({n_symbols(c)});
        return found;
    }
    void fill_predictives(const int32_t *slots, int64_t n, const double *inputs,
                          double *out) final {
        for (size_t c = 0; c < n_columns_; ++c)
            for (int64_t i = 0; i < n; ++i, out += n_symbols(c))
                fill_symbols(c, context_of(inputs, i).data(), slots[i], out);
    }
    void draw_values(const int32_t *slots, int64_t n, const double *inputs, const int32_t *n_known,
                     double *out, bitgen_t *g) final {
        for (size_t c = 0; c < n_columns_; ++c) {
            if (n_known[c] < 1 || n_known[c] > n_symbols(c))
                refuse("n_known", std::to_string(n_known[c]) + " symbols of column "
                                  + std::to_string(c) + "; expected 1 to "
                                  + std::to_string(n_symbols(c)));
            // Cumulative probabilities by slot and context.
            std::map<std::pair<int32_t, std::vector<int32_t>>, std::vector<double>> sums;
            for (int64_t i = 0; i < n; ++i) {
                const std::vector<int32_t> context = context_of(inputs, i);
                std::vector<double> &sum = sums[{slots[i], context}];
                if (sum.empty()) {
                    sum.resize(n_symbols(c));
                    fill_symbols(c, context.data(), slots[i], sum.data());
                    std::partial_sum(sum.begin(), sum.end(), sum.begin());
                }
                const auto last = sum.begin() + n_known[c] - 1;
                const double u = uniform(g) * *last;
                *out++ = static_cast<double>(std::upper_bound(sum.begin(), last, u) - sum.begin());
            }
        }
    }

    double fill_probs(int64_t t, double *out) final {
        if (n_columns_ <= kColumnGroup) {
            multiply_columns(t, 0, n_columns_, out);
            return 0.0;
        }
        SymbolColumns::fill_logs(t, out);
        return fill_floored(n_slots, out, out);
    }
    void fill_logs(int64_t t, double *out) final {
        fill_column_logs(out, [&](size_t start, size_t stop, double *product) {
            multiply_columns(t, start, stop, product);
        });
    }
    void fill_pair(int64_t t, const int32_t *states, double *out) final {
        const Product p[2] = {product(t, states[0]), product(t, states[1])};
        for (int i = 0; i < 2; ++i) out[i] = p[i].value;
        if (p[0].log_scale == 0.0 && p[1].log_scale == 0.0) return;
        // Many columns: relative to the larger of the two.
        const double logs[2] = {p[0].log(), p[1].log()};
        fill_floored_pair(logs, out);
    }
    void fill_log_pair(int64_t t, const int32_t *states, double *out) final {
        for (int i = 0; i < 2; ++i) out[i] = product(t, states[i]).log();
    }

  protected:
    // codes[t * n_columns + c]: symbol of step t in column c, -1: missing; they must outlive
    // this.  A prior rate of zero: the concentrations are kept.
    SymbolColumns(const int32_t *codes, int64_t n_steps, const std::vector<int32_t> &sizes,
                  double prior_shape, double prior_rate, int32_t n_contexts = 0)
        : codes_(codes), n_columns_(sizes.size()), contexts_(n_contexts), prior_shape_(prior_shape),
          prior_rate_(prior_rate), hints_(n_steps * n_columns_, -1) {
        this->n_steps = n_steps;
        for (int64_t t = 0; t < n_steps; ++t)
            for (size_t c = 0; c < n_columns_; ++c)
                if (code(t, c) < -1 || code(t, c) >= sizes[c])
                    throw std::invalid_argument(
                        "codes[" + std::to_string(t) + ", " + std::to_string(c) + "] is "
                        + std::to_string(code(t, c)) + "; expected -1 to "
                        + std::to_string(sizes[c] - 1));
    }
    // Restaurants of a column by depth, as a record over states or other labels of slots; loading a
    // record; the fault of a record, or null; whether customers are seated at tables.
    virtual ContextShape::Levels record(size_t c, const std::vector<int32_t> &labels) const = 0;
    virtual void load_column(size_t c, ContextShape::Levels records) = 0;
    virtual const char *check_column(size_t c) const = 0;
    virtual bool is_seated() const { return true; }
    // Take over a tree of contexts; no customer is left, and concentrations have to be set.
    virtual void set_contexts(SymbolContexts) {}
    // The places of all steps in a tree that has all their contexts after the restaurants'
    // contexts.
    virtual void extend(ContextShape *, std::vector<ContextPlace> *) const {}
    // The product of p(y[t, c] | k) over all columns.
    virtual Product product(int64_t t, int32_t k) const = 0;
    // out[k] = product over columns start .. stop - 1 of p(y[t, c] | k).
    virtual void multiply_columns(int64_t t, size_t start, size_t stop, double *out) const = 0;

    // The contexts in row i of `inputs`, NULL: all are missing.
    std::vector<int32_t> context_of(const double *inputs, int64_t i) const {
        std::vector<int32_t> context(n_inputs(), -1);
        if (inputs) std::copy_n(inputs + i * n_inputs(), n_inputs(), context.begin());
        return context;
    }
    int32_t code(int64_t t, size_t c) const { return codes_[t * n_columns_ + c]; }
    int32_t *hint(int64_t t, size_t c) { return &hints_[t * n_columns_ + c]; }
    // fill_logs by any function like multiply_columns.
    template <class Multiply> void fill_column_logs(double *out, Multiply multiply) {
        if (n_columns_ <= kColumnGroup) {
            multiply(0, n_columns_, out);
            take_logs(n_slots, 0.0, out);
            return;
        }
        logs_.resize(n_slots);
        const double *product = logs_.data();
        std::fill_n(out, n_slots, 0.0);
        for (size_t c = 0; c < n_columns_; c += kColumnGroup) {
            multiply(c, std::min(c + kColumnGroup, n_columns_), logs_.data());
            for (int32_t k = 0; k < n_slots; ++k) out[k] += std::log(product[k]);
        }
    }

    // The fields of a record, over n states.
    struct Fields {
        SymbolContexts contexts;
        std::vector<double> alphas;
        double gamma;
        std::vector<ContextShape::Levels> columns;
    };
    void visit(const Archive &archive, int32_t n_states, Fields *fields) const {
        visit_concentrations(archive, &fields->alphas, &fields->gamma);
        std::vector<std::vector<Archive>> levels{archive["columns"].list(n_columns_)};
        if (n_inputs() > 0) {
            fields->contexts.visit(archive["contexts"].named("contexts"));
            for (const Archive &level : archive["levels"].list(n_inputs()))
                levels.push_back(level.list(n_columns_));
        }
        const ContextShape &shape = fields->contexts.shape();
        fields->columns.resize(n_columns_);
        for (size_t c = 0; c < n_columns_; ++c) {
            fields->columns[c].resize(levels.size());
            for (int32_t d = 1; d <= shape.depth(); ++d)
                shape.visit_level(
                    levels[d - 1][c].named(shape.name("emission, column " + std::to_string(c), d)),
                    d, n_states, n_symbols(c), is_seated(), &fields->columns[c][d - 1]);
        }
    }
    void visit_concentrations(const Archive &archive, std::vector<double> *lower, double *top) const {
        archive["alpha"].scalar(&(*lower)[0], kConcentration);
        archive["gamma"].scalar(top, kConcentration);
        if (n_inputs() == 0) return;
        std::vector<double> deeper(lower->begin() + 1, lower->end());
        archive["context_alpha"].array(&deeper, {n_inputs()}, &kConcentration);
        std::copy(deeper.begin(), deeper.end(), lower->begin() + 1);
    }
    // Refuse checked records whose customers are not the observations in these states.
    void check_customers_of(size_t c, const ContextShape::Levels &records,
                            const std::vector<int32_t> &states, int32_t n_states,
                            const std::string &what) const {
        contexts_.shape().check_customers_of(records, places_, states.data(), codes_ + c,
                                             static_cast<int64_t>(n_columns_), n_steps, n_states,
                                             what + std::to_string(c));
    }
    std::vector<int32_t> every_slot() const {
        std::vector<int32_t> slots(n_slots);
        std::iota(slots.begin(), slots.end(), 0);
        return slots;
    }

    const int32_t *const codes_;
    const size_t n_columns_;
    SymbolContexts contexts_;
    std::vector<ContextPlace> places_;      // by step; none without contexts
    const double prior_shape_, prior_rate_;
    std::vector<int32_t> hints_;            // cell of step t in column c (Restaurants::add)
    std::vector<double> logs_;              // scratch
};

}  // namespace skihmm
