/* Preloaded into a store's server: each sync of a file takes SLOW_SYNC_US microseconds longer, as on a disk in a network. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>

static void wait_longer(void) {
  const char *text = getenv("SLOW_SYNC_US");
  long micros = text == NULL ? 0 : atol(text);
  struct timespec left = {micros / 1000000, micros % 1000000 * 1000};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}

static int slowly(const char *name, int fd) {
  int (*sync_file)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
  int result = sync_file(fd);
  int error = errno;
  wait_longer();
  errno = error;
  return result;
}

int fsync(int fd) { return slowly("fsync", fd); }
int fdatasync(int fd) { return slowly("fdatasync", fd); }
