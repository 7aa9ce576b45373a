// The contexts of steps on which symbols depend: codes of categories by column, and their tree.
#pragma once
#include <cstdint>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "_context_shape.hpp"

namespace skihmm {

class SymbolContexts {
  public:
    explicit SymbolContexts(int32_t n_columns = 0) : codes_(n_columns), numbers_(n_columns) {
        shape_.parents.resize(n_columns);
    }
    const ContextShape &shape() const { return shape_; }
    int32_t n_columns() const { return shape_.n_columns(); }
    // Number the prefixes of a context that are new; code -1 is missing.
    void add(const int32_t *context) {
        int32_t prefix = 0;
        for (int32_t n = 0; n < n_columns() && context[n] >= 0; ++n)
            prefix = add_prefix(n, prefix, context[n]).first;
    }
    // Where a context is drawn, as far as it is known.
    ContextPlace place(const int32_t *context) const {
        ContextPlace at;
        for (int32_t n = 0; n < n_columns() && context[n] >= 0; ++n) {
            const auto found = numbers_[n].find({at.prefix, context[n]});
            if (found == numbers_[n].end()) break;
            at = {n + 2, found->second};
        }
        return at;
    }
    bool operator==(const SymbolContexts &other) const {
        return shape_ == other.shape_ && codes_ == other.codes_;
    }
    // The parent of every prefix, and its code in the last column.
    void visit(const Archive &archive) {
        SymbolContexts read(n_columns());
        const std::vector<Archive> above = archive["parents"].list(n_columns()),
                                   last = archive["values"].list(n_columns());
        for (int32_t n = 0; n < n_columns(); ++n) {
            std::vector<int32_t> parents = shape_.parents[n], codes = codes_[n];
            const Range known{0, read.shape_.n_prefixes(n) - 1.0};
            above[n].array(&parents, {-1}, &known);
            last[n].array(&codes, {static_cast<int64_t>(parents.size())}, &kCodes);
            for (size_t i = 0; i < codes.size(); ++i)
                if (!read.add_prefix(n, parents[i], codes[i]).second)
                    refuse(archive.what(), "a prefix occurs twice");
        }
        *this = std::move(read);
    }

  private:
    static constexpr Range kCodes{0, std::numeric_limits<int32_t>::max()};

    // Its number, and whether it is new.
    std::pair<int32_t, bool> add_prefix(int32_t n, int32_t parent, int32_t code) {
        const int32_t next = static_cast<int32_t>(codes_[n].size());
        const auto [at, is_new] = numbers_[n].emplace(std::make_pair(parent, code), next);
        if (is_new) {
            shape_.parents[n].push_back(parent);
            codes_[n].push_back(code);
        }
        return {at->second, is_new};
    }

    ContextShape shape_;
    std::vector<std::vector<int32_t>> codes_;
    std::vector<std::map<std::pair<int32_t, int32_t>, int32_t>> numbers_;   // of (parent, code)
};

}  // namespace skihmm
