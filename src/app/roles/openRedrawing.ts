/**
 * Draws outcomes again from their seed if they were removed from Postgres and a request asks for their proof.
 */
import { join } from 'node:path';
import { ApiError, ERRORS } from '../../domain/errors.js';
import { Redrawing } from '../../engine/blocks/redrawing.js';
import { sheetsOf } from '../../engine/catalog/catalog.store.js';
import { closing } from '../../platform/runtime/service.js';
import type { DrawAgain } from '../../publicLog/log/proofs.js';
import type { RoleParts } from './parts.js';

export async function openRedrawing({ config, sql, store, services }: RoleParts): Promise<DrawAgain> {
  const redrawing = new Redrawing(join(config.workersDir, 'redraw.js'));
  await services.add(closing('redrawing thread', () => redrawing.end()));
  return async ({ gameId, seed, count }) => {
    const game = await store.games.find(gameId);
    const id = game?.parSheetId ?? -1;
    const sheet = (await sheetsOf(sql, [id])).get(id);
    if (sheet === undefined)
      throw new Error(`Game ${gameId} has no PAR sheet, so its outcomes can't be drawn again`);
    const drawn = await redrawing.draw({ sheet, seed, count });
    if (drawn === undefined) throw new ApiError(ERRORS.unavailable);
    return drawn;
  };
}
