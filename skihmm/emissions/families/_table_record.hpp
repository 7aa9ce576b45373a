// Records of tables: statistics by state, and numbers that states share.  The end of
// _conjugate_table.hpp.
#pragma once
#include <algorithm>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

namespace skihmm {

// Hyperparameters, and hidden numbers of draws.  Reading them leaves the statistics of slots at the
// former hyperparameters.
inline void ConjugateTable::visit_shared(const Archive &archive) {
    const Hidden *hidden = data_.of_draws();
    const LearntFamily *learnt = family_->learnt;
    std::vector<double> prior(learnt ? learnt->n_hyperparameters : 0);
    if (learnt) learnt->read_hyperparameters(prior.data());
    if (hidden) {
        std::vector<double> numbers = hidden->numbers();
        archive[hidden->name()].array(&numbers, {-1}, &kFinite);
        if (archive.reads()) set_of_draws(numbers);
    }
    if (prior.empty()) return;
    archive["hyperparameters"].array(&prior, {static_cast<int64_t>(prior.size())});
    if (archive.reads() && !set_hyperparameters(prior.data()))
        refuse("emission: hyperparameters", "these are not those of a prior");
}
inline void ConjugateTable::visit_numbers(const Archive &archive, std::vector<double> *numbers,
                                          int64_t n_states) const {
    archive["numbers"].array(numbers, {n_states, family_->width});
    for (int64_t k = 0; archive.reads() && k < n_states; ++k)
        if (!family_->is_sound(&(*numbers)[k * family_->width], 1))
            refuse("emission", "the numbers of state " + std::to_string(k)
                               + " are no statistics of observations");
}
inline void ConjugateTable::write(const Archive &archive, const std::vector<int32_t> &labels) {
    // The start restaurant has the last label, and no observations.
    const int32_t n = labels[kStart];
    std::vector<double> numbers(static_cast<size_t>(n) * family_->width);
    for (size_t k = 0; k < labels.size(); ++k)
        if (labels[k] >= 0 && labels[k] < n)
            read(static_cast<int32_t>(k), &numbers[labels[k] * family_->width]);
    visit_numbers(archive, &numbers, n);
    visit_shared(archive);
}
inline void ConjugateTable::load(const Archive &archive, int32_t n_states) {
    std::vector<double> numbers;
    visit_shared(archive);
    visit_numbers(archive, &numbers, n_states);
    clear();
    for (int32_t k = 0; k < n_states; ++k) write(kFirst + k, &numbers[k * family_->width]);
}
inline void ConjugateTable::load_shared(const Archive &archive) {
    visit_shared(archive);
    adapt();
}
inline void ConjugateTable::check_record(const Archive &archive,
                                         const std::vector<int32_t> &labels) {
    const Archive before;
    visit_shared(before);
    std::string problem;
    try {
        std::vector<double> numbers;
        visit_shared(archive);
        visit_numbers(archive, &numbers, *std::max_element(labels.begin(), labels.end()) + 1);
        problem = compare(numbers, labels);
    } catch (...) {
        visit_shared(before.reread());
        throw;
    }
    visit_shared(before.reread());
    if (!problem.empty()) refuse("emission", problem);
}
inline std::string ConjugateTable::check(const std::vector<int32_t> &slots) {
    std::vector<double> numbers(static_cast<size_t>(n_slots) * family_->width);
    for (int32_t k = 0; k < n_slots; ++k)
        read(k, &numbers[static_cast<size_t>(k) * family_->width]);
    return compare(numbers, slots);
}
// The difference from a recount by the state of every step; empty without any.
inline std::string ConjugateTable::compare(const std::vector<double> &numbers,
                                           const std::vector<int32_t> &labels) const {
    const auto n = static_cast<int32_t>(numbers.size() / family_->width);
    const double found = error(numbers.data(), n, labels.data());
    // Well above the rounding errors of a few sweeps.
    if (found <= 1e-6) return "";
    std::ostringstream out;
    out << "the numbers differ from a recount of the observations by " << found;
    return out.str();
}

}  // namespace skihmm
