/*
 * marking: a large live heap of small objects, and collections that find all of it live.
 *
 *   marking MIB shuffled|ordered COLLECTIONS
 *
 * MIB of objects of 16 to 64 bytes, random sizes, as requested from malloc, form one binary tree. Its nodes have two
 * addresses each; the rest holds small numbers. `shuffled`: which object is a node's child is random, so that nearly
 * each step misses the cache. `ordered`: objects are linked in the order in which they were allocated. The collector is
 * the first one that answers in the order of loading, a layer before a manager. For each collection a line:
 *   OBJECTS BYTES MARK_CPU_NS MARK_NS CPU_NS NS
 * Processor time and time of marking, roots included, from the event of that phase to the next event; then both of the
 * whole call.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "heaptoll.h"

struct node {
	struct node *left, *right;
	uint64_t rest[];
};

static struct node *root;
static uint64_t mark_began, mark_ended, cpu_began, cpu_ended;

static uint64_t now(clockid_t clock) {
	struct timespec time;
	clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static uint64_t next_random(void) {
	static uint64_t state = UINT64_C(0x9e3779b97f4a7c15);
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static void on_event(const struct heaptoll_event *event, void *context) {
	(void)context;
	uint64_t cpu = now(CLOCK_PROCESS_CPUTIME_ID);
	if (event->kind == HEAPTOLL_PHASE && event->value == HEAPTOLL_PHASE_MARK) {
		mark_began = event->time_ns;
		cpu_began = cpu;
	} else if (mark_began && !mark_ended) {
		mark_ended = event->time_ns;
		cpu_ended = cpu;
	}
}

static void fail(const char *what) {
	fprintf(stderr, "marking: %s\n", what);
	exit(1);
}

int main(int argc, char **argv) {
	if (argc != 4)
		fail("MIB shuffled|ordered COLLECTIONS");
	uint64_t wanted = strtoull(argv[1], NULL, 10) << 20, bytes = 0;
	int shuffled = !strcmp(argv[2], "shuffled"), collections = atoi(argv[3]);
	const struct heaptoll_control *(*answer)(void);
	void *symbol = dlsym(RTLD_DEFAULT, "heaptoll_control_v1");
	memcpy(&answer, &symbol, sizeof answer);
	const struct heaptoll_control *control = symbol ? answer() : NULL;
	if (!control || !control->collect || !control->listen)
		fail("no collector here takes requests");
	/* All objects by number, in memory that is gone before the first collection. */
	size_t most = wanted / 16 + 1, count = 0, table = most * sizeof(struct node *);
	struct node **all = mmap(NULL, table, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (all == MAP_FAILED)
		fail("no memory for the table of objects");
	while (bytes < wanted) {
		size_t size = 16 + next_random() % 49;
		struct node *node = malloc(size);
		if (!node)
			fail("no memory for an object");
		node->left = node->right = NULL;
		for (size_t word = 0; word < (size - sizeof *node) / 8; word++)
			node->rest[word] = word + 1;
		bytes += size;
		all[count++] = node;
	}
	if (shuffled)
		for (size_t left = count - 1; left > 0; left--) {
			size_t other = next_random() % (left + 1);
			struct node *swapped = all[left];
			all[left] = all[other];
			all[other] = swapped;
		}
	for (size_t number = 1; number < count; number++) {
		struct node *parent = all[(number - 1) / 2];
		if (number % 2)
			parent->left = all[number];
		else
			parent->right = all[number];
	}
	root = all[0];
	munmap(all, table);
	if (control->listen(on_event, NULL) != 0)
		fail("another listener is registered with the collector");
	for (int turn = 0; turn < collections; turn++) {
		mark_began = mark_ended = 0;
		uint64_t began = now(CLOCK_MONOTONIC), cpu = now(CLOCK_PROCESS_CPUTIME_ID);
		int status = control->collect();
		cpu = now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
		uint64_t took = now(CLOCK_MONOTONIC) - began;
		if (status != 0 || !mark_ended)
			fail("a collection was refused, or did not report marking");
		printf("%zu %llu %llu %llu %llu %llu\n", count, (unsigned long long)bytes,
		       (unsigned long long)(cpu_ended - cpu_began), (unsigned long long)(mark_ended - mark_began),
		       (unsigned long long)cpu, (unsigned long long)took);
	}
	/* Everything is there still. */
	uint64_t seen = 0, depth = 0;
	static struct node *path[64];
	for (path[depth++] = root; depth > 0;) {
		struct node *node = path[--depth];
		seen++;
		if (node->left)
			path[depth++] = node->left;
		if (node->right)
			path[depth++] = node->right;
	}
	if (seen != count)
		fail("objects are missing");
	return 0;
}
