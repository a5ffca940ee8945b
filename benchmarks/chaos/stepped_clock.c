// Preloaded into processes, steps their wall clock by the whole seconds that a file holds (int64, mapped).
// The monotonic clocks stay true, as when someone sets a machine's clock.
//
//     cc -shared -fPIC -O2 -o stepped_clock.so stepped_clock.c      STEPPED_CLOCK=/path/of/the/file
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define LONGEST_UPTIME_S 1000000000
// Deadlines below it are of a monotonic clock: no machine runs for thirty years.

static volatile const int64_t *offset_s;

__attribute__((constructor)) static void open_offset(void) {
    const char *path = getenv("STEPPED_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *mapped = mmap(NULL, sizeof *offset_s, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (mapped != MAP_FAILED) offset_s = mapped;
}

static int64_t offset(void) { return offset_s ? *offset_s : 0; }

int clock_gettime(clockid_t clock, struct timespec *at) {
    // No dlsym: allocators that it calls ask for the time.
    int code = (int)syscall(SYS_clock_gettime, clock, at);
    if (!code && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) at->tv_sec += offset();
    return code;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
    (void)zone;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}

// The kernel waits by its own clock: deadlines that were made of the stepped one go back.
static struct timespec of_kernel(const struct timespec *deadline) {
    struct timespec found = *deadline;
    if (found.tv_sec > LONGEST_UPTIME_S) found.tv_sec -= offset();
    return found;
}

int sem_timedwait(sem_t *restrict what, const struct timespec *restrict deadline) {
    static int (*real)(sem_t *, const struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "sem_timedwait");
    struct timespec until = of_kernel(deadline);
    return real(what, &until);
}

int pthread_cond_timedwait(pthread_cond_t *restrict what, pthread_mutex_t *restrict lock,
                           const struct timespec *restrict deadline) {
    static int (*real)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    if (!real) real = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
    if (!real) real = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    struct timespec until = of_kernel(deadline);
    return real(what, lock, &until);
}
