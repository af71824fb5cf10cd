/** Tests the kinds of games: how each kind replenishes, acknowledges, ends and binds request ids. */
import { describe, expect, test } from 'vitest';
import {
  isRegisteredByPartner,
  KINDS_OF_GAMES,
  kindOfGame,
  waitsForLedger,
} from '../../src/domain/games/index.js';

const { slot, raffle } = KINDS_OF_GAMES;
const NOW = new Date('2026-01-01T00:00:00Z');

describe('kinds of games', () => {
  test('finds a kind of game by the type in its definition', () => {
    for (const [type, kind] of Object.entries(KINDS_OF_GAMES)) {
      expect(kind.gameType).toBe(type);
      expect(kindOfGame(kind.gameType)).toBe(kind);
    }
  });

  test('lets partners register only kinds of games that allow it', () => {
    expect(isRegisteredByPartner('slot')).toBe(true);
    for (const type of ['raffle', 'scratch_card', '', 'constructor', '__proto__'])
      expect(isRegisteredByPartner(type)).toBe(false);
  });

  test('acknowledges a slot spin as ACK says, but a raffle ticket only after the ledger commit', () => {
    expect(waitsForLedger(slot, 'redis')).toBe(false);
    expect(waitsForLedger(slot, 'ledger')).toBe(true);
    expect(waitsForLedger(raffle, 'redis')).toBe(true);
    expect(waitsForLedger(raffle, 'ledger')).toBe(true);
    expect(waitsForLedger(undefined, 'redis')).toBe(false);
  });

  test('after a rebuild, a slot continues after its leased outcomes, and a raffle after its committed tickets', () => {
    expect(slot.outcomeSource.resumesAt(4096, 1000)).toBe(4096);
    expect(raffle.outcomeSource.resumesAt(4096, 1000)).toBe(1000);
  });
});

describe('the status of a game', () => {
  test('reports the status of a slot as the operator set it', () => {
    const facts = { sealedAt: null, closedAt: null };
    expect(slot.lifeCycle.statusOf({ ...facts, isSuspended: false })).toBe('ACTIVE');
    expect(slot.lifeCycle.statusOf({ ...facts, isSuspended: true })).toBe('SUSPENDED');
  });

  test('reports a raffle as SEALING until its pool exists, and as CLOSED once its last ticket is committed', () => {
    const { statusOf } = raffle.lifeCycle;
    expect(statusOf({ isSuspended: false, sealedAt: null, closedAt: null })).toBe('SEALING');
    expect(statusOf({ isSuspended: true, sealedAt: null, closedAt: null })).toBe('SUSPENDED');
    expect(statusOf({ isSuspended: false, sealedAt: NOW, closedAt: null })).toBe('ACTIVE');
    expect(statusOf({ isSuspended: true, sealedAt: NOW, closedAt: null })).toBe('SUSPENDED');
    expect(statusOf({ isSuspended: true, sealedAt: NOW, closedAt: NOW })).toBe('CLOSED');
  });
});

test("looks up a requestId in the ledger only for a raffle sealed at most an hour after the oldest filter's start", () => {
  const boundFromMs = NOW.getTime();
  const sealed = (ms: number) => ({ sealedAtMs: boundFromMs + ms, boundFromMs });
  expect(raffle.lifeCycle.mayBindInLedger(sealed(3_599_999))).toBe(true);
  expect(raffle.lifeCycle.mayBindInLedger(sealed(3_600_000))).toBe(false);
  expect(slot.lifeCycle.mayBindInLedger(sealed(-1))).toBe(false);
});
