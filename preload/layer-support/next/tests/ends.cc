// Ends in the way that the first argument names. Lines of what runs after the end has begun start with "after".
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <err.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

static void say(const char *line) {
    if (write(1, line, strlen(line)) < 0 || write(1, "\n", 1) < 0)
        _exit(99);
}

struct Says {
    const char *line;
    ~Says() { say(line); }
};

#ifdef PLUGIN

static Says unloaded = {"unloaded"};
extern "C" void use() {
    thread_local Says local = {"unloaded local"};
    atexit([] { say("unloaded handler"); });
    say(local.line);
}

#else

__attribute__((destructor)) static void destroyed() { say("after: destructor"); }
static void handler() { say("after: handler"); }
static void exits_again() { exit(4); }
static void status_handler(int status, void *line) {
    say((const char *)line);
    say(status == 7 ? "after: status 7" : "after: another status");
}

static void *in_thread(void *way) {
    thread_local Says local = {way ? "after: thread's local" : "thread ended"};
    say(local.line + (way ? 7 : 0));
    if (way)
        way == (void *)1 ? exit(5) : errx(6, "from a thread");
    return nullptr;
}

static pthread_t start(void *way) {
    pthread_t thread;
    if (pthread_create(&thread, nullptr, in_thread, way))
        abort();
    return thread;
}

static void wait_for(pid_t child) {
    int status = 0;
    if (waitpid(child, &status, 0) != child)
        abort();
    say(WIFEXITED(status) && WEXITSTATUS(status) == 3 ? "child: 3" : "child: other");
}

int main(int count, char **arguments) {
    const char *way = count > 1 ? arguments[1] : "return";
    auto is = [way](const char *other) { return !strcmp(way, other); };
    auto begins = [way](const char *other) { return !strncmp(way, other, strlen(other)); };
    if (!begins("bare")) {
        static Says object = {"after: object"};
        if (atexit(handler) || on_exit(status_handler, (void *)"after: on_exit"))
            abort();
    }
    if (begins("local")) {
        thread_local Says local = {"after: local"};
        say(local.line + 7);
    }
    char *empty[] = {nullptr};
    say("begins");
    if (is("exit") || is("local exit"))
        exit(7);
    if (is("err") || is("bare err") || is("local err"))
        errx(7, "leaves");
    if (is("_exit"))
        _exit(7);
    if (is("_Exit"))
        _Exit(7);
    if (is("quick_exit")) {
        at_quick_exit([] { say("after: quick handler"); });
        quick_exit(7);
    }
    if (is("exit in handler"))
        atexit(exits_again);
    if (is("many handlers"))
        for (int i = 0; i < 100; i++)
            atexit(handler);
    if (is("thread"))
        pthread_join(start(nullptr), nullptr), say("joined");
    if (is("exit in thread"))
        pthread_join(start((void *)1), nullptr);
    if (is("err in thread"))
        pthread_join(start((void *)2), nullptr);
    if (is("pthread_exit")) {
        static pthread_t self;
        self = pthread_self();
        std::thread([] { pthread_join(self, nullptr), say("main is gone"); }).detach();
        pthread_exit(nullptr);
    }
    if (is("dlclose"))
        for (int i = 0; i < 2; i++) {
            void *plugin = dlopen(arguments[2], RTLD_NOW);
            std::thread([plugin] { ((void (*)())dlsym(plugin, "use"))(); }).join();
            say("closes");
            dlclose(plugin);
            say("closed");
        }
    if (is("vfork")) {
        pid_t child = vfork();
        if (!child)
            _exit(3);
        wait_for(child);
    }
    if (is("vfork and exec")) {
        pid_t child = vfork();
        if (!child)
            execle("/bin/sh", "sh", "-c", "exit 3", (char *)nullptr, empty), _exit(8);
        wait_for(child);
    }
    if (is("fork")) {
        pid_t child = fork();
        if (!child)
            say("forked"), exit(3);
        wait_for(child);
    }
    if (is("exec"))
        execle("/bin/true", "true", (char *)nullptr, empty);
    if (is("failed exec"))
        execl("/nonexistent", "none", (char *)nullptr), say("goes on");
    if (is("SIGTERM"))
        raise(SIGTERM);
    if (is("handled SIGTERM")) {
        signal(SIGTERM, [](int) { say("handles"), exit(7); });
        raise(SIGTERM);
    }
    if (is("abort"))
        abort();
    if (is("SIGSEGV"))
        raise(SIGSEGV);
    say("returns");
    return 7;
}

#endif
