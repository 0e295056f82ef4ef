/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * A malloc in which signals arrive, whose handlers call malloc and in which other signals arrive. The argument is a
 * sum: 1: the outer handler jumps out; 2: it runs on an alternative stack; 4: the inner handler jumps out of both.
 * Prints the number of calls of malloc that returned and that did not.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static sigjmp_buf out;
static char pool[1 << 20], stack[65536];
static size_t used;
static volatile unsigned calls, returned;
static int mode;

void *__attribute__((noinline)) malloc(size_t bytes)
{
   char *const block = pool + used;
   used += bytes;
   if (++calls % 5 == 0)
      raise(SIGUSR1);
   returned++;
   return block;
}

static void allocate(size_t bytes)
{
   __asm__ volatile("" : : "r"(malloc(bytes)));
}

static void inner(int signal)
{
   (void)signal;
   allocate(3);
   if (mode & 4)
      siglongjmp(out, 1);
}

static void outer(int signal)
{
   (void)signal;
   allocate(10);
   raise(SIGUSR2);
   allocate(11);
   if (mode & 1)
      siglongjmp(out, 1);
}

int main(int count, char **arguments)
{
   mode = count > 1 ? atoi(arguments[1]) : 0;
   const stack_t alternative = { .ss_sp = stack, .ss_size = sizeof stack };
   sigaltstack(&alternative, NULL);
   struct sigaction action = { .sa_handler = outer, .sa_flags = mode & 2 ? SA_ONSTACK : 0 };
   sigaction(SIGUSR1, &action, NULL);
   action.sa_handler = inner;
   sigaction(SIGUSR2, &action, NULL);
   for (volatile unsigned i = 0; i < 20; i++)
      if (sigsetjmp(out, 1) == 0)
         allocate(5);
   char text[32];
   const int length = snprintf(text, sizeof text, "%u %u\n", returned, calls - returned);
   return write(1, text, (size_t)length) == length ? 0 : 1;
}
