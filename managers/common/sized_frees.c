/*
 * C23's, which some allocators have not: the C library's would free blocks that are not its own. Weak, for an allocator
 * may have them in its next version.
 */
#include <stddef.h>

#define EXPORT __attribute__((visibility("default"), weak))

extern void free(void *);

EXPORT void
free_sized(void *block, size_t size)
{
	(void)size;
	free(block);
}

EXPORT void
free_aligned_sized(void *block, size_t alignment, size_t size)
{
	(void)alignment;
	(void)size;
	free(block);
}
