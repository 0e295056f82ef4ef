/* musl takes the allocator's lock over fork. Outside of musl that is done here, or a child could wait for it forever. */
#include <pthread.h>

extern pthread_mutex_t malloc_lock __attribute__((visibility("hidden")));

static void
take(void)
{
	pthread_mutex_lock(&malloc_lock);
}

static void
give(void)
{
	pthread_mutex_unlock(&malloc_lock);
}

__attribute__((constructor)) static void
over_fork(void)
{
	pthread_atfork(take, give, give);
}
