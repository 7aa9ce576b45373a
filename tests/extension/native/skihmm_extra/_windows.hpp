// Short windows of one state, each moved as a whole to another one.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "_rcd.hpp"

class WindowSweeps final : public skihmm::Kernel {
  public:
    explicit WindowSweeps(int64_t longest) : longest_(longest) {}
    skihmm::SweepCounts sweep(skihmm::Chain &chain) override {
        skihmm::SweepCounts counts;
        for (counts.n_proposed = 0; counts.n_proposed < chain.n_steps; ++counts.n_proposed)
            counts.n_accepted += move(chain);
        return counts;
    }

  private:
    bool move(skihmm::Chain &chain) {
        chain.reserve(1);
        const auto &transitions = *chain.transitions;
        skihmm::Emission &emission = *chain.emission;
        const int64_t start = skihmm::below(chain.bits, chain.n_steps);
        int64_t stop = start + 1;
        for (int64_t n = skihmm::below(chain.bits, longest_);
             n > 0 && !chain.is_last(stop - 1); --n)
            ++stop;
        path_.assign(&chain.states[start], &chain.states[start] + (stop - start));
        const int32_t old = path_[0];
        // The reverse of this move could not propose such labels.
        if (std::count(path_.begin(), path_.end(), old) != stop - start) return false;
        const int32_t j = chain.previous(start), o = chain.successor(stop - 1);

        exchange_.r_old.reset();
        exchange_.r_new.reset();
        exchange_.remove_block(chain, emission, start, stop, j, path_.data(), o);
        // A state without tables is as new as a new one; the successor's is a candidate of its
        // own.
        const bool is_new = !transitions.is_served(old) && old != o;
        candidates_.assign(1, is_new ? old : chain.free_slot(0));
        for (int32_t k = skihmm::kFirst; k < chain.n_slots; ++k)
            if (transitions.is_served(k) || k == o) candidates_.push_back(k);
        logs_.clear();
        prefixes_.resize(stop - start);
        for (const int32_t k : candidates_) {
            emission.fill_prefixes(start, stop, k, false, prefixes_.data());
            logs_.push_back(prefixes_.back() + std::log(transitions.prob(j, k))
                            + (o < 0 ? 0.0 : std::log(transitions.prob(k, o))));
        }
        const size_t chosen = draw(chain.bits);
        skihmm::Product q_old, q_new;
        const auto at = std::find(candidates_.begin(), candidates_.end(), old);
        q_old.multiply_log(logs_[at - candidates_.begin()]);
        q_new.multiply_log(logs_[chosen]);
        std::fill(path_.begin(), path_.end(), candidates_[chosen]);
        exchange_.add_block(chain, emission, start, stop, j, path_.data(), o);
        if (!exchange_.is_accepted(chain, q_old, q_new)) {
            exchange_.restore(chain, emission);
            return false;
        }
        exchange_.keep(chain, emission);
        for (int64_t t = start; t < stop; ++t) chain.assign(t, path_[0]);
        return true;
    }
    size_t draw(bitgen_t *g) const {
        const double largest = *std::max_element(logs_.begin(), logs_.end());
        double total = 0.0;
        for (const double x : logs_) total += std::exp(x - largest);
        double u = skihmm::uniform(g) * total;
        size_t i = 0;
        while (i + 1 < logs_.size() && (u -= std::exp(logs_[i] - largest)) >= 0.0) ++i;
        return i;
    }

    const int64_t longest_;
    skihmm::Exchange<skihmm::Emission> exchange_;
    std::vector<int32_t> path_, candidates_;
    std::vector<double> prefixes_, logs_;
};
