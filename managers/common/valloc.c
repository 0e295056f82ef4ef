/*
 * What glibc's family has and some allocators have not: without these the calls would be served by glibc, with blocks that
 * are not theirs.
 */
#include <errno.h>
#include <stddef.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

extern void *aligned_alloc(size_t, size_t);

static size_t
page(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

EXPORT void *
valloc(size_t size)
{
	return aligned_alloc(page(), size);
}

EXPORT void *
pvalloc(size_t size)
{
	size_t last = page() - 1;

	if (__builtin_add_overflow(size, last, &size)) {
		errno = ENOMEM;
		return NULL;
	}
	return aligned_alloc(page(), size & ~last);
}
