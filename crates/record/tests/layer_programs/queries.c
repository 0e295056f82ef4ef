/* Calls whose blocks have sizes of their own, by which a record finds them. */
#include <malloc.h>
#include <stdlib.h>

int main(void) {
    for (int i = 0; i < 100; i++) {
        void *all[] = {malloc(1000 + i), calloc(1, 2000 + i), memalign(64, 3000 + i), realloc(malloc(10), 4000 + i)};
        malloc_usable_size(all[0]);
        for (int which = 0; which < 4; which++) free(all[which]);
    }
    return 0;
}
