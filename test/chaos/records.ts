/**
 * Records the state of each spin from the view of the clients of a chaos run.
 *
 * A requestId may be sent several times. Its state is the strongest state in its answers: dealt (a 200), else
 * unknown (an answer that may have been lost), else refused (every answer reported that nothing happened).
 */
import { createHash } from 'node:crypto';
import { usdToMicros } from '../../src/domain/money.js';
import type { WireAnswer } from '../support/load.js';

export interface TargetGame {
  readonly gameId: number;
  readonly wagerUsd: number;
  /** Spin counts of the tiers of the game's communal progressive. */
  readonly tiers?: readonly number[];
  readonly isRaffle?: true;
}

export interface Target {
  readonly partnerId: number;
  readonly key: string;
  /** Games of the partner. A suspended raffle is replaced in the list. */
  readonly games: TargetGame[];
  readonly players: readonly string[];
}

/** The notice of a communal progressive in the answer of a spin. Amounts are decimal texts. */
export interface Told {
  readonly eventId: string;
  readonly totalAmountUsd: string;
  readonly yourShareUsd: string;
  readonly isTriggerPlayer: boolean;
}

export interface Dealt {
  readonly spinId: string;
  readonly payoutMicros: number;
  readonly balanceMicros: number;
  /** Hash of the answer's body. Undefined if only the ledger has the spin. */
  digest: string | undefined;
  /** Notice of a share, or null. Undefined if only the ledger has the spin. */
  told: Told | null | undefined;
}

/** One requested spin: all requests of a requestId, or a single request without one. */
/** The player of spins that a fault sends and judges itself. They are in no record. */
export const STRANGER = 'stranger';

export interface SpinRecord {
  readonly partnerId: number;
  readonly key: string;
  readonly gameId: number;
  readonly playerId: string;
  readonly requestId: string | undefined;
  readonly body: string;
  readonly round: number;
  open: number;
  dealt: Dealt | undefined;
  /** Number of answers with status 200 that were not marked as a replay. */
  fresh: number;
  /** Number of answers with status 200 that were marked as a replay. */
  replayed: number;
  /** True if a request may have had an effect that no answer reported. */
  isUnknown: boolean;
  /** True once the result of this spin in doubt is counted. */
  isCounted: boolean;
}

/** Category in which the answer to a request is counted. */
export type Verdict = 'ok' | 'failed' | 'unknown';

export interface Judgement {
  readonly verdict: Verdict;
  /** The promise that the answer breaks. Undefined if the answer is permitted. */
  readonly breach: string | undefined;
}

/** Error codes of spins that did not happen and that an outage may cause. */
const OUTAGE_REFUSALS = new Set(['KS-5002', 'KS-5004', 'KS-4203', 'KS-5012']);
/** Error codes that an outage may cause, but only for a request whose requestId is not bound. */
const NOT_BOUND = new Set(['KS-4203', 'KS-5012']);

export function newRecord(
  target: Target,
  game: Target['games'][number],
  playerId: string,
  requestId: string | undefined,
  round: number,
): SpinRecord {
  const { partnerId, key } = target;
  const { gameId, wagerUsd } = game;
  return {
    partnerId,
    key,
    gameId,
    playerId,
    requestId,
    body: JSON.stringify({ gameId, playerId, wagerUsd, ...(requestId === undefined ? {} : { requestId }) }),
    round,
    open: 0,
    dealt: undefined,
    fresh: 0,
    replayed: 0,
    isUnknown: false,
    isCounted: false,
  };
}

/**
 * Records an answer. Undefined means that no answer came in time.
 * @param wasDealt true if the record was known to be dealt when the request was sent
 */
export function judge(record: SpinRecord, answer: WireAnswer | undefined, wasDealt: boolean): Judgement {
  if (answer === undefined) {
    record.isUnknown ||= !wasDealt;
    return { verdict: 'unknown', breach: undefined };
  }
  if (answer.status === 200) return { verdict: 'ok', breach: enterDealt(record, answer, wasDealt) };
  const code = codeOf(answer.text);
  const named = `${code ?? answer.text} for ${nameOf(record)}`;
  if (code === 'KS-4110' && record.requestId !== undefined) {
    record.isUnknown ||= !wasDealt;
    return { verdict: 'unknown', breach: undefined };
  }
  if (code === 'KS-5002' && record.requestId === undefined) {
    record.isUnknown = true;
    return { verdict: 'unknown', breach: undefined };
  }
  if (code === undefined || !OUTAGE_REFUSALS.has(code)) {
    return { verdict: 'failed', breach: `no outage explains ${named} (${answer.status})` };
  }
  return {
    verdict: 'failed',
    breach: wasDealt && NOT_BOUND.has(code) ? `a bound requestId was refused: ${named}` : undefined,
  };
}

function enterDealt(
  record: SpinRecord,
  { text, headers }: WireAnswer,
  wasDealt: boolean,
): string | undefined {
  const isReplay = headers.get('idempotent-replayed') === 'true';
  if (isReplay) record.replayed++;
  else record.fresh++;
  const body = JSON.parse(text) as {
    spinId: string;
    outcome: { payoutUsd: number };
    balance: { balanceUsd: number };
    communityBonus: Told | null;
  };
  const payoutMicros = usdToMicros(body.outcome.payoutUsd);
  const balanceMicros = usdToMicros(body.balance.balanceUsd);
  if (payoutMicros === undefined || balanceMicros === undefined) return `no whole micro-USD in ${text}`;
  const digest = createHash('sha256').update(text).digest('base64url').slice(0, 22);
  const { dealt } = record;
  if (dealt === undefined) {
    const { spinId, communityBonus: told } = body;
    record.dealt = { spinId, payoutMicros, balanceMicros, digest, told };
    return undefined;
  }
  if (
    dealt.spinId !== body.spinId ||
    dealt.payoutMicros !== payoutMicros ||
    dealt.balanceMicros !== balanceMicros ||
    (dealt.digest !== undefined && dealt.digest !== digest)
  ) {
    return `another answer to ${nameOf(record)}: ${text}, before ${JSON.stringify(dealt)}`;
  }
  dealt.digest = digest;
  dealt.told = body.communityBonus;
  return wasDealt && !isReplay ? `a repeat was not said to be a replay: ${nameOf(record)}` : undefined;
}

/**
 * Checks the answers to the requests of a record, none of which is in flight any more. Returns the
 * contradiction between them, or undefined if there is none.
 */
export function contradiction(record: SpinRecord): string | undefined {
  if (record.requestId === undefined) return undefined;
  if (record.fresh > 1) return `${nameOf(record)} was dealt ${record.fresh} times by its answers`;
  if (record.fresh === 0 && record.replayed > 0 && !record.isUnknown) {
    return `${nameOf(record)} had happened, though every answer before had said that nothing did`;
  }
  return undefined;
}

export const nameOf = ({ requestId, partnerId, gameId, playerId }: SpinRecord): string =>
  `${requestId ?? 'a spin without requestId'} (partner ${partnerId}, game ${gameId}, player ${playerId})`;

function codeOf(text: string): string | undefined {
  try {
    return (JSON.parse(text) as { errorCode?: string }).errorCode;
  } catch {
    return undefined;
  }
}
