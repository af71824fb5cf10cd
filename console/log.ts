/** The service's public log as a page reads it: its newest note, its policy, and its own verifier. */
import { ApiFault } from './api.js';

/** A text below `/log/`. @throws ApiFault where there is none */
async function logText(name: 'checkpoint' | 'policy'): Promise<string> {
  let answer: Response;
  try {
    answer = await fetch(`/log/${name}`);
  } catch {
    throw new ApiFault(0, '', 'The service does not answer');
  }
  if (answer.ok) return answer.text();
  throw new ApiFault(
    answer.status,
    '',
    answer.status === 404 ? 'Nothing is logged yet' : 'The log does not answer',
  );
}

export interface Witness {
  readonly name: string;
  readonly vkey: string;
  /** When it signed the newest checkpoint, seconds since 1970; undefined: it has not. */
  readonly signedAt: number | undefined;
}

export interface ShownLog {
  readonly origin: string;
  readonly size: number;
  readonly root: string;
  /** Keys in force. */
  readonly vkeys: readonly string[];
  readonly witnesses: readonly Witness[];
  /** The policy's line. */
  readonly quorum: string;
}

const TIME_AT = 4;

/** The time of a cosignature: key id 4, seconds u64, signature. */
function timeOf(encoded: string): number {
  const bytes = Uint8Array.from(atob(encoded), (char) => char.charCodeAt(0));
  return Number(new DataView(bytes.buffer).getBigUint64(TIME_AT));
}

/** What a note and a policy (C2SP signed-note, tlog-policy) say. It is shown, not verified. */
export function shownLog(note: string, policy: string): ShownLog {
  const [text = '', signatures = ''] = note.split(/\n\n(?=— )/u);
  const [origin = '', size = '0', root = ''] = text.split('\n');
  const lines = policy.split('\n').map((line) => line.split(/[ \t]+/));
  const signedBy = (vkey: string): number | undefined => {
    const name = vkey.split('+', 1)[0];
    const line = signatures.split('\n').find((each) => each.startsWith(`— ${name} `));
    return line === undefined ? undefined : timeOf(line.split(' ')[2]!);
  };
  return {
    origin,
    size: Number(size),
    root,
    vkeys: lines.filter(([word]) => word === 'log').map(([, vkey = '']) => vkey),
    witnesses: lines
      .filter(([word]) => word === 'witness')
      .map(([, name = '', vkey = '']) => ({ name, vkey, signedAt: signedBy(vkey) })),
    quorum: lines.find(([word]) => word === 'quorum')?.[1] ?? 'none',
  };
}

export async function readLog(): Promise<ShownLog> {
  const [note, policy] = await Promise.all([logText('checkpoint'), logText('policy')]);
  return shownLog(note, policy);
}

interface Verifier {
  verify(proof: unknown, options: { policy: string }): Promise<readonly string[]>;
}
/** The module that the service gives to everybody: no part of the console's own script. */
const VERIFIER = '/verify.mjs';

/** What is wrong with a proof, by the keys that this service names. */
export async function faultsOf(proof: unknown): Promise<readonly string[]> {
  const [policy, { verify }] = await Promise.all([
    logText('policy'),
    import(/* @vite-ignore */ VERIFIER) as Promise<Verifier>,
  ]);
  return verify(proof, { policy });
}
