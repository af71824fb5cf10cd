/* Latencies in microseconds, to one in 2,048, and their percentiles. */
#include <stdint.h>

enum { SUB = 2048, OCTAVES = 18, SLOTS = SUB * OCTAVES };
struct histogram {
  uint32_t counts[SLOTS];
  uint64_t total;
};

static unsigned slot_of(uint64_t micros) {
  if (micros < 2 * SUB) return (unsigned)micros;
  unsigned shift = (unsigned)(63 - __builtin_clzll(micros)) - 11;
  unsigned slot = (shift << 11) + (unsigned)(micros >> shift);
  return slot < SLOTS ? slot : SLOTS - 1;
}

static uint64_t micros_of(unsigned slot) {
  if (slot < 2 * SUB) return slot;
  unsigned shift = (slot >> 11) - 1;
  return (uint64_t)(slot - (shift << 11)) << shift;
}

static void record(struct histogram *of, int64_t ns) {
  of->counts[slot_of(ns < 0 ? 0 : (uint64_t)ns / 1000)]++;
  of->total++;
}

static uint64_t percentile(const struct histogram *of, double share) {
  uint64_t left = (uint64_t)((double)of->total * share + 0.999999);
  for (unsigned slot = 0; slot < SLOTS; slot++) {
    if (of->counts[slot] >= left) return micros_of(slot);
    left -= of->counts[slot];
  }
  return 0;
}

