/** Runs a route: access, rate limit window, body, handler, answer. api/spins/spin.ts serves the spin. */

import { ApiError, ERRORS, type ErrorEntry } from '../../domain/errors.js';
import type { Partner } from '../../domain/game.js';
import type { Role } from '../../domain/operator.js';
import { KIND } from '../../engine/cells/batch.js';
import { type FairQueue, QueueFullError, TurnLateError } from '../../platform/runtime/fairQueue.js';
import { BASES } from '../contract/apis.js';
import { CSV_TYPE, prefersCsv } from '../contract/csv.js';
import type { Access } from './access.js';
import type { Exchange } from './exchange.js';
import type { Handle } from './listener.js';
import type { Caller as OperatorCaller } from './operatorAccess.js';
import { PendingCount } from './pendingCount.js';
import { readRequest } from './readRequest.js';
import { REPLAYED, type Replies, type Window } from './reply.js';
import { JsonText, Pending, Replayed, type Route, type RouteRequest, WithHeaders } from './route.js';
import { serializerOf } from './serializers.js';
import type { Services } from './services.js';

type Caller = Pick<RouteRequest, 'partner' | 'actor' | 'operator' | 'refusal' | 'deadline'>;

/** The turn of a waiting request comes as soon as one of the partner's requests is answered. */
const TOO_MANY_AT_ONCE = {
  retryAfterSeconds: 1,
  details: [
    {
      path: '',
      message: 'This partner has too many requests under way. Send fewer at once, and repeat this one later',
    },
  ],
};

const NO_PARTNER = Object.freeze({}) as Partner;
const NO_OPERATOR = Object.freeze({}) as OperatorCaller;
const NO_REFUSAL = (): undefined => undefined;

const roleFor = ({ role, method }: Pick<Route, 'role' | 'method'>): Role =>
  role ?? (method === 'get' ? 'auditor' : 'operator');

export interface RouteServices {
  /** Counts requests against the rate limit windows of their partners. */
  readonly spinPath: Services['spinPath'];
  readonly turns: FairQueue;
  onFault(exchange: Exchange, route: Route, error: unknown, entry: ErrorEntry): void;
  /** Returns whether the error means that a store does not answer, and is not a defect of this program. */
  isStoreAway(error: unknown): boolean;
}

export function serve(route: Route, access: Access, replies: Replies, services: RouteServices): Handle {
  const serialize = serializerOf(route);
  const names = [...route.path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]!);
  const base = BASES[route.scope];
  const kind = route.window === 'spin' ? KIND.countSpin : KIND.countApi;

  const takesTurns = route.scope === 'partner' || (route.scope === 'play' && route.method === 'get');
  /** Runs a partner's job in the partner's turn. The key may have been revoked before the turn came. */
  const inTurn = <T>({ partner, refusal, deadline }: Caller, job: () => Promise<T>): Promise<T> => {
    if (!takesTurns) return job();
    const judged = (): Promise<T> => {
      const entry = refusal();
      if (entry !== undefined) throw new ApiError(entry);
      return job();
    };
    return services.turns.run(partner.partnerId, judged, { deadline });
  };

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
      const result = await inTurn(request, async () => route.handle(request));
      if (route.csv !== undefined && prefersCsv(exchange.head.accept)) {
        const text = route.csv(result, request);
        replies.json(exchange, route.status, text, window, '', undefined, CSV_TYPE);
        return;
      }
      const headers = result instanceof WithHeaders ? result.headers : '';
      const isWrapped =
        result instanceof Replayed || result instanceof WithHeaders || result instanceof Pending;
      const body = isWrapped ? result.body : result;
      const status = result instanceof Pending ? 202 : route.status;
      const text = body instanceof JsonText ? body.text : serialize === undefined ? '' : serialize(body);
      replies.json(exchange, status, text, window, result instanceof Replayed ? REPLAYED : headers);
    } catch (error) {
      if (error instanceof QueueFullError) {
        replies.error(exchange, ERRORS.apiRateExceeded, window, TOO_MANY_AT_ONCE);
        return;
      }
      if (error instanceof TurnLateError) {
        replies.error(exchange, ERRORS.unavailable, window);
        return;
      }
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
