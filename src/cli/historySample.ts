/** Proofs of spins of random times, or of random rounds of a table, for `spindle verify --history`. */
import { examine, type VerifyOptions } from '../../verifier/verify.mjs';
import { ERRORS } from '../domain/errors.js';
import type { HistoryState } from './gameHistory.js';
import { type HistoryReads, HistoryRefusedError, inOrder, listIn } from './historyReads.js';
import { printable } from './output.js';
import { verifyRound } from './verifyRound.js';

const PAGE = 100;
/** So many are looked at for each that is wanted: some are seen twice, or have no proof. */
const LOOKS = 4;
/** A spin that has no proof, or that has left the service since it was listed, is passed over. */
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
  /** The newest checkpoint that was read up to. */
  readonly note: string;
}

interface Play {
  readonly id: string;
  /** Of the outcome or shoe. */
  readonly index: number;
  readonly path: string;
  /** What it is compared with. */
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

/** @param faults takes what is wrong. @returns how many are proven */
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
    // Where many came at once, not only the first of them.
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

/** Of all the partner's rounds those of the game. */
async function* roundsOf({ reads, options: { game, sample } }: Sampling): AsyncGenerator<Play> {
  const base = 'play/blackjack/rounds';
  const { total } = await reads.ask<{ total: number }>(`${base}?limit=1`);
  if (!(total >= 1)) return;
  const looks = LOOKS * sample;
  // Where they are few, each of them.
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

/** @returns false: there is no proof to look at */
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
  // What only the log before has is not looked at.
  if (
    state.before !== undefined &&
    !state.covered.some(([from, to]) => from <= play.index && play.index < to)
  )
    return false;
  const { faults: found } = await examine(proof, compared(sampling, play));
  for (const fault of found) is(false, fault);
  if (proof.shoe != null && proof.shoe.seed !== null)
    for (const fault of verifyRound(play.answer)) is(false, fault);
  is((proof.spinId ?? proof.roundId) === play.id, 'the proof is of another');
  is(proof.gameId === state.gameId, 'the proof is of another game');
  is((proof.outcome ?? proof.shoe)?.index === play.index, `the history has the index ${play.index}`);
  const number = numberOf(proof.entry);
  const place = number === undefined ? undefined : state.places[number];
  is(proof.logIndex >= state.size || place === proof.logIndex, 'its entry is not where the log has it');
  return true;
}

/** What a proof is compared with: the answer where the sheet, table or rules tell what it must be. */
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
