// Sufficient statistics of all states of one chain for a conjugate family (core/chain/_family.hpp).
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <vector>

#include "_emission.hpp"
#include "_family.hpp"
#include "_data_rows.hpp"
#include "_particle_counts.hpp"
#include "_platform.hpp"
#include "_slots.hpp"
#include "_white_noise.hpp"

namespace skihmm {

// Row-major: statistic i of slot k is table[i * stride + k], for wide families contiguous by
// slot.  Every change is recorded in the journal until `commit`; `rollback` restores the table bit
// for bit.
class ConjugateTable final : public Emission, public EmissionParameters, public FamilyPart {
  public:
    // Takes ownership of the family; the rows, of values and inputs, must outlive the table.
    ConjugateTable(Family *family, const double *values, int64_t n_steps)
        : FamilyPart(family), family_(family), data_(*family, values, n_steps),
          reset_(family->width), slot_of_(n_steps, -1) {
        this->n_steps = n_steps;
        family_part = this;
        family->reset(reset_.data(), 1);
    }
    // The rows, and the numbers that are drawn beside the labels; statistics follow by `recount`.
    DataRows &data() { return data_; }
    bool reread() override {
        forget_ahead();
        return data_.reread();
    }
    size_t n_hidden() const override { return data_.n_hidden(); }
    const Hidden *hidden(size_t i) const override { return data_.hidden(i); }
    void set_hidden(size_t i, const double *in) override {
        forget_ahead();
        data_.set_hidden(i, in);
    }
    const Hidden *of_draws() const override { return data_.of_draws(); }
    void fill_entries(const std::vector<Gap> &gaps) override { data_.fill_entries(gaps); }
    void open_weights() override { data_.open_weights(); }
    void restore(std::vector<double> *filled) const override { data_.restore(filled); }
    bool draws_hidden(bool is_chain) const override { return data_.draws_hidden(is_chain); }
    void set_of_draws(const std::vector<double> &numbers) override {
        forget_ahead();
        data_.set_of_draws(numbers);
        is_counted_ = false;
    }
    // Predictions and draws of hidden numbers: _table_draws.hpp.
    std::vector<double> draw_hidden(const int32_t *slots, bitgen_t *g, bool is_chain) override;
    std::vector<PredictedColumn> columns() const override;
    void fill_predictives(const int32_t *slots, int64_t n, const double *inputs,
                          double *out) override;
    void draw_values(const int32_t *slots, int64_t n, const double *inputs, const int32_t *n_known,
                     double *out, bitgen_t *g) override;
    void watch(int (*poll)(void *), void *watcher) override {
        poll_ = poll;
        watcher_ = watcher;
    }
    // Records: _table_record.hpp.
    void write(const Archive &archive, const std::vector<int32_t> &labels) override;
    void check_record(const Archive &archive, const std::vector<int32_t> &labels) override;
    void load(const Archive &archive, int32_t n_states) override;
    void load_shared(const Archive &archive) override;
    std::string check(const std::vector<int32_t> &slots) override;
    int32_t n_inputs() const override { return family_->n_inputs + data_.n_more_inputs(); }
    void add_to(ParticleCounts *counts, int32_t n_states) const override {
        std::vector<double> numbers(static_cast<size_t>(n_states) * family_->width);
        for (int32_t k = 0; k < n_states; ++k) read(kFirst + k, &numbers[k * family_->width]);
        counts->add_family(family_.get(), numbers.data());
    }
    EmissionParameters *parameters() override {
        return family_->draws_parameters ? this : nullptr;
    }

    // New slots are without observations.
    void resize(int32_t n) override {
        forget_ahead();
        const int32_t stride = (n + kLane - 1) / kLane * kLane;
        if (stride > stride_) {
            relay(&table_, family_->width, stride);
            if (has_parameters_) relay(&parameters_, family_->parameter_width, stride);
            const int32_t first = stride_;
            stride_ = stride;
            for (int32_t k = first; k < stride; ++k) clear(k);
            logs_.assign(stride, 0.0);
            weights_.assign(stride, 0.0);
        }
        for (int32_t k = n; k < n_slots; ++k) clear(k);
        n_slots = n;
        stamps_.resize(stride_, 0);
    }

    void add(int64_t t, int32_t k, bitgen_t *, Product *r) override {
        if (data_.is_missing(t)) return;
        const double *y = row(t);
        work(1);
        touch(k);
        move(t, k);
        r->multiply_log(family_->add_predicted(&table_[place(k)], step(), y));
    }
    void remove(int64_t t, int32_t k, bitgen_t *, Product *r) override {
        if (data_.is_missing(t)) return;
        const double *y = row(t);
        work(1);
        touch(k);
        move(t, -1);
        double lp = 0.0, *numbers = &table_[place(k)];
        if (!family_->remove_predicted(numbers, step(), y, &lp)) {
            recount_state(k);
            lp = family_->log_predictive(numbers, step(), y);
        }
        r->multiply_log(lp);
    }
    // The rows of a state one after the other leave together, if the family does that.
    void remove_block(int64_t start, int64_t stop, const int32_t *labels, Product *r) override {
        for (int64_t begin = stop - 1; stop > start; stop = begin--) {
            const int32_t k = labels[begin - start];
            while (begin > start && labels[begin - 1 - start] == k) --begin;
            double lp = 0.0;
            touch(k);
            if (stop - begin > 1 && family_->linear
                && family_->linear->remove_together(&table_[place(k)], step(), row(begin),
                                                    stop - begin, &lp)) {
                work(static_cast<int32_t>(stop - begin));
                for (int64_t t = begin; t < stop; ++t)
                    if (!data_.is_missing(t)) move(t, -1);
                r->multiply_log(lp);
            } else {
                for (int64_t t = stop; t-- > begin;) remove(t, k, nullptr, r);
            }
        }
    }
    bool has_tables() const override { return false; }
    bool allows_scans() const override { return !family_->has_lasting_states; }
    void commit() override {
        touched_.clear();
        pair_[0].numbers.clear();
        saved_.clear();
        moved_.clear();
        ++move_;
    }
    void rollback() override {
        const int32_t width = family_->width;
        if (!touched_.empty()) forget_ahead();
        for (size_t i = 0; i < touched_.size(); ++i)
            for (int32_t j = 0; j < width; ++j)
                table_[place(touched_[i]) + j * step()] = saved_[i * width + j];
        for (size_t i = moved_.size(); i-- > 0;) slot_of_[moved_[i].t] = moved_[i].slot;
        commit();
    }

    double fill_probs(int64_t t, double *out) override {
        if (!data_.is_missing(t)) return fill_floored(n_slots, logs_of(t), out) + data_.log_jacobian(t);
        std::fill_n(out, n_slots, 1.0);
        return 0.0;
    }
    void fill_logs(int64_t t, double *out) override {
        std::fill_n(out, n_slots, data_.is_missing(t) ? 0.0 : data_.log_jacobian(t));
        if (data_.is_missing(t)) return;
        const double *logs = logs_of(t);
        for (int32_t k = 0; k < n_slots; ++k) out[k] += logs[k];
    }
    void only_evaluate() override { data_.only_evaluate(); }
    void look_ahead(int64_t start, int64_t stop) override {
        forget_ahead();
        if (!is_together() || stop - start < 2) return;
        ahead_start_ = start;
        ahead_stop_ = stop;
    }
    void fill_pair(int64_t t, const int32_t *states, double *out) override {
        double logs[2];
        work(2);
        ConjugateTable::fill_log_pair(t, states, logs);
        fill_floored_pair(logs, out);
    }
    void fill_log_pair(int64_t t, const int32_t *states, double *out) override {
        for (int32_t i = 0; i < 2; ++i)
            out[i] = data_.is_missing(t) ? 0.0
                                    : family_->log_predictive(&table_[place(states[i])], step(),
                                                              row(t));
    }
    void fill_prefixes(int64_t start, int64_t stop, int32_t k, bool backwards,
                       double *out) override {
        std::vector<double> numbers(family_->width);
        read(k, numbers.data());
        double lp = 0.0;
        for (int64_t i = 0; i < stop - start; ++i) {
            const int64_t t = backwards ? stop - 1 - i : start + i;
            work(1);
            if (!data_.is_missing(t)) lp += family_->add_predicted(numbers.data(), 1, row(t));
            out[i] = lp;
        }
    }
    bool fill_whole(int64_t start, int64_t stop, const int32_t *, double *out) override {
        if (pair_[0].numbers.empty()) return false;
        rows_.clear();
        for (int64_t t = start; t < stop; ++t)
            if (!data_.is_missing(t)) rows_.push_back(t);
        next_start_ = start;
        next_stop_ = stop;
        sum_rows();
        for (int i = 0; i < 2; ++i) {
            next_[i] = pair_[i];
            add_rows(&next_[i]);
            out[i] = next_[i].log_p - pair_[i].log_p;
        }
        return true;
    }
    bool fill_pairs(int64_t start, int64_t stop, const int32_t *states, double *out) override {
        if (!is_together()) return false;
        double logs[2 * kRows];
        both_.resize(2 * family_->width);
        for (int i = 0; i < 2; ++i) read(states[i], &both_[i * family_->width]);
        for (int64_t from = start; from < stop; from += kRows) {
            const int32_t n = static_cast<int32_t>(std::min<int64_t>(kRows, stop - from));
            work(2 * n);
            std::fill_n(logs, 2 * n, 0.0);
            family_->linear->fill_together(both_.data(), family_->width, 2, row(from), n, logs, 2);
            for (int32_t r = 0; r < n; ++r, out += 2) {
                if (data_.is_missing(from + r)) out[0] = out[1] = 1.0;
                else fill_floored_pair(logs + 2 * r, out);
            }
        }
        return true;
    }
    double remove_steps(const int32_t *two) override {
        double lp = 0.0;
        next_start_ = -1;
        for (int i = 0; i < 2; ++i) {
            touch(two[i]);
            pair_[i].numbers = reset_;
            pair_[i].sums.assign(n_sums(), 0.0);
            pair_[i].log_p = family_->log_marginal(reset_.data(), 1);
            lp += family_->log_marginal(&table_[place(two[i])], step()) - pair_[i].log_p;
            clear(two[i]);
        }
        return lp;  // planted: marginal of removed rows
    }
    double add_steps(const int32_t *two, const int64_t *steps, size_t n,
                     const int32_t *labels) override {
        const double before = pair_[0].log_p + pair_[1].log_p;
        // One state gets the run that fill_whole has looked at.
        const bool is_next = steps[0] == next_start_ && steps[n - 1] == next_stop_ - 1
                             && static_cast<int64_t>(n) == next_stop_ - next_start_
                             && std::count(labels, labels + n, labels[0]) == next_stop_ - next_start_;
        for (int i = 0; i < 2; ++i) {
            rows_.clear();
            for (size_t l = 0; l < n; ++l) {
                if ((labels[l] == two[1]) != i || data_.is_missing(steps[l])) continue;
                rows_.push_back(steps[l]);
                move(steps[l], two[i]);
            }
            if (rows_.empty()) continue;
            if (is_next) {
                std::swap(pair_[i], next_[i]);
            } else {
                sum_rows();
                add_rows(&pair_[i]);
            }
            write(two[i], pair_[i].numbers.data());
        }
        next_start_ = -1;
        return pair_[0].log_p + pair_[1].log_p - before;
    }
    double log_joint() const override {
        double lp = data_.log_constant();
        for (int32_t k = 0; k < n_slots; ++k)
            lp += family_->log_marginal(&table_[place(k)], step());
        return lp;
    }

    double log_joint_without_weights() const override {
        if (!family_->weighted) return log_joint();
        std::vector<int64_t> ends;
        const std::vector<int64_t> steps = steps_by_slot(&ends);
        double lp = 0.0;
        for (int32_t k = 0; k < stride_; ++k)
            if (ends[k + 1] > ends[k])
                lp += family_->weighted->log_unweighted(&table_[place(k)], data_.values(),
                                                        &steps[ends[k]], ends[k + 1] - ends[k]);
        return lp;
    }

    void recount(const int32_t *slots) override {
        run_ranges(workers_, n_steps, [&](int64_t start, int64_t stop, int32_t) {
            for (int64_t t = start; t < stop; ++t)
                slot_of_[t] = data_.is_missing(t) ? -1 : slots[t];
        });
        count();
        has_parameters_ = false;
        commit();
    }
    void draw_hyperparameters(bitgen_t *g) override {
        if (!family_->learnt || !family_->learnt->draws_hyperparameters) return;
        std::vector<int32_t> number(n_slots, -1);
        for (const int32_t k : slot_of_)
            if (k >= 0) number[k] = 0;
        std::vector<int64_t> used;
        for (int32_t k = 0; k < n_slots; ++k)
            if (number[k] == 0) {
                number[k] = static_cast<int32_t>(used.size());
                used.push_back(place(k));
            }
        const int32_t n = static_cast<int32_t>(used.size());
        if (family_->weighted) draw_given(used, number, g);
        else family_->learnt->draw_hyperparameters(table_.data(), step(), used.data(), n, g);
        adapt();
    }
    // Those of a record; a call of adapt, recount or clear has to follow.
    bool set_hyperparameters(const double *in) {
        if (!family_->learnt->set_hyperparameters(in)) return false;
        family_->reset(reset_.data(), 1);
        return true;
    }
    // All slots under changed hyperparameters.
    void adapt() {
        forget_ahead();
        if (family_->weighted) data_.read_missing();
        family_->reset(reset_.data(), 1);
        const LearntFamily *learnt = family_->learnt;
        if (is_counted_ && learnt && learnt->refresh(reset_.data(), 1))
            for (int32_t k = 0; k < stride_; ++k) learnt->refresh(&table_[place(k)], step());
        else
            count();
    }
    // Slots without observations, before a record is loaded.
    void clear() {
        for (int32_t k = 0; k < stride_; ++k) clear(k);
    }
    // Statistics of a slot, contiguous.
    void read(int32_t k, double *out) const {
        for (int32_t i = 0; i < family_->width; ++i)
            out[i] = table_[place(k) + i * step()];
    }
    void write(int32_t k, const double *numbers) {
        forget_ahead();
        for (int32_t i = 0; i < family_->width; ++i)
            table_[place(k) + i * step()] = numbers[i];
    }
    // Largest relative difference of log p(y[t] | k), for the state of the step and for one
    // other, between the statistics of n states, contiguous by state, and a recount by labels[t],
    // the state of every step.  The statistics themselves may differ without effect, as a mean of
    // 1e-17 from one of zero; and they do after many additions and removals, in their last digits,
    // which large terms that cancel make visible: a millionth of log p(y[t] | k) may be as much as
    // 1e-10 of those.
    double error(const double *numbers, int32_t n, const int32_t *labels) const {
        const int32_t width = family_->width;
        std::vector<double> fresh(static_cast<size_t>(n) * width);
        for (int32_t k = 0; k < n; ++k)
            std::copy(reset_.begin(), reset_.end(), fresh.begin() + static_cast<size_t>(k) * width);
        for (size_t t = 0; t < slot_of_.size(); ++t)
            if (!data_.is_missing(t))
                family_->add(&fresh[static_cast<size_t>(labels[t]) * width], 1, row(t));
        double worst = 0.0;
        for (size_t t = 0; t < slot_of_.size(); ++t) {
            if (data_.is_missing(t)) continue;
            for (const int32_t k : {labels[t], static_cast<int32_t>(t % n)}) {
                const size_t at = static_cast<size_t>(k) * width;
                const double x = family_->log_predictive(numbers + at, 1, row(t));
                const double y = family_->log_predictive(&fresh[at], 1, row(t));
                const double size = 1.0 + std::fabs(y) + 1e-4 * family_->cancelled(&fresh[at], 1);
                worst = std::max(worst, std::fabs(x - y) / size);
            }
        }
        return worst;
    }

    // ---- parameters

    void draw_parameters(const std::vector<int32_t> &slots, const Workers &,
                         bitgen_t *g) override {
        parameters_.assign(static_cast<size_t>(family_->parameter_width) * stride_, kNotDrawn);
        has_parameters_ = true;
        for (const int32_t k : slots) draw(k, &table_[place(k)], step(), g);
    }
    const double *likelihoods(int64_t t, const int32_t *occupancy) override {
        if (data_.is_missing(t)) {
            std::fill(weights_.begin(), weights_.end(), 1.0);
            return weights_.data();
        }
        fill_floored(n_slots, log_densities(t, occupancy), weights_.data());
        return weights_.data();
    }
    void fill_log_row(int64_t t, const int32_t *occupancy, double *out) override {
        if (data_.is_missing(t)) std::fill_n(out, n_slots, 0.0);
        else std::copy_n(log_densities(t, occupancy), n_slots, out);
    }
    void draw_newborn(int32_t k, int64_t t, bitgen_t *g) override {
        std::vector<double> numbers(reset_);
        if (!data_.is_missing(t)) family_->add(numbers.data(), 1, row(t));
        draw(k, numbers.data(), 1, g);
    }

    bool is_concurrent() const override { return family_->is_concurrent; }
    void fill_log_likelihoods(int64_t t, const int32_t *slots, int32_t n,
                              double *out) const override {
        if (data_.is_missing(t)) {
            std::fill_n(out, n, 0.0);
            return;
        }
        const int64_t stride = family_->is_wide ? family_->parameter_width : stride_;
        if (family_->linear)
            return family_->linear->fill_log_densities(parameters_.data(), stride, slots, n, row(t),
                                                       out);
        for (int32_t i = 0; i < n; ++i)
            out[i] = family_->log_density(&parameters_[parameter_place(slots[i])], step(), row(t));
    }
    void reseat(const int32_t *states, const Workers &workers, bitgen_t *) override {
        if (family_->is_concurrent) workers_ = workers;
        recount(states);
    }

    size_t n_bytes() const override {
        return 8 * (table_.size() + parameters_.size() + n_steps * data_.width())
               + 5 * slot_of_.size() + 32 * stride_;
    }

  private:
    static constexpr int32_t kLane = 16, kRows = LinearFamily::kRows;
    static constexpr double kPollEvery = 2e7;
    // Parameters of a slot without any: results computed with them are recognisable as invalid.
    static constexpr double kNotDrawn = std::numeric_limits<double>::quiet_NaN();
    void visit_shared(const Archive &archive);
    void visit_numbers(const Archive &archive, std::vector<double> *numbers, int64_t n_states) const;
    std::string compare(const std::vector<double> &numbers, const std::vector<int32_t> &labels) const;

    struct Moved { int64_t t; int32_t slot; };
    // Statistics of a state since remove_steps, sums of its rows, their log p.
    struct Whole { std::vector<double> numbers, sums; double log_p; };

    // Hyperparameters and weights; `number` is that of a slot among the used ones.
    void draw_given(const std::vector<int64_t> &used, const std::vector<int32_t> &number,
                    bitgen_t *g) {
        const int32_t width = family_->parameter_width, n = static_cast<int32_t>(used.size());
        std::vector<double> parameters(static_cast<size_t>(n) * width);
        for (int32_t i = 0; i < n; ++i)
            family_->draw(&table_[used[i]], step(), &parameters[static_cast<size_t>(i) * width],
                          1, g);
        std::vector<int32_t> states(slot_of_);
        for (int32_t &k : states)
            if (k >= 0) k = number[k];
        family_->weighted->draw_given(parameters.data(), n, states.data(), data_.copied(0), n_steps,
                                      data_.shifts(), g);
    }
    // Shifts alone, given the slots of all steps.
    void draw_shifts(const int32_t *slots, bitgen_t *g);
    SKIHMM_NOINLINE void ask() {
        n_flops_ = 0.0;
        if (poll_ && poll_(watcher_)) throw std::runtime_error("stopped");
    }
    // n evaluations or updates are to come.
    void work(int32_t n) {
        n_flops_ += static_cast<double>(n) * family_->width;
        if (SKIHMM_UNLIKELY(n_flops_ > kPollEvery)) ask();
    }
    const double *row(int64_t t) const { return data_[t]; }
    // Whether several rows are evaluated together.
    bool is_together() const { return family_->is_wide && family_->linear; }
    int32_t n_sums() const { return family_->linear ? family_->linear->n_sums : 0; }
    void add_sums(const int64_t *steps, int64_t n, double *sums) const {
        if (family_->linear) family_->linear->add_sums(data_.values(), steps, n, sums);
    }
    // The first statistic of slot k, and the distance to the next.
    int64_t place(int32_t k) const {
        return family_->is_wide ? static_cast<int64_t>(k) * family_->width : k;
    }
    int64_t step() const { return family_->is_wide ? 1 : stride_; }
    int64_t parameter_place(int32_t k) const {
        return family_->is_wide ? static_cast<int64_t>(k) * family_->parameter_width : k;
    }
    double *parameters_of(int32_t k) { return &parameters_[parameter_place(k)]; }
    void clear(int32_t k) { write(k, reset_.data()); }
    // log p(y[t] | k) of all slots; y[t] is not missing.  Valid until the next call.  (Families
    // may write whole vectors, beyond the slots.)
    const double *logs_of(int64_t t) {
        work(n_slots);
        if (ahead_start_ <= t && t < ahead_stop_) return ahead_of(t);
        std::fill(logs_.begin(), logs_.end(), 0.0);
        family_->fill(table_.data(), family_->is_wide ? family_->width : stride_, n_slots,
                      row(t), logs_.data());
        return logs_.data();
    }
    // The same of a step that was announced: several steps are computed together.
    const double *ahead_of(int64_t t) {
        const int64_t from = t - (t - ahead_start_) % kRows;
        if (from != ahead_from_) {
            ahead_from_ = from;
            ahead_.assign(static_cast<size_t>(kRows) * stride_, 0.0);
            const int64_t n = std::min<int64_t>(kRows, ahead_stop_ - from);
            family_->linear->fill_together(table_.data(), family_->width, n_slots, row(from),
                                           static_cast<int32_t>(n), ahead_.data(), stride_);
        }
        return &ahead_[(t - from) * stride_];
    }
    // The same given parameters.
    const double *log_densities(int64_t t, const int32_t *occupancy) {
        std::fill(logs_.begin(), logs_.end(), 0.0);
        family_->fill_densities(parameters_.data(),
                                family_->is_wide ? family_->parameter_width : stride_, n_slots,
                                row(t), logs_.data());
        // A new state's parameters are integrated out; those of free slots must not be used.
        logs_[kNew] = family_->log_predictive(reset_.data(), 1, row(t));
        logs_[kStart] = -INFINITY;
        for (int32_t k = kFirst; k < n_slots; ++k)
            if (occupancy[k] == 0) logs_[k] = -INFINITY;
        return logs_.data();
    }
    // Statistics change.
    void forget_ahead() { ahead_start_ = ahead_stop_ = ahead_from_ = -1; }
    void touch(int32_t k) {
        forget_ahead();
        if (stamps_[k] == move_) return;
        stamps_[k] = move_;
        touched_.push_back(k);
        const size_t at = saved_.size();
        saved_.resize(at + family_->width);
        read(k, &saved_[at]);
    }
    void sum_rows() {
        sums_.assign(n_sums(), 0.0);
        add_sums(rows_.data(), rows_.size(), sums_.data());
    }
    // Add rows_, whose sums are sums_.
    void add_rows(Whole *state) {
        if (rows_.empty()) return;
        work(static_cast<int32_t>(rows_.size()));
        for (size_t i = 0; i < sums_.size(); ++i) state->sums[i] += sums_[i];
        family_->add_rows(state->numbers.data(), 1, data_.values(), rows_.data(), rows_.size(),
                          state->sums.data());
        state->log_p = family_->log_marginal(state->numbers.data(), 1);
    }
    void move(int64_t t, int32_t k) {
        moved_.push_back({t, slot_of_[t]});
        slot_of_[t] = k;
    }
    // The steps of all slots, those of slot k from (*ends)[k] to (*ends)[k + 1].
    std::vector<int64_t> steps_by_slot(std::vector<int64_t> *ends) const {
        ends->assign(stride_ + 1, 0);
        for (const int32_t k : slot_of_)
            if (k >= 0) ++(*ends)[k + 1];
        for (int32_t k = 0; k < stride_; ++k) (*ends)[k + 1] += (*ends)[k];
        std::vector<int64_t> steps(ends->back()), next(ends->begin(), ends->end() - 1);
        for (size_t t = 0; t < slot_of_.size(); ++t)
            if (slot_of_[t] >= 0) steps[next[slot_of_[t]]++] = static_cast<int64_t>(t);
        return steps;
    }
    // All statistics from slot_of_.
    void count() {
        clear();
        is_counted_ = true;
        std::vector<int64_t> ends;
        const std::vector<int64_t> steps = steps_by_slot(&ends);
        workers_.run(stride_, [&](int64_t k, int32_t) {
            count_rows(static_cast<int32_t>(k), steps.data() + ends[k], ends[k + 1] - ends[k]);
        });
    }
    // Recompute a state's statistics that are lost to rounding, as after removal of an outlier.
    void recount_state(int32_t k) {
        clear(k);
        std::vector<int64_t> steps;
        for (size_t t = 0; t < slot_of_.size(); ++t)
            if (slot_of_[t] == k) steps.push_back(static_cast<int64_t>(t));
        count_rows(k, steps.data(), static_cast<int64_t>(steps.size()));
    }
    // Add rows to a state without any.
    void count_rows(int32_t k, const int64_t *steps, int64_t n) {
        if (n == 0) return;
        std::vector<double> sums(n_sums());
        add_sums(steps, n, sums.data());
        family_->add_rows(&table_[place(k)], step(), data_.values(), steps, n, sums.data());
    }
    void draw(int32_t k, const double *s, int64_t stride, bitgen_t *g) {
        family_->draw(s, stride, parameters_of(k), step(), g);
    }
    void relay(std::vector<double> *table, int32_t width, int32_t stride) const {
        std::vector<double> wider(static_cast<size_t>(width) * stride, kNotDrawn);
        if (family_->is_wide)
            std::copy(table->begin(), table->end(), wider.begin());
        else if (!table->empty())
            for (int32_t i = 0; i < width; ++i)
                std::copy_n(table->data() + static_cast<size_t>(i) * stride_, stride_,
                            wider.data() + static_cast<size_t>(i) * stride);
        table->swap(wider);
    }

    const std::unique_ptr<Family> family_;
    DataRows data_;
    int (*poll_)(void *) = nullptr;
    void *watcher_ = nullptr;
    double n_flops_ = 0.0;
    int32_t stride_ = 0;
    std::vector<double> reset_, table_, parameters_, logs_, weights_, saved_, scratch_;
    std::vector<int32_t> slot_of_, touched_;    // slot_of_: -1 for a missing step or inside a move
    std::vector<int64_t> stamps_;
    std::vector<Moved> moved_;
    int64_t move_ = 1;
    // Steps that were announced, and the first one of those in ahead_.
    int64_t ahead_start_ = -1, ahead_stop_ = -1, ahead_from_ = -1;
    std::vector<double> ahead_;
    // The two states of a trial; what they become with the steps [next_start_, next_stop_).
    Whole pair_[2], next_[2];
    int64_t next_start_ = -1, next_stop_ = -1;      // none: -1
    std::vector<int64_t> rows_;
    std::vector<double> sums_, both_;
    bool has_parameters_ = false;
    bool is_counted_ = true;    // since rows have changed with the subjects
    Workers workers_{1};    // of the last sweep in threads: recounts do not depend on them
};

}  // namespace skihmm

#include "_table_draws.hpp"
#include "_table_record.hpp"
