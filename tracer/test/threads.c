/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Threads that allocate, more over time than run at once, then children that end in all ways: by exit, by exec, by a
 * signal, after they closed every descriptor.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void allocate(unsigned times)
{
   for (unsigned i = 0; i < times; i++) {
      void *const block = malloc(i % 300);
      __asm__ volatile("" : : "r"(block) : "memory");
      free(block);
   }
}

static void *work(void *unused)
{
   (void)unused;
   allocate(1000);
   return NULL;
}

static void child(unsigned manner)
{
   allocate(100);
   switch (manner) {
   case 0:
      _exit(3);
   case 1:
      execl("/bin/true", "true", (char *)NULL);
      _exit(127);
   case 2:
      raise(SIGKILL);
      _exit(127);
   default:
      for (int fd = 3; fd < 2048; fd++)
         close(fd);
      if (fork() == 0) {
         allocate(100);
         _exit(0);
      }
      wait(NULL);
      _exit(0);
   }
}

int main(void)
{
   for (unsigned round = 0; round < 3; round++) {
      pthread_t threads[8];
      for (unsigned i = 0; i < 8; i++)
         if (pthread_create(&threads[i], NULL, work, NULL) != 0)
            return 1;
      for (unsigned i = 0; i < 8; i++)
         pthread_join(threads[i], NULL);
   }
   for (unsigned manner = 0; manner < 4; manner++) {
      if (fork() == 0)
         child(manner);
      wait(NULL);
   }
   return 0;
}
