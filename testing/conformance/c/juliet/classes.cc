// classes.cc: classes that own a block and share it by mistake: by assignment to itself, by a copy, by an assignment.
#include "shape.h"

#include <cstdlib>
#include <cstring>

namespace {

constexpr std::size_t SIZE = 100;

void *take() { return hidden_pointer(std::malloc(SIZE)); }

struct name {
    char *text;
    name() : text(static_cast<char *>(take())) { std::memset(text, OWN, SIZE); }
};

/* Frees its text before it copies the other's, which may be its own. */
struct assigned : name {
    assigned &operator=(const assigned &other) {
        std::free(hidden_pointer(text));
        attack(take, SIZE);
        judge_read(other.text, SIZE);
        return *this;
    }
};

/* Has neither a copy constructor nor an assignment: the text has two owners. */
struct copied : name {
    ~copied() { std::free(hidden_pointer(text)); }
};

} // namespace

CASE(SECURITY, cwe416_operator_equals_01, "an object is assigned to itself") {
    assigned one;
    one = *static_cast<assigned *>(hidden_pointer(&one));
}

CASE(SECURITY, cwe415_no_copy_const_01, "an object is copied, and both are destroyed") {
    copied *one = new copied, *two = new copied(*one);
    delete one;
    attack(take, SIZE);
    delete two;
    judge_blocks(take, SIZE);
}

CASE(SECURITY, cwe415_no_assignment_op_01, "an object is assigned to another, and both are destroyed") {
    copied *one = new copied, *two = new copied;
    *two = *one;
    delete one;
    attack(take, SIZE);
    delete two;
    judge_blocks(take, SIZE);
}
