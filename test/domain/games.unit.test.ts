/** The kinds of games: what each of them promises about supply, acknowledgement, life and request ids. */
import { describe, expect, test } from 'vitest';
import {
  isRegisteredByPartner,
  KINDS_OF_GAMES,
  kindOfGame,
  waitsForLedger,
} from '../../src/domain/games/index.js';

const { slot, raffle } = KINDS_OF_GAMES;
const NOW = new Date('2026-01-01T00:00:00Z');

describe('a kind of game', () => {
  test('is found by the type that its definition names', () => {
    for (const [type, kind] of Object.entries(KINDS_OF_GAMES)) {
      expect(kind.gameType).toBe(type);
      expect(kindOfGame(kind.gameType)).toBe(kind);
    }
  });

  test('is registered by partners only where it says so', () => {
    expect(isRegisteredByPartner('slot')).toBe(true);
    for (const type of ['raffle', 'scratch_card', '', 'constructor', '__proto__'])
      expect(isRegisteredByPartner(type)).toBe(false);
  });

  test('is acknowledged as ACK says; a raffle after the ledger commit whatever ACK says', () => {
    expect(waitsForLedger(slot, 'redis')).toBe(false);
    expect(waitsForLedger(slot, 'ledger')).toBe(true);
    expect(waitsForLedger(raffle, 'redis')).toBe(true);
    expect(waitsForLedger(raffle, 'ledger')).toBe(true);
    expect(waitsForLedger(undefined, 'redis')).toBe(false);
  });

  test('goes on after a rebuild behind all that was leased; a raffle behind all that was booked', () => {
    expect(slot.outcomeSource.resumesAt(4096, 1000)).toBe(4096);
    expect(raffle.outcomeSource.resumesAt(4096, 1000)).toBe(1000);
  });
});

describe("a game's status", () => {
  test('of a slot is what the operator set', () => {
    const facts = { sealedAt: null, closedAt: null };
    expect(slot.lifeCycle.statusOf({ ...facts, isSuspended: false })).toBe('ACTIVE');
    expect(slot.lifeCycle.statusOf({ ...facts, isSuspended: true })).toBe('SUSPENDED');
  });

  test('of a raffle is CLOSED for ever once its last ticket is booked, and SEALING until its pool is there', () => {
    const { statusOf } = raffle.lifeCycle;
    expect(statusOf({ isSuspended: false, sealedAt: null, closedAt: null })).toBe('SEALING');
    expect(statusOf({ isSuspended: true, sealedAt: null, closedAt: null })).toBe('SUSPENDED');
    expect(statusOf({ isSuspended: false, sealedAt: NOW, closedAt: null })).toBe('ACTIVE');
    expect(statusOf({ isSuspended: true, sealedAt: NOW, closedAt: null })).toBe('SUSPENDED');
    expect(statusOf({ isSuspended: true, sealedAt: NOW, closedAt: NOW })).toBe('CLOSED');
  });
});

test('a requestId may bind in the ledger alone for raffles that were sealed before the oldest filter, or an hour after', () => {
  const boundFromMs = NOW.getTime();
  const sealed = (ms: number) => ({ sealedAtMs: boundFromMs + ms, boundFromMs });
  expect(raffle.lifeCycle.mayBindInLedger(sealed(3_599_999))).toBe(true);
  expect(raffle.lifeCycle.mayBindInLedger(sealed(3_600_000))).toBe(false);
  expect(slot.lifeCycle.mayBindInLedger(sealed(-1))).toBe(false);
});
