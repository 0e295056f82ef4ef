// flows.cc: every flow with new and with new[], and those that only C++ has with malloc.
#include "shape.h"

#include <cstdlib>
#include <cstring>
#if PART <= 2
#include <list>
#include <map>
#include <vector>
#endif

class two_ints_class {
public:
    int first, second;
    two_ints_class() : first(1), second(2) {}
};

#if PART <= 2
#define WITH_PLUS
#endif
#define ALLOCATE(type, count) std::malloc(sizeof(type[count]))
#define RELEASE(pointer) std::free(pointer)
#define COUNT 100
#define FORM malloc_free
#include "kinds.inc"
#undef ALLOCATE
#undef RELEASE

#define WITH_CONTROL
#define WITH_DATA
#define WITH_CLASS
#define ALLOCATE(type, count) new type[count]
#define RELEASE(pointer) delete[] (pointer)
#define FORM new_delete_array
#include "kinds.inc"
#undef ALLOCATE
#undef RELEASE
#undef COUNT

#define ALLOCATE(type, count) new type
#define RELEASE(pointer) delete (pointer)
#define COUNT 1
#define FORM new_delete
#include "kinds.inc"
