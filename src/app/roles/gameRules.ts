/** What a request must know of its game beside the catalog: when it is answered, when it is sold out. */

import type { Store } from '../../api/api.store.js';
import type { SpinServices } from '../../api/server/services.js';
import { entryTimeMs } from '../../domain/entryId.js';
import type { Game } from '../../domain/game.js';
import { waitsForLedger } from '../../domain/games/index.js';
import type { SpinIds } from '../../domain/spinId.js';
import { tailOfEntry } from '../../domain/spinTail.js';
import type { Catalog } from '../../engine/catalog/catalog.js';
import type { Confirmations } from '../../engine/cells/confirmations.js';
import type { RedisNodes } from '../../engine/redis/nodes.js';
import type { RequestIds } from '../../engine/requestIds/requestIds.js';
import { withTimeout } from '../../platform/runtime/withTimeout.js';
import type { Config } from '../config.js';

export interface GameRuleParts {
  readonly catalog: Catalog;
  readonly store: Store;
  readonly spinIds: SpinIds;
  readonly nodes: Pick<RedisNodes, 'cell'>;
  readonly confirmations: Pick<Confirmations, 'cameTo'>;
  readonly ack: Config['ACK'];
  readonly requestIds: RequestIds;
  readonly deadlineMs: number;
}

type GameRules = Pick<
  SpinServices,
  'waitsForLedger' | 'mayForget' | 'findBound' | 'isSoldOut' | 'requestIdBindsSeconds'
>;

export function gameRules(parts: GameRuleParts): GameRules {
  const { catalog, store, spinIds, requestIds } = parts;
  const mayForget = ({ kind, sealedAtMs, partnerId }: Game): boolean => {
    if (sealedAtMs === undefined) return false;
    const boundFromMs = entryTimeMs(requestIds.boundFromId(catalog.partner(partnerId)!.cell));
    return kind.lifeCycle.mayBindInLedger({ sealedAtMs, boundFromMs });
  };
  /** Under way, by game: everybody who asks meanwhile shares one. */
  const looks = new Map<number, Promise<boolean>>();
  return {
    waitsForLedger: (game) => waitsForLedger(game?.kind, parts.ack),
    mayForget,
    requestIdBindsSeconds: () => requestIds.bindsSeconds,
    findBound: async (partner, requestId, game) => {
      const { partnerId } = partner;
      const found = await withTimeout(requestIds.find(partner, requestId), parts.deadlineMs);
      const { version } = found;
      let { entry } = found;
      if (entry === undefined && game !== undefined && mayForget(game))
        entry = await store.ledger.findTicket(game.gameId, requestId);
      if (entry === undefined) return { entry, version };
      const tail = tailOfEntry(entry, await store.communal.noticeOfSpin(entry.id));
      return { entry: { ...entry, spinId: spinIds.encodeOne(entry.id, partnerId), tail }, version };
    },
    isSoldOut: ({ gameId, partnerId }) => {
      let look = looks.get(gameId);
      if (look === undefined) {
        look = isClosed(parts, gameId, partnerId)
          .catch(() => false)
          .finally(() => looks.delete(gameId));
        looks.set(gameId, look);
      }
      return look;
    },
  };
}

/** All tickets are dealt: waits until the last one is booked, which closes the raffle in the same transaction. */
async function isClosed(
  { catalog, nodes, confirmations, deadlineMs }: GameRuleParts,
  gameId: number,
  partnerId: number,
): Promise<boolean> {
  const deadline = performance.now() + deadlineMs;
  const { cell } = catalog.partner(partnerId)!;
  const newest = await nodes.cell(cell).newestInOutbox();
  if (!(await confirmations.cameTo(cell, newest, deadlineMs))) return false;
  await withTimeout(catalog.refresh(), deadline - performance.now());
  return catalog.game(gameId)?.status === 'CLOSED';
}
