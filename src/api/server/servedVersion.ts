/**
 * A version of the partner API as this process serves it: the headers that announce its end, and counts of
 * its use.
 */
import {
  type ApiVersionEnd,
  endHeaders,
  phaseOfVersion,
  VERSION_PHASES,
  type VersionPhase,
} from '../../domain/apiVersion.js';
import type { NewKeyUse } from '../../engine/catalog/apiVersions.store.js';

interface Use {
  requests: number;
  lastUsedAtMs: number;
}

export class ServedVersion {
  /**
   * Header lines that announce the end of the version. They begin with CRLF; empty while no end is announced.
   * Rendered once, because every answer includes them.
   */
  headers = '';
  goneMessage = '';
  #end: ApiVersionEnd | undefined;
  #sunsetMs = Number.POSITIVE_INFINITY;
  #requests = 0;
  readonly #byPhase = new Map<VersionPhase, number>(VERSION_PHASES.map((phase) => [phase, 0]));
  /** Number of uses of each API key, by key id. They are written to the database periodically. */
  #uses = new Map<number, Use>();

  /** @param nowMs returns the time in ms since the epoch */
  constructor(
    /** Name of the version, such as `v1`. */
    readonly name: string,
    private readonly nowMs: () => number,
  ) {}

  /** Applies the end of the version that an operator has announced. */
  learn(end: ApiVersionEnd | undefined): void {
    this.#attribute();
    this.#end = end;
    this.headers = end === undefined ? '' : `\r\n${endHeaders(end)}`;
    this.#sunsetMs = end?.sunsetAt.getTime() ?? Number.POSITIVE_INFINITY;
    const next = end?.successor == null ? '' : `; use ${end.successor}`;
    this.goneMessage =
      end === undefined ? '' : `API ${this.name} ended on ${end.sunsetAt.toISOString()}${next}`;
  }

  /** True if the sunset of the version has passed. The clock is read only if an end is announced. */
  get isGone(): boolean {
    return this.#sunsetMs !== Number.POSITIVE_INFINITY && this.nowMs() >= this.#sunsetMs;
  }

  count(): void {
    this.#requests++;
  }

  noteUse(keyId: number): void {
    const use = this.#uses.get(keyId);
    if (use === undefined) this.#uses.set(keyId, { requests: 1, lastUsedAtMs: Date.now() });
    else {
      use.requests++;
      use.lastUsedAtMs = Date.now();
    }
  }

  /** Returns the number of uses of each key since the last call, and resets the numbers. */
  takeUses(): NewKeyUse[] {
    const uses = this.#uses;
    this.#uses = new Map();
    return [...uses].map(([keyId, { requests, lastUsedAtMs }]) => ({
      keyId,
      version: this.name,
      requests,
      lastUsedAt: new Date(lastUsedAtMs),
    }));
  }

  /**
   * Adds numbers of uses that could not be written back to the current numbers. Each key has a single number,
   * so memory stays bounded however long the database is unavailable.
   */
  putBack(uses: readonly NewKeyUse[]): void {
    for (const { keyId, version, requests, lastUsedAt } of uses) {
      if (version !== this.name) continue;
      const use = this.#uses.get(keyId);
      if (use === undefined) this.#uses.set(keyId, { requests, lastUsedAtMs: lastUsedAt.getTime() });
      else use.requests += requests;
    }
  }

  requestsByPhase(): ReadonlyMap<VersionPhase, number> {
    this.#attribute();
    return this.#byPhase;
  }

  /**
   * Attributes all requests since the last call to the current phase of the life cycle, so that counting a
   * request does not read the clock.
   */
  #attribute(): void {
    const phase = phaseOfVersion(this.#end, this.nowMs());
    this.#byPhase.set(phase, this.#byPhase.get(phase)! + this.#requests);
    this.#requests = 0;
  }
}
