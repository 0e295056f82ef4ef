/* pairs COUNT SIZE: allocates and frees one block of SIZE bytes COUNT times: the fast paths and nothing else. */
#include <stdio.h>
#include <stdlib.h>

int
main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "usage: pairs COUNT SIZE\n");
		return 2;
	}
	long count = strtol(argv[1], NULL, 10);
	size_t size = strtoul(argv[2], NULL, 10);
	for (long i = 0; i < count; i++) {
		void *volatile block = malloc(size);
		if (block == NULL)
			return 1;
		free(block);
	}
	return 0;
}
