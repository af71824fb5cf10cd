/**
 * One Redis server: its connections, identity, clock, settings, scripts and announcements. The data of a cell
 * is accessed through cellStore.ts, and nodes.ts maps cells to nodes.
 */
import {
  type CommitAnnouncement,
  type Listener,
  type Listening,
  listenForCommits,
  listenOn,
  publish,
} from './announcements.js';
import { bookedChannel } from './keys.js';
import { CLIENT, type ReadServerId, RedisClient } from './redisClient.js';
import { RedisDurability } from './redisDurability.js';
import { ReplicatedCalls, type ReplicatedReply } from './replicatedCalls.js';
import { ReplicaWatch } from './replicaWatch.js';
import { asScriptError, messageOf, NotHereError, NotSentError, RefusedError } from './scriptErrors.js';
import { LUA_DIR, loadScript, type Script, scriptOf } from './scriptLoader.js';
import { mayLack } from './serverIdentity.js';
import { type RedisUse, readUse } from './use.js';

/**
 * Oldest major version of Redis whose scripts behave as lua/ expects (effects replication only, streams with
 * explicit ids).
 */
export const REDIS_MAJOR_MIN = 7;

/** Number of published notes that are kept per public log. */
const LOG_NOTES_KEPT = 2;

type Argument = string | number | Buffer;

/** Without flags, Redis judges a script with this first line as one that writes. */
const NO_WRITE = scriptOf('#!lua\nreturn 1');

export class RedisNode {
  readonly [CLIENT]: RedisClient;
  /** Monitors the settings with which the server could lose acknowledged writes. */
  readonly durability: RedisDurability;

  /**
   * Addresses (`host:port`) of the server's replicas in its cluster. The list is always empty for a single
   * server, because its replicas are not looked up.
   */
  #replicas: readonly string[] = [];

  readonly #openClient: () => RedisClient;
  #replicated: ReplicatedCalls | undefined;
  #replicaWatch: ReplicaWatch | undefined;
  readonly #scripts = new Map<string, Script>();

  /**
   * Creates a node. It is not connected before {@link open}.
   * @param readServerId reads the server's identity; the default is for a single server
   */
  constructor(
    url: string,
    private readonly onError: (error: Error) => void,
    private readonly luaDir: string = LUA_DIR,
    readServerId?: ReadServerId,
  ) {
    this.#openClient = () => new RedisClient(url, onError, readServerId);
    this[CLIENT] = this.#openClient();
    this.durability = new RedisDurability(this[CLIENT]);
  }

  /** Connects, and waits until the server has identified itself. */
  open(): Promise<void> {
    return this[CLIENT].open();
  }

  /** Connects in the background, with unlimited retries. */
  begin(): void {
    // Connection errors are reported to onError, and the connection is retried.
    this[CLIENT].connect().catch(() => {});
  }

  close(): void {
    this[CLIENT].close();
    this.#replicated?.close();
    this.#replicaWatch?.close();
  }

  /** Sets the replicas that the cluster currently has for the server. */
  set replicas(addresses: readonly string[]) {
    this.#replicas = addresses;
    this.#replicaWatch?.follow(addresses);
  }

  /**
   * Replicas that may lose acknowledged writes, with the settings that allow it. The replicas' settings are
   * monitored from the first call on that waits for replicas.
   */
  get volatileReplicas(): readonly string[] {
    return this.#replicaWatch?.volatile ?? [];
  }

  /**
   * Id of the current server run. It changes with each restart, and is undefined while the server is not
   * connected.
   */
  get serverId(): string | undefined {
    return this[CLIENT].serverId;
  }

  /** Address of the server, `host:port`. */
  get address(): string {
    return new URL(this[CLIENT].url).host;
  }

  get isReady(): boolean {
    return this[CLIENT].isReady;
  }

  get connectionsLost(): number {
    return this[CLIENT].lost;
  }

  whenReady(timeoutMs: number): Promise<void> {
    return this[CLIENT].whenReady(timeoutMs);
  }

  /**
   * Calls the listener whenever the server has identified itself anew.
   * @returns a function that removes the listener
   */
  onIdentified(listener: () => void): () => void {
    this[CLIENT].on('identified', listener);
    return () => void this[CLIENT].off('identified', listener);
  }

  /** Calls the listener whenever the server replies that it does not hold a cell. */
  onRedirected(listener: () => void): void {
    this[CLIENT].on('redirected', listener);
  }

  /**
   * Asks the server whether it accepts writes, by a script that is declared to write but does nothing.
   * @returns the reason why it accepts none, as a part of a sentence
   */
  async refusal(): Promise<string | undefined> {
    try {
      if (this.isReady) await this.run(NO_WRITE, [], []);
    } catch (error) {
      // After any other error, nothing is known: the server may not have answered.
      if (error instanceof RefusedError) return this[CLIENT].demotion ?? error.message;
    }
    return this[CLIENT].demotion;
  }

  /**
   * True if the server may lack writes that an earlier server run acknowledged, because its data came by
   * asynchronous replication.
   */
  mayLack(before: string): boolean {
    const now = this.knownServerId();
    return mayLack(before, now) || (before !== now && this[CLIENT].isPromoted);
  }

  /** Asks the server again for its identity and its view of the cluster. */
  identifyAgain(): void {
    this[CLIENT].identifyAgain();
    this.#replicated?.identifyAgain();
  }

  pipelined(calls: () => void): void {
    const replicated = this.#replicated;
    this[CLIENT].pipelined(replicated === undefined ? calls : () => replicated.pipelined(calls));
  }

  /**
   * Loads a script of lua/ and caches it.
   * @param flags flags for the first line of the script, in the syntax of Redis
   * @throws IncludeError if the script can't be composed
   */
  script(name: string, flags?: string): Script {
    const key = flags === undefined ? name : `${name} ${flags}`;
    let script = this.#scripts.get(key);
    if (script === undefined) {
      script = loadScript(this.luaDir, name, flags);
      this.#scripts.set(key, script);
    }
    return script;
  }

  /**
   * Iterates over the loaded scripts, and checks for each whether its files still result in the same script.
   * The files are read one script at a time.
   */
  *scriptsRead(): Generator<{ readonly name: string; readonly isSame: boolean }, void, undefined> {
    for (const [key, { sha }] of [...this.#scripts]) {
      const [name = '', flags] = key.split(' ');
      yield { name, isSame: shaNow(this.luaDir, name, flags) === sha };
    }
  }

  /**
   * Runs a script, by its SHA-1 if the server already knows the script.
   * @throws EpochError, GapError, OutrunError, RefusedError or NotSentError if nothing was done; StaleError
   * if this call did nothing. After any other error the script may have been executed.
   */
  run(script: Script, keys: readonly string[], args: readonly Argument[]): Promise<unknown> {
    return this.#runOn(this[CLIENT], script, keys, args, () => {});
  }

  /**
   * Runs a script over a connection that waits for the replicas.
   * @param argsFor returns the arguments for the server run of that connection
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

  /** True if the replicas acknowledge writes in time. */
  get isReplicating(): boolean {
    return this.#replicatedCalls.isCurrent;
  }

  /** Calls of scripts that wait for replicas. Their connections are created on first use. */
  get #replicatedCalls(): ReplicatedCalls {
    if (this.#replicated === undefined) {
      const watch = new ReplicaWatch(this[CLIENT].url, this.onError);
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
      // The server does not know the script yet. The script was not executed, so it is safe to send its
      // source.
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

  /**
   * Returns the id of the current server run, as {@link serverId} does.
   * @throws NotSentError if the server is not connected
   */
  knownServerId(): string {
    const { serverId } = this;
    if (serverId === undefined) throw new NotSentError('Redis is not connected');
    return serverId;
  }

  /** Returns the server's clock, in ms since the Unix epoch. */
  async timeMs(): Promise<number> {
    const [seconds, micros] = await this[CLIENT].time();
    return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
  }

  /** Returns the version of the server. Valkey reports the Redis version that it is compatible with. */
  async version(): Promise<{ version: string; major: number }> {
    const info = await this[CLIENT].info('server');
    const version = /^redis_version:(.+)$/m.exec(info)?.[1]?.trim() ?? '0';
    return { version, major: Number.parseInt(version, 10) };
  }

  use(): Promise<RedisUse> {
    return readUse(this[CLIENT]);
  }

  /**
   * Returns the number of the newest announced change of partners, keys and games that restricts anything, or
   * 0 if none was announced.
   */
  async announcedChange(key: string, datasetId: string): Promise<bigint> {
    return BigInt((await this[CLIENT].zscore(key, datasetId)) ?? 0);
  }

  /**
   * Announces the number of a change that restricts a partner, a key or a game, through a sorted set. From
   * this number, a front end that has lost Postgres can tell that its catalog is stale. Every process that
   * reads such a change from Postgres announces it. A number that is lower than the announced one is ignored.
   */
  async announceChange(key: string, datasetId: string, change: bigint): Promise<void> {
    await this[CLIENT].zadd(key, 'GT', String(change), datasetId);
  }

  /**
   * Adds a published note of the public log and removes old ones. If Postgres is empty or is restored to an
   * older state, the notes prove which trees the log has already signed (evidenceWatch.ts).
   */
  async keepLogNote(key: string, size: number, note: string): Promise<void> {
    await this[CLIENT].hset(key, String(size), note);
    const sizes = Object.keys(await this[CLIENT].hgetall(key));
    const old = sizes.sort((a, b) => Number(b) - Number(a)).slice(LOG_NOTES_KEPT);
    if (old.length > 0) await this[CLIENT].hdel(key, ...old);
  }

  async logNotes(key: string): Promise<string[]> {
    return Object.values(await this[CLIENT].hgetall(key));
  }

  /**
   * The message may be lost. The promise never rejects.
   * @returns the number of subscribers that received the message; undefined if it is unknown
   */
  publish(channel: string, message: string, isSharded: boolean): Promise<number | undefined> {
    return publish(this[CLIENT], channel, message, isSharded);
  }

  /**
   * Subscribes to a channel on a dedicated connection.
   * @param channel as for {@link listenOn}
   */
  listen(channel: string | (() => readonly string[]), listening: Listening): Listener {
    return this.#renewed(listenOn(this[CLIENT].url, channel, listening));
  }

  /**
   * Listens for announcements of commits on a dedicated connection.
   * @param shardChannels in a cluster: returns the channels of the node's cells
   */
  listenForCommits(
    shardChannels: (() => readonly string[]) | undefined,
    onBooked: (announcement: CommitAnnouncement) => void,
    onError: (error: Error) => void,
  ): Listener {
    return this.#renewed(
      listenForCommits(this[CLIENT].url, shardChannels ?? bookedChannel(), onBooked, onError),
    );
  }

  /** Lets a listener follow when this node leaves a server that has become a replica. */
  #renewed(listener: Listener): Listener {
    this[CLIENT].on('left', listener.renew);
    const close = (): void => {
      this[CLIENT].off('left', listener.renew);
      listener.close();
    };
    return { ...listener, close };
  }
}

/** Returns the SHA-1 of the script's current files, or undefined if the script can no longer be composed. */
function shaNow(luaDir: string, name: string, flags: string | undefined): string | undefined {
  try {
    return loadScript(luaDir, name, flags).sha;
  } catch {
    return undefined;
  }
}
