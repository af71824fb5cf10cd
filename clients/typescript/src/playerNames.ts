/** Places the player id in the path or the query of a request. */

export interface NamedPlayer {
  /** Path parameter that names the player. */
  readonly inPath: { readonly playerId: string };
  /** Query parameter that names the player; absent if the path names the player. */
  readonly inQuery: { readonly playerId?: string };
}

/**
 * Returns the parameters that name a player. The ids `.` and `..` go into the query, because `fetch`,
 * browsers and many proxies remove them from a path, even if they are percent-encoded.
 */
export const namedPlayer = (playerId: string): NamedPlayer =>
  playerId === '.' || playerId === '..'
    ? { inPath: { playerId: '_' }, inQuery: { playerId } }
    : { inPath: { playerId }, inQuery: {} };
