/**
 * One Redis server: its connections, identity, clock, settings, scripts and announcements. Whatever it holds of a cell
 * is reached through cellStore.ts; which cell is on which node, nodes.ts knows.
 */
import { type BookedAnnouncement, listenBooked, publishBooked } from './announcements.js';
import { tellChange, toldChange } from './catalogChanges.js';
import { CLIENT, RedisClient } from './client.js';
import { Durability } from './durability.js';
import { asScriptError, messageOf, NotSentError } from './scriptErrors.js';
import { LUA_DIR, loadScript, type Script } from './scriptLoader.js';
import { type RedisUse, readUse } from './use.js';

/** The oldest server whose scripts behave as lua/ expects (effects replication only, streams with explicit ids). */
export const REDIS_MAJOR_MIN = 7;

type Argument = string | number | Buffer;

export class RedisNode {
  readonly [CLIENT]: RedisClient;
  /** The settings of the server that let it lose what it acknowledged. */
  readonly durability: Durability;

  readonly #luaDir: string;
  readonly #scripts = new Map<string, Script>();

  /**
   * The node is not connected before {@link open}.
   * @param onError told of each failure of the connection
   * @param luaDir the folder of the operations
   */
  constructor(url: string, onError: (error: Error) => void, luaDir: string = LUA_DIR) {
    this.#luaDir = luaDir;
    this[CLIENT] = new RedisClient(url, onError);
    this.durability = new Durability(this[CLIENT]);
  }

  /** Connects, and waits until the server has identified itself. @throws where it can't be reached. */
  open(): Promise<void> {
    return this[CLIENT].open();
  }

  close(): void {
    this[CLIENT].disconnect();
  }

  /** `run_id` of the server's process, which is another after each start; undefined while it is not connected. */
  get serverId(): string | undefined {
    return this[CLIENT].serverId;
  }

  /** The server can be reached now. */
  get isReady(): boolean {
    return this[CLIENT].isReady;
  }

  /** How often the connection was lost. */
  get connectionsLost(): number {
    return this[CLIENT].lost;
  }

  /** Resolves once the server can be reached, or after the milliseconds. */
  whenReady(timeoutMs: number): Promise<void> {
    return this[CLIENT].whenReady(timeoutMs);
  }

  /** Calls the listener each time that the server has identified itself anew. @returns what ends that. */
  onIdentified(listener: () => void): () => void {
    this[CLIENT].on('identified', listener);
    return () => void this[CLIENT].off('identified', listener);
  }

  /** Writes the commands that are called in there at once, in one piece. */
  pipelined(calls: () => void): void {
    this[CLIENT].pipelined(calls);
  }

  /**
   * An operation of lua/, read once.
   * @param flags as Redis reads them in the first line of a script.
   * @throws IncludeError where it can't be composed.
   */
  script(name: string, flags?: string): Script {
    const key = flags === undefined ? name : `${name} ${flags}`;
    let script = this.#scripts.get(key);
    if (script === undefined) {
      script = loadScript(this.#luaDir, name, flags);
      this.#scripts.set(key, script);
    }
    return script;
  }

  /**
   * Runs a script, by its SHA-1 where the server knows it already.
   * @throws EpochError, GapError, OutrunError, RefusedError, NotSentError: nothing was done. StaleError: nothing was done
   *   now. Any other error: it may have been done.
   */
  async run(script: Script, keys: readonly string[], args: readonly Argument[]): Promise<unknown> {
    const client = this[CLIENT];
    try {
      return await client.callBuffer('EVALSHA', script.sha, keys.length, ...keys, ...args);
    } catch (error) {
      if (!messageOf(error).startsWith('NOSCRIPT')) throw asScriptError(error, script);
      // The server doesn't know the script yet: it has not run, so it may be sent whole.
      try {
        return await client.callBuffer('EVAL', script.source, keys.length, ...keys, ...args);
      } catch (again) {
        throw asScriptError(again, script);
      }
    }
  }

  /** {@link serverId}. @throws NotSentError while the server is not connected. */
  knownServerId(): string {
    const { serverId } = this;
    if (serverId === undefined) throw new NotSentError('Redis is not connected');
    return serverId;
  }

  /** The server's clock, milliseconds since the epoch. */
  async timeMs(): Promise<number> {
    const [seconds, micros] = await this[CLIENT].time();
    return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
  }

  /** Version of the server; Valkey reports the Redis version that it is compatible with. */
  async version(): Promise<{ version: string; major: number }> {
    const info = await this[CLIENT].info('server');
    const version = /^redis_version:(.+)$/m.exec(info)?.[1]?.trim() ?? '0';
    return { version, major: Number.parseInt(version, 10) };
  }

  /** How much of its resources the server uses. */
  use(): Promise<RedisUse> {
    return readUse(this[CLIENT]);
  }

  /** The number of the newest change of partners, keys and games that was told; 0 where none was. */
  toldChange(datasetId: string): Promise<bigint> {
    return toldChange(this[CLIENT], datasetId);
  }

  tellChange(datasetId: string, change: bigint): Promise<void> {
    return tellChange(this[CLIENT], datasetId, change);
  }

  /** Tells every listener that a cell is booked up to a cursor. The message may be lost. */
  announceBooked(announcement: BookedAnnouncement): void {
    publishBooked(this[CLIENT], announcement);
  }

  /** Listens to announcements over a connection of its own. @returns what ends that. @throws where it can't connect. */
  listenBooked(
    onBooked: (announcement: BookedAnnouncement) => void,
    onError: (error: Error) => void,
  ): Promise<() => void> {
    return listenBooked(this[CLIENT].url, onBooked, onError);
  }
}
