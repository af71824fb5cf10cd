/** Asks a witness to cosign a checkpoint (C2SP tlog-witness) and interprets the response. */

import { fromDecimal } from '../../domain/publicLog/encoding.js';
import { cosignedAt, isSignedBy, parseLines, type SignatureLine } from '../../domain/publicLog/notes.js';
import type { Witness } from '../../domain/publicLog/policy.js';
import { SIZE_TYPE, submissionText } from '../../domain/publicLog/submissions.js';
import { boundedRequest } from '../../platform/runtime/boundedRequest.js';

export type SubmissionResult =
  | { readonly result: 'cosigned'; readonly line: SignatureLine; readonly at: number }
  /** The witness has already seen a larger tree. */
  | { readonly result: 'overtaken'; readonly problem: string; readonly size: number }
  /** The witness refuses to cosign the checkpoint. */
  | { readonly result: 'refused'; readonly problem: string }
  /** The witness gave no response or an invalid one. */
  | { readonly result: 'failed'; readonly problem: string };

/** Timeout of one request, in ms. */
export const ASK_WITHIN_MS = 2000;
/** Maximum number of submissions of a checkpoint to a witness. */
const SUBMISSIONS_MAX = 2;
/** Maximum size of a witness's response in bytes. */
const ANSWER_MAX = 65_536;
const REFUSED = [403, 404, 422];

/** @throws Error if there is no complete response within two seconds */
export async function ask(
  url: string,
  body?: string,
): Promise<{ readonly status: number; readonly type: string; readonly text: string }> {
  const sent =
    body === undefined ? {} : ({ method: 'POST', body, headers: { 'Content-Type': 'text/plain' } } as const);
  const answer = await boundedRequest(url, { ...sent, bytesMax: ANSWER_MAX, withinMs: ASK_WITHIN_MS });
  return { status: answer.status, type: answer.header('content-type') ?? '', text: answer.body.toString() };
}

/** Returns the newest valid signature line of the witness's key. Lines of other keys are ignored. */
function cosignature(text: string, answer: string, witness: Witness): SignatureLine | undefined {
  const own = parseLines(answer).filter((line) => isSignedBy(text, line, witness));
  return own.sort((a, b) => cosignedAt(b) - cosignedAt(a))[0];
}

const sizeIn = (text: string): number | undefined =>
  text.endsWith('\n') ? fromDecimal(text.slice(0, -1)) : undefined;

/**
 * If the witness has seen a different size than expected, submits once more with that size.
 * @param known expected size of the witness's newest checkpoint
 * @param prove returns the consistency proof from `old` records to the checkpoint
 */
export async function submit(
  witness: Witness,
  checkpoint: {
    readonly size: number;
    /** Text of the checkpoint, which is what signatures cover. */
    readonly text: string;
    /** Note with the log's signature lines. */
    readonly note: string;
  },
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
        ? { result: 'failed', problem: 'the response of the witness has no cosignature by its key' }
        : { result: 'cosigned', line, at: cosignedAt(line) };
    }
    if (REFUSED.includes(status)) return { result: 'refused', problem: `the witness answered ${status}` };
    if (status !== 409) return { result: 'failed', problem: `the witness answered ${status}` };
    const size = type.split(';')[0]!.trim() === SIZE_TYPE ? sizeIn(text) : undefined;
    const problem = `the witness answered 409 with the size ${size} to the old size ${old}`;
    if (size === undefined) return { result: 'failed', problem: 'the witness answered 409 without a size' };
    if (size > checkpoint.size) return { result: 'overtaken', problem, size };
    if (size === old) return { result: 'refused', problem };
    old = size;
  }
  return { result: 'refused', problem: 'the witness answered 409 with different sizes' };
}
