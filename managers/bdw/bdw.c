/*
 * Boehm, Demers and Weiser's collector, as Debian builds it, under the malloc family: all that an unmodified program
 * needs to run on it.
 *
 *   BDW_FREES=honour   free reclaims at once, a collection reclaims what leaks (the default)
 *   BDW_FREES=ignore   free does nothing: Zorn's configuration (1992, section 3). realloc leaves the old block too, as
 *                      libgc's own IGNORE_FREE has it
 *
 * Everything else, in particular heap sizes, is left to libgc and its own GC_* variables.
 *
 * This shim supplies what libgc cannot find by itself:
 *   - threads: each is registered at its start, or at its first malloc when it was created in another way, and stays so
 *     until its last destructor has run. The result of a thread that has ended and is not joined yet is a root.
 *   - blocks of the dynamic loader (thread vectors, thread-local storage of late libraries) are held from stacks that
 *     wait in glibc's cache for their next thread, which no collector scans: they are uncollectable, and freed
 *     when the loader frees them, in both modes.
 *   - the main thread's static thread-local storage is in no object's data segment: it is added to the roots.
 *   - memory that the program maps itself, anonymous and writable, is pushed as a root (python's frames and its arenas
 *     are such). libgc alone would lose blocks that are held only from there. Mappings of the C library itself are
 *     not seen, nor are files mapped privately.
 *
 * A pause lasts from when the collector begins to stop the threads to the end of its reclaiming, for which the
 * collecting thread waits; sweeping that libgc leaves to later allocations is not in it.
 */
#define _GNU_SOURCE
#define GC_THREADS
#define GC_NO_THREAD_REDIRECTS
#include <gc/gc.h>
#include <gc/gc_mark.h>

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../../include/heaptoll.h"

#define EXPORT __attribute__((visibility("default")))
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define CALLER ((uintptr_t)__builtin_return_address(0))
#define GRANULE 16

struct range {
	uintptr_t start, end;
};

static int within(const struct range *range, uintptr_t address) {
	return address - range->start < range->end - range->start;
}

/* Code of the loader and of libgc. */
static struct range loader, collector;
static int ignores_frees;
/* Whether a block was ever allocated that begins after the beginning of libgc's object. */
static int any_displaced;

/* --- before libgc can start --------------------------------------------------------------------------------------- */

/* The loader allocates before the C library has its environment, and libgc allocates by malloc while it starts. These
 * blocks are never reused. They lie in a data segment, so their contents are roots. */
static enum { BEFORE, BEGINNING, READY } stage;
static char arena[1 << 15] __attribute__((aligned(GRANULE)));
static size_t arena_used;

static int in_arena(const void *block) {
	return (uintptr_t)block - (uintptr_t)arena < sizeof arena;
}

static size_t arena_size(const void *block) {
	return ((const size_t *)block)[-1];
}

static void *arena_take(size_t alignment, size_t size) {
	if (alignment < GRANULE)
		alignment = GRANULE;
	size_t at = __atomic_load_n(&arena_used, __ATOMIC_RELAXED), start;
	do {
		start = (at + sizeof(size_t) + alignment - 1) & ~(alignment - 1);
		if (alignment > sizeof arena || size > sizeof arena || start + size > sizeof arena) {
			errno = ENOMEM;
			return NULL;
		}
	} while (!__atomic_compare_exchange_n(&arena_used, &at, start + size, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	((size_t *)(arena + start))[-1] = size;
	return arena + start;
}

/* --- reporting --------------------------------------------------------------------------------------------------- */

static struct heaptoll_stats_slot *slot;
static heaptoll_event_function listener;
static void *listener_context;
static uint64_t pause_began, world_started, collections;

static uint64_t now_ns(void) {
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void claim_slot(void) {
	static char *page;
	slot = NULL;
	if (!page) {
		const char *path = getenv(HEAPTOLL_STATS_VARIABLE);
		int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
		if (file < 0)
			return;
		off_t end = lseek(file, 0, SEEK_END);
		void *mapped = end >= (off_t)HEAPTOLL_STATS_HEADER_BYTES
				       ? mmap(NULL, (size_t)end, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
				       : MAP_FAILED;
		close(file);
		if (mapped == MAP_FAILED)
			return;
		struct heaptoll_stats_header *header = mapped;
		if (header->magic != HEAPTOLL_STATS_MAGIC || header->version != HEAPTOLL_STATS_VERSION ||
		    header->header_bytes != HEAPTOLL_STATS_HEADER_BYTES || header->slot_bytes != HEAPTOLL_STATS_SLOT_BYTES ||
		    HEAPTOLL_STATS_HEADER_BYTES + (uint64_t)header->slots * HEAPTOLL_STATS_SLOT_BYTES != (uint64_t)end) {
			munmap(mapped, (size_t)end);
			return;
		}
		page = mapped;
	}
	struct heaptoll_stats_header *header = (void *)page;
	uint32_t number = __atomic_fetch_add(&header->claimed, 1, __ATOMIC_RELAXED);
	if (number >= header->slots)
		return;
	struct heaptoll_stats_slot *mine =
		(void *)(page + HEAPTOLL_STATS_HEADER_BYTES + (size_t)number * HEAPTOLL_STATS_SLOT_BYTES);
	mine->kind = HEAPTOLL_KIND_MANAGER;
	mine->pid = getpid();
	mine->parent_pid = getppid();
	mine->claimed_ns = now_ns();
	strcpy(mine->writer, ignores_frees ? "bdw-nofree" : "bdw");
	char path[PATH_MAX];
	ssize_t bytes = readlink("/proc/self/exe", path, sizeof path);
	if (bytes > 0) {
		size_t most = sizeof mine->exe - 1, kept = (size_t)bytes < most ? (size_t)bytes : most;
		memcpy(mine->exe, path + (size_t)bytes - kept, kept);
	}
	__atomic_store_n(&mine->state, HEAPTOLL_SLOT_IN_USE, __ATOMIC_RELEASE);
	slot = mine;
}

static void set(uint64_t *member, uint64_t value) {
	__atomic_store_n(member, value, __ATOMIC_RELAXED);
}

/* Called with libgc's lock held. */
static uint64_t report_heap(void) {
	struct GC_prof_stats_s stats;
	GC_get_prof_stats_unsafe(&stats, sizeof stats);
	uint64_t mapped = stats.obtained_from_os_bytes - stats.unmapped_bytes;
	if (slot) {
		set(&slot->mapped_bytes, mapped);
		if (mapped > slot->mapped_high_bytes)
			set(&slot->mapped_high_bytes, mapped);
		set(&slot->collected_bytes, stats.reclaimed_bytes_before_gc + stats.bytes_reclaimed_since_gc);
		/* Blocks of 4 KiB that hold objects. */
		uint64_t used = stats.heapsize_full - stats.free_bytes_full;
		set(&slot->used_bytes, used);
		if (used > slot->used_high_bytes)
			set(&slot->used_high_bytes, used);
	}
	return mapped;
}

static void event(uint32_t kind, uint64_t value, uint64_t mapped) {
	if (!listener)
		return;
	struct heaptoll_event one = {.size = sizeof one, .kind = kind, .time_ns = now_ns(), .value = value,
				     .collection = kind >= HEAPTOLL_HEAP_GROWN ? 0 : collections + 1, .mapped_bytes = mapped};
	listener(&one, listener_context);
}

static void pause_ends(uint64_t at) {
	if (!pause_began)
		return;
	uint64_t took = at - pause_began;
	pause_began = 0;
	if (slot) {
		set(&slot->pause_total_ns, slot->pause_total_ns + took);
		if (took > slot->pause_max_ns)
			set(&slot->pause_max_ns, took);
	}
}

/* Called with libgc's lock held, and perhaps with all threads stopped. */
static void GC_CALLBACK on_collection(GC_EventType kind) {
	switch (kind) {
	case GC_EVENT_PRE_STOP_WORLD:
		/* An abandoned mark is a pause without a collection. */
		pause_ends(world_started);
		/* The bytes in use are at their maximum now. */
		report_heap();
		pause_began = now_ns();
		event(HEAPTOLL_COLLECTION_START, 1, slot ? slot->mapped_bytes : 0);
		break;
	case GC_EVENT_POST_START_WORLD:
		world_started = now_ns();
		break;
	case GC_EVENT_RECLAIM_END: {
		pause_ends(now_ns());
		uint64_t mapped = report_heap();
		event(HEAPTOLL_COLLECTION_END, 0, mapped);
		collections++;
		if (slot)
			set(&slot->collections, collections);
		break;
	}
	default:
		break;
	}
}

static void GC_CALLBACK on_resize(GC_word bytes) {
	(void)bytes;
	uint64_t before = slot ? slot->mapped_bytes : 0, mapped = report_heap();
	event(mapped < before ? HEAPTOLL_HEAP_SHRUNK : HEAPTOLL_HEAP_GROWN, mapped, mapped);
}

/* The user has limited the heap by libgc's own variable. */
static int limited;

/* libgc calls it without its lock, once for each request that fails for lack of memory. */
static void *GC_CALLBACK on_no_memory(size_t size) {
	(void)size;
	if (slot) {
		__atomic_fetch_add(&slot->failed_calls, 1, __ATOMIC_RELAXED);
		if (limited)
			__atomic_fetch_add(&slot->refused_calls, 1, __ATOMIC_RELAXED);
	}
	errno = ENOMEM;
	return NULL;
}

/* --- beginning ---------------------------------------------------------------------------------------------------- */

static int (*real_create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
static int (*real_join)(pthread_t, void **);
static int (*real_detach)(pthread_t);
static void (*real_exit)(void *) __attribute__((noreturn));
static int (*real_pthread_sigmask)(int, const sigset_t *, sigset_t *);
static int (*real_sigprocmask)(int, const sigset_t *, sigset_t *);

/* A thread of the program, from its creation until its result cannot be requested any more. Uncollectable. */
struct thread {
	pthread_t id;
	void *(*function)(void *);
	void *argument;
	void *result;
	int detached, ended;
	struct thread *next, *previous;
};

static pthread_mutex_t threads_lock = PTHREAD_MUTEX_INITIALIZER;
static struct thread *threads;
static pthread_key_t at_thread_end;

/* Whether the calling thread is registered with libgc. UNKNOWABLE: it is being registered, or has been unregistered. */
static __thread enum { UNKNOWN, KNOWN, UNKNOWABLE } standing __attribute__((tls_model("initial-exec")));
static __thread struct thread *self __attribute__((tls_model("initial-exec")));
static __thread int destructor_rounds __attribute__((tls_model("initial-exec")));

/* glibc's list of streams, which no header declares. fork takes it after these handlers, and its holder may wait for a
 * stream whose holder waits for the heap: so it is taken before libgc's lock. */
extern void _IO_list_lock(void) __attribute__((weak));
extern void _IO_list_unlock(void) __attribute__((weak));
extern void _IO_list_resetlock(void) __attribute__((weak));
static int streams_held;

/* Of <sys/single_threaded.h>, which glibc has from 2.32 on; before that a process counts as one with threads. */
extern char __libc_single_threaded __attribute__((weak));

static int single_threaded(void) {
	return &__libc_single_threaded != NULL && __libc_single_threaded;
}

static void before_fork(void) {
	if (_IO_list_lock && !single_threaded()) {
		_IO_list_lock();
		streams_held++;
	}
	pthread_mutex_lock(&threads_lock);
}

static void after_fork_in_parent(void) {
	pthread_mutex_unlock(&threads_lock);
	if (streams_held) {
		streams_held--;
		_IO_list_unlock();
	}
}

static void after_fork_in_child(void) {
	pthread_mutex_unlock(&threads_lock);
	if (streams_held)
		_IO_list_resetlock();
	streams_held = 0;
	collections = 0;
	pause_began = 0;
	claim_slot();
}

static GC_push_other_roots_proc push_of_others;

static int find_objects(struct dl_phdr_info *info, size_t size, void *gc_malloc) {
	(void)size;
	uintptr_t loader_base = getauxval(AT_BASE);
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		if (header->p_type != PT_LOAD || !(header->p_flags & PF_X))
			continue;
		struct range code = {info->dlpi_addr + header->p_vaddr, info->dlpi_addr + header->p_vaddr + header->p_memsz};
		if (info->dlpi_addr == loader_base)
			loader = code;
		if (within(&code, (uintptr_t)gc_malloc))
			collector = code;
	}
	return 0;
}

/* The mapping that contains an address, from /proc/self/maps. Nothing here allocates. */
static struct range mapping_of(uintptr_t address) {
	struct range found = {0, 0};
	int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return found;
	char buffer[4096];
	ssize_t bytes;
	/* The two numbers at the beginning of each line; the rest of it is skipped. */
	uintptr_t numbers[2] = {0, 0};
	int at = 0;
	while (!found.end && (bytes = read(file, buffer, sizeof buffer)) > 0) {
		for (ssize_t i = 0; i < bytes && !found.end; i++) {
			char c = buffer[i];
			if (c == '\n') {
				at = 0;
				numbers[0] = numbers[1] = 0;
			} else if (at < 2 && (c == '-' || c == ' ')) {
				at++;
				struct range line = {numbers[0], numbers[1]};
				if (at == 2 && within(&line, address))
					found = line;
			} else if (at < 2) {
				numbers[at] = numbers[at] * 16 + (uintptr_t)(c <= '9' ? c - '0' : c - 'a' + 10);
			}
		}
	}
	close(file);
	return found;
}

static void read_mode(void) {
	const char *frees = getenv("BDW_FREES");
	if (!frees || !strcmp(frees, "honour"))
		return;
	if (!strcmp(frees, "ignore")) {
		ignores_frees = 1;
		return;
	}
	dprintf(STDERR_FILENO, "bdw: BDW_FREES is `%s`; it may be `honour` or `ignore`\n", frees);
	_exit(1);
}

static void *next(const char *name) {
	void *function = dlsym(RTLD_NEXT, name);
	if (!function) {
		dprintf(STDERR_FILENO, "bdw: there is no %s after this object\n", name);
		_exit(1);
	}
	return function;
}

static void thread_ends(void *unused);
static void push_mappings(void);

/* Called first before there is a second thread. */
static void begin(void) {
	stage = BEGINNING;
	int error = errno;
	read_mode();
	dl_iterate_phdr(find_objects, (void *)(uintptr_t)GC_malloc);
	real_create = next("pthread_create");
	real_join = next("pthread_join");
	real_detach = next("pthread_detach");
	real_exit = next("pthread_exit");
	real_pthread_sigmask = next("pthread_sigmask");
	real_sigprocmask = next("sigprocmask");
	/* Before libgc maps memory that the kernel could merge with it. */
	struct range storage = mapping_of((uintptr_t)pthread_self());
	standing = UNKNOWABLE;
	GC_set_all_interior_pointers(1);
	GC_set_handle_fork(1);
	GC_set_warn_proc(GC_ignore_warn_proc);
	GC_init();
	GC_allow_register_threads();
	if (storage.end)
		GC_add_roots((void *)storage.start, (void *)storage.end);
	push_of_others = GC_get_push_other_roots();
	GC_set_push_other_roots(push_mappings);
	claim_slot();
	GC_set_on_collection_event(on_collection);
	GC_set_on_heap_resize(on_resize);
	limited = getenv("GC_MAXIMUM_HEAP_SIZE") != NULL;
	GC_set_oom_fn(on_no_memory);
	/* After libgc's, so that this handler runs first: threads_lock is taken before libgc's lock, as everywhere. */
	pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
	pthread_key_create(&at_thread_end, thread_ends);
	standing = KNOWN;
	errno = error;
	stage = READY;
}

__attribute__((constructor)) static void begin_at_load(void) {
	if (stage == BEFORE)
		begin();
}

/* Whether libgc is ready; it can start as soon as the C library has its environment. */
static int ready(void) {
	if (stage == READY)
		return 1;
	if (stage == BEFORE && environ)
		begin();
	return stage == READY;
}

/* --- threads ------------------------------------------------------------------------------------------------------ */

static void register_thread(void) {
	/* glibc allocates while it finds the stack. */
	standing = UNKNOWABLE;
	struct GC_stack_base base;
	int error = errno;
	if (GC_get_stack_base(&base) == GC_SUCCESS) {
		GC_register_my_thread(&base);
		pthread_setspecific(at_thread_end, &standing);
		standing = KNOWN;
	}
	errno = error;
}

/* Called with threads_lock held. */
static void forget(struct thread *thread) {
	if (thread->previous)
		thread->previous->next = thread->next;
	else
		threads = thread->next;
	if (thread->next)
		thread->next->previous = thread->previous;
}

/* The destructors of all other keys may use blocks held only by this thread's storage, so it stays registered for the
 * maximum number of rounds. */
static void thread_ends(void *unused) {
	if (++destructor_rounds < PTHREAD_DESTRUCTOR_ITERATIONS) {
		pthread_setspecific(at_thread_end, unused);
		return;
	}
	struct thread *mine = self, *gone = NULL;
	if (mine) {
		pthread_mutex_lock(&threads_lock);
		mine->ended = 1;
		if (mine->detached) {
			forget(mine);
			gone = mine;
		}
		pthread_mutex_unlock(&threads_lock);
	}
	standing = UNKNOWABLE;
	GC_unregister_my_thread();
	if (gone)
		GC_free(gone);
}

static void *run_thread(void *argument) {
	struct thread *mine = argument;
	register_thread();
	self = mine;
	mine->result = mine->function(mine->argument);
	return mine->result;
}

/* A thread of libgc's own: it is no mutator. */
static void *run_unknown(void *argument) {
	struct thread mine = *(struct thread *)argument;
	standing = UNKNOWABLE;
	GC_free(argument);
	return mine.function(mine.argument);
}

EXPORT int pthread_create(pthread_t *id, const pthread_attr_t *attributes, void *(*function)(void *), void *argument) {
	int of_collector = stage != BEFORE && within(&collector, CALLER);
	if (of_collector && stage == BEGINNING)
		return real_create(id, attributes, function, argument);
	if (!ready())
		return EAGAIN;
	struct thread *made = GC_malloc_uncollectable(sizeof *made);
	if (!made)
		return EAGAIN;
	made->function = function;
	made->argument = argument;
	if (of_collector)
		return real_create(id, attributes, run_unknown, made);
	int state = PTHREAD_CREATE_JOINABLE;
	if (attributes)
		pthread_attr_getdetachstate(attributes, &state);
	made->detached = state == PTHREAD_CREATE_DETACHED;
	/* Added to the list with its number before it can be joined: the new thread waits for the lock only at its end. */
	pthread_mutex_lock(&threads_lock);
	made->next = threads;
	if (threads)
		threads->previous = made;
	threads = made;
	int status = real_create(id, attributes, run_thread, made);
	if (status == 0)
		made->id = *id;
	else
		forget(made);
	pthread_mutex_unlock(&threads_lock);
	if (status != 0)
		GC_free(made);
	return status;
}

static struct thread *find_thread(pthread_t id) {
	pthread_mutex_lock(&threads_lock);
	struct thread *thread = threads;
	while (thread && (thread->detached || !pthread_equal(thread->id, id)))
		thread = thread->next;
	pthread_mutex_unlock(&threads_lock);
	return thread;
}

EXPORT int pthread_join(pthread_t id, void **result) {
	if (!ready())
		return ESRCH;
	struct thread *thread = find_thread(id);
	int status = real_join(id, result);
	if (status == 0 && thread) {
		pthread_mutex_lock(&threads_lock);
		forget(thread);
		pthread_mutex_unlock(&threads_lock);
		GC_free(thread);
	}
	return status;
}

EXPORT int pthread_detach(pthread_t id) {
	if (!ready())
		return ESRCH;
	struct thread *thread = find_thread(id);
	int ended = 0;
	if (thread) {
		pthread_mutex_lock(&threads_lock);
		thread->detached = 1;
		ended = thread->ended;
		if (ended)
			forget(thread);
		pthread_mutex_unlock(&threads_lock);
		if (ended)
			GC_free(thread);
	}
	return real_detach(id);
}

EXPORT void pthread_exit(void *result) {
	ready();
	if (self)
		self->result = result;
	real_exit(result);
}

/* A thread that blocks the collector's signals would stop every collection. */
static const sigset_t *without_ours(int how, const sigset_t *requested, sigset_t *changed) {
	if (!requested || how == SIG_UNBLOCK)
		return requested;
	*changed = *requested;
	sigdelset(changed, GC_get_suspend_signal());
	sigdelset(changed, GC_get_thr_restart_signal());
	return changed;
}

EXPORT int pthread_sigmask(int how, const sigset_t *requested, sigset_t *old) {
	sigset_t changed;
	if (!real_pthread_sigmask && !ready())
		return EAGAIN;
	if (stage != READY || within(&collector, CALLER))
		return real_pthread_sigmask(how, requested, old);
	return real_pthread_sigmask(how, without_ours(how, requested, &changed), old);
}

EXPORT int sigprocmask(int how, const sigset_t *requested, sigset_t *old) {
	sigset_t changed;
	if (!real_sigprocmask && !ready()) {
		errno = EAGAIN;
		return -1;
	}
	if (stage != READY || within(&collector, CALLER))
		return real_sigprocmask(how, requested, old);
	return real_sigprocmask(how, without_ours(how, requested, &changed), old);
}

/* --- memory that the program maps --------------------------------------------------------------------------------- */

/* Ranges that are pushed as roots, disjoint, in no order; guarded by libgc's lock. In memory of their own, since libgc
 * scans the whole data segment of this object. */
#define MOST_MAPPINGS 65536
static struct range *mappings;
static size_t mapping_count;

static void GC_CALLBACK push_mappings(void) {
	for (size_t i = 0; i < mapping_count; i++)
		GC_push_all((void *)mappings[i].start, (void *)mappings[i].end);
	if (push_of_others)
		push_of_others();
}

/* A change of the table, made with libgc's lock held: a collection must not see it half made. */
struct change {
	struct range range;
	int add, was_there;
};

static void take_out(struct range gone, int *was_there) {
	for (size_t i = 0; i < mapping_count;) {
		struct range *one = &mappings[i];
		if (one->end <= gone.start || one->start >= gone.end) {
			i++;
			continue;
		}
		*was_there = 1;
		if (one->start < gone.start && one->end > gone.end) {
			if (mapping_count < MOST_MAPPINGS)
				mappings[mapping_count++] = (struct range){gone.end, one->end};
			one->end = gone.start;
			i++;
		} else if (one->start < gone.start) {
			one->end = gone.start;
			i++;
		} else if (one->end > gone.end) {
			one->start = gone.end;
			i++;
		} else {
			*one = mappings[--mapping_count];
		}
	}
}

static void put_in(struct range new) {
	if (!mappings) {
		void *table = (void *)syscall(SYS_mmap, NULL, MOST_MAPPINGS * sizeof *mappings, PROT_READ | PROT_WRITE,
					      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (table == MAP_FAILED)
			return;
		mappings = table;
	}
	for (size_t i = 0; i < mapping_count; i++) {
		if (mappings[i].start == new.end) {
			mappings[i].start = new.start;
			return;
		}
		if (mappings[i].end == new.start) {
			mappings[i].end = new.end;
			return;
		}
	}
	if (mapping_count < MOST_MAPPINGS)
		mappings[mapping_count++] = new;
}

static void *GC_CALLBACK make_change(void *argument) {
	struct change *change = argument;
	take_out(change->range, &change->was_there);
	if (change->add)
		put_in(change->range);
	return NULL;
}

static int change_mappings(const void *address, size_t bytes, int add) {
	uintptr_t page = (uintptr_t)getpagesize(), start = (uintptr_t)address;
	struct change change = {{start & ~(page - 1), (start + bytes + page - 1) & ~(page - 1)}, add, 0};
	if (stage == READY)
		GC_call_with_alloc_lock(make_change, &change);
	else
		make_change(&change);
	return change.was_there;
}

#define READ_WRITE (PROT_READ | PROT_WRITE)

static void *map(void *address, size_t bytes, int protection, int flags, int file, off_t offset, uintptr_t caller) {
	void *mapped = (void *)syscall(SYS_mmap, address, bytes, protection, flags, file, offset);
	if (mapped != MAP_FAILED && !within(&collector, caller)) {
		int holds = (flags & MAP_ANONYMOUS) && (protection & READ_WRITE) == READ_WRITE;
		if (holds || (flags & MAP_FIXED))
			change_mappings(mapped, bytes, holds);
	}
	return mapped;
}

EXPORT void *mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset) {
	return map(address, bytes, protection, flags, file, offset, CALLER);
}

EXPORT void *mmap64(void *address, size_t bytes, int protection, int flags, int file, off64_t offset) {
	return map(address, bytes, protection, flags, file, offset, CALLER);
}

EXPORT int munmap(void *address, size_t bytes) {
	if (!within(&collector, CALLER))
		change_mappings(address, bytes, 0);
	return (int)syscall(SYS_munmap, address, bytes);
}

EXPORT int mprotect(void *address, size_t bytes, int protection) {
	int ours = !within(&collector, CALLER);
	if (ours && !(protection & PROT_READ))
		change_mappings(address, bytes, 0);
	int status = (int)syscall(SYS_mprotect, address, bytes, protection);
	if (ours && status == 0 && (protection & READ_WRITE) == READ_WRITE)
		change_mappings(address, bytes, 1);
	return status;
}

EXPORT void *mremap(void *old, size_t old_bytes, size_t bytes, int flags, ...) {
	va_list rest;
	va_start(rest, flags);
	void *wanted = flags & MREMAP_FIXED ? va_arg(rest, void *) : NULL;
	va_end(rest);
	int known = !within(&collector, CALLER) && change_mappings(old, old_bytes, 0);
	void *mapped = (void *)syscall(SYS_mremap, old, old_bytes, bytes, flags, wanted);
	if (known)
		change_mappings(mapped == MAP_FAILED ? old : mapped, mapped == MAP_FAILED ? old_bytes : bytes, 1);
	return mapped;
}

/* --- the malloc family -------------------------------------------------------------------------------------------- */

static void *out_of_memory(void) {
	errno = ENOMEM;
	return NULL;
}

/* For a thread that cannot be registered with libgc: no collection scans its stack, and a collection that it started
 * would abort the process. */
static __attribute__((noinline)) void *allocate_unknown(size_t size) {
	GC_disable();
	void *block = GC_malloc_uncollectable(size);
	GC_enable();
	return block;
}

static void *allocate(size_t size, uintptr_t caller) {
	if (UNLIKELY(stage != READY) && !ready())
		return arena_take(GRANULE, size);
	if (UNLIKELY(size > PTRDIFF_MAX))
		return out_of_memory();
	void *block;
	if (UNLIKELY(within(&loader, caller))) {
		block = GC_malloc_uncollectable(size);
	} else {
		if (UNLIKELY(standing == UNKNOWN))
			register_thread();
		block = standing == KNOWN ? GC_malloc(size) : allocate_unknown(size);
	}
	return block ? block : out_of_memory();
}

/* The beginning of the object that contains a block: they differ where an alignment was requested. */
static void *object_of(void *block) {
	if (any_displaced && (uintptr_t)block % (2 * GRANULE) == 0) {
		void *object = GC_base(block);
		return object ? object : block;
	}
	return block;
}

/* One byte less than libgc's object: a pointer just past a block's end must still lie in its object. */
static size_t usable(void *block) {
	if (in_arena(block))
		return arena_size(block);
	void *object = object_of(block);
	return GC_size(object) - (size_t)((char *)block - (char *)object) - 1;
}

static void release(void *block, uintptr_t caller) {
	if (in_arena(block))
		return;
	if (ignores_frees && standing != UNKNOWABLE && !within(&loader, caller))
		return;
	int error = errno;
	GC_free(object_of(block));
	errno = error;
}

static void *allocate_aligned(size_t alignment, size_t size, uintptr_t caller) {
	if (alignment <= GRANULE)
		return allocate(size, caller);
	if (UNLIKELY(size > PTRDIFF_MAX || alignment > PTRDIFF_MAX - size))
		return out_of_memory();
	if (UNLIKELY(stage != READY) && !ready())
		return arena_take(alignment, size);
	char *object = allocate(size + alignment - 1, caller);
	if (!object)
		return NULL;
	char *block = (char *)(((uintptr_t)object + alignment - 1) & -(uintptr_t)alignment);
	if (block != object)
		__atomic_store_n(&any_displaced, 1, __ATOMIC_RELAXED);
	return block;
}

static void *resize(void *block, size_t size, uintptr_t caller) {
	if (!block)
		return allocate(size, caller);
	if (size == 0) {
		release(block, caller);
		return NULL;
	}
	size_t before = usable(block);
	if (size <= before && size >= before / 2)
		return block;
	void *moved = allocate(size, caller);
	if (!moved)
		return NULL;
	memcpy(moved, block, size < before ? size : before);
	release(block, caller);
	return moved;
}

static int is_power_of_two(size_t number) {
	return number && !(number & (number - 1));
}

EXPORT void *malloc(size_t size) {
	return allocate(size, CALLER);
}

/* Memory without pointers (include/heaptoll.h); the loader does not call this. */
EXPORT void *heaptoll_malloc_pointer_free(size_t size) {
	if (UNLIKELY(stage != READY || standing != KNOWN || size > PTRDIFF_MAX))
		return allocate(size, CALLER);
	void *block = GC_malloc_atomic(size);
	return block ? block : out_of_memory();
}

EXPORT void free(void *block) {
	if (block)
		release(block, CALLER);
}

EXPORT void *calloc(size_t count, size_t size) {
	size_t bytes;
	if (__builtin_mul_overflow(count, size, &bytes))
		return out_of_memory();
	/* libgc clears the blocks it allocates, and the arena is fresh. */
	return allocate(bytes, CALLER);
}

EXPORT void *realloc(void *block, size_t size) {
	return resize(block, size, CALLER);
}

EXPORT void *reallocarray(void *block, size_t count, size_t size) {
	size_t bytes;
	if (__builtin_mul_overflow(count, size, &bytes))
		return out_of_memory();
	return resize(block, bytes, CALLER);
}

EXPORT void *memalign(size_t alignment, size_t size) {
	if (!is_power_of_two(alignment)) {
		errno = EINVAL;
		return NULL;
	}
	return allocate_aligned(alignment, size, CALLER);
}

EXPORT int posix_memalign(void **result, size_t alignment, size_t size) {
	if (!is_power_of_two(alignment) || alignment % sizeof(void *))
		return EINVAL;
	int error = errno;
	void *block = allocate_aligned(alignment, size, CALLER);
	errno = error;
	if (!block)
		return ENOMEM;
	*result = block;
	return 0;
}

EXPORT void *aligned_alloc(size_t alignment, size_t size) {
	if (!is_power_of_two(alignment)) {
		errno = EINVAL;
		return NULL;
	}
	return allocate_aligned(alignment, size, CALLER);
}

EXPORT void *valloc(size_t size) {
	return allocate_aligned((size_t)getpagesize(), size, CALLER);
}

EXPORT void *pvalloc(size_t size) {
	size_t page = (size_t)getpagesize();
	if (size > PTRDIFF_MAX - page)
		return out_of_memory();
	return allocate_aligned(page, (size + page - 1) & ~(page - 1), CALLER);
}

/* C23's. */
EXPORT void free_sized(void *block, size_t size) {
	(void)size;
	free(block);
}

EXPORT void free_aligned_sized(void *block, size_t alignment, size_t size) {
	(void)alignment;
	(void)size;
	free(block);
}

EXPORT size_t malloc_usable_size(void *block) {
	return block ? usable(block) : 0;
}

/* --- C++ operators ------------------------------------------------------------------------------------------------ */

/* Without memory the C++ run-time's own operator does what the language requires: handlers, then the exception. It
 * calls this malloc again. */
static void *operator_fails(const char *name, size_t size, size_t alignment) {
	void *(*own)(size_t, size_t) = (void *(*)(size_t, size_t))dlsym(RTLD_NEXT, name);
	if (!own) {
		dprintf(STDERR_FILENO, "bdw: out of memory in operator new, without a C++ run-time\n");
		abort();
	}
	return own(size, alignment);
}

#define NEW(name)                                                                                                            \
	EXPORT void *name(size_t size) {                                                                                     \
		void *block = allocate(size, 0);                                                                             \
		return block ? block : operator_fails(#name, size, 0);                                                       \
	}
#define NEW_ALIGNED(name)                                                                                                    \
	EXPORT void *name(size_t size, size_t alignment) {                                                                   \
		void *block = allocate_aligned(alignment, size, 0);                                                          \
		return block ? block : operator_fails(#name, size, alignment);                                               \
	}
NEW(_Znwm)
NEW(_Znam)
NEW_ALIGNED(_ZnwmSt11align_val_t)
NEW_ALIGNED(_ZnamSt11align_val_t)

/* The nothrow forms call a handler too, so they fail in the same way; their tag is passed on where there is no
 * alignment, and libstdc++ ignores it. */
#define NEW_NOTHROW(name)                                                                                                    \
	EXPORT void *name(size_t size, const void *tag) {                                                                    \
		void *block = allocate(size, 0);                                                                             \
		return block ? block : operator_fails(#name, size, (size_t)tag);                                             \
	}
#define NEW_ALIGNED_NOTHROW(name)                                                                                            \
	EXPORT void *name(size_t size, size_t alignment, const void *tag) {                                                  \
		(void)tag;                                                                                                   \
		void *block = allocate_aligned(alignment, size, 0);                                                          \
		return block ? block : operator_fails(#name, size, alignment);                                               \
	}
NEW_NOTHROW(_ZnwmRKSt9nothrow_t)
NEW_NOTHROW(_ZnamRKSt9nothrow_t)
NEW_ALIGNED_NOTHROW(_ZnwmSt11align_val_tRKSt9nothrow_t)
NEW_ALIGNED_NOTHROW(_ZnamSt11align_val_tRKSt9nothrow_t)

/* Size, alignment and tag are not needed: libgc knows them. */
#define DELETE(name)                                                                                                         \
	EXPORT void name(void *block) {                                                                                      \
		if (block)                                                                                                   \
			release(block, 0);                                                                                   \
	}
DELETE(_ZdlPv)
DELETE(_ZdaPv)
DELETE(_ZdlPvm)
DELETE(_ZdaPvm)
DELETE(_ZdlPvRKSt9nothrow_t)
DELETE(_ZdaPvRKSt9nothrow_t)
DELETE(_ZdlPvSt11align_val_t)
DELETE(_ZdaPvSt11align_val_t)
DELETE(_ZdlPvmSt11align_val_t)
DELETE(_ZdaPvmSt11align_val_t)
DELETE(_ZdlPvSt11align_val_tRKSt9nothrow_t)
DELETE(_ZdaPvSt11align_val_tRKSt9nothrow_t)

/* --- control ------------------------------------------------------------------------------------------------------ */

/* libgc counts pages in use, not blocks: free space within a page counts as live, and so does garbage. */
static int census(struct heaptoll_census *out) {
	struct GC_prof_stats_s stats;
	if (!ready())
		return EAGAIN;
	GC_get_prof_stats(&stats, sizeof stats);
	out->class_count = 0;
	out->exact = 0;
	out->mapped_bytes = stats.obtained_from_os_bytes - stats.unmapped_bytes;
	out->mapped_high_bytes = slot && slot->mapped_high_bytes > out->mapped_bytes ? slot->mapped_high_bytes : out->mapped_bytes;
	out->live_bytes = stats.heapsize_full - stats.free_bytes_full;
	out->free_bytes = stats.free_bytes_full - stats.unmapped_bytes;
	out->metadata_bytes = stats.obtained_from_os_bytes - stats.heapsize_full;
	out->quarantined_bytes = 0;
	out->unused_bytes = 0;
	out->requested_bytes = UINT64_MAX;
	return 0;
}

static int collect(void) {
	if (!ready())
		return EAGAIN;
	if (standing == UNKNOWN)
		register_thread();
	if (standing != KNOWN)
		return EAGAIN;
	GC_gcollect();
	return 0;
}

static int listen_for(heaptoll_event_function function, void *context) {
	if (function && listener)
		return EBUSY;
	listener_context = context;
	listener = function;
	return 0;
}

EXPORT const struct heaptoll_control *heaptoll_control_v1(void) {
	static struct heaptoll_control control = {HEAPTOLL_CONTROL_VERSION, sizeof control, "bdw", BDW_VERSION, census,
						  collect, listen_for, NULL};
	return &control;
}
