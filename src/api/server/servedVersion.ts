/** A version of the partner API as this process serves it: what its answers say of its end, and who used it. */
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
  /** Such as `v1`. */
  readonly name: string;
  /** Begins with CRLF; empty while no end is announced. Rendered once, since every answer has it. */
  headers = '';
  /** After the sunset: what the error says. */
  goneMessage = '';
  readonly #nowMs: () => number;
  #end: ApiVersionEnd | undefined;
  #sunsetMs = Number.POSITIVE_INFINITY;
  #requests = 0;
  readonly #byPhase = new Map<VersionPhase, number>(VERSION_PHASES.map((phase) => [phase, 0]));
  /** By key; written down from time to time. */
  #uses = new Map<number, Use>();

  /** @param nowMs milliseconds since the epoch */
  constructor(name: string, nowMs: () => number) {
    this.name = name;
    this.#nowMs = nowMs;
  }

  /** Takes over what was announced of its end. */
  learn(end: ApiVersionEnd | undefined): void {
    this.#attribute();
    this.#end = end;
    this.headers = end === undefined ? '' : `\r\n${endHeaders(end)}`;
    this.#sunsetMs = end?.sunsetAt.getTime() ?? Number.POSITIVE_INFINITY;
    const next = end?.successor == null ? '' : `; use ${end.successor}`;
    this.goneMessage =
      end === undefined ? '' : `API ${this.name} ended on ${end.sunsetAt.toISOString()}${next}`;
  }

  /** Its sunset has passed. The clock is read only where an end is announced. */
  get isGone(): boolean {
    return this.#sunsetMs !== Number.POSITIVE_INFINITY && this.#nowMs() >= this.#sunsetMs;
  }

  count(): void {
    this.#requests++;
  }

  /** Notes a request that came with a key. */
  noteUse(keyId: number): void {
    const use = this.#uses.get(keyId);
    if (use === undefined) this.#uses.set(keyId, { requests: 1, lastUsedAtMs: Date.now() });
    else {
      use.requests++;
      use.lastUsedAtMs = Date.now();
    }
  }

  /** What was noted since the last call. */
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

  /** Gives back what could not be written down; there is one record for each key, however long that lasts. */
  putBack(uses: readonly NewKeyUse[]): void {
    for (const { keyId, version, requests, lastUsedAt } of uses) {
      if (version !== this.name) continue;
      const use = this.#uses.get(keyId);
      if (use === undefined) this.#uses.set(keyId, { requests, lastUsedAtMs: lastUsedAt.getTime() });
      else use.requests += requests;
    }
  }

  /** Requests so far, by the phase of the version's life that they came in. */
  requestsByPhase(): ReadonlyMap<VersionPhase, number> {
    this.#attribute();
    return this.#byPhase;
  }

  /** What came since the last look came in the phase of now: counting a request costs no look at the clock. */
  #attribute(): void {
    const phase = phaseOfVersion(this.#end, this.#nowMs());
    this.#byPhase.set(phase, this.#byPhase.get(phase)! + this.#requests);
    this.#requests = 0;
  }
}
