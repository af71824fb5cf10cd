/** Asks a witness to cosign a checkpoint (C2SP tlog-witness): the request, and what its answers mean. */

import { fromDecimal } from '../../domain/publicLog/encoding.js';
import { cosignedAt, isSignedBy, parseLines, type SignatureLine } from '../../domain/publicLog/notes.js';
import type { Witness } from '../../domain/publicLog/policy.js';
import { SIZE_TYPE, submissionText } from '../../domain/publicLog/submissions.js';
import { boundedRequest } from '../../platform/runtime/boundedRequest.js';

/** A checkpoint that a witness is asked to cosign. */
export interface AskedCheckpoint {
  readonly size: number;
  /** What is signed. */
  readonly text: string;
  /** With the log's signature lines. */
  readonly note: string;
}

/** What comes of it. */
export type SubmissionResult =
  | { readonly result: 'cosigned'; readonly line: SignatureLine; readonly at: number }
  /** It has a larger tree already. */
  | { readonly result: 'overtaken'; readonly problem: string; readonly size: number }
  /** It says that it does not cosign this. */
  | { readonly result: 'refused'; readonly problem: string }
  /** No answer, or none that means something. */
  | { readonly result: 'failed'; readonly problem: string };

/** Of one request. */
export const ASK_WITHIN_MS = 2000;
/** A checkpoint is submitted to a witness at most so often. */
const SUBMISSIONS_MAX = 2;
/** Bytes of an answer. */
const ANSWER_MAX = 65_536;
const REFUSED = [403, 404, 422];

/** Asks for a text. @throws Error where there is no whole answer within two seconds */
export async function ask(
  url: string,
  body?: string,
): Promise<{ readonly status: number; readonly type: string; readonly text: string }> {
  const sent =
    body === undefined ? {} : ({ method: 'POST', body, headers: { 'Content-Type': 'text/plain' } } as const);
  const answer = await boundedRequest(url, { ...sent, bytesMax: ANSWER_MAX, withinMs: ASK_WITHIN_MS });
  return { status: answer.status, type: answer.header('content-type') ?? '', text: answer.body.toString() };
}

/** The newest line of an answer by the witness's key that verifies; those of others are passed over. */
function cosignature(text: string, answer: string, witness: Witness): SignatureLine | undefined {
  const own = parseLines(answer).filter((line) => isSignedBy(text, line, witness));
  return own.sort((a, b) => cosignedAt(b) - cosignedAt(a))[0];
}

const sizeIn = (text: string): number | undefined =>
  text.endsWith('\n') ? fromDecimal(text.slice(0, -1)) : undefined;

/**
 * Submits a checkpoint to a witness, a second time where it has seen another one than was thought.
 * @param known records of the checkpoint that the witness is thought to have
 * @param prove that the tree of the checkpoint contains the first so many records
 */
export async function submit(
  witness: Witness,
  checkpoint: AskedCheckpoint,
  known: number,
  prove: (old: number) => Promise<readonly Buffer[]>,
): Promise<SubmissionResult> {
  let old = known;
  for (let times = 0; times < SUBMISSIONS_MAX; times++) {
    const body = submissionText({ old, proof: await prove(old), note: checkpoint.note });
    const { status, type, text } = await ask(`${witness.url}/add-checkpoint`, body);
    if (status === 200) {
      const line = cosignature(checkpoint.text, text, witness);
      return line === undefined
        ? { result: 'failed', problem: 'its answer has no cosignature by its key' }
        : { result: 'cosigned', line, at: cosignedAt(line) };
    }
    if (REFUSED.includes(status)) return { result: 'refused', problem: `it answers ${status}` };
    if (status !== 409) return { result: 'failed', problem: `it answers ${status}` };
    const size = type.split(';')[0]!.trim() === SIZE_TYPE ? sizeIn(text) : undefined;
    const problem = `it answers 409 with the size ${size} to ${old}`;
    if (size === undefined) return { result: 'failed', problem: 'it answers 409 without a size' };
    if (size > checkpoint.size) return { result: 'overtaken', problem, size };
    if (size === old) return { result: 'refused', problem };
    old = size;
  }
  return { result: 'refused', problem: 'it answers 409 with one size and then with another' };
}
