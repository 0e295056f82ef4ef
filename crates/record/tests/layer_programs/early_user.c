/* A program whose library allocates early. */
#include <stdlib.h>
int give_back(int);
int main(void) { free(malloc(2226)); return give_back(0); }
