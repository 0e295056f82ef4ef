// operators.cc: C++ blocks that are deleted as what they are not.
#include "attack.h"

#include <cstdlib>
#include <new>

namespace {

constexpr std::size_t SMALL = 16, MIDDLE = 512;
constexpr int TRIES = 64;

} // namespace

CASE(SECURITY, delete_wrong_size, "a small block is deleted with a larger size, and given out as one of that size") {
    unsigned char *block = static_cast<unsigned char *>(hidden_pointer(::operator new(hidden(SMALL))));
    ::operator delete(block, hidden(MIDDLE));
    int found = 0;
    for (int i = 0; i < TRIES; i++)
        found |= hidden_pointer(::operator new(hidden(MIDDLE))) == block;
    state(found, MIDDLE);
}

CASE(SECURITY, delete_of_malloc, "a block of malloc is given to operator delete, and given out by operator new") {
    void *block = hidden_pointer(std::malloc(hidden(MIDDLE)));
    ::operator delete(block);
    int found = 0;
    for (int i = 0; i < TRIES; i++)
        found |= hidden_pointer(::operator new(hidden(MIDDLE))) == block;
    state(found, MIDDLE);
}
