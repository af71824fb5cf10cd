/** What a request must know of its game beside the catalog: when it is answered, when it is sold out. */
import type { Catalog } from '../catalog/catalog.js';
import type { Config } from '../config.js';
import { waitsForLedger } from '../domain/games/index.js';
import type { SpinIds } from '../domain/spinId.js';
import type { Services } from '../http/routes.js';
import type { Store } from '../postgres/store.js';
import { withTimeout } from '../runtime/withTimeout.js';

/** How often it is looked whether the last ticket of a raffle is booked, while somebody waits for that. */
const SOLD_OUT_POLL_MS = 10;

export interface GameRuleParts {
  readonly catalog: Catalog;
  readonly store: Store;
  readonly spinIds: SpinIds;
  readonly ack: Config['ACK'];
  readonly idempotencyTtlSeconds: number;
  readonly deadlineMs: number;
}

type GameRules = Pick<Services, 'waitsForLedger' | 'mayForget' | 'findSold' | 'isSoldOut'>;

export function gameRules(parts: GameRuleParts): GameRules {
  const { catalog, store, spinIds, deadlineMs, idempotencyTtlSeconds } = parts;
  return {
    waitsForLedger: (game) => waitsForLedger(game?.kind, parts.ack),
    mayForget: ({ kind, sealedAtMs }) =>
      kind.lifeCycle.mayBindInLedger({ sealedAtMs, nowMs: Date.now(), idempotencyTtlSeconds }),
    findSold: async (game, partner, requestId) => {
      const entry = await store.findTicket(game.gameId, requestId);
      if (entry === undefined) return undefined;
      return { ...entry, spinId: spinIds.encodeOne(entry.id, partner.partnerId) };
    },
    isSoldOut: async ({ gameId }) => {
      const deadline = performance.now() + deadlineMs;
      const isClosed = (): boolean => catalog.game(gameId)?.status === 'CLOSED';
      while (!isClosed()) {
        const leftMs = deadline - performance.now();
        if (leftMs <= 0) return false;
        await withTimeout(catalog.refresh(), leftMs).catch(() => {});
        if (!isClosed()) await new Promise((resolve) => setTimeout(resolve, SOLD_OUT_POLL_MS));
      }
      return true;
    },
  };
}
