// The contents of a record of transitions, and its checks.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "_coins_record.hpp"
#include "_context_shape.hpp"

namespace skihmm {

// The hyperparameters of transitions by name.  The prior of coins comes after the first two of
// `values`, and the concentrations of columns of contexts come last.
inline void visit_hyperparameters(const Archive &archive, std::vector<double> *values,
                                  CoinsRecord *coins, int32_t n_contexts) {
    if (archive.reads()) values->assign(2, 0.0);
    archive["alpha"].scalar(&(*values)[0], kConcentration);
    archive["gamma"].scalar(&(*values)[1], kConcentration);
    coins->visit_prior(archive);
    if (n_contexts == 0) return;
    std::vector<double> alphas(values->begin() + 2, values->end());
    archive["context_alpha"].array(&alphas, {n_contexts}, &kConcentration);
    if (archive.reads()) values->insert(values->end(), alphas.begin(), alphas.end());
}

// Transitions of the states 0 .. n_states - 1; row n_states is the start restaurant.
struct TransitionsRecord {
    int32_t n_states = 0;
    std::vector<double> hyperparameters;    // without the prior of coins
    // Depths 1, 2, ... of the tree of contexts, or the one level without contexts.
    ContextShape contexts;
    std::vector<SeatingRecord> levels;
    CoinsRecord coins;

    // In the record of a chain or of a draw.
    void visit(const Archive &chain) {
        chain["n_states"].scalar(&n_states, {1, kMostCustomers});
        const Archive archive = chain[kWhat];
        if (archive.has("contexts", contexts.exists()))
            contexts.visit(archive["contexts"].named("contexts"));
        visit_hyperparameters(archive, &hyperparameters, &coins, contexts.n_columns());
        coins.visit(chain, archive, n_states, contexts.exists());
        std::vector<Archive> archives{archive};
        if (contexts.exists())
            for (const Archive &each : archive["levels"].list(contexts.n_columns()))
                archives.push_back(each);
        levels.resize(archives.size());
        for (int32_t d = 1; d <= contexts.depth(); ++d)
            contexts.visit_level(archives[d - 1].named(contexts.name(kWhat, d)), d, n_states + 1,
                                 n_states, true, &levels[d - 1]);
        if (chain.reads()) check();
    }

    // Refuse counts that no path over all the states has.  The seatings have passed check_record.
    void check() const {
        const SeatingRecord &first = levels[0];
        if (static_cast<size_t>(n_states) > first.rows.size())
            refuse(kWhat, std::to_string(first.rows.size()) + " cells are too few for "
                          + std::to_string(n_states) + " states");
        std::vector<int64_t> entered(n_states, 0);
        for (size_t i = 0; i < first.rows.size(); ++i)
            entered[first.dishes[i]] += first.n_customers[i];
        for (int32_t k = 0; k < n_states; ++k)
            if (entered[k] == 0)
                refuse(kWhat, "state " + std::to_string(k) + " is never entered; expected "
                              "every state to be used");
        if (contexts.exists()) return contexts.check_tables(levels, kWhat);
        std::vector<int64_t> left(static_cast<size_t>(n_states) + 1, 0);
        for (size_t i = 0; i < first.rows.size(); ++i) left[first.rows[i]] += first.n_customers[i];
        for (int32_t k = 0; k < n_states; ++k)
            if (left[k] > entered[k])
                refuse(kWhat, "state " + std::to_string(k) + " is left "
                              + std::to_string(left[k]) + " times, but entered only "
                              + std::to_string(entered[k]) + " times");
        if (left[n_states] == 0) refuse(kWhat, "no sequence begins");
    }
    // Refuse the record of another path: labels[t] follows rows[t] at a place.
    void check_path(const std::vector<ContextPlace> &places, const std::vector<int32_t> &rows,
                    const std::vector<int32_t> &labels) const {
        const std::vector<int32_t> drawn = coins.check_path(rows, labels, n_states);
        contexts.check_customers_of(levels, places, rows.data(), drawn.data(), 1,
                                    static_cast<int64_t>(labels.size()), n_states + 1, kWhat);
    }

  private:
    static constexpr const char *kWhat = "transitions";
};

}  // namespace skihmm
