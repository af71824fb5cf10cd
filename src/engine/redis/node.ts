/**
 * One Redis server: its connections, identity, clock, settings, scripts and announcements. Whatever it holds of a cell
 * is reached through cellStore.ts; which cell is on which node, nodes.ts knows.
 */
import {
  type CommitAnnouncement,
  type Listener,
  type Listening,
  listenForCommits,
  listenOn,
  publish,
} from './announcements.js';
import { announceChange, announcedChange } from './catalogChanges.js';
import { bookedChannel } from './keys.js';
import { keepLogNote, logNotes } from './logNotes.js';
import { CLIENT, type ReadServerId, RedisClient } from './redisClient.js';
import { RedisDurability } from './redisDurability.js';
import { ReplicatedCalls, type ReplicatedReply } from './replicatedCalls.js';
import { ReplicaWatch } from './replicaWatch.js';
import { asScriptError, messageOf, NotHereError, NotSentError } from './scriptErrors.js';
import { LUA_DIR, loadScript, type Script } from './scriptLoader.js';
import { type RedisUse, readUse } from './use.js';

/** The oldest server whose scripts behave as lua/ expects (effects replication only, streams with explicit ids). */
export const REDIS_MAJOR_MIN = 7;

type Argument = string | number | Buffer;

export class RedisNode {
  readonly [CLIENT]: RedisClient;
  /** The settings of the server that let it lose what it acknowledged. */
  readonly durability: RedisDurability;

  /** `host:port` of the replicas that the cluster knows of the server; none on a single server, which is not asked. */
  #replicas: readonly string[] = [];

  readonly #luaDir: string;
  readonly #openClient: () => RedisClient;
  readonly #onError: (error: Error) => void;
  #replicated: ReplicatedCalls | undefined;
  #replicaWatch: ReplicaWatch | undefined;
  readonly #scripts = new Map<string, Script>();

  /**
   * The node is not connected before {@link open}.
   * @param onError called with each failure of the connection
   * @param luaDir the folder of the operations
   * @param readServerId by default that of a single server
   */
  constructor(
    url: string,
    onError: (error: Error) => void,
    luaDir: string = LUA_DIR,
    readServerId?: ReadServerId,
  ) {
    this.#luaDir = luaDir;
    this.#onError = onError;
    this.#openClient = () => new RedisClient(url, onError, readServerId);
    this[CLIENT] = this.#openClient();
    this.durability = new RedisDurability(this[CLIENT]);
  }

  /** Connects, and waits until the server has identified itself. @throws where it can't be reached. */
  open(): Promise<void> {
    return this[CLIENT].open();
  }

  /** Connects in the background, for as long as it takes. */
  begin(): void {
    // What fails is reported to onError, and tried again.
    this[CLIENT].connect().catch(() => {});
  }

  close(): void {
    this[CLIENT].close();
    this.#replicated?.close();
    this.#replicaWatch?.close();
  }

  /** The cluster knows these replicas of the server now. */
  set replicas(addresses: readonly string[]) {
    this.#replicas = addresses;
    this.#replicaWatch?.follow(addresses);
  }

  /** The replicas that may lose what they acknowledge, with their settings. Watched once something was called that waits for them. */
  get volatileReplicas(): readonly string[] {
    return this.#replicaWatch?.volatile ?? [];
  }

  /** Names the run of the server: another one after each start; undefined while it is not connected. */
  get serverId(): string | undefined {
    return this[CLIENT].serverId;
  }

  /** `host:port` */
  get address(): string {
    return new URL(this[CLIENT].url).host;
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

  /** Calls the listener each time that the server says that a cell is not here. */
  onRedirected(listener: () => void): void {
    this[CLIENT].on('redirected', listener);
  }

  /** Asks the server again who it is, and what it knows of its cluster. */
  identifyAgain(): void {
    this[CLIENT].identifyAgain();
    this.#replicated?.identifyAgain();
  }

  /** Writes the commands that are called in there at once, in one piece. */
  pipelined(calls: () => void): void {
    const replicated = this.#replicated;
    this[CLIENT].pipelined(replicated === undefined ? calls : () => replicated.pipelined(calls));
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

  /** Each script that was read so far, and whether the files give the same one now. Reads them one by one, as it is asked. */
  *scriptsRead(): Generator<{ readonly name: string; readonly isSame: boolean }, void, undefined> {
    for (const [key, { sha }] of [...this.#scripts]) {
      const [name = '', flags] = key.split(' ');
      yield { name, isSame: shaNow(this.#luaDir, name, flags) === sha };
    }
  }

  /**
   * Runs a script, by its SHA-1 where the server knows it already.
   * @throws EpochError, GapError, OutrunError, RefusedError, NotSentError: nothing was done. StaleError: nothing was done
   *   now. Any other error: it may have been done.
   */
  run(script: Script, keys: readonly string[], args: readonly Argument[]): Promise<unknown> {
    return this.#runOn(this[CLIENT], script, keys, args, () => {});
  }

  /**
   * The same, over a connection on which it is waited for the replicas.
   * @param argsFor the arguments for the server's run that the connection leads to
   */
  runReplicated(
    script: Script,
    keys: readonly string[],
    argsFor: (serverId: string) => readonly Argument[],
  ): Promise<ReplicatedReply> {
    return this.#replicatedCalls.call((client, serverId, again) =>
      this.#runOn(client, script, keys, argsFor(serverId), again),
    );
  }

  /** The replicas acknowledge what is written in time. */
  get isReplicating(): boolean {
    return this.#replicatedCalls.isCurrent;
  }

  /** Its connections are made when they are needed. */
  get #replicatedCalls(): ReplicatedCalls {
    if (this.#replicated === undefined) {
      const watch = new ReplicaWatch(this[CLIENT].url, this.#onError);
      watch.follow(this.#replicas);
      this.#replicaWatch = watch;
      this.#replicated = new ReplicatedCalls(this.#openClient, watch);
    }
    return this.#replicated;
  }

  async #runOn(
    client: RedisClient,
    script: Script,
    keys: readonly string[],
    args: readonly Argument[],
    onAgain: () => void,
  ): Promise<unknown> {
    try {
      return await client.callBuffer('EVALSHA', script.sha, keys.length, ...keys, ...args);
    } catch (error) {
      if (!messageOf(error).startsWith('NOSCRIPT')) throw this.#asError(error, script);
      // The server doesn't know the script yet: it has not run, so it may be sent whole.
      try {
        const running = client.callBuffer('EVAL', script.source, keys.length, ...keys, ...args);
        onAgain();
        return await running;
      } catch (again) {
        throw this.#asError(again, script);
      }
    }
  }

  #asError(error: unknown, script: Script): unknown {
    const known = asScriptError(error, script);
    if (known instanceof NotHereError) this[CLIENT].emit('redirected');
    return known;
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

  /** The number of the newest change of partners, keys and games that was announced under a key; 0 where none was. */
  announcedChange(key: string, datasetId: string): Promise<bigint> {
    return announcedChange(this[CLIENT], key, datasetId);
  }

  announceChange(key: string, datasetId: string, change: bigint): Promise<void> {
    return announceChange(this[CLIENT], key, datasetId, change);
  }

  /** Keeps a published note of the public log under a key. */
  keepLogNote(key: string, size: number, note: string): Promise<void> {
    return keepLogNote(this[CLIENT], key, size, note);
  }

  logNotes(key: string): Promise<string[]> {
    return logNotes(this[CLIENT], key);
  }

  /** Announces something to every listener of a channel. The message may be lost. */
  publish(channel: string, message: string, isSharded: boolean): void {
    publish(this[CLIENT], channel, message, isSharded);
  }

  /** Listens over a connection of its own. @param channel as {@link listenOn} takes it */
  listen(channel: string | (() => readonly string[]), listening: Listening): Listener {
    return listenOn(this[CLIENT].url, channel, listening);
  }

  /**
   * Listens to how far cells are booked, over a connection of its own.
   * @param shardChannels in a cluster: the channels of the node's cells
   */
  listenForCommits(
    shardChannels: (() => readonly string[]) | undefined,
    onBooked: (announcement: CommitAnnouncement) => void,
    onError: (error: Error) => void,
  ): Listener {
    return listenForCommits(this[CLIENT].url, shardChannels ?? bookedChannel(), onBooked, onError);
  }
}

/** Undefined where the script can't be composed any more. */
function shaNow(luaDir: string, name: string, flags: string | undefined): string | undefined {
  try {
    return loadScript(luaDir, name, flags).sha;
  } catch {
    return undefined;
  }
}
