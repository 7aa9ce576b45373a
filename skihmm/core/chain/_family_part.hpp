// What an emission of a conjugate family does besides (Emission::family_part): many steps at once,
// and numbers that are drawn beside the labels.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "_family.hpp"
#include "_hidden.hpp"
#include "_product.hpp"

namespace skihmm {

class FamilyPart {
  public:
    const Family *const family;

    explicit FamilyPart(const Family *own) : family(own) {}
    virtual ~FamilyPart() = default;

    // ---- functions of Emission, which has others do the same step by step

    virtual void only_evaluate() = 0;
    virtual void look_ahead(int64_t start, int64_t stop) = 0;
    // False, without a change, if steps are not evaluated together.
    virtual bool fill_pairs(int64_t start, int64_t stop, const int32_t *states, double *out) = 0;
    virtual bool fill_whole(int64_t start, int64_t stop, const int32_t *states, double *out) = 0;
    virtual bool allows_scans() const = 0;
    virtual void remove_block(int64_t start, int64_t stop, const int32_t *labels, Product *r) = 0;
    virtual double remove_steps(const int32_t *two) = 0;
    virtual double add_steps(const int32_t *two, const int64_t *steps, size_t n,
                             const int32_t *labels) = 0;
    virtual double log_joint_without_weights() const = 0;
    // Long computations call `poll` about 20 times a second; it throws to stop them.
    virtual void watch(int (*poll)(void *), void *watcher) = 0;

    // ---- hidden numbers; statistics follow by `Emission::recount`

    virtual size_t n_hidden() const = 0;
    virtual const Hidden *hidden(size_t i) const = 0;
    virtual void set_hidden(size_t i, const double *in) = 0;
    // The numbers of draws, NULL without; statistics follow these by `Emission::load_shared` too.
    virtual const Hidden *of_draws() const = 0;
    virtual void set_of_draws(const std::vector<double> &numbers) = 0;
    // Fill missing entries, with zeros before others are set.
    virtual void fill_entries(const std::vector<Gap> &gaps) = 0;
    // Set weights that are possible, of all rows.
    virtual void open_weights() = 0;
    // Whether `draw_hidden` draws any numbers.
    virtual bool draws_hidden(bool is_chain) const = 0;
    // Draw all numbers that the hyperparameters do not bring, given the slots of all steps; in chains
    // the numbers of draws, too.  Returns the conditional means of filled entries.
    virtual std::vector<double> draw_hidden(const int32_t *slots, bitgen_t *g, bool is_chain) = 0;
    // Convert values of all filled entries to the units of the data.
    virtual void restore(std::vector<double> *filled) const = 0;
};

}  // namespace skihmm
