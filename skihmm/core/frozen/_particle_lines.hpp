// Counts of customers in trees of restaurants (_contexts.hpp), by particle.
//
// A line holds the customers of some restaurants by an id: for transitions the dishes of one
// restaurant, for symbols the states whose restaurants have customers of one symbol.  A history's
// counts of a line are the sum of the counts common to all histories (Lines) and the customers who
// joined since (JoinedCounts), which a history copies.
#pragma once
#include <algorithm>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

#include "_containers.hpp"
#include "_context_shape.hpp"
#include "_record.hpp"

namespace skihmm {

struct IdCount { int32_t id, n; };

// A hash table of small lists: a copy costs the joined customers, not all customers.
class JoinedCounts {
  public:
    struct Entry { int32_t line, id, n, next; };
    const std::vector<Entry> &entries() const { return entries_; }
    void add(int32_t line, int32_t id) {
        for (int32_t at = head(line); at >= 0; at = entries_[at].next)
            if (entries_[at].id == id && entries_[at].line == line) {
                ++entries_[at].n;
                return;
            }
        entries_.push_back({line, id, 1, -1});
        if (entries_.size() <= heads_.size()) {
            link(entries_.size() - 1);
        } else {
            heads_.assign(std::max<size_t>(8, 2 * heads_.size()), -1);
            for (size_t i = 0; i < entries_.size(); ++i) link(i);
        }
    }
    template <class Visit> void visit(int32_t line, Visit visitor) const {
        for (int32_t at = head(line); at >= 0; at = entries_[at].next)
            if (entries_[at].line == line) visitor(entries_[at].id, entries_[at].n);
    }

  private:
    int32_t head(int32_t line) const {
        return heads_.empty() ? -1 : heads_[line & (heads_.size() - 1)];
    }
    void link(size_t i) {
        int32_t &first = heads_[entries_[i].line & (heads_.size() - 1)];
        entries_[i].next = first;
        first = static_cast<int32_t>(i);
    }

    std::vector<int32_t> heads_;            // a power of two of them, or none
    std::vector<Entry> entries_;
};

// A line by id, for all histories that need it in a step.
struct Row {
    WideVector<double> counts;
    int64_t n_customers = 0;
};

// A line is a restaurant of a block (a state's, a symbol's), a depth and a prefix; restaurants
// above the blocks are in the first block.
class Lines {
  public:
    int32_t depth = 1;                      // of this step's leaf

    // Places by step, concentrations by depth 1, 2, ...
    Lines(const ContextShape &shape, std::vector<ContextPlace> places,
          std::vector<double> alphas)
        : shape_(shape), places_(std::move(places)), alphas_(std::move(alphas)),
          first_line_(1, 0), prefixes_(shape.depth() + 1, 0) {
        int64_t sum = 0;
        for (int32_t d = 1; d <= shape.depth(); ++d) {
            first_line_.push_back(static_cast<int32_t>(sum));
            sum += shape.stride(d);
        }
        if (sum > kMostCustomers) throw std::bad_alloc();
        n_lines_ = static_cast<int32_t>(sum);
    }
    double alpha(int32_t d) const { return alphas_[d - 1]; }
    int32_t largest_depth() const { return shape_.depth(); }
    bool has_state(int32_t d) const { return shape_.has_state(d); }
    // Lines of a block.
    int32_t n_lines() const { return n_lines_; }
    void find(int64_t t) {
        ContextPlace at{shape_.n_before ? 0 : 1, 0};
        if (t < static_cast<int64_t>(places_.size())) at = places_[t];
        depth = at.depth;
        shape_.fill_prefixes(at, prefixes_.data());
    }
    int32_t line(int32_t block, int32_t d, int32_t prefix) const {
        return (has_state(d) ? block : 0) * n_lines_ + first_line_[d] + prefix;
    }
    // The line of this step.
    int32_t line(int32_t block, int32_t d) const { return line(block, d, prefixes_[d]); }
    int32_t count(int32_t line, int32_t id) const {
        for (const IdCount &entry : counts(line))
            if (entry.id == id) return entry.n;
        return 0;
    }
    void spread(int32_t line, int32_t n, Row *out) const {
        out->n_customers = 0;
        out->counts.assign(n, 0.0);
        for (const IdCount &entry : counts(line)) {
            out->counts[entry.id] = entry.n;
            out->n_customers += entry.n;
        }
    }
    // The line must not have the id.
    void append(int32_t line, int32_t id, int32_t n) { make(line).push_back({id, n}); }
    void change(int32_t line, int32_t id, int32_t by) {
        std::vector<IdCount> &counts = make(line);
        size_t i = 0;
        while (i < counts.size() && counts[i].id != id) ++i;
        if (i == counts.size()) counts.push_back({id, 0});
        // The customer who joined last leaves first: an id without customers is, or will be, at the
        // end.
        counts[i].n += by;
        while (!counts.empty() && counts.back().n == 0) counts.pop_back();
    }

  private:
    const std::vector<IdCount> &counts(int32_t line) const {
        static const std::vector<IdCount> none;
        const int32_t at = index_.find(line, 0);
        return at < 0 ? none : counts_[at];
    }
    std::vector<IdCount> &make(int32_t line) {
        int32_t at = index_.find(line, 0);
        if (at < 0) {
            at = static_cast<int32_t>(counts_.size());
            index_.insert(line, 0, at);
            counts_.emplace_back();
        }
        return counts_[at];
    }

    ContextShape shape_;
    std::vector<ContextPlace> places_;              // by step
    std::vector<double> alphas_;
    std::vector<int32_t> first_line_;               // by depth, in a block
    int32_t n_lines_ = 0;
    std::vector<int32_t> prefixes_;                 // of this step by depth
    CellIndex index_;                               // of a line in counts_
    std::vector<std::vector<IdCount>> counts_;
};

}  // namespace skihmm
