/* An io_uring without a library: requests are filled in, submitted in one system call, and what comes of them is read off memory that
   is shared with the kernel. Received bytes come in buffers that the kernel takes out of a ring. One in the process. */
#include <errno.h>
#include <linux/io_uring.h>
#include <linux/time_types.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { QUEUE = 4096, BUFFER_BYTES = 4096 };

static void fail(const char *what) {
  perror(what);
  exit(1);
}

static int64_t now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static struct {
  int fd;
  unsigned *sq_tail, *cq_head, *cq_tail, sq_mask, cq_mask, filled;
  struct io_uring_sqe *sqes;
  struct io_uring_cqe *cqes;
  struct io_uring_buf_ring *buffers;
  uint8_t *bytes;
  unsigned buffer_count;
} ring;

static int enter(unsigned count, unsigned wait, struct io_uring_getevents_arg *arg) {
  unsigned flags = wait > 0 ? IORING_ENTER_GETEVENTS : 0;
  if (arg != NULL) flags |= IORING_ENTER_EXT_ARG;
  return (int)syscall(__NR_io_uring_enter, ring.fd, count, wait, flags, arg, arg == NULL ? 0 : sizeof *arg);
}

/* Submits what was filled in, and waits for an answer, at most until then; 0: for as long as it takes, -1: not at all. */
static void submit(int64_t until_ns) {
  __atomic_store_n(ring.sq_tail, *ring.sq_tail + ring.filled, __ATOMIC_RELEASE);
  unsigned count = ring.filled;
  ring.filled = 0;
  struct __kernel_timespec left = {0, 0};
  struct io_uring_getevents_arg arg = {.ts = (uint64_t)(uintptr_t)&left};
  if (until_ns > 0) {
    int64_t ns = until_ns - now_ns();
    if (ns > 0) left = (struct __kernel_timespec){ns / 1000000000, ns % 1000000000};
  }
  int done = enter(count, until_ns < 0 ? 0 : 1, until_ns > 0 ? &arg : NULL);
  if (done < 0 && errno != EINTR && errno != ETIME && errno != EBUSY) fail("io_uring_enter");
}

static struct io_uring_sqe *next_entry(void) {
  if (ring.filled == QUEUE) submit(-1);
  unsigned at = (*ring.sq_tail + ring.filled++) & ring.sq_mask;
  struct io_uring_sqe *entry = &ring.sqes[at];
  memset(entry, 0, sizeof *entry);
  return entry;
}

static void give_back(unsigned id, unsigned offset) {
  struct io_uring_buf *buffer = &ring.buffers->bufs[(ring.buffers->tail + offset) & (ring.buffer_count - 1)];
  buffer->addr = (uint64_t)(uintptr_t)(ring.bytes + (size_t)id * BUFFER_BYTES);
  buffer->len = BUFFER_BYTES;
  buffer->bid = (uint16_t)id;
}

static void open_ring(unsigned connections) {
  struct io_uring_params params = {.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
                                            IORING_SETUP_SUBMIT_ALL | IORING_SETUP_CQSIZE,
                                   .cq_entries = 4 * QUEUE};
  ring.fd = (int)syscall(__NR_io_uring_setup, QUEUE, &params);
  if (ring.fd < 0) fail("io_uring_setup");
  size_t sq_bytes = params.sq_off.array + params.sq_entries * sizeof(unsigned);
  size_t cq_bytes = params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe);
  uint8_t *queues = mmap(NULL, sq_bytes > cq_bytes ? sq_bytes : cq_bytes, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_POPULATE, ring.fd, IORING_OFF_SQ_RING);
  ring.sqes = mmap(NULL, params.sq_entries * sizeof(struct io_uring_sqe), PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_POPULATE, ring.fd, IORING_OFF_SQES);
  if (queues == MAP_FAILED || ring.sqes == MAP_FAILED) fail("mmap");
  ring.sq_tail = (unsigned *)(queues + params.sq_off.tail);
  ring.sq_mask = *(unsigned *)(queues + params.sq_off.ring_mask);
  ring.cq_head = (unsigned *)(queues + params.cq_off.head);
  ring.cq_tail = (unsigned *)(queues + params.cq_off.tail);
  ring.cq_mask = *(unsigned *)(queues + params.cq_off.ring_mask);
  ring.cqes = (struct io_uring_cqe *)(queues + params.cq_off.cqes);
  unsigned *array = (unsigned *)(queues + params.sq_off.array);
  for (unsigned i = 0; i < params.sq_entries; i++) array[i] = i;

  for (ring.buffer_count = 64; ring.buffer_count < connections; ring.buffer_count *= 2) {
  }
  size_t entries_bytes = ring.buffer_count * sizeof(struct io_uring_buf);
  ring.buffers = mmap(NULL, entries_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ring.bytes = mmap(NULL, (size_t)ring.buffer_count * BUFFER_BYTES, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (ring.buffers == MAP_FAILED || ring.bytes == MAP_FAILED) fail("mmap");
  struct io_uring_buf_reg reg = {.ring_addr = (uint64_t)(uintptr_t)ring.buffers, .ring_entries = ring.buffer_count};
  if (syscall(__NR_io_uring_register, ring.fd, IORING_REGISTER_PBUF_RING, &reg, 1) < 0)
    fail("io_uring_register");
  for (unsigned id = 0; id < ring.buffer_count; id++) give_back(id, id);
  __atomic_store_n(&ring.buffers->tail, (uint16_t)ring.buffer_count, __ATOMIC_RELEASE);
}

static void close_ring(void) {
  close(ring.fd);
  munmap(ring.bytes, (size_t)ring.buffer_count * BUFFER_BYTES);
}
