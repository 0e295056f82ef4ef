// C++: templates, members of namespaces, exceptions, operator new.
#include <memory>
#include <string>
#include <vector>

static volatile int sink;

namespace shop {
template <typename Thing> struct Buffer {
    std::vector<Thing> things;
    __attribute__((noinline)) void fill(size_t count) {
        things.reserve(count);
        sink = sink + 1;
    }
};

struct Error {
    char text[5000];
};

__attribute__((noinline)) void fail() {
    sink = sink + 1;
    throw Error();
}

__attribute__((noinline)) void attempt() {
    try {
        fail();
    } catch (const Error &) {
        char *volatile kept = new char[2002];
        delete[] kept;
        sink = sink + 1;
    }
}
} // namespace shop

int main() {
    for (int round = 0; round < 3; round++) {
        shop::Buffer<short> buffer;
        buffer.fill(1003);
        shop::attempt();
    }
}
