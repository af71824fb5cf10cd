/** Serves a public log with one game over HTTP, as the service does, with faults that a test can choose. */
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ParSheet } from '../../src/domain/par.js';
import { checkpointText } from '../../src/domain/publicLog/checkpoints.js';
import { secretHash } from '../../src/domain/publicLog/leaves.js';
import {
  entryCommitment,
  entryText,
  labelKeyHash,
  labelOf,
  type PublicLogEntry,
  privateRecord,
  publicRecord,
} from '../../src/domain/publicLog/logEntries.js';
import { signatureLine, signerOf, vkeyOf } from '../../src/domain/publicLog/notes.js';
import { bundleOf, parseTilePath, TILE_WIDTH, tileOf } from '../../src/domain/publicLog/tiles.js';
import { leafHash, MemoryTree } from '../../src/domain/publicLog/tree.js';
import { makeBlock } from '../../workers/makeBlock.js';
import { parSheet } from './sheets.js';

export const GAME_ID = 7;
export const LOGGED_SHEET = parSheet('classic-3-reel') as unknown as ParSheet;
const ORIGIN = 'history.example/log';
const labelKey = Buffer.alloc(32, 0x4c);

interface Opened {
  readonly entry: PublicLogEntry;
  readonly salt: Buffer;
  logIndex: number;
  status: string;
  reveal: Record<string, string> | null;
  outcomes?: string;
  isLost?: boolean;
  /** Number that the entry has instead of the correct one. */
  number?: number;
}

export class ServedLog {
  readonly records: Buffer[] = [];
  readonly opened: Opened[] = [];
  /** Checkpoints to which settlement reports refer. */
  readonly reports: (string | null)[] = [];
  /** Requested paths. */
  readonly asked: string[] = [];
  /** Responses that replace the normal ones, by path. */
  readonly answers = new Map<string, unknown>();
  /** Number of requests, counted from the first, that are refused with 503 and then 429. */
  refusals = 0;
  readonly signer = signerOf(ORIGIN, 'log', Buffer.alloc(32, 3));
  #server: Server | undefined;

  constructor() {
    this.records.push(publicRecord({ type: 'genesis', format: 'spindle log v1', origin: ORIGIN }));
  }

  get vkey(): string {
    return vkeyOf(this.signer);
  }

  get base(): string {
    return `http://127.0.0.1:${(this.#server!.address() as AddressInfo).port}`;
  }

  /** Appends records that belong to no game. */
  fill(count: number): void {
    for (let i = 0; i < count; i++)
      this.records.push(
        privateRecord(labelOf(Buffer.alloc(32, 9), this.records.length), Buffer.alloc(32, i)),
      );
  }

  /**
   * Appends an entry to the log.
   * @param number the number in the label
   */
  log(entry: PublicLogEntry, number = entry.number): Opened {
    const salt = Buffer.alloc(32, number + 1);
    const record = privateRecord(labelOf(labelKey, number), entryCommitment(salt, entryText(entry)));
    const logIndex = this.records.push(record) - 1;
    return { entry, salt, logIndex, status: 'SEALED', reveal: null };
  }

  /** Appends the game's next block, sealed by the service's own code. */
  block(fromIndex: number, count: number, isRevealed: boolean): Opened {
    const made = makeBlock({ sheet: LOGGED_SHEET, gameId: GAME_ID, fromIndex, count });
    const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
    const entry: PublicLogEntry = {
      type: 'block',
      version: 1,
      gameId: GAME_ID,
      number: this.opened.length,
      fromIndex,
      count,
      labelKeyHash: hex(labelKeyHash(labelKey)),
      root: hex(made.commitment),
      mathHash: hex(made.mathHash),
      sealedAt: '2026-01-01T00:00:00.000Z',
      late: false,
      secretHash: hex(secretHash(Buffer.from(made.nonce), Buffer.from(made.seed))),
    };
    const opened = this.log(entry);
    if (isRevealed) {
      opened.status = 'EXHAUSTED';
      opened.reveal = { seed: hex(made.seed), nonce: hex(made.nonce) };
      opened.outcomes = Buffer.from(made.outcomes).toString('base64');
    }
    this.opened.push(opened);
    return opened;
  }

  void(fromIndex: number, count: number): void {
    const entry: PublicLogEntry = {
      type: 'void',
      version: 1,
      gameId: GAME_ID,
      number: this.opened.length,
      fromIndex,
      count,
      labelKeyHash: labelKeyHash(labelKey).toString('hex'),
      reason: 'rotation',
      voidedAt: '2026-01-01T00:00:00.000Z',
    };
    this.opened.push({ ...this.log(entry), status: 'VOID' });
  }

  /** Marks the opening of an entry as lost. */
  lose(opened: Opened): void {
    opened.status = 'LOST';
    opened.isLost = true;
  }

  lost(fromNumber: number, toNumber: number): void {
    const entry: PublicLogEntry = {
      type: 'lost',
      version: 1,
      gameId: GAME_ID,
      number: this.opened.length,
      fromNumber,
      toNumber,
      labelKeyHash: labelKeyHash(labelKey).toString('hex'),
      reason: 'restored',
      at: '2026-01-01T00:00:00.000Z',
    };
    this.opened.push({ ...this.log(entry), status: 'LOST' });
  }

  checkpoint(records: readonly Buffer[] = this.records): string {
    const root = new MemoryTree(records.map(leafHash)).root();
    const text = checkpointText({ origin: ORIGIN, size: records.length, root });
    return `${text}\n${signatureLine(text, this.signer)}`;
  }

  #item({ entry, logIndex, status, number = entry.number }: Opened) {
    return { number, type: entry.type, status, logIndex };
  }

  #tile(path: string): Buffer | undefined {
    const place = parseTilePath(path);
    if (place === undefined) return undefined;
    const { level, index, width } = place;
    if (level === 'entries') {
      const from = index * TILE_WIDTH;
      return bundleOf(this.records.slice(from, from + width));
    }
    const tree = new MemoryTree(this.records.map(leafHash));
    return tileOf(level, index, width, tree.read);
  }

  #answer(path: string, query: URLSearchParams): unknown {
    const after = Number(query.get('after') ?? -1);
    const listed = this.opened.filter(({ entry }) => entry.number > after);
    const page = listed.slice(0, Number(query.get('limit')));
    if (path.endsWith('/blocks')) {
      const nextCursor = listed.length > page.length ? page.at(-1)!.entry.number : null;
      return { labelKey: labelKey.toString('hex'), blocks: page.map((each) => this.#item(each)), nextCursor };
    }
    if (path.endsWith('/settlements'))
      return {
        reports: this.reports.map((logCheckpoint, day) => ({
          reportDate: `2026-01-0${day + 1}`,
          logCheckpoint,
        })),
      };
    if (path.endsWith('/spins')) return { spins: [] };
    const opened = this.opened.find(({ entry, number = entry.number }) => path.endsWith(`/blocks/${number}`));
    if (opened === undefined || opened.isLost === true) return undefined;
    const { entry, salt, reveal, outcomes } = opened;
    const shown = { ...this.#item(opened), entry: entryText(entry), salt: salt.toString('hex'), reveal };
    return query.get('outcomes') === 'true' ? { ...shown, outcomes } : shown;
  }

  async serve(): Promise<void> {
    this.#server = createServer((request, response) => {
      this.asked.push(request.url!);
      this.#serve(new URL(request.url!, 'http://log'), response);
    });
    await new Promise<void>((resolve) => {
      this.#server!.listen(0, '127.0.0.1', resolve);
    });
  }

  #serve({ pathname, searchParams }: URL, response: ServerResponse): void {
    if (this.refusals > 0) {
      this.refusals--;
      response.writeHead(this.refusals % 2 === 1 ? 503 : 429, { 'Retry-After': '0' }).end();
      return;
    }
    if (pathname === '/log/checkpoint') response.end(this.checkpoint());
    else if (pathname.startsWith('/log/')) response.end(this.#tile(pathname.slice('/log/'.length)));
    else {
      const answer = this.answers.get(pathname) ?? this.#answer(pathname, searchParams);
      response
        .writeHead(answer === undefined ? 404 : 200)
        .end(JSON.stringify(answer ?? { errorCode: 'KS-4215' }));
    }
  }

  async close(): Promise<void> {
    this.#server?.closeAllConnections();
    await new Promise((resolve) => {
      this.#server?.close(resolve);
    });
  }
}
