/** The one table of routes, and how it becomes what the server listens for. */

import type { ErrorEntry } from '../../domain/errors.js';
import type { SpinCommand } from '../../engine/cells/deal.js';
import { blackjackRoutes } from '../blackjack/operatorRounds.js';
import { roundRoutes } from '../blackjack/routes.js';
import { cellRoutes } from '../cells/routes.js';
import { operatorCommunalRoutes } from '../communal/operatorCommunal.js';
import { partnerCommunalRoutes } from '../communal/routes.js';
import { API_VERSION, BASES, BODY_LIMIT, PARTNER_VERSION, type Scope } from '../contract/apis.js';
import { openApiDocuments } from '../contract/documents.js';
import type { Endpoint } from '../contract/endpoint.js';
import { dealingRoutes } from '../dealing/routes.js';
import { parSheetRoutes } from '../games/parSheets.js';
import { gameRoutes } from '../games/routes.js';
import { ledgerDayRoutes } from '../ledgerDays/routes.js';
import { operatorsRoutes } from '../operators/routes.js';
import { operatorReadRoutes } from '../overview/reads.js';
import { overviewRoutes } from '../overview/routes.js';
import { partnerMoveRoutes } from '../partners/moves.js';
import { partnerRoutes } from '../partners/routes.js';
import { adjustmentRoutes } from '../players/adjustments.js';
import { recallRoutes } from '../players/recall.js';
import { playerRoutes } from '../players/routes.js';
import { playerStatusRoutes } from '../players/status.js';
import { programCheckRoutes } from '../programChecks/routes.js';
import { proofRoutes } from '../proofs/routes.js';
import { raffleRoutes } from '../raffles/routes.js';
import { raffleVoidRoutes } from '../raffles/voids.js';
import { reportRoutes } from '../reports/routes.js';
import { rtpRoutes } from '../returns/routes.js';
import { sandboxRoutes } from '../sandbox/routes.js';
import { findRoutes } from '../search/routes.js';
import { apiVersionRoutes } from '../service/apiVersions.js';
import { getVersion } from '../service/contract.js';
import { settlementRoutes } from '../settlements/routes.js';
import { spin } from '../spins/contract.js';
import { spinFeedRoutes } from '../spins/feed.js';
import { SpinEndpoint } from '../spins/spin.js';
import { eventRoutes } from '../webhooks/events.js';
import { webhookRoutes } from '../webhooks/routes.js';
import { webhookUpkeepRoutes } from '../webhooks/upkeep.js';
import type { Access } from './access.js';
import { consoleRoutes, docsRoutes } from './docs.js';
import type { Exchange } from './exchange.js';
import type { Handle, ServerRoute } from './listener.js';
import { publicLogRoutes } from './logTileRoutes.js';
import { notFoundRoutes } from './notFound.js';
import { partnerViewRoutes } from './partnerViews.js';
import { INSTALLATION_HEADER } from './portHolder.js';
import { PublicWindow } from './publicWindow.js';
import type { Replies } from './reply.js';
import { type Route, route } from './route.js';
import { serve } from './serve.js';
import type { Services } from './services.js';

/** All routes of the APIs but the spin, which has a path of its own. */
export function allRoutes(services: Services, brand: string): Route[] {
  const routes: Route[] = [
    ...parSheetRoutes(services.store),
    ...gameRoutes(services),
    ...reportRoutes(services),
    ...rtpRoutes(services),
    ...proofRoutes(services),
    ...raffleRoutes(services),
    ...raffleVoidRoutes(services),
    ...roundRoutes(services),
    ...blackjackRoutes(services),
    ...partnerCommunalRoutes(services),
    ...operatorCommunalRoutes(services),
    ...playerRoutes(services),
    ...recallRoutes(services),
    ...spinFeedRoutes(services),
    ...sandboxRoutes(services),
    ...settlementRoutes(services),
    ...webhookRoutes(services),
    ...webhookUpkeepRoutes(services),
    ...eventRoutes(services),
    ...partnerRoutes(services),
    ...partnerMoveRoutes(services.store),
    ...operatorsRoutes(services),
    ...overviewRoutes(services),
    ...dealingRoutes(services),
    ...cellRoutes(services),
    ...findRoutes(services),
    ...operatorReadRoutes(services),
    ...ledgerDayRoutes(services),
    ...programCheckRoutes(services),
    ...adjustmentRoutes(services),
    ...apiVersionRoutes(services),
    ...playerStatusRoutes(services),
    route(getVersion, () => ({
      version: API_VERSION,
      apiVersion: PARTNER_VERSION,
      service: brand.toLowerCase(),
      requestIdBindsSeconds: services.spins.requestIdBindsSeconds(),
      manifest: services.process.manifest(),
    })),
  ];
  return [...routes, ...partnerViewRoutes(routes, services.store)];
}

/** What the server listens for: the table, the documents, health, and 404 for everything else. */
export function serverRoutes(
  services: Services,
  access: Access,
  replies: Replies,
  options: {
    brand: string;
    installationTag: string;
    docsDir: string;
    consoleDir: string;
    verifyDir: string;
  },
): ServerRoute[] {
  const routes = [spin, ...allRoutes(services, options.brand)];
  const spinEndpoint = new SpinEndpoint(access, replies, services);
  const routeServices = {
    submit: (job: SpinCommand) => services.spins.submit(job),
    isStoreAway: services.process.isStoreAway,
    onFault: (exchange: Exchange, route: Route, error: unknown, entry: ErrorEntry) =>
      services.process.onFault(exchange, route.operationId, error, entry),
  };
  const served = (route: Endpoint | Route): ServerRoute => ({
    method: route.method === 'delete' ? 'del' : route.method,
    pattern: BASES[route.scope] + route.path.replace(/\{(\w+)\}/g, ':$1'),
    operation: route.operationId,
    hasQuery: true,
    bodyLimit: route.body === undefined ? 0 : (route.bodyLimit ?? BODY_LIMIT),
    handle: keptByNobody(
      showsSecret(route),
      'handle' in route ? serve(route, access, replies, routeServices) : spinEndpoint.handle,
    ),
  });
  const documents = { access, replies, window: PublicWindow.ofDocuments() };
  const found = [
    ...routes.map((route) => served(route)),
    ...documentRoutes(options.brand, documents),
    ...healthRoutes(services, replies, options.installationTag),
    ...docsRoutes(options.docsDir, { access, replies, window: PublicWindow.ofPages() }),
    ...publicLogRoutes(services, options.verifyDir, { access, replies, window: PublicWindow.ofLog() }),
    ...consoleRoutes(options.consoleDir, { access, replies, window: PublicWindow.ofPages() }),
  ];
  const submit = (command: SpinCommand): void => services.spins.submit(command);
  const all = [...found, ...notFoundRoutes(found, { access, replies, submit })];
  return all.map((each) => ({ ...each, handle: keptByNobody(isOperators(each), each.handle) }));
}

/** Its answer has a key or a signing secret. */
const showsSecret = ({ response }: Endpoint): boolean => {
  const members = (response as { properties?: object } | undefined)?.properties ?? {};
  return 'apiKey' in members || 'secret' in members;
};

const isOperators = ({ pattern }: ServerRoute): boolean =>
  pattern === BASES.operator || pattern.startsWith(`${BASES.operator}/`);

/** Tells caches to keep none of a route's answers, errors included. */
const keptByNobody = (isPrivate: boolean, handle: Handle): Handle =>
  isPrivate
    ? (exchange) => {
        exchange.isPrivate = true;
        handle(exchange);
      }
    : handle;

/** What the documents are given out with: they need no key, so no partner's window bounds them. */
interface Documents {
  readonly access: Access;
  readonly replies: Replies;
  readonly window: PublicWindow;
}

/** A document, at its base. */
const documentRoute = (
  base: string,
  document: object,
  { access, replies, window }: Documents,
): ServerRoute => {
  const text = JSON.stringify(document);
  return {
    method: 'get',
    pattern: `${base}/openapi.json`,
    operation: 'getOpenApi',
    bodyLimit: 0,
    handle: (exchange) => {
      if (window.admits(access.clientOf(exchange))) replies.json(exchange, 200, text);
      else window.refuse(exchange, replies);
    },
  };
};

function documentRoutes(brand: string, documents: Documents): ServerRoute[] {
  return Object.entries(openApiDocuments(brand)).map(([scope, document]) =>
    documentRoute(BASES[scope as Scope], document, documents),
  );
}

/** What tells a balancer about this process. */
function healthRoutes(services: Services, replies: Replies, tag: string): ServerRoute[] {
  const installation = `${INSTALLATION_HEADER}: ${tag}`;
  return [
    {
      method: 'get',
      pattern: '/healthz',
      answersHead: true,
      operation: 'healthz',
      bodyLimit: 0,
      handle: (exchange) => replies.json(exchange, 200, '{"status":"ok"}', undefined, installation),
    },
    {
      method: 'get',
      pattern: '/readyz',
      answersHead: true,
      operation: 'readyz',
      bodyLimit: 0,
      handle: (exchange) => {
        services.process.readiness().then(({ status, body }) => replies.json(exchange, status, body));
      },
    },
  ];
}
