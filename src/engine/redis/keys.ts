/**
 * Every key in Redis, its type, who writes it. All keys of a cell bear its hash tag, so that one script call
 * touches one slot of a Redis Cluster.
 */

/** How the keys of a cell name it: by its number on a single server; in a cluster `5.482`, which pins it to its slot (slots.ts). */
export type CellName = number | string;

/**
 * hash: epoch, fence, newest ledger entry and totals, how far the outbox is booked, the newest batch of each front end.
 * Written by deal.lua, adjust.lua and, through fencedSet.lua, by the cell's owner.
 */
export const cellKey = (cell: CellName): string => `{c${cell}}:cell`;
/** hash: partner id → windows and net. Written by deal.lua; by a rebuild, like the others. */
export const partnersKey = (cell: CellName): string => `{c${cell}}:partners`;
/** hash: `<partner id>:<playerId>` → balance, newest entry. Written by deal.lua and adjust.lua. */
export const playersKey = (cell: CellName): string => `{c${cell}}:players`;
/** hash: game id → counter and queue. Written by deal.lua and loadBlock.lua. */
export const gamesKey = (cell: CellName): string => `{c${cell}}:games`;
/** hash: `<game id>:<partner id>:<playerId>` → the open round of a player at a table. Written by roundDeal.lua and roundAct.lua. */
export const roundsKey = (cell: CellName): string => `{c${cell}}:rounds`;
/** stream: ledger entries that are not in Postgres yet. Written by deal.lua and adjust.lua, trimmed by the flusher. */
export const outboxKey = (cell: CellName): string => `{c${cell}}:outbox`;
/** string: packed outcomes of a block. Written by loadBlock.lua, deleted by the block keeper once all are booked. */
export const blockKey = (cell: CellName, gameId: number, fromIndex: number): string =>
  `{c${cell}}:block:${gameId}:${fromIndex}`;
/** All blocks of all cells, as SCAN matches them. */
export const BLOCK_KEYS_PATTERN = '{c*}:block:*';

export interface LoadedBlock {
  readonly cell: number;
  readonly gameId: number;
  readonly fromIndex: number;
}

const BLOCK_KEY = /^\{c(\d+)(?:\.\d+)?\}:block:(\d+):(\d+)$/;

/** The reverse of {@link blockKey}; undefined where the key is none of a block. */
export function readBlockKey(key: string): LoadedBlock | undefined {
  const match = BLOCK_KEY.exec(key);
  if (match === null) return undefined;
  const [, cell, gameId, fromIndex] = match;
  return { cell: Number(cell), gameId: Number(gameId), fromIndex: Number(fromIndex) };
}

/**
 * hash: requestId hash → the spin or adjustment it is bound to. Written by deal.lua and adjust.lua, released by the cell's owner
 * (requestSegments.lua) once the ledger's runs have its ids.
 */
export const idempotencyKey = (cell: CellName, segment: number): string => `{c${cell}}:idem:${segment}`;
/** hash: game id → its communal progressive. Written by deal.lua, communalSet.lua and communalFund.lua. */
export const communalKey = (cell: CellName): string => `{c${cell}}:communal`;
/** list: who spun the game lately (RECENT of communalRecords.lua, one a call). Written by deal.lua. */
export const recentKey = (cell: CellName, gameId: number): string => `{c${cell}}:recent:${gameId}`;
/** hash with expiry: `<game id>:<partner id>:<playerId>` → the outcome of the next spin. Written by forceOutcome.lua, deal.lua. */
export const forcedKey = (cell: CellName, partnerId: number): string => `{c${cell}}:forced:${partnerId}`;
/** list: shares that wait for a player, beyond those behind its record. Written by deal.lua. */
export const waitingSharesKey = (cell: CellName, player: string): string => `{c${cell}}:untold:${player}`;
/** All keys of a cell, as SCAN matches them. */
export const cellKeysPattern = (cell: CellName): string => `{c${cell}}:*`;
/** string with expiry: failed authentications of a client address. Written by countFailure.lua. @param cell in a cluster: one of the node */
export const authFailuresKey = (address: string, cell?: CellName): string =>
  cell === undefined ? `{auth}:${address}` : `auth:{c${cell}}:${address}`;
/**
 * sorted set: dataset id → number of the newest change that takes something away. A server may be shared by several databases. In a
 * cluster each node has one, which bears the tag of a cell of the node. The channel of the same name carries what was read of the catalog.
 */
export const changesKey = (cell?: CellName): string =>
  cell === undefined ? 'spindle:changes' : `spindle:changes:{c${cell}}`;
/**
 * hash: size → published note of the public log (logNotes.ts). In a cluster each node has one, as {@link changesKey}.
 * @param log of the log's origin
 */
export const logKey = (log: string, cell?: CellName): string =>
  cell === undefined ? `spindle:log:${log}` : `spindle:log:${log}:{c${cell}}`;
/** Channel on which the worker of a cell announces how far it is booked; in a cluster one for each cell, a sharded one. */
export const bookedChannel = (cell?: CellName): string =>
  cell === undefined ? 'spindle:booked' : `spindle:booked:{c${cell}}`;

/**
 * Sharded channel on which the scripts that deal announce that a block of a game of the cell is dealt out (lua/include/writeGames.lua).
 * A single server has such channels, too.
 */
export const dealtChannel = (cell: CellName): string => `spindle:dealt:{c${cell}}`;

/** What the field of a player begins with; its playerId follows. */
export const playerPrefix = (partnerId: number): string => `${partnerId}:`;
/** A player at a game: its open round in {@link roundsKey}, its choice in {@link forcedKey}. */
export const playerAtGame = (gameId: number, partnerId: number, playerId: string): string =>
  `${gameId}:${playerPrefix(partnerId)}${playerId}`;
/** The field of a player in {@link playersKey}, and how the outbox names a player. */
export const playerField = (partnerId: number, playerId: string): string =>
  playerPrefix(partnerId) + playerId;
