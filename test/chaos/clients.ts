/**
 * Simulates the partners' clients of a chaos run: connections that spin at a limited rate and record their
 * answers.
 */
import { askOnce, ConnectionEnded, spinRequest, Wire, type WireAnswer } from '../support/load.js';
import type { Random } from '../support/random.js';
import { pause, until } from '../support/wait.js';
import { judge, newRecord, type SpinRecord, type Target, type TargetGame, type Verdict } from './records.js';

export interface ClientSettings {
  readonly port: number;
  readonly targets: readonly Target[];
  readonly connections: number;
  /** Spins per second over all connections. */
  readonly rate: number;
  /** Prefix of every requestId of this run. */
  readonly prefix: string;
}

/** Client timeout in ms. It is longer than SPIN_DEADLINE_MS, so that most answers arrive. */
const PATIENCE_MS = 3600;
/** Short client timeout in ms. Such a client abandons its request, but the spin continues in the service. */
const IMPATIENCE_MS = 300;
const IMPATIENT_SHARE = 0.1;
const REPLAY_SHARE = 0.08;
const WITHOUT_ID_SHARE = 0.06;
/** Share of the replays that use a requestId of an earlier round. */
const OLD_REPLAY_SHARE = 0.4;
/**
 * Range of requests after which a connection is closed, so that a restarted process gets its share of
 * connections.
 */
const REQUESTS_PER_CONNECTION = [40, 160] as const;
const CONNECT_AGAIN_MS = 60;
const RETRIES_AT_ONCE = 16;

export type Counts = Record<Verdict, number>;

export class Clients {
  readonly #all: SpinRecord[] = [];
  /** Records with a requestId, which can be repeated. */
  #kept: SpinRecord[] = [];
  /** Records of the spins that were requested in this round, including retries of older spins. */
  #touched = new Set<SpinRecord>();
  readonly #closed = new Set<number>();
  #running: Promise<unknown> | undefined;
  #isStopping = false;
  #requests = 0;
  #nextMs = 0;
  #round = 0;
  counts: Counts = { ok: 0, failed: 0, unknown: 0 };
  readonly breaches: string[] = [];
  /** Called for each spin that is answered with 200. */
  onOk: (record: SpinRecord) => void = () => {};

  constructor(private readonly settings: ClientSettings) {}

  /** Number of requests of this round that were answered. */
  get answered(): number {
    return this.counts.ok + this.counts.failed;
  }

  get touched(): readonly SpinRecord[] {
    return [...this.#touched];
  }

  get all(): readonly SpinRecord[] {
    return this.#all;
  }

  beginRound(round: number): void {
    this.#round = round;
    this.#touched = new Set();
    this.counts = { ok: 0, failed: 0, unknown: 0 };
    this.breaches.length = 0;
  }

  start(random: Random): void {
    this.#isStopping = false;
    const { connections } = this.settings;
    this.#running = Promise.all(Array.from({ length: connections }, () => this.#connection(random)));
  }

  /** Stops sending and waits for the outstanding answers. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    await this.#running;
    this.#running = undefined;
  }

  async more(count: number, timeoutMs: number): Promise<void> {
    const goal = this.answered + count;
    await until(() => this.answered >= goal, `${count} further spins are answered`, timeoutMs);
  }

  /**
   * Sends one spin of each partner on connections of their own.
   * @returns whether every spin was answered with 200
   */
  async probe(random: Random, timeoutMs: number): Promise<boolean> {
    const answers = await Promise.all(
      this.settings.targets.map((target) => this.#sendAlone(this.#fresh(target, random), timeoutMs)),
    );
    return answers.every((answer) => answer?.status === 200);
  }

  /**
   * Retries the spins in doubt that have a requestId, until each is dealt or the time is over.
   * @returns the spins that were not dealt in time
   */
  async resolve(records: readonly SpinRecord[], timeoutMs: number): Promise<SpinRecord[]> {
    const deadline = performance.now() + timeoutMs;
    const left = [...records];
    const failed: SpinRecord[] = [];
    const worker = async (): Promise<void> => {
      for (let record = left.pop(); record !== undefined; record = left.pop()) {
        while (record.dealt === undefined) {
          if (performance.now() > deadline) {
            failed.push(record);
            break;
          }
          await this.#sendAlone(record, PATIENCE_MS);
          if (record.dealt === undefined) await pause(150);
        }
      }
    };
    await Promise.all(Array.from({ length: RETRIES_AT_ONCE }, worker));
    return failed;
  }

  /** Marks games that no longer deal. Their undealt requests are not retried. */
  close(gameIds: ReadonlySet<number>): void {
    for (const gameId of gameIds) this.#closed.add(gameId);
    this.#kept = this.#kept.filter(({ gameId, dealt }) => dealt !== undefined || !gameIds.has(gameId));
  }

  isClosed({ gameId }: SpinRecord): boolean {
    return this.#closed.has(gameId);
  }

  /** Excludes the given records from further retries. */
  forget(records: ReadonlySet<SpinRecord>): void {
    this.#kept = this.#kept.filter((record) => !records.has(record));
  }

  /**
   * Spins a game for a player and retries until the spin is dealt.
   * @returns false if it was not dealt in time
   */
  async spinOnce(target: Target, game: TargetGame, player: string, timeoutMs: number): Promise<boolean> {
    const requestId = `${this.settings.prefix}-last-${++this.#requests}`;
    const record = newRecord(target, game, player, requestId, this.#round);
    this.#all.push(record);
    return (await this.resolve([record], timeoutMs)).length === 0;
  }

  async #sendAlone(record: SpinRecord, timeoutMs: number): Promise<WireAnswer | undefined> {
    const wasDealt = this.#begin(record);
    const answer = await askOnce(this.settings.port, spinRequest(record.key, record.body), timeoutMs);
    this.#end(record, answer, wasDealt);
    return answer;
  }

  async #connection(random: Random): Promise<void> {
    const { port } = this.settings;
    while (!this.#isStopping) {
      let wire: Wire;
      try {
        wire = await Wire.open(port);
      } catch {
        await pause(CONNECT_AGAIN_MS);
        continue;
      }
      const patienceMs = random.chance(IMPATIENT_SHARE) ? IMPATIENCE_MS : PATIENCE_MS;
      let requests = random.whole(...REQUESTS_PER_CONNECTION);
      while (!this.#isStopping && !wire.hasEnded && requests > 0) {
        requests--;
        await this.#pace();
        if (this.#isStopping || wire.hasEnded) break;
        const record = this.#choose(random);
        const wasDealt = this.#begin(record);
        const answer = await answerWithin(wire, spinRequest(record.key, record.body), patienceMs);
        this.#end(record, answer, wasDealt);
        if (answer === undefined) break;
      }
      wire.close();
    }
  }

  /**
   * Waits until the next request may be sent. The rate applies to all connections together, and missed
   * requests are not made up for.
   */
  async #pace(): Promise<void> {
    const now = performance.now();
    this.#nextMs = Math.max(this.#nextMs + 1000 / this.settings.rate, now);
    if (this.#nextMs - now >= 1) await pause(this.#nextMs - now);
  }

  #choose(random: Random): SpinRecord {
    if (random.chance(REPLAY_SHARE) && this.#kept.length > 0) {
      const all = this.#kept;
      // Replays use the newest records of this round, so that some of these requests are still in flight.
      return random.chance(OLD_REPLAY_SHARE)
        ? random.pick(all)
        : all[Math.max(0, all.length - 1 - random.whole(0, 400))]!;
    }
    return this.#fresh(random.pick(this.settings.targets), random);
  }

  #fresh(target: Target, random: Random): SpinRecord {
    const game = random.pick(target.games);
    const player = random.pick(target.players);
    const requestId = random.chance(WITHOUT_ID_SHARE)
      ? undefined
      : `${this.settings.prefix}-${this.#round}-${++this.#requests}`;
    const record = newRecord(target, game, player, requestId, this.#round);
    this.#all.push(record);
    if (requestId !== undefined) this.#kept.push(record);
    return record;
  }

  /**
   * Begins a request of the record.
   * @returns whether the record was known to be dealt before this request
   */
  #begin(record: SpinRecord): boolean {
    record.open++;
    this.#touched.add(record);
    return record.dealt !== undefined;
  }

  #end(record: SpinRecord, answer: WireAnswer | undefined, wasDealt: boolean): void {
    record.open--;
    const { verdict, breach } = judge(record, answer, wasDealt);
    this.counts[verdict]++;
    if (verdict === 'ok') this.onOk(record);
    if (breach !== undefined) this.breaches.push(breach);
  }
}

/**
 * Returns the answer to a request. If it does not arrive in time or the connection ends, the result is
 * undefined and the connection is closed.
 */
async function answerWithin(wire: Wire, bytes: Buffer, timeoutMs: number): Promise<WireAnswer | undefined> {
  const timer = setTimeout(() => wire.close(), timeoutMs);
  try {
    return await wire.ask(bytes);
  } catch (error) {
    if (error instanceof ConnectionEnded) return undefined;
    throw error;
  } finally {
    clearTimeout(timer);
  }
}
