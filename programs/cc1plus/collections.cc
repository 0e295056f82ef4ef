// A program that uses the collections of the standard library on N types of its own, for a compiler: most of its work
// are the templates.

#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <unordered_map>
#include <vector>

template <int Number> struct Record {
    int key = Number;
    std::string name = std::to_string(Number);
    std::vector<std::unique_ptr<Record>> parts;
    bool operator<(const Record &other) const { return key < other.key; }
};

template <int Number> long total() {
    std::map<int, Record<Number>> ordered;
    std::unordered_map<std::string, std::vector<Record<Number> *>> named;
    for (int at = 0; at < 10; at++) {
        Record<Number> &record = ordered[at * 7919 % 31];
        record.key += at;
        record.parts.push_back(std::make_unique<Record<Number>>());
        named[record.name].push_back(&record);
    }
    std::vector<long> keys;
    for (auto &[name, records] : named) {
        std::sort(records.begin(), records.end(), [](auto *left, auto *right) { return *left < *right; });
        for (auto *record : records)
            keys.push_back(record->key + long(record->parts.size()));
    }
    return std::accumulate(keys.begin(), keys.end(), 0L);
}

template <int Number> long all() {
    if constexpr (Number == 0)
        return 0;
    else
        return total<Number>() + all<Number - 1>();
}

int main() { std::cout << all<N>() << '\n'; }
