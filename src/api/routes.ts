/**
 * Collects the handlers of all operations by resource. The spin has its own request path and is not included.
 */
import { adjustmentRoutes } from './adjustments/routes.js';
import { auditLogRoutes } from './auditLog/routes.js';
import { blackjackRoutes } from './blackjack/routes.js';
import { cellRoutes } from './cells/routes.js';
import { communalRoutes } from './communal/routes.js';
import { dealingRoutes } from './dealing/routes.js';
import { gameRoutes } from './games/routes.js';
import { ledgerDayRoutes } from './ledgerDays/routes.js';
import { operatorRoutes } from './operators/routes.js';
import { overviewRoutes } from './overview/routes.js';
import { partnerRoutes } from './partners/routes.js';
import { playerRoutes } from './players/routes.js';
import { programCheckRoutes } from './programChecks/routes.js';
import { proofRoutes } from './proofs/routes.js';
import { raffleRoutes } from './raffles/routes.js';
import { reportRoutes } from './reports/routes.js';
import { requestRoutes } from './requests/routes.js';
import { returnRoutes } from './returns/routes.js';
import { sandboxRoutes } from './sandbox/routes.js';
import { searchRoutes } from './search/routes.js';
import { partnerViewRoutes } from './server/partnerViews.js';
import type { Route } from './server/route.js';
import type { Services } from './server/services.js';
import { settlementRoutes } from './settlements/routes.js';
import { spinRoutes } from './spins/routes.js';
import { trafficRoutes } from './traffic/routes.js';
import { versionRoutes } from './versions/routes.js';
import { webhookRoutes } from './webhooks/routes.js';

/** @param brand name of the service */
export function allRoutes(services: Services, brand: string): Route[] {
  const routes: Route[] = [
    ...adjustmentRoutes(services),
    ...auditLogRoutes(services),
    ...blackjackRoutes(services),
    ...cellRoutes(services),
    ...communalRoutes(services),
    ...dealingRoutes(services),
    ...gameRoutes(services),
    ...ledgerDayRoutes(services),
    ...operatorRoutes(services),
    ...overviewRoutes(services),
    ...partnerRoutes(services),
    ...playerRoutes(services),
    ...programCheckRoutes(services),
    ...proofRoutes(services),
    ...raffleRoutes(services),
    ...reportRoutes(services),
    ...requestRoutes(services),
    ...returnRoutes(services),
    ...sandboxRoutes(services),
    ...searchRoutes(services),
    ...settlementRoutes(services),
    ...spinRoutes(services),
    ...trafficRoutes(services),
    ...versionRoutes(services, brand),
    ...webhookRoutes(services),
  ];
  return [...routes, ...partnerViewRoutes(routes, services.store)];
}
