/**
 * What a ledger entry is: its kinds, and what follows from the kind of an entry. Each rule about kinds stands here once;
 * the bytes of an entry are in layouts.ts (outbox) and ledgerRow.store.ts (row).
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
/** The entries of a blackjack round: its deal, each action after it, and its voiding. */
export type RoundEntryKind = 'roundDeal' | 'roundAction' | 'roundVoid';

export interface EntryDefinition {
  readonly kind: EntryKind;
  /** What stands for the kind in the outbox (u8) and in the ledger (smallint). Never changes, never used again. */
  readonly code: number;
  /**
   * The account on the other side of the double entry. `game`: takes the wager and pays the credit, by game and day.
   * `opening`, `adjustment`: pays the credit, by partner and day. `communal`: the budget of the game's communal
   * progressive pays the credit, by game and day. `sandbox`: as `game`, and in no total of the game. `none`: nothing moves, and
   * the ledger has no row of it: it is a note.
   */
  readonly counterpart: 'game' | 'opening' | 'adjustment' | 'communal' | 'sandbox' | 'none';
  /** By how many it changes the number of its game's spins, in totals, statistics and RTP. A round counts at its deal. */
  readonly spins: 1 | 0 | -1;
  /** Adds payout − wager to the partner's net, which its funding bounds. */
  readonly movesPartnerNet: boolean;
  /** Deals the next outcome of its game: its index is the one after the game's entry before. */
  readonly advancesGameIndex: boolean;
  /** Is the player's first entry, and no other is. */
  readonly opensPlayer: boolean;
  /** Takes the player's next entry number; otherwise it has the number of the entry before. */
  readonly takesEntryNumber: boolean;
  /** Among which request ids it can bind one; undefined: it binds none. */
  readonly requestIds: 'spins' | 'adjustments' | undefined;
  /** Is a step of a blackjack round, which the flush books in the round, too. */
  readonly isOfRound: boolean;
  /** How it shows in a player's history. */
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
  /** A player's share of an event of a communal progressive. */
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
  /** In the outbox only: what the ledger must know of a communal progressive (redis/communalRecords.ts). */
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
  /** Gives the stakes back: its wager is what the round has wagered, negative. */
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
  /** A spin of a sandbox player whose outcome a tester chose: outside of totals, funding and the queue of outcomes. */
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
  /** In the outbox only: outcomes of a game from its index on are voided (layouts.ts, ROTATION); the ledger has them in `voids`. */
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

/** The kinds of which the ledger has rows; the others are notes in the outbox. */
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

/** The definition of a code. @throws RangeError where no kind has it */
export function entryOfCode(code: number): EntryDefinition {
  const definition = BY_CODE[code];
  if (definition === undefined) throw new RangeError(`No kind of ledger entry has the code ${code}`);
  return definition;
}

/** The codes of the kinds of which something holds, as a list for SQL's IN; one kind at least must be among them. */
export const entryCodesSql = (holds: (definition: EntryDefinition) => boolean): string =>
  `(${Object.values(ENTRY_KINDS)
    .filter(holds)
    .map(({ code }) => code)
    .join(', ')})`;

/** What distinguishes one entry from another that has the same id: ids are made of a clock, and a server that takes over has another one. */
export interface EntryIdentity {
  readonly id: bigint;
  readonly partnerId: number;
  readonly playerId: string;
  readonly gameId: number;
  readonly outcomeIndex: number;
}

/** Both are the same entry; an id alone does not say so. */
export const isSameEntry = (one: EntryIdentity, other: EntryIdentity | undefined): boolean =>
  other !== undefined &&
  one.id === other.id &&
  one.partnerId === other.partnerId &&
  one.playerId === other.playerId &&
  one.gameId === other.gameId &&
  one.outcomeIndex === other.outcomeIndex;
