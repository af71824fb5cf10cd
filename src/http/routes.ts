/** The one table of routes, and how it becomes what the server listens for. */
import type { SpinCommand } from '../cells/deal.js';
import { API_VERSION, BASES, BODY_LIMIT, PARTNER_VERSION, type Scope } from '../contract/apis.js';
import { openApiDocuments } from '../contract/documents.js';
import type { Endpoint } from '../contract/endpoint.js';
import { getVersion } from '../contract/endpoints/service.js';
import { spin } from '../contract/endpoints/spins.js';
import type { ErrorEntry } from '../domain/errors.js';
import type { Access } from './access.js';
import { consoleRoutes, docsRoutes } from './docs.js';
import type { Exchange } from './exchange.js';
import type { Handle, ServerRoute } from './listener.js';
import { notFoundRoutes } from './notFound.js';
import { adjustmentRoutes } from './operator/adjustments.js';
import { apiVersionRoutes } from './operator/apiVersions.js';
import { blackjackRoutes } from './operator/blackjack.js';
import { cellRoutes } from './operator/cells.js';
import { operatorCommunalRoutes } from './operator/communal.js';
import { dealingRoutes } from './operator/dealing.js';
import { findRoutes } from './operator/finds.js';
import { ledgerDayRoutes } from './operator/ledgerDays.js';
import { operatorsRoutes } from './operator/operators.js';
import { overviewRoutes } from './operator/overview.js';
import { partnerMoveRoutes } from './operator/partnerMoves.js';
import { partnerRoutes } from './operator/partners.js';
import { partnerViewRoutes } from './operator/partnerViews.js';
import { playerStatusRoutes } from './operator/players.js';
import { programCheckRoutes } from './operator/programChecks.js';
import { raffleRoutes } from './operator/raffles.js';
import { raffleVoidRoutes } from './operator/raffleVoids.js';
import { operatorReadRoutes } from './operator/reads.js';
import { reportRoutes } from './operator/reports.js';
import { rtpRoutes } from './operator/rtp.js';
import { partnerCommunalRoutes } from './partner/communal.js';
import { eventRoutes } from './partner/events.js';
import { gameRoutes } from './partner/games.js';
import { parSheetRoutes } from './partner/parSheets.js';
import { playerRoutes } from './partner/players.js';
import { proofRoutes } from './partner/proofs.js';
import { recallRoutes } from './partner/recall.js';
import { roundRoutes } from './partner/rounds.js';
import { sandboxRoutes } from './partner/sandbox.js';
import { settlementRoutes } from './partner/settlements.js';
import { SpinEndpoint } from './partner/spin.js';
import { spinFeedRoutes } from './partner/spins.js';
import { webhookRoutes } from './partner/webhooks.js';
import { webhookUpkeepRoutes } from './partner/webhookUpkeep.js';
import { INSTALLATION_HEADER } from './portHolder.js';
import { publicLogRoutes } from './publicLog.js';
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
