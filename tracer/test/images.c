/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Processes that execute other images in ways that Valgrind does not support, and others:
 *
 *   images self           by /proc/self/exe
 *   images root DIR FILE  a child in another root, which executes FILE there and one that does not exist; prints its status
 *   images root user FILE     the same of a child of another user
 *   images free           prints its lowest free descriptors, in a child and in an image after it
 *   images much           allocates 100 000 blocks, more than a ring holds
 *   images filtered       allocates 20 000 under a filter of system calls that kills on madvise
 */
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void make(int blocks)
{
   for (int i = 0; i < blocks; i++)
      free(malloc(100));
}

static int elsewhere(char **words)
{
   int status = -1;
   if (strcmp(words[0], "user") == 0 ? setgid(65534) != 0 || setuid(65534) != 0
                                       : chroot(words[0]) != 0 || chdir("/") != 0)
      return 1;
   if (fork() == 0) {
      make(100);
      execl("/nowhere", "nowhere", (char *)NULL);
      make(100);
      execl(words[1], words[1], (char *)NULL);
      _exit(99);
   }
   wait(&status);
   return !WIFEXITED(status) || WEXITSTATUS(status) != 7;
}

static int print_free(int last, char *self)
{
   int status;
   printf("%d\n", dup(0));
   fflush(stdout);
   if (fork() == 0) {
      close(3);
      printf("%d\n", dup(0));
      fflush(stdout);
      close(3);
      if (!last)
         execl(self, self, "free", "last", (char *)NULL);
      _exit(0);
   }
   wait(&status);
   return status;
}

static int forbid(unsigned call)
{
   struct sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
   };
   struct sock_fprog filter = { sizeof steps / sizeof *steps, steps };
   return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

int main(int count, char **words)
{
   if (count == 2 && strcmp(words[1], "self") == 0) {
      make(200);
      execl("/proc/self/exe", words[0], "again", "and again", (char *)NULL);
      return 1;
   }
   if (count >= 2 && strcmp(words[1], "free") == 0)
      return print_free(count > 2, words[0]);
   if (count == 2 && strcmp(words[1], "filtered") == 0) {
      if (forbid(SYS_madvise))
         return 3;
      make(20000);
      return 0;
   }
   if (count == 3)
      make(300);
   else if (count == 4)
      return elsewhere(words + 2);
   else
      make(100000);
   return 0;
}
