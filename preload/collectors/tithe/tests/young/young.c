// A program whose old objects get young ones, at every place that a collector must read, while it forks, closes what it
// does not know and replaces its memory. It verifies every object, and prints nothing. argv[1] is the case; with an
// argv[2] the heap is so large that a collection takes several increments.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096
#define SLOTS 512

struct object {
	struct object *next, *other;
	unsigned long number, check;
	char rest[];
};

static void fail(const char *what)
{
	fprintf(stderr, "young: %s\n", what);
	abort();
}

static struct object *make(unsigned long number, size_t more)
{
	struct object *object = malloc(sizeof *object + more);
	if (!object)
		fail("no memory");
	memset(object, 0, sizeof *object + more);
	object->number = number;
	object->check = ~number;
	return object;
}

static void verify(const struct object *object)
{
	if (object->check != ~object->number)
		fail("an object has changed");
}

static unsigned next_random(unsigned *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state >> 8;
}

// A table of lists: most objects live long, some lists begin again, and old objects get new ones.
static void churn(struct object **table, int rounds, unsigned state)
{
	for (int round = 0; round < rounds; round++) {
		unsigned slot = next_random(&state) % SLOTS;
		struct object *made = make(next_random(&state), next_random(&state) % 300);
		made->next = table[slot];
		switch (next_random(&state) % 8) {
		case 0:
			made->next = 0; // The old list dies.
			table[slot] = made;
			break;
		case 1:
		case 2:
			if (table[slot]) { // An old object gets a young one.
				made->next = table[slot]->next;
				table[slot]->next = made;
			}
			break;
		case 3:
			if (table[slot])
				table[slot]->other = made;
			break;
		default:
			if (next_random(&state) % 4 == 0)
				table[slot] = made;
		}
		if (round % 512 == 0)
			for (int at = 0; at < SLOTS; at++)
				for (struct object *walk = table[at]; walk; walk = walk->next) {
					verify(walk);
					if (walk->other)
						verify(walk->other);
				}
	}
}

static void garbage(void)
{
	for (int at = 0; at < 1500; at++)
		make(at, 64);
}

static struct object *statics[SLOTS];

static void graph(void)
{
	churn(statics, 60000, 1);
}

static void *thread(void *argument)
{
	struct object **table = calloc(SLOTS, sizeof *table);
	churn(table, 15000, (unsigned)(size_t)argument);
	return table;
}

static void threads(void)
{
	pthread_t all[4];
	for (size_t at = 0; at < 4; at++)
		pthread_create(&all[at], 0, thread, (void *)(at + 1));
	churn(statics, 15000, 9);
	for (size_t at = 0; at < 4; at++)
		pthread_join(all[at], 0);
}

static void children(void)
{
	churn(statics, 15000, 1);
	for (int at = 0; at < 4; at++) {
		pid_t child = fork();
		if (child == 0) {
			churn(statics, 10000, 10 + at);
			_exit(0);
		}
		int status;
		churn(statics, 5000, 20 + at);
		if (waitpid(child, &status, 0) != child || status)
			fail("a child has failed");
	}
}

static void closing(int reuse)
{
	churn(statics, 15000, 1);
	for (int number = 3; number < 1024; number++)
		if (number < 200 || fcntl(number, F_GETFD) >= 0)
			close(number);
	if (reuse) {
		int own = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | 1);
		for (int number = 90; own >= 0 && number < 120; number++)
			dup2(own, number);
	}
	churn(statics, 30000, 2);
}

static void filtered(void)
{
	churn(statics, 15000, 1);
	struct sock_filter allow[] = {{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
	struct sock_fprog program = {1, allow};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		fail("no filter");
	churn(statics, 10000, 2);
	children();
}

// Only this word, at a place that the collector finds by itself, keeps the object.
static void keeps(struct object *volatile *place)
{
	for (int round = 0; round < 20; round++) {
		*place = make(round, 40);
		garbage();
		verify(*place);
		(*place)->next = make(round + 1, 40); // An old object by now.
		garbage();
		verify((*place)->next);
	}
	*place = 0;
}

static void places(void)
{
	struct object *volatile local = 0;
	keeps(&local);
	keeps((struct object *volatile *)&statics[7]);
	struct object *volatile *own = mmap(0, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	keeps(own + 5000);
	own = mmap(0, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	keeps(own + 3);
	char *old = malloc(40 * PAGE), *middle = malloc(3000);
	if (!old || !middle)
		fail("no memory");
	memset(old, 0, 40 * PAGE);
	memset(middle, 0, 3000);
	statics[8] = (struct object *)old;
	statics[9] = (struct object *)middle;
	garbage();
	keeps((struct object *volatile *)(old + 17 * PAGE + 8));
	keeps((struct object *volatile *)(middle + 2000));
	// Half a word in each of two pages.
	char *border = (char *)(((size_t)old + 5 * PAGE) & ~(size_t)(PAGE - 1)) - 4;
	for (int round = 0; round < 10; round++) {
		struct object *made = make(round, 40);
		memcpy(border, &made, sizeof made);
		made = 0;
		garbage();
		memcpy(&made, border, sizeof made);
		verify(made);
	}
	// The kernel writes the address.
	int ends[2];
	if (pipe(ends))
		fail("no pipe");
	for (int round = 0; round < 20; round++) {
		struct object *made = make(round, 40);
		if (write(ends[1], &made, sizeof made) != sizeof made)
			fail("no space in the pipe");
		made = 0;
		if (read(ends[0], old + 9 * PAGE, sizeof made) != sizeof made)
			fail("nothing in the pipe");
		garbage();
		verify(*(struct object **)(old + 9 * PAGE));
	}
}

// Pages of a block are replaced by others, and moved there.
static void replaced(void)
{
	char *block = aligned_alloc(PAGE, 64 * PAGE);
	if (!block)
		fail("no memory");
	memset(block, 0, 64 * PAGE);
	statics[3] = (struct object *)block;
	for (int round = 0; round < 10; round++) {
		garbage();
		char *place = block + (round * 5 + 3) * PAGE;
		if (round % 2) {
			if (mmap(place, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != place)
				fail("not mapped");
		} else {
			char *from = mmap(0, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			*(struct object **)(from + 16) = make(round, 40);
			if (mremap(from, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, place) != place)
				fail("not moved");
		}
		keeps((struct object *volatile *)(place + 64));
	}
	for (int round = 0; round < 10; round += 2)
		verify(*(struct object **)(block + (round * 5 + 3) * PAGE + 16));
}

static struct object *large;

int main(int count, char **arguments)
{
	const char *name = count > 1 ? arguments[1] : "";
	for (int at = 0; count > 2 && at < 120000; at++) {
		struct object *made = make(at, 16);
		made->next = large;
		large = made;
	}
	if (!strcmp(name, "graph"))
		graph();
	else if (!strcmp(name, "threads"))
		threads();
	else if (!strcmp(name, "children"))
		children();
	else if (!strcmp(name, "closing"))
		closing(0);
	else if (!strcmp(name, "reusing"))
		closing(1);
	else if (!strcmp(name, "filtered"))
		filtered();
	else if (!strcmp(name, "places"))
		places();
	else if (!strcmp(name, "replaced"))
		replaced();
	else
		fail("no such case");
	for (struct object *walk = large; walk; walk = walk->next)
		verify(walk);
	return 0;
}
