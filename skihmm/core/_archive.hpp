// Records of chains and draws: trees of named numbers, for pickles and files.
//
// A class lists the fields of its record once, in a function that writes them to an archive or
// reads them from it, each with its limits.  A file may be torn, foreign or malicious: that
// function checks all entries before any of them determines an allocation, is an index or changes
// the state; a violation is a std::invalid_argument, a ValueError in Python.
#pragma once
#include <cstdint>
#include <limits>
#include <list>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace skihmm {

[[noreturn]] inline void refuse(const std::string &what, const std::string &why) {
    throw std::invalid_argument(what + ": " + why);
}

// An object of Python (_record.pyx): a dict, a list, an array or a number.
struct Record {
    enum Kind { kOther, kInteger, kNumber, kIntegers, kBytes, kNumbers, kList, kDict };

    Kind kind = kOther;
    std::string name;                   // in its dict
    std::string seen;                   // for messages, if it is no array, list or dict
    double number = 0.0;
    std::vector<int64_t> shape;         // of an array
    std::vector<int32_t> integers;      // those that are read; bytes are only written
    std::vector<uint8_t> bytes;
    std::vector<double> numbers;
    std::list<Record> items;            // of a dict or list; they stay where they are

    // (A description in Python of every array would take as long as its conversion.)
    std::string description() const {
        if (kind == kList) return "a list of " + std::to_string(items.size());
        if (kind == kDict) return "of type dict";
        if (kind != kIntegers && kind != kNumbers) return seen;
        std::string sizes;
        for (const int64_t n : shape) sizes += std::to_string(n) + ",";
        return (kind == kIntegers ? "an array of integers of shape ("
                                  : "an array of type float64 and shape (") + sizes + ")";
    }
    Record *add(const std::string &item) {
        items.emplace_back();
        items.back().name = item;
        return &items.back();
    }
};

// Limits of the numbers of a field.
struct Range {
    double least, most;
    const char *words = nullptr;

    // False for NaN.
    bool holds(double x) const { return least <= x && x <= most; }
    std::string expected() const {
        if (words) return words;
        return std::to_string(static_cast<int64_t>(least)) + " to "
               + std::to_string(static_cast<int64_t>(most));
    }
};
// Products of two concentrations, and their ratios, are well within the range of a double.
constexpr double kLargest = std::numeric_limits<double>::max();
constexpr Range kConcentration{1e-50, 1e50, "a concentration from 1e-50 to 1e+50"};
constexpr Range kFinite{-kLargest, kLargest, "a finite number"};
constexpr Range kPositive{std::numeric_limits<double>::denorm_min(), kLargest, "a positive number"};
constexpr Range kLogProbability{-kLargest, 0.0, "a finite number up to 0"};

// A record, or a part of it, that is read or written.
class Archive {
  public:
    using Shape = std::vector<int64_t>;     // -1: any number

    Archive() : Archive(std::make_shared<Record>(), false, "") { is(Record::kDict); }
    // `what` begins messages; it is empty for a whole record.
    Archive(std::shared_ptr<Record> record, bool reads, std::string what)
        : record_(std::move(record)), what_(std::move(what)), reads_(reads) {}
    const Record &record() const { return *record_; }
    bool reads() const { return reads_; }
    const std::string &what() const { return what_; }
    // Read back what was written.
    Archive reread() const { return {record_, true, what_}; }
    // This archive under another name.
    Archive named(const std::string &what) const { return {record_, reads_, what}; }
    // Whether an optional field is there: in a record that is read, or `writes`.
    bool has(const std::string &name, bool writes) const {
        return reads_ ? find(name) != nullptr : writes;
    }
    // A field of a dict.
    Archive operator[](const std::string &name) const {
        if (!is(Record::kDict)) refuse_kind("a dict");
        Record *found = reads_ ? find(name) : record_->add(name);
        if (!found)
            throw std::invalid_argument((what_.empty() ? "the record" : what_) + " has no entry '"
                                        + name + "'");
        return {std::shared_ptr<Record>(record_, found), reads_,
                what_.empty() ? name : what_ + ": " + name};
    }
    // The items of a list of n.
    std::vector<Archive> list(size_t n) const {
        if (!is(Record::kList) || (reads_ && record_->items.size() != n))
            refuse_kind("a list of " + std::to_string(n) + " records");
        record_->items.resize(n);
        std::vector<Archive> out;
        for (Record &item : record_->items)
            out.push_back({std::shared_ptr<Record>(record_, &item), reads_, what_});
        return out;
    }
    size_t size() const { return record_->items.size(); }
    // A number, or an integer.
    template <class T> void scalar(T *value, const Range &range) const {
        constexpr bool is_integer = std::is_integral_v<T>;
        if (!is(Record::kInteger) && (is_integer || !is(Record::kNumber)))
            refuse_kind(is_integer ? "an integer" : "a number");
        if (!reads_) {
            record_->kind = is_integer ? Record::kInteger : Record::kNumber;
            record_->number = *value;
        }
        if (reads_ && !range.holds(record_->number)) refuse_kind(range.expected());
        *value = static_cast<T>(record_->number);
    }
    // Integers, bytes or numbers, whose entries are not checked without a range.
    template <class T>
    void array(std::vector<T> *values, Shape shape = {-1}, const Range *range = nullptr) const {
        if (!reads_) {
            write(*values);
            for (int64_t &n : shape)
                if (n < 0) n = static_cast<int64_t>(values->size());
            record_->shape = std::move(shape);
            return;
        }
        constexpr bool is_real = std::is_same_v<T, double>;
        bool fits = is(is_real ? Record::kNumbers : Record::kIntegers)
                    && record_->shape.size() == shape.size();
        for (size_t i = 0; fits && i < shape.size(); ++i)
            fits = shape[i] < 0 || shape[i] == record_->shape[i];
        if (!fits) {
            std::string sizes = is_real ? "float64 of shape" : "a one-dimensional array of integers:";
            for (const int64_t n : shape) sizes += n < 0 ? " any" : " " + std::to_string(n);
            refuse_kind(sizes);
        }
        const auto take = [&](const auto &found) {
            for (const auto x : found)
                if (range && !range->holds(x))
                    refuse(what_, "an entry is " + std::to_string(x) + "; expected "
                                  + range->expected());
            values->assign(found.begin(), found.end());
        };
        if constexpr (is_real) take(record_->numbers);
        else take(record_->integers);
    }

  private:
    // Whether it is of a kind, which it becomes when it is written.
    bool is(Record::Kind kind) const {
        if (!reads_) record_->kind = kind;
        return record_->kind == kind;
    }
    Record *find(const std::string &name) const {
        for (Record &item : record_->items)
            if (item.name == name) return &item;
        return nullptr;
    }
    template <class T> void write(const std::vector<T> &values) const {
        is(std::is_same_v<T, double> ? Record::kNumbers
           : std::is_same_v<T, uint8_t> ? Record::kBytes : Record::kIntegers);
        if constexpr (std::is_same_v<T, double>) record_->numbers = values;
        else if constexpr (std::is_same_v<T, uint8_t>) record_->bytes = values;
        else record_->integers = values;
    }
    [[noreturn]] void refuse_kind(const std::string &expected) const {
        throw std::invalid_argument((what_.empty() ? "the record" : what_) + " is "
                                    + record_->description() + "; expected " + expected);
    }

    std::shared_ptr<Record> record_;
    std::string what_;
    bool reads_;
};

}  // namespace skihmm
