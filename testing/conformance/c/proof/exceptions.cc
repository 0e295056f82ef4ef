// exceptions.cc: C++ exceptions that have the only pointer to a block while they are in flight, caught, rethrown, kept
// by an exception_ptr, or passed to another thread; and containers, whose links the library makes.
#include "proof.h"

#include <exception>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace {

kept held;
void *volatile handed[KEPT];

struct carrier {
    void *words[KEPT];
};

// In a function of its own, so that no copy stays in the frame of the function that throws.
__attribute__((noinline)) void throw_carrier(uint64_t seed) {
    carrier made = {};
    keep(&held, "an exception in flight", made.words, KEPT, 0, seed);
    throw made;
}

// Its destructor runs while the exception unwinds its frame.
struct collects_when_left {
    ~collects_when_left() {
        scrub_stack(SCRUB / 2);
        check_kept(&held);
    }
};

__attribute__((noinline)) void through(int depth, uint64_t seed) {
    collects_when_left guard;
    if (hidden(0))
        return;
    if (depth == 0)
        return throw_carrier(seed);
    through(depth - 1, seed);
}

__attribute__((noinline)) void rethrows(uint64_t seed) {
    try {
        through(1, seed);
    } catch (carrier &) {
        scrub_stack(SCRUB);
        check_kept(&held);
        throw;
    }
}

std::exception_ptr parked;

__attribute__((noinline)) void park_one(uint64_t seed) {
    try {
        through(0, seed);
    } catch (...) {
        parked = std::current_exception();
    }
}

__attribute__((noinline)) void catch_all(uint64_t seed) {
    try {
        rethrows(seed);
    } catch (const carrier &) {
        scrub_stack(SCRUB);
        check_kept(&held);
    }
}

} // namespace

CASE(PLAIN, exception_flight, "an exception has the only pointers while frames unwind, are caught, rethrow") {
    for (uint64_t seed = 1; seed <= effort(5, 2); seed++) {
        catch_all(seed);
        // The exception is destroyed; blocks of the unwinder may still have its words.
        check_gone(&held, KEPT / 8);
    }
}

CASE(PLAIN, exception_pointer, "an exception_ptr in static data has the only pointers; another thread rethrows it") {
    park_one(77);
    scrub_stack(SCRUB);
    check_kept(&held);
    std::thread([] {
        try {
            std::rethrow_exception(parked);
        } catch (const carrier &) {
            check_kept(&held);
        }
        // The C library keeps the stacks of ended threads, with their contents.
        scrub_stack(SCRUB);
    }).join();
    check_kept(&held);
    parked = nullptr;
    check_gone(&held, KEPT / 8);
}

CASE(PLAIN, exception_storm, "four threads throw and catch while a fifth collects") {
    static int done;
    std::vector<std::thread> threads;
    for (int number = 0; number < 4; number++)
        threads.emplace_back([number] {
            for (size_t i = 0; i < effort(3000, 600); i++) {
                try {
                    throw std::string(50 + i % 100, static_cast<char>('a' + number));
                } catch (const std::string &text) {
                    CHECK(text.size() == 50 + i % 100 && text[20] == 'a' + number, "an exception was overwritten");
                }
            }
            __atomic_fetch_add(&done, 1, __ATOMIC_SEQ_CST);
        });
    while (get_flag(&done) < 4) {
        collect();
        wait_ms(1);
    }
    for (auto &thread : threads)
        thread.join();
}

CASE(PLAIN, containers, "maps, lists, strings, shared pointers and closures through collections") {
    std::map<std::string, std::vector<int>> tree;
    std::unordered_map<int, std::shared_ptr<std::string>> table;
    std::list<std::function<size_t()>> calls;
    rng numbers = {5};
    for (size_t i = 0; i < effort(40000, 8000); i++) {
        int key = static_cast<int>(rng_below(&numbers, 5000));
        std::string name = "a key that does not fit into the string itself: " + std::to_string(key);
        tree[name].push_back(key);
        if (tree[name].size() > 5)
            tree.erase(name);
        auto &shared = table[key];
        if (!shared || rng_below(&numbers, 3) == 0)
            shared = std::make_shared<std::string>(name);
        if (i % 8 == 0) {
            auto copy = shared;
            calls.emplace_back([copy, key] { return copy->find(std::to_string(key)); });
        }
        if (calls.size() > 500)
            calls.pop_front();
        if (i % 1000 == 0)
            collect();
    }
    for (auto &[name, numbers_of] : tree)
        for (int key : numbers_of)
            CHECK(name.substr(48) == std::to_string(key), "the map has %s for %d", name.c_str(), key);
    for (auto &[key, shared] : table)
        CHECK(shared->substr(48) == std::to_string(key), "the table has %s for %d", shared->c_str(), key);
    for (auto &call : calls)
        CHECK(call() == 48, "a closure was overwritten");
}
