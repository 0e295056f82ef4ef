/* What gdb.sh stops in. */
#include <stdio.h>
#include <stdlib.h>

struct node {
    struct node *next;
    int value;
};

static int leaf(struct node *list) {
    int sum = 0;
    for (; list; list = list->next) sum += list->value;
    return sum;
}

int main(void) {
    struct node *list = NULL;
    for (int i = 0; i < 10; i++) {
        struct node *node = malloc(sizeof *node);
        if (!node) return 1;
        *node = (struct node){list, i};
        list = node;
    }
    printf("%d\n", leaf(list));
    return 0;
}
