/**
 * Samples proofs of spins at random times, or of random rounds of a table, for `spindle verify --history`.
 */
import { examine, type VerifyOptions } from '../../verifier/verify.mjs';
import { ERRORS } from '../domain/errors.js';
import type { HistoryState } from './gameHistory.js';
import { type HistoryReads, HistoryRefusedError, inOrder, listIn } from './historyReads.js';
import { printable } from './output.js';
import { verifyRound } from './verifyRound.js';

const PAGE = 100;
/** Number of samples per requested proof, because some samples repeat or have no proof. */
const LOOKS = 4;
/**
 * Error codes of spins that are skipped: they have no proof, or the service has removed them since they were
 * listed.
 */
const PASSED_OVER: readonly string[] = [ERRORS.noProof.code, ERRORS.notFound.code];

interface Sampling {
  readonly reads: HistoryReads;
  readonly options: {
    readonly game: number;
    readonly sample: number;
    readonly trust: VerifyOptions;
    readonly math: Pick<VerifyOptions, 'sheet' | 'table' | 'rules'>;
  };
  readonly state: HistoryState;
  /** Checkpoint up to which the log has been read. */
  readonly note: string;
}

interface Play {
  readonly id: string;
  /** Index of the outcome or shoe. */
  readonly index: number;
  readonly path: string;
  /** Response of the service with which the proof is compared. */
  readonly answer: object;
}

interface Spin {
  readonly spinId: string;
  readonly createdAt: string;
  readonly outcomeIndex: number | null;
}

interface Round {
  readonly roundId: string;
  readonly gameId: number;
  readonly shoe: { readonly index: number };
  readonly table: { readonly rules: unknown };
}

interface Proof {
  readonly spinId?: string;
  readonly roundId?: string;
  readonly gameId: number;
  readonly logIndex: number;
  readonly entry: string;
  readonly outcome?: { readonly index: number };
  readonly shoe?: { readonly index: number; readonly seed: string | null };
}

/**
 * @param faults receives the faults found
 * @returns the number of proven plays
 */
export async function sampleProofs(sampling: Sampling, faults: string[]): Promise<number> {
  const { sample } = sampling.options;
  const seen = new Set<string>();
  const plays = sampling.state.type === 'shoes' ? roundsOf(sampling) : spinsOf(sampling);
  let proven = 0;
  if (sample === 0) return 0;
  for await (const play of plays) {
    if (seen.has(play.id)) continue;
    seen.add(play.id);
    if (await provePlay(sampling, play, faults)) proven++;
    if (proven >= sample) break;
  }
  return proven;
}

async function* spinsOf({ reads, options: { game, sample } }: Sampling): AsyncGenerator<Play> {
  const spinAt = async (ms: number, chance = Math.random()): Promise<Spin | undefined> => {
    const from = encodeURIComponent(new Date(ms).toISOString());
    const spins = listIn<Spin>(
      await reads.ask(`partner/v1/spins?gameId=${game}&limit=${PAGE}&from=${from}`),
      'spins',
    );
    // A random spin of the page is chosen, so that later spins of a burst can be sampled too.
    return spins[Math.floor(chance * spins.length)];
  };
  const first = await spinAt(0, 0);
  const begin = Date.parse(first?.createdAt ?? '');
  if (!Number.isFinite(begin)) return;
  const times = Array.from({ length: LOOKS * sample }, () => begin + Math.random() * (Date.now() - begin));
  for await (const spin of inOrder([begin, ...times], (ms) => spinAt(ms))) {
    if (spin === undefined || spin.outcomeIndex === null) continue;
    const path = `partner/v1/spins/${encodeURIComponent(spin.spinId)}/proof`;
    yield { id: spin.spinId, index: spin.outcomeIndex, path, answer: spin };
  }
}

/** Yields random rounds of the game from all rounds of the partner. */
async function* roundsOf({ reads, options: { game, sample } }: Sampling): AsyncGenerator<Play> {
  const base = 'play/blackjack/rounds';
  const { total } = await reads.ask<{ total: number }>(`${base}?limit=1`);
  if (!(total >= 1)) return;
  const looks = LOOKS * sample;
  // If the partner has few rounds, each of them is checked.
  const pages = Array.from({ length: Math.min(total, looks) }, (_, at) =>
    total <= looks ? at + 1 : 1 + Math.floor(Math.random() * total),
  );
  const roundAt = async (page: number): Promise<Round | undefined> =>
    listIn<Round>(await reads.ask(`${base}?limit=1&page=${page}`), 'rounds')[0];
  for await (const round of inOrder(pages, roundAt)) {
    if (round?.gameId !== game) continue;
    const path = `${base}/${encodeURIComponent(round.roundId)}/proof`;
    yield { id: round.roundId, index: round.shoe.index, path, answer: round };
  }
}

/** @returns false if there is no proof to verify */
async function provePlay(sampling: Sampling, play: Play, faults: string[]): Promise<boolean> {
  const { reads, state } = sampling;
  const isRound = 'roundId' in play.answer;
  const is = (holds: boolean, what: string): void => {
    if (!holds) faults.push(`${isRound ? 'round' : 'spin'} ${printable(play.id)}: ${what}`);
  };
  let proof: Proof;
  try {
    proof = await reads.ask(play.path);
  } catch (error) {
    if (!(error instanceof HistoryRefusedError) || !PASSED_OVER.includes(error.code)) throw error;
    const isLogged = play.index >= (state.covered[0]?.[0] ?? Number.POSITIVE_INFINITY);
    is(!isLogged || error.reason === 'ARCHIVED', error.message);
    return false;
  }
  // An index that only the previous log covers is not checked, because the entries of that log are not
  // checked.
  if (
    state.before !== undefined &&
    !state.covered.some(([from, to]) => from <= play.index && play.index < to)
  )
    return false;
  const { faults: found } = await examine(proof, compared(sampling, play));
  for (const fault of found) is(false, fault);
  if (proof.shoe != null && proof.shoe.seed !== null)
    for (const fault of verifyRound(play.answer)) is(false, fault);
  is((proof.spinId ?? proof.roundId) === play.id, 'the service returned the proof of another spin or round');
  is(proof.gameId === state.gameId, 'the service returned a proof of another game');
  is(
    (proof.outcome ?? proof.shoe)?.index === play.index,
    `the proof has another index; the history has the index ${play.index}`,
  );
  const number = numberOf(proof.entry);
  const place = number === undefined ? undefined : state.places[number];
  is(
    proof.logIndex >= state.size || place === proof.logIndex,
    'the log index of the proof differs from the position of the entry in the log',
  );
  return true;
}

/**
 * Returns the options to verify a proof with. The service's answer is included if the sheet, table or rules
 * determine its expected content.
 */
function compared({ reads, options, note }: Sampling, { answer }: Play): VerifyOptions {
  const { math, trust } = options;
  const common = { ...trust, ...math, seen: [note], readTile: reads.tile };
  if ('table' in answer) return { rules: (answer as Round).table.rules, ...common, spin: answer };
  return math.sheet === undefined && math.table === undefined ? common : { ...common, spin: answer };
}

function numberOf(entry: string): number | undefined {
  try {
    return (JSON.parse(entry) as { number?: number }).number;
  } catch {
    return undefined;
  }
}
