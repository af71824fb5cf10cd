/** How a request names a player. */

export interface NamedPlayer {
  /** What stands for the player in the path. */
  readonly inPath: { readonly playerId: string };
  /** What the query has besides the operation's own parameters. */
  readonly inQuery: { readonly playerId?: string };
}

/**
 * `fetch`, browsers and many proxies take the names `.` and `..` out of a path, even percent-encoded, and would ask for something
 * else: the query names such a player.
 */
export const namedPlayer = (playerId: string): NamedPlayer =>
  playerId === '.' || playerId === '..'
    ? { inPath: { playerId: '_' }, inQuery: { playerId } }
    : { inPath: { playerId }, inQuery: {} };
