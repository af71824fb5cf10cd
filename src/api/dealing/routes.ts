/** Handlers of the dealing switch for all games (docs/contract.md §15.9). */

import type { DealingSwitch } from '../../engine/catalog/dealingSwitches.store.js';
import { learn, type Route, route } from '../server/route.js';
import type { Services } from '../server/services.js';
import * as contract from './contract.js';

const shown = ({ isOn, reason, actor, changedAt }: DealingSwitch) => ({
  state: isOn ? 'ON' : 'OFF',
  reason,
  actor,
  changedAt,
});

/**
 * Creates the events about changed game statuses. The change is in force even if creating the events fails; a
 * worker creates missing events later.
 */
export async function notifyGames({ store, webhooks }: Services): Promise<void> {
  const deliveries = await store.dealingSwitches.notifyGameStatuses().catch(() => 0);
  if (deliveries > 0) webhooks.recorded(deliveries);
}

export const dealingRoutes = (services: Services): Route[] => [
  route(contract.getDealing, async () => shown(await services.store.dealingSwitches.get())),
  route(contract.setDealing, async ({ actor, body }) => {
    const row = await services.store.dealingSwitches.set(actor, body.state === 'ON', body.reason);
    await learn(services.catalog);
    await notifyGames(services);
    return shown(row);
  }),
];
