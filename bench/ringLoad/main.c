/* The load generator that costs least: with io_uring one system call sends the requests of many connections and takes the answers of
   others. What is left is the kernel's part of TCP sockets. Needs Linux 6.1. ringLoad.ts builds it, orders loads and reads results.

   stdin, an order:  <IPv4> <port> <connections> <milliseconds> <requests a second; 0: closed loop> <players> <first player> <targets>
                     each target: <bytes> <where the player's digits are> <where the counter's are; -1: no request id>
                     <where the request id is> <its length>, a line break, and the request
   stdout, a result: lines of a word and numbers, the last is `end` */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

#include "histogram.h"
#include "ring.h"

enum {
  ANSWER_MAX = 65536,
  TARGETS_MAX = 4096,
  PLAYER_DIGITS = 8,
  COUNTER_DIGITS = 9,
  /* Connections that fail before the load ends: a server that is gone is not asked for ever. */
  ERRORS_MAX = 1000,
  ERRORS_TOLD = 10,
  TIMEOUT_MS = 10000,
  CHECK_MS = 100,
  /* Nothing is due before all connections are made. */
  CONNECTED_MS = 200,
};
enum { RECEIVE, SEND, TICK };

struct target {
  char *request;
  int bytes, player_at, counter_at, id_at, id_bytes;
};
struct connection {
  int fd, is_open;
  /* Of its sockets: what a closed one still tells is not the next one's. */
  uint32_t generation;
  /* When the request that is under way was sent, or was due; 0: there is none. */
  int64_t since_ns;
  const struct target *target;
  char *request;
  char *part;
  int part_bytes;
};
static struct {
  struct sockaddr_in address;
  struct target targets[TARGETS_MAX];
  struct connection *connections;
  /* Those without a request under way, of an open loop. */
  int *free_ones;
  int free_first, free_count;
  int count, open, target_count, rate, is_over, errors, request_max;
  unsigned players, first_player;
  int64_t start_ns, end_ns, last_ns, due, sent;
  uint64_t statuses[600];
  struct histogram latency, late, second;
  long second_at;
} load;
static uint64_t random_state = 88172645463325252ULL;
/* Request ids are unique for a billion requests of a process. */
static uint64_t counter;

static uint64_t next_random(void) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  return random_state ^= random_state << 17;
}

static void write_digits(char *at, int digits, uint64_t value) {
  for (int place = digits - 1; place >= 0; place--, value /= 10) at[place] = (char)('0' + value % 10);
}

static uint64_t tag_of(const struct connection *of, int kind) {
  return (uint64_t)of->generation << 32 | (uint64_t)(of - load.connections) << 2 | (uint64_t)kind;
}

static void receive(struct connection *on) {
  struct io_uring_sqe *entry = next_entry();
  entry->opcode = IORING_OP_RECV;
  entry->fd = on->fd;
  entry->ioprio = IORING_RECV_MULTISHOT | IORING_RECVSEND_POLL_FIRST;
  entry->flags = IOSQE_BUFFER_SELECT;
  entry->user_data = tag_of(on, RECEIVE);
}

static void send_next(struct connection *on, int64_t since_ns) {
  const struct target *target = &load.targets[load.target_count == 1 ? 0 : next_random() % (unsigned)load.target_count];
  memcpy(on->request, target->request, (size_t)target->bytes);
  write_digits(on->request + target->player_at, PLAYER_DIGITS, load.first_player + next_random() % load.players);
  if (target->counter_at >= 0) write_digits(on->request + target->counter_at, COUNTER_DIGITS, counter++);
  on->target = target;
  on->since_ns = since_ns;
  struct io_uring_sqe *entry = next_entry();
  entry->opcode = IORING_OP_SEND;
  entry->fd = on->fd;
  entry->addr = (uint64_t)(uintptr_t)on->request;
  entry->len = (uint32_t)target->bytes;
  entry->msg_flags = MSG_NOSIGNAL | MSG_WAITALL;
  /* Only one that failed is told. */
  entry->flags = IOSQE_CQE_SKIP_SUCCESS;
  entry->user_data = tag_of(on, SEND);
}

static void open_connection(struct connection *on) {
  on->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int yes = 1;
  setsockopt(on->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  /* The cheapest there is: it paces nothing. */
  setsockopt(on->fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
  if (connect(on->fd, (struct sockaddr *)&load.address, sizeof load.address) != 0) fail("connect");
  on->is_open = 1;
  on->generation++;
  on->part_bytes = 0;
  on->since_ns = 0;
  load.open++;
  receive(on);
}

static void close_connection(struct connection *on) {
  on->is_open = 0;
  load.open--;
  shutdown(on->fd, SHUT_RDWR);
  close(on->fd);
}

static void send_due(int64_t now, int was_free) {
  while (load.free_count > 0 && load.sent < load.due) {
    int64_t due_ns = load.start_ns + load.sent * 1000000000LL / load.rate;
    if (due_ns > now) return;
    load.sent++;
    if (was_free) record(&load.late, now - due_ns);
    struct connection *on = &load.connections[load.free_ones[load.free_first]];
    load.free_first = (load.free_first + 1) % load.count;
    load.free_count--;
    if (on->is_open) send_next(on, due_ns);
    else load.errors++;
  }
}

/* Has a connection without a request send one, now or when one is due. */
static void next(struct connection *on, int64_t now) {
  if (load.is_over || (load.rate > 0 && load.sent >= load.due)) {
    close_connection(on);
  } else if (load.rate == 0) {
    send_next(on, now);
  } else {
    int was_free = load.free_count > 0;
    load.free_ones[(load.free_first + load.free_count++) % load.count] = (int)(on - load.connections);
    send_due(now, was_free);
  }
}

static void failed(struct connection *on, const char *why) {
  if (load.errors < ERRORS_TOLD) fprintf(stderr, "Load: %s\n", why);
  int was_free = load.rate > 0 && on->since_ns == 0;
  close_connection(on);
  if (++load.errors >= ERRORS_MAX) load.is_over = 1;
  if (load.is_over) return;
  open_connection(on);
  /* Without a request it keeps its place among those that are free. */
  if (!was_free) next(on, now_ns());
}

static void close_second(void) {
  if (load.second.total == 0) return;
  uint64_t most = 0;
  for (unsigned slot = 0; slot < SLOTS; slot++)
    if (load.second.counts[slot] > 0) most = micros_of(slot);
  printf("second %ld %llu %llu\n", load.second_at, (unsigned long long)percentile(&load.second, 0.99),
         (unsigned long long)most);
  memset(&load.second, 0, sizeof load.second);
}

/* Bytes of head and body; 0: more is to come, -1: no answer. Heads of one server mostly have the same layout: that of the
   answer before is tried first. */
static int whole_bytes(const char *bytes, int count) {
  static int head_bytes, length_at;
  int is_as_before = head_bytes > 0 && count >= head_bytes && memcmp(bytes + head_bytes - 4, "\r\n\r\n", 4) == 0 &&
                     strncasecmp(bytes + length_at - 16, "content-length: ", 16) == 0;
  if (!is_as_before) {
    const char *end = memmem(bytes, (size_t)count, "\r\n\r\n", 4);
    if (end == NULL) return 0;
    head_bytes = (int)(end - bytes) + 4;
    length_at = 0;
    for (const char *line = bytes; line != NULL && line < end; line = memmem(line, (size_t)(end - line), "\r\n", 2)) {
      if (line != bytes) line += 2;
      if (strncasecmp(line, "content-length: ", 16) == 0) length_at = (int)(line - bytes) + 16;
      if (line == bytes) line++;
    }
    if (length_at == 0 || strncmp(bytes, "HTTP/1.1 ", 9) != 0) return -1;
  }
  int length = 0;
  for (int at = length_at; bytes[at] >= '0' && bytes[at] <= '9'; at++) length = length * 10 + bytes[at] - '0';
  return head_bytes + length;
}

/* Whether a 200 is the answer to this request: it ends with its request id. */
static int is_answer_to(const struct connection *on, const char *bytes, int count) {
  const struct target *target = on->target;
  if (target->counter_at < 0) return 1;
  const char *id = on->request + target->id_at;
  int length = target->id_bytes;
  if (count > length + 2 && memcmp(bytes + count - 2 - length, id, (size_t)length) == 0) return 1;
  return memmem(bytes, (size_t)count, id, (size_t)length) != NULL;
}

static void answered(struct connection *on, const char *bytes, int count) {
  int64_t now = now_ns();
  int status = (bytes[9] - '0') * 100 + (bytes[10] - '0') * 10 + bytes[11] - '0';
  if (status == 200 && !is_answer_to(on, bytes, count)) {
    failed(on, "The answer to another request came");
    return;
  }
  int64_t latency = now - on->since_ns;
  load.last_ns = now;
  on->since_ns = 0;
  load.statuses[status < 600 && status > 0 ? status : 0]++;
  record(&load.latency, latency);
  if (load.rate > 0) {
    long second = (long)time(NULL);
    if (second != load.second_at) close_second();
    load.second_at = second;
    record(&load.second, latency);
  }
  next(on, now);
}

static void read_answer(struct connection *on, const char *bytes, int count) {
  if (on->part_bytes > 0) {
    if (on->part_bytes + count > ANSWER_MAX) {
      failed(on, "An answer is too long");
      return;
    }
    memcpy(on->part + on->part_bytes, bytes, (size_t)count);
    on->part_bytes += count;
    bytes = on->part;
    count = on->part_bytes;
  }
  int whole = whole_bytes(bytes, count);
  if (whole < 0 || (whole > 0 && count > whole) || on->since_ns == 0) {
    failed(on, "The server answered what was not asked");
  } else if (whole == 0 || count < whole) {
    if (on->part == NULL) on->part = malloc(ANSWER_MAX);
    if (bytes != on->part) memcpy(on->part, bytes, (size_t)count);
    on->part_bytes = count;
  } else {
    on->part_bytes = 0;
    answered(on, bytes, count);
  }
}

static void tick(void) {
  static struct __kernel_timespec every = {0, CHECK_MS * 1000000L};
  struct io_uring_sqe *entry = next_entry();
  entry->opcode = IORING_OP_TIMEOUT;
  entry->addr = (uint64_t)(uintptr_t)&every;
  entry->len = 1;
  entry->user_data = TICK;
}

static void check(int64_t now) {
  if (load.rate == 0 && now >= load.end_ns) load.is_over = 1;
  for (int i = 0; i < load.count; i++) {
    struct connection *on = &load.connections[i];
    if (on->is_open && on->since_ns > 0 && now - on->since_ns > TIMEOUT_MS * 1000000LL) failed(on, "No answer in 10 s");
  }
}

static void completed(const struct io_uring_cqe *entry) {
  int kind = (int)(entry->user_data & 3);
  if (kind == TICK) {
    check(now_ns());
    if (load.open > 0) tick();
    return;
  }
  struct connection *on = &load.connections[(uint32_t)entry->user_data >> 2];
  int is_open = on->is_open && entry->user_data >> 32 == on->generation;
  if (kind == SEND) {
    if (is_open) failed(on, "A request could not be sent");
    return;
  }
  int has_buffer = (entry->flags & IORING_CQE_F_BUFFER) != 0;
  unsigned id = entry->flags >> IORING_CQE_BUFFER_SHIFT;
  uint32_t generation = on->generation;
  if (entry->res > 0 && is_open) read_answer(on, (char *)ring.bytes + (size_t)id * BUFFER_BYTES, entry->res);
  else if (entry->res != -ENOBUFS && is_open) failed(on, "The server closed the connection");
  if (has_buffer) {
    give_back(id, 0);
    __atomic_store_n(&ring.buffers->tail, (uint16_t)(ring.buffers->tail + 1), __ATOMIC_RELEASE);
  }
  int goes_on = is_open && on->is_open && on->generation == generation;
  if (goes_on && !(entry->flags & IORING_CQE_F_MORE)) receive(on);
}

static void run(void) {
  int64_t started = now_ns();
  load.start_ns = load.rate > 0 ? started + CONNECTED_MS * 1000000LL : started;
  load.end_ns += load.start_ns;
  load.last_ns = load.start_ns;
  for (int i = 0; i < load.count; i++) open_connection(&load.connections[i]);
  for (int i = 0; i < load.count; i++) next(&load.connections[i], now_ns());
  tick();
  while (load.open > 0) {
    int64_t until = 0;
    if (load.rate > 0 && load.free_count > 0) {
      send_due(now_ns(), 1);
      if (load.sent >= load.due)
        for (; load.free_count > 0; load.free_count--) {
          close_connection(&load.connections[load.free_ones[load.free_first]]);
          load.free_first = (load.free_first + 1) % load.count;
        }
      else if (load.free_count > 0) until = load.start_ns + load.sent * 1000000000LL / load.rate;
      if (load.open == 0) break;
    }
    submit(until);
    unsigned head = *ring.cq_head;
    unsigned tail = __atomic_load_n(ring.cq_tail, __ATOMIC_ACQUIRE);
    for (; head != tail; head++) completed(&ring.cqes[head & ring.cq_mask]);
    __atomic_store_n(ring.cq_head, head, __ATOMIC_RELEASE);
  }
}

static void report(void) {
  close_second();
  printf("seconds %.6f\nerrors %d\n", (double)(load.last_ns - load.start_ns) / 1e9, load.errors);
  for (int status = 0; status < 600; status++)
    if (load.statuses[status] > 0) printf("status %d %llu\n", status, (unsigned long long)load.statuses[status]);
  for (unsigned slot = 0; slot < SLOTS; slot++)
    if (load.latency.counts[slot] > 0)
      printf("latency %llu %u\n", (unsigned long long)micros_of(slot), load.latency.counts[slot]);
  if (load.rate > 0) printf("late %llu\n", (unsigned long long)percentile(&load.late, 0.99));
  printf("end\n");
  fflush(stdout);
}

static int take_order(void) {
  char host[64];
  int port, milliseconds;
  memset(&load, 0, sizeof load);
  if (scanf("%63s %d %d %d %d %u %u %d", host, &port, &load.count, &milliseconds, &load.rate, &load.players,
            &load.first_player, &load.target_count) != 8)
    return 0;
  if (load.target_count < 1 || load.target_count > TARGETS_MAX || load.count < 1) exit(2);
  for (int i = 0; i < load.target_count; i++) {
    struct target *target = &load.targets[i];
    if (scanf("%d %d %d %d %d", &target->bytes, &target->player_at, &target->counter_at, &target->id_at,
              &target->id_bytes) != 5 ||
        getchar() != '\n')
      exit(2);
    target->request = malloc((size_t)target->bytes);
    if (fread(target->request, 1, (size_t)target->bytes, stdin) != (size_t)target->bytes) exit(2);
    if (target->bytes > load.request_max) load.request_max = target->bytes;
  }
  load.address = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  if (inet_pton(AF_INET, host, &load.address.sin_addr) != 1) exit(2);
  load.end_ns = milliseconds * 1000000LL;
  load.due = load.rate * (int64_t)milliseconds / 1000;
  load.connections = calloc((size_t)load.count, sizeof *load.connections);
  load.free_ones = calloc((size_t)load.count, sizeof *load.free_ones);
  for (int i = 0; i < load.count; i++) load.connections[i].request = malloc((size_t)load.request_max);
  return 1;
}

int main(int count, char **words) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  struct rlimit files;
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  /* Asked whether this system can: it ends with 0 where it can. */
  if (count > 1 && strcmp(words[1], "--probe") == 0) {
    open_ring(1);
    return 0;
  }
  random_state ^= (uint64_t)now_ns();
  while (take_order()) {
    open_ring((unsigned)load.count);
    run();
    report();
    close_ring();
    for (int i = 0; i < load.count; i++) {
      free(load.connections[i].request);
      free(load.connections[i].part);
    }
    for (int i = 0; i < load.target_count; i++) free(load.targets[i].request);
    free(load.connections);
    free(load.free_ones);
  }
  return 0;
}
