/* Makes a server slower by a fixed time a reply: preloaded, it spins before each write that carries JSON replies.
 * SLOWER_NS="status=1000,id=5000": nanoseconds by the first key of a reply's body. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

static const char START[] = "\r\n\r\n{\"";

static long delay_of(const char *key, size_t length) {
    const char *delays = getenv("SLOWER_NS");
    while (delays && *delays) {
        const char *equal = strchr(delays, '=');
        if (!equal) break;
        if ((size_t)(equal - delays) == length && memcmp(delays, key, length) == 0) return atol(equal + 1);
        delays = strchr(equal, ',');
        if (delays) delays++;
    }
    return 0;
}

static long long now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void slow(const char *bytes, size_t length) {
    long delay = 0;
    const char *end = bytes + length;
    for (const char *at = bytes; (at = memmem(at, end - at, START, sizeof START - 1));) {
        at += sizeof START - 1;
        const char *quote = memchr(at, '"', end - at);
        if (!quote) break;
        delay += delay_of(at, quote - at);
    }
    if (delay) {
        long long until = now_ns() + delay;
        while (now_ns() < until) {}
    }
}

ssize_t send(int socket, const void *bytes, size_t length, int flags) {
    static ssize_t (*next)(int, const void *, size_t, int);
    if (!next) next = dlsym(RTLD_NEXT, "send");
    slow(bytes, length);
    return next(socket, bytes, length, flags);
}

ssize_t writev(int file, const struct iovec *parts, int count) {
    static ssize_t (*next)(int, const struct iovec *, int);
    if (!next) next = dlsym(RTLD_NEXT, "writev");
    for (int part = 0; part < count; part++) slow(parts[part].iov_base, parts[part].iov_len);
    return next(file, parts, count);
}
