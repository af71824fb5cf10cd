/** Runs a route: access, rate limit window, body, handler, answer. api/spins/spin.ts serves the spin. */

import { ApiError, ERRORS, type ErrorEntry } from '../../domain/errors.js';
import type { Partner } from '../../domain/game.js';
import type { Role } from '../../domain/operator.js';
import { KIND } from '../../engine/cells/batch.js';
import { BASES } from '../contract/apis.js';
import { CSV_TYPE, prefersCsv } from '../contract/csv.js';
import type { Access } from './access.js';
import type { Exchange } from './exchange.js';
import type { Handle } from './listener.js';
import type { Caller as OperatorCaller } from './operatorAccess.js';
import { PendingCount } from './pendingCount.js';
import { readRequest } from './readRequest.js';
import { REPLAYED, type Replies, type Window } from './reply.js';
import { Replayed, type Route, type RouteRequest, WithHeaders } from './route.js';
import { serializerOf } from './serializers.js';
import type { Services } from './services.js';

type Caller = Pick<RouteRequest, 'partner' | 'actor' | 'operator' | 'refusal' | 'deadline'>;

const NO_PARTNER = Object.freeze({}) as Partner;
const NO_OPERATOR = Object.freeze({}) as OperatorCaller;
const NO_REFUSAL = (): undefined => undefined;

/** Returns the role that an operator needs for a route. */
const roleFor = ({ role, method }: Pick<Route, 'role' | 'method'>): Role =>
  role ?? (method === 'get' ? 'auditor' : 'operator');

export interface RouteServices {
  /** Counts requests against the rate limit windows of their partners. */
  readonly spinPath: Services['spinPath'];
  onFault(exchange: Exchange, route: Route, error: unknown, entry: ErrorEntry): void;
  /** Returns whether the error means that a store does not answer, and is not a defect of this program. */
  isStoreAway(error: unknown): boolean;
}

export function serve(route: Route, access: Access, replies: Replies, services: RouteServices): Handle {
  const serialize = serializerOf(route);
  const names = [...route.path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]!);
  const base = BASES[route.scope];
  const kind = route.window === 'spin' ? KIND.countSpin : KIND.countApi;

  const run = async (exchange: Exchange, caller: Caller, window: Window | undefined): Promise<void> => {
    try {
      if (route.sandboxOnly === true && caller.partner.environment !== 'sandbox')
        throw new ApiError(ERRORS.notFound);
      const request = { ...readRequest(route, names, base, exchange), ...caller };
      if (route.csvPieces !== undefined && prefersCsv(exchange.head.accept)) {
        const headers = await route.csvHeaders?.(request);
        await replies.stream(exchange, route.csvPieces(request), { contentType: CSV_TYPE, headers }, window);
        return;
      }
      const result = await route.handle(request);
      if (route.csv !== undefined && prefersCsv(exchange.head.accept)) {
        const text = route.csv(result, request);
        replies.json(exchange, route.status, text, window, '', undefined, CSV_TYPE);
        return;
      }
      const headers = result instanceof WithHeaders ? result.headers : '';
      const body = result instanceof Replayed || result instanceof WithHeaders ? result.body : result;
      const text = serialize === undefined ? '' : serialize(body);
      replies.json(exchange, route.status, text, window, result instanceof Replayed ? REPLAYED : headers);
    } catch (error) {
      if (error instanceof ApiError) {
        const status = exchange.isTooLong ? 413 : error.entry.status;
        replies.error(exchange, error.entry, window, { details: error.details, status });
        return;
      }
      const isAway = route.failure === ERRORS.internal && services.isStoreAway(error);
      const entry = isAway ? ERRORS.unavailable : route.failure;
      services.onFault(exchange, route, error, entry);
      replies.error(exchange, entry, window);
    }
  };

  return (exchange) => {
    // The body is read only after the key was accepted and the rate limit window has room, so that refused
    // requests cost little.
    if (route.scope === 'operator') {
      const role = roleFor(route);
      const runFor = (operator: OperatorCaller): void =>
        void run(
          exchange,
          { partner: NO_PARTNER, refusal: NO_REFUSAL, deadline: 0, actor: operator.name, operator },
          undefined,
        );
      access.operator(exchange, role, (operator) => {
        // The key or the role may be taken away while the body arrives.
        const isWaiting = exchange.incoming?.isReceived === false;
        exchange.takeBody(() => {
          exchange.keepBody();
          if (isWaiting) access.operator(exchange, role, runFor);
          else runFor(operator);
        });
      });
      return;
    }
    access.partner(exchange, (admission) =>
      exchange.takeBody(() => {
        exchange.keepBody();
        const count = new PendingCount(exchange, admission, services.spinPath, replies, kind, (window) => {
          const { partner } = admission;
          const refusal = (): ErrorEntry | undefined => admission.refusal;
          const { deadline } = count;
          void run(exchange, { partner, refusal, deadline, actor: '', operator: NO_OPERATOR }, window);
        });
        count.submit();
      }),
    );
  };
}
