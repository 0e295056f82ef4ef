// operators.cc: C++ operator new and delete, those of the manager or libstdc++'s over its malloc.
#include "check.h"

#include <cstdlib>
#include <map>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

void aligned(void *block, std::size_t alignment, const char *what) {
    CHECK(block && reinterpret_cast<std::uintptr_t>(block) % alignment == 0, "%s gave %p, alignment %zu", what, block,
          alignment);
}

void *throwing_new(std::size_t size) { return hidden_pointer(::operator new(hidden(size))); }

} // namespace

CASE(PLAIN, cxx_operators, "every form of operator new and delete") {
    for (std::size_t size = 0; size < 70000; size = size * 2 + 1) {
        void *blocks[4] = {throwing_new(size), hidden_pointer(::operator new[](size)),
                           hidden_pointer(::operator new(size, std::nothrow)),
                           hidden_pointer(::operator new[](size, std::nothrow))};
        for (int i = 0; i < 4; i++) {
            aligned(blocks[i], size >= 16 ? 16 : 8, "operator new");
            fill(blocks[i], size, static_cast<std::uint64_t>(i));
            for (int j = 0; j < i; j++)
                CHECK(blocks[i] != blocks[j], "operator new(%zu) gave the same block twice", size);
        }
        for (int i = 0; i < 4; i++)
            check_filled(blocks[i], size, static_cast<std::uint64_t>(i), "a block of operator new");
        ::operator delete(blocks[0], size);
        ::operator delete[](blocks[1], size);
        ::operator delete(blocks[2], std::nothrow);
        ::operator delete[](blocks[3]);
        for (std::size_t alignment = 1; alignment <= 65536; alignment *= 4) {
            auto wanted = static_cast<std::align_val_t>(alignment);
            void *over[4] = {hidden_pointer(::operator new(size, wanted)),
                             hidden_pointer(::operator new[](size, wanted)),
                             hidden_pointer(::operator new(size, wanted, std::nothrow)),
                             hidden_pointer(::operator new[](size, wanted, std::nothrow))};
            for (int i = 0; i < 4; i++) {
                aligned(over[i], alignment, "aligned operator new");
                fill(over[i], size, 9);
            }
            ::operator delete(over[0], size, wanted);
            ::operator delete[](over[1], wanted);
            ::operator delete(over[2], wanted, std::nothrow);
            ::operator delete[](over[3], size, wanted);
        }
    }
    ::operator delete(hidden_pointer(nullptr));
    ::operator delete[](hidden_pointer(nullptr), std::nothrow);
}

CASE(PLAIN, cxx_nothrow, "nothrow operator new without memory gives null") {
    auto huge = hidden(static_cast<std::size_t>(PTRDIFF_MAX) - 4096);
    CHECK(!hidden_pointer(::operator new(huge, std::nothrow)), "operator new gave a block of PTRDIFF_MAX");
    CHECK(!hidden_pointer(::operator new[](huge, std::nothrow)), "operator new[] gave a block of PTRDIFF_MAX");
    CHECK(!hidden_pointer(::operator new(huge, std::align_val_t(64), std::nothrow)),
          "aligned operator new gave a block of PTRDIFF_MAX");
}

CASE(PLAIN, cxx_bad_alloc, "operator new without memory throws std::bad_alloc") {
    for (int form = 0; form < 4; form++) {
        auto huge = hidden(static_cast<std::size_t>(PTRDIFF_MAX) - 4096);
        bool caught = false;
        try {
            void *block = form == 0   ? ::operator new(huge)
                          : form == 1 ? ::operator new[](huge)
                          : form == 2 ? ::operator new(huge, std::align_val_t(64))
                                      : ::operator new[](huge, std::align_val_t(64));
            CHECK(hidden_pointer(block), "operator new gave null instead of throwing");
            fail("operator new gave a block of PTRDIFF_MAX");
        } catch (const std::bad_alloc &) {
            caught = true;
        }
        CHECK(caught, "operator new did not throw");
    }
}

namespace {
int handler_calls;
void handler() {
    if (++handler_calls == 3)
        throw std::runtime_error("enough");
}
} // namespace

CASE(PLAIN, cxx_new_handler, "operator new without memory calls the handler until it gives up") {
    std::set_new_handler(handler);
    try {
        void *block = throwing_new(static_cast<std::size_t>(PTRDIFF_MAX) - 4096);
        fail("operator new gave %p", block);
    } catch (const std::runtime_error &) {
        CHECK(handler_calls == 3, "the handler was called %d times", handler_calls);
    } catch (const std::bad_alloc &) {
        fail("std::bad_alloc was thrown after %d calls of the handler", handler_calls);
    }
}

CASE(PLAIN, cxx_containers, "strings, vectors, maps and shared pointers in four threads, exceptions thrown") {
    auto body = [](std::size_t seed) {
        rng random = {seed + 1};
        std::map<std::size_t, std::string> words;
        std::vector<std::shared_ptr<std::vector<std::size_t>>> lists;
        for (std::size_t i = 0; i < effort(4000, 1500); i++) {
            std::size_t key = rng_below(&random, 500);
            words[key] = std::string(1 + key % 90, static_cast<char>('a' + key % 26));
            auto list = std::make_shared<std::vector<std::size_t>>();
            for (std::size_t j = 0; j < 20; j++)
                list->push_back(key + j);
            lists.push_back(list);
            if (lists.size() > 100)
                lists.erase(lists.begin(), lists.begin() + 50);
            try {
                if (i % 10 == 0)
                    throw std::runtime_error(std::string(200, 'x'));
            } catch (const std::runtime_error &error) {
                CHECK(std::string(error.what()).size() == 200, "an exception lost its text");
            }
        }
        for (auto &[key, word] : words)
            CHECK(word == std::string(1 + key % 90, static_cast<char>('a' + key % 26)), "a string in a map changed");
        for (auto &list : lists)
            CHECK(list->at(19) == list->at(0) + 19, "a vector changed");
    };
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < 4; i++)
        threads.emplace_back(body, i);
    for (auto &thread : threads)
        thread.join();
}

namespace {
int locals_destroyed;
struct local {
    std::string text = std::string(300, 'l');
    ~local() {
        std::string copy = text + std::string(1000, 'm');
        CHECK(copy == std::string(300, 'l') + std::string(1000, 'm'),
              "a string in a thread-local destructor changed");
        __atomic_add_fetch(&locals_destroyed, 1, __ATOMIC_RELAXED);
    }
};
thread_local local of_thread;
} // namespace

CASE(PLAIN, cxx_thread_locals, "destructors of thread_local objects allocate") {
    int count = static_cast<int>(effort(200, 50));
    for (int i = 0; i < count; i++)
        std::thread([] { CHECK(of_thread.text.size() == 300, "a thread_local object changed"); }).join();
    CHECK(locals_destroyed == count, "%d thread_local objects were destroyed of %d", locals_destroyed, count);
}

CASE(PLAIN, cxx_mixed, "blocks of malloc and of operator new are live at the same time") {
    std::vector<void *> made;
    for (std::size_t i = 0; i < 2000; i++) {
        void *block = i % 2 ? std::malloc(i) : ::operator new(i);
        CHECK(block || i == 0, "a block of %zu bytes was refused", i);
        fill(block, block ? i : 0, i);
        made.push_back(block);
    }
    for (std::size_t i = 0; i < 2000; i++) {
        check_filled(made[i], made[i] ? i : 0, i, "a block of malloc or operator new");
        if (i % 2)
            std::free(made[i]);
        else
            ::operator delete(made[i]);
    }
}
