/* List reversal (reverse.c) with std::shared_ptr of the C++ library: what programmers write who want reference counts.
 * Each element and its count are blocks of their own, as `std::shared_ptr<T>(new T)` makes them. The library adjusts
 * counts atomically only in a process that has started a thread; this one has not.
 *
 * usage: reverse LENGTH REVERSALS [BYTES]; BYTES is 40, for the type is fixed when it is compiled. */
#include <memory>

#include "reverse.h"

namespace {

struct element;
using pointer = std::shared_ptr<element>;

uint64_t freed; // elements so far

struct element {
    pointer next;
    uint64_t value[4];
    element(uint64_t number, const pointer &following) : next(following), value{number, number, number, number} {}
    ~element() { freed++; }
    element(const element &) = delete;
    element &operator=(const element &) = delete;
};

pointer reversed(const pointer &list) {
    pointer result;
    for (pointer at = list; at; at = at->next) result = pointer(new element(at->value[0], result));
    return result;
}

void check(const pointer &list, uint64_t *length, uint64_t *sum) {
    *length = 0;
    for (pointer at = list; at; at = at->next) {
        ++*length;
        fold(sum, at->value[0]);
    }
}

} // namespace

int main(int count, char **arguments) {
    const struct task task = parse_arguments(count, arguments);
    // Freeing a list goes down its links by recursion: a long one would need more stack than there is.
    if (task.values != 4 || task.length > 20000) {
        fputs("reverse: with std::shared_ptr elements have 40 bytes and a list at most 20000 of them\n", stderr);
        return 2;
    }
    pointer list;
    for (uint64_t i = 0; i < task.length; i++) list = pointer(new element(i, list));
    uint64_t found = 0, done = 0, sum = 0;
    while (done < task.reversals) {
        pointer reverse = reversed(list);
        uint64_t before = freed;
        list = std::move(reverse);
        fold(&sum, freed - before + done++);
        if (done % 2 == 0) check(list, &found, &sum);
    }
    check(list, &found, &sum);
    list.reset();
    return report(&task, found, done, sum);
}
