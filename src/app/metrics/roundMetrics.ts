/**
 * Metrics of a worker about blackjack rounds: open rounds, and results of the rounds that it committed since
 * its start.
 */
import { readStep } from '../../domain/games/round.js';
import { openRoundCounts, type RoundEntry } from '../../engine/blackjack/rounds.store.js';
import type { EventEmitter } from '../../engine/processEvents.js';
import type { Sql } from '../../postgres/connection.js';
import type { Metrics } from './metrics.js';

export interface RoundMetricsParts {
  readonly metrics: Metrics;
  readonly events: EventEmitter;
  readonly sql: Sql;
  /** Maximum number of games with their own time series. */
  readonly gamesMax: number;
  readonly ownership: { readonly cells: readonly number[] };
}

type End = 'settled' | 'timedOut' | 'voided';

function endOf({ kind, code }: RoundEntry): End | undefined {
  if (kind === 'roundDeal') return code === 0 ? undefined : 'settled';
  const { isEnd, move } = readStep(code);
  if (!isEnd) return undefined;
  if (move === 'void') return 'voided';
  return move === 'timeout' ? 'timedOut' : 'settled';
}

export function registerRoundMetrics({ metrics, events, sql, gamesMax, ownership }: RoundMetricsParts): void {
  const ended: Record<End, Map<number, number>> = {
    settled: new Map(),
    timedOut: new Map(),
    voided: new Map(),
  };
  events.on('LedgerCommitted', ({ rounds }) => {
    for (const entry of rounds) {
      const end = endOf(entry);
      if (end === undefined) continue;
      const counts = ended[end];
      const before = counts.get(entry.gameId);
      if (before !== undefined || counts.size < gamesMax) counts.set(entry.gameId, (before ?? 0) + 1);
    }
  });
  metrics.gaugeBy('spindle_rounds_open', 'Number of open blackjack rounds, by game', 'game', async () =>
    (await openRoundCounts(sql, ownership.cells, gamesMax)).map(({ gameId, open }) => [gameId, open]),
  );
  const byGame = (name: string, help: string, end: End): void =>
    metrics.counterBy(name, help, 'game', async () => [...ended[end]]);
  byGame(
    'spindle_rounds_settled_total',
    'Blackjack rounds that players ended, committed since the start, by game',
    'settled',
  );
  byGame(
    'spindle_rounds_timed_out_total',
    'Blackjack rounds that were played out after a timeout, committed since the start, by game',
    'timedOut',
  );
  byGame(
    'spindle_rounds_voided_total',
    'Blackjack rounds that were voided, committed since the start, by game',
    'voided',
  );
}
