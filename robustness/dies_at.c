/* Loaded before the C library, it ends the process by SIGKILL at the n-th system call that changes the disk.
   A write that it is to die in is done by half, as a power cut may leave it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static long seen, deadly;

void die_at(long number) { seen = 0; deadly = number; }
long changes_so_far(void) { return seen; }

__attribute__((constructor)) static void begin(void) {
    const char *number = getenv("DIE_AT");
    if (number) deadly = atol(number);
}

static int is_last(void) { return __atomic_add_fetch(&seen, 1, __ATOMIC_SEQ_CST) == deadly; }
static void die(void) { kill(getpid(), SIGKILL); for (;;) pause(); }
static int is_file(int descriptor) { return descriptor > 2 && lseek(descriptor, 0, SEEK_CUR) != (off_t)-1; }

#define TRUE_ONE(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int descriptor, const void *content, size_t size) {
    if (is_file(descriptor) && is_last()) { TRUE_ONE(write)(descriptor, content, size / 2); die(); }
    return TRUE_ONE(write)(descriptor, content, size);
}

ssize_t pwrite64(int descriptor, const void *content, size_t size, off64_t place) {
    if (is_last()) { TRUE_ONE(pwrite64)(descriptor, content, size / 2, place); die(); }
    return TRUE_ONE(pwrite64)(descriptor, content, size, place);
}

ssize_t writev(int descriptor, const struct iovec *parts, int count) {
    if (is_file(descriptor) && is_last()) { TRUE_ONE(writev)(descriptor, parts, count / 2); die(); }
    return TRUE_ONE(writev)(descriptor, parts, count);
}

#define DEADLY(type, name, declared, given) \
    type name declared { if (is_last()) die(); return TRUE_ONE(name) given; }

DEADLY(int, rename, (const char *from, const char *to), (from, to))
DEADLY(int, renameat, (int a, const char *from, int b, const char *to), (a, from, b, to))
DEADLY(int, unlink, (const char *path), (path))
DEADLY(int, unlinkat, (int folder, const char *path, int flags), (folder, path, flags))
DEADLY(int, rmdir, (const char *path), (path))
DEADLY(int, mkdir, (const char *path, mode_t mode), (path, mode))
DEADLY(int, ftruncate64, (int descriptor, off64_t size), (descriptor, size))
DEADLY(int, fsync, (int descriptor), (descriptor))
