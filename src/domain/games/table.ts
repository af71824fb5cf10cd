/**
 * Blackjack tables: games of rounds, each dealt from its own sealed shoe. The operator creates a table; it
 * never ends, and its rules and wager never change (docs/blackjack.md).
 */
import type { Fault } from '../errors.js';
import { usdToMicros } from '../money.js';
import { PlayedRound, roundMoney } from './blackjack.js';
import { type BlackjackRules, checkRules, maxPayoutMicros, rulesHash, stakeFault } from './blackjackRules.js';
import type { KindOfGame, RenderedOutcomes } from './kindOfGame.js';
import type { TableTerms } from './tableTerms.js';

/** Maximum wager of a blackjack table: 10,000 USD. */
const WAGER_MAX_MICROS = 10_000_000_000;

/** @param wanted values that match the schema of the request */
export function checkTable(wanted: {
  readonly wagerUsd: number;
  readonly rules: Readonly<Record<string, unknown>>;
  readonly roundTimeoutSeconds: number;
}): { terms: TableTerms } | { faults: Fault[] } {
  const checked = checkRules(wanted.rules);
  const faults: Fault[] = 'faults' in checked ? [...checked.faults] : [];
  const wagerMicros = usdToMicros(wanted.wagerUsd);
  if (wagerMicros === undefined || wagerMicros <= 0 || wagerMicros > WAGER_MAX_MICROS) {
    faults.push({
      path: '/wagerUsd',
      message: 'must be above 0 and at most 10,000, with at most 6 decimals',
    });
  } else if ('rules' in checked) {
    const message = stakeFault(checked.rules, wagerMicros);
    if (message !== undefined) faults.push({ path: '/wagerUsd', message });
    else {
      const { roundTimeoutSeconds } = wanted;
      return { terms: { wagerMicros, rules: checked.rules, roundTimeoutSeconds } };
    }
  }
  return { faults };
}

/**
 * Results that a deal can have before any action. The result is the outcome code of its shoe. The sealed
 * block has the code, so that one script call can deal the round.
 */
const DEAL_CODES = { open: 0, lost: 1, push: 2, natural: 3 } as const;

/** Payouts at the deal in micro-USD, indexed by {@link DEAL_CODES}. */
function dealPayouts({ rules, wagerMicros }: TableTerms): number[] {
  const natural =
    rules.blackjackPays === '3:2' ? wagerMicros + (wagerMicros / 2) * 3 : wagerMicros + (wagerMicros / 5) * 6;
  return [0, 0, wagerMicros, natural];
}

/**
 * Returns the {@link DEAL_CODES} value of a shoe.
 * @param shoe cards in dealing order
 */
export function dealCode(rules: BlackjackRules, shoe: ArrayLike<number>): number {
  const round = new PlayedRound(rules, shoe);
  // A wager of 10 is divisible under every rule, and each code has a different payout for it.
  const payout = roundMoney(round, 10).payoutMicros;
  if (payout === undefined) return DEAL_CODES.open;
  if (payout === 0) return DEAL_CODES.lost;
  return payout === 10 ? DEAL_CODES.push : DEAL_CODES.natural;
}

function render(terms: TableTerms): RenderedOutcomes {
  const combinations = dealPayouts(terms).map((payoutMicros) => ({
    prizeTier: 0,
    payoutMicros,
    isBonusTrigger: false,
    json: '',
  }));
  const { wagerMicros, rules } = terms;
  return {
    rendered: { wagerMicros, maxPayoutMicros: maxPayoutMicros(rules, wagerMicros), combinations },
    // There are no statistics, because the return depends on how players play.
    statistics: undefined,
    poolSize: 0,
  };
}

export const BLACKJACK: KindOfGame = {
  gameType: 'blackjack',
  registeredBy: 'operator',
  outcomeSource: {
    form: 'shoes',
    refusesBlocks: undefined,
    // A player sees a card only after the commit of its entry, so all shoes that are not committed can still
    // be dealt.
    resumesAt: (_leasedTo, bookedTo) => bookedTo,
  },
  // A card is shown only after the commit of the entry that dealt it. A rebuild deals it again if the ledger
  // does not have the entry.
  acknowledgement: 'after-ledger-commit',
  lifeCycle: {
    statusOf: ({ isSuspended }) => (isSuspended ? 'SUSPENDED' : 'ACTIVE'),
    mayBindInLedger: () => false,
  },
  mathematics: {
    sheetIdOf: () => undefined,
    render: ({ table }) => {
      if (table === null) return undefined;
      return { ...render(table), table: { ...table, rulesHash: rulesHash(table.rules) } };
    },
    certifiedRtp: () => null,
  },
  listing: { forPartner: () => ({}), forOperator: () => ({}) },
};
