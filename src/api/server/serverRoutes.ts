/**
 * Builds all routes of the server: the API operations, the OpenAPI documents, health checks, and 404 for
 * other paths.
 */
import type { ErrorEntry } from '../../domain/errors.js';
import { type HealthAnswer, type Problem, readyAnswer, statusAnswer } from '../../engine/problems.js';
import { type FairLimits, FairQueue } from '../../platform/runtime/fairQueue.js';
import { BASES, BODY_LIMIT, type Scope } from '../contract/apis.js';
import { openApiDocument } from '../contract/documents.js';
import type { Endpoint } from '../contract/endpoint.js';
import { allRoutes } from '../routes.js';
import { spin } from '../spins/contract.js';
import { SpinEndpoint } from '../spins/spin.js';
import type { Access } from './access.js';
import { consoleRoutes, docsRoutes } from './docs.js';
import type { Exchange } from './exchange.js';
import type { Handle, ServerRoute } from './listener.js';
import { publicLogRoutes } from './logTileRoutes.js';
import { notFoundRoutes } from './notFound.js';
import { INSTALLATION_HEADER } from './portHolder.js';
import { PublicWindow } from './publicWindow.js';
import type { Replies } from './reply.js';
import type { Route } from './route.js';
import { serve } from './serve.js';
import type { Services } from './services.js';

/**
 * Partners share the connections to Postgres. So a partner that sends many requests at once waits for its own
 * instead of taking every connection. Deals and actions of rounds don't take turns: they mostly
 * wait for the ledger, without a connection.
 */
const TURNS: FairLimits = { atOnce: 256, atOnceOfOwner: 6, held: 4096, heldOfOwner: 256 };

/**
 * @param answering services of the routes for partners and of those for operators, which have connections to
 * Postgres of their own
 */
export function serverRoutes(
  answering: { readonly partners: Services; readonly operators: Services },
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
  const services = answering.partners;
  const isForOperators = ({ scope }: Route): boolean => scope === 'operator';
  const routes = [
    spin,
    ...allRoutes(services, options.brand).filter((route) => !isForOperators(route)),
    ...allRoutes(answering.operators, options.brand).filter(isForOperators),
  ];
  const spinEndpoint = new SpinEndpoint(access, replies, services);
  const routeServices = {
    spinPath: services.spinPath,
    turns: new FairQueue(TURNS),
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
  const all = [...found, ...notFoundRoutes(found, { access, replies, spinPath: services.spinPath })];
  return all.map((each) => ({ ...each, handle: keptByNobody(isOperators(each), each.handle) }));
}

/** Returns whether the answer of an endpoint contains a key or a signing secret. */
const showsSecret = ({ response }: Endpoint): boolean => {
  const members = (response as { properties?: object } | undefined)?.properties ?? {};
  return 'apiKey' in members || 'secret' in members;
};

const isOperators = ({ pattern }: ServerRoute): boolean =>
  pattern === BASES.operator || pattern.startsWith(`${BASES.operator}/`);

/** Marks a route's answers, including errors, as not cacheable. */
const keptByNobody = (isPrivate: boolean, handle: Handle): Handle =>
  isPrivate
    ? (exchange) => {
        exchange.isPrivate = true;
        handle(exchange);
      }
    : handle;

/**
 * Dependencies of the routes of the OpenAPI documents. The documents need no key, so they have a rate limit
 * by client address instead of a partner's window.
 */
interface Documents {
  readonly access: Access;
  readonly replies: Replies;
  readonly window: PublicWindow;
}

function documentRoutes(brand: string, { access, replies, window }: Documents): ServerRoute[] {
  return (Object.keys(BASES) as Scope[]).map((scope) => {
    // Made for the first client that asks, because few processes are ever asked for one.
    let text: string | undefined;
    return {
      method: 'get',
      pattern: `${BASES[scope]}/openapi.json`,
      operation: 'getOpenApi',
      bodyLimit: 0,
      handle: (exchange) => {
        if (!window.admits(access.clientOf(exchange))) {
          window.refuse(exchange, replies);
          return;
        }
        text ??= JSON.stringify(openApiDocument(scope, brand));
        replies.json(exchange, 200, text);
      },
    };
  });
}

function healthRoutes(services: Services, replies: Replies, tag: string): ServerRoute[] {
  const installation = `${INSTALLATION_HEADER}: ${tag}`;
  const check = (pattern: string, answerOf: (problems: readonly Problem[]) => HealthAnswer): ServerRoute => ({
    method: 'get',
    pattern,
    operation: pattern.slice(1),
    bodyLimit: 0,
    handle: (exchange) => {
      services.process.problems.list().then((found) => {
        const { status, body } = answerOf(found);
        replies.json(exchange, status, body);
      });
    },
  });
  return [
    {
      method: 'get',
      pattern: '/healthz',
      operation: 'healthz',
      bodyLimit: 0,
      handle: (exchange) => replies.json(exchange, 200, '{"status":"ok"}', undefined, installation),
    },
    check('/readyz', readyAnswer),
    check('/statusz', statusAnswer),
  ];
}
