/** Views of games: slots, raffles, blackjack tables, and their rounds, returns and progressives. */
import { type Column, change, type Schemas } from './view.js';

type Game = Schemas['OperatorGame'];

/** Returns the state of a game. A voided raffle is closed, for the reason that it was voided. */
export const stateOf = ({ status, statusReason }: Pick<Game, 'status' | 'statusReason'>): string =>
  status === 'CLOSED' && statusReason === 'VOIDED' ? 'VOIDED' : status;

export const GAMES: readonly Column<Game>[] = [
  { heading: 'Id', value: (row) => row.gameConfigId, kind: 'number' },
  { heading: 'Game', value: (row) => row.displayName },
  { heading: 'System name', value: (row) => row.configName },
  { heading: 'Partner', value: (row) => row.partnerId, kind: 'number' },
  { heading: 'Kind', value: (row) => row.gameType },
  { heading: 'Status', value: stateOf, kind: 'status' },
  { heading: 'Wager', value: (row) => row.minWagerUsd, kind: 'usd' },
  { heading: 'Spins', value: (row) => row.totals.spins, kind: 'count' },
  { heading: 'Return', value: (row) => row.totals.actualRtp, kind: 'percent' },
  { heading: 'Expected', value: (row) => row.expected?.rtp, kind: 'percent' },
  { heading: 'Queue', value: (row) => row.queue.outcomesReady, kind: 'count' },
];

export const SUSPEND_GAME = change('PATCH /games/{id}', {
  body: { status: 'SUSPENDED' },
  asks: 'Suspend',
  consequence: 'All plays of this game are refused until you resume it. Open rounds can be finished.',
  button: 'Suspend the game',
  confirm: 'Suspend',
  done: 'The game is suspended.',
});
export const RESUME_GAME = change('PATCH /games/{id}', {
  body: { status: 'ACTIVE' },
  asks: 'Resume',
  consequence: 'The game can be played again.',
  button: 'Resume the game',
  confirm: 'Resume',
  isHarmless: true,
  done: 'The game is active.',
});
/** For outcomes that somebody may have seen before they were dealt. */
export const VOID_OUTCOMES = change('POST /games/{id}/rotate', {
  asks: 'Void the sealed outcomes of',
  consequence:
    'All sealed outcomes that were not dealt yet are discarded permanently. The game continues with new outcomes, usually within a second. Use this if somebody may have seen future outcomes.',
  button: 'Void the sealed outcomes',
  confirm: 'Void the outcomes',
  done: ({ isInForce }) =>
    isInForce
      ? 'The sealed outcomes are voided.'
      : 'Recorded, but not confirmed yet. Sealed outcomes may still be dealt until it is; repeat it to learn whether it is done.',
});
export const VOID_RAFFLE = change('POST /raffles/{id}/void', {
  asks: 'Void',
  consequence:
    'No more tickets are sold, and each sold ticket is refunded. Prizes that were paid stay paid. This is permanent.',
  button: 'Void the raffle',
  done: ({ refunded, tickets, isInForce }) =>
    isInForce
      ? `The raffle is voided; ${refunded} of ${tickets} tickets are refunded so far.`
      : 'The void is recorded, but Redis has not confirmed the end of the sale. A worker ends it as soon as Redis accepts it.',
});
export const RETIRE_SHEET = change('PATCH /par-sheets/{id}', {
  body: { status: 'RETIRED' },
  asks: 'Retire',
  consequence:
    "No new games can be registered with this sheet. Its present games continue. A retired sheet can't be activated again.",
  button: 'Retire the sheet',
  done: 'The sheet is retired.',
});

/** Display names of the windows of judgements. */
export const WINDOW_NAMES = { ROLLING_30: '30 days', LIFE: 'Since the first spin' } as const;

const ofWindow = (shown: boolean, band: readonly number[] | null | undefined): string | null =>
  shown && band ? band.map((edge) => `${(100 * edge).toFixed(2)} %`).join(' to ') : null;

/** @param from number of spins from which the bands are meaningful. Undefined if they are not. */
export const windowsFrom = (from = Number.POSITIVE_INFINITY): readonly Column<Schemas['RtpWindow']>[] => [
  { heading: 'Window', value: (row) => WINDOW_NAMES[row.window] },
  { heading: 'Days (UTC)', value: (row) => `${row.from} to ${row.to}` },
  { heading: 'Spins', value: (row) => row.spins, kind: 'count' },
  { heading: 'Return', value: (row) => row.actualRtp, kind: 'percent' },
  { heading: '95 of 100', value: (row) => ofWindow(row.spins >= from, row.band95), kind: 'number' },
  { heading: '99 of 100', value: (row) => ofWindow(row.spins >= from, row.band99), kind: 'number' },
  { heading: 'z', value: (row) => row.z, kind: 'number' },
  { heading: 'State', value: (row) => row.state, kind: 'status' },
];

/** The judgements of one day each. */
export const JUDGEMENTS: readonly Column<Schemas['RtpRecord']>[] = [
  { heading: 'Day (UTC)', value: (row) => row.day },
  { heading: 'Window', value: (row) => WINDOW_NAMES[row.window] },
  { heading: 'Spins', value: (row) => row.spins, kind: 'count' },
  { heading: 'Wagered', value: (row) => row.wageredUsd, kind: 'usd' },
  { heading: 'Return', value: (row) => row.paidOutUsd / row.wageredUsd, kind: 'percent' },
  { heading: 'z', value: (row) => row.z, kind: 'number' },
  { heading: 'State', value: (row) => row.state, kind: 'status' },
];

export const ROUNDS: readonly Column<Schemas['OperatorRound']>[] = [
  { heading: 'Dealt', value: (row) => row.createdAt, kind: 'time' },
  { heading: 'Round', value: (row) => row.roundId },
  { heading: 'Partner', value: (row) => row.partnerId, kind: 'number' },
  { heading: 'Table', value: (row) => row.gameId, kind: 'number' },
  { heading: 'Player', value: (row) => row.playerId },
  { heading: 'Status', value: (row) => row.status, kind: 'status' },
  { heading: 'Staked', value: (row) => row.wageredUsd, kind: 'usd' },
  { heading: 'Paid', value: (row) => row.payoutUsd, kind: 'usd' },
];

export const CLOSE_ROUND = change('POST /rounds/{roundId}/close', {
  asks: 'Play out',
  consequence: "The player's hands stand, the dealer draws, and the round is paid. This is permanent.",
  button: 'Play the round out',
  confirm: 'Play it out',
  done: 'The round is settled.',
});
export const VOID_ROUND = change('POST /rounds/{roundId}/void', {
  asks: 'Void',
  consequence: 'All stakes are refunded to the player. This is permanent.',
  button: 'Void the round',
  confirm: 'Void it',
  done: 'The round is voided.',
});

export const TIERS: readonly Column<Schemas['CommunalResponse']['tiers'][number]>[] = [
  { heading: 'Level', value: (row) => row.tierLevel, kind: 'number' },
  { heading: 'Name', value: (row) => row.tierName },
  { heading: 'Fires each', value: (row) => row.triggerAtSpins, kind: 'count' },
  { heading: 'Pays', value: (row) => Number(row.amountUsd), kind: 'usd' },
];
export const COMMUNAL_EVENTS: readonly Column<Schemas['OperatorCommunalEvents']['events'][number]>[] = [
  { heading: 'Time', value: (row) => row.createdAt, kind: 'time' },
  { heading: 'Tier', value: (row) => row.tierName },
  { heading: 'Paid', value: (row) => Number(row.totalAmountUsd), kind: 'usd' },
  { heading: 'Winners', value: (row) => row.winners, kind: 'count' },
  { heading: 'Status', value: (row) => row.status, kind: 'status' },
];

export type Finding = NonNullable<Schemas['RtpReview']['finding']>;
export const closeReview = (finding: Finding) =>
  change('POST /rtp-reviews/{id}/close', {
    body: { finding },
    asks: 'Close',
    consequence: `The finding is ${finding}. The review stays on record and can't be opened again. A later judgement opens a new review.`,
    button: 'Close it',
    confirm: 'Close',
    done: 'The review is closed.',
  });
