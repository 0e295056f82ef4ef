/* The nothrow forms of C++'s aligned operator delete, which snmalloc's override leaves out. */
#include <stddef.h>

extern void free(void *);

#define EXPORT __attribute__((visibility("default")))

EXPORT void
_ZdlPvSt11align_val_tRKSt9nothrow_t(void *block, size_t alignment, const void *tag)
{
	(void)alignment;
	(void)tag;
	free(block);
}

EXPORT void
_ZdaPvSt11align_val_tRKSt9nothrow_t(void *block, size_t alignment, const void *tag)
{
	(void)alignment;
	(void)tag;
	free(block);
}
