// 2,000 call sites that allocate through templates, which the compiler inlines into them. The argument chooses what site
// 1234 does otherwise: `leak` loses an object, `twice` allocates twice as many; `pins` has the survivors of `log_audit`
// between the objects of all others, which are freed.
#include <cstdlib>
#include <cstring>
#include <memory>
#include <sys/prctl.h>
#include <vector>

template <int Bytes> struct Item {
    char bytes[Bytes];
};

template <class T> struct Pool {
    std::vector<std::unique_ptr<T>> kept;

    Pool() { kept.reserve(100000); }
    [[gnu::noinline]] void keep(T *item) { kept.emplace_back(item); }
    [[gnu::always_inline]] inline void make() { keep(std::make_unique<T>().release()); }
    [[gnu::always_inline]] inline void fill(int times) {
        for (int at = 0; at < times; at++)
            make();
    }
};

// Never destroyed: what is left at the end is what a snapshot shows.
static auto &middle = *new Pool<Item<200>>;
static auto &audit = *new Pool<Item<72>>;
static bool leaks;
static int planted = 1;
static void *volatile sink;

[[gnu::always_inline]] static inline void allocate(int number) {
    middle.fill(number == 1234 ? 4 * planted : 4);
    if (number == 1234 && leaks) {
        sink = std::make_unique<Item<100>>().release();
        sink = nullptr;
    }
}

#define TEN(n) SITE(n##0) SITE(n##1) SITE(n##2) SITE(n##3) SITE(n##4) SITE(n##5) SITE(n##6) SITE(n##7) SITE(n##8) SITE(n##9)
#define HUNDRED(n) TEN(n##0) TEN(n##1) TEN(n##2) TEN(n##3) TEN(n##4) TEN(n##5) TEN(n##6) TEN(n##7) TEN(n##8) TEN(n##9)
#define THOUSAND(n) \
    HUNDRED(n##0) HUNDRED(n##1) HUNDRED(n##2) HUNDRED(n##3) HUNDRED(n##4) HUNDRED(n##5) HUNDRED(n##6) HUNDRED(n##7) \
    HUNDRED(n##8) HUNDRED(n##9)

#define SITE(n) [[gnu::noinline]] static void site_##n() { allocate(n); }
THOUSAND(1)
THOUSAND(2)
#undef SITE

[[gnu::noinline]] static void log_audit() { audit.make(); }

#define SITE(n) site_##n,
static void (*const all[])() = {THOUSAND(1) THOUSAND(2)};

int main(int count, char **words) {
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    const char *mode = count > 1 ? words[1] : "";
    leaks = !strcmp(mode, "leak");
    planted = strcmp(mode, "twice") ? 1 : 2;
    bool pins = !strcmp(mode, "pins");
    for (int round = 0; round < (pins ? 10 : 1); round++)
        for (int at = 0; at < 2000; at++) {
            all[at]();
            if (pins && at % 8 == 0)
                log_audit();
        }
    if (pins)
        middle.kept.clear();
    return 0;
}
