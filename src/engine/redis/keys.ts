/**
 * Lists every key in Redis, with its type and its writers. All keys of a cell have the cell's hash tag, so
 * that one script call accesses only one slot of a Redis Cluster.
 */

/**
 * Name of a cell in its keys. On a single server it is the cell's number. In a cluster it is a name such as
 * `5.482`, which pins the cell to its slot (slots.ts).
 */
export type CellName = number | string;

/**
 * hash: epoch, fence, newest ledger entry with totals, committed watermark, newest batch of each front end.
 * Written by deal.lua, adjust.lua and, through fencedSet.lua, by the cell's owner.
 */
export const cellKey = (cell: CellName): string => `{c${cell}}:cell`;
/**
 * hash: partner id → rate limit windows and net result. Written by deal.lua and, like the following keys, by
 * a rebuild.
 */
export const partnersKey = (cell: CellName): string => `{c${cell}}:partners`;
/** hash: `<partner id>:<playerId>` → balance, newest entry. Written by deal.lua and adjust.lua. */
export const playersKey = (cell: CellName): string => `{c${cell}}:players`;
/** hash: game id → counter and queue. Written by deal.lua and loadBlock.lua. */
export const gamesKey = (cell: CellName): string => `{c${cell}}:games`;
/**
 * hash: `<game id>:<partner id>:<playerId>` → open round of a player at a table. Written by roundDeal.lua and
 * roundAct.lua.
 */
export const roundsKey = (cell: CellName): string => `{c${cell}}:rounds`;
/**
 * stream: ledger entries that are not in Postgres yet. Written by deal.lua and adjust.lua, trimmed by the
 * flusher.
 */
export const outboxKey = (cell: CellName): string => `{c${cell}}:outbox`;
/**
 * string: packed outcomes of a block. Written by loadBlock.lua, deleted by the block keeper once all its
 * outcomes are committed.
 */
export const blockKey = (cell: CellName, gameId: number, fromIndex: number): string =>
  `{c${cell}}:block:${gameId}:${fromIndex}`;
export const BLOCK_KEYS_PATTERN = '{c*}:block:*';

export interface LoadedBlock {
  readonly cell: number;
  readonly gameId: number;
  readonly fromIndex: number;
}

const BLOCK_KEY = /^\{c(\d+)(?:\.\d+)?\}:block:(\d+):(\d+)$/;

/** Parses a key that {@link blockKey} made; undefined if the key is not of this form. */
export function readBlockKey(key: string): LoadedBlock | undefined {
  const match = BLOCK_KEY.exec(key);
  if (match === null) return undefined;
  const [, cell, gameId, fromIndex] = match;
  return { cell: Number(cell), gameId: Number(gameId), fromIndex: Number(fromIndex) };
}

/**
 * hash: hash of a requestId → the spin or adjustment that it is bound to. Written by deal.lua and adjust.lua,
 * released by the cell's owner (requestSegments.lua) once the runs in Postgres have the hash's request ids.
 */
export const idempotencyKey = (cell: CellName, segment: number): string => `{c${cell}}:idem:${segment}`;
/** hash: game id → its communal progressive. Written by deal.lua, communalSet.lua and communalFund.lua. */
export const communalKey = (cell: CellName): string => `{c${cell}}:communal`;
/**
 * list: recent players of a game (RECENT of communalRecords.lua, one element per call). Written by deal.lua.
 */
export const recentKey = (cell: CellName, gameId: number): string => `{c${cell}}:recent:${gameId}`;
/**
 * hash with expiry: `<game id>:<partner id>:<playerId>` → forced outcome of the next spin. Written by
 * forceOutcome.lua and deal.lua.
 */
export const forcedKey = (cell: CellName, partnerId: number): string => `{c${cell}}:forced:${partnerId}`;
/**
 * list: shares that a player has not been notified of, beyond those stored after its record. Written by
 * deal.lua.
 */
export const waitingSharesKey = (cell: CellName, player: string): string => `{c${cell}}:untold:${player}`;
export const cellKeysPattern = (cell: CellName): string => `{c${cell}}:*`;
/**
 * string with expiry: number of failed authentications from a client address. Written by countFailure.lua.
 * @param cell in a cluster: a cell of the node that counts
 */
export const authFailuresKey = (address: string, cell?: CellName): string =>
  cell === undefined ? `{auth}:${address}` : `auth:{c${cell}}:${address}`;
/**
 * sorted set: dataset id → number of the newest restricting change. Several databases may share a server. In
 * a cluster each node has one set, with the tag of one of the node's cells. The channel of the same name
 * carries announcements of catalog reads.
 */
export const changesKey = (cell?: CellName): string =>
  cell === undefined ? 'spindle:changes' : `spindle:changes:{c${cell}}`;
/**
 * hash: size of a tree → published note of the public log (node.ts). In a cluster each node has one such
 * hash, as described for {@link changesKey}.
 * @param log name that is made from the log's origin
 */
export const logKey = (log: string, cell?: CellName): string =>
  cell === undefined ? `spindle:log:${log}` : `spindle:log:${log}:{c${cell}}`;
/**
 * Channel on which the worker of a cell announces its committed watermark. In a cluster there is one sharded
 * channel per cell.
 */
export const bookedChannel = (cell?: CellName): string =>
  cell === undefined ? 'spindle:booked' : `spindle:booked:{c${cell}}`;

/**
 * Sharded channel on which scripts announce that a block of one of the cell's games has been dealt out
 * (lua/include/writeGames.lua). On a single server this channel is sharded, too.
 */
export const dealtChannel = (cell: CellName): string => `spindle:dealt:{c${cell}}`;

/**
 * Sharded channel on which a process asks the cell's worker to commit soon, because somebody waits. The name
 * is one that a Redis user made for version 1.5.0 may use.
 */
export const awaitedChannel = (cell: CellName): string => `${AWAITED_CHANNELS}{c${cell}}`;
export const AWAITED_CHANNELS = 'spindle:booked:awaited:';

/** Prefix of a player's field name. The playerId follows it. */
export const playerPrefix = (partnerId: number): string => `${partnerId}:`;
/**
 * Field of a player at a game: its open round in {@link roundsKey}, and its forced outcome in {@link
 * forcedKey}.
 */
export const playerAtGame = (gameId: number, partnerId: number, playerId: string): string =>
  `${gameId}:${playerPrefix(partnerId)}${playerId}`;
/** Field of a player in {@link playersKey}. The outbox names players in the same way. */
export const playerField = (partnerId: number, playerId: string): string =>
  playerPrefix(partnerId) + playerId;
