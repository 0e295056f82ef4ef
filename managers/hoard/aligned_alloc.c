/* Hoard exports no aligned_alloc: without one the call would be served by glibc, with blocks that are not Hoard's. */
#include <errno.h>
#include <stddef.h>

extern void *memalign(size_t, size_t);

__attribute__((visibility("default"))) void *
aligned_alloc(size_t alignment, size_t size)
{
	if (alignment == 0 || (alignment & (alignment - 1)) != 0) {
		errno = EINVAL;
		return NULL;
	}
	return memalign(alignment, size);
}
