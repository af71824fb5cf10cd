/**
 * Kinds of ledger entries and the rules that depend on the kind, each defined once. The bytes of an entry are
 * in layouts.ts (outbox) and ledgerRow.store.ts (row).
 */

export type EntryKind =
  | 'spin'
  | 'opening'
  | 'adjustment'
  | 'communalShare'
  | 'communalNote'
  | 'forcedSpin'
  | 'rotation'
  | RoundEntryKind;
/** Kinds of the entries of a blackjack round: its deal, each action after it, and its void. */
export type RoundEntryKind = 'roundDeal' | 'roundAction' | 'roundVoid';

export interface EntryDefinition {
  readonly kind: EntryKind;
  /**
   * Code of the kind in the outbox (u8) and in the ledger (smallint). It never changes and is never reused.
   */
  readonly code: number;
  /**
   * Account on the other side of the double entry.
   * - `game`: takes the wager and pays the credit, by game and day
   * - `opening`, `adjustment`: pays the credit, by partner and day
   * - `communal`: the budget of the game's communal progressive pays the credit, by game and day
   * - `sandbox`: like `game`, but excluded from the totals of the game
   * - `none`: no money moves and the ledger has no row; the entry is a note
   */
  readonly counterpart: 'game' | 'opening' | 'adjustment' | 'communal' | 'sandbox' | 'none';
  /**
   * Number of spins that the entry adds to the game's totals, statistics and RTP. A round counts at its deal.
   */
  readonly spins: 1 | 0 | -1;
  /** Whether the entry adds payout − wager to the partner's net, which is limited by its funding. */
  readonly movesPartnerNet: boolean;
  /**
   * Whether the entry deals the next outcome of its game, so that its index follows the game's previous
   * entry.
   */
  readonly advancesGameIndex: boolean;
  /** Whether the entry is a player's first entry. Only an opening can be the first. */
  readonly opensPlayer: boolean;
  /**
   * Whether the entry takes the player's next entry number. Otherwise it has the number of the entry before
   * it.
   */
  readonly takesEntryNumber: boolean;
  /** Name space of the request id that an entry of this kind binds. Undefined if it binds none. */
  readonly requestIds: 'spins' | 'adjustments' | undefined;
  /** Whether the entry is a step of a blackjack round, which a flush also writes to the round. */
  readonly isOfRound: boolean;
  readonly history: 'spin' | 'hidden';
}

export const ENTRY_KINDS = {
  spin: {
    kind: 'spin',
    code: 1,
    counterpart: 'game',
    spins: 1,
    movesPartnerNet: true,
    advancesGameIndex: true,
    opensPlayer: false,
    takesEntryNumber: true,
    requestIds: 'spins',
    isOfRound: false,
    history: 'spin',
  },
  opening: {
    kind: 'opening',
    code: 2,
    counterpart: 'opening',
    spins: 0,
    movesPartnerNet: false,
    advancesGameIndex: false,
    opensPlayer: true,
    takesEntryNumber: true,
    requestIds: undefined,
    isOfRound: false,
    history: 'hidden',
  },
  adjustment: {
    kind: 'adjustment',
    code: 3,
    counterpart: 'adjustment',
    spins: 0,
    movesPartnerNet: false,
    advancesGameIndex: false,
    opensPlayer: false,
    takesEntryNumber: false,
    requestIds: 'adjustments',
    isOfRound: false,
    history: 'hidden',
  },
  communalShare: {
    kind: 'communalShare',
    code: 4,
    counterpart: 'communal',
    spins: 0,
    movesPartnerNet: false,
    advancesGameIndex: false,
    opensPlayer: false,
    takesEntryNumber: true,
    requestIds: undefined,
    isOfRound: false,
    history: 'hidden',
  },
  /**
   * Note in the outbox only. It has what the ledger must record about a communal progressive
   * (redis/communalRecords.ts).
   */
  communalNote: {
    kind: 'communalNote',
    code: 5,
    counterpart: 'none',
    spins: 0,
    movesPartnerNet: false,
    advancesGameIndex: false,
    opensPlayer: false,
    takesEntryNumber: false,
    requestIds: undefined,
    isOfRound: false,
    history: 'hidden',
  },
  roundDeal: {
    kind: 'roundDeal',
    code: 6,
    counterpart: 'game',
    spins: 1,
    movesPartnerNet: true,
    advancesGameIndex: true,
    opensPlayer: false,
    takesEntryNumber: false,
    requestIds: 'spins',
    isOfRound: true,
    history: 'hidden',
  },
  roundAction: {
    kind: 'roundAction',
    code: 7,
    counterpart: 'game',
    spins: 0,
    movesPartnerNet: true,
    advancesGameIndex: false,
    opensPlayer: false,
    takesEntryNumber: false,
    requestIds: undefined,
    isOfRound: true,
    history: 'hidden',
  },
  /** Void of a round. It returns the stakes: its wager is the negative sum of the round's wagers. */
  roundVoid: {
    kind: 'roundVoid',
    code: 8,
    counterpart: 'game',
    spins: -1,
    movesPartnerNet: true,
    advancesGameIndex: false,
    opensPlayer: false,
    takesEntryNumber: false,
    requestIds: undefined,
    isOfRound: true,
    history: 'hidden',
  },
  /**
   * Spin of a sandbox player with an outcome chosen by a tester. It is excluded from totals, funding and the
   * queue of outcomes.
   */
  forcedSpin: {
    kind: 'forcedSpin',
    code: 9,
    counterpart: 'sandbox',
    spins: 0,
    movesPartnerNet: false,
    advancesGameIndex: false,
    opensPlayer: false,
    takesEntryNumber: true,
    requestIds: 'spins',
    isOfRound: false,
    history: 'spin',
  },
  /**
   * Note in the outbox only: the outcomes of a game from the note's index on are voided (layouts.ts,
   * ROTATION). The ledger records them in `voids`.
   */
  rotation: {
    kind: 'rotation',
    code: 10,
    counterpart: 'none',
    spins: 0,
    movesPartnerNet: false,
    advancesGameIndex: false,
    opensPlayer: false,
    takesEntryNumber: false,
    requestIds: undefined,
    isOfRound: false,
    history: 'hidden',
  },
} as const satisfies {
  [K in EntryKind]: EntryDefinition & { kind: K; isOfRound: K extends RoundEntryKind ? true : false };
};

/** Kinds that have rows in the ledger. The others are notes in the outbox. */
export type LedgerEntryKind = {
  [K in EntryKind]: (typeof ENTRY_KINDS)[K]['counterpart'] extends 'none' ? never : K;
}[EntryKind];
export type NoteKind = Exclude<EntryKind, LedgerEntryKind>;

const BY_CODE: readonly (EntryDefinition | undefined)[] = Object.values<EntryDefinition>(ENTRY_KINDS).reduce(
  (byCode, definition) => {
    byCode[definition.code] = definition;
    return byCode;
  },
  [] as (EntryDefinition | undefined)[],
);

export function entryOfCode(code: number): EntryDefinition {
  const definition = BY_CODE[code];
  if (definition === undefined) throw new RangeError(`No kind of ledger entry has the code ${code}`);
  return definition;
}

/** True for spins and tickets, which all histories of spins show. */
export const isShownAsSpin = ({ kind }: { readonly kind: EntryKind }): boolean =>
  ENTRY_KINDS[kind].history === 'spin';

/**
 * Lists the codes of the kinds that satisfy a condition, for the operator IN of SQL. At least one kind must
 * satisfy it.
 */
export const entryCodesSql = (holds: (definition: EntryDefinition) => boolean): string =>
  `(${Object.values(ENTRY_KINDS)
    .filter(holds)
    .map(({ code }) => code)
    .join(', ')})`;

/**
 * Members that distinguish entries with the same id. Ids are made from a clock, and a replica that takes over
 * has a different clock.
 */
export interface EntryIdentity {
  readonly id: bigint;
  readonly partnerId: number;
  readonly playerId: string;
  readonly gameId: number;
  readonly outcomeIndex: number;
}

/** Returns whether two entries are the same. An equal id alone does not prove that. */
export const isSameEntry = (one: EntryIdentity, other: EntryIdentity | undefined): boolean =>
  other !== undefined &&
  one.id === other.id &&
  one.partnerId === other.partnerId &&
  one.playerId === other.playerId &&
  one.gameId === other.gameId &&
  one.outcomeIndex === other.outcomeIndex;
