/* flows.c: every flow of C with malloc and free, and those of control with a function that returns what it has freed. */
#include "shape.h"

#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#define ALLOCATE(type, count) malloc(sizeof(type[count]))
#define RELEASE(pointer) free(pointer)
#define COUNT 100

#define WITH_CONTROL
#define WITH_DATA
#define FORM malloc_free
#include "kinds.inc"

#undef WITH_DATA
#define RETURNED
#define FORM return_freed_ptr
#define TYPE char
#define NAME char
#include "type.inc"
