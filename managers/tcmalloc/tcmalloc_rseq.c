/*
 * TCMalloc's per-CPU caches need the thread's one restartable-sequence registration, and glibc 2.35 and later take it
 * first. Google's answer is to start every program with GLIBC_TUNABLES=glibc.pthread.rseq=0; the same is done here
 * without touching the environment: TCMalloc's calls of syscall() are linked to this function, which releases glibc's
 * registration just before TCMalloc requests its own. The kernel then marks glibc's area as unregistered and glibc's
 * only reader, sched_getcpu, falls back to the vDSO. If that fails, TCMalloc's own attempt fails as it would have
 * without this file and it works without per-CPU caches.
 */
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#define RSEQ_SIGNATURE 0x53053053
#elif defined(__aarch64__)
#define RSEQ_SIGNATURE 0xd428bc00
#endif
#define RSEQ_UNREGISTER 1
/* The size the kernel was given before glibc exported a larger one. */
#define RSEQ_SMALLEST 32

extern long __real_syscall(long, long, long, long, long, long, long);

extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

long __wrap_syscall(long, long, long, long, long, long, long);

/* gcc has a builtin function for it on x86-64 from version 11 on. */
static intptr_t
thread_pointer(void)
{
#if defined(__x86_64__)
	intptr_t pointer;

	__asm__("mov %%fs:0, %0" : "=r"(pointer));
	return pointer;
#else
	return (intptr_t)__builtin_thread_pointer();
#endif
}

long
__wrap_syscall(long number, long a, long b, long c, long d, long e, long f)
{
#if defined(RSEQ_SIGNATURE) && defined(SYS_rseq)
	if (number == SYS_rseq && c == 0 && &__rseq_size != NULL && &__rseq_offset != NULL && __rseq_size != 0) {
		long area = (long)(thread_pointer() + __rseq_offset);
		long size = __rseq_size < RSEQ_SMALLEST ? RSEQ_SMALLEST : __rseq_size;

		__real_syscall(SYS_rseq, area, size, RSEQ_UNREGISTER, RSEQ_SIGNATURE, 0, 0);
	}
#endif
	return __real_syscall(number, a, b, c, d, e, f);
}
