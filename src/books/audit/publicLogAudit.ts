/**
 * Audits the public log. Its tiles and root must match its records, every private record must be exactly one
 * entry of one game, the entries of a game must be numbered without gaps, and every checkpoint must be signed
 * over the tree of its size. Memory: about 200 bytes for each record.
 */
import { parseCheckpoint } from '../../domain/publicLog/checkpoints.js';
import { entryCommitment, labelOf, privateRecord } from '../../domain/publicLog/logEntries.js';
import { NoteError, parseNote, parseVkey, signersOf } from '../../domain/publicLog/notes.js';
import { entryTypeOf, openedText } from '../../domain/publicLog/openings.js';
import { recordsOf, tileOf } from '../../domain/publicLog/tiles.js';
import { leafHash, MemoryTree } from '../../domain/publicLog/tree.js';
import { openFields } from '../../engine/blocks/blockSeals.store.js';
import type { AuditAnchor } from '../../postgres/auditLog.js';
import type { CopyRow } from '../../postgres/copy.js';
import type { Snapshot } from './auditReads.store.js';
import { CHECKPOINTS, ENTRIES, IMPORTS, LOGS, NAMED, TILES } from './logAuditReads.store.js';
import type { Findings } from './report.js';

const PRIVATE = 1;
const HASH_BYTES = 32;

interface Log {
  readonly origin: string;
  readonly vkeys: readonly string[];
  readonly size: number;
  readonly root: Buffer;
  readonly tree: MemoryTree;
  /** Number of records that are entries of games. */
  entries: number;
  /** Number of game entries with a position in the log. */
  placed: number;
  /**
   * Ranges imported from a copy of the log. Their anchors refer to audit log entries that this database has
   * lost.
   */
  readonly imported: { readonly from: number; readonly to: number }[];
}
type Logs = ReadonlyMap<number, Log>;

const noPause = async (): Promise<void> => {};

type Reads = Snapshot['log'];

/** @returns the audit log anchors in its records, oldest first */
export async function auditPublicLog(
  { log: reads }: Snapshot,
  findings: Findings,
): Promise<readonly AuditAnchor[]> {
  const logs = await readLogs(reads);
  const anchors = await judgeTiles(reads, logs, findings);
  for (const [logId, { size, root, tree }] of logs) {
    const at = { log: logId };
    if (tree.size !== size)
      findings.found('log', 'the number of records in the log is wrong', at, size, tree.size);
    else if (!tree.root().equals(root))
      findings.found(
        'log',
        'the root does not match the records',
        at,
        tree.root().toString('hex'),
        root.toString('hex'),
      );
  }
  await judgeEntries(reads, logs, findings);
  for (const [logId, { entries, placed }] of logs) {
    if (entries !== placed)
      findings.found(
        'log',
        'the number of private records differs from the number of entries of games',
        { log: logId },
        placed,
        entries,
      );
  }
  await judgeCheckpoints(reads, logs, findings);
  await judgeNamed(reads, logs, findings);
  return anchors;
}

async function readLogs({ logs, imports }: Reads): Promise<Logs> {
  const found = new Map<number, Log>();
  await logs((row) => {
    found.set(row.int(LOGS.logId), {
      origin: row.text(LOGS.origin),
      vkeys: row.text(LOGS.vkeys).split(' '),
      size: row.safe(LOGS.size),
      root: Buffer.from(row.bytes(LOGS.root)),
      tree: new MemoryTree(),
      entries: 0,
      placed: 0,
      imported: [],
    });
  }, noPause);
  await imports((row) => {
    const log = found.get(row.int(IMPORTS.logId));
    // Imported records of games that this database does not have count as game entries with a position.
    if (log !== undefined) log.placed += row.safe(IMPORTS.strangers);
    log?.imported.push({ from: row.safe(IMPORTS.fromIndex), to: row.safe(IMPORTS.toIndex) });
  }, noPause);
  return found;
}

/** @returns the anchors of the audit log (its head at the time) among the records */
async function judgeTiles(
  { tiles: all }: Reads,
  logs: Logs,
  findings: Findings,
): Promise<readonly AuditAnchor[]> {
  let tiles = 0;
  const anchors: AuditAnchor[] = [];
  await all((row) => {
    const [logId, level, index] = [row.int(TILES.logId), row.int(TILES.level), row.safe(TILES.index)];
    const log = logs.get(logId);
    if (log === undefined) return;
    tiles++;
    const bytes = row.bytes(TILES.bytes);
    const at = { log: logId, level, index };
    if (level < 0) {
      const records = recordsOf(bytes);
      if (records === undefined || log.tree.size !== index * 256)
        findings.found('log', 'a bundle of records is damaged or missing', at);
      for (const record of records ?? []) {
        const place = log.tree.size;
        log.tree.append(leafHash(record));
        const isImported = log.imported.some(({ from, to }) => place >= from && place < to);
        if (record[0] === PRIVATE) log.entries++;
        else if (!isImported) anchors.push(...anchorIn(record));
      }
      return;
    }
    const width = bytes.length / HASH_BYTES;
    const isRight =
      index * 256 + width <= Math.floor(log.tree.size / 256 ** level) &&
      tileOf(level, index, width, log.tree.read).equals(bytes);
    if (!isRight) findings.found('log', 'a tile does not match the records', at);
  }, noPause);
  findings.looked('log', 'tiles', tiles);
  return anchors;
}

/** Returns the audit log anchor in a public record, or an empty list for a record of another type. */
function anchorIn(record: Buffer): AuditAnchor[] {
  const { type, entries, head } = JSON.parse(record.subarray(1).toString()) as {
    type: string;
  } & AuditAnchor;
  return type === 'audit' ? [{ entries, head }] : [];
}

const nullable = (row: CopyRow, field: number): Buffer | null =>
  row.isNull(field) ? null : Buffer.from(row.bytes(field));

async function judgeEntries({ entries: all }: Reads, logs: Logs, findings: Findings): Promise<void> {
  let gameId = -1;
  let next = 0;
  let until = 0;
  let entries = 0;
  const endGame = (): void => {
    if (next !== until)
      findings.found('log', 'the last entries of a game are missing', { game: gameId }, until, next);
  };
  await all((row) => {
    if (row.int(ENTRIES.gameId) !== gameId) {
      endGame();
      gameId = row.int(ENTRIES.gameId);
      next = 0;
      until = row.safe(ENTRIES.nextNumber);
    }
    entries++;
    const number = row.safe(ENTRIES.number);
    const at = { game: gameId, number };
    if (number !== next)
      findings.found('log', "the numbers of a game's entries have a gap", at, next, number);
    next = number + 1;
    // The entry has not been appended to the public log yet.
    if (row.isNull(ENTRIES.logIndex)) return;
    const log = logs.get(row.int(ENTRIES.logId));
    const logIndex = row.safe(ENTRIES.logIndex);
    if (log !== undefined && logIndex < log.tree.size) log.placed++;
    const problem = entryProblem(row, log, logIndex);
    if (problem !== undefined) findings.found('log', problem, { ...at, logIndex });
  }, noPause);
  endGame();
  findings.looked('log', 'entries', entries);
}

/** Returns the fault of an appended entry, or undefined if its opening matches the record at its position. */
function entryProblem(row: CopyRow, log: Log | undefined, logIndex: number): string | undefined {
  const type = entryTypeOf(row.int(ENTRIES.kind));
  const isBlock = type === 'block' || type === 'pool' || type === 'shoes';
  const toIndex = row.safe(ENTRIES.toIndex);
  if (log === undefined || logIndex >= log.tree.size)
    return 'an entry names an index that the log does not have';
  if (type === 'forgotten') return undefined;
  if (row.isNull(ENTRIES.salt) || row.isNull(ENTRIES.labelKey)) return 'an entry has no opening';
  if (isBlock && (row.isNull(ENTRIES.blockTo) || row.safe(ENTRIES.blockTo) !== toIndex))
    return 'an entry has no block, or its block has another range';
  openFields(row, ENTRIES.sealed, { seed: ENTRIES.seed, nonce: ENTRIES.nonce });
  const labelKey = Buffer.from(row.bytes(ENTRIES.labelKey));
  const number = row.safe(ENTRIES.number);
  const text = openedText({
    gameId: row.int(ENTRIES.gameId),
    number,
    type,
    labelKey,
    toIndex,
    fromIndex: row.safe(ENTRIES.fromIndex),
    at: new Date(row.safe(ENTRIES.atMicros) / 1000),
    isLate: row.bytes(ENTRIES.isLate)[0] === 1,
    reason: row.isNull(ENTRIES.reason) ? null : row.text(ENTRIES.reason),
    mathHash: nullable(row, ENTRIES.mathHash),
    seed: nullable(row, ENTRIES.seed),
    nonce: nullable(row, ENTRIES.nonce),
    tree: nullable(row, ENTRIES.root),
    commitment: nullable(row, ENTRIES.commitment),
  });
  const commitment = entryCommitment(Buffer.from(row.bytes(ENTRIES.salt)), text);
  const leaf = leafHash(privateRecord(labelOf(labelKey, number), commitment));
  return leaf.equals(log.tree.read(0, logIndex))
    ? undefined
    : 'the opening of an entry does not match the log';
}

async function judgeCheckpoints({ checkpoints }: Reads, logs: Logs, findings: Findings): Promise<void> {
  let notes = 0;
  await checkpoints((row) => {
    const logId = row.int(CHECKPOINTS.logId);
    const log = logs.get(logId);
    if (log === undefined) return;
    notes++;
    const size = row.safe(CHECKPOINTS.size);
    const problem = noteProblem(row.text(CHECKPOINTS.note), size, log);
    if (problem !== undefined) findings.found('log', problem, { log: logId, size });
  }, noPause);
  findings.looked('log', 'checkpoints', notes);
}

/** Checks that the checkpoint in a settlement report belongs to a tree that the log still contains. */
async function judgeNamed({ named }: Reads, logs: Logs, findings: Findings): Promise<void> {
  await named((row) => {
    const note = row.text(NAMED.note);
    const log = [...logs.values()].find(({ origin }) => note.startsWith(`${origin}\n`));
    const size = Number(note.split('\n')[1]);
    const problem =
      log === undefined ? 'a checkpoint names another log or size' : noteProblem(note, size, log);
    if (problem === undefined) return;
    findings.found('log', `settlement report: ${problem}`, {
      partner: row.int(NAMED.partnerId),
      day: row.text(NAMED.day),
    });
  }, noPause);
}

function noteProblem(text: string, size: number, { origin, vkeys, tree }: Log): string | undefined {
  try {
    const note = parseNote(text);
    const checkpoint = parseCheckpoint(note.text);
    if (checkpoint.origin !== origin || checkpoint.size !== size || size > tree.size)
      return 'a checkpoint names another log or size';
    if (!checkpoint.root.equals(tree.root(size)))
      return 'the root of a checkpoint does not match the records';
    // The signing key may have been replaced since, so a signature of any of the log's keys is accepted.
    signersOf(note, vkeys.map(parseVkey));
    return undefined;
  } catch (error) {
    if (error instanceof NoteError) return `a checkpoint is invalid: ${error.message}`;
    throw error;
  }
}
