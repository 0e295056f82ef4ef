/*
 * The nothrow forms of C++ operator delete, which rpmalloc's override leaves out. libstdc++'s own would forward to
 * the plain forms, but then they would come from another object than `operator new`.
 */
#include <stddef.h>

extern void rpfree(void *);

#define EXPORT __attribute__((visibility("default")))

EXPORT void _ZdlPvRKSt9nothrow_t(void *block, const void *tag) { (void)tag; rpfree(block); }
EXPORT void _ZdaPvRKSt9nothrow_t(void *block, const void *tag) { (void)tag; rpfree(block); }

EXPORT void
_ZdlPvSt11align_val_tRKSt9nothrow_t(void *block, size_t alignment, const void *tag)
{
	(void)alignment;
	(void)tag;
	rpfree(block);
}

EXPORT void
_ZdaPvSt11align_val_tRKSt9nothrow_t(void *block, size_t alignment, const void *tag)
{
	(void)alignment;
	(void)tag;
	rpfree(block);
}
