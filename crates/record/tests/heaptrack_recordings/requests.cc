// The program of the recordings in this folder, made by heaptrack 1.4.0 on Debian 12:
//   g++ -O1 -g -o requests requests.cc
//   heaptrack -o requests ./requests; heaptrack --raw -o requests ./requests
#include <cstdlib>

__attribute__((noinline)) static char *parse(int n) {
    char *p = new char[100 + n % 7];
    p[0] = n;
    return p;
}
__attribute__((noinline)) static void handle(int n) {
    char *p = parse(n);
    if (n % 3) delete[] p;
}
int main() {
    for (int i = 0; i < 300; i++) handle(i);
    void *big = malloc(5000);
    big = realloc(big, 9000);
    free(big);
    return 0;
}
