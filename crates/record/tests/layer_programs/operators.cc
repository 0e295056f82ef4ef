// Every operator new and operator delete.
extern "C++" {
#include "log.h"
}
#include <new>

static int handled;
static void handler() {
    handled++;
    std::set_new_handler(nullptr);
}

int main() {
    log_begin();
    mark(MARK_BEGIN);
    const std::align_val_t a64{64}, a4096{4096};
    void *p;
#define PLAIN(NAME, REST) \
    p = NEW(3, 0, 100, NAME(100)); given_back(1, p); REST(p); \
    p = NEW(3, 0, 0, NAME(0)); given_back(1, p); REST(p, (size_t)0); \
    p = NEW(3, 0, 70001, NAME(70001)); given_back(1, p); REST(p, (size_t)70001); \
    p = NEW(3, 0, 33, NAME(33, std::nothrow)); given_back(1, p); REST(p, std::nothrow); \
    p = NEW(3, 64, 100, NAME(100, a64)); given_back(1, p); REST(p, a64); \
    p = NEW(3, 4096, 5, NAME(5, a4096)); given_back(1, p); REST(p, (size_t)5, a4096); \
    p = NEW(3, 64, 7, NAME(7, a64, std::nothrow)); given_back(1, p); REST(p, a64, std::nothrow);
    PLAIN(operator new, operator delete)
    PLAIN(operator new[], operator delete[])
    operator delete(nullptr);
    operator delete[](nullptr);
    mark(MARK_END);

    // Out of memory: the next operator is called, which calls the handler, and throws what it has allocated.
    std::set_new_handler(handler);
    try {
        p = operator new((size_t)1 << 59);
        CHECK(!"reached");
    } catch (const std::bad_alloc &) {
        handled += 10;
    }
    CHECK(handled == 11);
    CHECK(operator new((size_t)1 << 59, std::nothrow) == nullptr);
    show();
}
