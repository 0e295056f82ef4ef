/* Some allocators have no reallocarray of their own; without one the call would be served by another object. */
#include <errno.h>
#include <stddef.h>

extern void *realloc(void *, size_t);

__attribute__((visibility("default"))) void *
reallocarray(void *block, size_t count, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(count, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	return realloc(block, bytes);
}
